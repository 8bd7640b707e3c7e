"""``phlox.tree_util``: functions on pytrees, registration of containers, and paths, as in ``jax.tree_util``."""

from typing import Any

from ._base.docstrings import docs_from
from ._base.errors import ArgumentError
from ._base.partial import Partial
from ._base.public_names import publish
from ._base.pytree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    PyTreeDef,
    SequenceKey,
    all_leaves,
    broadcast_prefix,
    is_tree_node,
    keystr,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    registry as default_registry,
    tree_all,
    tree_broadcast,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_map_with_path,
    tree_reduce,
    tree_reduce_associative,
    tree_structure,
    tree_transpose,
    tree_unflatten,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
)

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "broadcast_prefix",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]


def flatten_one_level(tree: Any) -> tuple[Any, Any]:
    """The children of a container, unflattened, and its auxiliary data.

    Args:
      tree: a container.

    Returns:
      (children, aux): an iterable and the auxiliary data, such as the keys of a dict.

    Raises:
      ArgumentError: `tree` is a leaf.

    >>> flatten_one_level([1, (2, 3)])
    ([1, (2, 3)], None)
    """
    pair = default_registry.flatten_one_level(tree)
    if pair is None:
        raise ArgumentError(f"flatten_one_level: can't tree-flatten type {type(tree)}")
    return pair


@docs_from(flatten_one_level)
def flatten_one_level_with_keys(tree: Any) -> tuple[Any, Any]:
    """Like `flatten_one_level`, with (key, child) pairs.

    Returns:
      (pairs of key and child, aux).

    >>> flatten_one_level_with_keys({"a": 1})
    (((DictKey(key='a'), 1),), ('a',))
    """
    pair = default_registry.flatten_one_level_with_keys(tree)
    if pair is None:
        raise ArgumentError(f"flatten_one_level_with_keys: can't tree-flatten type {type(tree)}")
    return pair


publish(__name__)
