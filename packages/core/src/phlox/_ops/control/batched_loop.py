"""The programs of a `while` loop over a batch, and of one that runs for some rows of a batch only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..._ir.jaxpr import ClosedJaxpr, memoized, with_constants
from ..._trace.axes import axis_env
from ..._trace.interpret import eval_jaxpr
from ..._trace.trace import typeof
from ..._transform.batch import BatchAxis, Dim, batch_dims
from ..._transform.jaxprs import batch_jaxpr, restage
from ..elementwise.logic import select_n
from ..random.keys import is_key
from ..reductions.reduce import reduce_or
from ..structure.shape import broadcast_in_dim
from .masked import masked_jaxpr, masked_test
from .safe_rows import safe_rows
from .turns import Loop, carry_fixed_point


class BatchedLoop(NamedTuple):
    """The programs of a loop over a batch.

    `batched` has a flag for each carry. `cond_per_example` is the condition of each example if it differs between them,
    which then stop after different numbers of turns, else None. `cond` is true as long as any example goes on.
    """

    cond: ClosedJaxpr
    body: ClosedJaxpr
    batched: tuple[bool, ...]
    cond_per_example: ClosedJaxpr | None


def batched_loop(axis: BatchAxis, dims: Loop) -> BatchedLoop:
    """The loop over the batch `axis`, of which constants and the carry at the start have these dims."""

    def after(batched: tuple[bool, ...]) -> list[bool]:
        carry_dims = batch_dims(batched)
        if batch_jaxpr(dims.cond, axis, (*dims.cond_consts, *carry_dims))[1][0] is not None:
            return [True] * len(batched)  # examples stop after different numbers of turns, so every carry is batched
        return [d is not None for d in batch_jaxpr(dims.body, axis, (*dims.body_consts, *carry_dims))[1]]

    batched = carry_fixed_point([d is not None for d in dims.carry], after)
    carry_dims = batch_dims(batched)
    cond, (cond_dim,) = batch_jaxpr(dims.cond, axis, (*dims.cond_consts, *carry_dims))
    body, _ = batch_jaxpr(dims.body, axis, (*dims.body_consts, *carry_dims), batched)
    if cond_dim is None:
        return BatchedLoop(cond, body, batched, None)
    masked = update_where(cond, body, len(dims.cond_consts), dims.body_consts)
    return BatchedLoop(_any(cond), masked, batched, cond)


def _any(cond: ClosedJaxpr) -> ClosedJaxpr:
    """The condition that `cond` is true for any example."""

    def fun(*xs: Any) -> list[Any]:
        return [reduce_or(*eval_jaxpr(cond.jaxpr, cond.consts, *xs), axes=(0,))]

    return memoized(cond.jaxpr, "any", lambda: restage(fun, cond.in_avals, cond.jaxpr))


def update_where(go_on: ClosedJaxpr, turn: ClosedJaxpr, ncond: int, const_dims: Sequence[Dim]) -> ClosedJaxpr:
    """The batched turn, which updates the carry of examples whose condition `go_on` is true and keeps the others'.

    `turn` takes constants, batched as in `const_dims`, and the carry, and may take the state of the loop after them.
    The condition reads the last of its inputs.
    """
    nconsts, first = len(const_dims), len(turn.in_avals) + ncond - len(go_on.in_avals)
    dims = [*const_dims, *[None] * (first - nconsts), *[0] * (len(turn.in_avals) - first)]

    def fun(*args: Any) -> list[Any]:
        cond_consts, inputs = args[:ncond], args[ncond:]
        (goes_on,) = eval_jaxpr(go_on.jaxpr, go_on.consts, *cond_consts, *inputs[first:])
        # In derivatives, rows that have ended are replaced by one that goes on: see `safe_rows`.
        safe = [
            x if d is None or is_key(typeof(x)) else safe_rows.bind(goes_on, x, axes=(d,), row=0)
            for x, d in zip(inputs, dims, strict=True)
        ]
        updated = eval_jaxpr(turn.jaxpr, turn.consts, *safe)
        carry = inputs[nconsts : nconsts + len(updated)]
        return [
            select_n(broadcast_in_dim(goes_on, shape=typeof(x).shape, broadcast_dimensions=(0,)), x, y)
            for x, y in zip(carry, updated, strict=True)
        ]

    avals = [*go_on.in_avals[:ncond], *turn.in_avals]
    key = ("only where", go_on.jaxpr, ncond, tuple(const_dims), axis_env.get())
    return memoized(turn.jaxpr, key, lambda: restage(fun, avals, turn.jaxpr))


def masked_programs(mask: Any, params: dict[str, Any]) -> list[ClosedJaxpr]:
    """Condition and body of a loop for the rows where `mask` is true; the mask is a constant of both."""
    inner, turn = (masked_jaxpr(params[name], typeof(mask)) for name in ("cond_jaxpr", "body_jaxpr"))

    def fun(*xs: Any) -> list[Any]:
        return [masked_test.bind(*eval_jaxpr(inner.jaxpr, inner.consts, *xs), xs[0])]

    test = memoized(inner.jaxpr, "test", lambda: restage(fun, inner.in_avals, inner.jaxpr))
    return [with_constants(test, [mask]), with_constants(turn, [mask])]
