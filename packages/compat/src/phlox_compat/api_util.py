"""``phlox.api_util``: helpers for transformations of user functions, as in ``jax.api_util``.

JAX's versions take and return wrapper objects for functions. These take any function and return functions, which also
have the method ``call_wrapped`` of JAX's wrapper objects.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from phlox import typeof
from phlox.errors import ArgumentError, OptionError
from phlox.extend import ShapedArray, publish
from phlox.extend.core import DebugInfo
from phlox.tree_util import PyTreeDef, tree_flatten, tree_structure, treedef_children

from ._core import arguments, flat_axes

__all__ = [
    "argnums_partial",
    "debug_info",
    "donation_vector",
    "flatten_axes",
    "flatten_fun",
    "flatten_fun_nokwargs",
    "rebase_donate_argnums",
    "safe_map",
    "shaped_abstractify",
]


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    function.call_wrapped = function  # type: ignore[attr-defined]
    return function


def argnums_partial(
    f: Callable[..., Any],
    dyn_argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """`f` as a function of some of its arguments, with the others held fixed.

    Args:
      f: function of positional arguments.
      dyn_argnums: positions of the arguments that stay arguments, counted from 0 (or back from -1); an int or several.
      args: all positional arguments.
      require_static_args_hashable: raise for fixed arguments that are not hashable.

    Returns:
      (function, dynamic arguments): a function of the arguments at `dyn_argnums`, and a tuple of these.

    Raises:
      OptionError: `dyn_argnums` has a position that `args` lacks.
      StaticArgumentError: a fixed argument is not hashable, and `require_static_args_hashable` is True.

    >>> squared, given = argnums_partial(lambda x, n: x**n, 0, (3.0, 2))
    >>> squared(*given)
    9.0
    """
    numbers = arguments.as_ints(dyn_argnums, "dyn_argnums")
    if not all(-len(args) <= n < len(args) for n in numbers):
        raise OptionError(f"argnums_partial: dyn_argnums={dyn_argnums} for {len(args)} arguments")
    numbers = tuple(n % len(args) for n in numbers)
    if require_static_args_hashable:
        for i, x in enumerate(args):
            if i not in numbers:
                arguments.as_static(f, i, x, accepts_arrays=False)

    def partial(*values: Any, **kwargs: Any) -> Any:
        filled = list(args)
        for n, x in zip(numbers, values, strict=True):
            filled[n] = x
        return f(*filled, **kwargs)

    return _wrapped(partial), tuple(args[n] for n in numbers)


def _flattened(call: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[[], PyTreeDef]]:
    trees: list[PyTreeDef] = []

    def flat(*leaves: Any) -> list[Any]:
        outs, tree = tree_flatten(call(leaves))
        trees[:] = [tree]
        return outs

    return _wrapped(flat), lambda: trees[0]


def flatten_fun(
    fun: Callable[..., Any], *gen_static_args: PyTreeDef, use_eq_store: bool = False, unk_names: bool = False
) -> tuple[Callable[..., Any], Callable[[], PyTreeDef]]:
    """`fun` as a function of the leaves of (args, kwargs), which returns the leaves of its result.

    Args:
      fun: function of trees.
      *gen_static_args: one treedef, that of (args, kwargs).
      use_eq_store, unk_names: accepted as in JAX; not used.

    Returns:
      (flat function, out_tree): after a call of the flat function, ``out_tree()`` returns the treedef of the result.

    >>> leaves, tree = phlox.tree.flatten(((1, 2), {"c": 3}))
    >>> flat, out_tree = flatten_fun(lambda a, b, c: {"sum": a + b + c}, tree)
    >>> flat(*leaves), out_tree()
    ([6], PyTreeDef({'sum': *}))
    """

    (in_tree,) = gen_static_args

    def call(leaves: Any) -> Any:
        args, kwargs = in_tree.unflatten(leaves)
        return fun(*args, **kwargs)

    return _flattened(call)


def flatten_fun_nokwargs(
    fun: Callable[..., Any], *gen_static_args: PyTreeDef, use_eq_store: bool = False, unk_names: bool = False
) -> tuple[Callable[..., Any], Callable[[], PyTreeDef]]:
    """Like `flatten_fun`, for the leaves of positional arguments only.

    Args:
      fun: function of positional arguments, trees.
      *gen_static_args: one treedef, that of the tuple of arguments.
      use_eq_store, unk_names: accepted as in JAX; not used.

    Returns:
      (flat function, out_tree): after a call of the flat function, ``out_tree()`` returns the treedef of the result.

    >>> flat, out_tree = flatten_fun_nokwargs(lambda a, b: [a, b], phlox.tree.structure((1, 2)))
    >>> flat(5, 6), out_tree()
    ([5, 6], PyTreeDef([*, *]))
    """
    (in_tree,) = gen_static_args
    return _flattened(lambda leaves: fun(*in_tree.unflatten(leaves)))


def flatten_axes(
    name: str, treedef: PyTreeDef, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False
) -> list[int | None]:
    """One axis for each leaf of a treedef, from a tree prefix of axes.

    Args:
      name: the name of `axis_tree` in error messages.
      treedef: the structure of the arguments or results.
      axis_tree: an int, None, or a tree of those that is a prefix of `treedef`.
      kws, tupled_args: accepted as in JAX; not used.

    Returns:
      A list with an int or None for each leaf.

    Raises:
      TreeError: `axis_tree` is no prefix of `treedef`.

    >>> flatten_axes("in_axes", phlox.tree.structure(([0, 0], 0)), (1, None))
    [1, 1, None]
    """
    return flat_axes(name, axis_tree, treedef)


def donation_vector(
    donate_argnums: Iterable[int], donate_argnames: Iterable[str], in_tree: PyTreeDef, kws: bool = True
) -> tuple[bool, ...]:
    """Whether each leaf of the arguments is donated.

    Args:
      donate_argnums: positions of donated arguments, counted from 0.
      donate_argnames: names of donated keyword arguments.
      in_tree: the treedef of (args, kwargs), or of args alone.
      kws: whether `in_tree` is that of (args, kwargs).

    Returns:
      A tuple with a bool for each leaf.

    >>> donation_vector((0,), ("c",), phlox.tree.structure((([0, 0], 0), {"c": 0})))
    (True, True, False, True)
    """
    numbers, names = set(donate_argnums or ()), set(donate_argnames or ())
    args, kwargs = treedef_children(in_tree) if kws else (in_tree, tree_structure({}))
    flags = [(i in numbers, child) for i, child in enumerate(treedef_children(args))]
    example = kwargs.unflatten([0] * kwargs.num_leaves)
    flags += [(key in names, tree_structure(example[key])) for key in sorted(example)]
    return tuple(donated for donated, child in flags for _ in range(child.num_leaves))


def rebase_donate_argnums(donate_argnums: Iterable[int], static_argnums: Iterable[int]) -> tuple[int, ...]:
    """The positions of donated arguments among the arguments that are not static.

    Args:
      donate_argnums: positions of donated arguments among all arguments, counted from 0.
      static_argnums: positions of static arguments among all arguments, counted from 0.

    Returns:
      A tuple of ints in ascending order.

    Raises:
      OptionError: an argument is both static and donated.

    >>> rebase_donate_argnums((3, 4), (0, 1))
    (1, 2)
    """
    donated, static = set(donate_argnums), set(static_argnums)
    if donated & static:
        raise OptionError(f"arguments {sorted(donated & static)} are static and donated")
    return tuple(n - sum(s < n for s in static) for n in sorted(donated))


def safe_map(f: Callable[..., Any], *args: Iterable[Any]) -> list[Any]:
    """``list(map(f, *args))``, for iterables of equal lengths.

    Args:
      f: function of one element of each iterable.
      *args: the iterables.

    Returns:
      A list of the results.

    Raises:
      ArgumentError: the iterables differ in length.

    >>> safe_map(max, [1, 5], [4, 2])
    [4, 5]
    """
    lists = [list(xs) for xs in args]
    if len({len(xs) for xs in lists}) > 1:
        raise ArgumentError(f"safe_map: iterables of lengths {', '.join(str(len(xs)) for xs in lists)}")
    return list(map(f, *lists))


def shaped_abstractify(x: Any) -> ShapedArray:
    """The abstract value of an array, a number, or an object that describes an array.

    Args:
      x: array, number, `ShapeDtypeStruct` or `ShapedArray`.

    Returns:
      A `ShapedArray`.

    Raises:
      ArgumentError: `x` is none of these.

    >>> shaped_abstractify(phlox.ShapeDtypeStruct((2,), "int32"))
    ShapedArray(int32[2])
    """
    return x if isinstance(x, ShapedArray) else typeof(x)


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Any = None,
    sourceinfo: str | None = None,
    signature: inspect.Signature | None = None,
) -> DebugInfo:
    """The description of a function that is traced for `args` and `kwargs`, for messages.

    Args:
      traced_for: the name of the transformation.
      fun: the function.
      args, kwargs: its arguments.
      static_argnums: positions of static arguments, counted from 0 (or back from -1), which get no names.
      static_argnames: names of static keyword arguments, which get no names.
      result_paths_thunk: accepted as in JAX; not used.
      sourceinfo: the name and source position of the function; None for those of `fun`.
      signature: accepted as in JAX; not used. The names of parameters are those of `fun`.

    Returns:
      A `DebugInfo`, whose `arg_names` has the path of each leaf of the arguments that are not static.

    >>> debug_info("jit", lambda x, n: x, ({"a": 0}, 3), {}, static_argnums=(1,)).arg_names
    ("x['a']",)
    """
    if sourceinfo is None:
        sourceinfo = arguments.described(fun)
    static = {n % len(args) for n in static_argnums} if args else set()
    arg_names = arguments.leaf_names(fun, args, {})
    widths = [tree_structure(a).num_leaves for a in args]
    owners = [i for i, width in enumerate(widths) for _ in range(width)]
    names = [name for i, name in zip(owners, arg_names, strict=True) if i not in static]
    named = {key: x for key, x in kwargs.items() if key not in static_argnames}
    return DebugInfo(traced_for, sourceinfo, (*names, *arguments.leaf_names(fun, (), named)))


publish(__name__)
