"""``phlox.scipy``: functions of SciPy on arrays of devices."""

from typing import TYPE_CHECKING

from .._base.lazy_imports import on_demand

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

__getattr__, __dir__ = on_demand(
    __name__, "cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats"
)

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
