"""``phlox.scipy.integrate``: integrals of samples and of functions.

jax has `trapezoid` alone, that of ``phlox.numpy``; its users asked for the others in jax-ml/jax 9014, 22651 and 27493.
"""

from ..._base.public_names import publish
from ...numpy import trapezoid
from ._quadrature import cumulative_trapezoid, quad

__all__ = ["cumulative_trapezoid", "quad", "trapezoid"]


publish(__name__)
