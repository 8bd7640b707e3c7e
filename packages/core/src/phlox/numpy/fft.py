"""Discrete Fourier transforms (``numpy.fft``).

Those of real numbers (`rfft`, `irfft` …) leave out the half of the spectrum that is the mirror image of the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._base.docstrings import docs_from
from .._base.errors import ArgumentError, OptionError, ShapeError
from .._base.public_names import publish
from .._ir import dtypes
from .._operands.checks import canonical_axes, canonical_axis, check_one, integer, integers, sequence, several, type_of
from .._ops.linalg.fft import FftType
from .._xla.devices import Device
from .._xla.sharding import Sharding
from ..typing import Array, ArrayLike, DTypeLike
from ._creation.fill import arange
from ._creation.from_data import asarray
from ._elementwise.unary import conj
from ._manipulation.pad import pad
from ._manipulation.repeat import roll
from ._manipulation.shapes import moveaxis

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

Ints = Sequence[int]


def _scale(function: str, lengths: Sequence[int], is_inverse: bool, norm: str | None) -> float:
    """The factor of the result; inverse transforms of XLA already include 1 / size."""
    size = math.prod(lengths)
    factors = {None: 1.0, "backward": 1.0, "ortho": math.sqrt(size), "forward": float(size)}
    if norm not in factors:
        raise OptionError(f"{function}: norm={norm!r}", instead="'backward', 'ortho' or 'forward'")
    return factors[norm] if is_inverse else 1 / (factors[norm] or 1)


def _transform(
    function: str, kind: FftType, a: Any, s: Any, axes: Any, norm: str | None, is_inverse: bool | None = None
) -> Any:
    """The transform; `is_inverse` decides which norms scale it, by default `kind`."""
    a = check_one(function, a)
    rank = type_of(a).ndim
    axes = None if axes is None else sequence(function, "axes", axes)
    if s is not None:
        s = integers(function, "s", s)
        if any(n <= 0 for n in s):
            raise OptionError(f"{function}: lengths {s} must be positive")
        if axes is not None and len(s) != len(axes):
            raise OptionError(f"{function}: lengths {s} for axes {axes}")
    requested_axes = axes
    if axes is None:
        if s is not None and len(s) > rank:
            raise ShapeError(f"{function}: lengths {s} for {type_of(a).short}", shapes=[type_of(a).shape])
        axes = range(rank) if s is None else range(rank - len(s), rank)
    axes = canonical_axes(tuple(axes), rank, function)
    last = tuple(range(rank - len(axes), rank))
    if requested_axes is not None:
        a = moveaxis(a, axes, last)
    if s is None:
        s = type_of(a).shape[rank - len(axes) :]
        if kind is FftType.IRFFT and s:
            # The spectrum does not tell whether the signal was odd: the even length is assumed, as in NumPy.
            s = (*s[:-1], max(0, 2 * (s[-1] - 1)))
    else:
        a = fit_last_axes(a, (*s[:-1], s[-1] // 2 + 1) if kind is FftType.IRFFT and s else s)
    out = _over_last(a, kind, tuple(s))
    if norm is not None:
        if is_inverse is None:
            is_inverse = kind in (FftType.IFFT, FftType.IRFFT)
        factor = _scale(function, s, is_inverse, norm)
        out = out * asarray(factor, type_of(out).dtype)
    return out if requested_axes is None else moveaxis(out, last, axes)


def fit_last_axes(a: Any, lengths: Sequence[int]) -> Any:
    """`a` with its last axes truncated, or padded with zeros, to these lengths."""
    if not lengths:
        return a
    rank = type_of(a).ndim
    a = asarray(a)[(..., *(slice(n) for n in lengths))]
    missing = [n - length for n, length in zip(lengths, type_of(a).shape[rank - len(lengths) :], strict=True)]
    return pad(a, [(0, 0)] * (rank - len(lengths)) + [(0, n) for n in missing])


def _over_last(a: Any, kind: FftType, lengths: tuple[int, ...]) -> Any:
    """The transform over the last axes; XLA transforms at most three axes at once, so more take several operations."""
    from ..lax import fft as transform  # here, as `phlox.numpy` does not wait for lax

    if len(lengths) <= 3:
        # The transforms with complex input and output go over the other axes, so a real transform comes before them,
        # and its inverse after them.
        return transform(a, kind, lengths)
    some = 2 if len(lengths) == 4 else 3
    rank = type_of(a).ndim
    others = tuple(range(rank - len(lengths), rank - some))
    end = tuple(range(rank - len(others), rank))
    forth = kind in (FftType.FFT, FftType.RFFT)
    if forth:
        a = transform(a, kind, lengths[-some:])
    a = _over_last(moveaxis(a, others, end), FftType.FFT if forth else FftType.IFFT, lengths[:-some])
    a = moveaxis(a, end, others)
    return a if forth else transform(a, kind, lengths[-some:])


def _over_one(
    function: str, kind: FftType, a: Any, n: Any, axis: Any, norm: str | None, is_inverse: bool | None = None
) -> Any:
    if isinstance(axis, list | tuple):
        raise OptionError(f"{function}: axis={axis}", instead=f"{function}n, which takes several axes")
    lengths = None if n is None else [integer(function, "n", n)]
    return _transform(function, kind, a, lengths, None if axis is None else [axis], norm, is_inverse)


def _over_two(function: str, kind: FftType, a: Any, s: Any, axes: Any, norm: str | None) -> Any:
    if len(sequence(function, "axes", axes)) != 2:
        raise OptionError(f"{function}: axes={axes}", instead="two axes, or the function with n for 2")
    return _transform(function, kind, a, s, axes, norm)


# --- one axis -------------------------------------------------------------------------------------------


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform along an axis: entry k is the sum of ``a[m] * exp(-2j * pi * m * k / n)`` over m
    (as ``numpy.fft.fft``).

    Args:
      a: real or complex array with at least one axis.
      n: length of the transform: the input is cut or padded with zeros to it along `axis`; by default its length there.
      axis: axis along which to transform.
      norm: normalization: 'backward' (default) scales the inverse transforms by 1/n, 'forward' the forward ones, and
        'ortho' both by 1/sqrt(n).

    Returns:
      An array of the shape of `a`, with length `n` along `axis`, of dtype complex64 (complex128 for 64-bit dtypes).

    Raises:
      OptionError: `norm` is not one of the listed names, `n` is not positive, or `axis` is a tuple.
      AxisError: `axis` is out of bounds for `a`.

    >>> jnp.fft.fft(jnp.array([1.0, 0.0]))
    Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _over_one("fft", FftType.FFT, a, n, axis, norm)


@docs_from(fft)
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `fft`, with the same options (as ``numpy.fft.ifft``).

    >>> jnp.fft.ifft(jnp.array([2.0, 0.0]))
    Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _over_one("ifft", FftType.IFFT, a, n, axis, norm)


@docs_from(fft)
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """`fft` of real numbers: its first ``n // 2 + 1`` entries, which determine the others (as ``numpy.fft.rfft``).

    Args:
      a: real array with at least one axis.

    Returns:
      An array of the shape of `a`, with length ``n // 2 + 1`` along `axis`, of dtype complex64 (complex128 for 64-bit
      dtypes).

    Raises:
      DtypeError: `a` is complex.

    >>> jnp.fft.rfft(jnp.array([1.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _over_one("rfft", FftType.RFFT, a, n, axis, norm)


@docs_from(fft)
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `rfft` (as ``numpy.fft.irfft``).

    Args:
      a: complex array with at least one axis, the first ``n // 2 + 1`` entries of a spectrum.
      n: length of the result along `axis`; by default ``2 * (a.shape[axis] - 1)``, which is even.

    Returns:
      A float array of the shape of `a`, with length `n` along `axis`.

    >>> jnp.fft.irfft(jnp.array([1.0, 1.0]))
    Array([1., 0.], dtype=float32)
    """
    return _over_one("irfft", FftType.IRFFT, a, n, axis, norm)


@docs_from(irfft)
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """`fft` of a Hermitian-symmetric signal, given by its first half; its spectrum is real (as ``numpy.fft.hfft``).

    Args:
      a: complex array with at least one axis, the first ``n // 2 + 1`` entries of the signal.

    >>> jnp.fft.hfft(jnp.array([1.0, 1.0]))
    Array([2., 0.], dtype=float32)
    """
    a = check_one("hfft", a)
    # hfft is irfft of the conjugate, without its factor 1 / n.
    out = _over_one("hfft", FftType.IRFFT, conj(a), n, axis, norm, is_inverse=False)
    return out * (2 * (type_of(a).shape[axis] - 1) if n is None else n)


@docs_from(rfft)
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft` (as ``numpy.fft.ihfft``).

    >>> jnp.fft.ihfft(jnp.array([2.0, 0.0]))
    Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    a = check_one("ihfft", a)
    out = _over_one("ihfft", FftType.RFFT, a, n, axis, norm, is_inverse=True)
    return conj(out) * (1 / (type_of(a).shape[axis] if n is None else n))


# --- several axes ---------------------------------------------------------------------------------------


def fftn(a: ArrayLike, s: Ints | None = None, axes: Ints | None = None, norm: str | None = None) -> Array:
    """`fft` along several axes (as ``numpy.fft.fftn``).

    Args:
      a: real or complex array of any shape.
      s: lengths of the transform along `axes`: the input is cut or padded with zeros to them; by default its lengths
        along `axes`.
      axes: axes along which to transform; by default all axes, or the last ``len(s)`` ones if `s` is given.
      norm: normalization, as for `fft`, where n is the product of the lengths.

    Returns:
      An array of the shape of `a`, with lengths `s` along the axes, of dtype complex64 (complex128 for 64-bit dtypes).

    Raises:
      OptionError: `s` and `axes` have different lengths, a length is not positive, or `norm` is not one of the listed
        names.
      ShapeError: `s` has more lengths than `a` has axes, or an axis occurs twice.

    >>> jnp.fft.fftn(jnp.array([[1.0, 0.0], [0.0, 0.0]]))
    Array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return _transform("fftn", FftType.FFT, a, s, axes, norm)


@docs_from(fftn)
def ifftn(a: ArrayLike, s: Ints | None = None, axes: Ints | None = None, norm: str | None = None) -> Array:
    """The inverse of `fftn` (as ``numpy.fft.ifftn``).

    >>> jnp.fft.ifftn(jnp.ones((2, 2))).real
    Array([[1., 0.],
           [0., 0.]], dtype=float32)
    """
    return _transform("ifftn", FftType.IFFT, a, s, axes, norm)


@docs_from(fftn)
def rfftn(a: ArrayLike, s: Ints | None = None, axes: Ints | None = None, norm: str | None = None) -> Array:
    """`rfft` along the last of several axes, then `fft` along the others (as ``numpy.fft.rfftn``).

    Args:
      a: real array of any shape.

    Returns:
      An array of dtype complex64 (complex128 for 64-bit dtypes), with lengths `s` along the axes, but
      ``s[-1] // 2 + 1`` along the last.

    Raises:
      DtypeError: `a` is complex.

    >>> jnp.fft.rfftn(jnp.ones((2, 3))).shape
    (2, 2)
    """
    return _transform("rfftn", FftType.RFFT, a, s, axes, norm)


@docs_from(fftn)
def irfftn(a: ArrayLike, s: Ints | None = None, axes: Ints | None = None, norm: str | None = None) -> Array:
    """The inverse of `rfftn` (as ``numpy.fft.irfftn``).

    Args:
      a: complex array of any shape.
      s: lengths of the result along the axes; by default the lengths of `a`, with ``2 * (length - 1)`` along the last
        axis.

    Returns:
      A float array of the shape of `a`, with lengths `s` along the axes.

    >>> jnp.fft.irfftn(jnp.ones((2, 2)), s=(2, 3)).shape
    (2, 3)
    """
    return _transform("irfftn", FftType.IRFFT, a, s, axes, norm)


def fft2(a: ArrayLike, s: Ints | None = None, axes: Ints = (-2, -1), norm: str | None = None) -> Array:
    """`fftn` along two axes (as ``numpy.fft.fft2``).

    Args:
      a: real or complex array of any shape.
      s: lengths of the transform along `axes`: the input is cut or padded with zeros to them; by default its lengths
        along `axes`.
      axes: the two axes along which to transform.
      norm: normalization, as for `fft`, where n is the product of the lengths.

    Returns:
      An array of the shape of `a`, with lengths `s` along the axes, of dtype complex64 (complex128 for 64-bit dtypes).

    Raises:
      OptionError: `axes` does not consist of two axes, an axis occurs twice, `s` and `axes` have different lengths, a
        length is not positive, or `norm` is not one of the listed names.
      AxisError: an axis is out of bounds for `a`.

    >>> jnp.fft.fft2(jnp.ones((2, 2))).real
    Array([[4., 0.],
           [0., 0.]], dtype=float32)
    """
    return _over_two("fft2", FftType.FFT, a, s, axes, norm)


@docs_from(fft2)
def ifft2(a: ArrayLike, s: Ints | None = None, axes: Ints = (-2, -1), norm: str | None = None) -> Array:
    """`ifftn` along two axes (as ``numpy.fft.ifft2``).

    >>> jnp.fft.ifft2(jnp.ones((2, 2))).real
    Array([[1., 0.],
           [0., 0.]], dtype=float32)
    """
    return _over_two("ifft2", FftType.IFFT, a, s, axes, norm)


@docs_from(fft2, rfft)
def rfft2(a: ArrayLike, s: Ints | None = None, axes: Ints = (-2, -1), norm: str | None = None) -> Array:
    """`rfftn` along two axes (as ``numpy.fft.rfft2``).

    Args:
      a: real array of any shape.

    Returns:
      An array of dtype complex64 (complex128 for 64-bit dtypes), with lengths `s` along the axes, but
      ``s[-1] // 2 + 1`` along the last.

    >>> jnp.fft.rfft2(jnp.ones((2, 3))).shape
    (2, 2)
    """
    return _over_two("rfft2", FftType.RFFT, a, s, axes, norm)


@docs_from(fft2)
def irfft2(a: ArrayLike, s: Ints | None = None, axes: Ints = (-2, -1), norm: str | None = None) -> Array:
    """`irfftn` along two axes (as ``numpy.fft.irfft2``).

    Args:
      a: complex array of any shape.
      s: lengths of the result along the axes; by default the lengths of `a`, with ``2 * (length - 1)`` along the last
        axis.

    Returns:
      A float array of the shape of `a`, with lengths `s` along the axes.

    >>> jnp.fft.irfft2(jnp.ones((2, 2)), s=(2, 3)).shape
    (2, 3)
    """
    return _over_two("irfft2", FftType.IRFFT, a, s, axes, norm)


# --- frequencies, and their order -----------------------------------------------------------------------


def _check_numbers(function: str, n: Any, d: Any) -> None:
    for name, x in (("n", n), ("d", d)):
        if isinstance(x, list | tuple):
            raise ArgumentError(f"{function}: {name} must be a number, got {x!r}")


def fftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Device | Sharding | None = None
) -> Array:
    """The frequencies of the entries of an `fft` of length `n` over samples with spacing `d` (as
    ``numpy.fft.fftfreq``).

    Args:
      n: number of samples, at least 1.
      d: spacing of the samples, a number or an array of shape ().
      dtype: dtype of the result; by default float32 (float64 in x64 mode).
      device: device or sharding on which the array is placed.

    Returns:
      A vector of length `n`: 0, the positive and then the negative frequencies, in cycles per unit of `d`.

    Raises:
      ArgumentError: `n` or `d` is a list or tuple.

    >>> jnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    _check_numbers("fftfreq", n, d)
    out_dtype = dtypes.float_dtype(dtype, "fftfreq")
    inexact = dtypes.to_inexact(out_dtype)
    # 0 … (n - 1) // 2, then the negative frequencies
    indices = (arange(n, dtype=dtypes.real_part(inexact), device=device) + n // 2) % n - n // 2
    return (indices.astype(inexact) / asarray(d * n, inexact)).astype(out_dtype)


@docs_from(fftfreq)
def rfftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Device | Sharding | None = None
) -> Array:
    """The frequencies of the entries of an `rfft` of length `n` over samples with spacing `d` (as
    ``numpy.fft.rfftfreq``).

    Returns:
      A vector of length ``n // 2 + 1``: the frequencies from 0, in cycles per unit of `d`.

    >>> jnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    _check_numbers("rfftfreq", n, d)
    out_dtype = dtypes.float_dtype(dtype, "rfftfreq")
    return arange(n // 2 + 1, dtype=out_dtype, device=device) / asarray(d * n, out_dtype)


def _shifted(function: str, x: Any, axes: Any, sign: int) -> Any:
    x = check_one(function, x)
    shape = type_of(x).shape
    # An axis that occurs twice is shifted twice, as in NumPy.
    numbers = range(len(shape)) if axes is None else several(axes)
    chosen = [canonical_axis(i, len(shape), function) for i in numbers]
    return roll(x, [sign * (shape[i] // 2) for i in chosen], chosen)


def fftshift(x: ArrayLike, axes: int | Ints | None = None) -> Array:
    """`x` shifted so that frequency 0 is in the middle of the axes (as ``numpy.fft.fftshift``).

    Args:
      x: array of any shape.
      axes: axis or axes to shift; None shifts all axes.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      AxisError: an axis is out of bounds for `x`.
      ShapeError: an axis occurs twice.

    >>> jnp.fft.fftshift(jnp.array([0, 1, 2, -2, -1]))
    Array([-2, -1,  0,  1,  2], dtype=int32)
    """
    return _shifted("fftshift", x, axes, 1)


@docs_from(fftshift)
def ifftshift(x: ArrayLike, axes: int | Ints | None = None) -> Array:
    """The inverse of `fftshift` (as ``numpy.fft.ifftshift``).

    >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1, 2]))
    Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    return _shifted("ifftshift", x, axes, -1)


publish(__name__)
