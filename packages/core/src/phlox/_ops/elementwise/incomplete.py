"""Incomplete gamma and beta functions, computed by series and continued fractions until convergence.

Cases and bounds are those of Cephes: the series where x is small or less than a, the continued fraction elsewhere. Each
loop also carries derivatives with respect to a, so that one program serves the functions and their derivatives.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.primitive import Primitive
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero
from ..._transform.batch import BatchAxis, Dim
from ..._xla.text import Function, Value
from ..control.loop import repeat
from ..reductions.reduce import reduce_or
from ..structure.shape import convert
from . import arithmetic as e
from .families import (
    FLOAT,
    batch_elementwise,
    binary,
    broadcast_shape,
    check_kind,
    fit,
    literal,
    lowered_as,
    repeat_to,
    same_dtype,
)
from .formula import Formula, exp, log, log1p
from .special import digamma, lgamma, no_derivative


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
    found = repeat(
        lambda *xs: go_on(*map(Formula, xs)),
        lambda *xs: [y.x for y in turn(*map(Formula, xs))],
        [x.x for x in start],
    )
    return [Formula(x) for x in found]


def _keep(active: Formula, new: Sequence[Formula], old: Sequence[Formula]) -> list[Formula]:
    """`new` where the loop is still active, else `old`."""
    return [active.where(n, o) for n, o in zip(new, old, strict=True)]


def _gamma_series(ax: Formula, x: Formula, a: Formula, active: Formula, eps: float, part: Part) -> Formula:
    def turn(active: Formula, *old: Formula) -> list[Formula]:
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
    slope = log(x) - Formula(digamma((a + 1.0).x))
    if part is Part.DERIVATIVE:
        return ax * (total * slope + dtotal) / a
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
        fine = q.differs(0.0)
        ratio = p / q
        change = fine.where(abs((ans - ratio) / ratio), 1.0)
        ans = fine.where(ratio, ans)
        dp = dp1 * z - p1 - dp2 * yc + p2 * count
        dq = dq1 * z - q1 - dq2 * yc + q2 * count
        new = fine.where((dp - ans * dq) / q, dans)
        dchange = fine.where(abs(new - dans), 1.0)
        large = abs(p) > 1 / eps
        shifted = [large.where(v * eps, v) for v in (p, q, p1, q1, dp1, dq1, dp, dq)]
        far = change > eps if part is Part.VALUE else dchange > eps
        return [active & far, count, *_keep(active, [ans, y, z, *shifted, new], old)]

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


def _widened(formula: Callable[..., Formula]) -> Callable[..., Any]:
    """The formula as a function of arrays; dtypes narrower than float32 are computed in float32."""

    def run(*args: Any) -> Any:
        dtype = typeof(args[0]).dtype
        wide = dtypes.float64 if dtype == dtypes.float64 else dtypes.float32
        return convert(formula(*[Formula(convert(x, wide)) for x in args], dtypes.finfo(wide)).x, dtype)

    return run


def _outside(a: Formula, x: Formula) -> Formula:
    return (x < 0.0) | (a < 0.0) | (a.equals(0.0) & x.equals(0.0)) | a.is_nan | x.is_nan


def _log_factor(a: Formula, x: Formula) -> Formula:
    return a * log(x) - x - _lgamma(a)


def _igamma(a: Formula, x: Formula, info: Any) -> Formula:
    eps = float(info.eps)
    none, all_ = x.equals(0.0), x.equals(np.inf)
    wrong = _outside(a, x)
    upper = (x >= 1.0) & (x > a)
    power = _log_factor(a, x)
    active = ~(none | wrong | (power < -np.log(float(info.max))) | all_)
    ax = exp(power)
    found = upper.where(
        1.0 - _gamma_fraction(ax, x, a, active & upper, eps, Part.VALUE),
        _gamma_series(ax, x, a, active & ~upper, eps, Part.VALUE),
    )
    return wrong.where(np.nan, all_.where(1.0, none.where(0.0, found)))


def _igammac(a: Formula, x: Formula, info: Any) -> Formula:
    eps = float(info.eps)
    nothing = x.equals(np.inf) | a.equals(0.0)
    wrong = _outside(a, x)
    lower = (x < 1.0) | (x < a)
    power = _log_factor(a, x)
    active = ~(wrong | (power < -np.log(float(info.max))) | nothing)
    ax = exp(power)
    found = lower.where(
        1.0 - _gamma_series(ax, x, a, active & lower, eps, Part.VALUE),
        _gamma_fraction(ax, x, a, active & ~lower, eps, Part.VALUE),
    )
    return wrong.where(np.nan, nothing.where(0.0, found))


def _by_a(part: Part) -> Callable[..., Formula]:
    def formula(a: Formula, x: Formula, info: Any) -> Formula:
        eps = float(info.eps)
        none = x.equals(0.0)
        wrong = (x < 0.0) | (a <= 0.0)
        missing = a.is_nan | x.is_nan
        upper = (x > 1.0) & (x > a)
        power = _log_factor(a, x)
        active = ~(none | wrong | (power < -np.log(float(info.max))) | missing)
        ax = exp(power)
        found = upper.where(
            -_gamma_fraction(ax, x, a, active & upper, eps, part),
            _gamma_series(ax, x, a, active & ~upper, eps, part),
        )
        return (wrong | missing).where(np.nan, none.where(0.0, found))

    return formula


def _density(a: Any, x: Any) -> Any:
    """The derivative of igamma by x."""
    a, x = (Formula(repeat_to(v, broadcast_shape("igamma", [typeof(a), typeof(x)]))) for v in (a, x))
    return exp(-x + (a - 1.0) * log(x) - _lgamma(a)).x


#: the regularized incomplete gamma function, and 1 minus it
igamma = binary(
    "igamma",
    lowered_as(_widened(_igamma)),
    accepts=FLOAT,
    tangents=(
        lambda t, a, x, out: e.mul(t, igamma_grad_a(a, x)),
        lambda t, a, x, out: e.mul(t, _density(a, x)),
    ),
)
igammac = binary(
    "igammac",
    lowered_as(_widened(_igammac)),
    accepts=FLOAT,
    tangents=(
        lambda t, a, x, out: e.neg(e.mul(t, igamma_grad_a(a, x))),
        lambda t, a, x, out: e.neg(e.mul(t, _density(a, x))),
    ),
)
igamma_grad_a = binary("igamma_grad_a", lowered_as(_widened(_by_a(Part.DERIVATIVE))), accepts=FLOAT)

#: the derivative of a sample of the gamma distribution with respect to its parameter; for arrays of equal shapes
sample_derivative = _widened(_by_a(Part.SAMPLE))

# --- beta -----------------------------------------------------------------------------------------------


def _fraction(a: Formula, b: Formula, x: Formula, info: Any) -> Formula:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by the method of Lentz."""
    small = float(info.eps) / 2
    limit = 200 if info.bits == 32 else 600

    def numerator(count: Formula) -> Formula:
        """1 first, then the numbers of DLMF 8.17.23, even and odd in turn."""
        m = Formula(convert(e.div((count - 1).x, literal(count.x, 2)), typeof(a.x).dtype))
        even = Formula(e.rem(count.x, literal(count.x, 2))).equals(0)
        first = -(a + b) * x / (a + 1.0)
        above = m.equals(0.0).everywhere_like(a)
        later = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        odd = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        found = even.everywhere_like(a).where(above.where(first, later), odd)
        return count.equals(1).everywhere_like(a).where(1.0, found)

    def away(v: Formula) -> Formula:
        return (abs(v) < small).where(small, v)

    def turn(count: Formula, active: Formula, c: Formula, d: Formula, h: Formula) -> list[Formula]:
        above = numerator(count)
        c = away(1.0 + above / c)
        d = 1.0 / away(1.0 + above * d)
        delta = c * d
        return [count + 1, Formula(_any(abs(delta - 1.0) >= small)), c, d, h * delta]

    start = x.full(small)
    carry = [Formula(np.int32(1)), Formula(np.True_), start, x.full(0), start]
    return _loop(lambda count, active, *_: ((count < limit) & active).x, turn, carry)[-1]


def _betainc(a: Formula, b: Formula, x: Formula, info: Any) -> Formula:
    step_down = a.equals(0.0) | b.equals(np.inf)
    step_up = b.equals(0.0) | a.equals(np.inf)
    start, end = x.equals(0.0), x.equals(1.0)
    zero = (step_up & ~end) | (step_down & start)
    one = (step_down & ~start) | (step_up & end)
    wrong = (a < 0.0) | (b < 0.0) | (x < 0.0) | (x > 1.0) | (step_down & step_up)
    wrong = wrong | a.is_nan | b.is_nan | x.is_nan
    fast = x < (a + 1.0) / (a + b + 2.0)  # where the fraction converges fast; elsewhere by symmetry
    a, b, x = fast.where(a, b), fast.where(b, a), fast.where(x, 1.0 - x)
    rest = _lgamma(b) - _lgamma(a + b)
    tiny = a < float(info.tiny) * 2
    factor = tiny.where(exp(log1p(-x) * b - rest), exp(log(x) * a + log1p(-x) * b - (_lgamma(a) + rest)) / a)
    found = _fraction(a, b, x, info) * factor
    found = fast.where(found, 1.0 - found)
    return wrong.where(np.nan, one.where(1.0, zero.where(0.0, found)))


def _beta_types(*avals: ShapedArray) -> ShapedArray:
    name = "regularized_incomplete_beta"
    check_kind(name, avals[0], FLOAT)
    return shaped(broadcast_shape(name, avals), same_dtype(name, avals), all(a.weak_type for a in avals))


def _beta_lower(f: Function, *args: Value) -> Value:
    shape = f.out.shape
    return lowered_as(_widened(_betainc))(f, *[fit(f, x, shape) for x in args])


def _beta_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    out = regularized_incomplete_beta(*primals)
    for t, name in zip(tangents, "ab", strict=False):
        if type(t) is not Zero:
            no_derivative("betainc", name)(t)
    t = tangents[2]
    if type(t) is Zero:
        return out, Zero(typeof(out).tangent())
    shape = typeof(out).shape
    a, b, x = (Formula(repeat_to(v, shape)) for v in primals)
    norm = _lgamma(a) + _lgamma(b) - _lgamma(a + b)
    density = exp((b - 1.0) * log1p(-x) + (a - 1.0) * log(x) - norm)
    return out, e.mul(density.x, repeat_to(t, shape))


def _beta_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim]) -> tuple[Any, Dim]:
    lined, dim = batch_elementwise(axis, "regularized_incomplete_beta", args, dims)
    return regularized_incomplete_beta(*lined), dim


regularized_incomplete_beta = Primitive(
    "regularized_incomplete_beta",
    types=_beta_types,
    lower=_beta_lower,
    jvp=_beta_jvp,
    batch=_beta_batch,
    nan_checked=True,
)
