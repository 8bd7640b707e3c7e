"""Evaluates a Jaxpr with checks: an `Error` is passed from equation to equation, and through inner Jaxprs.

`Checks` is the argument of the rule `checked` of primitives, and makes the enabled checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from ..._base.pytree import PyTreeDef, flatten
from ..._base.source import Replay, replays
from ..._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, memoized, recorded_x64
from ..._ir.primitive import Primitive
from ..._ops.control.call import jit_p
from ..._ops.host.check import Categories, Error
from ..._trace.axes import axis_env
from ..._trace.program_primitive import ProgramPrimitive
from ..._trace.staging import stage
from ..._trace.trace import typeof
from ..._transform.jaxprs import restage
from .operations import DivisionByZeroError, NaNError, OOBError, with_nan, with_outside, with_zero


class Checks:
    """The state of an evaluation with checks: the error so far, the enabled checks, the primitive being evaluated."""

    __slots__ = ("enabled", "error", "primitive")

    def __init__(self, enabled: Categories, error: Error):
        self.enabled = enabled
        self.error = error
        self.primitive = ""

    # -- for the rule `checked` of operations on arrays

    def nonzero(self, y: Any) -> None:
        """Adds the check that no element of the divisor `y` is zero."""
        if DivisionByZeroError in self.enabled:
            self.error = with_zero(self.error, y)

    def inside(self, shape: tuple[int, ...], find: Callable[[], tuple[Any, Sequence[int], Sequence[int]]]) -> None:
        """Adds the check of indices into an array of shape `shape`.

        ``find()`` returns the indices (vectors along the last axis), the axes that the elements of a vector are for,
        and the largest allowed index for each of these axes.
        """
        if OOBError in self.enabled:
            indices, axes, limits = find()
            self.error = with_outside(self.error, self.primitive, shape, indices, axes, limits)

    # -- for that of operations that hold programs

    @property
    def leaves(self) -> list[Any]:
        """The leaves of the error."""
        return flatten(self.error)[0]

    def program(self, closed: ClosedJaxpr, avals: Sequence[Any], before: int = 0) -> tuple[ClosedJaxpr, PyTreeDef]:
        """An inner Jaxpr with checks added, and the treedef of the error that it returns.

        It takes `before` of the inputs of `closed`, `leaves`, then the other inputs; it returns the leaves of the new
        error, then the outputs of `closed`. `avals` are the types of the inputs of `closed`.
        """
        leaves, tree = flatten(self.error)
        in_avals = (*avals[:before], *(typeof(x) for x in leaves), *avals[before:])
        enabled, width = self.enabled, len(leaves)

        def make() -> tuple[ClosedJaxpr, PyTreeDef]:
            trees: list[PyTreeDef] = []

            def fun(*xs: Any) -> list[Any]:
                error = tree.unflatten(xs[before : before + width])
                args = [*xs[:before], *xs[before + width :]]
                error, outs = run_checked(closed.jaxpr, closed.consts, enabled, error, args)
                after, out_tree = flatten(error)
                trees.append(out_tree)
                return [*after, *outs]

            return restage(fun, in_avals, closed.jaxpr), trees[0]

        # Mapped axes are part of the key: the program is staged under them.
        return memoized(closed.jaxpr, ("checkify", enabled, tree, in_avals, before, axis_env.get()), make)

    def make_room(self, *trees: PyTreeDef) -> None:
        """Extends the error by all kinds of errors that inner Jaxprs return (`trees`), so that they can take it in the
        same structure, as loops require."""
        for tree in trees:
            # Loops need one structure for the error before and after each turn, so kinds of errors cannot appear
            # inside.
            self.error = self.error.with_states(tree.unflatten([None] * tree.num_leaves).kinds)

    def results(self, outs: Sequence[Any], *trees: PyTreeDef) -> list[Any]:
        """Takes the error from the outputs of an inner Jaxpr (one of several, for branches); returns the others."""
        width = trees[0].num_leaves
        # Branches return errors in one structure; the reports of all are known, and the payload says which one
        # happened.
        first, *others = (tree.unflatten(outs[:width]) for tree in trees)
        self.error = first.with_reports(*others)
        return list(outs[width:])

    def rebuilt(self, primitive: ProgramPrimitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """The results of an operation whose programs have checks inside: they carry the error."""

        def programs() -> list[tuple[ClosedJaxpr, PyTreeDef]]:
            bodies = primitive.bodies(params)
            return [self.program(body.program, body.program.in_avals, body.position or 0) for body in bodies]

        if primitive.keeps_types:
            self.make_room(*(tree for _, tree in programs()))
        checked, trees = zip(*programs(), strict=True)
        return self.results(primitive.rebind(args, params, checked, self.leaves), *trees)

    def expanded(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """The results of an operation that is computed by simpler ones, with the checks of these."""
        avals = [typeof(x) for x in args]
        closed = ClosedJaxpr(*stage(lambda *xs: primitive.expand(*xs, **params), avals, name=primitive.name))
        program, tree = self.program(closed, avals)
        outs = jit_p.rebind([*self.leaves, *args], {"name": "checked", "inline": False}, [program])
        return self.results(outs, tree)

    def happened(self, error: Error) -> None:
        """Adds another error, of which only enabled kinds are kept."""
        self.error = self.error.joined(error, self.enabled)

    # -- for any operation

    def run(self, eqn: JaxprEqn, values: Sequence[Any]) -> Sequence[Any]:
        """The results of an equation, whose checks are added to the error."""
        primitive, params = eqn.primitive, eqn.params
        self.primitive = primitive.name
        # Before the operation: a divisor is at fault, not the nan that follows.
        if primitive.checked is not None:
            results: Sequence[Any] | None = primitive.checked(self, *values, **params)
            if results is not None:
                return results
        elif isinstance(primitive, ProgramPrimitive) and primitive.nan_checked is None:
            make = self.expanded if primitive.expand is not None else self.rebuilt
            return make(primitive, values, params)
        out = primitive.bind(*values, **params)
        outs = out if primitive.multiple_results else [out]
        if primitive.nan_checked and NaNError in self.enabled:
            self.error = with_nan(self.error, primitive.name, outs)
        return outs


@replays
def run_checked(
    jaxpr: Jaxpr, consts: Sequence[Any], enabled: Categories, error: Error, args: Sequence[Any]
) -> tuple[Error, list[Any]]:
    """Evaluates a Jaxpr with checks, from the error so far; returns the new error and the results."""
    env: dict[Var, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    checks = Checks(enabled, error)
    has_64_bit, none = jaxpr.has_64_bit, nullcontext()
    with Replay() as replay:
        for eqn in jaxpr.eqns:
            values = [v.val if isinstance(v, Literal) else env[v] for v in eqn.invars]
            replay.enter(eqn.source_info)
            with recorded_x64(eqn) if has_64_bit else none:
                env.update(zip(eqn.outvars, checks.run(eqn, values), strict=True))
    return checks.error, [v.val if isinstance(v, Literal) else env[v] for v in jaxpr.outvars]
