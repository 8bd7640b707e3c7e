"""The error function, its complement and its inverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import arithmetic as e, logic
from .families import FLOAT, literal, lowered_as, unary

_TWO_OVER_ROOT_PI = 2 / np.sqrt(np.pi)


def _exp_minus_square_tangent(t: Any, x: Any, out: Any) -> Any:
    # At infinity the derivative is 0, and the product would be inf * 0.
    x = logic.select(logic.eq(out, literal(out, 0)), literal(x, 0), x)
    return e.mul(t, e.mul(e.mul(literal(x, -2), x), out))


exp_minus_square = unary(
    "exp_minus_square",
    lowered_as(lambda x: e.exp(e.neg(e.square(x)))),
    accepts=FLOAT,
    tangent=_exp_minus_square_tangent,
    operation="stablehlo.exponential",
)


def _gauss(factor: float, t: Any, x: Any) -> Any:
    # The derivative of erf is 2/sqrt(pi) exp(-x²). The factors are multiplied in JAX's order, so that the bits are
    # equal.
    return e.mul(literal(x, factor, weak=False), e.mul(t, exp_minus_square(x)))


erf = unary(
    "erf", "chlo.erf", accepts=FLOAT, tangent=lambda t, x, out: _gauss(_TWO_OVER_ROOT_PI, t, x), unfused="operation"
)
erfc = unary("erfc", "chlo.erfc", accepts=FLOAT, tangent=lambda t, x, out: _gauss(-_TWO_OVER_ROOT_PI, t, x))
erf_inv = unary(
    "erf_inv",
    "chlo.erf_inv",
    accepts=FLOAT,
    # The reciprocal of the derivative of erf at the result.
    tangent=lambda t, x, out: e.mul(literal(x, 1 / _TWO_OVER_ROOT_PI), e.mul(t, e.exp(e.square(out)))),
    costly=True,
)
