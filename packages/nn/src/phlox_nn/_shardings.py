"""Shardings of parameters over a mesh, by rules for their paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import phlox
from phlox.errors import ArgumentError
from phlox.sharding import Mesh, NamedSharding, PartitionSpec

from . import _paths
from ._paths import Tree


def shardings(params: Any, rules: Mapping[str, Any], mesh: Mesh) -> Tree:
    """A sharding for each parameter, by the first rule whose pattern matches its path.

    Args:
      params: nested dicts of arrays, or of their shapes, as from ``phlox.eval_shape(model.init, key)``.
      rules: `PartitionSpec` by pattern of dotted paths; parameters that no pattern means are on all devices whole.
      mesh: the devices.

    Returns:
      Nested dicts of `NamedSharding`, for `phlox.device_put`, or for the `out_shardings` of a jitted `init`.

    Raises:
      ArgumentError: a rule does not fit a parameter, by path: more axes than it has, or a length that the mesh axes do
        not divide; or a pattern means nothing.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> from phlox.sharding import PartitionSpec as P
    >>> mesh = phlox.make_mesh((1,), ("model",))
    >>> params = phlox.eval_shape(nn.Linear(4, 8).init, phlox.random.key(0))
    >>> shardings(params, {"weight": P(None, "model")}, mesh)["weight"].spec
    P(None, 'model')
    """
    leaves = dict(_paths.leaves(params))
    for pattern in rules:
        meant = _paths.matcher(pattern)
        if not any(meant(_paths.text(path)) for path in leaves):
            raise ArgumentError(f"shardings: no parameter is meant by the pattern {pattern!r}", pattern=pattern)
    by_path = {}
    for path, leaf in leaves.items():
        name = _paths.text(path)
        spec = _paths.first(rules, name, PartitionSpec())
        _check(name, leaf, spec, mesh)
        by_path[path] = NamedSharding(mesh, spec)
    return _paths.nested(by_path)


def _check(name: str, leaf: Any, spec: Any, mesh: Mesh) -> None:
    shape = phlox.numpy.shape(leaf) if not hasattr(leaf, "shape") else leaf.shape
    if len(spec) > len(shape):
        raise ArgumentError(f"shardings: {name} has shape {shape}, and {spec} speaks of {len(spec)} axes", path=name)
    for axis, entry in enumerate(spec):
        names = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
        parts = 1
        for mesh_axis in names:
            if mesh_axis not in mesh.shape:
                raise ArgumentError(
                    f"shardings: {spec} for {name} names {mesh_axis!r}, but the mesh has {tuple(mesh.shape)}", path=name
                )
            parts *= mesh.shape[mesh_axis]
        if shape[axis] % parts:
            raise ArgumentError(
                f"shardings: axis {axis} of {name}, {shape}, cannot be cut into {parts} equal parts as {spec} asks",
                path=name,
            )
