"""`jvp`, `linearize` and `vjp`: derivatives of functions of pytrees, as maps of tangents and cotangents."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._base import pytree
from ..._base.errors import ArgumentError, DtypeError, OptionError, ShapeError, TreeError, UnsupportedError
from ..._base.partial import Partial
from ..._base.pytree import PyTreeDef, flatten
from ..._base.source import Wrapper, within
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, scalar_aval, typeof_value
from ..._ir.jaxpr import Jaxpr, only
from ..._ops.structure.shape import as_array_or_tracer
from ..._trace.interpret import eval_jaxpr
from ..._trace.leaks import no_leaks
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, instantiate
from ..._transform.jvp import jvp as jvp_flat
from ..._transform.linearize import linearize as linearize_flat
from ..._transform.manual_axes import as_typed_all
from ..._transform.transpose import Linear, Unwanted, backward_pass
from ..jit import arguments
from ..jit.references import find_refs
from ..jit.user_functions import FlatFunction, check_returned, user_call
from .saved_arguments import NotNeeded, NotSaveable, leaf_flags, mirrored, saved_leaves

# Wrapped around the names of scopes: profiles then show ``transpose(jvp(layer))``, as those of JAX do.
_JVP, TRANSPOSE = Wrapper("jvp"), Wrapper("transpose")


def _in_jvp_scope(flat: FlatFunction) -> Callable[..., list[Any]]:
    """The function, whose operations have names wrapped in ``jvp(…)`` in profiles and compiled programs."""

    def run(*leaves: Any) -> list[Any]:
        with within(_JVP):
            return flat(*leaves)

    return run


class _Wording(NamedTuple):
    """Words for error messages about tangents or cotangents that users pass.

    Attributes:
      noun: "tangent" or "cotangent".
      counterpart: the value that has the type that is needed.
      shape_message, dtype_message: the beginning of a message about another shape or dtype.
    """

    noun: str
    counterpart: str
    shape_message: str
    dtype_message: str


_OF_JVP = _Wording(
    "tangent",
    "its primal",
    "jvp called with different primal and tangent shapes",
    "primal and tangent arguments to jvp do not match",
)
_INCONSISTENT = "linearized function called on tangent values inconsistent with the original primal values"
_OF_LINEARIZED = _Wording("tangent", "its primal", _INCONSISTENT, _INCONSISTENT)
_OF_PULLBACK = _Wording("cotangent", "the result", "unexpected JAX type", "unexpected JAX type")


def _as_tangent(x: Any, aval: ShapedArray, name: str, wording: _Wording) -> Any:
    """A user's tangent (or cotangent) for a value of type `aval`, checked; arrays of float0 become `Zero`.

    The cotangent of an integer may be any array of the same shape, such as the result itself, since it is not used.
    """
    noun = wording.noun
    expected = aval.tangent()
    have = typeof_value(x)
    if have is None:
        raise ArgumentError(f"{noun} {name} is {x!r}, which is no array", argument=name)
    if have.shape != expected.shape:
        raise ShapeError(
            f"{wording.shape_message}: {noun} {name} has type {have.short}, but "
            f"{wording.counterpart} has type {aval.short}",
            instead=f"a {noun} of type {expected.short}",
            shapes=[have.shape, expected.shape],
        )
    # Integers have tangents of dtype float0, whose arrays hold nothing: a symbolic zero says the same.
    if expected.dtype == dtypes.float0:
        if have.dtype != dtypes.float0 and noun == "tangent":
            raise DtypeError(
                f"{wording.dtype_message}: {noun} {name} has dtype {have.dtype.name}, but tangents of {aval.short} "
                "have type float0",
                instead="numpy.zeros(x.shape, phlox.dtypes.float0)",
            )
        return Zero(expected)
    if have.dtype != expected.dtype:
        raise DtypeError(
            f"{wording.dtype_message}: {noun} {name} has type {have.short}, but "
            f"{wording.counterpart} has type {aval.short}",
            instead=f"a {noun} of dtype {expected.dtype.name}",
        )
    return x


def as_user_array(x: Any) -> Any:
    """Converts a tangent or cotangent to an array, which for `Zero` has zeros."""
    x = instantiate(x)
    # NumPy arrays of float0 are returned as they are: no device has this dtype.
    return x if typeof(x).dtype == dtypes.float0 else as_array_or_tracer(x)


def _differentiated_as_arrays(outs: Sequence[Any], depends: Sequence[bool]) -> list[Any]:
    """Results, of which those that depend on the arguments are arrays.

    A function such as `jnp.squeeze` may return a Python number that it got.
    """
    return [as_array_or_tracer(x) if differentiated else x for x, differentiated in zip(outs, depends, strict=True)]


@user_call
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """The value of `fun` and its derivative in one direction (forward mode).

    Args:
      fun: function of arrays and pytrees of them.
      primals: tuple or list of the arguments at which to differentiate.
      tangents: tuple or list of directions, of the same structure, shapes and dtypes (float0 for integers).
      has_aux: `fun` returns (out, aux), and aux is passed through.

    Returns:
      (out, tangent of out), or (out, tangent of out, aux). The tangent has the structure, shapes and dtypes of out
      (float0 for integers).

    Raises:
      ArgumentError: `primals` or `tangents` is neither a tuple nor a list, or holds something that is no array.
      DtypeError: a tangent has another dtype than its argument.
      ShapeError: a tangent has another shape than its argument.
      TreeError: `tangents` has another structure than `primals`.

    >>> jvp(jnp.sin, (0.0,), (2.0,))
    (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise ArgumentError(
            "primal and tangent arguments to jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}."
        )
    arguments.check_callable("jvp", fun)
    leaves, in_tree = flatten(tuple(primals))
    tangent_leaves = pytree.tree_leaves(tangents)
    structures = pytree.tree_structure(primals), pytree.tree_structure(tangents)
    pytree.check_same(*structures, "primal and tangent arguments to jvp must have the same tree structure")
    if find_refs(leaves):
        from .references import jvp_of_refs  # here, as below: few programs differentiate with respect to references

        return jvp_of_refs(jvp, fun, primals, tangents, has_aux)
    avals = arguments.check_arrays("jvp", fun, primals, {}, leaves)
    names = arguments.leaf_names(fun, primals, {})
    checked = [_as_tangent(t, a, name, _OF_JVP) for t, a, name in zip(tangent_leaves, avals, names, strict=True)]
    flat = FlatFunction(fun, in_tree, has_aux)
    with no_leaks(arguments.fun_name(fun), fun):
        outs, out_tangents = jvp_flat(_in_jvp_scope(flat), leaves, checked)
    out, aux = flat.split(outs)
    out_tree = flat.out_tree
    check_returned(fun, out_tree)
    # Tangents of aux, which follow those of the result, are dropped.
    out_tangents = out_tangents[: len(out)]
    out = _differentiated_as_arrays(out, [type(t) is not Zero for t in out_tangents])
    tangent_results = [as_user_array(t) for t in out_tangents]
    result = out_tree.unflatten(out), out_tree.unflatten(tangent_results)
    return (*result, aux) if has_aux else result


class _Signature(NamedTuple):
    """The static part of a linearized function: treedefs and types of its arguments and results.

    `varying` tells for each argument whether it is differentiated; the Jaxpr takes tangents of only those. `nonzero`
    tells for each result whether its tangent may be nonzero; the Jaxpr returns only those.
    """

    name: str
    varying: tuple[bool, ...]
    nonzero: tuple[bool, ...]
    trees: tuple[PyTreeDef, PyTreeDef]
    in_avals: tuple[ShapedArray, ...]
    out_avals: tuple[ShapedArray, ...]


def _apply_linear(jaxpr: Jaxpr, signature: _Signature, residuals: list[Any], *tangents: Any) -> Any:
    """Maps tangents of the arguments of a linearized function to tangents of its result."""
    in_tree, out_tree = signature.trees
    leaves, tree = flatten(tangents)
    pytree.check_same(in_tree, tree, f"the linear function of {signature.name} got tangents of another structure")
    checked = [
        _as_tangent(t, a, f"number {i}", _OF_LINEARIZED)
        for i, (t, a) in enumerate(zip(leaves, signature.in_avals, strict=True))
    ]
    present = only(checked, signature.varying)
    outs = iter(eval_jaxpr(jaxpr, residuals, *present))
    tangents_out = [
        as_user_array(next(outs) if has else Zero(a.tangent()))
        for has, a in zip(signature.nonzero, signature.out_avals, strict=True)
    ]
    return out_tree.unflatten(tangents_out)


@user_call
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, in_nzs: Any = None) -> tuple[Any, ...]:
    """The value of `fun` at `primals`, and its derivative there as a function of tangents.

    `fun` is evaluated once. The linear function may be called with many tangents; it is a pytree (`Partial`) whose
    leaves are the residuals.

    Args:
      fun: function of arrays and pytrees of them.
      *primals: the arguments at which to differentiate.
      has_aux: `fun` returns (out, aux), and aux is passed through.
      in_nzs: tells for which arguments `fun` is differentiated: a bool, or a tree of bools with a bool or a tuple of
        them for each argument; None means for all. ``linear.out_nzs`` tells which results depend on those.

    Returns:
      (out, linear), or (out, linear, aux). ``linear(*tangents)`` takes tangents of the structures, shapes and dtypes of
      `primals` and returns the tangent of out.

    Raises:
      ArgumentError: one of `primals` is no array.

    >>> out, f_lin = linearize(jnp.sin, 0.0)
    >>> f_lin(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    leaves, in_tree = flatten(primals)
    if find_refs(leaves):
        _refuse_with_refs("linearize", in_nzs=in_nzs)
        from .references import linearize_of_refs

        return linearize_of_refs(linearize, fun, primals, has_aux)
    out, aux, signature, jaxpr, residuals = _linearize(fun, primals, leaves, in_tree, has_aux, "linearize", in_nzs)
    out_tree = signature.trees[1]
    check_returned(fun, out_tree)
    # The Jaxpr and the signature are static parts of the pytree; the residuals are its leaves.
    linear = Partial(functools.partial(_apply_linear, jaxpr, signature), residuals)
    linear.out_nzs = mirrored(out_tree, iter(signature.nonzero))  # type: ignore[attr-defined]
    result = out_tree.unflatten(out), linear
    return (*result, aux) if has_aux else result


def _linearize(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    leaves: list[Any],
    in_tree: PyTreeDef,
    has_aux: bool,
    function: str,
    in_nzs: Any = None,
) -> tuple[list[Any], Any, _Signature, Jaxpr, list[Any]]:
    """(flat result, aux, signature, Jaxpr of the tangents, residuals); `function` is the name for error messages."""
    arguments.check_callable(function, fun)
    avals = arguments.check_arrays(function, fun, primals, {}, leaves)
    flat = FlatFunction(fun, in_tree, has_aux)
    # Integers have no tangents, so nothing is linearized with respect to them.
    varying = [dtypes.is_inexact(a.dtype) for a in avals]
    if in_nzs is not None:
        varying = [a and b for a, b in zip(varying, leaf_flags(function, "in_nzs", in_nzs, in_tree), strict=True)]
    with no_leaks(arguments.fun_name(fun), fun):
        linearization = linearize_flat(_in_jvp_scope(flat), leaves, varying)
    out, aux = flat.split(linearization.outputs)
    nonzero = tuple(linearization.nonzero[: len(out)])
    out = _differentiated_as_arrays(out, nonzero)
    # Only the tangents of the result stay, without those of aux.
    jaxpr = linearization.jaxpr.replace(outvars=linearization.jaxpr.outvars[: sum(nonzero)])
    out_avals = tuple(typeof(x) for x in out)
    trees = in_tree, flat.out_tree
    signature = _Signature(arguments.fun_name(fun), tuple(varying), nonzero, trees, tuple(avals), out_avals)
    return out, aux, signature, jaxpr, linearization.residuals


class Pullback:
    """The map from cotangents of a function's result to cotangents of its arguments, made by `vjp`.

    Its residuals are in two lists, which may be changed: `args_res` has the arguments that are residuals (and
    `NotNeeded()` in place of the others), `opaque_residuals` has intermediate values. So a large argument can be
    dropped and put in again later. Those that ``vjp(..., saveable_args=)`` excludes are `NotSaveable()` from the start.

    >>> x, w = jnp.ones(3), jnp.ones((3, 3))
    >>> out, pullback = vjp(jnp.matmul, x, w)
    >>> pullback.args_res[1] = None
    >>> pullback.args_res[1] = w
    >>> pullback(out)[0]
    Array([9., 9., 9.], dtype=float32)
    """

    def __init__(
        self, signature: _Signature, jaxpr: Jaxpr, argument_indices: tuple[int | None, ...], args_res: Any, opaque: Any
    ):
        self.signature = signature
        self.jaxpr = jaxpr
        #: for each residual, the index of the argument leaf that it is; None for opaque ones
        self.argument_indices = argument_indices
        self.args_res = args_res
        self.opaque_residuals = opaque

    name = property(lambda self: self.signature.name)
    in_tree = property(lambda self: self.signature.trees[0])
    out_tree = property(lambda self: self.signature.trees[1])
    in_avals = property(lambda self: self.signature.in_avals)
    out_avals = property(lambda self: self.signature.out_avals)

    #: residuals that keep a structure of their own: there are none
    structured_residuals = property(lambda self: [])

    @property
    def out_nzs(self) -> Any:
        """Tells for each result whether its tangent may be nonzero, as a tree of bools like the result."""
        return mirrored(self.out_tree, iter(self.signature.nonzero))

    def replace(self, *, args_res: Any = None, opaque_residuals: Any = None) -> Pullback:
        """The same map with other residuals in the place of those that are given.

        >>> w = jnp.ones((3, 3))
        >>> out, pullback = vjp(jnp.matmul, jnp.ones(3), w, saveable_args=(True, False))
        >>> pullback.replace(args_res=[jnp.ones(3), w])(out)[0]
        Array([9., 9., 9.], dtype=float32)
        """
        args_res = self.args_res if args_res is None else args_res
        opaque = self.opaque_residuals if opaque_residuals is None else opaque_residuals
        return Pullback(self.signature, self.jaxpr, self.argument_indices, args_res, opaque)

    @property
    def residuals(self) -> list[Any]:
        """The residuals, in the order in which the Jaxpr takes them."""
        # Without arguments among the residuals, `args_res` need not be looked at.
        if not any(i is not None for i in self.argument_indices):
            return list(self.opaque_residuals)
        leaves = saved_leaves(self.args_res)
        if len(leaves) != len(self.in_avals):
            raise ArgumentError(
                f"args_res of the vjp of {self.name} has {len(leaves)} leaves, and its arguments have "
                f"{len(self.in_avals)}",
                instead="the arguments that were taken out of args_res, put in again",
                argument="args_res",
            )
        missing = [i for i in self.argument_indices if i is not None and isinstance(leaves[i], NotSaveable)]
        if missing:
            paths = pytree.named_paths(self.in_tree)
            raise OptionError(
                "the VJP function was applied before restoring its not-saveable residuals: of the arguments of "
                f"{self.name}, saveable_args excludes " + ", ".join(f"args{pytree.keystr(paths[i])}" for i in missing),
                instead="pullback.args_res[i] = the argument; or pullback.replace(args_res=...)",
            )
        # Both lists are merged in the order of the Jaxpr's inputs.
        opaque = iter(self.opaque_residuals)
        return [next(opaque) if i is None else leaves[i] for i in self.argument_indices]

    @user_call
    def __call__(self, cotangent: Any, *more: Any) -> Any:
        """A tuple with the cotangent of each argument."""
        if more:
            raise ArgumentError(
                f"The function returned by `phlox.vjp` applied to {self.name} was called with {len(more) + 1} "
                "arguments, but functions returned by `phlox.vjp` must be called with a single argument corresponding "
                f"to the single value returned by {self.name} (even if that returned value is a tuple or other "
                "container)",
                instead="one cotangent with the structure of the result: f_vjp((ct_1, ct_2)) for a tuple",
                argument="cotangent",
            )
        return self.in_tree.unflatten(self.flat(self._checked(cotangent)))

    def _checked(self, cotangent: Any) -> list[Any]:
        """The leaves of a cotangent, which must have the structure and types of the result."""
        leaves, tree = flatten(cotangent)
        pytree.check_same(
            self.out_tree,
            tree,
            f"unexpected tree structure: the argument of the function that vjp returned must have the structure of the "
            f"result of {self.name}",
            instead=f"a cotangent of structure {self.out_tree}, got {tree}",
            kind=TreeError,
        )
        return [
            _as_tangent(ct, a, f"number {i}", _OF_PULLBACK)
            for i, (ct, a) in enumerate(zip(leaves, self.out_avals, strict=True))
        ]

    def with_refs(self, *destinations: Any) -> Callable[[Any], Any]:
        """The same map, with a destination for the gradient of each leaf of the arguments (see `phlox.ad`).

        For a reference the gradient is added to it, for `DontWant()` it is left out, for anything else it is returned.

        >>> _, pullback = phlox.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> total = phlox.new_ref(jnp.float32(10))
        >>> pullback.with_refs(total, phlox.ad.GradValue())(1.0)
        (GradRef(), Array(2., dtype=float32, weak_type=True))
        >>> total[...]
        Array(13., dtype=float32)
        """
        leaves, tree = flatten(destinations)
        what = "unexpected tree structure in the arguments to a VJP function's `with_refs` method, unlike those of"
        pytree.check_same(self.in_tree, tree, f"{what} {self.name}")

        def deliver_all(cotangent: Any) -> Any:
            # Imported here, as few programs have references for gradients.
            from .ad import DontWant, deliver

            mask = [not isinstance(x, DontWant) for x in leaves]
            return self.in_tree.unflatten(deliver(self.flat(self._checked(cotangent), mask), leaves))

        return deliver_all

    @property
    def with_logs(self) -> Callable[[Any], tuple[Any, dict[str, Any]]]:
        """The same map, which returns (cotangents, logs of the backward rules), see `custom_vjp.defvjp_with_logs`.

        Logs of a loop are stacked in the order of its turns, those of `vmap` and `shard_map` over examples and devices.
        A key that is logged in a branch has the `index` of the branch that ran and a list `branches` of logs, with
        zeros for branches that did not run and None for those that do not log the key.

        ``with_logs.with_refs(...)`` takes destinations for the cotangents, as the method `with_refs` does.
        """

        def logging(call: Callable[[Pullback, Any], Any]) -> Any:
            def pull_with_logs(cotangent: Any) -> tuple[Any, dict[str, Any]]:
                pullback = _LoggingPullback(
                    self.signature, self.jaxpr, self.argument_indices, self.args_res, self.opaque_residuals
                )
                return call(pullback, cotangent), pullback.entries

            return pull_with_logs

        pull_with_logs = logging(lambda pullback, cotangent: pullback(cotangent))
        pull_with_logs.with_refs = lambda *destinations: logging(
            lambda pullback, cotangent: pullback.with_refs(*destinations)(cotangent)
        )
        return pull_with_logs

    def flat(self, cotangents: Sequence[Any], mask: Sequence[bool] | None = None) -> list[Any]:
        """Cotangents of the leaves of the arguments; None for those that `mask` excludes."""
        # Results without a derivative have no output in the Jaxpr.
        nonzero = self.signature.nonzero
        # The cotangent gets the type of the result in its manual axes, along which values vary in `shard_map`.
        present = as_typed_all(only(cotangents, nonzero), (a.cotangent() for a in only(self.out_avals, nonzero)))
        mask = [True] * len(self.in_avals) if mask is None else mask
        varying = self.signature.varying
        args = [
            # `Unwanted` lets the backward pass skip whatever only leads to this argument.
            Linear(v.aval) if is_needed else Unwanted(v.aval)
            for is_needed, v in zip(only(mask, varying), self.jaxpr.invars, strict=True)
        ]
        with within(TRANSPOSE):
            in_cotangents = iter(self._backward(args, present))
        # Integers get a zero of float0 in their place, others a zero of their type.
        pairs = zip(self.in_avals, varying, strict=True)
        leaves = [next(in_cotangents) if has else Zero(a.tangent()) for a, has in pairs]
        return [as_user_array(ct) if is_needed else None for ct, is_needed in zip(leaves, mask, strict=True)]

    def _backward(self, args: Sequence[Linear], cotangents: Sequence[Any]) -> list[Any]:
        return backward_pass(self.jaxpr, self.residuals, args, cotangents)

    def __repr__(self) -> str:
        return f"<vjp of {self.name}>"


class _LoggingPullback(Pullback):
    """A pullback that gathers the logs of its last backward pass in `entries`."""

    entries: dict[str, Any]

    def _backward(self, args: Sequence[Linear], cotangents: Sequence[Any]) -> list[Any]:
        from .logs import backward_pass_with_logs  # few rules have logs

        results, self.entries = backward_pass_with_logs(self.jaxpr, self.residuals, args, cotangents)
        return results


pytree.register_pytree_node(
    Pullback,
    lambda p: ((p.args_res, p.opaque_residuals), (p.signature, p.jaxpr, p.argument_indices)),
    lambda fixed, children: Pullback(*fixed, *children),
)


def pull_back(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    has_aux: bool,
    function: str,
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> tuple[Any, ...]:
    """(flat outputs, pullback, aux), for vjp and grad; `function` is the name for error messages."""
    leaves, in_tree = flatten(tuple(primals))
    saveable = leaf_flags(function, "saveable_args", saveable_args, in_tree)
    out, aux, signature, jaxpr, residuals = _linearize(fun, primals, leaves, in_tree, has_aux, function, in_nzs)
    # By identity: a residual that is an argument is the very object.
    index_of = {id(x): i for i, x in enumerate(leaves)}
    argument_indices = tuple(index_of.get(id(x)) for x in residuals)
    saved = set(argument_indices)
    saveable_leaves = [x if may_be_saved else NotSaveable() for x, may_be_saved in zip(leaves, saveable, strict=True)]
    args_res = mirrored(in_tree, (x if i in saved else NotNeeded() for i, x in enumerate(saveable_leaves)))
    opaque = [x for x, i in zip(residuals, argument_indices, strict=True) if i is None]
    pullback = Pullback(signature, jaxpr, argument_indices, list(args_res), opaque)
    return out, pullback, aux


def refuse_reduce_axes(function: str, reduce_axes: Sequence[Any]) -> None:
    """Raises `UnsupportedError` unless `reduce_axes` is empty: JAX no longer has the option, but code may pass ()."""
    if reduce_axes:
        raise UnsupportedError(
            f"{function}: reduce_axes={reduce_axes!r}", instead="phlox.lax.psum of the result over these axes"
        )


def _refuse_with_refs(function: str, **options: Any) -> None:
    """Raises `UnsupportedError` for options that derivatives with respect to references do not have."""
    for name, value in options.items():
        if value is not None and value is not True:
            raise UnsupportedError(
                f"{function}: {name}={value!r} together with references among the arguments",
                instead="a function that closes over the references",
            )


@user_call
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> tuple[Any, ...]:
    """The value of `fun` at `primals`, and the map from cotangents of the result to those of `primals` (reverse mode).

    Args:
      fun: function of arrays and pytrees of them.
      *primals: the arguments at which to differentiate.
      has_aux: `fun` returns (out, aux), and aux is passed through.
      reduce_axes: must be empty; a former option of JAX's.
      saveable_args: tells which arguments may be saved as residuals: a bool, or a tree of bools with a bool or a tuple
        of them for each argument. Excluded ones are put into ``vjp_fun.args_res`` again before it is called.
      in_nzs: tells in the same way for which arguments `fun` is differentiated; None means for all. The cotangents of
        the others are zeros. ``vjp_fun.out_nzs`` tells which results depend on the arguments that are.

    Returns:
      (out, vjp_fun), or (out, vjp_fun, aux). ``vjp_fun(ct)`` takes a cotangent of the structure, shapes and dtypes of
      out and returns a tuple of cotangents, one for each argument (float0 for integers). It may be called many times,
      and is a pytree whose leaves are the residuals.

    Raises:
      ArgumentError: one of `primals` is no array.
      OptionError: `saveable_args` or `in_nzs` is no tree of bools like `primals`.
      UnsupportedError: `reduce_axes` is not empty; or an option is given together with references.

    >>> out, vjp_fun = vjp(jnp.multiply, 2.0, 3.0)
    >>> vjp_fun(1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    refuse_reduce_axes("vjp", reduce_axes)
    if find_refs(flatten(primals)[0]):
        _refuse_with_refs("vjp", saveable_args=saveable_args, in_nzs=in_nzs)
        from .references import vjp_of_refs

        return vjp_of_refs(vjp, fun, primals, has_aux)
    out, pullback, aux = pull_back(fun, primals, has_aux, "vjp", saveable_args, in_nzs)
    check_returned(fun, pullback.out_tree)
    result = pullback.out_tree.unflatten(out), pullback
    return (*result, aux) if has_aux else result


def ones_like_output(aval: ShapedArray) -> Any:
    """The cotangent 1 of a scalar result."""
    # A Python number where it has the type: it is weak, as the result is, and its buffer is cached.
    for one in (1.0, 1 + 0j):
        if aval == scalar_aval(type(one)):
            return one
    return np.ones((), aval.dtype)[()]
