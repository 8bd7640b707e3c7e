"""Elementwise functions of one operand, of which integers and bools become floats, each declared by a row.

Each public name of this file is one of `phlox.numpy`.
"""

# Without `from __future__ import annotations`: its name would be public.

from ..._api.jit.jit import jitted_alias as _alias
from ..._ops.elementwise import arithmetic as _e, exponents as _exponents, trigonometry as _trigonometry
from .unary import inexact as _inexact, log_10 as _log10

exp = _inexact("exp", _e.exp, "e to the power of x", "0.0", "1.")
exp2 = _inexact("exp2", _exponents.exp2, "2 to the power of x", "3.0", "8.")
expm1 = _inexact("expm1", _e.expm1, "exp(x) - 1, exact near 0", "0.0", "0.")
log = _inexact("log", _e.log, "Natural logarithm", "1.0", "0.")
log1p = _inexact("log1p", _e.log1p, "log(1 + x), exact near 0", "0.0", "0.")
log2 = _inexact("log2", _exponents.log2, "Logarithm to base 2", "8.0", "3.")
log10 = _inexact("log10", _log10, "Logarithm to base 10", "1.0", "0.", weak=False)
sqrt = _inexact("sqrt", _e.sqrt, "Square root", "4.0", "2.")
cbrt = _inexact("cbrt", _e.cbrt, "Cube root", "8.0", "2.")
sin = _inexact("sin", _trigonometry.sin, "Sine of x in radians", "0.0", "0.")
cos = _inexact("cos", _trigonometry.cos, "Cosine of x in radians", "0.0", "1.")
tan = _inexact("tan", _trigonometry.tan, "Tangent of x in radians", "0.0", "0.")
sinh = _inexact("sinh", _trigonometry.sinh, "Hyperbolic sine", "0.0", "0.")
cosh = _inexact("cosh", _trigonometry.cosh, "Hyperbolic cosine", "0.0", "1.")
tanh = _inexact("tanh", _trigonometry.tanh, "Hyperbolic tangent", "0.0", "0.")
arcsin = _inexact("arcsin", _trigonometry.asin, "Inverse sine, in radians", "0.0", "0.")
arccos = _inexact("arccos", _trigonometry.acos, "Inverse cosine, in radians", "1.0", "0.")
arctan = _inexact("arctan", _trigonometry.atan, "Inverse tangent, in radians", "0.0", "0.")
arcsinh = _inexact("arcsinh", _trigonometry.asinh, "Inverse hyperbolic sine", "0.0", "0.")
arccosh = _inexact("arccosh", _trigonometry.acosh, "Inverse hyperbolic cosine", "1.0", "0.")
arctanh = _inexact("arctanh", _trigonometry.atanh, "Inverse hyperbolic tangent", "0.0", "0.")
reciprocal = _inexact("reciprocal", lambda x: _e.integer_pow(x, y=-1), "1 / x", "4.0", "0.25")

asin = _alias(arcsin, "asin")
acos = _alias(arccos, "acos")
atan = _alias(arctan, "atan")
asinh = _alias(arcsinh, "asinh")
acosh = _alias(arccosh, "acosh")
atanh = _alias(arctanh, "atanh")
