"""Statistics of samples: the most frequent value, ranks, and the standard error of the mean."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ... import lax, numpy as jnp
from ..._api.jit.jit import jit
from ..._base.errors import OptionError, UnsupportedError
from ..._ir import dtypes
from ..._ir.dimensions import is_symbolic
from ..._operands.checks import canonical_axis, check, check_one, type_of
from ..._operands.promotion import promote_inexact
from ..._operands.short_floats import round_to, widen
from ...typing import Array, ArrayLike


class ModeResult(NamedTuple):
    """The most frequent values and their counts, the result of `mode`."""

    mode: Any
    count: Any


def _check_nan_policy(function: str, nan_policy: str, *supported: str) -> None:
    instead = " or ".join(f"nan_policy={policy!r}" for policy in supported)
    if nan_policy not in ("propagate", "omit", "raise"):
        raise OptionError(f"{function}: there is no nan_policy={nan_policy!r}", instead=instead)
    if nan_policy not in supported:
        raise UnsupportedError(
            f"{function}: nan_policy={nan_policy!r} depends on values, which are not known while a program is traced",
            instead=instead,
        )


def _starts(x: Any, axis: int, equal_nan: bool) -> Any:
    """The mask of the elements of a sorted array at which a run of equal ones begins."""
    before, after = (lax.slice_in_dim(x, i, i + type_of(x).shape[axis] - 1, axis=axis) for i in (0, 1))
    new = after != before
    # nan is unequal to itself, so that each would begin a run of its own.
    if equal_nan:
        new = new & ((after == after) | (before == before))
    first = jnp.ones_like(lax.slice_in_dim(x, 0, 1, axis=axis), dtype=bool)
    return jnp.concatenate([first, new], axis=axis)


@functools.partial(jit, static_argnames=("axis", "nan_policy", "keepdims"))
def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent value along an axis, of several the smallest (as ``scipy.stats.mode``).

    Args:
      a: array of any shape.
      axis: axis number; None means that the array is flattened.
      nan_policy: must be 'propagate', by which nan is a value as others.
      keepdims: whether the axis stays, of length 1.

    Returns:
      ``(mode, count)``: the values, of the dtype of `a`, and how often each occurs, of the default integer dtype; of no
      elements nan and 0.

    Raises:
      OptionError: `nan_policy` is unknown.
      UnsupportedError: `nan_policy` is 'omit' or 'raise'.
      AxisError: the axis number is out of range.

    >>> mode(np.array([2, 4, 1, 4]))
    ModeResult(mode=Array(4, dtype=int32), count=Array(2, dtype=int32))
    """
    x = jnp.atleast_1d(check_one("mode", a))
    _check_nan_policy("mode", nan_policy, "propagate")
    rank = type_of(x).ndim
    if axis is None:
        x, place = jnp.ravel(x), 0
    else:
        place = canonical_axis(axis, rank, "mode")
    shape = list(type_of(x).shape)
    if not shape[place]:
        del shape[place]
        # As SciPy: of no elements the mode is nan, with the count 0.
        value_and_count: tuple[Any, ...] = jnp.full(shape, np.nan, float), jnp.zeros(shape, float)
    else:
        ordered = jnp.sort(x, axis=place)
        position = lax.broadcasted_iota(dtypes.canonicalize_dtype(int), tuple(shape), place)
        start = lax.cummax(jnp.where(_starts(ordered, place, True), position, 0), axis=place)
        length = position - start + 1
        # The first longest run is that of the smallest value; the position of its last element is `at`.
        at = jnp.argmax(length, axis=place, keepdims=True)
        value_and_count = tuple(
            jnp.squeeze(jnp.take_along_axis(y, at, axis=place), axis=place) for y in (ordered, length)
        )
    if keepdims:
        axes = tuple(range(rank)) if axis is None else place
        value_and_count = tuple(jnp.expand_dims(y, axes) for y in value_and_count)
    return ModeResult(*value_and_count)


@functools.partial(jit, static_argnames=("method", "axis", "nan_policy"))
def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """The ranks of the elements, from 1 on (as ``scipy.stats.rankdata``).

    Args:
      a: real array of any shape.
      method: rank of equal elements: 'average', 'min' or 'max' of their places; 'dense', by which the next larger
        element has the next number; 'ordinal', by which each has another, in the order of the array.
      axis: axis number; None means that the array is flattened.
      nan_policy: must be 'propagate', by which all ranks along an axis with nan are nan.

    Returns:
      An array of the default floating dtype, of the shape of `a`; flat if `axis` is None.

    Raises:
      OptionError: `method` or `nan_policy` is unknown.
      UnsupportedError: `nan_policy` is 'omit' or 'raise'.
      AxisError: the axis number is out of range.

    >>> rankdata(np.array([1, 3, 2, 3]))
    Array([1. , 3.5, 2. , 3.5], dtype=float32)
    """
    x = check_one("rankdata", a)
    _check_nan_policy("rankdata", nan_policy, "propagate")
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise OptionError(f"rankdata: there is no method={method!r}", instead="average, min, max, dense or ordinal")
    if axis is None:
        x, place = jnp.ravel(x), 0
    else:
        place = canonical_axis(axis, type_of(x).ndim, "rankdata")
    shape, out = type_of(x).shape, dtypes.canonicalize_dtype(float)
    count = shape[place]
    if not count:
        return jnp.zeros(shape, out)
    position = lax.broadcasted_iota(np.dtype("int32"), shape, place)
    ordered, origin = lax.sort((x, position), dimension=place, num_keys=1)
    if method == "ordinal":
        ranks = position + 1
    else:
        starts = _starts(ordered, place, False)
        first = lax.cummax(jnp.where(starts, position, 0), axis=place) + 1
        # A run ends where the next one starts; the first start, wrapped to the end, closes the last run.
        ends = jnp.roll(starts, -1, axis=place)
        last = lax.cummin(jnp.where(ends, position, count - 1), axis=place, reverse=True) + 1
        ranks = {
            "min": lambda: first,
            "max": lambda: last,
            "dense": lambda: lax.cumsum(starts.astype(np.int32), axis=place),
            "average": lambda: 0.5 * (first + last).astype(out),
        }[method]()
    # A second sort, by the original positions, brings the ranks back into the order of the elements.
    _, ranks = lax.sort((origin, ranks.astype(out)), dimension=place, num_keys=1)
    if dtypes.kind(type_of(x).dtype) == "f":
        # One nan makes all ranks of its row nan, which is SciPy's "propagate".
        ranks = jnp.where(jnp.any(jnp.isnan(x), axis=place, keepdims=True), jnp.nan, ranks)
    return ranks


@functools.partial(jit, static_argnames=("axis", "ddof", "nan_policy", "keepdims"))
def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """The standard error of the mean along an axis (as ``scipy.stats.sem``).

    Args:
      a: array of any shape; integers are converted to floats.
      axis: axis number; None means all axes.
      ddof: what is subtracted from the number of elements by which the sum of squares is divided.
      nan_policy: 'propagate', or 'omit' to leave out nan.
      keepdims: whether the axis stays, of length 1.

    Returns:
      The standard deviation divided by the root of the number of elements, of the floating dtype of `a`.

    Raises:
      OptionError: `nan_policy` is unknown.
      UnsupportedError: `nan_policy` is 'raise'.
      AxisError: the axis number is out of range.

    >>> round(float(sem(np.array([2.0, 4.0, 1.0, 4.0]))), 3)
    0.75
    """
    (x,) = promote_inexact(*check("sem", a))
    dtype = dtypes.real_part(type_of(x).dtype)
    x = widen(x)
    _check_nan_policy("sem", nan_policy, "propagate", "omit")
    axis = None if axis is None else canonical_axis(axis, type_of(x).ndim, "sem")
    if nan_policy == "propagate":
        size = type_of(x).size if axis is None else type_of(x).shape[axis]
        out = jnp.std(x, axis, ddof=ddof, keepdims=keepdims)
        root = jnp.sqrt(size.as_value()) if is_symbolic(size) else np.sqrt(size)
        return round_to(out / root.astype(type_of(out).dtype), dtype)
    number = jnp.sum(~jnp.isnan(x), axis, keepdims=keepdims)
    out = jnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims)
    return round_to(out / jnp.sqrt(number).astype(type_of(out).dtype), dtype)
