"""`detrend`: data without its mean, or without straight lines."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.errors import OptionError, UnsupportedError
from ..._base.strictness import lenient
from ..._operands.checks import canonical_axis, check_one, type_of
from ..._operands.promotion import promote_inexact
from ..._operands.short_floats import round_to, widen
from ...typing import Array, ArrayLike


def _without_line(x: Any) -> Any:
    """`x` without the line that fits it best along the last axis, by the normal equations about the middle."""
    n, dtype = type_of(x).shape[-1], type_of(x).dtype
    x = x - jnp.mean(x, -1, keepdims=True)
    place = jnp.arange(n, dtype=dtype) - np.asarray((n - 1) / 2, dtype)
    # The sum of the squares of the positions; a single point has no slope.
    squares = np.asarray(n * (n * n - 1) / 12 or 1, dtype)
    return x - jnp.sum(x * (place / squares), -1, keepdims=True) * place


@functools.partial(jit, inline=True, static_argnames=("axis", "ends"))
def _detrended(x: Any, axis: int, ends: tuple[int, ...] | None) -> Any:
    if ends is None:
        return x - jnp.mean(x, axis, keepdims=True)
    x = jnp.moveaxis(x, axis, -1)
    parts = [_without_line(x[..., start:end]) for start, end in itertools.pairwise(ends)]
    return jnp.moveaxis(jnp.concatenate(parts, -1), -1, axis)


@lenient
def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: None = None,
) -> Array:
    """`data` without its linear trend along an axis (as ``scipy.signal.detrend``).

    Args:
      data: array with at least one axis; integers are converted to floats.
      axis: axis along which the trend is.
      type: 'linear' subtracts the line that fits best, 'constant' the mean.
      bp: positions where another line begins, for type 'linear'.
      overwrite_data: None; arrays are not overwritten.

    Returns:
      An array of the shape of `data`.

    Raises:
      UnsupportedError: `overwrite_data` is given.
      OptionError: an unknown `type`, or a place outside of the data.

    >>> detrend(jnp.array([1.0, 4.0, 8.0, 8.0, 9.0]), type="constant")
    Array([-5., -2.,  2.,  2.,  3.], dtype=float32)
    """
    if overwrite_data is not None:
        raise UnsupportedError(f"detrend: overwrite_data={overwrite_data!r}", instead="overwrite_data=None")
    if type not in ("constant", "linear"):
        raise OptionError(f"detrend: type={type!r}", instead="'linear' or 'constant'")
    (data,) = promote_inexact(jnp.asarray(check_one("detrend", data)))
    axis = canonical_axis(axis, type_of(data).ndim, "detrend")
    length = type_of(data).shape[axis]
    ends = None if type == "constant" else tuple(map(int, np.unique(np.r_[0, bp, length])))
    if ends is not None and (ends[0] < 0 or ends[-1] > length):
        raise OptionError(f"detrend: bp={bp!r} for {length} points", instead="places between the first and the last")
    return round_to(_detrended(widen(data), axis=axis, ends=ends), type_of(data).dtype)
