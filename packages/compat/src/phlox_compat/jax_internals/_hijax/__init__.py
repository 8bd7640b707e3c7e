"""``jax.experimental.hijax``: values with types of their own, and operations on them."""

from phlox.extend import on_demand as _on_demand, publish as _publish

with _on_demand(__name__):
    from phlox.extend import ShapedArray, Zero

    from ..._core import AbstractRef, GradAccum, RefView as TransformedRef, ValAccum
    from ._operations import (
        HiPrim,
        NullAccum,
        RefAccum,
        VJPHiPrimitive,
        aval_method,
        aval_property,
        bdims_at_front,
        control_flow_allowed_effects,
        instantiate_zeros,
        is_undefined_primal,
        jvp_from_lin,
        linearize_from_jvp,
        unmap_avals,
        vjp_from_jvp,
        vjp_from_lin,
        vmap_rule,
    )
    from ._types import AbstractValue, HiPspec, HiType, MappingSpec, get_aval, register_hitype, typeof

__all__ = [
    "AbstractRef",
    "AbstractValue",
    "GradAccum",
    "HiPrim",
    "HiPspec",
    "HiType",
    "MappingSpec",
    "NullAccum",
    "RefAccum",
    "ShapedArray",
    "TransformedRef",
    "VJPHiPrimitive",
    "ValAccum",
    "Zero",
    "aval_method",
    "aval_property",
    "bdims_at_front",
    "control_flow_allowed_effects",
    "get_aval",
    "instantiate_zeros",
    "is_undefined_primal",
    "jvp_from_lin",
    "linearize_from_jvp",
    "register_hitype",
    "typeof",
    "unmap_avals",
    "vjp_from_jvp",
    "vjp_from_lin",
    "vmap_rule",
]

_publish(__name__)
