"""jvp, linearize and vjp: derivatives of functions of pytrees, as maps of tangents and cotangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base import pytree
from .._base.errors import ArgumentError, DtypeError, ShapeError, UnsupportedError
from .._base.pytree import PyTreeDef, flatten
from .._base.source import Wrapper, within
from .._ir import dtypes
from .._ir.avals import ShapedArray, scalar_aval, typeof_value
from .._ir.jaxpr import Jaxpr
from .._ops.shape import own
from .._trace.interpret import eval_jaxpr
from .._trace.leaks import no_leaks
from .._trace.trace import typeof
from .._transform.jvp import jvp as jvp_flat
from .._transform.linearize import linearize as linearize_flat
from .._transform.transpose import Linear, backward_pass
from .._transform.words import Zero, instantiate
from . import arguments
from .flat import FlatFunction

_JVP, _TRANSPOSE = Wrapper("jvp"), Wrapper("transpose")


def _named(flat: FlatFunction) -> Callable[..., list[Any]]:
    """The function with its operations, and those of its derivative, marked as such: ``jvp(layer)``."""

    def run(*leaves: Any) -> list[Any]:
        with within(_JVP):
            return flat(*leaves)

    return run


def _check_args(
    function: str, fun: Callable[..., Any], args: Sequence[Any], leaves: Sequence[Any]
) -> list[ShapedArray]:
    return arguments.check_arrays(function, fun, args, {}, leaves)


def _as_tangent(x: Any, aval: ShapedArray, name: str, what: str, of: str) -> Any:
    """A user's tangent (or cotangent) for a value of type `aval`, checked; zeros of float0 become `Zero`."""
    wanted = aval.tangent()
    have = typeof_value(x)
    if have is None:
        raise ArgumentError(f"{what} {name} is {x!r}, which is no array", argument=name)
    if have.shape != wanted.shape:
        raise ShapeError(
            f"{what} {name} has type {have.short}, but its {of} has type {aval.short}",
            instead=f"a {what} of type {wanted.short}",
            shapes=[have.shape, wanted.shape],
        )
    if wanted.dtype == dtypes.float0:
        if have.dtype != dtypes.float0:
            raise DtypeError(
                f"{what} {name} has dtype {have.dtype.name}, but tangents of {aval.short} have type float0",
                instead="numpy.zeros(x.shape, phlox.dtypes.float0)",
            )
        return Zero(wanted)
    if have.dtype != wanted.dtype:
        raise DtypeError(
            f"{what} {name} has type {have.short}, but its {of} has type {aval.short}",
            instead=f"a {what} of dtype {wanted.dtype.name}",
        )
    return x


def _result(x: Any, aval: ShapedArray) -> Any:
    """A tangent or cotangent of a value of type `aval` as users see it: an array, also where it is zero."""
    x = instantiate(x)
    return x if typeof(x).dtype == dtypes.float0 else own(x)


def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """The value of `fun` and its derivative in one direction (forward mode).

    Args:
      fun: function of arrays and pytrees of them.
      primals: tuple of arguments at which to differentiate.
      tangents: tuple of directions, of the same structure, shapes and dtypes (float0 for integers).
      has_aux: `fun` returns (out, aux), and aux is passed through.

    Returns: (out, tangent of out), and aux if asked for.

    >>> import phlox.numpy as jnp
    >>> jvp(jnp.sin, (0.0,), (2.0,))
    (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise ArgumentError("jvp: primals and tangents must be tuples, one entry for each argument")
    arguments.check_callable("jvp", fun)
    leaves, in_tree = flatten(tuple(primals))
    given = pytree.tree_leaves(tangents)
    structures = pytree.tree_structure(primals), pytree.tree_structure(tangents)
    pytree.check_same(*structures, "jvp: primals and tangents have different structures")
    avals = _check_args("jvp", fun, primals, leaves)
    names = arguments.leaf_names(fun, primals, {})
    checked = [_as_tangent(t, a, name, "tangent", "primal") for t, a, name in zip(given, avals, names, strict=True)]
    flat = FlatFunction(fun, in_tree, has_aux)
    with no_leaks(arguments.fun_name(fun)):
        outs, out_tangents = jvp_flat(_named(flat), leaves, checked)
    out, aux = flat.split(outs)
    out_tree = flat.out_tree
    given_out = [_result(t, typeof(x)) for t, x in zip(out_tangents, out, strict=False)]
    result = out_tree.unflatten(out), out_tree.unflatten(given_out)
    return (*result, aux) if has_aux else result


class _Linear:
    """A function linearized at a point: maps tangents of the arguments to tangents of the result."""

    def __init__(
        self, name: str, jaxpr: Jaxpr, residuals: list[Any], nonzero: list[bool], trees: Any, avals: Any, out_avals: Any
    ):
        self.name = name
        self.jaxpr = jaxpr
        self.residuals = residuals
        self.nonzero = nonzero
        self.in_tree, self.out_tree = trees
        self.in_avals, self.out_avals = avals, out_avals

    def __call__(self, *tangents: Any) -> Any:
        given, tree = flatten(tangents)
        pytree.check_same(self.in_tree, tree, f"the linear function of {self.name} got tangents of another structure")
        checked = [
            _as_tangent(t, a, f"number {i}", "tangent", "primal")
            for i, (t, a) in enumerate(zip(given, self.in_avals, strict=True))
        ]
        present = [t for t in checked if type(t) is not Zero]
        outs = iter(eval_jaxpr(self.jaxpr, self.residuals, *present))
        tangents_out = [
            _result(next(outs) if has else Zero(a.tangent()), a)
            for has, a in zip(self.nonzero, self.out_avals, strict=True)
        ]
        return self.out_tree.unflatten(tangents_out)


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of `fun` at `primals`, and its derivative there as a function of tangents.

    The function is evaluated once; the linear function may be called for many directions.

    >>> import phlox.numpy as jnp
    >>> out, f_lin = linearize(jnp.sin, 0.0)
    >>> f_lin(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    leaves, in_tree = flatten(primals)
    arguments.check_callable("linearize", fun)
    avals = _check_args("linearize", fun, primals, leaves)
    flat = FlatFunction(fun, in_tree, has_aux)
    with no_leaks(arguments.fun_name(fun)):
        made = linearize_flat(_named(flat), leaves, [dtypes.is_inexact(a.dtype) for a in avals])
    out, aux = flat.split(made.outputs)
    count = len(out)
    jaxpr = made.jaxpr.replace(outvars=made.jaxpr.outvars[: sum(made.nonzero[:count])])
    linear = _Linear(
        arguments.fun_name(fun),
        jaxpr,
        made.residuals,
        made.nonzero[:count],
        (in_tree, flat.out_tree),
        avals,
        [typeof(x) for x in out],
    )
    result = flat.out_tree.unflatten(out), linear
    return (*result, aux) if has_aux else result


class Pullback:
    """The map from cotangents of a function's result to cotangents of its arguments, made by `vjp`."""

    def __init__(
        self,
        name: str,
        jaxpr: Jaxpr,
        residuals: list[Any],
        nonzero: list[bool],
        in_avals: list[ShapedArray],
        out_avals: list[ShapedArray],
        trees: tuple[PyTreeDef, PyTreeDef],
    ):
        self.name = name
        self.jaxpr = jaxpr
        self.residuals = residuals
        self.nonzero = nonzero
        self.in_avals = in_avals
        self.out_avals = out_avals
        self.in_tree, self.out_tree = trees

    def __call__(self, cotangent: Any) -> Any:
        """A tuple with the cotangent of each argument."""
        given, tree = flatten(cotangent)
        pytree.check_same(
            self.out_tree,
            tree,
            f"the argument of the function that vjp returned must have the structure of the result of {self.name}",
            instead=f"a cotangent of structure {self.out_tree}, got {tree}",
        )
        checked = [
            _as_tangent(ct, a, f"number {i}", "cotangent", "result")
            for i, (ct, a) in enumerate(zip(given, self.out_avals, strict=True))
        ]
        return self.in_tree.unflatten(self.flat(checked))

    def with_refs(self, *wishes: Any) -> Callable[[Any], Any]:
        """The same map, with a wish for each leaf of the arguments (see `phlox.ad`).

        A reference gets the gradient added to it, `DontWant()` leaves it out, anything else returns it.

        >>> _, pullback = phlox.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> total = phlox.new_ref(jnp.float32(10))
        >>> pullback.with_refs(total, phlox.ad.GradValue())(1.0)
        (GradRef(), Array(2., dtype=float32, weak_type=True))
        >>> total[...]
        Array(13., dtype=float32)
        """
        places, tree = flatten(wishes)
        pytree.check_same(self.in_tree, tree, f"with_refs takes a tree like the arguments of {self.name}")

        def deliver_all(cotangent: Any) -> Any:
            from .ad import deliver

            return self.in_tree.unflatten(deliver(self.in_tree.flatten_up_to(self(cotangent)), places))

        return deliver_all

    def flat(self, cotangents: Sequence[Any]) -> list[Any]:
        """Cotangents of the leaves of the arguments."""
        present = [ct for ct, has in zip(cotangents, self.nonzero, strict=True) if has]
        args = [Linear(v.aval) for v in self.jaxpr.invars]
        with within(_TRANSPOSE):
            found = iter(backward_pass(self.jaxpr, self.residuals, args, present))
        return [_result(next(found) if dtypes.is_inexact(a.dtype) else Zero(a.tangent()), a) for a in self.in_avals]

    def __repr__(self) -> str:
        return f"<vjp of {self.name}>"


def _flatten_pullback(p: Pullback) -> tuple[Any, Any]:
    fixed = (p.name, p.jaxpr, tuple(p.nonzero), tuple(p.in_avals), tuple(p.out_avals), p.in_tree, p.out_tree)
    return (p.residuals,), fixed


def _unflatten_pullback(fixed: Any, children: Any) -> Pullback:
    name, jaxpr, nonzero, in_avals, out_avals, in_tree, out_tree = fixed
    (residuals,) = children
    return Pullback(name, jaxpr, residuals, list(nonzero), list(in_avals), list(out_avals), (in_tree, out_tree))


pytree.register_pytree_node(Pullback, _flatten_pullback, _unflatten_pullback)


def _flatten_linear(f: _Linear) -> tuple[Any, Any]:
    trees = f.in_tree, f.out_tree
    return (f.residuals,), (f.name, f.jaxpr, tuple(f.nonzero), trees, tuple(f.in_avals), tuple(f.out_avals))


def _unflatten_linear(fixed: Any, children: Any) -> _Linear:
    name, jaxpr, nonzero, trees, in_avals, out_avals = fixed
    (residuals,) = children
    return _Linear(name, jaxpr, residuals, list(nonzero), trees, list(in_avals), list(out_avals))


pytree.register_pytree_node(_Linear, _flatten_linear, _unflatten_linear)


def pull_back(fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool, function: str) -> tuple[Any, ...]:
    """(flat outputs, pullback, aux): what vjp and grad have in common."""
    arguments.check_callable(function, fun)
    leaves, in_tree = flatten(tuple(primals))
    avals = _check_args(function, fun, primals, leaves)
    flat = FlatFunction(fun, in_tree, has_aux)
    with no_leaks(arguments.fun_name(fun)):
        made = linearize_flat(_named(flat), leaves, [dtypes.is_inexact(a.dtype) for a in avals])
    out, aux = flat.split(made.outputs)
    nonzero = made.nonzero[: len(out)]
    jaxpr = made.jaxpr.replace(outvars=made.jaxpr.outvars[: sum(nonzero)])  # tangents of aux do not take part
    out_avals = [typeof(x) for x in out]
    pullback = Pullback(
        arguments.fun_name(fun), jaxpr, made.residuals, nonzero, avals, out_avals, (in_tree, flat.out_tree)
    )
    return out, pullback, aux


def refuse_reduce_axes(function: str, reduce_axes: Sequence[Any]) -> None:
    """Raises `UnsupportedError` unless empty: JAX had this option once, and only the name is left of it."""
    if reduce_axes:
        raise UnsupportedError(
            f"{function}: reduce_axes={reduce_axes!r}", instead="lax.psum of the result over these axes"
        )


def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = ()
) -> tuple[Any, ...]:
    """The value of `fun` at `primals`, and the function that maps cotangents back (reverse mode).

    Returns: (out, vjp_fun), and aux if asked for. ``vjp_fun(ct)`` takes a cotangent of the structure of `out` and
    returns a tuple of cotangents, one for each argument (float0 for integers). It may be called many times, and
    is a pytree whose leaves are the saved values.

    >>> import phlox.numpy as jnp
    >>> out, vjp_fun = vjp(jnp.multiply, 2.0, 3.0)
    >>> vjp_fun(1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    refuse_reduce_axes("vjp", reduce_axes)
    out, pullback, aux = pull_back(fun, primals, has_aux, "vjp")
    result = pullback.out_tree.unflatten(out), pullback
    return (*result, aux) if has_aux else result


def ones_like_output(aval: ShapedArray) -> Any:
    """The cotangent 1 of a scalar result."""
    return 1.0 if aval == scalar_aval(float) else np.ones((), aval.dtype)[()]
