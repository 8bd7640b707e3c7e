"""sin, cos, sinh and cosh of complex numbers, whose parts are products such as sin(x) cosh(y).

XLA's operations have nan for 0 cosh(y) where cosh overflows, and 0 for sinh(x) where x is small beside 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._ir import dtypes
from ..._ir.primitive import primitive
from ..._xla.text import Function, Value
from . import arithmetic as e
from .families import lowered_as
from .formula import Formula


def by_parts(
    operation: str, of_parts: Callable[[Formula, Formula], tuple[Formula, Formula]]
) -> Callable[[Function, Value], Value]:
    """The lowering rule of a function: an operation for floats, and for complex numbers the formula of its parts."""

    @lowered_as
    def of_complex(z: Any) -> Any:
        real, imag = of_parts(Formula(e.real(z)), Formula(e.imag(z)))
        return e.complex_(real.x, imag.x)

    def lower(f: Function, x: Value) -> Value:
        is_complex = dtypes.kind(x.aval.dtype) == "c"
        out: Value = of_complex(f, x) if is_complex else f.op(operation, [x], f.out)
        return out

    return lower


def sin_of_parts(x: Formula, y: Formula) -> tuple[Formula, Formula]:
    return _products(_sin(x), _cos(x), y)


def cos_of_parts(x: Formula, y: Formula) -> tuple[Formula, Formula]:
    real, imag = _products(_cos(x), _sin(x), y)
    return real, -imag


def sinh_of_parts(x: Formula, y: Formula) -> tuple[Formula, Formula]:
    imag, real = _products(_sin(y), _cos(y), x)
    return real, imag


def cosh_of_parts(x: Formula, y: Formula) -> tuple[Formula, Formula]:
    return _products(_cos(y), _sin(y), x)


def _sin(x: Formula) -> Formula:
    return Formula(primitive("sin").bind(x.x))


def _cos(x: Formula) -> Formula:
    return Formula(primitive("cos").bind(x.x))


def _products(wave: Formula, shifted: Formula, y: Formula) -> tuple[Formula, Formula]:
    """(wave cosh(y), shifted sinh(y)), finite where the factors overflow and the products do not."""
    up, down = (Formula(e.expm1(half.x)) for half in (0.5 * y, -0.5 * y))
    # sinh and cosh of y / 2. Of them, cosh(y) is 1 + 2 odd² and sinh(y) is 2 odd even.
    odd, even = 0.5 * (up - down), 0.5 * (up + down) + 1.0
    with_cosh = wave + 2.0 * wave * odd * odd
    with_sinh = 2.0 * shifted * odd * even
    # The zero of a wave, where the other factor may be infinite
    return wave.equals(0.0).where(wave, with_cosh), shifted.equals(0.0).where(shifted, with_sinh)
