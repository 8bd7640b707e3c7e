"""Pytrees: nested containers of arrays, which a C++ registry of jaxlib flattens and unflattens.

`tree_registry` says which classes are containers, `tree_differences` how two trees differ; their names are here, too.
All errors about tree structures list the result of `differences`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from .docstrings import docs_from
from .errors import ArgumentError, TreeError
from .native import native
from .tree_differences import (
    Difference as Difference,
    are_equal as are_equal,
    check_same as check_same,
    child_keys as child_keys,
    describe as describe,
    differences as differences,
    named_paths as named_paths,
    tree_error as tree_error,
    typed_text as typed_text,
)
from .tree_registry import (
    DictKey as DictKey,
    FlattenedIndexKey as FlattenedIndexKey,
    GetAttrKey as GetAttrKey,
    KeyEntry as KeyEntry,
    KeyPath as KeyPath,
    PyTreeDef as PyTreeDef,
    SequenceKey as SequenceKey,
    flatten as flatten,
    is_tree_node as is_tree_node,
    keystr as keystr,
    reader as reader,
    register_dataclass as register_dataclass,
    register_pytree_node as register_pytree_node,
    register_pytree_node_class as register_pytree_node_class,
    register_pytree_with_keys as register_pytree_with_keys,
    register_pytree_with_keys_class as register_pytree_with_keys_class,
    register_static as register_static,
    registry as registry,
)

Leaf = Any
T = TypeVar("T")


# --- flatten, unflatten, map --------------------------------------------------------------------------


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Leaf], PyTreeDef]:
    """The leaves of `tree` in order, and its structure.

    Nodes are tuples, lists, dicts (in order of their sorted keys), named tuples, None (a node without
    children), OrderedDict, defaultdict and registered classes.

    Args:
      tree: any object; what is no node is a leaf.
      is_leaf: function of a node: True where it counts as a leaf. None: no container does.

    Returns:
      (leaves, structure): a list and a `PyTreeDef`.

    >>> tree_flatten({"b": 1, "a": (2, None)})
    ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    """
    return flatten(tree, is_leaf)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Leaf]) -> Any:
    """Builds the tree of structure `treedef` from `leaves`: the inverse of `tree_flatten`.

    Args:
      treedef: a structure, from `tree_flatten` or `tree_structure`.
      leaves: one object for each leaf of the structure, in order.

    Returns:
      A tree.

    Raises:
      ArgumentError: `treedef` is no structure.
      ValueError: there are more or fewer leaves.

    >>> tree_unflatten(tree_structure([0, (0, 0)]), [1, 2, 3])
    [1, (2, 3)]
    """
    _check_structure("tree_unflatten", treedef)
    return treedef.unflatten(leaves)


def placeholders(treedef: PyTreeDef) -> Any:
    """The tree with an `object` in place of each leaf, as JAX makes it.

    Classes that tell data from settings by its type, such as distrax's, take an `object` for data, and a number not.
    """
    return treedef.unflatten([object() for _ in range(treedef.num_leaves)])


def _check_structure(function: str, treedef: Any) -> None:
    if type(treedef) is not PyTreeDef:
        raise ArgumentError(
            f"{function} takes a structure first, got {treedef!r:.60} of type {type(treedef).__name__}",
            instead="phlox.tree.structure(tree)",
            argument="treedef",
        )


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Leaf]:
    """The leaves of `tree`, in the order of `tree_flatten`.

    Args:
      tree: any tree.
      is_leaf: function of a node: True where it counts as a leaf. None: no container does.

    Returns:
      A list.

    >>> tree_leaves({"b": 1, "a": [2, 3]})
    [2, 3, 1]
    """
    return flatten(tree, is_leaf)[0]


@docs_from(tree_leaves)
def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """The structure of `tree` without its leaves.

    Returns:
      A `PyTreeDef`, which is hashable. Trees that differ only in their leaves have equal structures.

    >>> tree_structure([1, (2, 3)])
    PyTreeDef([*, (*, *)])
    """
    return flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Applies `f` to each leaf of `tree` (with the matching subtrees of `rest`) and keeps the structure.

    Args:
      f: function of one leaf of `tree` and one subtree of each of `rest`.
      tree: any tree.
      *rest: trees with the structure of `tree`; where `tree` has a leaf they may have a subtree, which `f` receives.
      is_leaf: function of a node of `tree`: True where it counts as a leaf. None: no container does.

    Returns:
      A tree with the structure of `tree` and the results of `f` as leaves.

    Raises:
      TreeError: one of `rest` does not have the structure.

    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": 2}, {"a": 10, "b": 20})
    {'a': 11, 'b': 22}
    """
    leaves, treedef = flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(leaf) for leaf in leaves])
    columns = [leaves]
    for index, other in enumerate(rest):
        columns.append(flatten_up_to(treedef, other, "tree.map", f"tree {index + 2}"))
    return treedef.unflatten([f(*row) for row in zip(*columns, strict=True)])


def flatten_up_to(treedef: PyTreeDef, tree: Any, function: str = "tree", argument: str = "the tree") -> list[Any]:
    """The subtrees of `tree` at the leaves of `treedef`. Raises a `TreeError` that lists the differences."""
    try:
        return treedef.flatten_up_to(tree)
    # jaxlib's message names neither the path nor both structures.
    except (ValueError, TypeError):
        mismatches = differences(treedef, tree_structure(tree), prefix=True)
        raise tree_error(
            f"pytree structure error: {function}: {argument} does not have the structure of the first one", mismatches
        ) from None


def tree_all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """True when every leaf is true.

    Args:
      tree: a tree whose leaves have a truth value.
      is_leaf: function of a node: True where it counts as a leaf. None: no container does.

    Returns:
      A bool; True for a tree without leaves.

    >>> tree_all({"a": True, "b": [1, 2]})
    True
    """
    return all(tree_leaves(tree, is_leaf))


_missing: Any = object()


def tree_reduce(
    function: Callable[[T, Leaf], T],
    tree: Any,
    initializer: Any = _missing,
    is_leaf: Callable[[Any], bool] | None = None,
) -> T:
    """Folds the leaves of `tree` from left to right, as `functools.reduce` does.

    Args:
      function: ``function(total, leaf)`` returns the next total.
      tree: any tree.
      initializer: the first total; by default the first leaf.
      is_leaf: function of a node: True where it counts as a leaf. None: no container does.

    Returns:
      The last total.

    Raises:
      TypeError: there are neither leaves nor an `initializer`.

    >>> tree_reduce(lambda total, x: total + x, {"a": 1, "b": [2, 3]})
    6
    """
    if initializer is _missing:
        return functools.reduce(function, tree_leaves(tree, is_leaf))
    return functools.reduce(function, tree_leaves(tree, is_leaf), initializer)


def tree_reduce_associative(
    operation: Callable[[Leaf, Leaf], Leaf],
    tree: Any,
    *,
    identity: Any = _missing,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Leaf:
    """Folds the leaves with an associative `operation` in the shape of a balanced tree, halved again and again.

    Args:
      operation: ``operation(x, y)`` of two leaves, or of results of it.
      tree: any tree.
      identity: the result for a tree without leaves.
      is_leaf: function of a node: True where it counts as a leaf. None: no container does.

    Returns:
      The leaf, or the result of the last operation.

    Raises:
      ArgumentError: there are neither leaves nor an `identity`.

    >>> tree_reduce_associative(lambda x, y: f"({x}{y})", ["a", "b", "c"])
    '(a(bc))'
    """
    row = tree_leaves(tree, is_leaf)
    if not row:
        if identity is _missing:
            raise ArgumentError(
                "tree_reduce_associative: Must specify identity for parallel reduction of empty sequence",
                instead="identity=...",
            )
        return identity

    return _folded(operation, row, 0, len(row))


def _folded(operation: Callable[[Leaf, Leaf], Leaf], row: Sequence[Leaf], start: int, stop: int) -> Leaf:
    # Halves of equal length, so that rounding errors grow with the logarithm of the number of leaves.
    if stop - start == 1:
        return row[start]
    middle = (start + stop) // 2
    return operation(_folded(operation, row, start, middle), _folded(operation, row, middle, stop))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """Transposes a tree of trees: an outer tree of inner trees becomes an inner tree of outer trees.

    Args:
      outer_treedef: the structure of the outer tree.
      inner_treedef: the structure of the inner tree at each leaf of the outer tree; None: the structure of the first
        one.
      pytree_to_transpose: a tree of trees.

    Returns:
      A tree with the inner structure, whose leaves are replaced by trees of the outer structure.

    Raises:
      ArgumentError: `outer_treedef` is no structure.
      TreeError: the number of leaves is not the product of those of both structures.

    >>> tree_transpose(tree_structure([0, 0]), tree_structure((0, 0)), [(1, 2), (3, 4)])
    ([1, 3], [2, 4])
    """
    _check_structure("tree_transpose", outer_treedef)
    if inner_treedef is None:
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    leaves, treedef = flatten(pytree_to_transpose)
    width = inner_treedef.num_leaves
    # Only the number of leaves is checked: the treedef of a user's container may depend on its children.
    if len(leaves) != outer_treedef.num_leaves * width:
        expected = outer_treedef.compose(inner_treedef)
        raise tree_error("tree.transpose: Mismatch: the tree is not outer of inner", differences(expected, treedef))
    # The leaves are numbered by the outer tree first. Inner leaf number i is in every place i, i + width, ...
    return inner_treedef.unflatten([outer_treedef.unflatten(leaves[i::width]) for i in range(width)])


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """True when no element of `iterable` is a container.

    Args:
      iterable: any objects.
      is_leaf: function of a node: True where it counts as a leaf. None: no container does.

    Returns:
      A bool.

    >>> all_leaves([1, 2]), all_leaves([1, [2]])
    (True, False)
    """
    if is_leaf is None:
        return native.pytree.all_leaves(registry, iterable)
    # A list, as an iterator could be read only once, and both sides are compared.
    elements = list(iterable)
    leaves = tree_leaves(elements, is_leaf)
    return len(leaves) == len(elements) and all(a is b for a, b in zip(leaves, elements, strict=True))


# --- paths --------------------------------------------------------------------------------------------


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Leaf]], PyTreeDef]:
    """Like `tree_flatten`, with the path of keys that leads to each leaf.

    Args:
      tree: any tree.
      is_leaf: function of a node: True where it counts as a leaf. None: no container does.
      is_leaf_takes_path: call ``is_leaf(path, node)`` instead.

    Returns:
      (pairs, structure): a list of (path, leaf) and a `PyTreeDef`. A path is a tuple of keys such as `DictKey`.

    >>> [(keystr(path), leaf) for path, leaf in tree_flatten_with_path({"a": [1, 2]})[0]]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    # jaxlib calls `is_leaf` with the path; functions without it are wrapped.
    if is_leaf is None or is_leaf_takes_path:
        return registry.flatten_with_path(tree, is_leaf)
    stop = is_leaf
    return registry.flatten_with_path(tree, lambda _path, x: stop(x))


@docs_from(tree_flatten_with_path)
def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Leaf]]:
    """The (path, leaf) pairs of `tree`; see `tree_flatten_with_path`.

    Returns:
      A list of (path, leaf). A path is a tuple of keys such as `DictKey`.

    >>> [keystr(path) for path, _ in tree_leaves_with_path((0, {"x": 0}))]
    ['[0]', "[1]['x']"]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


@docs_from(tree_map)
def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Like `tree_map`; `f` also receives the path, as its first argument.

    Args:
      f: function of a path (a tuple of keys such as `DictKey`), a leaf of `tree`, and one subtree of each of `rest`.
      is_leaf_takes_path: call ``is_leaf(path, node)`` instead.

    >>> tree_map_with_path(lambda path, x: keystr(path) + "=" + str(x), {"a": 1})
    {'a': "['a']=1"}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [flatten_up_to(treedef, other, "tree.map_with_path", f"tree {i + 2}") for i, other in enumerate(rest)]
    rows = zip(*columns, strict=True) if columns else itertools.repeat(())
    return treedef.unflatten([f(path, leaf, *row) for (path, leaf), row in zip(pairs, rows, strict=False)])


# --- prefixes -----------------------------------------------------------------------------------------


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """For each leaf of `full_tree`, the leaf of `prefix_tree` above it.

    Args:
      prefix_tree: a prefix of `full_tree`: a tree that has leaves in place of some subtrees of `full_tree`.
      full_tree: any tree.
      is_leaf: function of a node of `prefix_tree`: True where it counts as a leaf. None: no container does.

    Returns:
      A list with one item for each leaf of `full_tree`.

    Raises:
      TreeError: `prefix_tree` is no prefix.

    >>> broadcast_prefix((1, 2), ([0, 0], 0))
    [1, 1, 2]
    """
    leaves, treedef = flatten(prefix_tree, is_leaf)
    below = flatten_up_to(treedef, full_tree, "tree.map", "tree 2")
    return [leaf for leaf, tree in zip(leaves, below, strict=True) for _ in range(tree_structure(tree).num_leaves)]


def spread(
    what: str,
    prefix_tree: Any,
    full_tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
    instead: str = "one for all leaves, or a tree of them that stops above the leaves",
) -> list[Any]:
    """`broadcast_prefix` for a prefix that a user wrote. The error calls it `what` and advises `instead`.

    `full_tree` may also be a structure. Its classes are made for an error only: they may refuse placeholders.
    """
    if type(full_tree) is PyTreeDef:
        leaves, prefix = flatten(prefix_tree, is_leaf)
        repeated = _repeated(iter(leaves), prefix, full_tree)
        if repeated is not None:
            return repeated
        full_tree = placeholders(full_tree)
    try:
        return broadcast_prefix(prefix_tree, full_tree, is_leaf)
    except TreeError as error:
        raise tree_error(
            f"{what} specification must be a tree prefix of the corresponding value; got specification {prefix_tree!r} "
            f"for value tree {tree_structure(full_tree)}",
            error.differences,  # type: ignore[attr-defined]
            instead=instead,
        ) from None


def _repeated(leaves: Iterator[Any], prefix: PyTreeDef, tree: PyTreeDef) -> list[Any] | None:
    """For each leaf of `tree`, the one of `leaves` above it; None if `prefix` is no prefix."""
    node = prefix.node_data()
    if node is None:
        return [next(leaves)] * tree.num_leaves
    below, within = prefix.children(), tree.children()
    if node != tree.node_data() or len(below) != len(within):
        return None
    repeated: list[Any] = []
    for part, child in zip(below, within, strict=True):
        more = _repeated(leaves, part, child)
        if more is None:
            return None
        repeated += more
    return repeated


@docs_from(broadcast_prefix)
def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """A tree with the structure of `full_tree` and the leaves of `prefix_tree` repeated.

    Returns:
      A tree.

    >>> tree_broadcast((1, 2), ([0, 0], 0))
    ([1, 1], 2)
    """
    return tree_structure(full_tree).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def is_none(x: Any) -> bool:
    """`is_leaf` for trees in which None is a value, such as the axes of vmap."""
    return x is None


# --- structures as values -----------------------------------------------------------------------------


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the direct children.

    Args:
      treedef: a structure.

    Returns:
      A list; empty for a leaf.

    >>> treedef_children(tree_structure([0, (0, 0)]))
    [PyTreeDef(*), PyTreeDef((*, *))]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is a single node: a leaf, or (as JAX has it) a container without children.

    Args:
      treedef: a structure.

    Returns:
      A bool.

    >>> treedef_is_leaf(tree_structure(0)), treedef_is_leaf(tree_structure([0]))
    (True, False)
    """
    return treedef.num_nodes == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple with children of these structures.

    Args:
      treedefs: structures.

    Returns:
      A `PyTreeDef`.

    >>> treedef_tuple([tree_structure(0), tree_structure([0])])
    PyTreeDef((*, [*]))
    """
    return native.pytree.treedef_tuple(registry, list(treedefs))
