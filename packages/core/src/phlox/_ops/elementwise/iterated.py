"""What the incomplete gamma and beta functions share: loops over formulas until all elements have converged."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._ir import dtypes
from ..._trace.trace import typeof
from ..._transform.jvp import jvp
from ..control.loop import repeat
from ..reductions.reduce import reduce_or
from . import arithmetic as e
from .formula import Formula, exp, rounded_once
from .special import lgamma


def log_gamma(x: Formula) -> Formula:
    """log(abs(gamma(x)))."""
    return Formula(lgamma(x.x))


def any_element(x: Formula) -> Any:
    """Whether a mask is true anywhere, a scalar."""
    return reduce_or(x.x, axes=tuple(range(typeof(x.x).ndim)))


def loop(go_on: Callable[..., Any], turn: Callable[..., Sequence[Formula]], start: Sequence[Formula]) -> list[Formula]:
    """A while loop over formulas: `turn` is the body, `go_on` the condition."""
    results = repeat(
        lambda *xs: go_on(*map(Formula, xs)),
        lambda *xs: [y.x for y in turn(*map(Formula, xs))],
        [x.x for x in start],
    )
    return [Formula(x) for x in results]


def if_any(mask: Formula, like: Formula, compute: Callable[[], Sequence[Formula]], count: int = 1) -> list[Formula]:
    """The `count` results of `compute`; zeros if `mask` is nowhere true. This is a loop of at most one turn: most
    calls have small parameters only."""
    start = [Formula(any_element(mask)), *[like.full(0)] * count]
    return loop(lambda go_on, *_: go_on.x, lambda *_: [Formula(np.False_), *compute()], start)[1:]


def keep(active: Formula, new: Sequence[Formula], old: Sequence[Formula]) -> list[Formula]:
    """`new` where the loop is still active, else `old`."""
    return [active.where(n, o) for n, o in zip(new, old, strict=True)]


def with_limits(formula: Callable[..., Formula]) -> Callable[..., Any]:
    """The formula as a function of arrays; its last argument is the `finfo` of the dtype that it is computed in."""
    return rounded_once(lambda *xs, **params: formula(*xs, dtypes.finfo(typeof(xs[0].x).dtype), **params))


def power_product(x: Formula, exponent: Formula, logs: Sequence[Formula], total: Formula, info: Any) -> Formula:
    """``x**exponent exp(logs[0]) exp(logs[1]) …``, of which `total` is the logarithm.

    The exponential of `total` alone would multiply its rounding error by its size. It is for products that are too
    large or too small for the dtype on the way.
    """
    product = Formula(e.pow_(x.x, exponent.x))
    steps = [product := product * exp(part) for part in logs]
    least = functools.reduce(lambda low, step: (step < low).where(step, low), steps)
    most = functools.reduce(lambda high, step: (step > high).where(step, high), steps)
    return ((least >= float(info.tiny)) & (most <= float(info.max))).where(product, exp(total))


def log_power(log: Formula, exponent: Formula) -> Formula:
    """The logarithm of a power: 0 for exponent 0, also where `log` is infinite.

    There alone, as the derivative by the exponent is `log` at 0 too."""
    endless = exponent.equals(0.0) & abs(log).equals(math.inf)
    return exponent * endless.where(0.0, log)


def derivative(function: Callable[[Formula], Formula], at: Formula, limits: Formula) -> Formula:
    """The derivative of a formula through its loops: 0 at `limits`, nan where the value is nan."""
    (out,), (slope,) = jvp(lambda x: [function(Formula(x)).x], [at.x], [at.full(1).x])
    return Formula(out).is_nan.where(Formula(out), limits.where(0.0, Formula(slope)))
