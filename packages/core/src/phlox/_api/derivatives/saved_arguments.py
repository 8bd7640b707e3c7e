"""The arguments that a pullback keeps for the backward pass, and trees of bools that say which it may keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..._base import pytree
from ..._base.errors import OptionError
from ..._base.pytree import PyTreeDef


class _Absent:
    """A class of placeholders without data: nodes of a tree that have no leaves."""

    # None would not do as a placeholder: it is an empty tree, in which no argument could be put back.
    def tree_flatten(self) -> tuple[Any, Any]:
        return (), None

    @classmethod
    def tree_unflatten(cls, fixed: Any, children: Any) -> _Absent:
        return cls()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@pytree.register_pytree_node_class
class NotNeeded(_Absent):
    """Takes the place in `Pullback.args_res` of an argument that is not a residual."""


@pytree.register_pytree_node_class
class NotSaveable(_Absent):
    """Takes the place in `Pullback.args_res` of an argument that `saveable_args` excludes, until it is put back."""


def saved_leaves(args_res: Sequence[Any]) -> list[Any]:
    """The leaves of `args_res`, with the placeholders."""
    return pytree.tree_leaves(tuple(args_res), is_leaf=lambda x: isinstance(x, _Absent))


def mirrored(tree: PyTreeDef, leaves: Iterator[Any]) -> Any:
    """A tree of `leaves` like `tree`.

    Containers of other types than list, tuple and dict become tuples, as in JAX: the user's classes need not accept
    placeholders.
    """
    node = tree.node_data()
    if node is None:
        return next(leaves)
    kind, keys = node
    children = [mirrored(child, leaves) for child in pytree.treedef_children(tree)]
    if kind in (list, type(None)):
        return children if kind is list else None
    return dict(zip(keys, children, strict=True)) if kind is dict else tuple(children)


def leaf_flags(function: str, where: str, prefix: Any, tree: PyTreeDef) -> list[bool]:
    """A bool for each leaf of `tree` from a tree of bools, in which a bool stands for all leaves below it.

    Containers of the two trees correspond by their number of children, whatever their types are. `where` is the name of
    the option, or the path to a part of it.

    Raises:
      OptionError: something in `prefix` is neither a bool nor a container, or its containers do not correspond.
    """
    if isinstance(prefix, bool):
        return [prefix] * tree.num_leaves
    children, own = pytree.flatten(prefix, lambda x: x is not prefix)
    if own.node_data() is None:
        raise OptionError(f"{function}: {where} is {prefix!r:.60}", instead="a bool, or a tuple of bools")
    parts = pytree.treedef_children(tree)
    if tree.node_data() is None or len(parts) != len(children) or _keys_differ(own, tree):
        raise OptionError(
            f"{function}: {where.partition('[')[0]} must be a tree prefix of the arguments, but {where} is "
            f"{prefix!r:.60} for {pytree.describe(tree)}",
            instead="one bool for all of it, or one for each child",
        )
    pairs = enumerate(zip(children, parts, strict=True))
    return [flag for i, (child, part) in pairs for flag in leaf_flags(function, f"{where}[{i}]", child, part)]


def _keys_differ(tree: PyTreeDef, other: PyTreeDef) -> bool:
    """Whether both are dicts, with different keys."""
    (kind, keys), (other_kind, other_keys) = tree.node_data(), other.node_data()
    return kind is other_kind is dict and keys != other_keys
