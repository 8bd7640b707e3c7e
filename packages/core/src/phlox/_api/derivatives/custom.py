"""`custom_jvp` and `custom_vjp`: functions with derivative rules of their own.

Their rules become flat functions, as the primitives of `_ops.control.custom` take them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..._base import pytree
from ..._base.errors import DerivativeError, FunctionTreeError, OptionError, UnexpectedTracerError, UnsupportedError
from ..._base.pytree import PyTreeDef, flatten
from ..._base.tracebacks import trim
from ..._base.wrapping import P, R
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import ClosedJaxpr
from ..._ir.primitive import current_trace
from ..._ops.control.custom import closes_over, custom_jvp_call, custom_vjp_call
from ..._ops.control.custom_rules import Rule, custom_vjp_forward
from ..._ops.elementwise.arithmetic import stop_gradient
from ..._trace.refs import Ref, accesses, values
from ..._trace.trace import ArrayBase, Tracer, typeof
from ..._transform.array_operations import Zero, instantiate
from ..._transform.jvp import by_rule
from ..jit import arguments
from ..jit.references import ArrayTree, Structure, check_distinct, find_refs, flatten_arrays, merged, names_of_refs
from .custom_function import CustomFunction, bind_call
from .function_with_rules import no_rule, positional
from .rule_results import OutType, RuleName, check_returned_refs, checked_tangents, flat_cotangents, pair_of, run_rule
from .symbolic import CustomVJPPrimal, as_residual, as_rule_argument


class custom_jvp(CustomFunction[P, R]):
    """A function with a forward derivative rule of your own.

    The rule, set by `defjvp`, takes (primals, tangents) and returns (out, tangent of out). It must be linear in the
    tangents. Reverse mode follows from it.

    Args:
      fun: function of positional arguments, trees of arrays.
      nondiff_argnums: positional arguments that are not differentiated, counted from 0; the rule receives them first.
      nondiff_argnames: names of further such arguments.

    Raises:
      OptionError: `fun` has no such arguments.
      UndefinedRuleError: in a call, when no rule has been set.

    >>> @phlox.custom_jvp
    ... def f(x):
    ...     return jnp.sin(x)
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return f(x), 10 * t
    >>> phlox.grad(f)(0.0)
    Array(10., dtype=float32, weak_type=True)
    """

    kind = "custom_jvp"
    jvp: Callable[..., Any] | None = None
    symbolic_zeros: bool = False
    reverse: Any = None

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Sets the derivative rule; returns it, so this is a decorator.

        Args:
          jvp: ``jvp(primals, tangents)`` returns (out, tangent of out); arguments that are not differentiated come
            first.
          symbolic_zeros: the rule gets a `SymbolicZero` for each tangent that is known to be zero, and may return
            `SymbolicZero`s.

        Returns:
          `jvp`.

        >>> f = phlox.custom_jvp(jnp.sin)
        >>> _ = f.defjvp(lambda primals, tangents: (f(*primals), 10 * tangents[0]))
        >>> phlox.grad(f)(0.0)
        Array(10., dtype=float32, weak_type=True)
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any], **options: Any) -> None:
        """Sets rules for reverse mode, which otherwise transposes the rule of `defjvp`.

        Forward mode does not use them. Reverse mode does not use the rule of `defjvp`, which then need not be one that
        can be transposed: it may call `pure_callback`, say.

        Args:
          fwd, bwd: the rules, as `custom_vjp` describes them.
          **options: those of `custom_vjp.defvjp`.

        Raises:
          DerivativeError: some arguments are not differentiated (`nondiff_argnums`).

        >>> f = phlox.custom_jvp(jnp.sin)
        >>> _ = f.defjvp(lambda primals, tangents: (f(*primals), 10 * tangents[0]))
        >>> f.defvjp(lambda x: (f(x), None), lambda _, ct: (20 * ct,))
        >>> phlox.jvp(f, (0.0,), (1.0,))[1], phlox.grad(f)(0.0)
        (Array(10., dtype=float32, weak_type=True), Array(20., dtype=float32, weak_type=True))
        """
        if self.nondiff_argnums:
            raise DerivativeError(
                "custom_jvp.defvjp: not with nondiff_argnums", instead="a function of the differentiated arguments"
            )
        self.reverse = custom_vjp(self.fun)
        self.reverse.defvjp(fwd, bwd, **options)

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets one rule for each argument.

        Args:
          *jvps: ``rule(tangent, out, *primals)`` returns what this argument contributes to the tangent of out; None
            for zero.

        Raises:
          DerivativeError: some arguments are not differentiated.
          OptionError: in a derivative, when the number of rules is not that of the arguments.

        >>> f = phlox.custom_jvp(lambda x, y: x * y)
        >>> f.defjvps(lambda t, out, x, y: 10 * t, None)
        >>> phlox.grad(f, (0, 1))(2.0, 3.0)
        (Array(10., dtype=float32, weak_type=True), Array(0., dtype=float32, weak_type=True))
        """
        if self.nondiff_argnums:
            raise DerivativeError(
                "defjvps: Can't use ``defjvps`` with ``nondiff_argnums``", instead="defjvp, one rule for all arguments"
            )

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            # The function itself is called, and not `self.fun`: its own derivatives, of higher order, follow the rule
            # too.
            out = self(*primals)  # type: ignore[call-arg]
            if len(jvps) != len(primals):
                raise OptionError(
                    f"defjvps: {len(jvps)} rules for the {len(primals)} arguments of {arguments.fun_name(self.fun)}",
                    instead="one rule for each argument, None for an argument without a derivative",
                )
            parts = [rule(t, out, *primals) for rule, t in zip(jvps, tangents, strict=True) if rule is not None]
            if not parts:
                # With None for all arguments the tangent is zero.
                return out, pytree.tree_map(lambda x: instantiate(Zero(typeof(x).tangent())), out)
            return out, functools.reduce(lambda a, b: pytree.tree_map(lambda x, y: x + y, a, b), parts)

        self.defjvp(jvp)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.jvp is None:
            raise no_rule(self.fun, self.kind, "JVP", "defjvp(rule)")
        try:
            return self._call(*args, **kwargs)
        except Exception as error:
            trim(error)
            raise

    def _call(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if not self.nondiff_argnums:
            return super()._call(*args, **kwargs)
        args = self._stop_derivatives(positional(self.fun, args, kwargs, self.kind))  # type: ignore[assignment]
        nondiff = self._nondiff_positions(args)
        leaves, tree = flatten([x if i in nondiff else None for i, x in enumerate(args)])
        traced = [x for x in leaves if isinstance(x, Tracer)]
        if traced:
            return self._with_operands(leaves, tree)._call(self._split(args)[1], traced)
        return super()._call(*args)  # type: ignore[call-arg]

    def _with_operands(self, leaves: Sequence[Any], tree: PyTreeDef) -> custom_jvp[Any, R]:
        """This function with two arguments: those that are differentiated, and the tracers among the others.

        `leaves` and `tree` are the arguments that are not differentiated, with None in the place of the others. A rule
        that closed over tracers could not run after their trace has ended, as in the derivative of a loop.
        """
        jvp, hole = self.jvp, object()
        assert jvp is not None
        static = [hole if isinstance(x, Tracer) else x for x in leaves]

        def filled(traced: Sequence[Any]) -> list[Any]:
            values = iter(traced)
            return tree.unflatten([next(values) if x is hole else x for x in static])

        def fun(operands: list[Any], traced: list[Any]) -> Any:
            return self.fun(*self._fill(filled(traced), operands))

        def rule(primals: tuple[list[Any], list[Any]], tangents: tuple[list[Any], list[Any]]) -> Any:
            return jvp(*self._split(filled(primals[1]))[0], tuple(primals[0]), tuple(tangents[0]))

        fun.__name__, rule.__name__ = arguments.fun_name(self.fun), arguments.fun_name(jvp)
        with_operands: custom_jvp[Any, R] = custom_jvp(fun)
        with_operands.defjvp(rule, self.symbolic_zeros)
        return with_operands

    def _stop_derivatives(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        nondiff = self._nondiff_positions(args)
        return tuple(_without_derivative(x) if i in nondiff else x for i, x in enumerate(args))

    def _rule(self, args: Sequence[Any], leaves: Sequence[Any], in_tree: PyTreeDef, expected: OutType) -> Rule:
        assert self.jvp is not None
        flat = self._flat_rule(self._split(args)[0], in_tree, expected)
        rule = Rule(flat, arguments.fun_name(self.jvp), self.symbolic_zeros)
        if self.reverse is None:
            return rule
        fwd, bwd = self.reverse._rules(args, leaves, in_tree, expected)
        return rule._replace(other_mode=functools.partial(custom_vjp_forward, fwd, bwd, jvp=rule))

    def _differentiate(self, args: Sequence[Any], leaves: Sequence[Any], in_tree: PyTreeDef) -> Any:
        expected = OutType()
        rule = self._rule(args, leaves, in_tree, expected)
        parent = current_trace.get().parent
        is_transposed_later = parent is not None and parent.separates_tangents
        derive = rule.other_mode if rule.other_mode is not None and is_transposed_later else rule.call
        outs = by_rule(leaves, lambda primals, tangents: derive(primals, rule.inputs(tangents)))
        assert expected.tree is not None
        return expected.tree.unflatten(outs)

    def _bind(
        self, args: Sequence[Any], leaves: Any, in_tree: PyTreeDef, closed: ClosedJaxpr, consts: Any, expected: OutType
    ) -> list[Any]:
        rule = self._rule(args, leaves, in_tree, expected)
        return bind_call(custom_jvp_call, [*consts, *leaves], closed, len(consts), jvp=rule)

    def _flat_rule(self, fixed: list[Any], in_tree: PyTreeDef, expected: OutType) -> Callable[..., Any]:
        jvp = self.jvp
        assert jvp is not None
        rule_name = RuleName("jvp", arguments.fun_name(jvp), arguments.fun_name(self.fun))

        def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            both = (in_tree.unflatten(map(as_rule_argument, values)) for values in (primals, tangents))
            result = run_rule(rule_name, jvp, *fixed, *both)
            primal_out, tangent_out = pair_of(result, rule_name)
            outs, tree = flatten(primal_out)
            out_tangents, tangent_tree = flatten(tangent_out)
            pytree.check_same(
                tree,
                tangent_tree,
                f"{rule_name} must produce primal and tangent outputs with equal container (pytree) structures, but "
                f"got {tree} and {tangent_tree} respectively.",
            )
            arguments.check_outputs(jvp, result, [*outs, *out_tangents])
            expected.check(outs, tree, rule_name)
            return outs, checked_tangents(out_tangents, outs, tree, rule_name)

        return rule


def _without_derivative(tree: Any) -> Any:
    """The tree with `stop_gradient` applied to its tracers that have derivatives."""

    # For arrays nothing has to be stopped. PRNG keys, functions and other objects pass.
    def stop(x: Any) -> Any:
        return stop_gradient.bind(x) if isinstance(x, Tracer) and dtypes.is_inexact(x.aval.dtype) else x

    return pytree.tree_map(stop, tree)


class custom_vjp(CustomFunction[P, R]):
    """A function with reverse derivative rules of your own.

    `defvjp(fwd, bwd)` sets the rules: ``fwd(*args) -> (out, residuals)`` saves the values that `bwd` needs,
    ``bwd(residuals, cotangent) -> cotangents`` returns a tuple with one for each differentiated argument (None: zero).

    Args:
      fun: function of positional arguments, trees of arrays.
      nondiff_argnums: positional arguments that are not differentiated, counted from 0; `bwd` receives them first,
        `fwd` at their own positions.
      nondiff_argnames: names of further such arguments.

    Raises:
      OptionError: `fun` has no such arguments.
      UndefinedRuleError: in a call, when no rules have been set.

    >>> @phlox.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1, 1),))
    >>> phlox.grad(lambda x: 5 * clipped(x))(2.0)
    Array(1., dtype=float32, weak_type=True)
    """

    kind = "custom_vjp"
    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None
    symbolic_zeros: bool = False
    optimize_remat: bool = False
    generic_batching: bool = False
    #: the references that the forward rule may save for the backward rule
    refs: Sequence[Ref] = ()
    #: the number of leaves after the arguments that are values of closed-over references; None if not known
    num_captured: int | None = None

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Sets the forward and the backward rule.

        Args:
          fwd, bwd: the rules, as `custom_vjp` describes them.
          symbolic_zeros: `fwd` gets a `CustomVJPPrimal` for each array among the arguments, which tells whether
            anything is differentiated with respect to the array; `bwd` gets a `SymbolicZero` for each cotangent known
            to be zero.
          optimize_remat: under `checkpoint`, run the function instead of `fwd` where only the result is needed; for
            rules that run as one operation, such as a custom call, of which unused parts cannot be eliminated.
          generic_batching: under `vmap`, where all examples share a result and `bwd` returns a cotangent of each
            example for an argument that they share, the first example gets the whole cotangent of the result; without
            it a `DerivativeError` is raised. Where `fwd` maps a result that `fun` does not, the first example's counts.

        Raises:
          UnsupportedError: both `symbolic_zeros` and `optimize_remat` are set.

        >>> f = phlox.custom_vjp(jnp.sin)
        >>> f.defvjp(lambda x: (jnp.sin(x), None), lambda residuals, ct: (10 * ct,))
        >>> phlox.grad(f)(0.0)
        Array(10., dtype=float32, weak_type=True)
        """
        if symbolic_zeros and optimize_remat:
            raise UnsupportedError("defvjp: optimize_remat and symbolic_zeros do not go together")
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros, self.optimize_remat = symbolic_zeros, optimize_remat
        self.generic_batching = generic_batching

    def defvjp_with_logs(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """As `defvjp`, for a backward rule that returns a pair (cotangents, logs).

        Logs are a dict of trees of arrays, or None. The function that `vjp` returns gives them by its method
        `with_logs`; otherwise they are dropped, and compiled programs do not compute them.

        >>> f = phlox.custom_vjp(jnp.sin)
        >>> f.defvjp_with_logs(lambda x: (jnp.sin(x), None), lambda _, ct: ((10 * ct,), {"ct": ct}))
        >>> _, pullback = phlox.vjp(f, 0.0)
        >>> pullback.with_logs(2.0)
        ((Array(20., dtype=float32, weak_type=True),), {'ct': Array(2., dtype=float32, weak_type=True)})
        """
        from .logs import returns_logs  # few rules have logs or accumulators

        self.defvjp(fwd, returns_logs(bwd), symbolic_zeros, optimize_remat, generic_batching)

    def defvjp_with_accums(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """As `defvjp`, for a backward rule that adds the cotangents to accumulators.

        ``bwd(residuals, cotangent, *accumulators)`` calls ``accum(value)``, as often as it likes, of the accumulators.
        There is one for each array, in trees like the arguments.

        >>> f = phlox.custom_vjp(jnp.sin)
        >>> f.defvjp_with_accums(lambda x: (jnp.sin(x), None), lambda _, ct, accum: accum.accum(10 * ct))
        >>> phlox.grad(f)(0.0)
        Array(10., dtype=float32, weak_type=True)
        """
        from .backward_rules import with_accumulators

        rules = with_accumulators(fwd, bwd, self.nondiff_argnums)
        self.defvjp(*rules, symbolic_zeros, optimize_remat, generic_batching)

    def defremat(
        self,
        fwd: Callable[..., Any],
        rem: Callable[..., Any],
        bwd: Callable[..., Any],
        generic_batching: bool = False,
    ) -> None:
        """Sets rules of which the second recomputes residuals.

        ``rem(residuals, *args) -> (out, residuals for bwd)`` runs after `fwd`. Rules that `defvjp` has set stay.

        >>> f = phlox.custom_vjp(jnp.sin)
        >>> f.defremat(lambda x: (jnp.sin(x), x), lambda x, _: (jnp.sin(x), jnp.cos(x)), lambda cos, ct: (cos * ct,))
        >>> phlox.grad(f)(0.0)
        Array(1., dtype=float32, weak_type=True)
        """
        from .backward_rules import with_recomputation

        if self.fwd is None:
            self.defvjp(with_recomputation(fwd, rem), bwd, generic_batching=generic_batching)

    def defremat_with_logs(
        self,
        fwd: Callable[..., Any],
        rem: Callable[..., Any],
        bwd: Callable[..., Any],
        generic_batching: bool = False,
    ) -> None:
        """As `defremat`, for a backward rule that returns a pair (cotangents, logs), as of `defvjp_with_logs`.

        >>> f = phlox.custom_vjp(jnp.sin)
        >>> f.defremat_with_logs(
        ...     lambda x: (jnp.sin(x), x), lambda x, _: (jnp.sin(x), jnp.cos(x)), lambda c, ct: ((c * ct,), None)
        ... )
        >>> phlox.grad(f)(0.0)
        Array(1., dtype=float32, weak_type=True)
        """
        from .logs import returns_logs

        self.defremat(fwd, rem, returns_logs(bwd), generic_batching)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.fwd is None or self.bwd is None:
            raise no_rule(self.fun, self.kind, "VJP", "defvjp(fwd, bwd)")
        try:
            return self._call(*args, **kwargs)
        except Exception as error:
            trim(error)
            raise

    def _stop_derivatives(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        # A tracer in `nondiff_argnums` would be a constant of the backward rule, which runs after its trace has ended.
        if any(isinstance(x, Tracer) for x in pytree.tree_leaves(self._split(args)[0])):
            raise UnexpectedTracerError(
                f"an argument of the custom_vjp function {arguments.fun_name(self.fun)} that nondiff_argnums excludes "
                "from differentiation is a traced array",
                instead="an ordinary argument, and None for its cotangent; nondiff_argnums is for functions",
            )
        return args

    def _at_once(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # As where the function is traced, each reference is one argument, and none is returned.
        if sum(type(x) is Ref for x in args) > 1:
            names = lambda: names_of_refs(self.fun, args, kwargs)  # noqa: E731
            function = f"the custom_vjp function {arguments.fun_name(self.fun)}"
            check_distinct(function, [x for x in args if type(x) is Ref], names=names)
        out = super()._at_once(args, kwargs)
        if not isinstance(out, ArrayBase) and find_refs(outs := pytree.tree_leaves(out)):
            arguments.check_outputs(self.fun, out, outs, role="custom_vjp primal function")
        return out

    def _with_refs(
        self, args: Sequence[Any], arrays: Sequence[Any], tree: ArrayTree, captured: Sequence[Ref] = ()
    ) -> R:
        from .rules_of_refs import RefCall  # few functions with rules use references

        name = f"the custom_vjp function {arguments.fun_name(self.fun)}"
        check_distinct(name, tree.refs, captured, names=lambda: names_of_refs(self.fun, args, {}))
        call = RefCall(self, tree, self._split(args)[0], captured)
        of_values: custom_vjp[Any, Any] = custom_vjp(call.fun)
        of_values.nondiff_argnums = tuple(sorted(self._nondiff_positions(args)))
        of_values.defvjp(call.fwd, call.bwd, self.symbolic_zeros, self.optimize_remat, self.generic_batching)
        of_values.refs, of_values.num_captured = [*self.refs, *tree.refs], len(captured) or None
        operands = merged(tree.tree, tree.ref_indices, values(tree.refs), arrays)
        out, state = of_values._call(*self._fill(args, operands), values(captured))
        call.write_back(_without_derivative(state))
        return out

    def _needs_only_rules(self) -> bool:
        # With `optimize_remat` the function's Jaxpr is a part of the operation.
        return not self.optimize_remat

    def _rules(self, args: Sequence[Any], leaves: Sequence[Any], in_tree: PyTreeDef, expected: OutType) -> list[Rule]:
        in_avals = [typeof(x) for x in leaves]
        fwd = self._flat_fwd(args, in_tree, expected)
        bwd = self._flat_bwd(self._split(args)[0], in_tree, in_avals, expected)
        has_logs = getattr(self.bwd, "returns_logs", False)
        names = (arguments.fun_name(rule) for rule in (self.fwd, self.bwd) if rule is not None)
        options = self.symbolic_zeros, has_logs, self.generic_batching
        return [Rule(rule, name, *options) for rule, name in zip((fwd, bwd), names, strict=True)]

    def _differentiate(self, args: Sequence[Any], leaves: Sequence[Any], in_tree: PyTreeDef) -> Any:
        expected = OutType()
        fwd, bwd = self._rules(args, leaves, in_tree, expected)
        outs = by_rule(leaves, functools.partial(custom_vjp_forward, fwd, bwd))
        assert expected.tree is not None
        return expected.tree.unflatten(outs)

    def _bind(
        self, args: Sequence[Any], leaves: Any, in_tree: PyTreeDef, closed: ClosedJaxpr, consts: Any, expected: OutType
    ) -> list[Any]:
        if self.num_captured is None and accesses(closed.jaxpr).values:
            from .rules_of_refs import captured_refs

            captured = captured_refs(self, args, closed.jaxpr)
            if captured:
                return flatten(self._with_refs(args, leaves, ArrayTree(in_tree, (), []), captured))[0]
        fwd, bwd = self._rules(args, leaves, in_tree, expected)
        if self.optimize_remat:
            from .backward_rules import as_one_operation

            fwd = fwd._replace(call=as_one_operation(fwd.call, closed, consts))
        return bind_call(custom_vjp_call, [*consts, *leaves], closed, len(consts), fwd=fwd, bwd=bwd)

    def _flat_fwd(self, args: Sequence[Any], in_tree: PyTreeDef, expected: OutType) -> Callable[..., Any]:
        fwd, symbolic, num_captured = self.fwd, self.symbolic_zeros, self.num_captured
        assert fwd is not None
        rule_name = RuleName("fwd", arguments.fun_name(fwd), arguments.fun_name(self.fun))
        nondiff = self._nondiff_positions(args)
        # The rule lives as long as the Jaxpr that contains it. It must not keep the arguments of this call alive.
        args = [x if i in nondiff else None for i, x in enumerate(args)]

        def run(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], Structure]:
            if num_captured and any(perturbed[-num_captured:]):
                raise closes_over(self.kind, rule_name.function)
            inputs = [as_rule_argument(x) for x in primals]
            leaves = list(map(CustomVJPPrimal, inputs, perturbed)) if symbolic else inputs
            result = run_rule(rule_name, fwd, *self._fill(args, in_tree.unflatten(leaves)))
            primal_out, saved = pair_of(result, rule_name)
            outs, tree = flatten(primal_out)
            residuals, residual_tree = flatten_arrays(saved)
            arguments.check_outputs(fwd, result, [*outs, *residuals])
            if isinstance(residual_tree, ArrayTree):
                check_returned_refs(rule_name, residual_tree.refs, [*self.refs, *pytree.tree_leaves(args)])
            expected.check(outs, tree, rule_name)
            return outs, residuals, residual_tree

        return run

    def _flat_bwd(
        self, fixed: list[Any], in_tree: PyTreeDef, in_avals: Sequence[ShapedArray], expected: OutType
    ) -> Callable[..., Any]:
        bwd, name = self.bwd, arguments.fun_name(self.fun)
        symbolic = self.symbolic_zeros
        assert bwd is not None
        rule_name = RuleName("bwd", arguments.fun_name(bwd), name)

        def run(residual_tree: Structure, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
            assert expected.tree is not None
            arrays = cotangents if symbolic else map(instantiate, cotangents)
            cotangent = expected.tree.unflatten(map(as_rule_argument, arrays))
            saved = residual_tree.unflatten(map(as_residual, residuals))
            result = run_rule(rule_name, bwd, *fixed, saved, cotangent)
            # An example of the arguments tells how many cotangents there are, and their structures.
            example = pytree.placeholders(in_tree)
            if not isinstance(result, tuple | list) or len(result) != len(example):
                got = pytree.describe(pytree.tree_structure(result, lambda x: x is not result))
                raise FunctionTreeError(
                    f"Custom VJP bwd rule of {name} must produce a tuple with a cotangent for each of the "
                    f"{len(example)} arguments, got {got}",
                    instead="a tuple with one cotangent for each argument, None for zeros",
                    path=(),
                    expected=f"a tuple of {len(example)}",
                    got=got,
                )
            return flat_cotangents(name, tuple(result), tuple(example), in_avals)

        return run
