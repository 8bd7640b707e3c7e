"""Further forms of the rules of `custom_vjp`: with accumulators, with rematerialization, as one operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._base import pytree
from ..._base.wrapping import wraps
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import ClosedJaxpr, hoist_consts
from ..._ops.control.remat_opt import remat_opt
from ..._trace.staging import stage
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, add, instantiate
from .symbolic import CustomVJPPrimal


class GradAccum:
    """Base class of the accumulators that collect the cotangent of an argument."""

    def __init__(self, aval: ShapedArray, val: Any = None):
        self.aval = aval
        # A symbolic zero, which takes no memory until something is added.
        self.val = Zero(aval) if val is None else val

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"

    def accum(self, x: Any) -> None:
        """Adds a cotangent; None is zero."""
        if x is None or type(x) is Zero:
            return
        # Without the sum of a zero and the first cotangent.
        self.val = x if type(self.val) is Zero else pytree.tree_map(add, self.val, x)

    def freeze(self) -> Any:
        """The sum."""
        return self.val


class ValAccum(GradAccum):
    """Collects a cotangent as a value."""


# Residuals may hold arrays only as leaves; types travel in the treedef.
@pytree.register_static
class _Types:
    """The types of the arguments, as a part of the residuals that has no arrays."""

    def __init__(self, tree: pytree.PyTreeDef, avals: tuple[ShapedArray, ...]):
        self.tree, self.avals = tree, avals

    def __hash__(self) -> int:
        return hash((self.tree, self.avals))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Types) and (self.tree, self.avals) == (other.tree, other.avals)


def with_accumulators(
    fwd: Callable[..., Any], bwd: Callable[..., Any], nondiff_argnums: tuple[int, ...]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The rules whose `bwd` adds cotangents to one accumulator for each array of the differentiated arguments."""

    @wraps(fwd)
    def forward(*args: Any) -> Any:
        out, residuals = fwd(*args)
        # Arguments that are not differentiated have no accumulator.
        nondiff = {n % len(args) for n in nondiff_argnums} if args else set()
        operands = tuple(x for i, x in enumerate(args) if i not in nondiff)
        # With symbolic zeros, the rule gets each array wrapped with a flag.
        leaves, tree = pytree.tree_flatten(operands, is_leaf=lambda x: isinstance(x, CustomVJPPrimal))
        avals = (typeof(x.value if isinstance(x, CustomVJPPrimal) else x) for x in leaves)
        return out, (residuals, _Types(tree, tuple(aval.tangent() for aval in avals)))

    @wraps(bwd)
    def backward(*args: Any) -> tuple[Any, ...]:
        *first, (residuals, types), cotangent = args
        accums = [ValAccum(aval) for aval in types.avals]
        bwd(*first, residuals, cotangent, *types.tree.unflatten(accums))
        sums = [accum.freeze() for accum in accums]
        # A rule may leave an accumulator untouched: its cotangent is zero.
        sums = [instantiate(x) if type(x) is Zero else x for x in sums]
        cotangents: tuple[Any, ...] = types.tree.unflatten(sums)
        return cotangents

    return forward, backward


def with_recomputation(fwd: Callable[..., Any], rem: Callable[..., Any]) -> Callable[..., Any]:
    """The forward rule that runs `rem` after `fwd`, and saves the residuals of `rem`."""

    @wraps(fwd)
    def forward(*args: Any) -> tuple[Any, Any]:
        out, residuals = fwd(*args)
        # The result of `fwd` counts; `rem` computes it again only for the residuals.
        return out, rem(residuals, *args)[1]

    return forward


def as_one_operation(forward: Callable[..., Any], fun: ClosedJaxpr, fun_consts: Sequence[Any]) -> Callable[..., Any]:
    """The forward rule as one operation, which is replaced by `fun` where the residuals are not used."""

    def run(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], Any]:
        form = None

        def flat(*xs: Any) -> list[Any]:
            nonlocal form
            outs, residuals, form = forward(xs, perturbed)
            return [*outs, *residuals]

        jaxpr, consts = stage(flat, [typeof(x) for x in primals], name=fun.jaxpr.name)
        results = remat_opt.bind(
            *fun_consts,
            *consts,
            *primals,
            fwd_jaxpr=ClosedJaxpr(hoist_consts(jaxpr)),
            fun_jaxpr=fun,
            # Constants of the function come first, for the case in which it takes the place of the rule.
            num_fun_consts=len(fun_consts),
            num_consts=len(consts),
        )
        count = len(fun.out_avals)
        return results[:count], results[count:], form

    return run
