"""``phlox.custom_derivatives``: functions with derivatives of their own, as in ``jax.custom_derivatives``."""

from ._api.closures import closure_convert, custom_gradient
from ._api.custom import custom_jvp, custom_vjp

__all__ = ["closure_convert", "custom_gradient", "custom_jvp", "custom_vjp"]
