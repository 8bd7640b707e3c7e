"""Calls of `custom_vjp` functions with references among the arguments, as calls with the values of the references.

The function and its forward rule get references of their own, which hold what the arguments held at the call: the rule
may run later, after further writes. What they write is written back after the call, and is not differentiated. The
backward rule gets the references of the call, since it reads and writes when cotangents are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..._base.errors import RefError
from ..._base.pytree import flatten
from ..._base.wrapping import wraps
from ..._ir.primitive import current_trace
from ..._trace.refs import Ref
from ..._trace.staging import stage
from ..._trace.trace import recorder, typeof
from ..jit import arguments
from ..jit.references import ArrayTree, flatten_arrays, replaced
from .rule_results import RuleName, check_returned_refs, pair_of
from .symbolic import CustomVJPPrimal

if TYPE_CHECKING:
    from .custom import custom_vjp


class RefCall:
    """One call of `function` with differentiated arguments of the structure `tree`, and its other arguments `fixed`.

    Attributes:
      fun, fwd, bwd: the function and its rules with the values of references as arguments. Function and forward rule
        return the pair (result, new values of the references that are written).
    """

    def __init__(self, function: custom_vjp[Any, Any], tree: ArrayTree, fixed: Sequence[Any]):
        self.function, self.tree, self.fixed = function, tree, fixed
        assert function.fwd is not None and function.bwd is not None
        #: the positions of the references that are written; None before the function or its rule has run
        self.written: list[int] | None = None
        self.fun = self._function_of_values(function.fun)
        self.fwd = self._forward_of_values(function.fwd)
        self.bwd = self._backward_of_values(function.bwd)

    def write_back(self, state: Sequence[Any]) -> None:
        """Writes new values, which the function has returned after its result, to the references of the call."""
        trace = current_trace.get()
        for i, x in zip(self.written or (), state, strict=True):
            self.tree.refs[i].write(trace, x)

    def _function_of_values(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fun)
        def call(*args: Any) -> tuple[Any, list[Any]]:
            full, own = self._with_own_refs(args)
            out = fun(*full)
            arguments.check_outputs(fun, out, flatten(out)[0], role="custom_vjp primal function")
            self.written = sorted({*own.written(), *self._written_by_rule(args)})
            return out, own.values(self.written)

        return call

    def _forward_of_values(self, fwd: Callable[..., Any]) -> Callable[..., Any]:
        rule = RuleName("fwd", arguments.fun_name(fwd), arguments.fun_name(self.function.fun))

        @wraps(fwd)
        def call(*args: Any) -> tuple[tuple[Any, list[Any]], Any]:
            full, own = self._with_own_refs(args)
            out, saved = pair_of(fwd(*full), rule)
            if self.written is None:
                self.written = own.written()
            for i in own.written():
                if i not in self.written:
                    raise RefError(
                        f"{rule} writes to a reference of type {own.refs[i].aval} for some derivatives only",
                        instead=f"the same write in {rule.function}; or one in the backward rule",
                    )
            return (out, own.values(self.written)), self._with_passed_refs(saved, own, rule)

        return call

    def _backward_of_values(self, bwd: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(bwd)
        def call(*args: Any) -> Any:
            *first, (cotangent, _) = args
            return bwd(*first, cotangent)

        return call

    def _with_own_refs(self, args: Sequence[Any]) -> tuple[list[Any], _OwnRefs]:
        """The arguments with references that hold the values, and these references."""
        leaves, _ = flatten(tuple(self.function._split(args)[1]))
        passed = [leaves[i] for i in self.tree.ref_indices]
        own = _OwnRefs(self.tree.refs, [x.value if type(x) is CustomVJPPrimal else x for x in passed])
        items = [
            CustomVJPPrimal(ref, x.perturbed) if type(x) is CustomVJPPrimal else ref
            for ref, x in zip(own.refs, passed, strict=True)
        ]
        operands = self.tree.tree.unflatten(replaced(leaves, self.tree.ref_indices, items))
        return self.function._fill(args, operands), own

    def _with_passed_refs(self, saved: Any, own: _OwnRefs, rule: RuleName) -> Any:
        """Residuals, with the references of the call in the place of the rule's own."""
        arrays, tree = flatten_arrays(saved)
        if not isinstance(tree, ArrayTree):
            return saved
        check_returned_refs(rule, tree.refs, [*own.refs, *flatten(self.fixed)[0]])
        passed = dict(zip(own.refs, self.tree.refs, strict=True))
        return tree._replace(refs=[passed.get(ref, ref) for ref in tree.refs]).unflatten(arrays)

    def _written_by_rule(self, args: Sequence[Any]) -> list[int]:
        """The positions of the references that the forward rule writes.

        Only a recorded call needs them: its rule may take the place of the function later, and then returns as much.
        """
        if recorder() is None:
            return []
        leaves, tree = flatten(tuple(self.function._split(args)[1]))
        written: list[int] = []

        def run(*xs: Any) -> list[Any]:
            primals = [CustomVJPPrimal(x, True) for x in xs] if self.function.symbolic_zeros else xs
            full, own = self._with_own_refs(self.function._fill(args, tree.unflatten(primals)))
            assert self.function.fwd is not None
            self.function.fwd(*full)
            written.extend(own.written())
            return []

        try:
            stage(run, [typeof(x) for x in leaves], may_use_refs=True)
        except Exception:  # a rule that fails for these arguments raises again when it is used
            return []
        return written


class _OwnRefs:
    """References of the types of `passed` that hold `start`."""

    def __init__(self, passed: Sequence[Ref], start: Sequence[Any]):
        self.start = start
        self.refs = [Ref(ref.aval, x) for ref, x in zip(passed, start, strict=True)]

    def written(self) -> list[int]:
        """The positions of the references that hold other values now."""
        return [i for i, (ref, x) in enumerate(zip(self.refs, self.start, strict=True)) if ref.value is not x]

    def values(self, positions: Sequence[int]) -> list[Any]:
        """The values of the references at these positions."""
        return [self.refs[i].value for i in positions]
