"""Convolutions and correlations of arrays of any rank: directly, or as products of spectra."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from ... import lax, numpy as jnp
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import OptionError, ShapeError, UnsupportedError
from ..._base.strictness import lenient
from ..._ir import dtypes
from ..._ir.bounds import bounds
from ..._operands.checks import canonical_axes, check, check_one, type_of
from ..._operands.promotion import promote_inexact
from ..._ops.linalg.dot import PrecisionLike
from ...typing import Array, ArrayLike

Ints = tuple[int, ...]


def _checked(function: str, in1: Any, in2: Any, mode: str) -> Any:
    """The operands, promoted, for one of the three modes."""
    if mode not in ("full", "same", "valid"):
        raise OptionError(f"{function}: mode={mode!r}", instead="'full', 'same' or 'valid'")
    in1, in2 = check(function, in1, in2)
    shapes = [type_of(x).shape for x in (in1, in2)]
    if len(shapes[0]) != len(shapes[1]):
        raise ShapeError(
            f"{function}: the operands differ in rank: {type_of(in1).short} and {type_of(in2).short}", shapes=shapes
        )
    if not all(map(math.prod, shapes)):
        raise ShapeError(f"{function}: an operand has no elements: {type_of(in1).short} and {type_of(in2).short}")
    return promote_inexact(in1, in2)


def _result_ranges(function: str, mode: str, shape1: Ints, shape2: Ints, axes: Sequence[int]) -> list[tuple[int, int]]:
    """The first entry of the full result to return, and how many, along each axis."""
    pairs = [(shape1[axis], shape2[axis]) for axis in axes]
    if mode == "full":
        return [(0, n + m - 1) for n, m in pairs]
    if mode == "same":
        return [((m - 1) // 2, n) for n, m in pairs]
    if not (all(n >= m for n, m in pairs) or all(n <= m for n, m in pairs)):
        raise ShapeError(
            f"{function}: with mode='valid' one operand must be at least as long as the other along each axis",
            shapes=[shape1, shape2],
        )
    return [(min(n, m) - 1, abs(n - m) + 1) for n, m in pairs]


@functools.partial(jit, inline=True, static_argnames=("ranges", "precision"))
def _direct(in1: Any, in2: Any, ranges: Any, precision: Any) -> Any:
    """The entries of the convolution in `ranges`, by one with one feature; the smaller operand is the kernel."""
    # Convolution is commutative, and the kernel should be the smaller operand: padding and time grow with it.
    if type_of(in1).size < type_of(in2).size:
        in1, in2 = in2, in1
    # A padding of m - 1 at both ends gives the full result. A part of it needs less, and negative widths cut the
    # operand.
    padding = [
        (m - 1 - start, start + count - n)
        for (start, count), n, m in zip(ranges, type_of(in1).shape, type_of(in2).shape, strict=True)
    ]
    # The convolution of XLA is a correlation.
    kernel = jnp.flip(in2)[None, None]
    strides = (1,) * len(padding)
    return lax.conv_general_dilated(in1[None, None], kernel, strides, padding, precision=precision)[0, 0]


def _fast(n: Any) -> int:
    """The least length of at least `n` without prime factors above 5, for which Fourier transforms are fastest.

    That of the largest value if `n` is symbolic: a transform of a longer array has the same result.
    """
    largest = bounds(n)[1]
    n = int(n if largest == math.inf else largest)
    best = 1 << (n - 1).bit_length()
    power5 = 1
    while power5 < best:
        power3 = power5
        while power3 < best:
            best = min(best, power3 << max(-(-n // power3) - 1, 0).bit_length())
            power3 *= 3
        power5 *= 5
    return best


@functools.partial(jit, inline=True, static_argnames=("ranges", "axes"))
def _by_spectra(in1: Any, in2: Any, ranges: Any, axes: Any) -> Any:
    dtype = type_of(in1).dtype
    full = [type_of(in1).shape[axis] + type_of(in2).shape[axis] - 1 for axis in axes]
    # With one element along each axis the product is exact, and a transform would round it.
    if all(1 in (type_of(in1).shape[axis], type_of(in2).shape[axis]) for axis in axes):
        out = in1 * in2
    elif dtypes.kind(dtype) == "c":
        lengths = [_fast(n) for n in full]
        spectrum = jnp.fft.fftn(in1, lengths, axes) * jnp.fft.fftn(in2, lengths, axes)
        out = jnp.fft.ifftn(spectrum, lengths, axes)
    else:
        wide = dtypes.real_part(dtypes.to_complex(dtype))
        lengths = [_fast(n) for n in full]
        in1, in2 = in1.astype(wide), in2.astype(wide)
        spectrum = jnp.fft.rfftn(in1, lengths, axes) * jnp.fft.rfftn(in2, lengths, axes)
        out = jnp.fft.irfftn(spectrum, lengths, axes).astype(dtype)
    for axis, (start, count) in zip(axes, ranges, strict=True):
        out = lax.slice_in_dim(out, start, start + count, axis=axis)
    return out


def _convolved(function: str, in1: Any, in2: Any, mode: str, precision: Any) -> Any:
    in1, in2 = _checked(function, in1, in2, mode)
    shapes = type_of(in1).shape, type_of(in2).shape
    ranges = _result_ranges(function, mode, *shapes, range(len(shapes[0])))
    return _direct(in1, in2, ranges=tuple(ranges), precision=precision)


@lenient
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Sequence[int] | None = None) -> Array:
    """The convolution of two arrays by Fourier transforms (as ``scipy.signal.fftconvolve``).

    The faster way for large arrays. Its errors are relative to the largest entry of the result.

    Args:
      in1, in2: arrays of the same rank, promoted to one dtype; integers are converted to floats.
      mode: entries to return: 'full' returns all, 'same' the middle ones, as many as `in1` has, 'valid' those where one
        operand overlaps the other completely.
      axes: axes to convolve over, all by default; along the others the arrays have the same lengths.

    Returns:
      An array of the promoted dtype.

    Raises:
      OptionError: `mode` is not one of the listed names.
      ShapeError: the arrays differ in rank, or along the other axes, have no elements, or do not fit 'valid'.

    >>> fftconvolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 0.0, 3.0])).round()
    Array([1., 2., 3., 6.], dtype=float32)
    """
    in1, in2 = _checked("fftconvolve", in1, in2, mode)
    shape1, shape2 = type_of(in1).shape, type_of(in2).shape
    axes = tuple(sorted(set(canonical_axes(None if axes is None else axes, len(shape1), "fftconvolve"))))
    if any(n != m for i, (n, m) in enumerate(zip(shape1, shape2, strict=True)) if i not in axes):
        raise ShapeError(
            f"fftconvolve: lengths of {type_of(in1).short} and {type_of(in2).short} differ along others than {axes}",
            shapes=[shape1, shape2],
        )
    return _by_spectra(in1, in2, ranges=tuple(_result_ranges("fftconvolve", mode, shape1, shape2, axes)), axes=axes)


@lenient
@docs_from(fftconvolve)
def convolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: PrecisionLike = None
) -> Array:
    """The convolution of two arrays (as ``scipy.signal.convolve``).

    Entry k is the sum of ``in1[i] * in2[k - i]`` over i, where i and k are positions along all axes.

    Args:
      method: 'direct', or 'fft' for `fftconvolve`; 'auto' means 'direct'.
      precision: as for `phlox.lax.conv_general_dilated`.

    Raises:
      OptionError: `mode` or `method` is not one of the listed names.
      ShapeError: the arrays differ in rank, have no elements, or do not fit 'valid'.

    >>> convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 0.0, 3.0]))
    Array([1., 2., 3., 6.], dtype=float32)
    """
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    if method not in ("auto", "direct"):
        raise OptionError(f"convolve: method={method!r}", instead="'auto', 'direct' or 'fft'")
    return _convolved("convolve", in1, in2, mode, precision)


@lenient
@docs_from(convolve)
def correlate(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: PrecisionLike = None
) -> Array:
    """The cross-correlation of two arrays (as ``scipy.signal.correlate``): the convolution with the reversed conjugate.

    >>> correlate(jnp.array([1.0, 2.0, 4.0]), jnp.array([1.0, 10.0]), mode="valid")
    Array([21., 42.], dtype=float32)
    """
    return convolve(in1, jnp.flip(jnp.conj(check_one("correlate", in2))), mode, method, precision)


def _check_boundary(function: str, boundary: str, fillvalue: float, *operands: Any) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise UnsupportedError(
            f"{function}: boundary={boundary!r}, fillvalue={fillvalue!r}", instead="phlox.numpy.pad, and mode='valid'"
        )
    if bad := [type_of(x).short for x in check(function, *operands) if type_of(x).ndim != 2]:
        raise ShapeError(f"{function}: takes matrices, got {bad[0]}")


@lenient
@docs_from(convolve)
def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: PrecisionLike = None,
) -> Array:
    """The convolution of two matrices (as ``scipy.signal.convolve2d``), such as an image and a filter.

    Args:
      in1, in2: matrices, promoted to one dtype; integers are converted to floats.
      boundary: 'fill': outside of the matrices there are zeros.
      fillvalue: 0.

    Returns:
      A matrix of the promoted dtype.

    Raises:
      UnsupportedError: another `boundary` or `fillvalue`.
      OptionError: `mode` is not one of the listed names.
      ShapeError: an argument is not a matrix, has no elements, or does not fit 'valid'.

    >>> convolve2d(jnp.ones((2, 2)), jnp.ones((2, 2)))
    Array([[1., 2., 1.],
           [2., 4., 2.],
           [1., 2., 1.]], dtype=float32)
    """
    _check_boundary("convolve2d", boundary, fillvalue, in1, in2)
    return _convolved("convolve2d", in1, in2, mode, precision)


@lenient
@docs_from(convolve2d)
def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: PrecisionLike = None,
) -> Array:
    """The cross-correlation of two matrices (as ``scipy.signal.correlate2d``).

    As in SciPy, the middle of mode 'same' is the later one if there are two, and with mode 'valid' the larger matrix is
    the first operand: if that is `in2`, the result is turned and conjugate.

    >>> correlate2d(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[1.0, 10.0]]), mode="valid")
    Array([[21.],
           [43.]], dtype=float32)
    """
    _check_boundary("correlate2d", boundary, fillvalue, in1, in2)
    in1, in2 = _checked("correlate2d", in1, in2, mode)
    shape1, shape2 = type_of(in1).shape, type_of(in2).shape
    ranges = _result_ranges("correlate2d", mode, shape1, shape2, (0, 1))
    # The reversed kernel has its middle one element further if its length is even.
    if mode == "same":
        ranges = [(m // 2, n) for n, m in zip(shape1, shape2, strict=True)]
    out = _direct(in1, jnp.flip(jnp.conj(in2)), ranges=tuple(ranges), precision=precision)
    # SciPy exchanges the operands here, and so conjugates the other one.
    swapped = mode == "valid" and shape1 != shape2 and all(n <= m for n, m in zip(shape1, shape2, strict=True))
    return jnp.conj(out) if swapped else out
