"""``phlox.interpreters.ad``: derivative rules of primitives in JAX's form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from phlox import typeof
from phlox.extend import (
    Linear as UndefinedPrimal,
    Primitive,
    Zero,
    instantiate as instantiate_zeros,
    is_linear as is_undefined_primal,
    publish,
)
from phlox.tree_util import register_pytree_node

from .._core import add_tangents
from ._tables import RuleTable

__all__ = [
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "deflinear2",
    "instantiate_zeros",
    "is_undefined_primal",
    "primitive_jvps",
    "primitive_transposes",
]

#: rules ``(primals, tangents, **params) -> (outputs, output tangents)``
primitive_jvps = RuleTable("jvp")
#: rules ``(cotangent, *args, **params) -> cotangents``, None for arguments that are not transposed
primitive_transposes = RuleTable("transpose")


def defjvp(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Sets the derivative of a primitive by one rule for each argument.

    Args:
      primitive: the primitive, with one result.
      *jvprules: for each argument ``rule(tangent, *primals, **params)`` returns its contribution to the tangent of the
        result; None for zero.

    Returns:
      None.

    >>> from phlox.extend.core import Primitive
    >>> square_p = Primitive("documentation_square")
    >>> _ = square_p.def_impl(lambda x: x * x)
    >>> defjvp(square_p, lambda t, x: 2 * x * t)
    >>> phlox.jvp(square_p.bind, (3.0,), (1.0,))[1]
    Array(6., dtype=float32, weak_type=True)
    """

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        parts = [
            rule(t, *primals, **params)
            for rule, t in zip(jvprules, tangents, strict=True)
            if rule is not None and type(t) is not Zero
        ]
        return out, reduce(add_tangents, parts, Zero(typeof(out).tangent()))

    primitive.jvp = jvp


def deflinear2(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Declares that the primitive is jointly linear in all of its arguments, and sets its transpose rule.

    Args:
      primitive: the primitive, with one result.
      transpose_rule: ``transpose_rule(ct, *args, **params)`` returns a list with the cotangent of each argument.
        Linear arguments are passed as `UndefinedPrimal`.

    Returns:
      None.

    >>> from phlox.extend.core import Primitive
    >>> triple_p = Primitive("documentation_triple")
    >>> _ = triple_p.def_impl(lambda x: 3 * x)
    >>> _ = triple_p.def_abstract_eval(lambda x: x)
    >>> deflinear2(triple_p, lambda ct, x: [triple_p.bind(ct)])
    >>> phlox.grad(triple_p.bind)(1.0)
    Array(3., dtype=float32, weak_type=True)
    """

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return out, Zero(typeof(out).tangent())
        return out, primitive.bind(*map(instantiate_zeros, tangents), **params)

    primitive.jvp = jvp
    primitive.transpose = lambda ct, *args, **params: (
        [Zero(x.aval) for x in args] if type(ct) is Zero else transpose_rule(ct, *args, **params)
    )


def defbilinear(prim: Primitive, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]) -> None:
    """Declares that a primitive of two arguments is linear in each of them, and sets its transpose rules.

    Args:
      prim: the primitive, with one result.
      lhs_rule: ``lhs_rule(ct, x, y, **params)`` returns the cotangent of the first argument `x`, which is passed as
        `UndefinedPrimal`.
      rhs_rule: the same for the second argument.

    Returns:
      None.

    >>> from phlox.extend.core import Primitive
    >>> product_p = Primitive("documentation_product")
    >>> _ = product_p.def_impl(lambda x, y: x * y)
    >>> _ = product_p.def_abstract_eval(lambda x, y: x)
    >>> defbilinear(product_p, lambda ct, x, y: product_p.bind(ct, y), lambda ct, x, y: product_p.bind(x, ct))
    >>> phlox.grad(product_p.bind, 1)(3.0, 2.0)
    Array(3., dtype=float32, weak_type=True)
    """
    defjvp(
        prim, lambda t, x, y, **params: prim.bind(t, y, **params), lambda t, x, y, **params: prim.bind(x, t, **params)
    )

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> tuple[Any, Any]:
        is_lhs = is_undefined_primal(x)
        rule = lhs_rule if is_lhs else rhs_rule
        cotangent = Zero((x if is_lhs else y).aval) if type(ct) is Zero else rule(ct, x, y, **params)
        return (cotangent, None) if is_lhs else (None, cotangent)

    prim.transpose = transpose


#: the sum of two cotangents
add_jaxvals = add_tangents

# Without leaves, as in JAX: equinox's derivative rules return them from a function under `vmap`, beside arrays.
register_pytree_node(Zero, lambda zero: ((), zero.aval), lambda aval, _: Zero(aval))
register_pytree_node(UndefinedPrimal, lambda x: ((), x.aval), lambda aval, _: UndefinedPrimal(aval))

publish(__name__)
