"""The rules `pad` of gather and scatter: indices of padding, and indices behind the true lengths, reach no result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.dimensions import is_symbolic
from ..._ir.jaxpr import JaxprEqn
from ..._trace.trace import typeof
from ..._transform.padding import Padding, bind, grows, padded_axes, refuse
from .dimension_numbers import GatherDimensionNumbers, GatherScatterMode, window_axes, window_sizes


def gather_pad(padding: Padding, eqn: JaxprEqn, operand: Any, indices: Any) -> Any:
    """Slices of the true lengths are read from where the unpadded gather reads them."""
    aval, params = eqn.invars[0].aval, padding.params(eqn)
    limits = _limits(eqn, aval, params["dimension_numbers"].start_index_map, eqn.params["slice_sizes"])
    if any(map(is_symbolic, limits)):
        # In the modes CLIP and PROMISE_IN_BOUNDS, that of `x[i]`, XLA reads the nearest element, which is padding here.
        indices = _bounded(padding, indices, limits, params["mode"].name != "FILL_OR_DROP")
        params["indices_are_sorted"] = False
    if padded_axes(eqn.invars[1].aval):
        # Indices in padding are anything.
        params["indices_are_sorted"] = params["unique_indices"] = False
    return bind("gather", operand, indices, **params)


def scatter_pad(name: str, neutral: Callable[[Any], Any] | None) -> Callable[..., Any]:
    """The rule of the scatter `name`. ``neutral(dtype)`` is an update that changes nothing, None if there is none."""

    def pad(padding: Padding, eqn: JaxprEqn, operand: Any, indices: Any, updates: Any) -> Any:
        avals = [v.aval for v in eqn.invars]
        params = padding.params(eqn)
        numbers = params["dimension_numbers"]
        sizes = window_sizes(avals[0], avals[2], numbers)
        partial = _partial_windows(avals[0], avals[2], numbers)
        if partial and neutral is not None:
            updates = padding.filled(updates, avals[2], neutral(avals[2].dtype), partial)
        elif partial and (name != "scatter" or not _writes_once(avals[1], numbers)):
            refuse(eqn, "the length of the slices that it writes varies, and is not that of the axis")
        limits = _limits(eqn, avals[0], numbers.scatter_dims_to_operand_dims, sizes)
        batching = numbers.scatter_indices_batching_dims
        rows = [axis for axis in padded_axes(avals[1]) if axis not in batching]
        clips = params["mode"].name == "CLIP"
        if rows or any(map(is_symbolic, limits)):
            # XLA checks indices against the padded lengths. The true limits are checked here.
            indices = _bounded(padding, indices, limits, clips)
            if rows:
                inside = padding.inside(avals[1], rows)
                indices = bind("select_n", inside, _outside(indices), indices)
            # In every mode, what is out of bounds now must be dropped. Moved indices may be equal, and are in no order.
            drop = type(params["mode"]).FILL_OR_DROP
            params |= {"mode": drop, "indices_are_sorted": False, "unique_indices": False}
        if partial and neutral is None:
            old = _elements_at(operand, indices, numbers, padding.shape(sizes))
            updates = bind("select_n", padding.inside(avals[2], partial), old, updates)
        return bind(name, operand, indices, updates, **params)

    return pad


def _partial_windows(operand: ShapedArray, updates: ShapedArray, numbers: Any) -> list[int]:
    """The axes of the updates along which padded windows are shorter than the axis of the operand."""
    return [
        at
        for i, at in zip(window_axes(operand, numbers), numbers.update_window_dims, strict=True)
        if is_symbolic(updates.shape[at]) and updates.shape[at] != operand.shape[i]
    ]


def _writes_once(indices: ShapedArray, numbers: Any) -> bool:
    """Whether a scatter writes one window, in each element of its batch: no window overwrites another one."""
    batching = numbers.scatter_indices_batching_dims
    return all(n == 1 for axis, n in enumerate(indices.shape[:-1]) if axis not in batching)


def _elements_at(operand: Any, indices: Any, numbers: Any, sizes: Sequence[int]) -> Any:
    """The elements that a scatter with these indices overwrites."""
    return bind(
        "gather",
        operand,
        indices,
        dimension_numbers=GatherDimensionNumbers(*numbers),
        slice_sizes=tuple(sizes),
        unique_indices=False,
        indices_are_sorted=False,
        mode=GatherScatterMode.CLIP,
        fill_value=None,
    )


def _limits(eqn: JaxprEqn, operand: ShapedArray, axes: Sequence[int], sizes: Sequence[Any]) -> list[Any]:
    """The largest valid value of each element of an index vector."""
    limits = [operand.shape[axis] - sizes[axis] for axis in axes]
    for axis, limit in zip(axes, limits, strict=True):
        if not grows(limit):
            refuse(eqn, f"a slice of length {sizes[axis]} of axis {axis} may reach behind the padding")
    return limits


def _bounded(padding: Padding, indices: Any, limits: Sequence[Any], clips: bool) -> Any:
    """The indices, with those above the true limits moved to the limits (`clips`), or out of all bounds."""
    aval = typeof(indices)
    if dtypes.bits(aval.dtype) < 32:  # the out-of-bounds index must be larger than the padded axis
        indices = bind("convert_element_type", indices, new_dtype=dtypes.int32, weak_type=False)
        aval = typeof(indices)
    if not limits:
        return indices
    tops = [bind("reshape", padding.length(limit), new_sizes=(1,), dimensions=None) for limit in limits]
    top = tops[0] if len(tops) == 1 else bind("concatenate", *tops, dimension=0)
    top = bind("convert_element_type", top, new_dtype=aval.dtype, weak_type=False)
    top = bind("broadcast_in_dim", top, shape=aval.shape, broadcast_dimensions=(aval.ndim - 1,))
    if clips:
        return bind("max", bind("min", indices, top), np.zeros((), aval.dtype)[()])
    return bind("select_n", bind("gt", indices, top), indices, _outside(indices))


def _outside(indices: Any) -> Any:
    """Indices of this shape that are out of bounds of every axis."""
    aval = typeof(indices)
    largest = np.asarray(np.iinfo(aval.dtype).max, aval.dtype)[()]
    return bind("broadcast_in_dim", largest, shape=aval.shape, broadcast_dimensions=())
