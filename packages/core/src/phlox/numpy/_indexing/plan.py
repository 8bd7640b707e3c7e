"""Parsing of indices: an int, a slice, None, Ellipsis, arrays, or a tuple of these.

`parse` splits an index into a plan, which is static and hashable (part of cache keys), and the dynamic operands:
integers and index arrays.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._base.errors import IndexingError, IndexTypeError, NonConcreteBooleanIndexError
from ..._ir import dtypes
from ..._ir.avals import typeof_value
from ..._ir.dimensions import as_length, is_symbolic, max_dim, min_dim
from ..._operands.checks import type_of
from ..._operands.index_bounds import Access, check, is_outside, report_slice
from ..._trace.trace import Tracer
from ...typing import Array
from .._creation.from_data import asarray

if TYPE_CHECKING:
    from types import EllipsisType
    from typing import SupportsIndex, TypeAlias

    from .ds import Slice as Window

    Entry: TypeAlias = SupportsIndex | slice | EllipsisType | np.ndarray | np.bool_ | Array | Window | None
    Index: TypeAlias = Entry | tuple[Entry, ...]


class SlicedAxis(NamedTuple):
    """A slice of one axis: the `size` elements start, start + step, …, before `stop`."""

    start: int
    size: int
    step: int
    stop: int


#: An entry of an index: "int" and "array" consume an axis and a dynamic operand, "mask" (a scalar bool)
#: only a dynamic operand, "new" inserts an axis, a `SlicedAxis` consumes an axis.
Item = str | SlicedAxis


class Plan(NamedTuple):
    """A parsed index without its dynamic operands; `wraps`: whether negative positions count from the end."""

    items: tuple[Item, ...]
    wraps: bool = True


def parse(
    index: Any, shape: tuple[int, ...], wraps: bool = True, access: Access | None = None
) -> tuple[Plan, list[Any]]:
    """The plan of an index into an array of this shape, and its dynamic operands in order.

    `access` says what the index is for, and that its bounds are checked; see `index_bounds`.
    """
    if isinstance(index, Sequence) and not isinstance(index, tuple | str):
        _refuse_sequence(index)
    parts = list(index) if isinstance(index, tuple) else [index]
    parts = [p if isinstance(p, type(None) | type(...) | slice) else _element(p) for p in parts]
    _check_masks(parts, shape)
    parts = [q for p in parts for q in (_expand_mask(p) if _is_mask(p) else [p])]
    consumed = sum(p is not None and p is not Ellipsis and not isinstance(p, _NewAxisMask) for p in parts)
    parts = complete(parts, consumed, shape)
    items: list[Item] = []
    dynamic: list[Any] = []
    axis = 0
    for part in parts:
        if part is None:
            items.append("new")
            continue
        if isinstance(part, _NewAxisMask):
            items.append("mask")
            dynamic.append(part.indices)
            continue
        n = shape[axis]
        axis += 1
        if isinstance(part, slice):
            selected = _slice(part, n)
            items.append(selected)
            if access is not None and not is_symbolic(n) and selected.size == 0 and is_outside(part, n):
                report_slice(part, axis - 1, shape, access)
            continue
        if n == 0 and not type_of(part).shape:
            shown = part if type(part) is int else type_of(part).short
            raise IndexingError(f"index {shown} is out of bounds for axis {axis - 1} with size 0", shapes=[shape])
        if access is not None:
            check(part, axis - 1, shape, access, wraps)
        if type(part) is int:
            items.append("int")
            if is_symbolic(n):
                dynamic.append((part + n).as_value() if wraps and part < 0 else part)
                continue
            if not -(2**31) <= part < 2**31:
                raise dtypes.too_large(part, dtypes.int32, f"index of axis {axis - 1}: ")
            # A position that is still negative is out of bounds. Later code must not count it from the end again.
            dynamic.append(part + n if wraps and -n <= part < 0 else part)
        else:
            items.append("array" if type_of(part).shape else "int")
            dynamic.append(part)
    return Plan(tuple(items), wraps), dynamic


def complete(parts: Sequence[Any], consumed: int, shape: tuple[int, ...]) -> list[Any]:
    """The entries of an index, with ``:`` for axes that they do not consume, in place of the ellipsis or at the end.

    Raises `IndexingError` for too many entries, and for a second ellipsis.
    """
    if consumed > len(shape):
        raise IndexingError(
            f"Too many indices: array is {len(shape)}-dimensional, but {consumed} were indexed", shapes=[shape]
        )
    # By identity, as == of an array is an array
    ellipses = [i for i, p in enumerate(parts) if p is Ellipsis]
    if len(ellipses) > 1:
        raise IndexingError("an index can have only one ellipsis (...)")
    at = ellipses[0] if ellipses else len(parts)
    return [*parts[:at], *[slice(None)] * (len(shape) - consumed), *parts[at + 1 :]]


class _NewAxisMask(NamedTuple):
    """A scalar True or False as index: a new axis of length one or zero."""

    indices: np.ndarray


def _refuse_sequence(index: Sequence[Any]) -> None:
    kinds = Sequence | slice | type(None) | type(...)
    several = any(isinstance(x, kinds) or getattr(x, "ndim", 0) for x in index)
    raise IndexTypeError(
        f"Using a non-tuple sequence for multidimensional indexing is not allowed; {type(index).__name__} seq as in "
        f"arr[seq] could mean arr[{'tuple' if several else 'array'}(seq)]",
        instead="x[phlox.numpy.array(seq)] for elements of the first axis, x[tuple(seq)] for several axes",
        index=index,
    )


def _element(x: Any) -> Any:
    """An index that is one number or array, as an int or an integer or bool array."""
    if isinstance(x, Sequence) and not isinstance(x, str):
        # Under `jit`, `asarray` gives a tracer, and the values of a mask must be known. An empty list selects nothing.
        is_mask = all(isinstance(item, bool) for item in x)
        x = np.array(x, bool if len(x) else np.int32) if is_mask else asarray(x)
    if isinstance(x, bool | np.bool_):
        return np.asarray(x)
    if isinstance(x, int | np.integer):
        return int(x)
    if isinstance(x, str):
        raise IndexTypeError(f"arrays do not support string indexing, got {x!r}", index=x)
    aval = typeof_value(x)
    if aval is None and hasattr(x, "__index__") and not isinstance(x, type | np.ndarray):
        return x.__index__()
    if aval is None:
        raise IndexingError(
            "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean arrays are valid "
            f"indices, got {x!r}",
            index=x,
        )
    if dtypes.kind(aval.dtype) not in "biu":
        raise IndexTypeError(
            f"Indexer must have integer or boolean type, got indexer with type {aval.short}",
            instead="x.astype(int) for positions, x != 0 for a mask",
            index=x,
        )
    return x


def _is_mask(x: Any) -> bool:
    aval = typeof_value(x)
    return aval is not None and aval.dtype == dtypes.bool_


def _check_masks(parts: Sequence[Any], shape: tuple[int, ...]) -> None:
    """Raises `IndexingError` if the shape of a boolean mask is not that of the axes that it selects from."""
    widths = [0 if p is None or p is Ellipsis else type_of(p).ndim if _is_mask(p) else 1 for p in parts]
    ellipsis = next((i for i, p in enumerate(parts) if p is Ellipsis), len(parts))
    for i, part in enumerate(parts):
        if not _is_mask(part):
            continue
        axis = sum(widths[:i]) if i < ellipsis else len(shape) - sum(widths[i:])
        lengths, expected = type_of(part).shape, shape[axis : axis + widths[i]]
        if len(lengths) != len(expected) or any(h not in (0, w) for h, w in zip(lengths, expected, strict=True)):
            raise IndexingError(
                f"boolean index did not match shape of indexed array in index {i}: got {lengths}, expected {expected}",
                instead="a mask with the lengths of the axes that it selects from",
                shapes=[shape, lengths],
            )


def _expand_mask(mask: Any) -> list[Any]:
    """A boolean mask as index arrays: the positions where it is true, one array for each axis."""
    if isinstance(mask, Tracer):
        raise NonConcreteBooleanIndexError(
            f"Array boolean indices must be concrete; got {mask.aval.str_short(False)}, which is traced: the shape of "
            "the result would depend on its values",
            instead="phlox.numpy.where(mask, x, fill), or x.at[mask].set(value) to write",
            aval=mask.aval,
        )
    host = np.asarray(mask)
    if host.ndim == 0:
        return [_NewAxisMask(np.zeros((int(host),), np.int32))]
    return [positions.astype(np.int32) for positions in np.nonzero(host)]


def _slice(s: slice, n: int) -> SlicedAxis:
    for name in ("start", "stop", "step"):
        value = getattr(s, name)
        if isinstance(value, Tracer):
            raise IndexingError(
                f"Array slice indices must be static: the {name} is {value.aval.short}, which is traced, and the shape "
                "would depend on its value",
                instead="phlox.lax.dynamic_slice(x, start_indices, slice_sizes), whose sizes are Python numbers",
                index=s,
            )
        if value is not None and not hasattr(value, "__index__"):
            raise IndexTypeError(f"the {name} of a slice must be an integer, got {value!r}")
    symbolic = is_symbolic(n) or is_symbolic(s.start) or is_symbolic(s.stop)
    start, stop, step = _indices(s, n) if symbolic else s.indices(n)
    # The length of range(start, stop, step): the division rounds up.
    distance, stride = (stop - start, step) if step > 0 else (start - stop, -step)
    size = max_dim(0, (distance + stride - 1) // stride)
    return SlicedAxis(start, size, step, stop)


def _indices(s: slice, n: Any) -> tuple[Any, Any, int]:
    """``s.indices(n)`` for symbolic lengths."""
    step = 1 if s.step is None else operator.index(s.step)
    if not step:
        raise ValueError("slice step cannot be zero")
    first, last = (0, n) if step > 0 else (-1, n - 1)

    def place(value: Any, default: Any) -> Any:
        if value is None:
            return default
        value = as_length(value)
        # For a length whose sign varies this raises.
        return min_dim(last, value) if value >= 0 else max_dim(first, value + n)

    return place(s.start, first if step > 0 else last), place(s.stop, last if step > 0 else first), step


_HASHABLE = (int, type(None))


@functools.lru_cache(4096)
def _plan_of_slice(start: int | None, stop: int | None, step: int | None, shape: tuple[int, ...]) -> Plan | None:
    """The plan of a slice of the first axis; None if it lies outside, which is reported at each line."""
    # The parts are the cache's key, as slices cannot be hashed before Python 3.12.
    part = slice(start, stop, step)
    return None if shape and not is_symbolic(shape[0]) and is_outside(part, shape[0]) else parse(part, shape)[0]


@functools.lru_cache(4096)
def _plan_of_integer(shape: tuple[int, ...]) -> Plan:
    return parse(0, shape)[0]


def plain(index: Any, shape: tuple[int, ...]) -> tuple[Plan, list[Any]] | None:
    """A fast path of `parse` for one number or one slice, which are most indices; None for all others."""
    kind = type(index)
    if kind is int and shape and type(shape[0]) is int:
        n = shape[0]
        if 0 <= index < n:
            return _plan_of_integer(shape), [index]
        if -n <= index < 0:
            return _plan_of_integer(shape), [index + n]
    if (
        kind is slice
        and type(index.start) in _HASHABLE
        and type(index.stop) in _HASHABLE
        and type(index.step) in _HASHABLE
    ):
        plan = _plan_of_slice(index.start, index.stop, index.step, shape)
        return None if plan is None else (plan, [])
    return None
