"""Programs in which the compiler may know that an operand is nan, whatever the arguments are: ``exp(x * nan)``.

XLA writes the exponential for CPUs with a conversion to an integer, which has no defined result for nan. If LLVM knows
the operand, as it does where ``x * nan`` is folded to nan, it drops the computation, and the result is whatever lies in
a register (jaxlib 0.10; 0.12 with few optimizations). The lowering rules of such functions select nan in these programs
(`families.unary`). They do not in others, where the selection takes a tenth of the time of an exponential.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .._ir import dtypes
from .._ir.jaxpr import Jaxpr, JaxprEqn, Literal, jaxprs_in


def may_know_nan(jaxpr: Jaxpr) -> bool:
    """Whether operations on constants can give nan: one is nan, or arithmetic has one that is infinite or so large that
    its square is, or has constants as all operands and is not plain arithmetic with a finite result.

    Large ones count, because XLA computes ``(x * c) * d`` as ``x * (c * d)``. The answer is True more often than
    needed, and costs little then.
    """
    return _may_know_nan(jaxpr, {}, {})


#: Arithmetic of numbers that are known: derivatives of means, for example, divide 1 by a number of elements.
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "add_any": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": lambda x, y: x / y if abs(y) > 1e-4 else math.nan,  # smaller ones may count as zero
    "neg": operator.neg,
    "max": max,
    "min": min,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "gt": operator.gt,
    "select_n": lambda which, *cases: cases[int(which)],
    **dict.fromkeys(("convert_element_type", "broadcast_in_dim", "stop_gradient", "reshape", "squeeze"), lambda x: x),
}


def _may_know_nan(jaxpr: Jaxpr, sizes: dict[Any, float], numbers: dict[Any, float]) -> bool:
    """`may_know_nan` for a Jaxpr with constant inputs, of these sizes as of `_size`, of which `numbers` are known.

    Results that are constants are added to both.
    """
    for eqn in jaxpr.eqns:
        invars, largest, known = eqn.invars, 0.0, True
        for v in invars:  # a loop, as all of lowering takes some microseconds for an equation
            if type(v) is Literal:
                size = sizes[v] = _size(v)
                if v.aval.shape == () and dtypes.kind(v.aval.dtype) in "fiub":
                    numbers[v] = float(v.val)
            elif v in sizes:
                size = sizes[v]
            else:
                known = False
                continue
            # Only nan differs from itself.
            if size != size:
                return True
            largest = max(largest, size)
        for inner in jaxprs_in(eqn.params) if eqn.params else ():
            # In loops, operands and inputs differ in number or role, so nothing is known of the inputs.
            if len(inner.invars) != len(invars):  # the operands are not the inputs
                if largest > 1 or _may_know_nan(inner, {}, {}):
                    return True
                continue
            pairs = [(x, v) for x, v in zip(inner.invars, invars, strict=True) if v in sizes]
            inner_numbers: dict[Any, float] = {x: numbers[v] for x, v in pairs if v in numbers}
            if _may_know_nan(inner, {x: sizes[v] for x, v in pairs}, inner_numbers):
                return True
            if known and all(out in inner_numbers for out in inner.outvars):
                numbers.update((v, inner_numbers[x]) for v, x in zip(eqn.outvars, inner.outvars, strict=False))
        if largest <= 1 and not (known and invars):
            continue
        if known and largest <= 1 and _compute(eqn, numbers):
            sizes.update((v, abs(numbers[v]) / _limit_of(v)) for v in eqn.outvars)
            continue
        # Only primitives that can make nan have `nan_checked`.
        if eqn.primitive.nan_checked and any(dtypes.kind(v.aval.dtype) in "fc" for v in eqn.outvars):
            return True
        if known:
            sizes.update(dict.fromkeys(eqn.outvars, largest))
    return False


def _compute(eqn: JaxprEqn, numbers: dict[Any, float]) -> bool:
    """Adds the result of an equation on known numbers to `numbers`; returns whether it is known now, and finite.

    The numbers are those of 64 bits: in narrower dtypes they may have overflowed, so operands are not large.
    """
    if all(v in numbers for v in eqn.outvars):  # a call, whose program has been looked at
        return True
    compute = _ARITHMETIC.get(eqn.primitive.name)
    if compute is None or not all(v in numbers for v in eqn.invars):
        return False
    result, dtype = float(compute(*(numbers[v] for v in eqn.invars))), eqn.outvars[0].aval.dtype
    if not math.isfinite(result):
        return False
    exact = dtypes.kind(dtype) == "f" or (result in (0, 1) if dtypes.kind(dtype) == "b" else result.is_integer())
    if not exact or (dtypes.kind(dtype) in "iu" and not dtypes.holds(dtype, int(result))):
        return False  # it is rounded, or wraps around
    numbers[eqn.outvars[0]] = result
    return True


def _limit_of(v: Any) -> float:
    # Integers have no nan, so that their size does not matter.
    return _limit(v.aval.dtype) if dtypes.kind(v.aval.dtype) in "fc" else math.inf


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
