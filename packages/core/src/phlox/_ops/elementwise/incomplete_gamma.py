"""The incomplete gamma functions and their derivatives, by series and continued fractions until convergence.

Cases and bounds are those of Cephes: the series where x is small or less than a, the continued fraction elsewhere. Each
loop also carries derivatives with respect to a, so that one program serves the functions and their derivatives. Where a
is large and x near it, `large_parameters.temme` takes the place of the loops.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import arithmetic as e
from .families import (
    FLOAT,
    binary,
    literal,
    lowered_as,
)
from .formula import Formula, exp, log
from .iterated import any_element, derivative, if_any, keep, log_gamma, log_power, loop, power_product, with_limits
from .large_parameters import STIRLING, is_near, log_gamma_factor, temme, temme_by_a
from .log_gamma import log_gamma_1p
from .special import digamma


class Part(enum.Enum):
    """What to compute of the incomplete gamma function: its value, its derivative by a, or that of a sample by a."""

    VALUE = 1
    DERIVATIVE = 2
    SAMPLE = 3


def _gamma_series(ax: Formula, x: Formula, a: Formula, active: Formula, eps: float, part: Part) -> Formula:
    def turn(active: Formula, *old: Formula) -> list[Formula]:
        # The term c becomes c x / (a + 1), c x / (a + 2) …, and dc is its derivative by a. Elements that have converged
        # keep their values, as others of the array may need many more turns.
        r, c, total, dc, dtotal = old
        r = r + 1.0
        dc = dc * (x / r) - (c * x) / (r * r)
        dtotal = dtotal + dc
        c = c * (x / r)
        total = total + c
        far = c / total > eps if part is Part.VALUE else abs(dc / dtotal) > eps
        return [active & far, *keep(active, [r, c, total, dc, dtotal], old)]

    one, zero = a.full(1), a.full(0)
    _, _, _, total, _, dtotal = loop(lambda active, *_: any_element(active), turn, [active, a, one, one, zero, zero])
    if part is Part.VALUE:
        return (total * ax) / a
    # The logarithmic derivative by a of the factor x**a exp(-x) / gamma(a + 1).
    slope = log(x) - Formula(digamma((a + 1.0).x))
    if part is Part.DERIVATIVE:
        return ax * (total * slope + dtotal) / a
    # Implicit differentiation: dx/da = -(dF/da) / (dF/dx). The density dF/dx is ax / x, so that ax cancels and nothing
    # underflows.
    return -(dtotal + total * slope) * x / a


def _gamma_fraction(ax: Formula, x: Formula, a: Formula, active: Formula, eps: float, part: Part) -> Formula:
    """The continued fraction of the complement, 1 minus the incomplete gamma function."""

    def go_on(active: Formula, count: Formula, *_: Formula) -> Any:
        return ((count < 2000.0) & Formula(any_element(active))).x

    def turn(active: Formula, count: Formula, *old: Formula) -> list[Formula]:
        ans, y, z, p1, q1, p2, q2, dp2, dq2, dp1, dq1, dans = old
        count = count + 1.0
        y, z = y + 1.0, z + 2.0
        yc = y * count
        p, q = p1 * z - p2 * yc, q1 * z - q2 * yc
        # A convergent with denominator zero is skipped: the answer stays that of the turn before.
        fine = q.differs(0.0)
        ratio = p / q
        change = fine.where(abs((ans - ratio) / ratio), 1.0)
        ans = fine.where(ratio, ans)
        dp = dp1 * z - p1 - dp2 * yc + p2 * count
        dq = dq1 * z - q1 - dq2 * yc + q2 * count
        new = fine.where((dp - ans * dq) / q, dans)
        dchange = fine.where(abs(new - dans), 1.0)
        # Numerators and denominators grow without bound. Only their quotients count, so all are scaled down together.
        large = abs(p) > 1 / eps
        shifted = [large.where(v * eps, v) for v in (p, q, p1, q1, dp1, dq1, dp, dq)]
        far = change > eps if part is Part.VALUE else dchange > eps
        return [active & far, count, *keep(active, [ans, y, z, *shifted, new], old)]

    # q1 is zero for a = x + 2, which is never active, and its quotient would reach the derivative as nan.
    a, x = active.where(a, 1.0), active.where(x, 1.0)
    y = 1.0 - a
    z = x + y + 1.0
    zero = x.full(0)
    p1, q1 = x + 1.0, z * x
    start = p1 / q1
    dstart = (zero - start * -x) / q1
    count = Formula(literal(x.x, 0))
    carry = [start, y, z, p1, q1, x.full(1), x, zero, zero, zero, -x, dstart]
    _, _, ans, *_, dans = loop(go_on, turn, [active, count, *carry])
    if part is Part.VALUE:
        return ans * ax
    slope = log(x) - Formula(digamma(a.x))
    if part is Part.DERIVATIVE:
        return ax * (ans * slope + dans)
    return -((dans + ans * slope) * x)


def _outside(a: Formula, x: Formula) -> Formula:
    equal_limits = x.equals(a) & (a.equals(0.0) | a.equals(math.inf))
    return (x < 0.0) | (a < 0.0) | equal_limits | a.is_nan | x.is_nan


def _log_factor(a: Formula, x: Formula) -> Formula:
    large = a >= STIRLING
    return large.where(if_any(large, a, lambda: [log_gamma_factor(a, x)])[0], a * log(x) - x - log_gamma(a))


def _factor(a: Formula, x: Formula, power: Formula, info: Any) -> Formula:
    """``x**a exp(-x) / gamma(a)``, of which `power` is the logarithm."""
    return (a >= STIRLING).where(exp(power), power_product(x, a, [-x, -log_gamma(a)], power, info))


def _igamma(a: Formula, x: Formula, info: Any) -> Formula:
    eps = float(info.eps)
    none, all_ = x.equals(0.0) | a.equals(math.inf), x.equals(math.inf)
    wrong = _outside(a, x)
    upper = (x >= 1.0) & (x > a)
    power, near = _log_factor(a, x), is_near(a, x)
    # Elements whose result is known do not keep the loop going. Where the factor underflows, the result is 0 or 1.
    active = ~(none | wrong | (power < -np.log(float(info.max))) | all_ | near)
    ax = _factor(a, x, power, info)
    value = upper.where(
        1.0 - _gamma_fraction(ax, x, a, active & upper, eps, Part.VALUE),
        _gamma_series(ax, x, a, active & ~upper, eps, Part.VALUE),
    )
    value = near.where(if_any(near, a, lambda: temme(a, x, eps), 2)[0], value)
    return wrong.where(np.nan, all_.where(1.0, none.where(0.0, value)))


def _small_complement(a: Formula, x: Formula, info: Any) -> Formula:
    """1 minus the incomplete gamma function, for a and x below 1.

    The function is ``factor (1 + a total)`` with a factor near 1, and `total` the rest of its power series:
    W. Gautschi, A computational procedure for incomplete gamma functions, ACM TOMS 5 (1979).
    """
    power = a * log(x) - log_gamma_1p(a)
    total = x.full(0)
    for n in reversed(range(1, 12 if info.bits == 32 else 20)):
        # Horner's rule in -x/n
        total = (total + 1.0 / (a + n)) * (x * (-1 / n))
    return -Formula(e.expm1(power.x)) - exp(power) * a * total


def _igammac(a: Formula, x: Formula, info: Any) -> Formula:
    eps = float(info.eps)
    nothing, all_ = x.equals(math.inf) | a.equals(0.0), a.equals(math.inf)
    wrong = _outside(a, x)
    lower = (x < 1.0) | (x < a)
    power, near, small = _log_factor(a, x), is_near(a, x), (a < 1.0) & (x < 1.0)
    active = ~(wrong | (power < -np.log(float(info.max))) | nothing | all_ | near | small)
    ax = _factor(a, x, power, info)
    value = lower.where(
        1.0 - _gamma_series(ax, x, a, active & lower, eps, Part.VALUE),
        _gamma_fraction(ax, x, a, active & ~lower, eps, Part.VALUE),
    )
    value = near.where(if_any(near, a, lambda: temme(a, x, eps), 2)[1], value)
    value = small.where(if_any(small, a, lambda: [_small_complement(a, x, info)])[0], value)
    return wrong.where(np.nan, nothing.where(0.0, all_.where(1.0, value)))


def _by_a(part: Part, by_expansion: bool = True) -> Callable[..., Formula]:
    def formula(a: Formula, x: Formula, info: Any) -> Formula:
        eps = float(info.eps)
        none = x.equals(0.0)
        x = none.where(1.0, x)  # the logarithm of 0 would reach the derivative
        wrong = (x < 0.0) | (a <= 0.0)
        missing = a.is_nan | x.is_nan
        upper = (x > 1.0) & (x > a)
        power = _log_factor(a, x)
        near = is_near(a, x)
        active = ~(none | wrong | missing)
        if by_expansion:
            active = active & ~near
        if part is not Part.SAMPLE:
            # Where the factor underflows, the derivative is 0. That of a sample has no factor.
            active = active & ~(power < -np.log(float(info.max)))
        ax = _factor(a, x, power, info)
        slope = upper.where(
            -_gamma_fraction(ax, x, a, active & upper, eps, part),
            _gamma_series(ax, x, a, active & ~upper, eps, part),
        )
        if by_expansion:
            expansion = if_any(near, a, lambda: temme_by_a(a, x, eps), 2)
            slope = near.where(expansion[0 if part is Part.DERIVATIVE else 1], slope)
        return (wrong | missing).where(np.nan, none.where(0.0, slope))

    return formula


def _density(a: Formula, x: Formula, info: Any) -> Formula:
    # a - 1 is rounded below 1/2.
    divides = (a < 0.5) & (x > 0.0)
    exponent = divides.where(a, a - 1.0)
    total = -x + log_power(log(x), exponent) - log_gamma(a)
    near = power_product(x, exponent, [-x, -log_gamma(a)], total, info)
    near = divides.where(near / x, near)
    large = (a >= STIRLING) & (x > 0.0)
    log_factor = if_any(large, a, lambda: [log_gamma_factor(a, x)])[0]
    factor = exp(log_factor)
    value = large.where((factor >= float(info.tiny)).where(factor / x, exp(log_factor - log(x))), near)
    none = x.equals(math.inf) | a.equals(math.inf)
    return _outside(a, x).where(np.nan, none.where(0.0, value))


def _twice_by_a(a: Formula, x: Formula, info: Any) -> Formula:
    # Not that of the expansion, which has a difference of large numbers where x is near a.
    by_a = _by_a(Part.DERIVATIVE, by_expansion=False)
    return derivative(lambda a: by_a(a, x, info), a, x.equals(0.0) | x.equals(np.inf))


def _density_slope(t: Any, out: Any, slope: Formula) -> Any:
    """The tangent of the density, given the derivative of its logarithm."""
    return e.mul(t, e.mul(out, slope.x))


def _quotient(x: Formula, y: Formula) -> Formula:
    """x / y, 0 where both are 0."""
    return x.equals(0.0).where(0.0, x / y)


#: the derivative of igamma by x
igamma_density = binary(
    "igamma_density",
    lowered_as(with_limits(_density)),
    accepts=FLOAT,
    costly=True,
    tangents=(
        lambda t, a, x, out: _density_slope(t, out, log(Formula(x)) - Formula(digamma(a))),
        lambda t, a, x, out: _density_slope(t, out, _quotient(Formula(a) - 1.0, Formula(x)) - 1.0),
    ),
)

#: the regularized incomplete gamma function, and 1 minus it
igamma = binary(
    "igamma",
    lowered_as(with_limits(_igamma)),
    accepts=FLOAT,
    costly=True,
    tangents=(
        lambda t, a, x, out: e.mul(t, igamma_grad_a(a, x)),
        lambda t, a, x, out: e.mul(t, igamma_density(a, x)),
    ),
)
igammac = binary(
    "igammac",
    lowered_as(with_limits(_igammac)),
    accepts=FLOAT,
    costly=True,
    tangents=(
        lambda t, a, x, out: e.neg(e.mul(t, igamma_grad_a(a, x))),
        lambda t, a, x, out: e.neg(e.mul(t, igamma_density(a, x))),
    ),
)
#: the derivative of igamma by a, and the second one
igamma_grad_a = binary(
    "igamma_grad_a",
    lowered_as(with_limits(_by_a(Part.DERIVATIVE))),
    accepts=FLOAT,
    costly=True,
    tangents=(
        lambda t, a, x, out: e.mul(t, igamma_second_a(a, x)),
        lambda t, a, x, out: _density_slope(t, igamma_density(a, x), log(Formula(x)) - Formula(digamma(a))),
    ),
)
igamma_second_a = binary("igamma_second_a", lowered_as(with_limits(_twice_by_a)), accepts=FLOAT, costly=True)

#: the derivative of a sample of the gamma distribution with respect to its parameter; for arrays of equal shapes
sample_derivative = with_limits(_by_a(Part.SAMPLE))
