"""Log-mel features of sound, as Whisper takes them. `phlox_models.whisper.log_mel` is the public name."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox.errors import ShapeError


def log_mel(
    waveforms: Any,
    num_mels: int = 80,
    *,
    sampling_rate: int = 16000,
    seconds: float | None = 30.0,
    window: int = 400,
    hop: int = 160,
) -> Any:
    """Log-mel features of waveforms, as Whisper takes them.

    Powers of the frequencies of each frame are summed in bands of the mel scale (Slaney's). Their decimal logarithms
    are cut off at 8 below the largest of the waveform, and mapped to about [-1, 1]. It is a function of arrays, for
    `jit`, `grad` and `vmap`.

    Args:
      waveforms: floats (..., samples), in [-1, 1].
      num_mels: the number of bands: 80, or 128 for Whisper large v3.
      sampling_rate: the number of samples in a second; Whisper's is 16000.
      seconds: the length to which waveforms are cut or padded with zeros; None leaves them as they are.
      window: the number of samples of a frame.
      hop: the number of samples from one frame to the next.

    Returns:
      Floats (..., frames, num_mels); 3000 frames for 30 seconds.

    Raises:
      ShapeError: a waveform is shorter than half of a frame.

    >>> log_mel(phlox.numpy.zeros((2, 16000))).shape
    (2, 3000, 80)
    """
    x = jnp.asarray(waveforms, jnp.promote_types(jnp.result_type(waveforms), jnp.float32))
    if seconds is not None:
        count = round(seconds * sampling_rate)
        x = x[..., :count]
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, count - x.shape[-1])])
    if x.ndim == 0 or x.shape[-1] <= window // 2:
        raise ShapeError(
            f"log_mel: a waveform needs more than {window // 2} samples, got {phlox.typeof(x).short}",
            instead="waveforms of the shape (..., samples), or seconds=30",
            shapes=[x.shape],
        )
    padded = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(window // 2, window // 2)], mode="reflect")
    frames = x.shape[-1] // hop
    indices = hop * np.arange(frames)[:, None] + np.arange(window)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    spectrum = jnp.fft.rfft(padded[..., indices] * jnp.asarray(hann, x.dtype))
    power = jnp.square(spectrum.real) + jnp.square(spectrum.imag)
    mels = power @ jnp.asarray(mel_filters(num_mels, window, sampling_rate), x.dtype)
    logs = jnp.log10(jnp.maximum(mels, 1e-10))
    return (jnp.maximum(logs, logs.max(axis=(-2, -1), keepdims=True) - 8) + 4) / 4


@functools.cache
def mel_filters(num_mels: int, window: int, sampling_rate: int) -> np.ndarray[Any, Any]:
    """The weights (frequencies, num_mels) of the frequencies of a frame in the bands, which are triangles of area 1.

    Slaney's mel scale is linear below 1000 Hz, with 15 mels, and logarithmic above, with 27 mels for a factor of 6.4.
    """
    top = sampling_rate / 2
    mel = 15 + 27 * np.log(top / 1000) / np.log(6.4) if top >= 1000 else 15 * top / 1000
    mels = np.linspace(0, mel, num_mels + 2)
    edges = np.where(mels < 15, mels * 1000 / 15, 1000 * np.exp((mels - 15) * np.log(6.4) / 27))
    frequencies = np.linspace(0, top, window // 2 + 1)[:, None]
    rising = (frequencies - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - frequencies) / (edges[2:] - edges[1:-1])
    weights: np.ndarray[Any, Any] = np.maximum(0, np.minimum(rising, falling)) * 2 / (edges[2:] - edges[:-2])
    return weights


def check_log_mel(layer: nn.Layer, features: Any, frames: int, num_mels: int) -> None:
    """Raises `ShapeError` unless the features have the shape (n, frames, num_mels)."""
    shape = jnp.shape(features)
    if shape[-2:] != (frames, num_mels):
        raise ShapeError(
            f"Whisper takes log-mel features (n, {frames}, {num_mels}), got {shape}",
            instead="phlox_models.whisper.log_mel(waveforms), or transposed features of Hugging Face",
            shapes=[shape],
            layer=layer.path,
        )
