"""`istft`: the signal that has given short-time spectra."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.errors import OptionError, ShapeError
from ..._base.strictness import lenient
from ..._ir import dtypes
from ..._operands.checks import canonical_axis, check_one, integer, type_of
from ..._operands.promotion import to_dtype
from ...typing import Array, ArrayLike
from ._windows import named_window, overlap, segment_positions


def _summed(parts: Any, step: int) -> Any:
    """The signal that the segments [..., count, length] add up to, `step` points apart."""
    *batch, count, length = type_of(parts).shape
    signal = jnp.zeros((*batch, step * (count - 1) + length), type_of(parts).dtype)
    return signal.at[..., segment_positions(count, length, step)].add(parts)


@functools.partial(jit, inline=True, static_argnames=("nperseg", "noverlap", "nfft", "onesided", "boundary"))
def _signal(spectra: Any, win: Any, nperseg: int, noverlap: int, nfft: int, onesided: bool, boundary: bool) -> Any:
    """The signal of spectra [..., count, frequencies]: the sum of the segments, weighted by the window once more."""
    inverse = jnp.fft.irfft if onesided else jnp.fft.ifft
    # `stft` has divided by the sum of the window. The second window makes the sum a least-squares fit; the sum of the
    # squared windows is its divisor below.
    parts = inverse(spectra, nfft)[..., :nperseg] * (jnp.sum(win) * win)
    step, count = nperseg - noverlap, type_of(parts).shape[-2]
    signal = _summed(parts, step)
    weights = _summed(jnp.broadcast_to(win * win, (count, nperseg)), step)
    half = nperseg // 2
    # `stft` has extended the signal by half a segment at each end.
    if boundary and half:
        signal, weights = signal[..., half:-half], weights[..., half:-half]
    # SciPy does not divide where no window reaches.
    return signal / jnp.where(jnp.real(weights) > 1e-10, weights, 1)


@lenient
def istft(
    Zxx: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The inverse short-time Fourier transform (as ``scipy.signal.istft``).

    The signal is that whose spectra are nearest to the given ones, which need not belong to a signal.

    Args:
      Zxx: spectra, as `stft` returns them, with at least two axes.
      fs: sampling frequency.
      window: the window of `stft`: a name, a tuple of a name and parameters, or a vector.
      nperseg: length of the segments; by default that of the transforms.
      noverlap: how many points neighbouring segments share, half a segment by default.
      nfft: length of the transforms; by default it follows from the number of frequencies and `nperseg`.
      input_onesided: whether the negative frequencies are left out.
      boundary: whether `stft` has continued the signal at both ends; these parts are cut off.
      time_axis, freq_axis: axes of the segments and of the frequencies.

    Returns:
      (times, signal). The signal has the time along the axis that is left of the two.

    Raises:
      OptionError: segments do not fit the other lengths, or an unknown window.
      ShapeError: the spectra have one axis, or time and frequencies are the same axis.

    >>> x = jnp.array([1.0, 2.0, 3.0, 2.0, 1.0, 0.0, 1.0, 2.0])
    >>> from phlox.scipy.signal import stft
    >>> istft(stft(x, nperseg=4)[2], nperseg=4)[1].round()
    Array([1., 2., 3., 2., 1., 0., 1., 2.], dtype=float32)
    """
    spectra = check_one("istft", Zxx)
    rank = type_of(spectra).ndim
    if rank < 2:
        raise ShapeError(f"istft: the spectra must have at least two axes, got {type_of(spectra).short}")
    time, frequency = canonical_axis(time_axis, rank, "istft"), canonical_axis(freq_axis, rank, "istft")
    if time == frequency:
        raise ShapeError(f"istft: time_axis and freq_axis are both axis {time}")
    wide = dtypes.to_complex(type_of(spectra).dtype)
    dtype = dtypes.real_part(wide) if input_onesided else wide
    count = type_of(spectra).shape[frequency]
    default = 2 * (count - 1) if input_onesided else count
    nperseg = default if nperseg is None else integer("istft", "nperseg", nperseg)
    if nperseg < 1:
        raise OptionError(f"istft: nperseg={nperseg}", instead="at least 1")
    if nfft is None:
        # An odd number of points has as many frequencies as the even one below it.
        nfft = default + 1 if input_onesided and nperseg == default + 1 else default
    nfft = integer("istft", "nfft", nfft)
    if nfft < nperseg:
        raise OptionError(f"istft: nfft={nfft}", instead=f"at least nperseg={nperseg}")
    noverlap = overlap("istft", noverlap, nperseg)
    if isinstance(window, str | tuple):
        window = named_window("istft", window, nperseg)
    elif np.shape(window) != (nperseg,):
        raise ShapeError(f"istft: a window of shape {np.shape(window)} for segments of {nperseg} points")
    signal = _signal(
        jnp.moveaxis(to_dtype(spectra, wide), (time, frequency), (-2, -1)),
        jnp.asarray(window, dtype),
        nperseg=nperseg,
        noverlap=noverlap,
        nfft=nfft,
        onesided=bool(input_onesided),
        boundary=bool(boundary),
    )
    times = jnp.arange(type_of(signal).shape[-1], dtype=dtypes.real_part(wide)) / fs
    return to_dtype(times, dtypes.real_part(wide)), jnp.moveaxis(signal, -1, time - (frequency < time))
