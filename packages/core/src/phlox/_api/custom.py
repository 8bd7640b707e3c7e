"""Functions with derivatives of their own: custom_jvp and custom_vjp."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from .._base import pytree
from .._base.errors import DerivativeError, MissingRuleError, TreeError
from .._base.pytree import PyTreeDef, flatten
from .._ir.avals import ShapedArray
from .._ir.jaxpr import ClosedJaxpr, hoist_consts
from .._ir.primitive import current_trace
from .._ops.custom import Rule, custom_jvp_call, custom_vjp_call
from .._trace.staging import stage
from .._trace.trace import typeof
from .._transform.words import Zero, instantiate
from . import arguments


def _positional(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments by position, defaults filled in: derivative rules take no names."""
    if not kwargs:
        signature = arguments.signature_of(fun)
        if signature is None or len(args) >= len(signature.parameters):
            return args
    signature = arguments.signature_of(fun)
    if signature is None:
        return args
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise DerivativeError(
            f"{arguments.fun_name(fun)} takes keyword-only arguments {sorted(bound.kwargs)}, which a custom derivative "
            "rule cannot receive",
            instead="positional arguments",
        )
    return bound.args


class _Custom:
    """What both kinds share: the function, and which of its arguments are not differentiated."""

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        functools.update_wrapper(self, fun)
        self.fun = fun
        names = arguments.as_names(nondiff_argnames, "nondiff_argnames")
        numbers = arguments.as_ints(nondiff_argnums, "nondiff_argnums")
        self.nondiff_argnums = arguments.complete(fun, numbers, names, "nondiff")[0]

    def _split(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """(arguments that are not differentiated, the others)."""
        chosen = {n % len(args) for n in self.nondiff_argnums} if args else set()
        fixed = [args[n % len(args)] for n in self.nondiff_argnums]
        return fixed, [x for i, x in enumerate(args) if i not in chosen]

    def _call(self, args: Sequence[Any], given: Sequence[Any]) -> Any:
        """The function on `args` with the differentiated ones replaced by `given`."""
        chosen = {n % len(args) for n in self.nondiff_argnums} if args else set()
        values = iter(given)
        return self.fun(*[x if i in chosen else next(values) for i, x in enumerate(args)])

    def _stage(
        self, args: Sequence[Any], in_tree: PyTreeDef, leaves: Sequence[Any]
    ) -> tuple[ClosedJaxpr, list[Any], PyTreeDef]:
        trees: list[PyTreeDef] = []

        def flat(*xs: Any) -> list[Any]:
            out = self._call(args, in_tree.unflatten(xs))
            outs, tree = flatten(out)
            arguments.check_outputs(self.fun, out, outs)
            trees.append(tree)
            return outs

        jaxpr, consts = stage(flat, [typeof(x) for x in leaves], name=arguments.fun_name(self.fun))
        return ClosedJaxpr(hoist_consts(jaxpr)), consts, trees[0]

    def _refuse(self, rule: str, how: str) -> NoReturn:
        name = arguments.fun_name(self.fun)
        raise MissingRuleError(
            f"{name} is a custom_{rule} function and never got its rule",
            instead=f"{name}.{how}",
            function=self.fun,
            rule=rule,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


class custom_jvp(_Custom):
    """A function whose forward derivative you write yourself.

    Args:
      fun: the function.
      nondiff_argnums: positional arguments that are not differentiated; the rule receives them first.
      nondiff_argnames: the same by name.

    The rule, given by `defjvp`, takes (primals, tangents) and returns (out, tangent of out), and must be linear in the
    tangents. Reverse mode follows from it.

    >>> import phlox, phlox.numpy as jnp
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

    jvp: Callable[..., Any] | None = None

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the derivative rule; returns it, so this is a decorator."""
        self.jvp = jvp
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets one rule for each argument: ``rule(tangent, out, *primals)``, or None where the derivative is zero."""

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            out = self(*primals)
            parts = [rule(t, out, *primals) for rule, t in zip(jvps, tangents, strict=True) if rule is not None]
            if not parts:
                return out, pytree.tree_map(lambda x: instantiate(Zero(typeof(x).tangent())), out)
            return out, functools.reduce(lambda a, b: pytree.tree_map(lambda x, y: x + y, a, b), parts)

        self.defjvp(jvp)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            self._refuse("jvp", "defjvp(rule)")
        if current_trace.get() is None:
            return self.fun(*args, **kwargs)
        args = _positional(self.fun, args, kwargs)
        fixed, given = self._split(args)
        leaves, in_tree = flatten(tuple(given))
        closed, consts, out_tree = self._stage(args, in_tree, leaves)
        rule = Rule(self._flat_rule(fixed, in_tree, out_tree, closed.out_avals), arguments.fun_name(self.jvp))
        outs = custom_jvp_call.bind(*consts, *leaves, call_jaxpr=closed, jvp=rule, num_consts=len(consts))
        return out_tree.unflatten(outs)

    def _flat_rule(
        self, fixed: list[Any], in_tree: PyTreeDef, out_tree: PyTreeDef, out_avals: Sequence[ShapedArray]
    ) -> Callable[..., Any]:
        jvp = self.jvp
        assert jvp is not None
        name = arguments.fun_name(self.fun)

        def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            result = jvp(*fixed, in_tree.unflatten(primals), in_tree.unflatten(tangents))
            if not (isinstance(result, tuple | list) and len(result) == 2):
                raise TreeError(
                    f"the jvp rule of {name} must return a pair (out, tangent of out), got {result!r}",
                    path=(),
                    expected="a tuple of 2",
                    got=type(result).__name__,
                )
            outs, tree = flatten(result[0])
            out_tangents, tangent_tree = flatten(result[1])
            pytree.check_same(out_tree, tree, f"the jvp rule of {name} returns another structure than {name}")
            pytree.check_same(tree, tangent_tree, f"the jvp rule of {name} returns a tangent unlike its result")
            return outs, [
                _checked_tangent(t, typeof(out), f"the jvp rule of {name}")
                for t, out in zip(out_tangents, outs, strict=True)
            ]

        return rule


def _checked_tangent(t: Any, aval: ShapedArray, whose: str) -> Any:
    wanted, have = aval.tangent(), typeof(t)
    if have.shape != wanted.shape or (have.dtype != wanted.dtype):
        raise DerivativeError(
            f"{whose} returned a tangent of type {have.short} for a result of type {aval.short}",
            instead=f"a tangent of type {wanted.short}",
            expected=wanted,
            got=have,
        )
    return t


class custom_vjp(_Custom):
    """A function whose reverse derivative you write yourself.

    Args:
      fun: the function.
      nondiff_argnums: positional arguments that are not differentiated; `bwd` receives them first, `fwd` in place.
      nondiff_argnames: the same by name.

    `defvjp(fwd, bwd)` sets the rules: ``fwd(*args) -> (out, residuals)`` keeps what the way back needs,
    ``bwd(residuals, cotangent) -> cotangents`` returns a tuple with one for each differentiated argument (None: zero).

    >>> import phlox, phlox.numpy as jnp
    >>> @phlox.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1, 1),))
    >>> phlox.grad(lambda x: 5 * clipped(x))(2.0)
    Array(1., dtype=float32, weak_type=True)
    """

    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Sets the forward and the backward rule."""
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            self._refuse("vjp", "defvjp(fwd, bwd)")
        assert self.fwd is not None and self.bwd is not None
        if current_trace.get() is None:
            return self.fun(*args, **kwargs)
        args = _positional(self.fun, args, kwargs)
        fixed, given = self._split(args)
        leaves, in_tree = flatten(tuple(given))
        closed, consts, out_tree = self._stage(args, in_tree, leaves)
        residual_trees: list[PyTreeDef] = []
        in_avals = [typeof(x) for x in leaves]
        outs = custom_vjp_call.bind(
            *consts,
            *leaves,
            call_jaxpr=closed,
            fwd=Rule(self._flat_fwd(args, in_tree, out_tree, residual_trees), arguments.fun_name(self.fwd)),
            bwd=Rule(self._flat_bwd(fixed, in_tree, in_avals, out_tree, residual_trees), arguments.fun_name(self.bwd)),
            num_consts=len(consts),
        )
        return out_tree.unflatten(outs)

    def _flat_fwd(
        self, args: Sequence[Any], in_tree: PyTreeDef, out_tree: PyTreeDef, residual_trees: list[PyTreeDef]
    ) -> Callable[..., Any]:
        fwd, name = self.fwd, arguments.fun_name(self.fun)
        assert fwd is not None
        chosen = {n % len(args) for n in self.nondiff_argnums} if args else set()
        # The rule lives as long as the program that it is in; the values of one call must not.
        args = [x if i in chosen else None for i, x in enumerate(args)]

        def run(primals: Iterable[Any]) -> tuple[list[Any], list[Any]]:
            values = iter(in_tree.unflatten(primals))
            result = fwd(*[x if i in chosen else next(values) for i, x in enumerate(args)])
            if not (isinstance(result, tuple | list) and len(result) == 2):
                raise TreeError(
                    f"the fwd rule of {name} must return a pair (out, residuals), got {result!r}",
                    path=(),
                    expected="a tuple of 2",
                    got=type(result).__name__,
                )
            outs, tree = flatten(result[0])
            pytree.check_same(out_tree, tree, f"the fwd rule of {name} returns another structure than {name}")
            residuals, residual_tree = flatten(result[1])
            residual_trees[:] = [residual_tree]
            return outs, residuals

        return run

    def _flat_bwd(
        self,
        fixed: list[Any],
        in_tree: PyTreeDef,
        in_avals: Sequence[ShapedArray],
        out_tree: PyTreeDef,
        residual_trees: list[PyTreeDef],
    ) -> Callable[..., Any]:
        bwd, name = self.bwd, arguments.fun_name(self.fun)
        assert bwd is not None

        def run(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
            result = bwd(*fixed, residual_trees[0].unflatten(residuals), out_tree.unflatten(cotangents))
            arguments_tree = in_tree.unflatten([0] * in_tree.num_leaves)
            if not isinstance(result, tuple | list) or len(result) != len(arguments_tree):
                raise TreeError(
                    f"the bwd rule of {name} must return a tuple with a cotangent for each of the "
                    f"{len(arguments_tree)} arguments, got {type(result).__name__}",
                    path=(),
                    expected=f"a tuple of {len(arguments_tree)}",
                    got=type(result).__name__,
                )
            return _flat_cotangents(name, tuple(result), tuple(arguments_tree), in_avals)

        return run


def _flat_cotangents(name: str, result: Any, like: Any, in_avals: Sequence[ShapedArray]) -> list[Any]:
    """The cotangents of all leaves; None for an argument means zeros for all of its leaves."""
    found: list[Any] = []
    avals = iter(in_avals)
    for ct, argument in zip(result, like, strict=True):
        width = pytree.tree_structure(argument).num_leaves
        mine = [next(avals) for _ in range(width)]
        if ct is None:
            found += [Zero(a.tangent()) for a in mine]
            continue
        leaves, tree = flatten(ct)
        pytree.check_same(
            pytree.tree_structure(argument), tree, f"the bwd rule of {name} returns a cotangent unlike its argument"
        )
        for x, aval in zip(leaves, mine, strict=True):
            have, wanted = typeof(x), aval.tangent()
            if have.shape != wanted.shape or (have.dtype != wanted.dtype):
                raise DerivativeError(
                    f"the bwd rule of {name} returned a cotangent of type {have.short} for an argument {aval.short}",
                    instead=f"a cotangent of type {wanted.short}",
                    expected=wanted,
                    got=have,
                )
            found.append(x)
    return found
