"""Special functions of one and two operands: gamma and related functions, zeta, Bessel functions.

Most are CHLO operations. lgamma is in `log_gamma.py`, digamma in `digamma.py`, and i0e is a sum of Chebyshev
polynomials with the coefficients of Cephes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

from ..._base.errors import DerivativeError
from ..._ir import dtypes
from ..._ir.primitive import Primitive
from ..._trace.trace import typeof
from ..._xla.text import Function, Value
from . import arithmetic as e
from .families import FLOAT, binary, literal, lowered_as, unary
from .formula import Formula, exp, floor, nearest, polynomial, rounded_once, sqrt
from .trigonometry import sin

# --- gamma ----------------------------------------------------------------------------------------------


@lowered_as
def _lgamma_lower(x: Any) -> Any:
    from .log_gamma import log_gamma  # here, as few programs need it

    return log_gamma(x)


#: log(abs(gamma(x)))
lgamma = unary(
    "lgamma",
    _lgamma_lower,
    accepts=FLOAT,
    derivative=lambda x, out: digamma(x),
    costly=True,
    operation="chlo.lgamma",
)
#: the same with XLA's formula, whose bits decide which numbers `random.poisson` accepts
lgamma_of_xla = unary("lgamma_of_xla", "chlo.lgamma", accepts=FLOAT, costly=True)


@lowered_as
def _digamma_lower(x: Any) -> Any:
    from .digamma import digamma as formula  # here, as few programs need it

    return formula(x)


def _polygamma_of_xla_lower(f: Function, m: Value, x: Value) -> Value:
    # CHLO's is nan at infinity. The limit is 0, and nan for an infinite order: so 0 * m.
    endless = f.same(
        "stablehlo.and", f.compare("EQ", x, f.number(math.inf, x.aval)), f.compare("GE", m, f.number(1, x.aval))
    )
    limit = f.same("stablehlo.multiply", m, f.number(0, x.aval))
    return f.select(endless, limit, f.op("chlo.polygamma", [m, x], x.aval))


def _trigamma(x: Any, out: Any) -> Any:
    # In place of `_continued`, of which this is the first case: trigamma(x) + trigamma(1 - x) is (pi / sin(pi x))**2.
    y = Formula(x)
    negative = y < 0.0
    # The distance to the nearest pole; 1/2 stands in above 0, where derivatives of the quotient would be nan.
    rest = negative.where(y - nearest(y), 0.5)
    value = Formula(polygamma_of_xla(literal(x, 1), negative.where(1.0 - y, y).x))
    sine = Formula(sin((math.pi * rest).x))
    # A quotient by a square: its derivative is nan at a pole, between two infinities.
    return negative.where(math.pi**2 / (sine * sine) - value, value).x


#: the derivative of lgamma
digamma = unary("digamma", _digamma_lower, accepts=FLOAT, derivative=_trigamma, costly=True, operation="chlo.digamma")


def _refuse_order(*_: Any) -> NoReturn:
    raise DerivativeError("polygamma has no derivative with respect to its order")


def _polygamma(name: str, lower: Callable[..., Value]) -> Primitive:
    primitive = binary(
        name,
        lower,
        operation="chlo.polygamma",
        accepts=FLOAT,
        costly=True,
        tangents=(_refuse_order, lambda t, m, x, out: e.mul(t, primitive(e.add(m, literal(m, 1)), x))),
    )
    return primitive


def _continued(series: Callable[[Formula], Formula], x: Formula, power: Formula) -> Formula:
    """The sum of ``(x + k) ** -power`` over k = 0, 1, …, from a function that has digits for positive numbers only.

    For x below 0 the terms with negative bases are summed as positive ones: ``series(f) + (-1)**power * (series(g) -
    series(1 - x))``, where f is the distance of x from the whole number below, and g from the one above.
    """
    rest = x - nearest(x)
    above = rest > 0.0
    below, up = above.where(rest, rest + 1.0), above.where(1.0 - rest, -rest)
    is_even = (power * 0.5).equals(floor(power * 0.5))
    # Negative numbers have no other powers, the sum has no first one, and whole numbers are poles.
    continues = (x < 0.0) & rest.differs(0.0) & (power > 1.0) & power.equals(floor(power))
    first, second, third = (series(continues.where(y, other)) for y, other in ((below, x), (up, 1.0), (1.0 - x, 1.0)))
    change = second - third
    return continues.where(first + is_even.where(change, -change), first)


@lowered_as
@rounded_once
def _polygamma_lower(m: Formula, x: Formula) -> Formula:
    return _continued(lambda y: Formula(polygamma_of_xla(m.x, y.x)), x, m + 1.0)


@lowered_as
@rounded_once
def _zeta_lower(x: Formula, q: Formula) -> Formula:
    # XLA's series is nan at large exponents, of which the first term alone counts, and at infinity.
    steep, last = x > 1000.0, float(dtypes.finfo(typeof(x.x).dtype).max)

    def series(y: Formula) -> Formula:
        end = y.equals(math.inf).where(last, y)
        return steep.where(Formula(e.pow_(y.x, (-x).x)), Formula(zeta_of_xla(steep.where(2.0, x).x, end.x)))

    return _continued(series, q, x)


#: the m-th derivative of digamma; XLA's has no digits below -8
polygamma = _polygamma("polygamma", _polygamma_lower)
polygamma_of_xla = _polygamma("polygamma_of_xla", _polygamma_of_xla_lower)
#: the sum of ``(q + k) ** -x`` over k = 0, 1, …; XLA's has no digits for q below -8
zeta = binary("zeta", _zeta_lower, accepts=FLOAT, costly=True, operation="chlo.zeta")
zeta_of_xla = binary("zeta_of_xla", "chlo.zeta", accepts=FLOAT, costly=True)

# --- Bessel functions -----------------------------------------------------------------------------------

# Chebyshev coefficients of i0e, for arguments up to 8 and greater ones, in single and double precision.
# fmt: off
_NEAR_32 = (
    -1.30002500998624804212e-8, 6.04699502254191894932e-8, -2.67079385394061173391e-7, 1.11738753912010371815e-6,
    -4.41673835845875056359e-6, 1.64484480707288970893e-5, -5.75419501008210370398e-5, 1.88502885095841655729e-4,
    -5.76375574538582365885e-4, 1.63947561694133579842e-3, -4.32430999505057594430e-3, 1.05464603945949983183e-2,
    -2.37374148058994688156e-2, 4.93052842396707084878e-2, -9.49010970480476444210e-2, 1.71620901522208775349e-1,
    -3.04682672343198398683e-1, 6.76795274409476084995e-1,
)
_FAR_32 = (
    3.39623202570838634515e-9, 2.26666899049817806459e-8, 2.04891858946906374183e-7, 2.89137052083475648297e-6,
    6.88975834691682398426e-5, 3.36911647825569408990e-3, 8.04490411014108831608e-1,
)
_NEAR_64 = (
    -4.41534164647933937950e-18, 3.33079451882223809783e-17, -2.43127984654795469359e-16, 1.71539128555513303061e-15,
    -1.16853328779934516808e-14, 7.67618549860493561688e-14, -4.85644678311192946090e-13, 2.95505266312963983461e-12,
    -1.72682629144155570723e-11, 9.67580903537323691224e-11, -5.18979560163526290666e-10, 2.65982372468238665035e-9,
    -1.30002500998624804212e-8, 6.04699502254191894932e-8, -2.67079385394061173391e-7, 1.11738753912010371815e-6,
    -4.41673835845875056359e-6, 1.64484480707288970893e-5, -5.75419501008210370398e-5, 1.88502885095841655729e-4,
    -5.76375574538582365885e-4, 1.63947561694133579842e-3, -4.32430999505057594430e-3, 1.05464603945949983183e-2,
    -2.37374148058994688156e-2, 4.93052842396707084878e-2, -9.49010970480476444210e-2, 1.71620901522208775349e-1,
    -3.04682672343198398683e-1, 6.76795274409476084995e-1,
)
_FAR_64 = (
    -7.23318048787475395456e-18, -4.83050448594418207126e-18, 4.46562142029675999901e-17, 3.46122286769746109310e-17,
    -2.82762398051658348494e-16, -3.42548561967721913462e-16, 1.77256013305652638360e-15, 3.81168066935262242075e-15,
    -9.55484669882830764870e-15, -4.15056934728722208663e-14, 1.54008621752140982691e-14, 3.85277838274214270114e-13,
    7.18012445138366623367e-13, -1.79417853150680611778e-12, -1.32158118404477131188e-11, -3.14991652796324136454e-11,
    1.18891471078464383424e-11, 4.94060238822496958910e-10, 3.39623202570838634515e-9, 2.26666899049817806459e-8,
    2.04891858946906374183e-7, 2.89137052083475648297e-6, 6.88975834691682398426e-5, 3.36911647825569408990e-3,
    8.04490411014108831608e-1,
)
# fmt: on


def _chebyshev(x: Formula, coefficients: tuple[float, ...]) -> Formula:
    """A sum of Chebyshev polynomials, by Clenshaw's recurrence."""
    b0 = b1 = b2 = x.full(0)
    for c in coefficients:
        # Clenshaw's recurrence sums the polynomials from the highest degree, without computing each of them.
        b0, b1, b2 = x * b0 - b1 + c, b0, b1
    return 0.5 * (b0 - b2)


@rounded_once
def _i0e(x: Formula) -> Formula:
    near, far = (_NEAR_64, _FAR_64) if typeof(x.x).dtype == dtypes.float64 else (_NEAR_32, _FAR_32)
    size = abs(x)
    return (size <= 8.0).where(_chebyshev(0.5 * size - 2.0, near), _chebyshev(32.0 / size - 2.0, far) / sqrt(size))


#: Up to here `bessel_quotient` reaches the last bit of float64 for n = 1 and more.
QUOTIENT_END = 8.0


def bessel_quotient(n: int, x: Formula) -> Formula:
    """I_n(x) / x**n by its power series, an even function without a pole."""
    square = x * x * 0.25
    total = x.full(0.0)
    for k in reversed(range(30)):
        total = total * square + 1 / (2.0**n * math.factorial(k) * math.factorial(k + n))
    return total


def _far_slope(order: int, x: Formula) -> tuple[Formula, Formula]:
    """Where x is large, and there the derivative of exp(-x) I_n(x) by Hankel's expansion (DLMF 10.40.1), even in x.

    By Bessel functions it is a difference, which loses the digits of x, and its derivative twice as many.
    """
    # 17 terms have the precision of float32 and float64 from here on.
    end = 30.0 if typeof(x.x).dtype == dtypes.float64 else 10.0
    far, term, terms = abs(x) > end, 1 / math.sqrt(2 * math.pi), []
    for k in range(17):
        terms.append(-(k + 0.5) * term)
        term *= ((2 * k + 1) ** 2 - 4 * order**2) / (8 * (k + 1))
    y = far.where(abs(x), end)
    return far, polynomial(1.0 / y, terms) / y / sqrt(y)


def bessel_i0e_slope(x: Any) -> Any:
    """The derivative of exp(-x) I_0(x), for x of 0 and more."""
    far, slope = _far_slope(0, Formula(x))
    return far.where(slope, Formula(bessel_i1e(x)) - Formula(bessel_i0e(x))).x


def _i0e_derivative(x: Any, out: Any) -> Any:
    far, slope = _far_slope(0, Formula(x))
    sign = Formula(e.sign(x))
    return far.where(sign * slope, Formula(bessel_i1e(x)) - sign * Formula(out)).x


def _i1e_derivative(x: Any, out: Any) -> Any:
    # i0e(x) - sign(x) * out - out/x. Near 0 the quotient is the series, whose derivatives lose no digits.
    y, scaled = Formula(x), Formula(out)
    near = abs(y) <= 1.0
    # sign(x) x and not abs(x), whose derivative is 1 at 0: there is a kink, of which 0 is the middle.
    quotient = near.where(
        exp(-(Formula(e.sign(x)) * y)) * bessel_quotient(1, near.where(y, 0.0)), scaled / near.where(1.0, y)
    )
    far, slope = _far_slope(1, y)
    return far.where(slope, Formula(bessel_i0e(x)) - Formula(e.sign(x)) * scaled - quotient).x


#: exp(-abs(x)) times the modified Bessel function of order 0, and of order 1
bessel_i0e = unary(
    "bessel_i0e",
    lowered_as(_i0e),
    accepts=FLOAT,
    derivative=_i0e_derivative,
    costly=True,
)
bessel_i1e = unary("bessel_i1e", "chlo.bessel_i1e", accepts=FLOAT, derivative=_i1e_derivative, costly=True)
