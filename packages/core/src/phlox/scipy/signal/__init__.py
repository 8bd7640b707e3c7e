"""``phlox.scipy.signal``: convolutions, trends and spectra."""

from ._convolve import convolve, convolve2d, correlate, correlate2d, fftconvolve
from ._inverse import istft
from ._spectra import csd, stft, welch
from ._trends import detrend

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "detrend",
    "fftconvolve",
    "istft",
    "stft",
    "welch",
]


def __dir__() -> list[str]:
    return __all__
