"""Programs in which the compiler may know that an operand is nan, whatever the arguments are: ``exp(x * nan)``.

XLA writes the exponential for CPUs with a conversion to an integer, which has no defined result for nan. If LLVM knows
the operand, as it does where ``x * nan`` is folded to nan, it drops the computation, and the result is whatever lies in
a register (jaxlib 0.10; 0.12 with few optimizations). The lowering rules of such functions select nan in these programs
(`families.unary`). They do not in others, where the selection takes a tenth of the time of an exponential.
"""

from __future__ import annotations

import numpy as np

from .._ir import dtypes
from .._ir.jaxpr import Atom, Jaxpr, Literal, Var, jaxprs_in


def may_know_nan(jaxpr: Jaxpr) -> bool:
    """Whether operations on constants can give nan: one is nan, or arithmetic has one that is infinite or so large that
    its square is, or has constants as all operands.

    Large ones count, because XLA computes ``(x * c) * d`` as ``x * (c * d)``. The answer is True more often than
    needed, and costs little then.
    """
    constants: set[Var] = set()
    large: set[Var] = set()

    def is_constant(v: Atom) -> bool:
        return isinstance(v, Literal) or v in constants

    for eqn in jaxpr.eqns:
        sizes = [_size(v) if isinstance(v, Literal) else np.inf if v in large else 0.0 for v in eqn.invars]
        if any(map(np.isnan, sizes)):
            return True
        inner = jaxprs_in(eqn.params)
        if any(map(may_know_nan, inner)):
            return True
        known = bool(eqn.invars) and all(map(is_constant, eqn.invars))
        is_large = any(size > 1 for size in sizes)
        if not known and not is_large:
            continue
        arithmetic = inner or eqn.primitive.nan_checked
        if arithmetic and any(dtypes.kind(v.aval.dtype) in "fc" for v in eqn.outvars):
            return True
        if known:
            constants.update(eqn.outvars)
            large.update(eqn.outvars if is_large else ())
    return False


def _size(x: Literal) -> float:
    """The largest absolute value of a constant, nan if it is nan; 1 is the number whose square is the largest one of
    the dtype."""
    dtype = x.aval.dtype
    if dtypes.kind(dtype) not in "fc" or not x.aval.size:
        return 0.0
    largest = float(dtypes.finfo(dtypes.real_part(dtype)).max)
    return float(np.max(np.abs(np.asarray(x.val, dtype).astype(complex)))) / largest**0.5
