"""``phlox.scipy``: functions of SciPy on arrays of devices."""

from typing import TYPE_CHECKING

from .._base.public_names import publish

if TYPE_CHECKING:
    from . import (
        cluster,
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )

publish(__name__, "cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats")

__all__ = [
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]
