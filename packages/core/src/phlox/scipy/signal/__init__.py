"""``phlox.scipy.signal``: convolutions, trends and spectra."""

from ..._base.public_names import publish as _publish
from ._convolve import (
    convolve as convolve,
    convolve2d as convolve2d,
    correlate as correlate,
    correlate2d as correlate2d,
    fftconvolve as fftconvolve,
)
from ._inverse import istft as istft
from ._spectra import csd as csd, stft as stft, welch as welch
from ._trends import detrend as detrend

_publish(__name__)
