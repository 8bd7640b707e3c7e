"""Window functions (bartlett, hanning, hamming, blackman, kaiser), and the Bessel function `i0` of `kaiser`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import DtypeError, ShapeError
from ..._ir import dtypes
from ..._operands.checks import check, integer, type_of
from ..._operands.promotion import promoted_inexact, to_dtype
from ..._ops.structure import shape as ops
from ..._ops.structure.iota import iota
from ...typing import Array, ArrayLike
from .._elementwise import bessel
from .._elementwise.inexact import cos, sqrt
from .._elementwise.unary import abs, is_kind


def _length(function: str, M: Any) -> int:
    # As in JAX 0.12, a float is a number of points too, without what follows the point. Keras passes such scalars.
    if isinstance(M, float) or (getattr(M, "ndim", None) == 0 and dtypes.kind(M.dtype) in "bf"):
        M = int(M)
    if not hasattr(M, "__index__"):
        raise ShapeError(f"{function}: the number of points must be an integer, got {M!r}")
    # As in NumPy, a negative number of points makes an empty window.
    return max(integer(function, "M", M), 0)


@functools.partial(jit, inline=True, static_argnames=("M", "weight"))
def _window(parameters: tuple[Any, ...], M: int, weight: Callable[..., Any]) -> Any:
    """``weight(n, M - 1, *parameters)`` of the positions n; a window of one point is 1."""
    dtype = dtypes.canonical(dtypes.float64)
    if M < 2:
        return ops.broadcast_in_dim(np.ones((), dtype), shape=(M,), broadcast_dimensions=())
    return weight(iota(dtype=dtype, shape=(M,), dimension=0), M - 1, *parameters)


def _cosines(*coefficients: float) -> Callable[[Any, int], Any]:
    """A weighted sum of cosines whose periods divide the window."""

    def weight(n: Any, last: int) -> Any:
        waves: list[Any] = [c * cos(2 * np.pi * k * n / last) for k, c in enumerate(coefficients) if k]
        return functools.reduce(lambda x, y: x + y, waves, coefficients[0])

    return weight


def _triangle(n: Any, last: int) -> Any:
    return 1 - abs(2 * n - last) / last


def _kaiser(n: Any, last: int, beta: Any) -> Any:
    return i0(beta * sqrt(1 - ((n - last / 2) / (last / 2)) ** 2)) / i0(beta)


_HANNING, _HAMMING, _BLACKMAN = _cosines(0.5, -0.5), _cosines(0.54, -0.46), _cosines(0.42, -0.5, 0.08)


def bartlett(M: int) -> Array:
    """The Bartlett window over `M` points: a triangle, 0 at the ends (as ``numpy.bartlett``).

    Args:
      M: number of points, not traced; negative numbers are treated as 0, and a float is rounded towards 0.

    Returns:
      A vector of `M` floats, float32 (float64 in x64 mode); 1 for one point.

    Raises:
      ShapeError: `M` is not a number.

    >>> bartlett(3)
    Array([0., 1., 0.], dtype=float32)
    """
    return _window((), M=_length("bartlett", M), weight=_triangle)


@docs_from(bartlett)
def hanning(M: int) -> Array:
    """The Hann window over `M` points: a raised cosine, 0 at the ends (as ``numpy.hanning``).

    >>> hanning(3)
    Array([0., 1., 0.], dtype=float32)
    """
    return _window((), M=_length("hanning", M), weight=_HANNING)


@docs_from(bartlett)
def hamming(M: int) -> Array:
    """The Hamming window over `M` points: a raised cosine, 0.08 at the ends (as ``numpy.hamming``).

    >>> hamming(3).round(2)
    Array([0.08, 1.  , 0.08], dtype=float32)
    """
    return _window((), M=_length("hamming", M), weight=_HAMMING)


@docs_from(bartlett)
def blackman(M: int) -> Array:
    """The Blackman window over `M` points: a sum of two cosines, 0 at the ends (as ``numpy.blackman``).

    >>> abs(blackman(3).round(2))
    Array([0., 1., 0.], dtype=float32)
    """
    return _window((), M=_length("blackman", M), weight=_BLACKMAN)


@docs_from(bartlett)
def kaiser(M: int, beta: ArrayLike) -> Array:
    """The Kaiser window over `M` points, a quotient of Bessel functions `i0` (as ``numpy.kaiser``).

    Args:
      beta: shape parameter of the window, a number; 0 gives a rectangular window, larger values a narrower one.

    >>> kaiser(3, 0.0)
    Array([1., 1., 1.], dtype=float32)
    """
    return _window((*check("kaiser", beta),), M=_length("kaiser", M), weight=_kaiser)


# --- a Bessel function ----------------------------------------------------------------------------------


@jit
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 0, elementwise (as ``numpy.i0``).

    Args:
      x: array of a real dtype; integers become floats.

    Returns:
      An array of floats of the shape of `x`.

    Raises:
      DtypeError: `x` is complex.

    >>> round(float(i0(2.0)), 4)
    2.2796
    """
    (x,) = promoted_inexact("i0", x)
    if is_kind(x, "c"):
        raise DtypeError(f"i0 does not accept {type_of(x).short}", instead="x.real")
    aval = type_of(x)
    wide = to_dtype(x, dtypes.float32) if dtypes.bits(aval.dtype) < 32 else x
    return to_dtype(bessel.i0(wide), aval.dtype, aval.weak_type)
