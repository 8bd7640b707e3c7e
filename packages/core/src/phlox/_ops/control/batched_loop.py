"""The programs of a `while` loop over a batch, and of one that runs for some rows of a batch only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..._ir.jaxpr import ClosedJaxpr, memoized, with_constants
from ..._trace.axes import axis_env
from ..._trace.interpret import eval_jaxpr
from ..._trace.trace import typeof
from ..._transform.batch import BatchAxis, Dim
from ..._transform.jaxprs import batch_jaxpr, restage
from ..elementwise.logic import select_n
from ..random.keys import is_key
from ..reductions.reduce import reduce_or
from ..structure.shape import broadcast_in_dim
from .masked import masked_jaxpr, masked_test
from .safe_rows import safe_rows
from .turns import spread_carry


class BatchedLoop(NamedTuple):
    """The programs of a loop over a batch; `stops`: whether the condition differs between the examples."""

    cond: ClosedJaxpr
    body: ClosedJaxpr
    carry: tuple[bool, ...]
    stops: bool
    one_cond: ClosedJaxpr


def batched_loop(
    axis: BatchAxis,
    cond_jaxpr: ClosedJaxpr,
    cond_dims: tuple[Dim, ...],
    body_jaxpr: ClosedJaxpr,
    body_dims: tuple[Dim, ...],
    carry: Sequence[bool],
) -> BatchedLoop:
    def after(known: tuple[bool, ...]) -> list[bool]:
        dims = tuple(0 if there else None for there in known)
        if batch_jaxpr(cond_jaxpr, axis, (*cond_dims, *dims))[1][0] is not None:
            return [True] * len(known)  # examples stop after different numbers of turns, so every carry is batched
        return [d is not None for d in batch_jaxpr(body_jaxpr, axis, (*body_dims, *dims))[1]]

    batched = spread_carry(carry, after)
    dims = tuple(0 if there else None for there in batched)
    cond, (stops,) = batch_jaxpr(cond_jaxpr, axis, (*cond_dims, *dims))
    body, _ = batch_jaxpr(body_jaxpr, axis, (*body_dims, *dims), batched)
    if stops is None:
        return BatchedLoop(cond, body, batched, False, cond)
    masked = only_where(cond, body, len(cond_dims), body_dims)
    return BatchedLoop(as_long_as_any(cond), masked, batched, True, cond)


def as_long_as_any(go_on: ClosedJaxpr) -> ClosedJaxpr:
    def fun(*xs: Any) -> list[Any]:
        return [reduce_or(*eval_jaxpr(go_on.jaxpr, go_on.consts, *xs), axes=(0,))]

    return memoized(go_on.jaxpr, "any", lambda: restage(fun, go_on.in_avals, go_on.jaxpr))


def only_where(go_on: ClosedJaxpr, turn: ClosedJaxpr, ncond: int, const_dims: Sequence[Dim]) -> ClosedJaxpr:
    """The batched turn, which updates the carry of examples whose condition is true and keeps the others'.

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
        moved = eval_jaxpr(turn.jaxpr, turn.consts, *safe)
        carry = inputs[nconsts : nconsts + len(moved)]
        return [
            select_n(broadcast_in_dim(goes_on, shape=typeof(x).shape, broadcast_dimensions=(0,)), x, y)
            for x, y in zip(carry, moved, strict=True)
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
