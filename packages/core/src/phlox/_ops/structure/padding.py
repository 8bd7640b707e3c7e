"""The rules `pad` of operations that move elements: where the elements of padded operands are in the padded result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._ir.avals import ShapedArray
from ..._ir.bounds import bounds
from ..._ir.dimensions import is_symbolic
from ..._ir.jaxpr import JaxprEqn
from ..._trace.trace import typeof
from ..._transform.padding import MAX_ELEMENTS, Padding, bind, grows, is_padded, pad_elementwise, padded_axes, refuse

_ZERO = np.int32(0)


# --- reshape --------------------------------------------------------------------------------------------


def reshape_pad(padding: Padding, eqn: JaxprEqn, x: Any) -> Any:
    return reshaped(padding, eqn, x, eqn.invars[0].aval, eqn.outvars[0].aval)


def reshaped(padding: Padding, eqn: JaxprEqn, x: Any, old: ShapedArray, new: ShapedArray) -> Any:
    """The padded array of type `new` with the elements of `x`, of type `old`.

    If only the first axis of each group of axes is padded, elements stay in order. Else they are read one by one."""
    # Padding at the end of the first axis of a group is at the end of the group. Padding of an inner axis is between
    # elements, which then have other positions.
    if _keeps_order(padding, old.shape, new.shape):
        return bind("reshape", x, new_sizes=padding.shape(new.shape), dimensions=None)
    size = math.prod(padding.shape(old.shape))
    if max(size, math.prod(padding.shape(new.shape))) > MAX_ELEMENTS:
        refuse(eqn, "the padded arrays have more than 2^31 elements")
    flat = bind("reshape", x, new_sizes=(size,), dimensions=None)
    return elements(flat, _positions(padding, old, new))


def _keeps_order(padding: Padding, old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether both shapes consist of groups of axes with equal products, of which only the first ones are padded."""
    old, new = [n for n in old if n != 1], [n for n in new if n != 1]
    i = j = 0
    while i < len(old) and j < len(new):
        first, second = i, j
        left, right = old[i], new[j]
        i, j = i + 1, j + 1
        while padding.capacity(left) != padding.capacity(right):
            if padding.capacity(left) < padding.capacity(right):
                if i == len(old):
                    return False
                left, i = left * old[i], i + 1
            else:
                if j == len(new):
                    return False
                right, j = right * new[j], j + 1
        if left != right or any(map(is_symbolic, (*old[first + 1 : i], *new[second + 1 : j]))):
            return False
    return i == len(old) and j == len(new)


def _positions(padding: Padding, old: ShapedArray, new: ShapedArray) -> Any:
    """For each element of the padded array `new`, its position among all elements of the padded array `old`."""
    shape = padding.shape(new.shape)
    # The position in the unpadded array, from the true lengths, is the same in `old` and `new`. It is then taken apart
    # by the true lengths of `old` and put together by its padded ones.
    count: Any = np.int32(0)
    for axis, n in enumerate(new.shape):
        here = bind("iota", dtype=np.dtype(np.int32), shape=shape, dimension=axis)
        count = bind("add", bind("mul", count, padding.length(n)), here)
    position, stride = None, 1
    for n in reversed(old.shape):
        length = padding.length(n)
        # A length may be 0 in padding of padding; the quotient is then not used.
        length = bind("max", length, np.int32(1)) if is_symbolic(n) else length
        part = bind("mul", bind("rem", count, length), np.int32(stride))
        position = part if position is None else bind("add", position, part)
        count, stride = bind("div", count, length), stride * padding.capacity(n)
    return position


def elements(flat: Any, positions: Any) -> Any:
    """The elements of the vector `flat` at these positions, which are cut off at its ends."""
    from .dimension_numbers import GatherScatterMode
    from .gather import take_along_axis

    return take_along_axis(flat, positions, 0, GatherScatterMode.CLIP)


# --- slices ---------------------------------------------------------------------------------------------


def rev_pad(padding: Padding, eqn: JaxprEqn, x: Any) -> Any:
    """Reverses the padded array, and drops the padding that is now in front."""
    aval, out = eqn.invars[0].aval, pad_elementwise(padding, eqn, x)
    for axis in eqn.params["dimensions"]:
        n = aval.shape[axis]
        if is_symbolic(n):
            most = padding.capacity(n)
            out = padding.from_position(out, axis, bind("sub", np.int32(most), padding.length(n)), most)
    return out


def slice_pad(padding: Padding, eqn: JaxprEqn, x: Any) -> Any:
    starts, strides = eqn.params["start_indices"], eqn.params["strides"]
    return _padded_slice(padding, x, starts, strides or (1,) * len(starts), eqn.outvars[0].aval)


def _padded_slice(padding: Padding, x: Any, starts: Sequence[Any], strides: Sequence[int], out: ShapedArray) -> Any:
    """The slice of type `out` of a padded array; `starts` may be symbolic."""
    lows, limits = [], []
    strides = list(strides)
    for axis, (start, step, n) in enumerate(zip(starts, strides, padding.shape(out.shape), strict=True)):
        if is_symbolic(step):
            x, start, step = _strided(padding, x, axis, start, step, n), 0, 1
            strides[axis] = 1
        elif is_symbolic(start):
            x = padding.from_position(x, axis, padding.length(start), padding.capacity(start))
            start = 0
        limits.append(min(typeof(x).shape[axis], start + max(0, (n - 1) * step + 1)))
        lows.append(min(start, limits[-1]))
    steps = None if all(step == 1 for step in strides) else tuple(strides)
    part = bind("slice", x, start_indices=tuple(lows), limit_indices=tuple(limits), strides=steps)
    return padding.fit(part, out)


def _strided(padding: Padding, x: Any, axis: int, start: Any, step: Any, count: int) -> Any:
    """`count` elements of a padded array along `axis`, `step` apart: some are read behind the true length."""
    from .dimension_numbers import GatherScatterMode
    from .gather import take_along_axis

    return take_along_axis(x, _arithmetic(padding, start, step, count), axis, GatherScatterMode.CLIP)


def _arithmetic(padding: Padding, start: Any, step: Any, count: int) -> Any:
    """The positions ``start + i * step``, as int32."""
    numbers = bind("iota", dtype=np.dtype(np.int32), shape=(count,), dimension=0)
    return bind("add", bind("mul", numbers, padding.length(step)), padding.length(start))


def split_pad(padding: Padding, eqn: JaxprEqn, x: Any) -> list[Any]:
    axis, parts, start = eqn.params["axis"], [], 0
    for v, size in zip(eqn.outvars, eqn.params["sizes"], strict=True):
        rank = v.aval.ndim
        starts = [start if i == axis else 0 for i in range(rank)]
        parts.append(_padded_slice(padding, x, starts, (1,) * rank, v.aval))
        start = start + size
    return parts


def dynamic_slice_pad(padding: Padding, eqn: JaxprEqn, x: Any, *starts: Any) -> Any:
    sizes = eqn.params["slice_sizes"]
    moved = inside_starts(padding, eqn, eqn.invars[0].aval.shape, sizes, starts)
    return bind("dynamic_slice", x, *moved, slice_sizes=padding.shape(sizes))


def inside_starts(
    padding: Padding, eqn: JaxprEqn, shape: Sequence[Any], sizes: Sequence[Any], starts: Sequence[Any]
) -> list[Any]:
    """Start indices such that slices of `sizes` end before the true lengths, as the unpadded operation moves them."""
    moved = []
    for n, size, start in zip(shape, sizes, starts, strict=True):
        if not is_symbolic(n) and not is_symbolic(size):
            moved.append(start)
            continue
        room = n - size
        if not grows(room):
            refuse(eqn, f"a slice of length {size} of an axis of length {n} may reach behind the padding")
        dtype = typeof(start).dtype
        last = bind("convert_element_type", padding.length(room), new_dtype=dtype, weak_type=False)
        moved.append(bind("clamp", np.zeros((), dtype)[()], start, last))
    return moved


def dynamic_update_slice_pad(padding: Padding, eqn: JaxprEqn, x: Any, update: Any, *starts: Any) -> Any:
    """Writes only the elements of the update that are no padding."""
    aval, part = eqn.invars[0].aval, eqn.invars[1].aval
    # As the unpadded operation moves its start, which knows the true lengths only.
    starts = tuple(inside_starts(padding, eqn, aval.shape, part.shape, starts))
    partial = [axis for axis in padded_axes(part) if part.shape[axis] != aval.shape[axis]]
    if partial:
        old = bind("dynamic_slice", x, *starts, slice_sizes=padding.shape(part.shape))
        update = bind("select_n", padding.inside(part, partial), old, update)
    return bind("dynamic_update_slice", x, update, *starts)


# --- concatenate, pad -----------------------------------------------------------------------------------


def concatenate_pad(padding: Padding, eqn: JaxprEqn, *xs: Any) -> Any:
    """Writes each operand behind the true end of the one before it, over its padding."""
    axis, out = eqn.params["dimension"], eqn.outvars[0].aval
    lengths = [v.aval.shape[axis] for v in eqn.invars]
    if not any(map(is_symbolic, lengths[:-1])):
        return padding.fit(pad_elementwise(padding, eqn, *xs), out)
    rank = out.ndim
    total = sum(map(padding.capacity, lengths))
    widths = tuple((0, total - typeof(xs[0]).shape[axis] if i == axis else 0, 0) for i in range(rank))
    whole = bind("pad", xs[0], np.zeros((), out.dtype)[()], padding_config=widths)
    start = lengths[0]
    for x, n in zip(xs[1:], lengths[1:], strict=True):
        starts = [padding.length(start) if i == axis else _ZERO for i in range(rank)]
        # The array is long enough for all operands, so that no start is moved back.
        whole = bind("dynamic_update_slice", whole, x, *starts)
        start = start + n
    return padding.fit(whole, out)


def pad_pad(padding: Padding, eqn: JaxprEqn, x: Any, value: Any) -> Any:
    aval, out = eqn.invars[0].aval, eqn.outvars[0].aval
    if any(is_symbolic(inner) for _, _, inner in eqn.params["padding_config"]):
        return _pad_between(padding, eqn, x, value)
    widths, moved = [], []
    for axis, (low, high, inner) in enumerate(eqn.params["padding_config"]):
        n = aval.shape[axis]
        if not any(map(is_symbolic, (n, low, high))):
            widths.append((low, high, inner))
            continue
        length = padding.capacity(n) + max(0, padding.capacity(n) - 1) * inner
        capacity = padding.capacity(out.shape[axis])
        if not is_symbolic(low):
            widths.append((low, capacity - low - length, inner))
            continue
        # The elements are moved to a position that is known when the program runs.
        least, most = bounds(low)
        room = padding.capacity(low if least >= 0 else -low)
        if least < 0 < most:
            refuse(eqn, f"the width {low} may be negative or positive")
        moved.append((axis, low, least >= 0))
        # Room for the elements to move, and for the result if it is longer.
        more = max(capacity, length) - length
        widths.append((room, more, inner) if least >= 0 else (0, room + more, inner))
    if is_padded(aval):
        x = padding.filled(x, aval, value)
    x = bind("pad", x, value, padding_config=tuple(widths))
    for axis, low, positive in moved:
        if positive:  # the padding in front is too long
            room = padding.capacity(low)
            x = padding.from_position(x, axis, bind("sub", np.int32(room), padding.length(low)), room)
        else:
            x = padding.from_position(x, axis, padding.length(-low), padding.capacity(-low))
    return _fit_with(padding, x, out, value)


def _pad_between(padding: Padding, eqn: JaxprEqn, x: Any, value: Any) -> Any:
    """The elements of a vector with padding between them whose width varies; those of padding are dropped."""
    from .dimension_numbers import GatherScatterMode, ScatterDimensionNumbers

    aval, out = eqn.invars[0].aval, eqn.outvars[0].aval
    if aval.ndim != 1:
        refuse(eqn, "the width of the padding between elements varies")
    ((low, _, inner),) = eqn.params["padding_config"]
    (count,) = padding.shape(aval.shape)
    positions = _arithmetic(padding, low, inner + 1, count)
    if is_padded(aval):
        positions = padding.filled(positions, aval.update(dtype=np.dtype(np.int32)), np.iinfo(np.int32).max)
    return bind(
        "scatter",
        bind("broadcast_in_dim", value, shape=padding.shape(out.shape), broadcast_dimensions=()),
        bind("reshape", positions, new_sizes=(count, 1), dimensions=None),
        x,
        dimension_numbers=ScatterDimensionNumbers((), (0,), (0,)),
        indices_are_sorted=False,
        unique_indices=False,
        mode=GatherScatterMode.FILL_OR_DROP,
    )


def _fit_with(padding: Padding, x: Any, out: ShapedArray, value: Any) -> Any:
    shape, target = typeof(x).shape, padding.shape(out.shape)
    widths = tuple((0, want - have, 0) for have, want in zip(shape, target, strict=True))
    return x if shape == target else bind("pad", x, value, padding_config=widths)
