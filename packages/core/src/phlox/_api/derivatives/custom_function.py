"""The base class of `custom_jvp` and `custom_vjp`: how a function with derivative rules is called.

Under a `JVPTrace` the rules run directly. Under other traces the call is one operation, of a primitive in
`_ops.control.custom` whose parameters hold the function's Jaxpr and the rules.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..._base import pytree
from ..._base.errors import UnexpectedTracerError
from ..._base.pytree import PyTreeDef, flatten
from ..._base.wrapping import P, R
from ..._ir.jaxpr import ClosedJaxpr, hoist_consts
from ..._ir.primitive import Primitive, current_trace
from ..._ops.control.custom import closes_over
from ..._ops.control.custom_rules import Rule
from ..._trace.partial_evaluation import runs_at_once
from ..._trace.staging import stage
from ..._trace.trace import Tracer, not_an_array, typeof
from ..._transform.batch import BatchTrace, accept_tracers_of
from ..._transform.jvp import JVPTrace
from ..._transform.linearize import TangentTrace
from ..jit import arguments
from ..jit.origins import origin
from ..jit.references import ArrayTree, flatten_arrays
from .function_with_rules import FunctionWithRules, positional
from .rule_results import OutType

if TYPE_CHECKING:
    from typing import Concatenate, ParamSpec, Self, TypeVar, overload

    Q = ParamSpec("Q")
    S = TypeVar("S")

#: classes of traces that pass an operation to their parent if none of its operands is a tracer of theirs
_PASSING = (JVPTrace, TangentTrace)


def _responsible_trace(leaves: Sequence[Any]) -> Any:
    """The innermost trace that records an operation on these values."""
    trace = current_trace.get()
    # If no argument is differentiated here, the call belongs to an outer trace, which may differentiate it.
    while type(trace) in _PASSING and not any(isinstance(x, Tracer) and x.owner is trace for x in leaves):
        trace = trace.parent
    return trace


class CustomFunction(FunctionWithRules[P, R]):
    """Base class of both: the function, and which of its arguments are not differentiated."""

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        super().__init__(fun)
        names = arguments.as_names(nondiff_argnames, "nondiff_argnames")
        numbers = arguments.as_ints(nondiff_argnums, "nondiff_argnums")
        # Sorted, as the rules get these arguments in the order of their positions.
        self.nondiff_argnums = tuple(sorted(arguments.complete(fun, numbers, names, "nondiff")[0]))

    def _nondiff_positions(self, args: Sequence[Any]) -> set[int]:
        """Positions of the arguments that are not differentiated."""
        return {n % len(args) for n in self.nondiff_argnums} if args else set()

    def _split(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """(arguments that are not differentiated, arguments that are)."""
        nondiff = self._nondiff_positions(args)
        # Numbers may be negative, so they are counted in the arguments of this call.
        fixed = [args[n % len(args)] for n in self.nondiff_argnums]
        return fixed, [x for i, x in enumerate(args) if i not in nondiff]

    def _fill(self, args: Sequence[Any], replacements: Sequence[Any]) -> list[Any]:
        """`args` with the differentiated ones replaced by `replacements`."""
        nondiff, values = self._nondiff_positions(args), iter(replacements)
        return [x if i in nondiff else next(values) for i, x in enumerate(args)]

    def _stage(
        self, args: Sequence[Any], in_tree: PyTreeDef, leaves: Sequence[Any]
    ) -> tuple[ClosedJaxpr, list[Any], PyTreeDef]:
        trees: list[PyTreeDef] = []

        def flat(*xs: Any) -> list[Any]:
            out = self.fun(*self._fill(args, in_tree.unflatten(xs)))
            outs, tree = flatten(out)
            arguments.check_outputs(self.fun, out, outs, role=f"{self.kind} primal function")
            trees.append(tree)
            return outs

        avals = [typeof(x) for x in leaves]
        jaxpr, consts = stage(flat, avals, name=arguments.fun_name(self.fun), may_use_refs=True)
        jaxpr.origin = origin(self.kind, "fun", self.fun, jaxpr, in_tree, trees[0])
        return ClosedJaxpr(hoist_consts(jaxpr)), consts, trees[0]

    def _at_once(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of an eager call without differentiation."""
        args = positional(self.fun, args, kwargs, self.kind)
        _, operands = self._split(args)
        # Numbers are converted, so that the function sees arrays as it does when it is traced.
        return arguments.as_arrays(self.fun(*self._fill(args, arguments.as_arrays(operands))))

    #: "custom_jvp" or "custom_vjp"
    kind: str

    def _call(self, *args: P.args, **kwargs: P.kwargs) -> R:
        outer = current_trace.get()
        # Without a trace, or for values under `ensure_compile_time_eval`, nothing is differentiated.
        if runs_at_once(outer, args, kwargs):
            return self._at_once(args, kwargs)
        # Changed before anything is traced: derivatives with respect to these arguments are stopped, or refused.
        args = self._stop_derivatives(positional(self.fun, args, kwargs, self.kind))  # type: ignore[assignment]
        leaves, in_tree = flatten_arrays(tuple(self._split(args)[1]))
        if isinstance(in_tree, ArrayTree):
            return self._with_refs(args, leaves, in_tree)
        trace = _responsible_trace(leaves)
        if trace is not outer:
            # Containers of the result are made anew, as variables of flax store the trace that they are made under.
            return pytree.tree_map(lambda x: x, self._under(trace, lambda: self._call(*args)))  # type: ignore[call-arg]
        # Under `jvp` the rule alone gives result and tangent, so the function is not traced.
        if isinstance(trace, JVPTrace) and self._needs_only_rules():
            return self._under(trace, lambda: self._differentiate(args, leaves, in_tree))
        closed, consts, out_tree = self._stage(args, in_tree, leaves)
        outs = self._bind(args, leaves, in_tree, closed, consts, OutType(out_tree, closed.out_avals))
        return out_tree.unflatten(outs)

    def _under(self, trace: Any, call: Callable[[], R]) -> R:
        """The result of `call` with `trace` as the current trace."""
        token = current_trace.set(trace)
        try:
            return call()
        except UnexpectedTracerError as error:
            if getattr(error, "live", False):  # a closed-over tracer belongs to a trace inside of `trace`
                raise closes_over(self.kind, arguments.fun_name(self.fun)) from error
            raise
        finally:
            current_trace.reset(token)

    def _with_refs(self, args: Sequence[Any], arrays: Sequence[Any], tree: ArrayTree) -> R:
        """The result for arguments among which are references."""
        raise not_an_array(tree.refs[0], f"an argument of the {self.kind} function {arguments.fun_name(self.fun)}")

    def _stop_derivatives(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, with the derivatives of non-differentiated ones stopped or refused."""
        raise NotImplementedError

    def _needs_only_rules(self) -> bool:
        """Whether differentiation needs only the rules, not a Jaxpr of the function."""
        return True

    def _differentiate(self, args: Sequence[Any], leaves: Sequence[Any], in_tree: PyTreeDef) -> Any:
        """The result under a `JVPTrace`, computed by the rules; the function is not traced."""
        raise NotImplementedError

    def _bind(
        self, args: Sequence[Any], leaves: Any, in_tree: PyTreeDef, closed: ClosedJaxpr, consts: Any, expected: OutType
    ) -> list[Any]:
        """The flat result of the call as one operation, with the Jaxpr `closed` of the function."""
        raise NotImplementedError

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(
            self: CustomFunction[Concatenate[S, Q], R], instance: S, owner: type | None = None
        ) -> Callable[Q, R]: ...

    # So that a decorated method binds its object, as functions do.
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def bind_call(primitive: Primitive, args: list[Any], closed: ClosedJaxpr, num_consts: int, **rules: Rule) -> list[Any]:
    """Binds the call of a function with rules.

    Under vmap it always takes the batching rule: even if no argument is mapped, a rule may close over mapped tracers.
    """
    trace = current_trace.get()
    if type(trace) is not BatchTrace:
        return primitive.bind(*args, call_jaxpr=closed, num_consts=num_consts, **rules)
    in_batch = {name: rule.map(functools.partial(accept_tracers_of, trace)) for name, rule in rules.items()}
    params = {"call_jaxpr": closed, "num_consts": num_consts, **in_batch}
    return trace.by_rule(primitive, [trace.split(x) for x in args], params)
