"""Programs derived from one turn of a loop: its jvp, its linear part, and the transpose of that; `repeat` binds a loop.

A turn of `scan` or `while` takes constants, the carry and, in a scan, a slice of each scanned array.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import ClosedJaxpr, Jaxpr, hoisted, memoized, only, prune, without
from ..._ir.primitive import Primitive, primitive
from ..._trace.axes import axis_env
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import Body, Operands
from ..._trace.staging import stage
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, add, drop_zeros, fill, instantiate, present_arrays
from ..._transform.jaxprs import jvp_jaxpr, linearize_jaxpr, restage
from ..._transform.transpose import Linear, backward_pass


def carry_fixed_point(
    flags: Sequence[bool], out_flags: Callable[[tuple[bool, ...]], Sequence[bool]]
) -> tuple[bool, ...]:
    """The least fixed point of `out_flags` that contains `flags`.

    A flag of the carry (it has a tangent, is batched, is used) may set others after one turn; `out_flags` maps the
    flags before a turn to those after it.
    """
    known = tuple(flags)
    while True:
        wider = tuple(a or b for a, b in zip(known, out_flags(known), strict=True))
        if wider == known:
            return known
        known = wider


def repeat(go_on: Callable[..., Any], turn: Callable[..., Sequence[Any]], start: Sequence[Any]) -> list[Any]:
    """Binds `while` for Python functions: ``values = turn(*values)`` as long as ``go_on(*values)``.

    For the lowering of primitives that are computed by a loop.
    """
    avals = [typeof(x) for x in start]
    cond, body = (ClosedJaxpr(*stage(fun, avals)) for fun in (lambda *xs: [go_on(*xs)], turn))
    # The lowering of primitives that `while` itself is differentiated to is a loop.
    return Loop(cond, body, [], [], start, {}).bind(primitive("while"))


class Loop(NamedTuple):
    """A loop with a condition: its programs, the values of their constants, the carry, and further parameters.

    The values may also be tangents, axes of a batch or variables of operands.
    """

    cond: ClosedJaxpr
    body: ClosedJaxpr
    cond_consts: Sequence[Any]
    body_consts: Sequence[Any]
    carry: Sequence[Any]
    options: dict[str, Any]

    @classmethod
    def of(cls, values: Sequence[Any], params: dict[str, Any]) -> Loop:
        """The loop with these parameters, and values for its operands."""
        options = dict(params)
        names = ("cond_jaxpr", "body_jaxpr", "cond_nconsts", "body_nconsts")
        cond, body, *counts = (options.pop(name) for name in names)
        return cls(cond, body, *split_operands(values, *counts), options)

    def has_tangents(self) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
        """For constants of the body and for the carry, whether they have tangents; the values are tangents."""
        const_has, carry_has = (tuple(type(t) is not Zero for t in part) for part in (self.body_consts, self.carry))
        return const_has, carry_has

    def goes_on(self, carry: Sequence[Any]) -> Any:
        """The value of the condition."""
        return eval_jaxpr(self.cond.jaxpr, self.cond.consts, *self.cond_consts, *carry)[0]

    def turn(self, carry: Sequence[Any]) -> list[Any]:
        """The carry after a turn."""
        return eval_jaxpr(self.body.jaxpr, self.body.consts, *self.body_consts, *carry)

    def operation(self) -> Operands:
        """The operands and parameters of the loop; the constants of both closed jaxprs become operands."""
        cond_consts, body_consts = [*self.cond.consts, *self.cond_consts], [*self.body.consts, *self.body_consts]
        params = {
            "cond_jaxpr": hoisted(self.cond),
            "cond_nconsts": len(cond_consts),
            "body_jaxpr": hoisted(self.body),
            "body_nconsts": len(body_consts),
        }
        return [*cond_consts, *body_consts, *self.carry], {**params, **self.options}

    def bind(self, loop: Primitive) -> list[Any]:
        """Binds the primitive `loop`, `while` or `while_states`."""
        args, params = self.operation()
        outs: list[Any] = loop.bind(*args, **params)
        return outs


def loop_bodies(params: dict[str, Any]) -> list[Body]:
    """The function `bodies` of loops with a condition. See `_trace.program_primitive`."""
    cond = Body(params["cond_jaxpr"], params["cond_nconsts"], returns=False)
    return [cond, Body(params["body_jaxpr"], params["body_nconsts"])]


def rebuild_loop(
    args: Sequence[Any], params: dict[str, Any], programs: Sequence[ClosedJaxpr], carried: Sequence[Any] = ()
) -> Operands:
    """The function `rebuild` of loops with a condition."""
    loop, (cond, body) = Loop.of(args, params), programs
    return loop._replace(cond=cond, body=body, carry=[*carried, *loop.carry]).operation()


def jvp_loop(
    primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]
) -> tuple[list[Any], tuple[bool, ...]]:
    """A loop with a condition that also carries the tangents; and for each carry, whether it has a tangent.

    Tangents follow the values: those of constants, and those of the carry.
    """
    loop, t = Loop.of(primals, params), Loop.of(tangents, params)
    const_has, start_has = t.has_tangents()
    carry_has = carry_fixed_point(start_has, lambda known: jvp_jaxpr(loop.body, (*const_has, *known))[1])
    carry_tangents = present_arrays(t.carry, carry_has)
    derived = loop._replace(
        cond=with_ignored_inputs(loop.cond, [typeof(t) for t in carry_tangents]),
        body=jvp_step(loop.body, const_has, carry_has, ())[0],
        body_consts=[*loop.body_consts, *drop_zeros(t.body_consts)],
        carry=[*loop.carry, *carry_tangents],
    )
    return derived.bind(primitive), carry_has


def jvp_step(
    jaxpr: ClosedJaxpr, const_has: tuple[bool, ...], carry_has: tuple[bool, ...], xs_has: tuple[bool, ...]
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jvp of a step or body, as such: tangents of constants are constants, those of the carry are carried.

    Also returns, for each result, whether its tangent is returned.
    """
    num_consts, num_carry, outputs = len(const_has), len(carry_has), len(jaxpr.out_avals)
    keep = (*carry_has, *[False] * (outputs - num_carry))
    derived, present = jvp_jaxpr(jaxpr, (*const_has, *carry_has, *xs_has), keep=keep)

    def make() -> ClosedJaxpr:
        inputs = len(jaxpr.in_avals)
        counts = [sum(const_has), sum(carry_has), sum(xs_has)]
        starts = [inputs, inputs + counts[0], inputs + counts[0] + counts[1]]
        plain = split_operands(range(inputs), num_consts, num_carry)
        groups = []
        for values, start, count in zip(plain, starts, counts, strict=True):
            groups += [values, list(range(start, start + count))]
        grouped = _with_inputs_in_order(derived, groups, jaxpr.jaxpr)
        # Order of the results: carry, its tangents, slices, their tangents.
        order = [
            *range(num_carry),
            *range(outputs, outputs + counts[1]),
            *range(num_carry, outputs),
            *range(outputs + counts[1], len(derived.out_avals)),
        ]
        return grouped.replace(jaxpr=grouped.jaxpr.replace(outvars=[grouped.jaxpr.outvars[i] for i in order]))

    return memoized(derived.jaxpr, ("grouped", num_consts, num_carry, axis_env.get()), make), present


def _with_inputs_in_order(derived: ClosedJaxpr, groups: Sequence[Sequence[int]], name: Jaxpr) -> ClosedJaxpr:
    """The jaxpr with its inputs reordered: `groups` lists the old positions in the new order."""
    order = [i for group in groups for i in group]

    def fun(*args: Any) -> list[Any]:
        values: list[Any] = [None] * len(args)
        for i, x in zip(order, args, strict=True):
            values[i] = x
        return eval_jaxpr(derived.jaxpr, derived.consts, *values)

    return restage(fun, [derived.in_avals[i] for i in order], name)


def linear_turn(body: ClosedJaxpr, const_has: tuple[bool, ...], carry_has: tuple[bool, ...]) -> ClosedJaxpr:
    """The derivative of the body, with the inputs (constants, their tangents, tangents of the carry, carry)."""
    nconsts, const_count, carry_count = len(const_has), sum(const_has), sum(carry_has)

    def make() -> ClosedJaxpr:
        s = linearize_jaxpr(body, (*const_has, *carry_has))

        def fun(*args: Any) -> list[Any]:
            consts, tangents = args[:nconsts], args[nconsts : nconsts + const_count + carry_count]
            inputs = [*consts, *args[nconsts + const_count + carry_count :]]
            # The residuals of a turn are computed again from its state, which is all that is stored. `prune` drops the
            # rest.
            outs = eval_jaxpr(s.primal.jaxpr, s.primal.consts, *inputs)
            residuals = [inputs[i] if kind == "in" else outs[i] for kind, i in s.residuals]
            tangents_out = eval_jaxpr(s.linear.jaxpr, s.linear.consts, *residuals, *tangents)
            results = fill(tangents_out, s.nonzero, body.out_avals)
            return present_arrays(results, carry_has)

        avals, tangent_avals = body.in_avals, s.linear.in_avals[len(s.residuals) :]
        step = restage(fun, [*avals[:nconsts], *tangent_avals, *avals[nconsts:]], body.jaxpr)
        return step.replace(jaxpr=prune(step.jaxpr)[0])

    return memoized(body.jaxpr, ("linear turn", const_has, carry_has, axis_env.get()), make)


def backward_step(
    jaxpr: ClosedJaxpr, linear: tuple[bool, ...], num_consts: int, num_carry: int, ys_has: tuple[bool, ...]
) -> ClosedJaxpr:
    """The transpose of a step that is linear in the inputs marked in `linear`, as a step.

    It takes the known constants; carries the sums of the cotangents of linear constants, and the cotangents of the
    carry; and takes known slices, and cotangents of the results marked in `ys_has`, as slices.
    """
    const_lin, _, xs_lin = split_operands(linear, num_consts, num_carry)
    const_avals, _, xs_avals = split_operands(jaxpr.in_avals, num_consts, num_carry)
    out_avals = [a.cotangent() for a in jaxpr.out_avals]
    # Cotangents of the carry have the weak types of the carry that a turn returns, as in JAX; that which it takes may
    # have others.
    carry_avals, ys_avals = out_avals[:num_carry], out_avals[num_carry:]
    summed = [a.cotangent() for a in only(const_avals, const_lin)]

    counts = num_consts - sum(const_lin), len(summed), num_carry, len(xs_avals) - sum(xs_lin), sum(ys_has)

    def fun(*args: Any) -> list[Any]:
        known_consts, sums, carry_cts, known_xs, ys_cts = map(iter, split_by(args, counts))
        values = [Linear(a) if lin else next(known_consts) for a, lin in zip(const_avals, const_lin, strict=True)]
        # All carries are linear here: others were made slices or states before.
        values += [Linear(a) for a in jaxpr.out_avals[:num_carry]]
        values += [Linear(a) if lin else next(known_xs) for a, lin in zip(xs_avals, xs_lin, strict=True)]
        out_cts = [*carry_cts, *(next(ys_cts) if has else Zero(a) for a, has in zip(ys_avals, ys_has, strict=True))]
        results = backward_pass(jaxpr.jaxpr, jaxpr.consts, values, out_cts)
        in_cts = split_operands(results, num_consts, num_carry)
        return [
            *[instantiate(add(total, ct)) for total, ct in zip(sums, only(in_cts[0], const_lin), strict=True)],
            *map(instantiate, in_cts[1]),
            *present_arrays(in_cts[2], xs_lin),
        ]

    avals = [
        *without(const_avals, const_lin),
        *summed,
        *carry_avals,
        *without(xs_avals, xs_lin),
        *only(ys_avals, ys_has),
    ]
    return restage(fun, avals, jaxpr.jaxpr, may_use_refs=True)


def with_ignored_inputs(closed: ClosedJaxpr, more: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The jaxpr with further inputs of the types `more`, which it ignores."""
    if not more:
        return closed
    count = len(closed.in_avals)
    return memoized(
        closed.jaxpr,
        ("ignoring", tuple(more)),
        lambda: restage(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs[:count]), [*closed.in_avals, *more], closed.jaxpr
        ),
    )


def split_by(args: Sequence[Any], counts: Sequence[int]) -> list[list[Any]]:
    """`args` split into groups of these lengths."""
    rest = iter(args)
    return [list(itertools.islice(rest, count)) for count in counts]


def split_operands(args: Sequence[Any], num_consts: int, num_carry: int) -> tuple[list[Any], list[Any], list[Any]]:
    """`args` split into constants, carry, and scanned arrays."""
    both = num_consts + num_carry
    return list(args[:num_consts]), list(args[num_consts:both]), list(args[both:])
