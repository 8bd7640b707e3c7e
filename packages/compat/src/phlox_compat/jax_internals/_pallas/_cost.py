"""`estimate_cost`: the operations of a function, counted as JAX's schedulers expect them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import phlox
from phlox import tree_util

from ._specs import CostEstimate

# Operations of JAX's estimate. It counts no others: reductions, comparisons, indexing and loops cost nothing.
_ONE_FLOP = frozenset(
    ["add", "mul", "sub", "div", "min", "max", "or", "and", "xor", "neg", "floor", "ceil", "round", "not"]
)
_TRANSCENDENTAL = frozenset(
    ["cos", "sin", "tan", "sinh", "cosh", "tanh", "acos", "asin", "atan", "exp", "log", "logistic", "sqrt"]
)
#: operations that hold a program, with its parameter
_CALLS = {"jit": "jaxpr", "custom_vjp_call": "call_jaxpr"}


def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """The cost of a function of arrays (as ``pallas.estimate_cost``).

    Args:
      fun: function of arrays.
      *args: its arguments: arrays or `ShapeDtypeStruct`.
      **kwargs: its arguments by name, which are not traced.

    Returns:
      The numbers of elementwise and matrix operations, of transcendental functions, and of the bytes of arguments and
      results.
    """
    jaxpr = phlox.make_jaxpr(lambda *args: fun(*args, **kwargs))(*args).jaxpr
    flops, transcendentals = _counts(jaxpr)
    types = [*tree_util.tree_leaves(args), *(var.aval for var in jaxpr.outvars)]
    return CostEstimate(flops, transcendentals, sum(math.prod(ty.shape) * ty.dtype.itemsize for ty in types))


def _counts(jaxpr: Any) -> tuple[int, int]:
    """(operations, transcendental functions) of a program."""
    flops = transcendentals = 0
    for eqn in jaxpr.eqns:
        name, shape = eqn.primitive.name, eqn.outvars[0].aval.shape if eqn.outvars else ()
        if name in _CALLS:
            inner_flops, inner_transcendentals = _counts(eqn.params[_CALLS[name]].jaxpr)
            flops, transcendentals = flops + inner_flops, transcendentals + inner_transcendentals
        elif name in _TRANSCENDENTAL:
            transcendentals += math.prod(shape)
        elif name in _ONE_FLOP:
            flops += math.prod(shape)
        elif name == "integer_pow":
            flops += math.prod(shape) * _multiplications(eqn.params["y"])
        elif name == "dot_general":
            (lhs_contracting, _), _ = eqn.params["dimension_numbers"]
            lhs = eqn.invars[0].aval.shape
            flops += 2 * math.prod(shape) * math.prod(lhs[axis] for axis in lhs_contracting)
    return flops, transcendentals


def _multiplications(exponent: int) -> int:
    """The multiplications of repeated squaring, as JAX counts them, and the division of a negative exponent."""
    size = abs(exponent)
    return 0 if exponent in (0, 1) else size.bit_length() - 1 + size.bit_count() + (exponent < 0)
