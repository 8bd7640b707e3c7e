"""The rows of the table for elementwise functions: XLA on CPUs calls the C library for each of these elements."""

from __future__ import annotations

from ..._ir import dtypes
from ..._ir.primitive import Primitive
from ..._xla.forms import Form
from ..._xla.kernels import has_kernel, is_argument, kernel
from ..._xla.text import Function, Number, Value
from ..elementwise import trigonometry as t
from ..elementwise.arithmetic import cbrt, log1p, pow_, rem
from .float32 import (
    arccosine,
    arcsine,
    arctangent,
    arctangent_of_two,
    cosine,
    cube_root,
    float32_form,
    hyperbolic_cosine,
    hyperbolic_sine,
    logarithm_of_one_plus,
    power,
    power_of_root,
    remainder,
    sine,
    tangent,
)
from .unless_nan import unless_nan

#: exponents that XLA turns into products, quotients and roots
_SIMPLE_POWERS = (-1, 0, 0.5, 1, 2, 3)
#: exponents of which a square root and at most three products make the power
_ROOTS = (-3.5, -2.5, -1.5, -0.5, 1.5, 2.5, 3.5)
_SINE = "phlox_kernels_sine_2"
#: A kernel is no part of a larger loop. Of fewer elements a call takes as long as the formula. More elements, if they
#: are computed on the way, do not stay in the cache.
_LEAST_SINES, _MOST_CACHED_SINES = 4096, 1 << 17


def _sine_by_kernel(function: int) -> Form:
    """The form that calls the kernel of phlox-kernels for sines (0), cosines (1) or tangents (2)."""

    def applies(f: Function, x: Value) -> bool:
        aval = x.aval
        if aval.dtype != dtypes.float32 or aval.size < _LEAST_SINES:
            return False
        return (aval.size <= _MOST_CACHED_SINES or is_argument(f, x)) and has_kernel(f, _SINE)

    def write(f: Function, x: Value) -> Value:
        return kernel(f, _SINE, [x], [f.out], function=function)[0]

    return Form(applies, write, "1e6: 0.45 to 0.55 of the time of the formula")


def _is_general_power(f: Function, x: Value, y: Value) -> bool:
    return not (isinstance(y, Number) and y.value in _SIMPLE_POWERS)


def _is_power_of_root(f: Function, x: Value, y: Value) -> bool:
    return isinstance(y, Number) and y.value in _ROOTS


def _power_of_root_form() -> Form:
    def write(f: Function, x: Value, y: Number) -> Value:
        return float32_form(power_of_root(float(y.value)), "").write(f, x, y)

    # The condition needs no exponent, but the formula has one for each: it is made when it is written.
    applies = float32_form(power, "", _is_power_of_root).applies
    return Form(applies, write, "1e6: 0.2 of XLA's time; errors of 0.5 ulp")


def _remainder_form() -> Form:
    """The remainder by a formula; where that is nan, by XLA's operation for all elements."""
    formula = float32_form(remainder, "")

    def applies(f: Function, x: Value, y: Value) -> bool:
        # Several devices would have to agree on the branch.
        return f.module.partitions == 1 and formula.applies(f, x, y)

    def write(f: Function, x: Value, y: Value) -> Value:
        out = f.out

        def portable(g: Function) -> Value:
            g.outs = [out]
            rest: Value = rem.lower(g, x, y)
            return rest

        rest: Value = formula.write(f, x, y)
        return unless_nan(f, rest, out, lambda g: rest, portable)

    return Form(applies, write, "1e6: 0.02 to 0.4 of XLA's time; exact")


FORMS: dict[Primitive, list[Form]] = {
    t.sin: [_sine_by_kernel(0), float32_form(sine, "1e6: 0.06 to 0.3 of XLA's time")],
    t.cos: [_sine_by_kernel(1), float32_form(cosine, "1e6: 0.1 to 0.5 of XLA's time")],
    t.tan: [_sine_by_kernel(2), float32_form(tangent, "1e6: 0.12 of XLA's time")],
    t.asin: [float32_form(arcsine, "1e6: 0.02 of XLA's time")],
    t.acos: [float32_form(arccosine, "1e6: 0.02 of XLA's time")],
    t.atan: [float32_form(arctangent, "1e6: 0.2 of XLA's time")],
    t.atan2: [float32_form(arctangent_of_two, "1e6: 0.05 of XLA's time")],
    t.sinh: [float32_form(hyperbolic_sine, "1e6: 0.5 of XLA's time; errors of 0.501 ulp, XLA's 8.6")],
    t.cosh: [float32_form(hyperbolic_cosine, "1e6: as fast as XLA's; errors of 0.501 ulp")],
    log1p: [float32_form(logarithm_of_one_plus, "1e6: 0.45 of XLA's time; errors of 0.9 ulp, XLA's 2.5")],
    cbrt: [float32_form(cube_root, "1e6: 0.02 of XLA's time")],
    pow_: [
        _power_of_root_form(),
        float32_form(power, "1e6: 0.45 of XLA's time; errors of 0.501 ulp", _is_general_power),
    ],
    rem: [_remainder_form()],
}
