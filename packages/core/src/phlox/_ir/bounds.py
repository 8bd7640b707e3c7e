"""What can be said about the values of a symbolic dimension: the least and the largest one.

Bounds of a polynomial are the sums of those of its terms. Where a term is unbounded, multiples of what is known not to
be negative are subtracted, so that the term disappears: the constraints of the scope, and what holds for operations,
such as ``0 <= a - 2*floordiv(a, 2) <= 1``. This is a search of small depth; it proves what programs ask for, not
everything that is true.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from .dimensions import Factor, Operation, SymbolicDim, Term, is_symbolic

#: how many facts a proof combines; each level multiplies the steps by the number of facts
_DEPTH = 3
#: terms that one question looks at before it answers with what it has: 0.1 s
_STEPS = 5_000
_Bounds = tuple[Any, Any]
_Linear = dict[Term, Fraction]


class _Search:
    """The answers to one question so far, and the steps that are left for it."""

    def __init__(self) -> None:
        self.answers: dict[tuple[SymbolicDim, int], _Bounds] = {}
        self.steps = _STEPS


def bounds(dim: Any, depth: int = _DEPTH, search: _Search | None = None) -> _Bounds:
    """(least, largest) value of a dimension for all values of its names; infinite where nothing is known.

    `depth` limits how many facts are combined. `search` is that of the question that this one is a part of.
    """
    if not is_symbolic(dim):
        return dim, dim
    search = _Search() if search is None else search
    if (dim, depth) not in search.answers:
        search.answers[dim, depth] = _by_cases(dim, depth, search) or _by_facts(dim, depth, search)
    return search.answers[dim, depth]


def _by_cases(dim: SymbolicDim, depth: int, search: _Search) -> _Bounds | None:
    """The bounds of a dimension with a summand ``n*max(x, y)`` or ``n*min(x, y)``: it is the larger or the smaller of
    the same sums with x and with y. None without such a summand."""
    for term, n in dim.terms.items():
        factor = term[0][0] if term else ""
        if isinstance(factor, Operation) and factor.name in ("max", "min") and term == ((factor, 1),):
            search.steps -= len(dim.terms)
            if search.steps < 0:
                return None
            choose = max if (factor.name == "max") == (n > 0) else min
            rest = SymbolicDim({t: m for t, m in dim.terms.items() if t != term}, dim.scope)
            (a, b), (c, d) = (bounds(rest + n * x, depth, search) for x in factor.args)
            return choose(a, c), choose(b, d)
    return None


def _by_facts(dim: SymbolicDim, depth: int, search: _Search) -> _Bounds:
    linear = _linear(dim)
    # Facts are combined up to `depth`, so that the search ends.
    known = [_linear(fact) for fact in _facts(dim, search)] if depth else []
    low = _least(linear, known, dim, depth, search)
    high = -_least({term: -n for term, n in linear.items()}, known, dim, depth, search)
    # Values are whole numbers, so fractions round inwards.
    return math.ceil(low) if math.isfinite(low) else low, math.floor(high) if math.isfinite(high) else high


def _linear(dim: SymbolicDim) -> _Linear:
    return {term: Fraction(n) for term, n in dim.terms.items()}


def _least(linear: _Linear, known: list[_Linear], dim: SymbolicDim, depth: int, search: _Search) -> Any:
    """The largest lower bound that is found."""
    total: Any = 0
    unbounded: list[Term] = []
    for term, n in linear.items():
        low, high = _of_term(term, dim, depth, search)
        # Terms are bounded one by one, as if they were independent: the sum is a bound, perhaps not the best.
        part = n * low if n > 0 else n * high
        if math.isfinite(part):
            total = total + part
        else:
            unbounded.append(term)
    best: Any = -math.inf if unbounded else total
    if depth:
        for fact in known:
            for term in unbounded or linear:
                # Subtracting a positive multiple of what is at least 0 gives a smaller number: its lower bound is one
                # of the whole.
                if term and term in fact and linear[term] / fact[term] > 0:
                    search.steps -= len(linear)
                    if search.steps < 0:
                        return best
                    factor = linear[term] / fact[term]
                    rest = {t: linear.get(t, Fraction(0)) - factor * fact.get(t, 0) for t in {**linear, **fact}}
                    rest = {t: n for t, n in rest.items() if n}
                    best = max(best, _least(rest, known, dim, depth - 1, search))
    return best


def _of_term(term: Term, dim: SymbolicDim, depth: int, search: _Search) -> _Bounds:
    low, high = 1, 1
    for factor, power in term:
        least, largest = _to_power(*_of_factor(factor, dim, depth, search), power)
        products = [_times(x, y) for x in (low, high) for y in (least, largest)]
        low, high = min(products), max(products)
    return low, high


def _to_power(low: Any, high: Any, power: int) -> _Bounds:
    """The bounds of x**power for the bounds of x."""
    # An even power of numbers around zero is least at zero.
    if low < 0 and power % 2 == 0:
        low, high = max(0, -high), max(-low, high)
    # The third argument stands for a power that is not computed. It keeps the bound true: it is at most a large lower
    # bound, and at least a large upper one.
    return _power(low, power, 2**64 if low > 0 else math.inf), _power(high, power, math.inf if high > 0 else 2**64)


def _power(x: Any, power: int, large: Any) -> Any:
    """x**power with the magnitude `large` in the place of those above 2**64: 8**300000 alone takes a while."""
    magnitude = abs(x)
    magnitude = large if magnitude > 1 and power * math.log2(magnitude) > 64 else magnitude**power
    return -magnitude if x < 0 and power % 2 else magnitude


def _times(x: Any, y: Any) -> Any:
    # Python gives nan for 0 times infinity, which compares as false with every bound.
    return 0 if x == 0 or y == 0 else x * y


def _of_factor(factor: Factor, dim: SymbolicDim, depth: int, search: _Search) -> _Bounds:
    if type(factor) is not Operation:
        low, high = 1, math.inf
        for fact in dim.scope.not_negative:  # those of one name bound it; the others are used in `_least`
            (n, rest) = (fact.terms.get(((factor, 1),), 0), fact.terms.get((), 0))
            if n and set(fact.terms) <= {((factor, 1),), ()}:
                low, high = (max(low, math.ceil(-rest / n)), high) if n > 0 else (low, min(high, rest // -n))
        return low, high
    (a, b), (c, d) = (bounds(x, max(depth - 1, 0), search) for x in factor.args)
    # Both operands with their signs changed have the same quotient, and the negative remainder.
    if d < 0 and factor.name in ("floordiv", "mod"):
        positive = factor._replace(args=tuple(-x for x in factor.args))
        low, high = _of_factor(positive, dim, depth, search)
        return (low, high) if factor.name == "floordiv" else (-high, -low)
    if factor.name == "max":
        return max(a, c), max(b, d)
    if factor.name == "min":
        return min(a, c), min(b, d)
    # The divisor may be zero or negative: nothing is known.
    if c <= 0:
        return -math.inf, math.inf
    if factor.name == "mod":
        return 0, min(d - 1, b) if a >= 0 else d - 1
    # The quotient rises or falls in each operand, so that its extremes are at the corners.
    quotients = [_floor(x, y) for x in (a, b) for y in (c, d)]
    return min(quotients), max(quotients)


def _floor(x: Any, y: Any) -> Any:
    # Python's ``//`` of an infinity is nan.
    if math.isfinite(x) and math.isfinite(y):
        return x // y
    if math.isfinite(x):
        return 0 if x >= 0 else -1
    return x


def _facts(dim: SymbolicDim, search: _Search) -> Iterator[SymbolicDim]:
    """Polynomials that are not negative: those of the scope, and what is true of the operations inside."""
    # What is known of an operation that the scope replaces, such as a floordiv that is 1, is known of the replacement.
    replaced = [SymbolicDim({term: 1}, dim.scope) for term in dim.scope.equal]
    pending: list[Any] = [dim, *dim.scope.not_negative, *replaced]
    seen: set[Operation] = set()
    yield from dim.scope.not_negative
    while pending:
        for term in pending.pop().terms:
            for factor, _ in term:
                if type(factor) is Operation and factor not in seen:
                    seen.add(factor)
                    pending += filter(is_symbolic, factor.args)
                    yield from filter(is_symbolic, _true_of(factor, dim, search))


def _true_of(factor: Operation, dim: SymbolicDim, search: _Search) -> Iterator[Any]:
    x, y = factor.args
    value = SymbolicDim({((factor, 1),): 1}, dim.scope)
    if factor.name == "max":
        yield from (value - x, value - y)
    elif factor.name == "min":
        yield from (x - value, y - value)
    elif bounds(y, 0, search)[0] > 0:
        # With q = x // y and y > 0: 0 <= x - q*y <= y - 1, which is also what bounds the remainder.
        if factor.name == "floordiv":
            yield from (x - y * value, y * value + y - 1 - x)
        else:
            yield y - 1 - value
            if bounds(x, 0, search)[0] >= 0:
                yield x - value
