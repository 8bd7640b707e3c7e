"""The primitive `logaddexp`, the logarithm of a sum of exponentials; numpy.logaddexp and lax.cumlogsumexp use it.

It is a primitive because differentiating the operations that compute it would give wrong derivatives at ties.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._ir import dtypes
from ..._trace.trace import typeof
from . import arithmetic as e, logic
from .families import INEXACT, binary, literal, lowered_as


def _complex(x: Any) -> bool:
    return dtypes.kind(typeof(x).dtype) == "c"


def _logaddexp(x: Any, y: Any) -> Any:
    if _complex(x):
        top = e.max_(x, y)
        # The smaller operand less the larger one, whichever it is. Complex numbers have no absolute value of that kind.
        rest = e.sub(e.add(x, y), e.mul(top, literal(top, 2)))
        total = e.add(top, e.log1p(e.exp(rest)))
        return e.complex_(e.real(total), _angle_between(e.imag(total)))
    # The larger exponential is taken out, so that the argument of exp is never positive and cannot overflow.
    top, delta = e.max_(x, y), e.sub(x, y)
    undefined = logic.ne(delta, delta)  # both infinite, or a nan
    return logic.select(undefined, e.add(x, y), e.add(top, e.log1p(e.exp(e.neg(e.abs_(delta))))))


def _no_infinity(x: Any) -> Any:
    """A complex `x` with 0 in place of infinities, because inf - inf is nan."""
    real = e.real(x)
    return logic.select(logic.eq(real, literal(real, np.inf)), literal(x, 0), x)


def _angle_between(x: Any) -> Any:
    """The angle `x` modulo 2 pi, between -pi and pi."""
    half, turn = literal(x, np.pi), literal(x, 2 * np.pi)
    rest = e.rem(e.add(x, half), turn)
    return e.sub(logic.select(logic.is_negative(rest), e.add(rest, turn), rest), half)


def _share(t: Any, x: Any, y: Any, out: Any) -> Any:
    """The share of exp(x) in the sum, 1/2 where both are the same infinity."""
    if _complex(x):
        return e.mul(t, e.exp(e.sub(_no_infinity(x), _no_infinity(out))))
    # Not exp(x - out): `out` has lost the logarithm of 2 where x and y are large and equal.
    tie = logic.and_(logic.eq(x, y), logic.eq(e.abs_(x), literal(x, np.inf)))
    return e.mul(t, e.logistic(logic.select(tie, literal(x, 0), e.sub(x, y))))


#: log(exp(x) + exp(y)) without overflow
logaddexp = binary(
    "logaddexp",
    lowered_as(_logaddexp),
    accepts=INEXACT,
    tangents=(lambda t, x, y, out: _share(t, x, y, out), lambda t, x, y, out: _share(t, y, x, out)),
)
