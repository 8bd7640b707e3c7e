"""`grad`, `value_and_grad`, `fwd_and_bwd`, Jacobians and Hessians, built on `jvp`, `vjp` and `vmap`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..._base import pytree
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, DerivativeError
from ..._base.pytree import flatten, tree_structure
from ..._base.tracebacks import trim
from ..._base.wrapping import P, R, renamed, wraps
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, typeof_value
from ..._ops.elementwise.arithmetic import add
from ..._ops.elementwise.logic import eq
from ..._ops.structure.iota import iota
from ..._ops.structure.numbers import keep_dtype
from ..._ops.structure.shape import convert_array, reshape
from ..._trace.refs import Ref
from ..._trace.trace import recorder, typeof
from ..._transform.array_operations import Zero, instantiate
from ..batching.vmap import vmap
from ..jit import arguments
from ..jit.jit import jit
from ..jit.user_functions import Aux, user_call
from .differentiate import jvp, ones_like_output, pull_back, refuse_reduce_axes, vjp

Argnums = int | Sequence[int]


def _choose(fun: Callable[..., Any], argnums: Argnums, args: Sequence[Any], kwargs: Any) -> tuple[Any, list[Any]]:
    """`fun` as a function of only the arguments `argnums`, and those arguments."""
    if argnums is None:
        raise ArgumentError("argnums must be an int or a sequence of ints, got None", instead="argnums=0")
    numbers = arguments.as_ints(argnums, "argnums")
    if not all(-len(args) <= n < len(args) for n in numbers):
        needed = max(n + 1 if n >= 0 else -n for n in numbers)
        raise ArgumentError(
            f"differentiating with respect to argnums={argnums} requires at least {needed} positional arguments to be "
            f"passed by the caller, but got only {len(args)} positional arguments (of {arguments.fun_name(fun)})",
            instead="positional arguments for everything that is differentiated",
        )
    # The range is checked above: `%` would hide a number that is too large.
    numbers = tuple(n % len(args) for n in numbers)
    if len(set(numbers)) < len(numbers):
        raise ArgumentError(f"argnums={argnums} names an argument of {arguments.fun_name(fun)} twice")

    @wraps(fun)
    def partial(*chosen: Any) -> Any:
        filled = list(args)
        for n, x in zip(numbers, chosen, strict=True):
            filled[n] = x
        return fun(*filled, **kwargs)

    return partial, [args[n] for n in numbers]


def _names(fun: Callable[..., Any], argnums: Argnums, args: Sequence[Any]) -> list[str]:
    """Paths of the leaves of the chosen arguments."""
    numbers = arguments.as_ints(argnums, "argnums")
    widths = [pytree.tree_structure(a).num_leaves for a in args]
    starts = np.cumsum([0, *widths])
    names = arguments.leaf_names(fun, args, {})
    return [
        name for n in numbers for name in names[starts[n % len(args)] : starts[n % len(args)] + widths[n % len(args)]]
    ]


def _choose_checked(
    function: str, fun: Callable[..., Any], argnums: Argnums, args: Any, kwargs: Any, holomorphic: bool, allow_int: bool
) -> tuple[Any, list[Any]]:
    """As `_choose`. Raises for an argument that is no array, and for one of a dtype that cannot be differentiated."""
    partial, chosen = _choose(fun, argnums, args, kwargs)

    def names() -> list[str]:
        return _names(fun, argnums, args)

    for i, x in enumerate(pytree.tree_leaves(chosen)):
        aval = typeof_value(x)
        if isinstance(x, Ref):
            raise DerivativeError(
                f"{function} cannot differentiate with respect to a Ref-typed argument, {names()[i]} of type "
                f"{x.aval}: its gradient is accumulated into a reference",
                instead="vjp, and with_refs of the function that it returns; or other argnums",
                argument=names()[i],
            )
        if aval is None:
            raise arguments.no_argument(function, fun, names()[i], x)
        kind = dtypes.kind(aval.dtype)
        if holomorphic and kind != "c":
            raise DerivativeError(
                f"{function} with holomorphic=True requires inputs with complex dtype, but got {aval.dtype} for "
                f"argument {names()[i]} of type {aval.short}",
                instead="x.astype(complex)",
            )
        if function in ("jacfwd", "hessian") and kind == "c" and not holomorphic:
            raise DerivativeError(
                f"{function} requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got "
                f"{aval.dtype} for argument {names()[i]} of type {aval.short}",
                instead="holomorphic=True for a holomorphic function; else jacrev, or jvp",
                argument=names()[i],
                aval=aval,
            )
        # "k" are PRNG keys.
        if kind in "biuk" and not allow_int and not holomorphic:
            raise DerivativeError(
                f"{function} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), "
                f"but got {aval.dtype} for argument {names()[i]} of type {aval.short}",
                instead="pass a float (1.0 for 1), or choose other argnums"
                + ("" if function in ("jacfwd", "hessian") else "; or allow_int=True"),
                argument=names()[i],
                aval=aval,
            )
    return partial, chosen


def _check_output(function: str, fun: Any, avals: Sequence[Any], holomorphic: bool) -> None:
    for aval in avals:
        kind = dtypes.kind(aval.dtype)
        if holomorphic and kind != "c":
            raise DerivativeError(
                f"{function} with holomorphic=True requires outputs with complex dtype, but got {aval.dtype.name} "
                f"from {arguments.fun_name(fun)}, which returned {aval.short}"
            )
        if not holomorphic and kind != "f":
            raise DerivativeError(
                f"{function} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
                f"{aval.dtype.name} from {arguments.fun_name(fun)}, which returned {aval.short}",
                instead="holomorphic=True for a holomorphic function; else a real loss such as abs(z) ** 2"
                if kind == "c"
                else "a loss of floats, for example with .astype(float); or vjp, which takes any output",
            )


def value_and_grad(
    fun: Callable[P, R],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[R, Any]]:
    """Like `grad`, but the returned function computes (value, gradient) in one evaluation.

    Args:
      fun: function with a scalar floating-point result.
      argnums: which positional arguments to differentiate, counted from 0 (or back from -1); an int or several.
      has_aux: `fun` returns (value, aux), and aux, a tree of arrays, is passed through.
      holomorphic: differentiate a complex function as a holomorphic one.
      allow_int: take integer arguments; their gradients have dtype float0.
      reduce_axes: must be empty; a former option of JAX's.

    Returns:
      A function of the arguments of `fun` that returns (value, gradient), or ((value, aux), gradient). The gradient has
      the structure, shapes and dtypes of the argument; for several `argnums` it is a tuple.

    Raises:
      DerivativeError: in a call, when the result is not a scalar of a real dtype, or an argument is an integer.
      ArgumentError: in a call, when there are too few positional arguments for `argnums`.
      UnsupportedError: `reduce_axes` is not empty.

    >>> value_and_grad(lambda x: x**2)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    refuse_reduce_axes("value_and_grad", reduce_axes)
    return _value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, "value_and_grad")


def _value_and_grad(
    fun: Callable[..., Any], argnums: Argnums, has_aux: bool, holomorphic: bool, allow_int: bool, function: str
) -> Callable[..., Any]:
    arguments.check_callable(function, fun)

    @wraps(fun)
    # The frames of phlox are removed from errors here, at the outermost call.
    @user_call
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        partial, chosen = _choose_checked(function, fun, argnums, args, kwargs, holomorphic, allow_int)
        out, pullback, aux = pull_back(partial, chosen, has_aux, function)
        if pullback.out_tree.num_nodes != 1 or len(out) != 1 or pullback.out_avals[0].shape:
            got, instead = _not_scalar(pullback, has_aux)
            raise DerivativeError(
                f"Gradient only defined for scalar-output functions. {arguments.fun_name(fun)}, given to {function}, "
                f"returned {got}",
                instead=instead,
            )
        _check_output(function, fun, pullback.out_avals, holomorphic)
        # A result that does not depend on the arguments has no output in the Jaxpr, and takes no seed.
        seed = [ones_like_output(pullback.out_avals[0])] if pullback.signature.nonzero[0] else [None]
        gradients = pullback.in_tree.unflatten(pullback.flat(seed))
        gradient = tuple(gradients) if isinstance(argnums, Iterable) else gradients[0]
        return ((out[0], aux), gradient) if has_aux else (out[0], gradient)

    return value_and_gradient


def _not_scalar(pullback: Any, has_aux: bool) -> tuple[str, str]:
    """What a function returned that is not one number, and what to write instead."""
    leaf = pullback.out_tree.node_data() is None
    if leaf:
        return pullback.out_avals[0].short, "reduce the output, for example with .sum(); or use jacrev, jacfwd or vjp"
    if pullback.out_tree == tree_structure(None):
        return "None", "return the loss at the end of the function"
    if not has_aux and pullback.out_tree.node_data()[0] is tuple:
        return str(pullback.out_tree), "has_aux=True for a function that returns (loss, further results)"
    return str(pullback.out_tree), "return one number; or use jacrev, jacfwd or vjp"


@docs_from(value_and_grad)
def grad(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]:
    """The gradient of `fun`, as a function of the same arguments (reverse mode).

    Returns:
      A function of the arguments of `fun` that returns the gradient, or (gradient, aux). The gradient has the
      structure, shapes and dtypes of the argument; for several `argnums` it is a tuple.

    >>> grad(lambda x: x**3)(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    refuse_reduce_axes("grad", reduce_axes)
    both = _value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, "grad")

    @wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        try:
            value, result = both(*args, **kwargs)
        except Exception as error:
            trim(error)
            raise
        return (result, value[1]) if has_aux else result

    return gradient


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: Argnums, has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`vjp` as two functions, each compiled once and used many times.

    Args:
      fun: function of trees of arrays.
      argnums: which positional arguments to differentiate, counted from 0; an int or several.
      has_aux: `fun` returns (out, aux), and aux is passed through.
      jitted: compile both functions.

    Returns:
      (fwd, bwd). ``fwd(*args)`` returns (out, residuals), or (out, residuals, aux). ``bwd(residuals, cotangent)`` takes
      a cotangent like out and returns the cotangent of the argument, or a tuple of them for several `argnums`.

    >>> fwd, bwd = fwd_and_bwd(jnp.multiply, argnums=0)
    >>> out, residuals = fwd(2.0, 3.0)
    >>> bwd(residuals, 1.0)
    Array(3., dtype=float32, weak_type=True)
    """
    arguments.check_callable("fwd_and_bwd", fun)

    def fwd(*args: Any, **kwargs: Any) -> Any:
        partial, chosen = _choose(fun, argnums, args, kwargs)
        # The pullback is a pytree of residuals, so it can be the result of a jitted function.
        return vjp(partial, *chosen, has_aux=has_aux)

    def bwd(residuals: Any, cotangent: Any) -> Any:
        cotangents = residuals(cotangent)
        return cotangents if isinstance(argnums, Iterable) else cotangents[0]

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


# --- Jacobians ------------------------------------------------------------------------------------------


def _basis(leaves: Sequence[Any]) -> list[Any]:
    """The standard basis of the space of all `leaves`: for each leaf, its part of all basis vectors, stacked."""
    avals = [typeof_value(x) for x in leaves]
    total = sum(a.size for a in avals if a is not None)
    # In a program it is computed: as an array it would be an argument, and those of two Jacobians never one.
    block_of = _arrays_of_basis if recorder() is None else _recorded_basis
    result, start = [], 0
    for aval in avals:
        assert aval is not None
        vectors = block_of(total, start, aval)
        result.append(convert_array(vectors, aval.dtype, True) if aval.weak_type else vectors)
        start += aval.size
    return result


def _arrays_of_basis(total: int, start: int, aval: ShapedArray) -> Any:
    """Rows of which those from `start` on are the basis of `aval`, and the others are zero."""
    block = np.zeros((total, aval.size), aval.dtype)
    block[start : start + aval.size] = np.eye(aval.size, dtype=np.int8).astype(aval.dtype)
    return keep_dtype(block.reshape(total, *aval.shape))


def _recorded_basis(total: int, start: int, aval: ShapedArray) -> Any:
    """The same as operations of the program that is being traced."""
    rows, columns = (iota(dtype=dtypes.int32, shape=(total, aval.size), dimension=axis) for axis in (0, 1))
    # A position is 1 where its column, from `start` on, is its row.
    ones = eq(rows, add(columns, np.int32(start)) if start else columns)
    block = convert_array(ones, aval.dtype, False)
    return block if len(aval.shape) == 1 else reshape(block, new_sizes=(total, *aval.shape), dimensions=None)


def _split(x: Any, leaves: Sequence[Any], axis: int, like: Any) -> list[Any]:
    """Splits the stacked axis of `x` (the first or the last) into the shapes of `leaves`. The parts are weakly typed if
    `like` is."""
    from ..._ops.structure.slicing import split

    if not leaves:
        return []
    whole, weak_type = typeof(x), typeof(like).weak_type
    if whole.dtype == dtypes.float0 and dtypes.kind(typeof(like).dtype) in "biu":
        # As in JAX: the derivative of integers is zero, and has their dtype.
        x = instantiate(Zero(typeof(like).update(shape=whole.shape)))
    # Results have the weak type of what they are derivatives of, as in JAX.
    elif whole.weak_type != weak_type:
        x = convert_array(x, whole.dtype, weak_type)
    at = axis % len(whole.shape)
    avals = [typeof(leaf) for leaf in leaves]
    parts = split(x, sizes=tuple(aval.size for aval in avals), axis=at) if len(avals) > 1 else [x]
    before, after = whole.shape[:at], whole.shape[at + 1 :]
    return [
        reshape(part, new_sizes=(*before, *aval.shape, *after), dimensions=None)
        for part, aval in zip(parts, avals, strict=True)
    ]


def jacfwd(
    fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]:
    """The Jacobian of `fun`, computed by columns (forward mode): suited to few inputs and many outputs.

    Args:
      fun: function of trees of arrays, whose differentiated arguments are real.
      argnums: which positional arguments to differentiate, counted from 0 (or back from -1); an int or several.
      has_aux: `fun` returns (out, aux), and aux is passed through.
      holomorphic: differentiate a complex function as a holomorphic one.

    Returns:
      A function of the arguments of `fun` that returns the Jacobian, or (Jacobian, aux). For a result of shape s and an
      argument of shape t it has shape s + t; pytrees give a tree of results with a tree of arguments in each leaf;
      several `argnums` give a tuple in each leaf.

    Raises:
      DerivativeError: in a call, when an argument is an integer, or complex without `holomorphic`.
      ArgumentError: in a call, when there are too few positional arguments for `argnums`.

    >>> jacfwd(jnp.sin)(jnp.zeros(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return _jacfwd(fun, argnums, has_aux, holomorphic, "jacfwd")


def _jacfwd(
    fun: Callable[..., Any], argnums: Argnums, has_aux: bool, holomorphic: bool, function: str
) -> Callable[..., Any]:
    """`jacfwd`, called `function` in error messages."""
    arguments.check_callable(function, fun)

    @wraps(fun)
    @user_call
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, chosen = _choose_checked(function, fun, argnums, args, kwargs, holomorphic, False)
        leaves, tree = flatten(tuple(chosen))
        arguments.check_arrays(function, partial, chosen, {}, leaves)
        aux = Aux(None)

        def push(*tangents: Any) -> Any:
            nonlocal aux
            out, tangent, *rest = jvp(partial, tuple(chosen), tree.unflatten(tangents), has_aux)
            aux = Aux(rest)
            return out, tangent, aux.arrays

        # All columns in one pass, over a batch with one tangent for each element of the arguments.
        in_batch = vmap(push, out_axes=(None, -1, None)) if leaves else push
        out, columns, aux_arrays = in_batch(*_basis(leaves))
        if holomorphic:
            _check_output(function, fun, [typeof_value(x) for x in pytree.tree_leaves(columns)], True)

        # Columns are on the last axis, where the parts of each argument are cut out.
        def rows(x: Any, like: Any) -> Any:
            blocks = tree.unflatten(_split(x, leaves, -1, like))
            return blocks if isinstance(argnums, Iterable) else blocks[0]

        result = pytree.tree_map(rows, columns, out)
        return (result, *aux.with_arrays(aux_arrays)) if has_aux else result

    return jacobian


@docs_from(jacfwd)
def jacrev(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """The Jacobian of `fun`, computed by rows (reverse mode): suited to many inputs and few outputs.

    Args:
      fun: function of trees of arrays with real results.
      allow_int: take integer arguments; their Jacobians are zeros of their dtypes.

    Returns:
      A function of the arguments of `fun` that returns the Jacobian, or (Jacobian, aux), of the shapes that `jacfwd`
      describes.

    Raises:
      DerivativeError: in a call, when an argument is an integer, or a result is not real without `holomorphic`.

    >>> jacrev(lambda x: jnp.stack([x.sum(), x[0]]))(jnp.ones(3))
    Array([[1., 1., 1.],
           [1., 0., 0.]], dtype=float32)
    """
    return _jacrev(fun, argnums, has_aux, holomorphic, allow_int, "jacrev")


def _jacrev(
    fun: Callable[..., Any], argnums: Argnums, has_aux: bool, holomorphic: bool, allow_int: bool, function: str
) -> Callable[..., Any]:
    """`jacrev`, called `function` in error messages."""
    arguments.check_callable(function, fun)

    @wraps(fun)
    @user_call
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, chosen = _choose_checked(function, fun, argnums, args, kwargs, holomorphic, allow_int)
        leaves, pullback, aux = pull_back(partial, chosen, has_aux, function)
        tree = pullback.out_tree
        if tree == tree_structure(None):
            raise DerivativeError(
                f"A function that returns None has no Jacobian: {arguments.fun_name(fun)} returned None",
                instead="return the result at the end of the function",
            )
        _check_output(function, fun, [typeof_value(x) for x in leaves], holomorphic)

        def pull(*cotangents: Any) -> Any:
            return pullback(tree.unflatten(cotangents))

        # One cotangent for each element of the result.
        stacked = (vmap(pull) if leaves else pull)(*_basis(leaves))
        inputs, chosen_tree = flatten(tuple(chosen))
        blocks = [_split(x, leaves, 0, like) for x, like in zip(pytree.tree_leaves(stacked), inputs, strict=True)]

        def rows(i: int) -> Any:
            row = chosen_tree.unflatten([block[i] for block in blocks])
            return row if isinstance(argnums, Iterable) else row[0]

        result = tree.unflatten(map(rows, range(len(leaves))))
        return (result, aux) if has_aux else result

    return jacobian


# A name of its own, so that programs and pickles show what the user wrote.
jacobian = renamed(jacrev, "jacobian")


@docs_from(jacrev)
def hessian(
    fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]:
    """The matrix of second derivatives of `fun`: the Jacobian (forward) of the Jacobian (reverse).

    Returns:
      A function of the arguments of `fun` that returns the Hessian, or (Hessian, aux). For a result of shape s and an
      argument of shape t it has shape s + t + t; pytrees and several `argnums` nest as for `jacfwd`.

    >>> hessian(lambda x: (x**3).sum())(jnp.array([1.0, 2.0]))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    # Forward over reverse, as in JAX: reverse mode outside would store residuals of the inner derivative.
    rows = _jacrev(fun, argnums, has_aux, holomorphic, False, "hessian")
    return _jacfwd(rows, argnums, has_aux, holomorphic, "hessian")
