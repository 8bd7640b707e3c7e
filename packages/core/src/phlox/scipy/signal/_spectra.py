"""Spectra of segments of signals: `stft`, and their means over the segments: `csd` and `welch`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import OptionError, ShapeError
from ..._base.source import warn
from ..._base.strictness import lenient, users
from ..._ir import dtypes
from ..._operands.checks import canonical_axis, check, integer, type_of
from ..._operands.promotion import common_shape, promote_inexact, to_dtype
from ...typing import Array, ArrayLike
from ._trends import detrend as without_trend
from ._windows import overlap, segment_positions, windowed

#: how `jnp.pad` continues a signal
_BOUNDARIES: dict[str | None, dict[str, Any] | None] = {
    "zeros": {"mode": "constant"},
    "even": {"mode": "reflect"},
    "odd": {"mode": "reflect", "reflect_type": "odd"},
    "constant": {"mode": "edge"},
    None: None,
}


def _pad_last(x: Any, before: int, after: int, **how: Any) -> Any:
    return jnp.pad(x, [(0, 0)] * (type_of(x).ndim - 1) + [(before, after)], **how)


def _extended(x: Any, count: int, boundary: str | None) -> Any:
    how = _BOUNDARIES[boundary]
    if how is None or not count:
        return x
    if boundary == "odd" and count > type_of(x).shape[-1] - 1:
        raise OptionError(
            f"boundary='odd' continues a signal of {type_of(x).shape[-1]} points by {count}", instead="'zeros'"
        )
    return _pad_last(x, count, count, **how)


def _to_length(x: Any, length: int) -> Any:
    missing = length - type_of(x).shape[-1]
    return _pad_last(x, 0, missing) if missing else x


@functools.partial(
    jit,
    inline=True,
    static_argnames=("nperseg", "noverlap", "nfft", "detrend", "onesided", "boundary", "padded", "axis"),
)
def _transformed(
    x: Any,
    win: Any,
    nperseg: int,
    noverlap: int,
    nfft: int,
    detrend: Any,
    onesided: bool,
    boundary: Any,
    padded: bool,
    axis: int,
) -> Any:
    """The transforms of all segments, [..., segments, frequencies], of a signal along the last axis."""
    step = nperseg - noverlap
    x = _extended(x, nperseg // 2, boundary)
    if padded:
        length = type_of(x).shape[-1]
        # Zeros complete the last segment.
        x = _pad_last(x, 0, -(length - nperseg) % step)
    count = (type_of(x).shape[-1] - nperseg) // step + 1
    parts = x[..., segment_positions(count, nperseg, step)]
    if callable(detrend):
        # The function finds the segments along the axis of the signal, as it would in an array of one segment more.
        last = axis == type_of(parts).ndim - 2
        parts = detrend(parts) if last else jnp.moveaxis(detrend(jnp.moveaxis(parts, -1, axis)), axis, -1)
    elif detrend:
        parts = without_trend(parts, type=detrend)
    parts = win * parts
    return jnp.fft.rfft(parts, nfft) if onesided else jnp.fft.fft(parts, nfft)


def _checked_signals(function: str, x: Any, y: Any, axis: int) -> tuple[list[Any], int]:
    signals = promote_inexact(*check(function, *([x] if y is None else [x, y])))
    ranks = [type_of(signal).ndim for signal in signals]
    axis = canonical_axis(axis, ranks[0], function)
    if len(set(ranks)) > 1:
        raise ShapeError(f"{function}: signals of ranks {ranks[0]} and {ranks[1]}")
    common_shape(function, [(*s[:axis], 1, *s[axis + 1 :]) for s in (type_of(signal).shape for signal in signals)])
    # Transforms are of at least 32 bits.
    wide = dtypes.to_complex(type_of(signals[0]).dtype)
    dtype = wide if dtypes.kind(type_of(signals[0]).dtype) == "c" else dtypes.real_part(wide)
    return [to_dtype(jnp.asarray(signal), dtype) for signal in signals], axis


def _spectra(
    function: str, x: Any, y: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any, detrend: Any,
    onesided: bool, scaling: str, axis: int, boundary: str | None = None, padded: bool = False,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """(frequencies, times, spectra), with the frequencies along `axis` and the times along the last axis.

    The spectra are densities or powers of each segment, or for `stft` its transform.
    """
    if boundary not in _BOUNDARIES:
        raise OptionError(f"{function}: boundary={boundary!r}", instead=", ".join(map(repr, _BOUNDARIES)))
    signals, axis = _checked_signals(function, x, y, axis)
    dtype = type_of(signals[0]).dtype
    wide, real = dtypes.to_complex(dtype), dtypes.real_part(dtype)
    lengths = [type_of(signal).shape[axis] for signal in signals]
    win, nperseg = windowed(function, window, nperseg, lengths[0], dtype)
    nfft = nperseg if nfft is None else integer(function, "nfft", nfft)
    if not all(type_of(signal).size for signal in signals):
        shape = list(np.broadcast_shapes(*[tuple(np.delete(type_of(s).shape, axis)) for s in signals]))
        shape.insert(axis, min(lengths))
        return jnp.zeros(shape, real), jnp.zeros(shape, real), jnp.zeros(shape, wide)
    if nfft < nperseg:
        raise OptionError(f"{function}: nfft={nfft}", instead=f"at least nperseg={nperseg}")
    noverlap = overlap(function, noverlap, nperseg)
    if not (callable(detrend) or not detrend or detrend in ("constant", "linear")):
        raise OptionError(f"{function}: detrend={detrend!r}", instead="False, 'constant', 'linear' or a function")
    if scaling not in ("density", "spectrum"):
        raise OptionError(f"{function}: scaling={scaling!r}", instead="'density' or 'spectrum'")
    if onesided and dtypes.kind(dtype) == "c":
        warn("Input data is complex, switching to return_onesided=False", UserWarning)
        onesided = False

    options = {
        "nperseg": nperseg, "noverlap": noverlap, "nfft": nfft, "onesided": onesided, "boundary": boundary,
        "detrend": users(detrend) if callable(detrend) else detrend, "padded": padded, "axis": axis,
    }  # fmt: skip
    # The shorter of two signals is continued by zeros, as in SciPy.
    signals = [_to_length(jnp.moveaxis(signal, axis, -1), max(lengths)) for signal in signals]
    out = _transformed(signals[0], win, **options)
    power = jnp.sum(win) ** 2 if scaling == "spectrum" else fs * jnp.sum(win * win)
    if function == "stft":
        out = out / jnp.sqrt(power)
    else:
        out = jnp.conj(out) * (out if y is None else _transformed(signals[1], win, **options)) / power
        if onesided:  # the half that is left out has the same power; it has no zero frequency, and no highest one
            out = out.at[..., 1 : None if nfft % 2 else -1].multiply(2)
    frequencies = (jnp.fft.rfftfreq if onesided else jnp.fft.fftfreq)(nfft, 1 / fs, dtype=real)
    step, count = nperseg - noverlap, type_of(out).shape[-2]
    # A time is that of the middle of a segment; the extension has moved the first one to the start of the signal.
    middle = 0 if boundary is not None else nperseg / 2
    times = (jnp.arange(count, dtype=real) * step + middle) / fs
    return frequencies, to_dtype(times, real), jnp.moveaxis(to_dtype(out, wide), -1, axis)


@lenient
def stft(
    x: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: bool = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform: the spectra of overlapping segments (as ``scipy.signal.stft``).

    Args:
      x: real or complex signal; integers are converted to floats, and 16 bits to 32.
      fs: sampling frequency.
      window: name of a window, or a tuple of a name and parameters (those other than 'hann' need SciPy), or a vector of
        the length of the segments.
      nperseg: length of the segments.
      noverlap: how many points neighbouring segments share, half a segment by default.
      nfft: length of the transforms, at least `nperseg`, to which segments are padded with zeros.
      detrend: False, or 'constant' or 'linear' as for `detrend`, or a function of the segments.
      return_onesided: whether to leave out the negative frequencies, for real signals.
      boundary: how the signal is continued by half a segment at both ends: 'zeros', 'even', 'odd', 'constant', or None.
      padded: whether to append zeros so that segments cover the whole signal.
      axis: axis of the time.

    Returns:
      (frequencies, times, spectra). The spectra have the frequencies along `axis`, and the times along a new last axis.

    Raises:
      OptionError: an option has none of the listed values, or segments do not fit the other lengths.
      ShapeError: the window is longer than the signal, or not a vector.

    >>> frequencies, times, spectra = stft(jnp.ones(8), nperseg=4)
    >>> spectra.shape, frequencies
    ((3, 5), Array([0.  , 0.25, 0.5 ], dtype=float32))
    """
    return _spectra(
        "stft",
        x,
        None,
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        "spectrum",
        axis,
        boundary,
        padded,
    )


def _median_bias(count: int) -> float:
    """The median of `count` independent exponential numbers of mean 1 (B. Allen et al., Phys. Rev. D 85, 2012, B)."""
    pairs = np.arange(2, count, 2)
    return float(1 + np.sum(1 / (pairs + 1) - 1 / pairs))


def _averaged(function: str, spectra: Any, average: str) -> Any:
    if average not in ("mean", "median"):
        raise OptionError(f"{function}: average={average!r}", instead="'mean' or 'median'")
    count = type_of(spectra).shape[-1]
    if average == "mean" or count == 1:
        return jnp.mean(spectra, -1)
    bias = np.asarray(_median_bias(count), dtypes.real_part(type_of(spectra).dtype))
    # The median of complex numbers is that of real and imaginary parts, as in SciPy.
    middle = jnp.median(jnp.real(spectra), -1) + 1j * jnp.median(jnp.imag(spectra), -1)
    return middle / bias


def _mean_spectrum(function: str, x: Any, y: Any, average: str, *options: Any) -> tuple[Any, Any]:
    frequencies, _, spectra = _spectra(function, x, y, *options)
    if type_of(spectra).ndim >= 2 and type_of(spectra).size:
        spectra = _averaged(function, spectra, average)
    return frequencies, jnp.real(spectra) if y is None else spectra


@lenient
def csd(
    x: Array,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross spectral density of two signals by Welch's method (as ``scipy.signal.csd``).

    Args:
      x, y: signals, the shorter of which is padded with zeros; None for `y` means `x`, with a real result.
      fs, window, noverlap, nfft, return_onesided, axis: as for `stft`.
      nperseg: length of the segments; by default that of the window, or of the signal.
      detrend: 'constant', 'linear', False, or a function of the segments.
      scaling: 'density' for a density over the frequencies, 'spectrum' for the power.
      average: 'mean' over the segments, or 'median'.

    Returns:
      (frequencies, density): the density has the frequencies along `axis`.

    Raises:
      OptionError: an option has none of the listed values, or segments do not fit the other lengths.
      ShapeError: the signals do not fit each other or the window.

    >>> frequencies, density = csd(jnp.arange(8.0), jnp.ones(8), nperseg=4)
    >>> density.shape, density.dtype
    ((3,), dtype('complex64'))
    """
    options = fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis
    return _mean_spectrum("csd", x, y, average, *options)


@lenient
@docs_from(stft)
def welch(
    x: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density of a signal: the mean of the spectra of its segments (as ``scipy.signal.welch``).

    Args:
      x: real or complex signal; integers are converted to floats.
      fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average: as for `csd`.

    Returns:
      (frequencies, density): the density is real, with the frequencies along `axis`.

    >>> frequencies, density = welch(jnp.sin(jnp.arange(64) * np.pi / 4), nperseg=16)
    >>> frequencies[density.argmax()]
    Array(0.125, dtype=float32)
    """
    options = fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis
    return _mean_spectrum("welch", x, None, average, *options)
