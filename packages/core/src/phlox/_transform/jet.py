"""Taylor mode: every value is a polynomial in one variable t, given by its coefficients.

    x(t) = x₀ + x₁ t + x₂ t² + …     gives     f(x(t)) = y₀ + y₁ t + y₂ t² + …

One rule, which applies the `jvp` rule, serves all primitives: y'(t) is the tangent of f at x(t) in direction x'(t), so
k yₖ is coefficient k - 1 of the tangent that the jvp rule computes from x(t), y(t) and x'(t). The jvp rule may use the
output y itself, as that of exp does: coefficients are computed lazily, and yₖ needs only coefficients of y below k.
Linear and bilinear operations and quotients have rules of their own, since the general rule would compute more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from .._ir import dtypes
from .._ir.primitive import Primitive, current_trace, primitive
from .._trace.interpret import eval_jaxpr
from .._trace.trace import Trace, Tracer, bind_under, typeof
from .array_operations import Zero, add, instantiate, weak_number, zero_tangent, zeros
from .spectra import tangent_of

#: rule(k) computes coefficient k (from 1 on) of a polynomial; None is zero.
Rule = Callable[[int], Any]


class Series:
    """The coefficients of a polynomial from number 1 on, each computed at its first access and cached."""

    __slots__ = ("cache", "rule")

    def __init__(self, rule: Rule):
        self.rule = rule
        self.cache: dict[int, Any] = {}

    def __getitem__(self, k: int) -> Any:
        if k not in self.cache:
            self.cache[k] = self.rule(k)
        return self.cache[k]


class JetTracer(Tracer):
    """A polynomial: coefficient 0 is `primal`, the others are in `series`."""

    __slots__ = ("aval", "primal", "series")

    def __init__(self, trace: JetTrace, primal: Any, rule: Rule):
        self.owner = trace
        self.primal = primal
        self.series = Series(rule)
        self.aval = typeof(primal)


class JetTrace(Trace):
    """Computes coefficients up to `order` in the parent trace.

    `known` maps the operations whose jvp rules are running, by primitive and operands, to their parameters and results.
    When a jvp rule binds its own operation again, the result is taken from there and not computed again.
    """

    __slots__ = ("known", "order")

    def __init__(self, order: int):
        super().__init__()
        self.order = order
        self.known: dict[tuple[Any, ...], tuple[dict[str, Any], Any]] = {}

    def mine(self, x: Any) -> bool:
        """Whether `x` is a tracer of this trace."""
        return type(x) is JetTracer and x.owner is self

    def coefficient(self, x: Any, k: int) -> Any:
        """Coefficient k of `x`; None if it is zero."""
        if self.mine(x):
            return x.series[k] if k else x.primal
        return None if k or type(x) is Zero else x

    @contextmanager
    def running(self, trace: Trace | None, known: dict[tuple[Any, ...], tuple[dict[str, Any], Any]]) -> Iterator[None]:
        before, self.known = self.known, known
        token = current_trace.set(trace)
        try:
            yield
        finally:
            current_trace.reset(token)
            self.known = before

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not any(self.mine(x) for x in args):
            return bind_under(self.parent, primitive, args, params)
        # The Jaxpr of a call is evaluated; custom derivative rules are not used, as in JAX.
        if primitive.program is not None:
            closed = params[primitive.program]
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
            return outs if primitive.multiple_results else outs[0]
        # Jvp rules bind their own operation for the primal result, which is known here with its coefficients so far.
        key = (primitive, *map(id, args))
        if key in self.known and all(self.known[key][0][name] is value for name, value in params.items()):
            return self.known[key][1]
        values = bind_under(self.parent, primitive, [self.coefficient(x, 0) for x in args], params)
        values = values if primitive.multiple_results else [values]
        known = dict(self.known)
        rules = self._rules(primitive, args, params, known, values)
        outs = [
            JetTracer(self, value, rule) if dtypes.is_inexact(typeof(value).dtype) else value
            for value, rule in zip(values, rules, strict=True)
        ]
        result = outs if primitive.multiple_results else outs[0]
        known[key] = params, result
        if not self.known:  # operations of the user's function are computed now, those of jvp rules lazily
            for k in range(1, self.order + 1):
                for out in outs:
                    self.coefficient(out, k)
        return result

    def _rules(
        self,
        primitive: Primitive,
        args: Sequence[Any],
        params: dict[str, Any],
        known: dict[tuple[Any, ...], tuple[dict[str, Any], Any]],
        values: Sequence[Any],
    ) -> list[Rule]:
        """For each result, the rule for its coefficients."""
        if primitive.series == "bilinear":
            return [partial(self._product, partial(primitive.bind, **params), *args)]
        if primitive.series == "quotient":
            return [partial(self._quotient, [values[0]], *args)]
        if primitive.series == "linear":
            return self._each(partial(self._linear, primitive, args, params), len(values))
        return self._each(partial(self._derived, self._once(primitive, args, params, known)), len(values))

    def _each(self, compute: Callable[[int], list[Any]], count: int) -> list[Rule]:
        """Rules for `count` results whose coefficients `compute(k)` computes together."""
        together = Series(compute)
        # `i=i` gives each function its own number: without it, all would read the last one.
        return [lambda k, i=i: together[k][i] for i in range(count)]  # type: ignore[misc]

    def _linear(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any], k: int) -> list[Any]:
        coefficients = [self.coefficient(x, k) for x in args]
        if all(c is None for c in coefficients):
            return [None] * len(primitive.types(*map(typeof, args), **params)) if primitive.multiple_results else [None]
        with self.running(self.parent, {}):
            filled = [
                c if c is not None else zeros(typeof(x)) if dtypes.is_inexact(typeof(x).dtype) else x
                for x, c in zip(args, coefficients, strict=True)
            ]
            out = primitive.bind(*filled, **params)
        return list(out) if primitive.multiple_results else [out]

    def _product(self, multiply: Callable[[Any, Any], Any], x: Any, y: Any, k: int) -> Any:
        """Σ xⱼ yₖ₋ⱼ"""
        pairs = [(self.coefficient(x, j), self.coefficient(y, k - j)) for j in range(k + 1)]
        with self.running(self.parent, {}):
            return _total([multiply(a, b) for a, b in pairs if a is not None and b is not None])

    def _quotient(self, known: list[Any], x: Any, y: Any, k: int) -> Any:
        """From z y = x: z₀ yₖ + … + zₖ y₀ = xₖ"""
        # `known` holds the coefficients of the quotient so far, each of which needs all before it.
        for n in range(len(known), k + 1):
            top = self.coefficient(x, n)
            pairs = [(known[j], self.coefficient(y, n - j)) for j in range(n)]
            with self.running(self.parent, {}):
                rest = _total([_mul(a, b) for a, b in pairs if a is not None and b is not None])
                if rest is not None:
                    top = primitive("neg").bind(rest) if top is None else primitive("sub").bind(top, rest)
                known.append(None if top is None else primitive("div").bind(top, self.coefficient(y, 0)))
        return known[k]

    def _once(
        self,
        primitive: Primitive,
        args: Sequence[Any],
        params: dict[str, Any],
        known: dict[tuple[Any, ...], tuple[dict[str, Any], Any]],
    ) -> Callable[[], list[Any]]:
        """A function that returns the tangents of the results at x(t) in direction x'(t), as polynomials; they are
        computed by the jvp rule at its first call."""
        cache: list[list[Any]] = []

        def tangents() -> list[Any]:
            if not cache:
                directions = [self._velocity(x) if self.mine(x) else zero_tangent(x) for x in args]
                with self.running(self, known):
                    _, out = primitive.rule("jvp")(list(args), directions, **params)
                cache.append([tangent_of(t) for t in (out if primitive.multiple_results else [out])])
            return cache[0]

        return tangents

    def _derived(self, tangents: Callable[[], list[Any]], k: int) -> list[Any]:
        coefficients = [self.coefficient(t, k - 1) for t in tangents()]
        with self.running(self.parent, {}):
            # k yₖ is coefficient k - 1 of the tangent.
            return [c if c is None or k == 1 else _scaled(c, 1 / k) for c in coefficients]

    def _velocity(self, x: JetTracer) -> JetTracer:
        """x'(t)"""

        def rule(k: int) -> Any:
            c = x.series[k + 1]
            with self.running(self.parent, {}):
                # Coefficient k of x'(t) is (k + 1) xₖ₊₁.
                return None if c is None else _scaled(c, k + 1)

        first = x.series[1]
        with self.running(self.parent, {}):
            return JetTracer(self, instantiate(zero_tangent(x)) if first is None else first, rule)


def _mul(x: Any, y: Any) -> Any:
    return primitive("mul").bind(x, y)


def _scaled(x: Any, factor: float) -> Any:
    aval = typeof(x)
    number = np.asarray(factor, aval.dtype)[()]
    return _mul(x, weak_number(number) if aval.weak_type else number)


def _total(terms: Sequence[Any]) -> Any:
    """The sum of the terms; None if there are none."""
    total = None
    for term in terms:
        total = term if total is None else add(total, term)
    return total


def jet(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], series: Sequence[Sequence[Any] | None], order: int
) -> tuple[list[Any], list[list[Any]]]:
    """The outputs of flat `fun` and their coefficients 1 … `order`, for arguments that are polynomials, or constants
    where the series is None."""
    trace = JetTrace(order)

    def argument(primal: Any, coefficients: Sequence[Any] | None) -> Any:
        return primal if coefficients is None else JetTracer(trace, primal, lambda k: coefficients[k - 1])

    def run() -> tuple[list[Any], list[list[Any]]]:
        outs = fun(*map(argument, primals, series))
        values = [trace.coefficient(out, 0) for out in outs]
        return values, [[trace.coefficient(out, k) for k in range(1, order + 1)] for out in outs]

    values, coefficients = trace.run(run)
    return values, [
        [zeros(typeof(value)) if c is None else c for c in cs] for value, cs in zip(values, coefficients, strict=True)
    ]
