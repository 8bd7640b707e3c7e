"""Fourier transforms of ``phlox.lax``; `phlox.numpy.fft` is easier to use."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from .._api.jit.jit import jit
from .._base.errors import DtypeError
from .._ir import dtypes
from .._operands.checks import check_one, type_of
from .._ops.linalg import fft as _fft
from .._ops.linalg.fft import FftType as FftType
from .._ops.structure import shape as _shape


@functools.partial(jit, static_argnums=(1, 2))
def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Any:
    """The discrete Fourier transform over the last axes (StableHLO fft).

    Args:
      fft_type: an `FftType`, or its name.
      fft_lengths: lengths of the transformed axes (of the real side), as a tuple.

    Raises `DtypeError` for an RFFT of complex numbers, and `ShapeError` when lengths do not fit.

    >>> from phlox import lax
    >>> lax.fft(jnp.array([1.0, 0.0]), "fft", (2,))
    Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    kind = FftType.from_any(fft_type)
    x = check_one("fft", x)
    dtype = type_of(x).dtype
    if kind is FftType.RFFT:
        if dtypes.kind(dtype) == "c":
            raise DtypeError(f"RFFT takes real numbers, got {type_of(x).short}", instead="FFT")
        wanted = dtypes.to_inexact(dtype)
    else:
        wanted = dtypes.to_complex(dtype)
    x = _shape.own(_shape.convert(x, wanted))
    return _fft.fft(x, fft_type=kind, fft_lengths=tuple(fft_lengths)) if fft_lengths else x
