"""Programs in which the compiler may know that an operand is nan, whatever the arguments are: ``exp(x * nan)``.

XLA writes the exponential for CPUs with a conversion to an integer, which has no defined result for nan. If LLVM knows
the operand, as it does where ``x * nan`` is folded to nan, it drops the computation, and the result is whatever lies in
a register (jaxlib 0.10; 0.12 with few optimizations). The lowering rules of such functions select nan in these programs
(`families.unary`). They do not in others, where the selection takes a tenth of the time of an exponential.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .._ir import dtypes
from .._ir.jaxpr import Jaxpr, Literal, jaxprs_in


def may_know_nan(jaxpr: Jaxpr) -> bool:
    """Whether operations on constants can give nan: one is nan, or arithmetic has one that is infinite or so large that
    its square is, or has constants as all operands.

    Large ones count, because XLA computes ``(x * c) * d`` as ``x * (c * d)``. The answer is True more often than
    needed, and costs little then.
    """
    return _may_know_nan(jaxpr, {})


def _may_know_nan(jaxpr: Jaxpr, sizes: dict[Any, float]) -> bool:
    """`may_know_nan` for a Jaxpr with constant inputs, of these sizes as of `_size`. Results that are constants are
    added to `sizes`."""
    for eqn in jaxpr.eqns:
        invars, largest, known = eqn.invars, 0.0, True
        for v in invars:  # a loop, as all of lowering takes some microseconds for an equation
            if type(v) is Literal:
                size = sizes[v] = _size(v)
            elif v in sizes:
                size = sizes[v]
            else:
                known = False
                continue
            if size != size:
                return True
            largest = max(largest, size)
        for inner in jaxprs_in(eqn.params) if eqn.params else ():
            if len(inner.invars) != len(invars):  # the operands are not the inputs
                if largest > 1 or _may_know_nan(inner, {}):
                    return True
            elif _may_know_nan(inner, {x: sizes[v] for x, v in zip(inner.invars, invars, strict=True) if v in sizes}):
                return True
        if largest <= 1 and not (known and invars):
            continue
        if eqn.primitive.nan_checked and any(dtypes.kind(v.aval.dtype) in "fc" for v in eqn.outvars):
            return True
        if known:
            sizes.update(dict.fromkeys(eqn.outvars, largest))
    return False


def _size(x: Literal) -> float:
    """The largest absolute value of a constant, nan if it is nan; 1 is the number whose square is the largest one of
    the dtype. It is 0 for integers."""
    dtype = x.aval.dtype
    if dtypes.kind(dtype) not in "fc":
        return 0.0
    if type(x.val) is float:
        return abs(x.val) / _limit(dtype)
    return float(np.max(np.abs(np.asarray(x.val, dtype).astype(complex)), initial=0)) / _limit(dtype)


@functools.cache
def _limit(dtype: dtypes.Dtype) -> float:
    return math.sqrt(float(dtypes.finfo(dtypes.real_part(dtype)).max))
