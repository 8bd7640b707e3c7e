"""The state of training and its batches over the devices of a mesh, by rules for paths of parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import phlox
import phlox.numpy as jnp
from phlox.errors import ArgumentError
from phlox.extend import path_text, shardings_by_path
from phlox.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from phlox.tree_util import tree_flatten_with_path

from ._state import TrainState

#: names of mesh axes along which batches are split; without any of them it is the first axis
_BATCH_AXES = ("data", "batch", "fsdp")


def state_shardings(state: TrainState, mesh: Mesh, rules: Any) -> TrainState:
    """The shardings of a state: of parameters by the rules, of the optimizer's state and averages as the parameters'.

    Args:
      state: the state of training.
      mesh: the devices.
      rules: `PartitionSpec` by pattern; or "fsdp", which splits the longest axis of each parameter that can be split;
        None: parameters are on all devices whole.
    """
    params = state.params
    if rules == "fsdp":
        by_param = phlox.tree.map(lambda leaf: NamedSharding(mesh, _longest(jnp.shape(leaf), mesh)), params)
    elif rules is None or isinstance(rules, Mapping):
        by_param = shardings_by_path("rules", params, rules or {}, mesh)
    else:
        raise ArgumentError(
            f"fit: rules is {rules!r:.60}",
            instead='{"*/query/weight": P("data", "model")}, or "fsdp"',
            argument="rules",
        )
    pairs = tree_flatten_with_path(params)[0]
    shardings = phlox.tree.leaves(by_param)
    known = {
        (path_text(path), jnp.shape(leaf)): sharding for (path, leaf), sharding in zip(pairs, shardings, strict=True)
    }
    leaves, structure = tree_flatten_with_path(state)
    whole = NamedSharding(mesh, PartitionSpec())
    return structure.unflatten([_of_leaf(path, leaf, known, whole) for path, leaf in leaves])


def _of_leaf(path: Any, leaf: Any, known: Mapping[Any, Any], whole: Any) -> Any:
    """The sharding of the parameter whose path ends the path of a leaf, and that has its shape; else `whole`."""
    for start in range(len(path)):
        sharding = known.get((path_text(path[start:]), jnp.shape(leaf)))
        if sharding is not None:
            return sharding
    return known.get(("", jnp.shape(leaf)), whole)  # parameters that are one array have an empty path


def _longest(shape: tuple[int, ...], mesh: Mesh) -> PartitionSpec:
    """Splits the longest axis that the devices of the batch axes divide; none if there is no such axis."""
    names = batch_axes(mesh)
    parts = math.prod(mesh.shape[name] for name in names)
    axes = [axis for axis, length in enumerate(shape) if length and length % parts == 0]
    if not axes:
        return PartitionSpec()
    longest = max(axes, key=lambda axis: shape[axis])
    return PartitionSpec(*(None,) * longest, names)


def batch_axes(mesh: Mesh) -> tuple[str, ...]:
    """The axes of the mesh along which batches are split."""
    return tuple(name for name in mesh.axis_names if name in _BATCH_AXES) or tuple(mesh.axis_names[:1])


def spread_batch(batch: Any, mesh: Mesh) -> Any:
    """The batch with its first axis split over the devices; arrays that cannot be split are on all of them whole."""
    names = batch_axes(mesh)
    parts = math.prod(mesh.shape[name] for name in names)

    def spread(leaf: Any) -> Any:
        if isinstance(leaf, phlox.Array) and not leaf.is_fully_addressable:
            return leaf  # of several processes, whose loader has split it
        shape = jnp.shape(leaf)
        spec = PartitionSpec(names) if shape and shape[0] % parts == 0 else PartitionSpec()
        return phlox.device_put(leaf, NamedSharding(mesh, spec))

    return phlox.tree.map(spread, batch)


def automatic(mesh: Mesh) -> Mesh:
    """The mesh with axes over which XLA decides how intermediate values are split.

    `phlox.make_mesh` makes explicit ones, for which a loss would have to say it of each gather.
    """
    return Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * len(mesh.axis_names))


def check_mesh(mesh: Any, rules: Any, step: Any) -> None:
    """Raises `ArgumentError` for a mesh, rules or a step that `fit` cannot use together."""
    if mesh is None:
        if rules is not None:
            raise ArgumentError(
                "fit: rules need a mesh", instead='mesh=phlox.make_mesh((8,), ("data",))', argument="mesh"
            )
        return
    if not isinstance(mesh, Mesh):
        raise ArgumentError(f"fit: mesh is {mesh!r:.60}", instead='phlox.make_mesh((8,), ("data",))', argument="mesh")
    if getattr(step, "axis_name", None) is not None:
        raise ArgumentError(
            f"fit: the step has axis_name={step.axis_name!r}, which is for pmap, and fit has a mesh",
            instead="make_step without axis_name: the gradients of arrays over a mesh are those of the whole batch",
            argument="axis_name",
        )


def check_not_mapped(state: Any) -> None:
    """Raises `ArgumentError` for a state with a leading axis of devices, as `pmap` makes it."""
    if jnp.ndim(getattr(state, "step", 0)):
        raise ArgumentError(
            f"fit: the state has an axis of {jnp.shape(state.step)[0]} devices before its own, as pmap makes it",
            instead="step = make_step(loss, tx), without pmap and axis_name; fit(step.init(params), step, batches, "
            f'mesh=phlox.make_mesh(({jnp.shape(state.step)[0]},), ("data",)), ...)',
            argument="state",
        )
