"""exp2, log2 and log10, exact where the result is a whole number or a power of two.

The exponent of a float is handled by its bits, and the exponential and the logarithm see the remaining factor alone.
The exponential of a product with log(2), as XLA and JAX compute exp2, has 8.000001 for 2**3.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from ..._ir import dtypes
from ..._ir.avals import shaped
from ..._trace.trace import typeof
from ..._xla.text import Function, Value
from . import arithmetic as e
from .families import INEXACT, literal, lowered_as, unary
from .formula import Formula, exp, log, nearest

_LOG10_2 = Fraction("0.30102999566398119521373889472449302677")


def _rule(of_floats: Callable[[Any], Any], of_complex: Callable[[Function, Value], Value]) -> Callable[..., Value]:
    """The lowering rule of a function: `of_floats` takes float32 or float64, as which half precision is computed."""
    formula = lowered_as(of_floats)

    def rule(f: Function, x: Value) -> Value:
        dtype = x.aval.dtype
        if dtypes.kind(dtype) == "c":
            return of_complex(f, x)
        wide = f.convert(x, dtypes.float32) if dtype.itemsize < 4 else x
        out: Value = formula(f, wide)
        return f.convert(out, dtype)

    return rule


def _layout(dtype: Any) -> tuple[Any, Any, int, int]:
    """(signed integers, unsigned integers, bits of the mantissa, bias of the exponent) of float32 or float64."""
    if dtype == dtypes.float64:
        return dtypes.int64, dtypes.uint64, 52, 1023
    return dtypes.int32, dtypes.uint32, 23, 127


# --- exp2 -----------------------------------------------------------------------------------------------


def _exp2(x: Any) -> Any:
    y = Formula(x)
    dtype = typeof(x).dtype
    word, _, mantissa, bias = _layout(dtype)
    # Outside of the normal numbers the result is that of exp: infinite, zero, or nan.
    is_ordinary = (y >= 1 - bias) & (y < bias + 1)
    whole = nearest(y)
    factor = exp(is_ordinary.where((y - whole) * math.log(2), y))
    exponent = is_ordinary.where(whole, 0.0).to(word) << mantissa
    return (factor.bits(word) + exponent).bits(dtype).x


def _complex_exp2(f: Function, x: Value) -> Value:
    return f.same("stablehlo.exponential", f.same("stablehlo.multiply", f.constant(np.log(2), x.aval), x))


#: 2 to the power of x
exp2 = unary(
    "exp2",
    _rule(_exp2, _complex_exp2),
    tangent=lambda t, x, out: e.mul(literal(x, math.log(2)), e.mul(t, out)),
    operation="stablehlo.exponential",
    accepts=INEXACT,
    undefined_at_nan=True,
)

# --- logarithms -----------------------------------------------------------------------------------------


def _parts(x: Any) -> tuple[Formula, Formula]:
    """``(m, n)`` with x = m 2**n and m between √½ and √2; ``(x, 0)`` of zero, infinity, nan and negative numbers."""
    y = Formula(x)
    dtype = typeof(x).dtype
    _, word, mantissa, bias = _layout(dtype)
    one, root = (int(dtype.type(v).view(word)) for v in (1.0, 0.5**0.5))
    bits = y.bits(word)
    # Around 1 the exponent is 0 on both sides, so that nothing cancels.
    biased = (bits + (one - root)) >> mantissa
    factor = (bits - (biased << mantissa) + one).bits(dtype)
    is_ordinary = (y >= float(dtypes.finfo(dtype).tiny)) & (y < math.inf)
    return is_ordinary.where(factor, y), is_ordinary.where(biased.to(dtype) - bias, 0.0)


def _log2(x: Any) -> Any:
    factor, exponent = _parts(x)
    return (exponent + log(factor) * (1 / math.log(2))).x


def _log10(x: Any) -> Any:
    factor, exponent = _parts(x)
    # The product of the exponent with the high part is exact.
    bits = 16 if typeof(x).dtype == dtypes.float32 else 42
    high = Fraction(math.floor(_LOG10_2 * 2**bits), 2**bits)
    return (exponent * float(high) + (log(factor) * (1 / math.log(10)) + exponent * float(_LOG10_2 - high))).x


def _complex_log(f: Function, x: Value, base: int) -> Value:
    out = f.same("stablehlo.log", x)
    # Both parts are scaled, as the product with a complex number would make inf * 0 of an infinite part.
    part = shaped(x.aval.shape, dtypes.real_part(x.aval.dtype))
    scale = f.constant(1 / math.log(base), part)
    parts = (f.unlike(operation, out, part) for operation in ("stablehlo.real", "stablehlo.imag"))
    scaled = [f.same("stablehlo.multiply", p, scale) for p in parts]
    return f.op("stablehlo.complex", scaled, [x.aval])[0]


log2 = unary(
    "log2",
    _rule(_log2, functools.partial(_complex_log, base=2)),
    tangent=lambda t, x, out: e.mul(e.div(t, x), literal(x, 1 / math.log(2))),
    accepts=INEXACT,
)
log10 = unary(
    "log10",
    _rule(_log10, functools.partial(_complex_log, base=10)),
    tangent=lambda t, x, out: e.mul(e.div(t, x), literal(x, 1 / math.log(10))),
    accepts=INEXACT,
)
