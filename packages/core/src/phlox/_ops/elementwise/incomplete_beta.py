"""The incomplete beta function and its derivatives, by its continued fraction until convergence.

The loop also carries derivatives by the parameters. Factors of large parameters are those of `large_parameters`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._ir.avals import ShapedArray, shaped
from ..._ir.primitive import Primitive
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, add
from ..._transform.jvp import jvp
from ..._transform.padding import pad_elementwise
from ..._xla.text import Function, Value
from ..structure.shape import convert
from . import arithmetic as e
from .families import (
    FLOAT,
    broadcast_shape,
    check_kind,
    elementwise_batch,
    fit,
    literal,
    lowered_as,
    repeat_to,
    same_dtype,
)
from .formula import Formula, exp, log, log1p, sqrt
from .iterated import any_element, derivative, if_any, keep, log_gamma, log_power, loop, power_product, with_limits
from .large_parameters import STIRLING, log_beta_factor, log_gamma_ratio
from .special import digamma


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


def _small_and_limit(a: Formula, b: Formula, info: Any) -> tuple[float, Formula]:
    # The bounds of JAX, or as many turns as large parameters need where x is near the mean.
    least, needed = 200.0 if info.bits == 32 else 600.0, 3.0 * sqrt(_ordered(a, b)[0])
    return float(info.eps) / 2, (needed > least).where(needed, least)


def _fraction(a: Formula, b: Formula, x: Formula, info: Any) -> Formula:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by the method of Lentz."""
    small, limit = _small_and_limit(a, b, info)

    def turn(count: Formula, active: Formula, *state: Formula) -> list[Formula]:
        *new, delta = _turn(a, b, x, count, state, small)
        # Elements that have converged keep their values: each further factor would add its rounding error.
        far = (abs(delta - 1.0) >= small) & (count.to(typeof(limit.x).dtype).everywhere_like(limit) < limit)
        return [count + 1, active & far, *keep(active, new, state)]

    start = x.full(small)
    carry = [Formula(np.int32(1)), x.equals(x), start, x.full(0), start]
    return loop(lambda count, active, *_: any_element(active), turn, carry)[-1]


def _fraction_and_slope(
    a: Formula, b: Formula, x: Formula, directions: Sequence[Formula], info: Any
) -> tuple[Formula, Formula]:
    """The fraction and its derivative in a direction of a and b. Derivatives need further turns, all of them where b is
    a whole number: there the fraction ends, but not its derivative by b."""
    small, limit = _small_and_limit(a, b, info)

    def turn(count: Formula, active: Formula, *state: Formula) -> list[Formula]:
        def step(*xs: Any) -> list[Any]:
            return [y.x for y in _turn(Formula(xs[0]), Formula(xs[1]), x, count, list(map(Formula, xs[2:])), small)]

        operands = [v.x for v in (a, b, *state[:3])]
        outs, slopes = jvp(step, operands, [v.x for v in (*directions, *state[3:])])
        (*values, delta), (*moves, ddelta) = map(Formula, outs), map(Formula, slopes)
        far = (abs(delta - 1.0) >= small) | (abs(values[-1] * ddelta) > small * abs(moves[-1]))
        far = far & (count.to(typeof(limit.x).dtype).everywhere_like(limit) < limit)
        return [count + 1, active & far, *keep(active, [*values, *moves], state)]

    start, zero = x.full(small), x.full(0)
    carry = [Formula(np.int32(1)), x.equals(x), start, zero, start, zero, zero, zero]
    results = loop(lambda count, active, *_: any_element(active), turn, carry)
    return results[-4], results[-1]


def _is_fast(a: Formula, b: Formula, x: Formula) -> Formula:
    """Mask of the elements whose fraction converges fast; the others are computed by symmetry."""
    return x < (a + 1.0) / (a + b + 2.0)


def _swapped(fast: Formula, a: Formula, b: Formula, x: Formula) -> tuple[Formula, Formula, Formula]:
    return fast.where(a, b), fast.where(b, a), fast.where(x, 1.0 - x)


def _ordered(a: Formula, b: Formula) -> tuple[Formula, Formula]:
    """The smaller and the larger of the two."""
    return (a < b).where(a, b), (a < b).where(b, a)


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
    less, more = _ordered(a, b)
    large, both = more >= STIRLING, less >= STIRLING
    asymptotic = if_any(large, a, lambda: [log_gamma_ratio(more, less), log_beta_factor(a, b, x)], 2)
    ratio = large.where(asymptotic[0], log_gamma(a + b) - log_gamma(more))
    power, tiny = log(x) * a + log1p(-x) * b, a < float(info.tiny) * 2
    # For tiny `a` both 1 / a and gamma(a) may overflow. There a gamma(a) is 1, and x**a is 1 too.
    norm = ratio - log_gamma(less)
    product = power_product(x, a, [log1p(-x) * b, norm], power + norm, info)
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
    return lowered_as(with_limits(_betainc))(f, *[fit(f, x, shape) for x in args])


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
    less, more = _ordered(a, b)
    large, both = more >= STIRLING, (less >= STIRLING) & (x > 0.0) & (x < 1.0)
    ratio = large.where(log_gamma_ratio(large.where(more, STIRLING), less), log_gamma(a + b) - log_gamma(more))
    power = log_power(log1p(-x), b - 1.0) + log_power(log(x), a - 1.0) + ratio - log_gamma(less)
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

    return derivative(function, at, x.equals(0.0) | x.equals(1.0))  # there the value is 0 or 1


def _beta_twice_by(a: Formula, b: Formula, x: Formula, info: Any, by: int, then: int) -> Formula:
    """The derivative by both of two parameters, the operands number `by` and `then`."""

    def derived(by: int, then: int) -> Formula:
        parameters = [a, b]

        def function(parameter: Formula) -> Formula:
            parameters[then] = parameter
            return _beta_by(parameters[0], parameters[1], x, info, by)

        return derivative(function, parameters[then], x.equals(0.0) | x.equals(1.0))

    if by == then:
        return derived(by, then)
    # By the second parameter of the fraction first, which is a whole number where the fraction ends: then the loop of
    # `_beta_by` goes on.
    return _is_fast(a, b, x).where(derived(1, 0), derived(0, 1))


def _beta_grad_lower(f: Function, *args: Value, by: int) -> Value:
    return lowered_as(with_limits(_beta_by))(f, *[fit(f, x, f.out.shape) for x in args], by=by)


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
    return lowered_as(with_limits(_beta_twice_by))(f, *[fit(f, x, f.out.shape) for x in args], by=by, then=then)


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
