"""``phlox.scipy.signal``: convolutions, trends and spectra."""

from ..._base.public_names import publish
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


publish(__name__)
