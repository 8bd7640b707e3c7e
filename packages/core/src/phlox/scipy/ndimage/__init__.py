"""``phlox.scipy.ndimage``: arrays between their elements, and filters.

jax has `map_coordinates` alone; its users asked for the filters in jax-ml/jax 7284, 15359, 26011 and 32225.
"""

from ..._base.public_names import publish as _publish
from ._coordinates import map_coordinates as map_coordinates
from ._filters import (
    convolve as convolve,
    convolve1d as convolve1d,
    correlate as correlate,
    correlate1d as correlate1d,
    gaussian_filter as gaussian_filter,
    gaussian_filter1d as gaussian_filter1d,
    uniform_filter as uniform_filter,
    uniform_filter1d as uniform_filter1d,
)

_publish(__name__)
