"""Calls of `custom_vjp` functions that use references, as calls with the values of the references.

The function and its forward rule find what the references held at the call: the rule may run later, after further
writes. What they write is written back after the call, and is not differentiated. The backward rule uses the references
themselves, since it reads and writes when cotangents are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ..._base.errors import RefError
from ..._base.pytree import flatten
from ..._base.scoped import scoped
from ..._base.wrapping import wraps
from ..._ir.jaxpr import Jaxpr
from ..._ir.primitive import current_trace
from ..._trace.refs import Ref, SubstitutedRefs, accesses
from ..._trace.staging import stage
from ..._trace.trace import recorder, typeof
from ..jit import arguments
from ..jit.references import ArrayTree, flatten_arrays, replaced
from .rule_results import RuleName, check_returned_refs, pair_of
from .symbolic import CustomVJPPrimal

if TYPE_CHECKING:
    from .custom import custom_vjp


class RefCall:
    """One call of `function`.

    Args:
      function: its rules are set.
      tree: the structure of the differentiated arguments.
      fixed: the other arguments.
      captured: references that function and forward rule close over.

    Attributes:
      fun, fwd, bwd: the function and its rules of values. They take the arguments with values in the place of
        references, and then a list of the values of `captured`. Function and forward rule return the pair (result, new
        values of the references that are written).
    """

    def __init__(self, function: custom_vjp[Any, Any], tree: ArrayTree, fixed: Sequence[Any], captured: Sequence[Ref]):
        self.function, self.tree, self.fixed, self.captured = function, tree, fixed, captured
        assert function.fwd is not None and function.bwd is not None
        #: the references of the call
        self.refs = [*tree.refs, *captured]
        #: the positions among `refs` of those that are written; None before the function or its rule has run
        self.written: list[int] | None = None
        self.fun = self._function_of_values(function.fun)
        self.fwd = self._forward_of_values(function.fwd)
        self.bwd = self._backward_of_values(function.bwd)

    def write_back(self, state: Sequence[Any]) -> None:
        """Writes new values, which the function has returned after its result, to the references of the call."""
        trace = current_trace.get()
        for i, x in zip(self.written or (), state, strict=True):
            self.refs[i].write(trace, x)

    def _function_of_values(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> tuple[Any, list[Any]]:
            run = _Run(self, args)
            out = run(fun)
            arguments.check_outputs(fun, out, flatten(out)[0], role="custom_vjp primal function")
            self.written = sorted({*run.written(), *self._written_by_rule(args)})
            return out, run.values(self.written)

        call.__name__ = arguments.fun_name(fun)
        return call

    def _forward_of_values(self, fwd: Callable[..., Any]) -> Callable[..., Any]:
        rule = RuleName("fwd", arguments.fun_name(fwd), arguments.fun_name(self.function.fun))

        @wraps(fwd)
        def call(*args: Any) -> tuple[tuple[Any, list[Any]], Any]:
            run = _Run(self, args)
            out, saved = pair_of(run(fwd), rule)
            if self.written is None:
                self.written = run.written()
            for i in run.written():
                if i not in self.written:
                    raise RefError(
                        f"{rule} writes to a reference of type {self.refs[i].aval} for some derivatives only",
                        instead=f"the same write in {rule.function}; or one in the backward rule",
                    )
            return (out, run.values(self.written)), self._with_passed_refs(saved, run.own, rule)

        return call

    def _backward_of_values(self, bwd: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(bwd)
        def call(*args: Any) -> Any:
            *first, (cotangent, _) = args
            result = bwd(*first, cotangent)
            return (*result, None) if isinstance(result, tuple | list) else result

        return call

    def _with_passed_refs(self, saved: Any, own: Sequence[Ref], rule: RuleName) -> Any:
        """Residuals, with the references of the call in the place of the rule's own."""
        arrays, tree = flatten_arrays(saved)
        if not isinstance(tree, ArrayTree):
            return saved
        check_returned_refs(rule, tree.refs, [*own, *self.function.refs, *flatten(self.fixed)[0]])
        passed = dict(zip(own, self.tree.refs, strict=True))
        return tree._replace(refs=[passed.get(ref, ref) for ref in tree.refs]).unflatten(arrays)

    def _written_by_rule(self, args: Sequence[Any]) -> list[int]:
        """The positions of the references that the forward rule writes.

        Only a recorded call needs them: its rule may take the place of the function later, and then returns as much.
        """
        written: list[int] = []

        def use(fwd: Callable[..., Any], *args: Any) -> None:
            run = _Run(self, args)
            run(fwd)
            written.extend(run.written())

        if recorder() is not None:
            *passed, values = args
            _trace_rule(self.function, use, passed, values)
        return written


class _Run:
    """A run of a function or a rule of `call`; `args` are those of `RefCall.fun`.

    Attributes:
      own: references with the values of those among the arguments.
    """

    def __init__(self, call: RefCall, args: Sequence[Any]):
        *passed, values = args
        leaves, _ = flatten(tuple(call.function._split(passed)[1]))
        items = [leaves[i] for i in call.tree.ref_indices]
        self._captured = dict(zip(call.captured, map(_value, values), strict=True))
        self._start = [*map(_value, items), *self._captured.values()]
        self.own = [Ref(ref.aval, x) for ref, x in zip(call.tree.refs, self._start, strict=False)]
        # With symbolic zeros, the rule gets each of its arguments with a flag.
        items = [
            CustomVJPPrimal(ref, x.perturbed) if type(x) is CustomVJPPrimal else ref
            for ref, x in zip(self.own, items, strict=True)
        ]
        operands = call.tree.tree.unflatten(replaced(leaves, call.tree.ref_indices, items))
        self._args = call.function._fill(passed, operands)

    def __call__(self, fun: Callable[..., Any]) -> Any:
        return SubstitutedRefs(self._captured).run(fun, *self._args) if self._captured else fun(*self._args)

    def _state(self) -> list[Any]:
        return [*(ref.value for ref in self.own), *self._captured.values()]

    def written(self) -> list[int]:
        """The positions of the references that have other values now."""
        return [i for i, (x, start) in enumerate(zip(self._state(), self._start, strict=True)) if x is not start]

    def values(self, positions: Sequence[int]) -> list[Any]:
        """The values of the references at these positions."""
        state = self._state()
        return [state[i] for i in positions]


def _value(x: Any) -> Any:
    return x.value if type(x) is CustomVJPPrimal else x


#: whether a forward rule is being recorded only to find out which references it uses; rules of functions that it calls,
#: among which is often its own, are then not recorded for that purpose too
_is_finding_refs: ContextVar[bool] = ContextVar("phlox_finding_refs", default=False)


def _trace_rule(
    function: custom_vjp[Any, Any], use: Callable[..., Any], args: Sequence[Any], values: Sequence[Any]
) -> Jaxpr | None:
    """The Jaxpr of ``use(fwd, *args, values)``, where `fwd` is the forward rule; None if that raises.

    Differentiated arguments and `values` are arrays of the program, in the form in which the rule gets them.
    """
    leaves, tree = flatten((function._split(args)[1], list(values)))

    def run(*xs: Any) -> list[Any]:
        operands, inputs = tree.unflatten([CustomVJPPrimal(x, True) for x in xs] if function.symbolic_zeros else xs)
        use(function.fwd, *function._fill(args, operands), inputs)
        return []

    if _is_finding_refs.get():
        return None
    try:
        with scoped(_is_finding_refs, True):
            return stage(run, [typeof(x) for x in leaves], may_use_refs=True)[0]
    except Exception:  # a rule that fails for these arguments raises again when it is used
        return None


def captured_refs(function: custom_vjp[Any, Any], args: Sequence[Any], fun: Jaxpr) -> list[Ref]:
    """The references that `function`, of which `fun` is the Jaxpr, and its forward rule close over."""
    rule = _trace_rule(function, lambda fwd, *args: fwd(*args[:-1]), args, [])
    programs = [fun] if rule is None else [fun, rule]
    return list(dict.fromkeys(ref for program in programs for ref in accesses(program).values))
