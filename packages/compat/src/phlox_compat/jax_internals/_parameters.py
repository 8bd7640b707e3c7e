"""Parameters that JAX's primitives have and phlox's have not, for libraries that read them or pass them to `bind`."""

from __future__ import annotations

from functools import cache
from typing import Any

from phlox.extend import Primitive
from phlox.extend.core import primitives

from ._flattree import nones, pack

#: parameters of JAX's primitives that are None unless a program asks for a sharding, a dtype or an accuracy
_OPTIONS = {
    "sharding": "broadcast_in_dim convert_element_type iota reshape",
    "out_sharding": "conv_general_dilated dot_general reduce_max reduce_min reduce_prod reduce_sum",
    "out_dtype": "mul",
    "accuracy": "cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh",
}


@cache
def _without_options(base: Any) -> type[Primitive]:
    """The class with a `bind` that drops options of JAX that are None."""

    class PrimitiveOfJax(base):  # type: ignore[misc]
        """A primitive whose `bind` takes JAX's parameters too."""

        __slots__ = ()

        def bind(self, *args: Any, **params: Any) -> Any:
            for option in _OPTIONS:
                if option in params and params[option] is None:
                    del params[option]
            return super().bind(*args, **params)

    return PrimitiveOfJax


class _Scan(type(primitives.scan_p)):  # type: ignore[misc]
    """`scan_p`, whose `bind` takes the groups of its operands as JAX 0.12 describes them."""

    __slots__ = ()

    def bind(self, *args: Any, ft_in: Any = None, ft_out: Any = None, **params: Any) -> Any:
        if ft_in is not None:
            consts, carry, _ = ft_in.unpack()
            params |= {"num_consts": len(consts), "num_carry": len(carry)}
        return super().bind(*args, **params)


def jax_parameters(primitive: Primitive, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of an equation, as JAX 0.12 has them."""
    if primitive is not primitives.scan_p:
        return params
    rest = dict(params)
    consts, carry = rest.pop("num_consts"), rest.pop("num_carry")
    jaxpr = params["jaxpr"]
    ft_in = pack((nones(consts), nones(carry), nones(len(jaxpr.in_avals) - consts - carry)))
    return {**rest, "ft_in": ft_in, "ft_out": pack((nones(carry), nones(len(jaxpr.out_avals) - carry)))}


# A primitive gets a class with the same slots: tables of rules have the primitives themselves as keys.
for _names in _OPTIONS.values():
    for _name in _names.split():
        _primitive = getattr(primitives, f"{_name}_p")
        _base: Any = type(_primitive)
        _primitive.__class__ = _without_options(_base)
primitives.scan_p.__class__ = _Scan
