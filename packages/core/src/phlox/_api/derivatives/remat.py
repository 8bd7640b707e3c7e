"""`checkpoint` (or `remat`): derivatives that recompute values instead of saving them; policies of what to save."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..._base import pytree
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, OptionError
from ..._base.interning import clear_if_full
from ..._base.pytree import flatten
from ..._base.wrapping import P, R, renamed, wraps
from ..._ir.avals import ShapedArray, typeof_value
from ..._ir.jaxpr import Var, only
from ..._ir.primitive import Primitive, current_trace
from ..._ops.control.call import without_calls
from ..._ops.control.division import Offloadable, Policy, Recompute, Saveable
from ..._ops.control.remat import checkpoint as checkpoint_p, describe_values, name_p
from ..._ops.linalg.dot import dot_general
from ..._ops.structure.shape import as_array_or_tracer
from ..._trace.refs import Ref
from ..._trace.trace import typeof
from ..jit import arguments
from ..jit.bodies import operands_of, staged
from ..jit.bound_call import Statics, join_static
from ..jit.programs import make_jaxpr
from ..jit.references import closed_over
from ..jit.user_functions import user_call
from .differentiate import vjp


def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool | Sequence[Any] = True,
    policy: Policy | None = None,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> Callable[P, R]:
    """`fun`, whose derivative saves only the arguments and recomputes intermediate values when it needs them.

    This trades time for memory: apply it to the layers of a deep network. The function is traced once for each kind of
    arguments, even where it is not differentiated.

    Args:
      fun: function of trees of arrays.
      prevent_cse: keep the compiler from merging the recomputation with the first computation. Inside of `scan` it
        cannot merge them, and False saves some time. A tuple has a bool, or a tree of bools, for each argument.
      policy: decides for each operation whether its results are saved; see `checkpoint_policies`. It is called for
        operations inside of branches and loop bodies, too. None saves no results.
      static_argnums, static_argnames: arguments that are Python values, by position (from 0) and by name.

    Returns:
      A function that is called as `fun` is and returns the same.

    Raises:
      ArgumentError: `prevent_cse` is neither a bool nor a tuple or list.
      OptionError: `static_argnums` or `static_argnames` name arguments that `fun` does not have.

    >>> phlox.grad(checkpoint(lambda x: jnp.sin(jnp.sin(x))))(1.0)
    Array(0.36003..., dtype=float32, weak_type=True)
    """
    arguments.check_callable("checkpoint", fun)
    statics, static_names = arguments.complete(
        fun,
        arguments.as_ints(static_argnums, "static_argnums"),
        arguments.as_names(static_argnames, "static_argnames"),
        "static",
    )
    if not isinstance(prevent_cse, bool | tuple | list):
        raise ArgumentError(
            f"prevent_cse must be a bool or tuple of bools, got {prevent_cse!r} of type {type(prevent_cse).__name__}",
            instead="True or False, or a tuple of them, one for each argument",
            argument="prevent_cse",
        )
    # Functions with static arguments filled in, by these: the cache of Jaxprs is by function object.
    variants: dict[Any, Callable[..., Any]] = {}

    @wraps(fun)
    @user_call
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        # Negative numbers count from the end of this call.
        static_indices = {n if n >= 0 else n + len(args) for n in statics}
        if current_trace.get() is None:  # NumPy arrays become arrays, as they do under a trace
            args = tuple(x if i in static_indices else pytree.tree_map(_as_operand, x) for i, x in enumerate(args))
            kwargs = {k: x if k in static_names else pytree.tree_map(_as_operand, x) for k, x in kwargs.items()}
        fixed: dict[Any, Any] = {n: args[n] for n in static_indices if 0 <= n < len(args)}
        fixed |= {name: x for name, x in kwargs.items() if name in static_names}
        # Sorted, so that calls with keywords in other orders share a trace.
        names = sorted(kwargs.keys() - fixed.keys())
        # Without static and keyword arguments, `fun` itself is traced, so that the cache by function finds its Jaxpr.
        dynamic = _dynamic(fun, fixed, names, variants) if fixed or kwargs else fun
        dynamic_args = [x for i, x in enumerate(args) if i not in fixed]
        dynamic_kwargs = {name: kwargs[name] for name in names}
        flags = (
            prevent_cse if isinstance(prevent_cse, bool) else _flag_per_array(prevent_cse, dynamic_args, dynamic_kwargs)
        )
        # References are closed over, since the primitive takes arrays only.
        (dynamic,), operands = closed_over("checkpoint", [dynamic], (*dynamic_args, *dynamic_kwargs.values()))

        def operand_names() -> list[str]:
            leaf_names = arguments.leaf_names(fun, dynamic_args, dynamic_kwargs, static_indices)
            is_array = [not isinstance(x, Ref) for x in flatten((tuple(dynamic_args), dynamic_kwargs))[0]]
            return only(leaf_names, is_array)

        return _bind(fun, dynamic, operands, operand_names, flags, policy)

    return checkpointed


def _bind(
    fun: Callable[..., Any],
    dynamic: Callable[..., Any],
    operands: tuple[Any, ...],
    operand_names: Callable[[], list[str]],
    prevent_cse: bool | tuple[bool, ...],
    policy: Policy | None,
) -> Any:
    """Calls `dynamic`, which is `fun` as a function of these operands, as one `checkpoint` operation."""
    leaves, tree = operands_of("checkpoint", fun, operands)
    program = staged("checkpoint", arguments.fun_name(fun), dynamic, tree, [typeof(x) for x in leaves], operand_names)
    if not isinstance(prevent_cse, bool):
        # Values that the function closes over come first, and have no flag of the user's.
        prevent_cse = (False,) * (len(program.consts) + len(leaves) - len(prevent_cse)) + prevent_cse
    outs = checkpoint_p.bind(
        *program.consts, *leaves, jaxpr=program.closed, prevent_cse=prevent_cse, differentiated=False, policy=policy
    )
    return program.out_tree.unflatten(outs)


def _flag_per_array(prevent_cse: Sequence[Any], args: list[Any], kwargs: dict[str, Any]) -> tuple[bool, ...]:
    """The `prevent_cse` flag of each array among the arguments."""
    call_args = (tuple(args), kwargs) if kwargs else tuple(args)
    # One flag may stand for a whole argument.
    flags = pytree.spread("checkpoint prevent_cse", tuple(prevent_cse), call_args)
    return tuple(bool(f) for f, x in zip(flags, flatten(call_args)[0], strict=True) if not isinstance(x, Ref))


def _as_operand(x: Any) -> Any:
    """A leaf of the arguments in the form that the function gets."""
    return x if isinstance(x, Ref) or typeof_value(x) is None else as_array_or_tracer(x)


def _dynamic(
    fun: Callable[..., Any], fixed: dict[Any, Any], names: list[str], variants: dict[Any, Callable[..., Any]]
) -> Callable[..., Any]:
    """`fun` as a function of its dynamic arguments: all but those `fixed` by position or name. Equal static values
    share one function object of `variants`, since caches of Jaxprs are by function."""
    # 1, 1.0 and True are equal as keys.
    statics = tuple((parameter, type(x), x) for parameter, x in fixed.items())
    # `partial` and not an inner function: it holds the values, and no variables of this call.
    variant = functools.partial(_fill, fun, statics, names)
    variant.__name__ = arguments.fun_name(fun)  # type: ignore[attr-defined]
    try:
        # The first function with this key stays, as its Jaxpr is cached by it.
        return clear_if_full(variants).setdefault((statics, *names), variant)
    except TypeError:  # a static argument that is not hashable
        return variant


def _fill(fun: Callable[..., Any], statics: Statics, names: list[str], *dynamic: Any) -> Any:
    """Calls `fun` with static and dynamic arguments. The last of `dynamic` are passed by `names`."""
    count = len(dynamic) - len(names)
    args, kwargs = join_static(statics, dynamic[:count], dict(zip(names, dynamic[count:], strict=True)))
    return fun(*args, **kwargs)


#: JAX's older name of `checkpoint`
remat = renamed(checkpoint, "remat")


def checkpoint_name(x: Any, name: str) -> Any:
    """Gives `x` (a tree) a name by which policies of `checkpoint` can refer to it.

    Args:
      x: array, or a tree of arrays.
      name: the name; several values may share a name.

    Returns:
      `x`, with its values unchanged.

    >>> checkpoint_name(jnp.ones(2), "activation")
    Array([1., 1.], dtype=float32)
    """
    # An operation without effect on values, which policies find by its name.
    return pytree.tree_map(lambda leaf: name_p.bind(leaf, name=name), x)


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Prints the residuals of the reverse derivative of `f`: the type of each, and where it is computed.

    Args:
      f: function of trees of arrays.
      *args: arguments to differentiate, which may be `ShapeDtypeStruct`s.
      **kwargs: further arguments, which are not differentiated.

    Returns:
      None. One line for each value is printed.

    >>> print_saved_residuals(jnp.sin, 1.0)
    f32[] output of cos ...
    """
    for aval, origin in saved_residuals(f, *args, **kwargs):
        print(aval.short, origin)


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[ShapedArray, str]]:
    """The type and the origin of each residual that `print_saved_residuals` prints."""
    # The pullback is a pytree whose leaves are the residuals, so its Jaxpr returns them.
    closed = make_jaxpr(lambda *xs: pytree.tree_leaves(vjp(functools.partial(f, **kwargs), *xs)[1]))(*args)
    names = arguments.leaf_names(f, args, {})
    jaxpr = without_calls(closed).jaxpr
    residuals = []
    # Once each: a residual may serve several operations.
    for v in dict.fromkeys(v for v in jaxpr.outvars if type(v) is Var):
        if v in jaxpr.invars:
            residuals.append((v.aval, f"from the argument {names[jaxpr.invars.index(v)]}"))
        else:
            # A residual that no equation computes was closed over.
            texts = [text.removeprefix(f"{v.aval.short} ") for text in describe_values(jaxpr, [v])]
            residuals.append((v.aval, texts[0] if texts else "from a constant"))
    return residuals


# --- policies -------------------------------------------------------------------------------------------


def everything_saveable(*_: Any, **__: Any) -> bool:
    """A policy that saves all results, as without `checkpoint`.

    Args:
      *_, **__: the arguments of policies (see `dots_saveable`); not used.

    Returns:
      True.

    >>> from phlox.ad_checkpoint import print_saved_residuals
    >>> f = phlox.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=phlox.checkpoint_policies.everything_saveable)
    >>> print_saved_residuals(f, 1.0)
    f32[] output of cos ...
    f32[] output of cos ...
    """
    return True


@docs_from(everything_saveable)
def nothing_saveable(*_: Any, **__: Any) -> bool:
    """A policy that saves only the arguments; the default of `checkpoint`.

    Returns:
      False.

    >>> from phlox.ad_checkpoint import print_saved_residuals
    >>> f = phlox.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=phlox.checkpoint_policies.nothing_saveable)
    >>> print_saved_residuals(f, 1.0)
    f32[] from the argument x
    """
    return False


def dots_saveable(prim: Primitive, *args: Any, **params: Any) -> bool:
    """A policy that saves the results of matrix products, which cost most to recompute.

    Args:
      prim: the primitive of an operation.
      *args: the types of its operands; not used.
      **params: its parameters; not used.

    Returns:
      Whether to save the results of this operation.

    >>> from phlox.ad_checkpoint import print_saved_residuals
    >>> f = phlox.checkpoint(lambda x: jnp.sin(x @ x), policy=phlox.checkpoint_policies.dots_saveable)
    >>> print_saved_residuals(f, jnp.ones((2, 2)))
    f32[2,2] from the argument x
    f32[2,2] output of dot_general ...
    """
    # By the primitive and not its name: a user's primitive may have the same.
    return prim is dot_general


@docs_from(dots_saveable)
def dots_with_no_batch_dims_saveable(prim: Primitive, *args: Any, **params: Any) -> bool:
    """A policy that saves the results of matrix products without batch dimensions, as of weights and activations.

    Args:
      **params: its parameters.

    >>> from phlox.ad_checkpoint import print_saved_residuals
    >>> f = phlox.checkpoint(
    ...     lambda x: jnp.sin(x @ x), policy=phlox.checkpoint_policies.dots_with_no_batch_dims_saveable
    ... )
    >>> print_saved_residuals(f, jnp.ones((3, 2, 2)))
    f32[3,2,2] from the argument x
    """
    # The dimension numbers are ((contracting), (batch)) of both operands.
    return prim is dot_general and not params["dimension_numbers"][1][0]


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """A policy that saves all results except those with these names (see `checkpoint_name`).

    Args:
      *names_not_to_save: the names.

    Returns:
      A policy for `checkpoint`.

    >>> from phlox.ad_checkpoint import checkpoint_name, print_saved_residuals
    >>> policy = phlox.checkpoint_policies.save_anything_except_these_names("a")
    >>> f = phlox.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "a")), policy=policy)
    >>> print_saved_residuals(f, 1.0)
    f32[] output of cos ...
    f32[] output of cos ...
    """
    return lambda prim, *_, **params: not (prim is name_p and params["name"] in names_not_to_save)


@docs_from(save_anything_except_these_names)
def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """A policy that saves all results that have a name (see `checkpoint_name`), except those with these names.

    >>> from phlox.ad_checkpoint import checkpoint_name, print_saved_residuals
    >>> policy = phlox.checkpoint_policies.save_any_names_but_these("a")
    >>> f = phlox.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "b")), policy=policy)
    >>> print_saved_residuals(f, 1.0)
    f32[] from the argument x
    f32[] named 'b' ...
    """
    return lambda prim, *_, **params: prim is name_p and params["name"] not in names_not_to_save


@docs_from(save_anything_except_these_names)
def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """A policy that saves only the results with these names.

    Args:
      *names_which_can_be_saved: the names, see `checkpoint_name`.

    >>> from phlox.ad_checkpoint import checkpoint_name, print_saved_residuals
    >>> policy = phlox.checkpoint_policies.save_only_these_names("a")
    >>> f = phlox.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "a")), policy=policy)
    >>> print_saved_residuals(f, 1.0)
    f32[] from the argument x
    f32[] named 'a' ...
    """
    return lambda prim, *_, **params: prim is name_p and params["name"] in names_which_can_be_saved


@docs_from(save_anything_except_these_names)
def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """A policy that saves what at least one of two policies saves.

    Args:
      policy_1, policy_2: policies that return True or False.

    Raises:
      ArgumentError: in a call of the policy, when one of the two returns something else.

    >>> from phlox import checkpoint_policies
    >>> from phlox.ad_checkpoint import checkpoint_name, print_saved_residuals
    >>> either = checkpoint_policies.save_from_both_policies(
    ...     checkpoint_policies.dots_saveable, checkpoint_policies.save_only_these_names("a")
    ... )
    >>> f = phlox.checkpoint(lambda x: jnp.sin(checkpoint_name(x @ x, "a")), policy=either)
    >>> print_saved_residuals(f, jnp.ones((2, 2)))
    f32[2,2] from the argument x
    f32[2,2] named 'a' ...
    """

    def policy(prim: Primitive, *avals: Any, **params: Any) -> bool:
        answers = policy_1(prim, *avals, **params), policy_2(prim, *avals, **params)
        if not all(isinstance(answer, bool) for answer in answers):
            raise ArgumentError(
                f"save_from_both_policies: the policies answered {answers[0]!r} and {answers[1]!r} about {prim}",
                instead="policies that answer True or False; or one function that knows both",
            )
        return any(answers)

    return policy


@docs_from(save_anything_except_these_names)
def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Iterable[str],
    names_which_can_be_offloaded: Iterable[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """A policy that saves results with some names, and offloads those with others to another memory; see `Offloadable`.

    Args:
      names_which_can_be_saved: names of the results to save.
      names_which_can_be_offloaded: names of the results to save in another memory.
      offload_src, offload_dst: kinds of memory to move offloaded results from and to, such as "device" and
        "pinned_host".

    Raises:
      OptionError: a name is in both lists.

    >>> from phlox.ad_checkpoint import checkpoint_name, print_saved_residuals
    >>> policy = phlox.checkpoint_policies.save_and_offload_only_these_names(
    ...     names_which_can_be_saved=["a"],
    ...     names_which_can_be_offloaded=["b"],
    ...     offload_src="device",
    ...     offload_dst="pinned_host",
    ... )
    >>> f = phlox.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "a")), policy=policy)
    >>> print_saved_residuals(f, 1.0)
    f32[] from the argument x
    f32[] named 'a' ...
    """
    saved, offloaded = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if saved & offloaded:
        raise OptionError(
            f"save_and_offload_only_these_names: {sorted(saved & offloaded)} shall be saved and offloaded"
        )

    def policy(prim: Primitive, *_: Any, **params: Any) -> Any:
        name = params["name"] if prim is name_p else None
        if name in saved:
            return Saveable
        return Offloadable(offload_src, offload_dst) if name in offloaded else Recompute

    return policy


@docs_from(save_anything_except_these_names)
def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """A policy that offloads what `dots_with_no_batch_dims_saveable` saves to another memory; see `Offloadable`.

    Args:
      offload_src, offload_dst: kinds of memory to move the results from and to, such as "device" and "pinned_host".

    >>> from phlox.ad_checkpoint import print_saved_residuals
    >>> policy = phlox.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    >>> f = phlox.checkpoint(lambda x: jnp.sin(x @ x), policy=policy)
    >>> print_saved_residuals(f, jnp.ones((2, 2)))
    f32[2,2] from the argument x
    f32<host>[2,2] output of to_memory ...
    """

    def policy(prim: Primitive, *args: Any, **params: Any) -> Any:
        is_saved = dots_with_no_batch_dims_saveable(prim, *args, **params)
        return Offloadable(offload_src, offload_dst) if is_saved else Recompute

    return policy
