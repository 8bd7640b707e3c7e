"""Fourier transforms of ``phlox.lax``; `phlox.numpy.fft` is easier to use."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from .._api.jit.jit import jit
from .._base.errors import DtypeError
from .._ir import dtypes
from .._operands.checks import check_one, integers, type_of
from .._ops.linalg import fft as _fft
from .._ops.linalg.fft import FftType as FftType
from .._ops.structure import shape as _shape
from ..typing import Array, ArrayLike


@functools.partial(jit, static_argnums=(1, 2))
def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform over the last axes (StableHLO's ``fft``).

    Args:
      x: array of numbers; FFT, IFFT and IRFFT convert it to complex numbers, RFFT to floats.
      fft_type: an `FftType`, or its name: "fft", "ifft", "rfft" or "irfft".
      fft_lengths: lengths of the transformed axes, a tuple of up to three integers; for RFFT and IRFFT, the lengths of
        the real array.

    Returns:
      A complex array; for IRFFT an array of floats. The complex array of RFFT and IRFFT has a last axis of length
      ``fft_lengths[-1] // 2 + 1``.

    Raises:
      DtypeError: `x` is complex for RFFT.
      OptionError: `fft_type` is unknown.
      ShapeError: the axes of `x` do not have these lengths, or there are more than three of them.

    >>> from phlox import lax
    >>> lax.fft(jnp.array([1.0, 0.0]), "fft", (2,))
    Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    kind = FftType.from_any(fft_type)
    x, lengths = check_one("fft", x), integers("fft", "fft_lengths", fft_lengths)
    dtype = type_of(x).dtype
    if kind is FftType.RFFT:
        if dtypes.kind(dtype) == "c":
            raise DtypeError(f"RFFT takes real numbers, got {type_of(x).short}", instead="FFT")
        result_dtype = dtypes.to_inexact(dtype)
    else:
        result_dtype = dtypes.to_complex(dtype)
    array = _shape.as_array_or_tracer(_shape.convert(x, result_dtype))
    return _fft.fft(array, fft_type=kind, fft_lengths=lengths) if lengths else array
