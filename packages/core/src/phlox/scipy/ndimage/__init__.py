"""``phlox.scipy.ndimage``: arrays between their elements, and filters.

jax has `map_coordinates` alone; its users asked for the filters in jax-ml/jax 7284, 15359, 26011 and 32225.
"""

from ..._base.public_names import publish
from ._coordinates import map_coordinates
from ._filters import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    gaussian_filter,
    gaussian_filter1d,
    uniform_filter,
    uniform_filter1d,
)

__all__ = [
    "convolve",
    "convolve1d",
    "correlate",
    "correlate1d",
    "gaussian_filter",
    "gaussian_filter1d",
    "map_coordinates",
    "uniform_filter",
    "uniform_filter1d",
]


publish(__name__)
