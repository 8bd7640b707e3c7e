"""The primitive `fft`: discrete Fourier transforms over the last axes, complex and real, forward and inverse."""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np

from ..._base.errors import DtypeError, OptionError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.dimensions import is_symbolic
from ..._ir.jaxpr import JaxprEqn
from ..._ir.sharding_types import resized
from ..._trace.trace import typeof
from ..._transform.array_operations import move_axis
from ..._transform.padding import Padding, pad_elementwise, refuse
from ..._xla.module_text import spec_text
from ..._xla.partition_spec import UNCONSTRAINED, PartitionSpec
from ..._xla.text import Function, Value, i64_array
from ..elementwise.arithmetic import conj, mul
from ..structure.shape import broadcast_in_dim, structural

Ints = tuple[int, ...]


class FftType(enum.IntEnum):
    """Kinds of transforms: FFT and its inverse; RFFT of real numbers and its inverse, which use half of the spectrum.

    >>> phlox.lax.fft(jnp.ones(4), FftType.RFFT, (4,)).shape
    (3,)
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3

    @staticmethod
    def from_any(kind: Any) -> FftType:
        """The type with this name, in upper or lower case."""
        if isinstance(kind, FftType):
            return kind
        for member in FftType:
            if kind in (member.name, member.name.lower()):
                return member
        if not isinstance(kind, str):
            raise DtypeError(f"unknown kind of Fourier transform: {kind!r}", instead="a word, or a lax.FftType")
        raise OptionError(f"unknown kind of Fourier transform: {kind!r}", instead="'fft', 'ifft', 'rfft' or 'irfft'")


_COMPLEX = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}


def _types(x: ShapedArray, fft_type: FftType, fft_lengths: Ints) -> ShapedArray:
    name = FftType(fft_type).name
    count = len(fft_lengths)
    if count > x.ndim:
        raise ShapeError(f"{name} of {x.short} over {count} axes", shapes=[x.shape])
    # IRFFT may have a fourth axis, as `_lower` takes the last one apart.
    if count - (fft_type is FftType.IRFFT) > 3:
        raise ShapeError(
            f"{name} over {count} axes of {x.short}; the compiler takes three at most",
            instead="one transform over three of them, and another one over the rest",
            shapes=[x.shape],
        )
    real = fft_type is FftType.RFFT
    if x.dtype not in ((dtypes.float32, dtypes.float64) if real else (dtypes.complex64, dtypes.complex128)):
        raise DtypeError(f"{name} takes {'float32 or float64' if real else 'complex numbers'}, got {x.short}")
    half = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
    front, last = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    back = fft_type is FftType.IRFFT
    fits = last[:-1] == fft_lengths[:-1] if back else last == fft_lengths
    if not fits:
        raise ShapeError(f"{name}: the last axes of {x.short} do not have the lengths {fft_lengths}", shapes=[x.shape])
    empty = back and count and fft_lengths[-1] == 0 and last[-1] <= 1  # the default length of irfft for one element
    if back and count and not empty and (fft_lengths[-1] < 1 or last[-1] != half[-1]):
        raise ShapeError(
            f"{name}: the last axis of {x.short} must have length {half[-1]} for a result of length {fft_lengths[-1]}",
            shapes=[x.shape],
        )
    if real and fft_lengths and not fft_lengths[-1]:
        raise ShapeError(f"{name} of {x.short}, whose last axis has no elements", shapes=[x.shape])
    dtype = _COMPLEX[x.dtype] if real else dtypes.real_part(x.dtype) if back else x.dtype
    return shaped((*front, *(half if real else fft_lengths)), dtype, x.weak_type)


def _lower(f: Function, x: Value, fft_type: FftType, fft_lengths: Ints) -> Value:
    if fft_type is not FftType.IRFFT or len(fft_lengths) == 1:
        return _plain(f, x, fft_type, fft_lengths, f.out)
    # XLA on GPUs does not have this transform: transform all axes but the last first, as complex ones.
    rank, first = x.aval.ndim, x.aval.ndim - len(fft_lengths)
    order = [*range(first), rank - 1, *range(first, rank - 1)]
    transposed = shaped(tuple(x.aval.shape[i] for i in order), x.aval.dtype)
    moved = _plain(f, _turn(f, x, order, transposed), FftType.IFFT, fft_lengths[:-1], transposed)
    straight = _turn(f, moved, [order.index(i) for i in range(rank)], x.aval)
    return _plain(f, straight, fft_type, fft_lengths[-1:], f.out)


def _turn(f: Function, x: Value, order: list[int], out: ShapedArray) -> Value:
    return f.unlike("stablehlo.transpose", x, out, f", dims = {order}")


def _unsplit(f: Function, x: Value, length: int) -> Value:
    """`x` with its last axis whole on each device, where XLA's partitioner would end the process: it has a transform of
    parts that are split along this axis, which checks that the length divides by the square of their number."""
    module = f.module
    count = len(module.devices)
    free = module.shardy and module.mesh_of_arguments is not None and (not f.axes or f.auto)
    if count == 1 or not free or x.aval.ndim < 3 or length % count**2 == 0:
        return x
    mesh = module.mesh_of_arguments
    where = spec_text(module, mesh, PartitionSpec(*[UNCONSTRAINED] * (x.aval.ndim - 1)), x.aval.ndim)
    out = f.fresh()
    f.line(f"{out} = sdy.sharding_constraint {x} <{where}> : {x.aval.text}")
    return Value(out, x.aval)


def _plain(f: Function, x: Value, fft_type: FftType, lengths: Ints, out: ShapedArray) -> Value:
    if fft_type is FftType.FFT and len(lengths) == 1:
        x = _unsplit(f, x, lengths[0])
    kind = f"fft_type = #stablehlo<fft_type {fft_type.name}>"
    return f.op("stablehlo.fft", [x], out, f"{kind}, fft_length = {i64_array(lengths)}")


def _counts(aval: ShapedArray, length: int) -> np.ndarray:
    """How often each element of a half spectrum is in the full spectrum: twice, but the first and a middle one once."""
    counts = np.full(aval.shape[-1:], 2.0)
    counts[:1] = 1
    if length % 2 == 0:
        counts[length // 2 :] = 1
    return counts


def _weighted(x: Any, weights: np.ndarray) -> Any:
    """`x` times weights along its last axis."""
    aval = typeof(x)
    last = (aval.ndim - 1,)
    return mul(x, broadcast_in_dim(weights.astype(aval.dtype), shape=aval.shape, broadcast_dimensions=last))


def _transpose(ct: Any, aval: ShapedArray, fft_type: FftType, fft_lengths: Ints) -> Any:
    # The matrix of a complex transform is symmetric, so that the transform is its own transpose. Those of real numbers
    # use half of the spectrum, of which each element but the first and a middle one counts twice.
    size, last = math.prod(fft_lengths), fft_lengths[-1]
    if fft_type is FftType.RFFT:
        spectrum = _weighted(conj(ct), size / _counts(typeof(ct), last))
        return fft(spectrum, fft_type=FftType.IRFFT, fft_lengths=fft_lengths)
    if fft_type is FftType.IRFFT:
        spectrum = fft(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths)
        return conj(_weighted(spectrum, _counts(typeof(spectrum), last) / size))
    return fft(ct, fft_type=fft_type, fft_lengths=fft_lengths)


def _batch(x: Any, dim: int, **params: Any) -> tuple[Any, int]:
    return fft(move_axis(x, dim, 0), **params), 0


def _pad(padding: Padding, eqn: JaxprEqn, x: Any) -> Any:
    count = len(eqn.params["fft_lengths"])
    if any(map(is_symbolic, eqn.invars[0].aval.shape[-count:])):
        refuse(eqn, "the length of the transform varies")
    return pad_elementwise(padding, eqn, x)


fft = structural(
    "fft",
    types=_types,
    sharding=lambda out, x, **_: resized("fft", x, out),
    lower=_lower,
    transpose=_transpose,
    batch=_batch,
    pad=_pad,
    nan_checked=True,
)
