"""`BoundCall`, one call of a jitted function: what is looked up, traced, lowered and run is this object."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..._base import pytree
from ..._base.errors import DeviceError
from ..._base.pytree import PyTreeDef, flatten
from ..._ir.avals import ShapedArray
from ..._trace.refs import AbstractRef, Ref, values
from ..._xla.array import ArrayImpl
from ..._xla.placement import Placed
from ..._xla.sharding import Sharding
from . import arguments
from .entry import aval_of_leaf
from .options import Options, check_fit
from .references import check_distinct, find_refs, replaced

#: the static arguments of a call in hashable form: ((parameter, class, value), …); a parameter is a position or a name
Statics = tuple[tuple[int | str, type, Any], ...]


class BoundCall:
    """A call of a function, with its arguments split into static and dynamic ones, and these flattened.

    Attributes:
      fun: the user's function.
      args, kwargs: the dynamic arguments; None in a call without values.
      statics: the static arguments.
      leaves, tree: the leaves and the treedef of (args, kwargs).
      keys: the key of each leaf, set before the call is looked up or traced: an array key (type and placement), a type,
        the class of a Python number; for a reference a `RefKey`.
      ref_indices: indices of the leaves that are values of references, which are `refs`; see `take_refs`.
    """

    __slots__ = ("args", "fun", "keys", "kwargs", "leaves", "ref_indices", "refs", "statics", "tree")
    args: Any
    kwargs: Any
    keys: Sequence[Any]

    def __init__(self, fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], statics: Statics = ()):
        self.fun = fun
        self.args = args
        self.kwargs = kwargs
        self.statics = statics
        self.leaves: Any
        self.tree: PyTreeDef
        self.leaves, self.tree = flatten((args, kwargs))
        self.ref_indices: tuple[int, ...] = ()
        self.refs: Sequence[Ref] = ()

    @property
    def avals(self) -> list[ShapedArray]:
        """The abstract value of each leaf."""
        return list(map(aval_of_leaf, self.keys))

    @property
    def types(self) -> list[Any]:
        """The type of each leaf, which for a reference is an `AbstractRef`."""
        types: list[Any] = self.avals
        # References count as the arrays of their values in keys, and as references in traces.
        for i in self.ref_indices:
            types[i] = AbstractRef(types[i])
        return types

    def take_refs(self) -> list[Ref]:
        """Puts the values of the references among the leaves in their place; returns the references."""
        self.ref_indices = find_refs(self.leaves)
        if not self.ref_indices:
            return []
        refs = [self.leaves[i] for i in self.ref_indices]
        self.refs = refs
        self.check_refs()
        # A traced reference is a hidden operand and result (docs/decisions.md), so the call goes on with its value.
        self.leaves = replaced(self.leaves, self.ref_indices, values(refs))
        return refs

    def check_refs(self, captured: Collection[Ref] = ()) -> None:
        """Raises `RefError` if one of the references is passed twice, or is one of those that are closed over."""

        def ref_names() -> list[str]:
            names = self.names()
            return [names[i] for i in self.ref_indices]

        check_distinct(f"{arguments.fun_name(self.fun)} for jit", self.refs, captured, names=ref_names)

    def donated(self, options: Options) -> frozenset[int]:
        """Indices of the donated leaves, whose buffers results may reuse."""
        static = self.static_positions
        indices: list[int] = []
        leaf = position = 0
        total = len(self.args) + len(static)
        chosen = {n if n >= 0 else n + total for n in options.donate_argnums}
        for x in self.args:
            # Positions count static arguments, which `args` leaves out.
            while position in static:
                position += 1
            width = pytree.tree_structure(x).num_leaves
            if position in chosen:
                indices += range(leaf, leaf + width)
            leaf, position = leaf + width, position + 1
        # Keyword arguments are flattened in the order of their names, as dicts are.
        for name in sorted(self.kwargs):
            width = pytree.tree_structure(self.kwargs[name]).num_leaves
            if name in options.donate_argnames:
                indices += range(leaf, leaf + width)
            leaf += width
        # A reference is not deleted by the call: only arrays are donated.
        return frozenset(indices).difference(self.ref_indices)

    def with_values_of(self, refs: Sequence[Ref]) -> BoundCall:
        """The same call with the values of closed-over references as further leaves."""
        call = copy.copy(self)
        # Inside of a transformation the value of a reference is a tracer, which has a type and no placement.
        call.keys = [*self.keys, *[x._placement if type(x) is ArrayImpl else x.aval for x in values(refs)]]
        return call

    @property
    def static_positions(self) -> set[int]:
        """The positions of static arguments."""
        return {parameter for parameter, _, _ in self.statics if isinstance(parameter, int)}

    def names(self) -> list[str]:
        """The path of each leaf in the user's terms, such as ``params['w']``."""
        args, kwargs = self.args, self.kwargs
        if args is None:
            args, kwargs = pytree.placeholders(self.tree)  # the leaves are gone, and names depend on the tree alone
        return arguments.leaf_names(self.fun, args, kwargs, self.static_positions)

    def check_arrays(self, values: Collection[int] = ()) -> list[ShapedArray]:
        """The abstract value of each leaf. Raises for one that is no array; see `arguments.check_arrays`."""
        absent = self.static_positions
        return arguments.check_arrays("jit", self.fun, self.args, self.kwargs, self.leaves, absent, values)

    def check_shardings(self, shardings: Sequence[Any]) -> None:
        """Raises for an argument that `in_shardings` cannot split, or that is committed to another sharding."""
        check_fit("in_shardings", shardings, map(aval_of_leaf, self.keys), self.names)
        for i, (key, sharding) in enumerate(zip(self.keys, shardings, strict=True)):
            # Uncommitted arguments are moved to the sharding. A committed one was split on purpose; it is only moved to
            # other devices, as in JAX.
            if sharding is not None and type(key) is Placed and key.committed and not _are_split_alike(key, sharding):
                name = self.names()[i]
                raise DeviceError(
                    f"Sharding passed to jit does not match the sharding on the respective arg: in_shardings has "
                    f"{sharding} for {name}, {key.aval.short}, which lies as {key.sharding}",
                    instead="phlox.device_put of the argument first, or no in_shardings: programs take arguments "
                    "as they lie",
                    argument=name,
                    sharding=key.sharding,
                )

    def arguments_of(self, leaves: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The user's arguments, static ones included, with these leaves."""
        return join_static(self.statics, *self.tree.unflatten(leaves))

    def with_keys(self, keys: Sequence[Any]) -> BoundCall:
        """The same call with other keys."""
        call = copy.copy(self)
        call.keys = keys
        return call

    def without_values(self) -> BoundCall:
        """The call as a cache or a stage holds it: it keeps no array of the user alive."""
        call = copy.copy(self)
        call.args = call.kwargs = call.leaves = None
        call.refs = ()
        return call


def _are_split_alike(placed: Placed, sharding: Sharding) -> bool:
    """Whether arrays with this placement have the same parts, in memory of the same kind, as those with `sharding`."""
    ndim, here = placed.aval.physical.ndim, placed.sharding
    return here == sharding or (here.kind == sharding.kind and here.hlo(ndim) == sharding.hlo(ndim))


def bind(
    fun: Callable[..., Any],
    options: Options,
    label: Callable[[int], str | int],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    is_ours: bool,
) -> BoundCall:
    """A call of `fun` with some static arguments; `label` returns the name of the parameter at a position.

    Functions of phlox (`is_ours`) take static integers as arrays too, as those of JAX do.
    """
    # A negative number counts back from the end of this call, as ``*args`` may differ in length.
    static_positions = {n if n >= 0 else n + len(args) for n in options.static_argnums}
    statics: list[tuple[Any, type, Any]] = []
    dynamic: list[Any] = []
    # 1, 1.0 and True are equal as keys and must not share a program: the class is part of the key.
    for i, x in enumerate(args):
        if i in static_positions:
            x = arguments.as_static(fun, label(i), x, is_ours)
            statics.append((i, type(x), x))
        else:
            dynamic.append(x)
    named: dict[str, Any] = {}
    for name, x in kwargs.items():
        if name in options.static_argnames:
            x = arguments.as_static(fun, name, x, is_ours)
            statics.append((name, type(x), x))
        else:
            named[name] = x
    return BoundCall(fun, tuple(dynamic), named, tuple(statics))


def join_static(statics: Statics, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The user's arguments from the static and the dynamic ones: the inverse of `bind`."""
    if not statics:
        return list(args), dict(kwargs)
    by_position = {parameter: x for parameter, _, x in statics if isinstance(parameter, int)}
    rest = iter(args)
    # The dynamic arguments fill the positions that no static one has, in order.
    positional = [by_position[i] if i in by_position else next(rest) for i in range(len(args) + len(by_position))]
    return positional, {**kwargs, **{parameter: x for parameter, _, x in statics if isinstance(parameter, str)}}
