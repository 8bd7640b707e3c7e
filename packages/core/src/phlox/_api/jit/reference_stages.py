"""Stages (traced, lowered) of functions that use references, made from the stages of the pure function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._base.pytree import treedef_children
from ..._trace.refs import Ref
from .bound_call import BoundCall
from .reference_calls import ReferenceCall
from .stages import Call, Lowered, Traced


def of_users(
    reference_call: ReferenceCall, captured: tuple[Ref, ...], pure_stage: Traced | Lowered, bound: BoundCall
) -> Traced | Lowered:
    """The stage of the user's function with arguments of these types, from a stage of the pure function."""
    call = _call(reference_call, captured, pure_stage._call, bound)
    if isinstance(pure_stage, Traced):
        return _Traced(call, pure_stage, lambda: _lowered(reference_call, captured, pure_stage.lower(), bound))
    return _lowered(reference_call, captured, pure_stage, bound)


def _lowered(reference_call: ReferenceCall, captured: tuple[Ref, ...], pure: Lowered, bound: BoundCall) -> Lowered:
    def run(program: Any) -> Callable[..., Any]:
        compiled = pure._run(program)
        return lambda leaves: reference_call.call_with(captured, compiled, leaves)

    return Lowered(_call(reference_call, captured, pure._call, bound), pure._lowering, run, pure._options)


class _Traced(Traced):
    """Its Jaxpr is that of the pure function, which takes and returns arrays for references."""

    def __init__(self, call: Call, pure: Traced, lower: Callable[[], Lowered]):
        super().__init__(call, pure.jaxpr, [], lower)
        self.jaxpr = pure.jaxpr

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.lower().compile()(*args, **kwargs)


def _call(reference_call: ReferenceCall, captured: tuple[Ref, ...], pure: Call, bound: BoundCall) -> Call:
    # The pure function takes closed-over references, then the other arguments, then the references among the arguments.
    rest = [i for i in range(len(bound.keys)) if i not in reference_call.ref_indices]
    numbers = [*[None] * len(captured), *rest, *reference_call.ref_indices]
    indices = [numbers[i] for i in pure.used_indices]
    # The pure function returns ((user's result, new values of arguments), new values of closed-over references).
    results, _ = treedef_children(pure.out_tree)
    out_tree, _ = treedef_children(results)
    return Call(
        bound,
        frozenset(),
        out_tree,
        pure.out_avals[: out_tree.num_leaves],
        None,
        [i for i in indices if i is not None],
        pure.hidden + indices.count(None),
    )
