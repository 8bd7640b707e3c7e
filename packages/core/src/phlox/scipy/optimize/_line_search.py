"""A line search for the strong Wolfe conditions: J. Nocedal and S. J. Wright, Numerical Optimization, 3.5 and 3.6.

Where values no longer differ, slopes decide, by the conditions of W. W. Hager and H. Zhang, SIAM J. Optim. 16, 2005.

A loop whose every turn evaluates the function once: first steps grow until they bracket a point that satisfies the
conditions, then the bracket shrinks. So a program has the function once, and not once for each of these cases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import lax, numpy as jnp, tree
from ..._ir import dtypes
from ..._operands.checks import type_of

#: how much of the promised decrease is enough, and how much of the slope may be left
DECREASE, CURVATURE = 1e-4, 0.9
#: most evaluations within one bracket
SHRINKS = 30

#: value and gradient at a vector
Objective = Callable[[Any], tuple[Any, Any]]


class Point(NamedTuple):
    """A step along the line: its length, and the value, slope and gradient there."""

    step: Any
    value: Any
    slope: Any
    gradient: Any


class Search(NamedTuple):
    """`low` has the lowest value so far that decreases enough; a solution lies between it and `high`, once `within`."""

    low: Point
    high: Point
    old: Point
    within: Any
    done: Any
    grown: Any
    shrunk: Any


class SearchResult(NamedTuple):
    """The best point, 0 (or 1: the bracket has shrunk away, 3: the steps have grown too often), and evaluations."""

    point: Point
    status: Any
    evaluations: Any


def inner(x: Any, y: Any) -> Any:
    """The real part of the product of two vectors."""
    return jnp.real(jnp.dot(x, y, precision=lax.Precision.HIGHEST))


def _choose(condition: Any, x: Any, y: Any) -> Any:
    return tree.map(lambda x, y: jnp.where(condition, x, y), x, y)


def _cubic(a: Point, b: Point, c: Point) -> Any:
    """The minimum of the cubic through the values at three points with the slope at the first."""
    db, dc = b.step - a.step, c.step - a.step
    rb, rc = (b.value - a.value) / db - a.slope, (c.value - a.value) / dc - a.slope
    third = (rb / db - rc / dc) / (db - dc)
    second = rb / db - third * db
    return a.step + (-second + jnp.sqrt(second * second - 3 * third * a.slope)) / (3 * third)


def _parabola(a: Point, b: Point) -> Any:
    """The minimum of the parabola through two values with the slope at the first."""
    db = b.step - a.step
    return a.step - a.slope * db / (2 * ((b.value - a.value) / db - a.slope))


def _inside(s: Search) -> Any:
    """The next step within the bracket: by a cubic or a parabola, if it is not too near to an end; else the middle."""
    width = jnp.abs(s.high.step - s.low.step)
    left, right = jnp.minimum(s.low.step, s.high.step), jnp.maximum(s.low.step, s.high.step)

    def between(x: Any, margin: float) -> Any:
        return (x > left + margin * width) & (x < right - margin * width)

    cubic, parabola = _cubic(s.low, s.high, s.old), _parabola(s.low, s.high)
    step = jnp.where(between(parabola, 0.1), parabola, (left + right) / 2)
    return jnp.where((s.shrunk > 0) & between(cubic, 0.2), cubic, step)


def line_search(f: Objective, x: Any, direction: Any, start: Point, first: Any, growths: int) -> SearchResult:
    """A point on the line from `x` along `direction` that satisfies the strong Wolfe conditions.

    `start` is the point of step 0, `first` the first step to try, `growths` the largest number of steps outwards.
    Without a solution, the point is the best one found: its value is not above that of `start`.
    """
    dtype = type_of(start.slope).dtype
    eps = np.asarray(dtypes.finfo(dtype).eps, dtype)

    def at(step: Any) -> Point:
        value, gradient = f(x + step.astype(type_of(direction).dtype) * direction)
        return Point(step, value.astype(dtype), inner(gradient, direction), gradient)

    def unfinished(s: Search) -> Any:
        far = jnp.abs(s.high.step - s.low.step) > eps * jnp.maximum(jnp.abs(s.low.step), jnp.abs(s.high.step))
        return ~s.done & jnp.where(s.within, far & (s.shrunk < SHRINKS), s.grown < growths)

    def turn(s: Search) -> Search:
        new = at(jnp.where(s.within, _inside(s), jnp.where(s.grown == 0, first, 2 * s.low.step)))
        # Written so that nan is too high: the function may be undefined far from where the search began.
        lower = new.value <= start.value + DECREASE * new.step * start.slope
        descends = (new.value < s.low.value) | (~s.within & (s.grown == 0))
        # Near a minimum the values differ by rounding alone, and the slope says what they cannot.
        flat = jnp.abs(new.value - start.value) <= 2 * eps * jnp.abs(start.value)
        lower, descends = lower | (flat & (new.slope <= (2 * DECREASE - 1) * start.slope)), descends | flat
        high = ~(lower & descends)
        done = ~high & (jnp.abs(new.slope) <= -CURVATURE * start.slope)
        # The new point becomes the low end. The other end is where its slope points to.
        turns = ~high & jnp.where(s.within, new.slope * (s.high.step - s.low.step) >= 0, new.slope >= 0)
        low = _choose(high, s.low, new)
        other = _choose(high, new, _choose(turns, s.low, s.high))
        # The third point of the cubic is the one that the bracket has lost.
        old = _choose(s.within & (high | turns), s.high, s.low)
        grown, shrunk = s.grown + jnp.where(s.within, 0, 1), s.shrunk + jnp.where(s.within, 1, 0)
        return Search(low, other, old, s.within | high | turns, done, grown, shrunk)

    zero = jnp.zeros((), bool)
    last = lax.while_loop(unfinished, turn, Search(start, start, start, zero, zero, 0, 0))
    status = jnp.where(last.done, 0, jnp.where(last.within, 1, 3))
    return SearchResult(last.low, status, last.grown + last.shrunk)
