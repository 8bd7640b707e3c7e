"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._ir import dtypes
from ..._trace.trace import typeof
from ..._xla.text import Function, Value
from . import arithmetic as e, logic
from .complex_waves import by_parts, cos_of_parts, cosh_of_parts, sin_of_parts, sinh_of_parts
from .families import INEXACT, binary, literal, unary
from .symmetry import Symmetry

sin = unary(
    "sin",
    by_parts("stablehlo.sine", sin_of_parts),
    operation="stablehlo.sine",
    accepts=INEXACT,
    derivative=lambda x, out: cos(x),
    unfused="operation",
    symmetry=Symmetry(parity=-1),
)
cos = unary(
    "cos",
    by_parts("stablehlo.cosine", cos_of_parts),
    operation="stablehlo.cosine",
    accepts=INEXACT,
    tangent=lambda t, x, out: e.neg(e.mul(t, sin(x))),
    unfused="operation",
    symmetry=Symmetry(parity=1),
)
tan = unary(
    "tan",
    "stablehlo.tan",
    accepts=INEXACT,
    derivative=lambda x, out: e.add(literal(x, 1), e.square(out)),
    symmetry=Symmetry(parity=-1),
)


def _asin_slope(x: Any) -> Any:
    """1 / sqrt(1 - x²)."""
    one, square = literal(x, 1), e.square(x)
    if dtypes.kind(typeof(x).dtype) != "c":
        return e.rsqrt(e.sub(one, square))
    # On a branch cut, the sign of the imaginary part 0 is the side. 1 - x² has +0 on both sides.
    return e.rsqrt(e.neg(e.sub(square, one)))


asin = unary(
    "asin",
    "chlo.asin",
    accepts=INEXACT,
    derivative=lambda x, out: _asin_slope(x),
    symmetry=Symmetry(parity=-1, imag=1),
)
acos = unary(
    "acos",
    "chlo.acos",
    accepts=INEXACT,
    derivative=lambda x, out: e.neg(_asin_slope(x)),
    symmetry=Symmetry(imag=-1),
)
atan = unary(
    "atan",
    "chlo.atan",
    accepts=INEXACT,
    tangent=lambda t, x, out: e.div(t, e.add(literal(x, 1), e.square(x))),
    symmetry=Symmetry(parity=-1, imag=1),
)
sinh = unary(
    "sinh",
    by_parts("chlo.sinh", sinh_of_parts),
    operation="chlo.sinh",
    accepts=INEXACT,
    derivative=lambda x, out: cosh(x),
    symmetry=Symmetry(parity=-1),
    undefined_at_nan=True,
)
cosh = unary(
    "cosh",
    by_parts("chlo.cosh", cosh_of_parts),
    operation="chlo.cosh",
    accepts=INEXACT,
    derivative=lambda x, out: sinh(x),
    symmetry=Symmetry(parity=1),
    undefined_at_nan=True,
)
tanh = unary(
    "tanh",
    "stablehlo.tanh",
    accepts=INEXACT,
    derivative=lambda x, out: e.one_minus_square(out),
    symmetry=Symmetry(parity=-1),
)


def _asinh_slope(x: Any) -> Any:
    """1 / sqrt(x² + 1)."""
    one, is_complex = literal(x, 1), dtypes.kind(typeof(x).dtype) == "c"
    # From here on the root is abs(x) to the last place. The square would overflow.
    far = None if is_complex else logic.gt(e.abs_(x), literal(x, 2 * float(dtypes.finfo(typeof(x).dtype).eps) ** -0.5))
    near = x if far is None else logic.select(far, one, x)
    # -1 is subtracted, as adding 1 + 0i would lose the sign of an imaginary part -0: the side of a branch cut.
    slope = e.rsqrt(e.sub(e.square(near), literal(x, -1)))
    return slope if far is None else logic.select(far, e.div(one, e.abs_(logic.select(far, x, one))), slope)


asinh = unary(
    "asinh",
    "chlo.asinh",
    accepts=INEXACT,
    derivative=lambda x, out: _asinh_slope(x),
    symmetry=Symmetry(parity=-1, imag=1),
)
acosh = unary(
    "acosh",
    "chlo.acosh",
    accepts=INEXACT,
    # Not 1 / sqrt(x² - 1), which is a number below 1, and has the wrong sign in the left half of the complex plane.
    # -1 is subtracted for the side of a branch cut, as in asinh.
    derivative=lambda x, out: e.mul(e.rsqrt(e.sub(x, literal(x, 1))), e.rsqrt(e.sub(x, literal(x, -1)))),
    symmetry=Symmetry(imag=1),
)


def _atanh_lower(f: Function, x: Value) -> Value:
    if x.aval.dtype != dtypes.float64:
        return f.op("chlo.atanh", [x], f.out)
    # chlo's form has the errors of XLA's log1p, see `log1p_of`. The logarithms differ in sign: nothing cancels.
    parts = e.log1p_of(f, x), e.log1p_of(f, f.same("stablehlo.negate", x))
    return f.same("stablehlo.multiply", f.same("stablehlo.subtract", *parts), f.constant(0.5, x.aval))


atanh = unary(
    "atanh",
    _atanh_lower,
    accepts=INEXACT,
    operation="chlo.atanh",
    tangent=lambda t, x, out: e.div(t, e.one_minus_square(x)),
    symmetry=Symmetry(parity=-1, imag=1),
)


def _over_square(part: Any, x: Any, y: Any) -> Any:
    """part / (x² + y²), by numbers whose squares neither overflow nor underflow; 0 where one of the two is infinite."""
    aval = typeof(x)
    # Complex numbers have no order by which to choose a scale.
    if dtypes.kind(aval.dtype) == "c":
        return e.div(part, e.add(e.square(x), e.square(y)))
    size = e.max_(e.abs_(x), e.abs_(y))
    # The reciprocal of the largest numbers would be subnormal.
    scale = e.integer_pow(e.min_(size, literal(size, float(dtypes.finfo(aval.dtype).max) / 8)), y=-1)
    squares = e.add(e.square(e.mul(x, scale)), e.square(e.mul(y, scale)))
    slope = e.mul(e.div(e.mul(part, scale), squares), scale)
    return logic.select(logic.eq(size, literal(size, np.inf)), literal(size, 0), slope)


atan2 = binary(
    "atan2",
    "stablehlo.atan2",
    accepts=INEXACT,
    tangents=(
        lambda t, x, y, out: e.mul(t, _over_square(y, x, y)),
        lambda t, x, y, out: e.mul(t, e.neg(_over_square(x, x, y))),
    ),
    unfused="operation",
)
