"""Incomplete gamma and beta functions, computed by series and continued fractions until convergence.

Cases and bounds are those of Cephes: the series where x is small or less than a, the continued fraction elsewhere. Each
loop also carries derivatives with respect to a, so that one program serves the functions and their derivatives. Where a
is large and x near it, `large_parameters.temme` takes the place of the loops.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.primitive import Primitive
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, add
from ..._transform.jvp import jvp
from ..._transform.padding import pad_elementwise
from ..._xla.text import Function, Value
from ..control.loop import repeat
from ..elementwise.families import elementwise_batch
from ..reductions.reduce import reduce_or
from ..structure.shape import convert
from . import arithmetic as e
from .families import (
    FLOAT,
    binary,
    broadcast_shape,
    check_kind,
    fit,
    literal,
    lowered_as,
    repeat_to,
    same_dtype,
)
from .formula import Formula, exp, log, log1p, rounded_once
from .large_parameters import STIRLING, is_near, log_beta_factor, log_gamma_factor, log_gamma_ratio, temme
from .log_gamma import log_gamma_1p
from .special import digamma, lgamma


class Part(enum.Enum):
    """What to compute of the incomplete gamma function: its value, its derivative by a, or that of a sample by a."""

    VALUE = 1
    DERIVATIVE = 2
    SAMPLE = 3


def _lgamma(x: Formula) -> Formula:
    return Formula(lgamma(x.x))


def _any(x: Formula) -> Any:
    return reduce_or(x.x, axes=tuple(range(typeof(x.x).ndim)))


def _loop(go_on: Callable[..., Any], turn: Callable[..., Sequence[Formula]], start: Sequence[Formula]) -> list[Formula]:
    """A while loop over formulas: `turn` is the body, `go_on` the condition."""
    results = repeat(
        lambda *xs: go_on(*map(Formula, xs)),
        lambda *xs: [y.x for y in turn(*map(Formula, xs))],
        [x.x for x in start],
    )
    return [Formula(x) for x in results]


def _if_any(mask: Formula, like: Formula, compute: Callable[[], Sequence[Formula]], count: int = 1) -> list[Formula]:
    """The `count` results of `compute`; zeros if `mask` is nowhere true. This is a loop of at most one turn: most
    calls have small parameters only."""
    start = [Formula(_any(mask)), *[like.full(0)] * count]
    return _loop(lambda go_on, *_: go_on.x, lambda *_: [Formula(np.False_), *compute()], start)[1:]


def _keep(active: Formula, new: Sequence[Formula], old: Sequence[Formula]) -> list[Formula]:
    """`new` where the loop is still active, else `old`."""
    return [active.where(n, o) for n, o in zip(new, old, strict=True)]


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
        return [active & far, *_keep(active, [r, c, total, dc, dtotal], old)]

    one, zero = a.full(1), a.full(0)
    _, _, _, total, _, dtotal = _loop(lambda active, *_: _any(active), turn, [active, a, one, one, zero, zero])
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
        return ((count < 2000.0) & Formula(_any(active))).x

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
        return [active & far, count, *_keep(active, [ans, y, z, *shifted, new], old)]

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
    _, _, ans, *_, dans = _loop(go_on, turn, [active, count, *carry])
    if part is Part.VALUE:
        return ans * ax
    slope = log(x) - Formula(digamma(a.x))
    if part is Part.DERIVATIVE:
        return ax * (ans * slope + dans)
    return -((dans + ans * slope) * x)


def _with_limits(formula: Callable[..., Formula]) -> Callable[..., Any]:
    """The formula as a function of arrays; its last argument is the `finfo` of the dtype that it is computed in."""
    return rounded_once(lambda *xs, **params: formula(*xs, dtypes.finfo(typeof(xs[0].x).dtype), **params))


def _outside(a: Formula, x: Formula) -> Formula:
    equal_limits = x.equals(a) & (a.equals(0.0) | a.equals(math.inf))
    return (x < 0.0) | (a < 0.0) | equal_limits | a.is_nan | x.is_nan


def _log_factor(a: Formula, x: Formula) -> Formula:
    large = a >= STIRLING
    return large.where(_if_any(large, a, lambda: [log_gamma_factor(a, x)])[0], a * log(x) - x - _lgamma(a))


def _power_product(x: Formula, exponent: Formula, logs: Sequence[Formula], total: Formula, info: Any) -> Formula:
    """``x**exponent exp(logs[0]) exp(logs[1]) …``, of which `total` is the logarithm.

    The exponential of `total` alone would multiply its rounding error by its size. It is for products that are too
    large or too small for the dtype on the way.
    """
    product = Formula(e.pow_(x.x, exponent.x))
    steps = [product := product * exp(part) for part in logs]
    least = functools.reduce(lambda low, step: (step < low).where(step, low), steps)
    most = functools.reduce(lambda high, step: (step > high).where(step, high), steps)
    return ((least >= float(info.tiny)) & (most <= float(info.max))).where(product, exp(total))


def _factor(a: Formula, x: Formula, power: Formula, info: Any) -> Formula:
    """``x**a exp(-x) / gamma(a)``, of which `power` is the logarithm."""
    return (a >= STIRLING).where(exp(power), _power_product(x, a, [-x, -_lgamma(a)], power, info))


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
    value = near.where(_if_any(near, a, lambda: temme(a, x, eps), 2)[0], value)
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
    value = near.where(_if_any(near, a, lambda: temme(a, x, eps), 2)[1], value)
    value = small.where(_if_any(small, a, lambda: [_small_complement(a, x, info)])[0], value)
    return wrong.where(np.nan, nothing.where(0.0, all_.where(1.0, value)))


def _by_a(part: Part) -> Callable[..., Formula]:
    def formula(a: Formula, x: Formula, info: Any) -> Formula:
        eps = float(info.eps)
        none = x.equals(0.0)
        x = none.where(1.0, x)  # the logarithm of 0 would reach the derivative
        wrong = (x < 0.0) | (a <= 0.0)
        missing = a.is_nan | x.is_nan
        upper = (x > 1.0) & (x > a)
        power = _log_factor(a, x)
        # Temme's expansion has the values only. Derivatives by a always take the loops.
        active = ~(none | wrong | missing)
        if part is not Part.SAMPLE:
            # Where the factor underflows, the derivative is 0. That of a sample has no factor.
            active = active & ~(power < -np.log(float(info.max)))
        ax = _factor(a, x, power, info)
        slope = upper.where(
            -_gamma_fraction(ax, x, a, active & upper, eps, part),
            _gamma_series(ax, x, a, active & ~upper, eps, part),
        )
        return (wrong | missing).where(np.nan, none.where(0.0, slope))

    return formula


def _log_power(log: Formula, exponent: Formula) -> Formula:
    """The logarithm of a power: 0 for exponent 0, also where `log` is infinite.

    There alone, as the derivative by the exponent is `log` at 0 too."""
    endless = exponent.equals(0.0) & abs(log).equals(math.inf)
    return exponent * endless.where(0.0, log)


def _density(a: Formula, x: Formula, info: Any) -> Formula:
    # a - 1 is rounded below 1/2.
    divides = (a < 0.5) & (x > 0.0)
    exponent = divides.where(a, a - 1.0)
    total = -x + _log_power(log(x), exponent) - _lgamma(a)
    near = _power_product(x, exponent, [-x, -_lgamma(a)], total, info)
    near = divides.where(near / x, near)
    large = (a >= STIRLING) & (x > 0.0)
    log_factor = _if_any(large, a, lambda: [log_gamma_factor(a, x)])[0]
    factor = exp(log_factor)
    value = large.where((factor >= float(info.tiny)).where(factor / x, exp(log_factor - log(x))), near)
    none = x.equals(math.inf) | a.equals(math.inf)
    return _outside(a, x).where(np.nan, none.where(0.0, value))


def _slope(function: Callable[[Formula], Formula], at: Formula, limits: Formula) -> Formula:
    """The derivative of a formula through its loops: 0 at `limits`, nan where the value is nan."""
    (out,), (slope,) = jvp(lambda x: [function(Formula(x)).x], [at.x], [at.full(1).x])
    return Formula(out).is_nan.where(Formula(out), limits.where(0.0, Formula(slope)))


def _twice_by_a(a: Formula, x: Formula, info: Any) -> Formula:
    by_a = _by_a(Part.DERIVATIVE)
    return _slope(lambda a: by_a(a, x, info), a, x.equals(0.0) | x.equals(np.inf))


def _density_slope(t: Any, out: Any, slope: Formula) -> Any:
    """The tangent of the density, given the derivative of its logarithm."""
    return e.mul(t, e.mul(out, slope.x))


def _quotient(x: Formula, y: Formula) -> Formula:
    """x / y, 0 where both are 0."""
    return x.equals(0.0).where(0.0, x / y)


#: the derivative of igamma by x
igamma_density = binary(
    "igamma_density",
    lowered_as(_with_limits(_density)),
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
    lowered_as(_with_limits(_igamma)),
    accepts=FLOAT,
    costly=True,
    tangents=(
        lambda t, a, x, out: e.mul(t, igamma_grad_a(a, x)),
        lambda t, a, x, out: e.mul(t, igamma_density(a, x)),
    ),
)
igammac = binary(
    "igammac",
    lowered_as(_with_limits(_igammac)),
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
    lowered_as(_with_limits(_by_a(Part.DERIVATIVE))),
    accepts=FLOAT,
    costly=True,
    tangents=(
        lambda t, a, x, out: e.mul(t, igamma_second_a(a, x)),
        lambda t, a, x, out: _density_slope(t, igamma_density(a, x), log(Formula(x)) - Formula(digamma(a))),
    ),
)
igamma_second_a = binary("igamma_second_a", lowered_as(_with_limits(_twice_by_a)), accepts=FLOAT, costly=True)

#: the derivative of a sample of the gamma distribution with respect to its parameter; for arrays of equal shapes
sample_derivative = _with_limits(_by_a(Part.SAMPLE))

# --- beta -----------------------------------------------------------------------------------------------


def _numerator(a: Formula, b: Formula, x: Formula, count: Formula) -> Formula:
    """The numerators of the continued fraction: 1 first, then those of DLMF 8.17.23, even and odd in turn."""
    m = Formula(convert(e.div((count - 1).x, literal(count.x, 2)), typeof(a.x).dtype))
    even = Formula(e.rem(count.x, literal(count.x, 2))).equals(0)
    first = -(a + b) * x / (a + 1.0)
    above = m.equals(0.0).everywhere_like(a)
    later = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
    odd = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
    numerator = even.everywhere_like(a).where(above.where(first, later), odd)
    return count.equals(1).everywhere_like(a).where(1.0, numerator)


def _turn(a: Formula, b: Formula, x: Formula, count: Formula, state: Sequence[Formula], small: float) -> list[Formula]:
    """The next state of the method of Lentz, whose last part is the fraction so far, and the factor that it got."""
    c, d, h = state

    def away(v: Formula) -> Formula:
        return (abs(v) < small).where(small, v)

    # Lentz's method keeps quotients of neighbouring convergents, c of numerators and d of denominators. `away` replaces
    # quotients of zero.
    above = _numerator(a, b, x, count)
    c = away(1.0 + above / c)
    d = 1.0 / away(1.0 + above * d)
    delta = c * d
    return [c, d, h * delta, delta]


def _small_and_limit(info: Any) -> tuple[float, int]:
    # The bounds of JAX.
    return float(info.eps) / 2, 200 if info.bits == 32 else 600


def _fraction(a: Formula, b: Formula, x: Formula, info: Any) -> Formula:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by the method of Lentz."""
    small, limit = _small_and_limit(info)

    def turn(count: Formula, active: Formula, *state: Formula) -> list[Formula]:
        *new, delta = _turn(a, b, x, count, state, small)
        # Elements that have converged keep their values: each further factor would add its rounding error.
        return [count + 1, active & (abs(delta - 1.0) >= small), *_keep(active, new, state)]

    start = x.full(small)
    carry = [Formula(np.int32(1)), x.equals(x), start, x.full(0), start]
    return _loop(lambda count, active, *_: ((count < limit) & Formula(_any(active))).x, turn, carry)[-1]


def _fraction_and_slope(
    a: Formula, b: Formula, x: Formula, directions: Sequence[Formula], info: Any
) -> tuple[Formula, Formula]:
    """The fraction and its derivative in a direction of a and b. Derivatives need further turns, all of them where b is
    a whole number: there the fraction ends, but not its derivative by b."""
    small, limit = _small_and_limit(info)

    def turn(count: Formula, active: Formula, *state: Formula) -> list[Formula]:
        def step(*xs: Any) -> list[Any]:
            return [y.x for y in _turn(Formula(xs[0]), Formula(xs[1]), x, count, list(map(Formula, xs[2:])), small)]

        operands = [v.x for v in (a, b, *state[:3])]
        outs, slopes = jvp(step, operands, [v.x for v in (*directions, *state[3:])])
        (*values, delta), (*moves, ddelta) = map(Formula, outs), map(Formula, slopes)
        far = (abs(delta - 1.0) >= small) | (abs(values[-1] * ddelta) > small * abs(moves[-1]))
        return [count + 1, active & far, *_keep(active, [*values, *moves], state)]

    start, zero = x.full(small), x.full(0)
    carry = [Formula(np.int32(1)), x.equals(x), start, zero, start, zero, zero, zero]
    results = _loop(lambda count, active, *_: ((count < limit) & Formula(_any(active))).x, turn, carry)
    return results[-4], results[-1]


def _is_fast(a: Formula, b: Formula, x: Formula) -> Formula:
    """Mask of the elements whose fraction converges fast; the others are computed by symmetry."""
    return x < (a + 1.0) / (a + b + 2.0)


def _swapped(fast: Formula, a: Formula, b: Formula, x: Formula) -> tuple[Formula, Formula, Formula]:
    return fast.where(a, b), fast.where(b, a), fast.where(x, 1.0 - x)


def _steps(a: Formula, b: Formula, x: Formula) -> tuple[Formula, Formula, Formula]:
    """The masks of the elements whose function of x is a step at 0, or at 1, and of those outside of the domain."""
    at_0, at_1 = a.equals(0.0) | b.equals(np.inf), b.equals(0.0) | a.equals(np.inf)
    wrong = (a < 0.0) | (b < 0.0) | (x < 0.0) | (x > 1.0) | (at_0 & at_1)
    return at_0, at_1, wrong | a.is_nan | b.is_nan | x.is_nan


def _betainc(a: Formula, b: Formula, x: Formula, info: Any, fraction: Callable[..., Formula] = _fraction) -> Formula:
    step_at_0, step_at_1, wrong = _steps(a, b, x)
    start, end = x.equals(0.0), x.equals(1.0)
    zero = (step_at_1 & ~end) | (step_at_0 & start)
    one = (step_at_0 & ~start) | (step_at_1 & end)
    fast = _is_fast(a, b, x)
    a, b, x = _swapped(fast, a, b, x)
    # For large parameters lgamma(a + b) is close to lgamma of the larger one: their difference has its own formula.
    less, more = (a < b).where(a, b), (a < b).where(b, a)
    large, both = more >= STIRLING, less >= STIRLING
    asymptotic = _if_any(large, a, lambda: [log_gamma_ratio(more, less), log_beta_factor(a, b, x)], 2)
    ratio = large.where(asymptotic[0], _lgamma(a + b) - _lgamma(more))
    power, tiny = log(x) * a + log1p(-x) * b, a < float(info.tiny) * 2
    # For tiny `a` both 1 / a and gamma(a) may overflow. There a gamma(a) is 1, and x**a is 1 too.
    norm = ratio - _lgamma(less)
    product = _power_product(x, a, [log1p(-x) * b, norm], power + norm, info)
    factor = tiny.where(exp(log1p(-x) * b + ratio), product / a)
    factor = both.where(exp(asymptotic[1]) / a, factor)
    value = fraction(a, b, x, info) * factor
    value = fast.where(value, 1.0 - value)
    return wrong.where(np.nan, one.where(1.0, zero.where(0.0, value)))


def _beta_types(*avals: ShapedArray, **_: int) -> ShapedArray:
    name = "regularized_incomplete_beta"
    check_kind(name, avals[0], FLOAT)
    return shaped(broadcast_shape(name, avals), same_dtype(name, avals), all(a.weak_type for a in avals))


def _beta_lower(f: Function, *args: Value) -> Value:
    shape = f.out.shape
    return lowered_as(_with_limits(_betainc))(f, *[fit(f, x, shape) for x in args])


def _beta_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    out = regularized_incomplete_beta(*primals)
    # The derivative by x is a formula, those by a and b are loops.
    rules: list[Callable[..., Any]] = [
        functools.partial(betainc_grad, by=0),
        functools.partial(betainc_grad, by=1),
        _beta_density,
    ]
    return out, _beta_tangent(rules, primals, tangents, out)


def _beta_tangent(
    rules: Sequence[Callable[..., Any]], primals: Sequence[Any], tangents: Sequence[Any], out: Any
) -> Any:
    """The tangent of `out`, whose derivatives by its operands the rules compute."""
    total: Any = Zero(typeof(out).tangent())
    for rule, t in zip(rules, tangents, strict=True):
        if type(t) is not Zero:
            total = add(total, e.mul(rule(*primals), repeat_to(t, typeof(out).shape)))
    return total


def _beta_density(*operands: Any) -> Any:
    """The derivative by x."""
    shape = broadcast_shape("regularized_incomplete_beta", [typeof(v) for v in operands])
    a, b, x = (Formula(repeat_to(v, shape)) for v in operands)
    less, more = (a < b).where(a, b), (a < b).where(b, a)
    large, both = more >= STIRLING, (less >= STIRLING) & (x > 0.0) & (x < 1.0)
    ratio = large.where(log_gamma_ratio(large.where(more, STIRLING), less), _lgamma(a + b) - _lgamma(more))
    power = _log_power(log1p(-x), b - 1.0) + _log_power(log(x), a - 1.0) + ratio - _lgamma(less)
    middle = both.where(x, 0.5)
    factor = log_beta_factor(both.where(a, STIRLING), both.where(b, STIRLING), middle)
    density = exp(both.where(factor - log(middle) - log1p(-middle), power))
    step_at_0, step_at_1, wrong = _steps(a, b, x)
    none = (step_at_0 & ~x.equals(0.0)) | (step_at_1 & ~x.equals(1.0))
    return wrong.where(np.nan, none.where(0.0, density)).x


def _beta_by(a: Formula, b: Formula, x: Formula, info: Any, by: int) -> Formula:
    """The derivative by a (`by=0`) or b: the fraction is differentiated turn by turn, as in R. J. Boik and J. F.
    Robison-Cox, Derivatives of the incomplete beta function, J. Stat. Software 3 (1998)."""
    fast, one, zero = _is_fast(a, b, x), a.full(1), a.full(0)
    same, other = fast.where(one, zero), fast.where(zero, one)
    value, slope = _fraction_and_slope(*_swapped(fast, a, b, x), (other, same) if by else (same, other), info)
    parameters = [a, b]
    at = parameters[by]

    def function(parameter: Formula) -> Formula:
        parameters[by] = parameter
        # The loop is not run again under `jvp`: a line with its value and slope stands in for it.
        return _betainc(parameters[0], parameters[1], x, info, lambda *_: value + slope * (parameter - at))

    return _slope(function, at, x.equals(0.0) | x.equals(1.0))  # there the value is 0 or 1


def _beta_twice_by(a: Formula, b: Formula, x: Formula, info: Any, by: int, then: int) -> Formula:
    """The derivative by both of two parameters, the operands number `by` and `then`."""

    def derived(by: int, then: int) -> Formula:
        parameters = [a, b]

        def function(parameter: Formula) -> Formula:
            parameters[then] = parameter
            return _beta_by(parameters[0], parameters[1], x, info, by)

        return _slope(function, parameters[then], x.equals(0.0) | x.equals(1.0))

    if by == then:
        return derived(by, then)
    # By the second parameter of the fraction first, which is a whole number where the fraction ends: then the loop of
    # `_beta_by` goes on.
    return _is_fast(a, b, x).where(derived(1, 0), derived(0, 1))


def _beta_grad_lower(f: Function, *args: Value, by: int) -> Value:
    return lowered_as(_with_limits(_beta_by))(f, *[fit(f, x, f.out.shape) for x in args], by=by)


def _beta_grad_jvp(primals: Sequence[Any], tangents: Sequence[Any], by: int) -> tuple[Any, Any]:
    out = betainc_grad(*primals, by=by)

    def density_slope(*operands: Any) -> Any:
        # The derivative of the logarithm of the density by one of its parameters
        a, b, x = (Formula(repeat_to(v, typeof(out).shape)) for v in operands)
        power = log1p(-x) if by else log(x)
        slope = power - Formula(digamma((b if by else a).x)) + Formula(digamma((a + b).x))
        return e.mul(_beta_density(*operands), slope.x)

    rules: list[Callable[..., Any]]
    rules = [*(functools.partial(betainc_second, by=by, then=then) for then in (0, 1)), density_slope]
    return out, _beta_tangent(rules, primals, tangents, out)


def _beta_second_lower(f: Function, *args: Value, by: int, then: int) -> Value:
    return lowered_as(_with_limits(_beta_twice_by))(f, *[fit(f, x, f.out.shape) for x in args], by=by, then=then)


regularized_incomplete_beta = Primitive(
    "regularized_incomplete_beta",
    types=_beta_types,
    lower=_beta_lower,
    jvp=_beta_jvp,
    batch=elementwise_batch(lambda: regularized_incomplete_beta),
    pad=pad_elementwise,
    nan_checked=True,
    costly=True,
)

#: the derivative of regularized_incomplete_beta by its operand number `by`, 0 or 1
betainc_grad = Primitive(
    "betainc_grad",
    types=_beta_types,
    lower=_beta_grad_lower,
    jvp=_beta_grad_jvp,
    batch=elementwise_batch(lambda: betainc_grad),
    pad=pad_elementwise,
    nan_checked=True,
    costly=True,
)

#: the derivative of betainc_grad by its operand number `then`, 0 or 1
betainc_second = Primitive(
    "betainc_second",
    types=_beta_types,
    lower=_beta_second_lower,
    batch=elementwise_batch(lambda: betainc_second),
    pad=pad_elementwise,
    nan_checked=True,
    costly=True,
)
