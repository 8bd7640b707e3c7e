"""``phlox.custom_derivatives``: functions with derivative rules of their own, as in ``jax.custom_derivatives``."""

from ._api.derivatives.closures import closure_convert, custom_gradient, linear_call
from ._api.derivatives.custom import custom_jvp, custom_vjp
from ._api.derivatives.symbolic import CustomVJPPrimal, SymbolicZero, custom_vjp_primal_tree_values, zero_from_primal
from ._base.public_names import publish
from ._ops.control.custom import custom_jvp_call as custom_jvp_call_p, custom_vjp_call as custom_vjp_call_p
from ._ops.control.remat_opt import remat_opt as remat_opt_p

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_vjp",
    "custom_vjp_call_p",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "remat_opt_p",
    "zero_from_primal",
]


publish(__name__)
