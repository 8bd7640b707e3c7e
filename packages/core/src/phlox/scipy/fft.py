"""``phlox.scipy.fft``: cosine transforms of type 2 and their inverses.

A cosine transform is the transform of the even continuation of its input. It is computed by one real Fourier transform
of the same length: J. Makhoul, A fast cosine transform in one and two dimensions, IEEE Trans. ASSP 28 (1980).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import lax, numpy as jnp
from .._api.jit.jit import jit
from .._base.docstrings import docs_from
from .._base.errors import OptionError, ShapeError, UnsupportedError
from .._base.public_names import publish
from .._base.strictness import lenient
from .._ir import dtypes
from .._operands.checks import canonical_axes, canonical_axis, check_one, integer, type_of
from .._operands.promotion import to_dtype
from ..numpy.fft import fit_last_axes
from ..typing import Array, ArrayLike

__all__ = ["dct", "dctn", "idct", "idctn"]


def _turns(n: int, count: int, dtype: Any) -> tuple[Any, Any]:
    """Cosine and sine of ``pi * k / (2 * n)`` for k = 0 … count - 1."""
    angles = jnp.arange(count, dtype=dtype) * np.asarray(math.pi / (2 * n), dtype)
    return jnp.cos(angles), jnp.sin(angles)


def _lengths_of_rows(n: int, dtype: Any) -> Any:
    """The norms of the rows of the transform, by which ``norm="ortho"`` divides."""
    first = jnp.arange(n) == 0
    return jnp.where(first, np.asarray(math.sqrt(4 * n), dtype), np.asarray(math.sqrt(2 * n), dtype))


def _forward(x: Any, ortho: bool) -> Any:
    """The transform along the last axis."""
    n, dtype = type_of(x).shape[-1], type_of(x).dtype
    # J. Makhoul 1980, A fast cosine transform in one and two dimensions: with the even elements first, then the odd
    # ones in reverse, a Fourier transform of n points suffices, where the mirrored signal would need 2 n.
    spectrum = jnp.fft.rfft(jnp.concatenate([x[..., ::2], jnp.flip(x[..., 1::2], -1)], -1))
    cos, sin = _turns(n, n // 2 + 1, dtype)
    real, imag = spectrum.real, spectrum.imag
    low = real * cos + imag * sin
    high = real * sin - imag * cos
    out = 2 * jnp.concatenate([low, jnp.flip(high[..., 1 : (n + 1) // 2], -1)], -1)
    return out / _lengths_of_rows(n, dtype) if ortho else out


def _backward(x: Any, ortho: bool) -> Any:
    """The inverse of `_forward`."""
    n, dtype = type_of(x).shape[-1], type_of(x).dtype
    if ortho:
        x = x * _lengths_of_rows(n, dtype)
    # `low` is X[k] and `high` is X[n - k], the two that share a Fourier coefficient. X[n] is 0: all its cosines are.
    low = x[..., : n // 2 + 1]
    high = jnp.concatenate([jnp.zeros_like(x[..., :1]), jnp.flip(x[..., 1:], -1)], -1)[..., : n // 2 + 1]
    cos, sin = _turns(n, n // 2 + 1, dtype)
    spectrum = lax.complex((low * cos + high * sin) / 2, (low * sin - high * cos) / 2)
    v = jnp.fft.irfft(spectrum, n)
    even, odd = v[..., : (n + 1) // 2], jnp.flip(v[..., (n + 1) // 2 :], -1)
    # An odd n has one odd element less: a zero completes the last pair, and the slice below removes it.
    if n % 2:
        odd = jnp.concatenate([odd, jnp.zeros_like(odd[..., :1])], -1) if n > 1 else jnp.zeros_like(even)
    return jnp.stack([even, odd], -1).reshape((*type_of(v).shape[:-1], -1))[..., :n]


@functools.partial(jit, inline=True, static_argnames=("axes", "lengths", "inverse", "ortho"))
def _transform(x: Any, axes: tuple[int, ...], lengths: Any, inverse: bool, ortho: bool) -> Any:
    dtype = type_of(x).dtype
    if dtypes.kind(dtype) == "c":
        # The transform is real: real and imaginary parts are transformed apart.
        parts = (_transform(p, axes=axes, lengths=lengths, inverse=inverse, ortho=ortho) for p in (x.real, x.imag))
        return lax.complex(*parts)
    # Fourier transforms have at least 32 bits.
    x = to_dtype(x, dtypes.real_part(dtypes.to_complex(dtype)))
    for axis, length in zip(axes, lengths, strict=True):
        x = jnp.moveaxis(x, axis, -1)
        if length is not None:
            x = fit_last_axes(x, (length,))
        x = jnp.moveaxis((_backward if inverse else _forward)(x, ortho), -1, axis)
    return x


@lenient
def _run(function: str, x: Any, kind: int, axes: tuple[int, ...], lengths: Any, norm: str | None) -> Any:
    if kind != 2:
        raise UnsupportedError(f"{function}: type={kind!r}", instead="type=2")
    if norm not in (None, "backward", "ortho"):
        raise OptionError(f"{function}: norm={norm!r}", instead="None, 'backward' or 'ortho'")
    shape = type_of(x).shape
    lengths = (None,) * len(axes) if lengths is None else lengths
    for axis, length in zip(axes, lengths, strict=True):
        if (shape[axis] if length is None else length) < 1:
            raise ShapeError(
                f"{function}: axis {axis} of {type_of(x).short} would have length {length or 0}",
                instead="a length of at least 1",
                shapes=[shape],
            )
    return _transform(x, axes=axes, lengths=lengths, inverse=function.startswith("i"), ortho=norm == "ortho")


def _along_one(function: str, x: Any, kind: int, n: int | None, axis: int, norm: str | None) -> Any:
    x = check_one(function, x)
    axes = (canonical_axis(axis, type_of(x).ndim, function),)
    return _run(function, x, kind, axes, None if n is None else (integer(function, "n", n),), norm)


def _along_many(function: str, x: Any, kind: int, s: Any, axes: Any, norm: str | None) -> Any:
    x = check_one(function, x)
    rank = type_of(x).ndim
    if s is not None:
        s = tuple(integer(function, "s", n) for n in (s if hasattr(s, "__iter__") else (s,)))
        if len(s) > rank:
            raise ShapeError(f"{function}: {len(s)} lengths s={s} for {type_of(x).short}", shapes=[type_of(x).shape])
    if axes is None:
        axes = range(0 if s is None else rank - len(s), rank)
    axes = canonical_axes(axes, rank, function)
    if s is not None and len(s) != len(axes):
        raise ShapeError(f"{function}: {len(s)} lengths s={s} for {len(axes)} axes {axes}", instead="as many of both")
    return _run(function, x, kind, axes, s, norm)


def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete cosine transform of type 2 along an axis (as ``scipy.fft.dct``).

    Entry k is the sum of ``2 * x[m] * cos(pi * k * (2 * m + 1) / (2 * n))`` over m. A complex array is transformed as
    two real ones.

    Args:
      x: real or complex array with at least one axis; integers are converted to floats.
      type: 2, the only type there is.
      n: length of the transform, by default that of the axis; `x` is truncated, or padded with zeros, to it.
      axis: axis to transform.
      norm: None or 'backward' (no factor), or 'ortho', which makes the transform orthogonal.

    Returns:
      An array of the shape of `x`, with length `n` along `axis`.

    Raises:
      UnsupportedError: `type` is not 2.
      OptionError: `norm` is not one of the listed values.
      ShapeError: the length is less than 1.

    >>> dct(jnp.array([1.0, 1.0, 1.0])).round()
    Array([6., 0., 0.], dtype=float32)
    """
    return _along_one("dct", x, type, n, axis, norm)


@docs_from(dct)
def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `dct` along an axis, the cosine transform of type 3 up to a factor (as ``scipy.fft.idct``).

    Args:
      type: 2, the type of the transform that is inverted.
      norm: as it was for `dct`.

    >>> idct(dct(jnp.array([1.0, 2.0, 4.0]))).round()
    Array([1., 2., 4.], dtype=float32)
    """
    return _along_one("idct", x, type, n, axis, norm)


@docs_from(dct)
def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The cosine transform of type 2 along several axes (as ``scipy.fft.dctn``).

    Args:
      x: real or complex array; integers are converted to floats.
      s: length of the transform for each axis; by default the lengths of `x`. `x` is truncated or padded with zeros.
      axes: axes to transform; by default the last ``len(s)``, or all.

    Returns:
      An array of the shape of `x`, with lengths `s` along `axes`.

    Raises:
      ShapeError: a length is less than 1, or `s` does not fit `axes`.

    >>> dctn(jnp.ones((2, 3))).round()
    Array([[24.,  0.,  0.],
           [ 0.,  0.,  0.]], dtype=float32)
    """
    return _along_many("dctn", x, type, s, axes, norm)


@docs_from(dctn)
def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of `dctn` (as ``scipy.fft.idctn``).

    Args:
      type: 2, the type of the transform that is inverted.
      norm: as it was for `dctn`.

    >>> idctn(dctn(jnp.array([[1.0, 2.0], [3.0, 4.0]]))).round()
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return _along_many("idctn", x, type, s, axes, norm)


publish(__name__)
