"""``phlox.scipy.interpolate``: functions that are known at some points.

jax has `RegularGridInterpolator` alone; its users asked for splines in jax-ml/jax 14218, 17884 and 33590. Linear
interpolation in one dimension is `phlox.numpy.interp`.
"""

from ..._base.public_names import publish
from ._grid import RegularGridInterpolator
from ._splines import CubicSpline

__all__ = ["CubicSpline", "RegularGridInterpolator"]


publish(__name__)
