"""Pytrees: nested containers of arrays, which a C++ registry of jaxlib flattens and unflattens.

phlox has a registry of its own: classes that are registered with JAX in the same process are leaves for phlox, and the
reverse. All errors about tree structures list the result of `differences`.
"""

from __future__ import annotations

import functools
import itertools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from .errors import ArgumentError, OptionError, TreeError
from .native import native

_pytree = native.pytree
PyTreeDef: TypeAlias = native.PyTreeDef
DictKey = _pytree.DictKey
GetAttrKey = _pytree.GetAttrKey
SequenceKey = _pytree.SequenceKey
FlattenedIndexKey = _pytree.FlattenedIndexKey

KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]
Leaf = Any
T = TypeVar("T")
Typ = TypeVar("Typ", bound=type)

registry = _pytree.PyTreeRegistry(
    enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=True
)
# Treedefs are pickled with their registry, which is found by these names.
registry.__module__, registry.__name__ = __name__, "registry"
#: flatten(tree, is_leaf=None) -> (leaves, treedef): the fast path calls this C++ method directly.
flatten = registry.flatten
#: registered class -> for dataclasses (names of data fields, names of meta fields), for other classes None
_registered: dict[type, tuple[tuple[str, ...], tuple[str, ...]] | None] = {}


# --- flatten, unflatten, map ----------------------------------------------------------------------------


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


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """The structure of `tree` without its leaves.

    Args:
      tree: any tree.
      is_leaf: function of a node: True where it counts as a leaf. None: no container does.

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
      OptionError: there are neither leaves nor an `identity`.

    >>> tree_reduce_associative(lambda x, y: f"({x}{y})", ["a", "b", "c"])
    '(a(bc))'
    """
    row = tree_leaves(tree, is_leaf)
    if not row:
        if identity is _missing:
            raise OptionError("tree_reduce_associative of a tree without leaves", instead="pass identity=...")
        return identity

    def fold(start: int, stop: int) -> Leaf:
        if stop - start == 1:
            return row[start]
        middle = (start + stop) // 2
        return operation(fold(start, middle), fold(middle, stop))

    return fold(0, len(row))


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
    rows = [leaves[start : start + width] for start in range(0, len(leaves), width)]
    columns = zip(*rows, strict=True) if rows else itertools.repeat((), width)
    return inner_treedef.unflatten([outer_treedef.unflatten(column) for column in columns])


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
        return _pytree.all_leaves(registry, iterable)
    elements = list(iterable)
    leaves = tree_leaves(elements, is_leaf)
    return len(leaves) == len(elements) and all(a is b for a, b in zip(leaves, elements, strict=True))


# --- paths ----------------------------------------------------------------------------------------------


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
    if is_leaf is None or is_leaf_takes_path:
        return registry.flatten_with_path(tree, is_leaf)
    stop = is_leaf
    return registry.flatten_with_path(tree, lambda _path, x: stop(x))


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Leaf]]:
    """The (path, leaf) pairs of `tree`; see `tree_flatten_with_path`.

    Args:
      tree: any tree.
      is_leaf: function of a node: True where it counts as a leaf. None: no container does.
      is_leaf_takes_path: call ``is_leaf(path, node)`` instead.

    Returns:
      A list of (path, leaf). A path is a tuple of keys such as `DictKey`.

    >>> [keystr(path) for path, _ in tree_leaves_with_path((0, {"x": 0}))]
    ['[0]', "[1]['x']"]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


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
      tree: any tree.
      *rest: trees with the structure of `tree`; where `tree` has a leaf they may have a subtree, which `f` receives.
      is_leaf: function of a node of `tree`: True where it counts as a leaf. None: no container does.
      is_leaf_takes_path: call ``is_leaf(path, node)`` instead.

    Returns:
      A tree with the structure of `tree` and the results of `f` as leaves.

    Raises:
      TreeError: one of `rest` does not have the structure.

    >>> tree_map_with_path(lambda path, x: keystr(path) + "=" + str(x), {"a": 1})
    {'a': "['a']=1"}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [flatten_up_to(treedef, other, "tree.map_with_path", f"tree {i + 2}") for i, other in enumerate(rest)]
    rows = zip(*columns, strict=True) if columns else itertools.repeat(())
    return treedef.unflatten([f(path, leaf, *row) for (path, leaf), row in zip(pairs, rows, strict=False)])


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A path as text: ``['a'][0].x``, or ``a/0/x`` with ``simple=True, separator='/'``.

    Args:
      keys: a path: a tuple of keys, as `tree_flatten_with_path` returns it.
      simple: write only the keys, without brackets, quotes and dots.
      separator: text between keys.

    Returns:
      A string; empty for the root.

    >>> keystr(tree_leaves_with_path({"a": [5]})[0][0], simple=True, separator="/")
    'a/0'
    """
    if not simple:
        return separator.join(map(str, keys))
    return separator.join(_simple_key(key) for key in keys)


def _simple_key(key: KeyEntry) -> str:
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


# --- registration ---------------------------------------------------------------------------------------


def register_pytree_node(
    nodetype: type[T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Iterable[Any]], T],
    flatten_with_keys_func: Callable[[T], tuple[Iterable[tuple[KeyEntry, Any]], Hashable]] | None = None,
) -> None:
    """Makes `nodetype` a container: its instances are nodes of trees instead of leaves.

    Args:
      nodetype: the class.
      flatten_func: ``flatten_func(x)`` returns (children, aux). `aux` must be hashable and comparable, because it is
        part of the structure, and so of cache keys.
      unflatten_func: ``unflatten_func(aux, children)`` returns an instance. The children may be any objects.
      flatten_with_keys_func: ``flatten_with_keys_func(x)`` returns (pairs of key and child, aux). None: children are
        numbered in paths, by `FlattenedIndexKey`.

    Returns:
      None.

    Raises:
      ValueError: the class is registered already.

    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> register_pytree_node(Pair, lambda pair: ((pair.x, pair.y), None), lambda _, children: Pair(*children))
    >>> tree_leaves({"a": Pair(1, 2), "b": 3})
    [1, 2, 3]
    """
    registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)
    _registered[nodetype] = None
    reader.cache_clear()


def register_pytree_with_keys(
    nodetype: type[T],
    flatten_with_keys: Callable[[T], tuple[Iterable[tuple[KeyEntry, Any]], Hashable]],
    unflatten_func: Callable[[Any, Iterable[Any]], T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Like `register_pytree_node`, for containers whose children have names: the keys appear in paths.

    Args:
      nodetype: the class.
      flatten_with_keys: ``flatten_with_keys(x)`` returns (pairs of key and child, aux), with keys such as `GetAttrKey`.
      unflatten_func: ``unflatten_func(aux, children)`` returns an instance.
      flatten_func: ``flatten_func(x)`` returns (children, aux), for flattening without paths. None:
        `flatten_with_keys` is used.

    Returns:
      None.

    Raises:
      ValueError: the class is registered already.

    >>> class Point:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> register_pytree_with_keys(
    ...     Point, lambda p: ([(GetAttrKey("x"), p.x)], None), lambda _, children: Point(*children)
    ... )
    >>> [keystr(path) for path, _ in tree_leaves_with_path([Point(1)])]
    ['[0].x']
    """

    def without_keys(x: T) -> tuple[Iterable[Any], Hashable]:
        pairs, aux = flatten_with_keys(x)
        return [child for _, child in pairs], aux

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: Typ) -> Typ:
    """Class decorator: makes the class a container, by its method ``tree_flatten()`` and its classmethod
    ``tree_unflatten(aux, children)``.

    Args:
      cls: the class. ``tree_flatten()`` returns (children, aux); `aux` must be hashable.

    Returns:
      `cls`.

    Raises:
      ValueError: the class is registered already.

    >>> @register_pytree_node_class
    ... class Single:
    ...     def __init__(self, x):
    ...         self.x = x
    ...
    ...     def tree_flatten(self):
    ...         return (self.x,), None
    ...
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> tree_map(lambda x: 2 * x, Single(3)).x
    6
    """
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys_class(cls: Typ) -> Typ:
    """Class decorator: makes the class a container, by its method ``tree_flatten_with_keys()`` and its classmethod
    ``tree_unflatten(aux, children)``.

    Args:
      cls: the class. ``tree_flatten_with_keys()`` returns (pairs of key and child, aux). ``tree_flatten()`` is optional
        and returns (children, aux).

    Returns:
      `cls`.

    Raises:
      ValueError: the class is registered already.

    >>> @register_pytree_with_keys_class
    ... class Named:
    ...     def __init__(self, x):
    ...         self.x = x
    ...
    ...     def tree_flatten_with_keys(self):
    ...         return ((GetAttrKey("x"), self.x),), None
    ...
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> keystr(tree_leaves_with_path(Named(3))[0][0])
    '.x'
    """
    flatten_func = (lambda x: x.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(
        cls,
        lambda x: x.tree_flatten_with_keys(),
        cls.tree_unflatten,  # type: ignore[attr-defined]
        flatten_func,
    )
    return cls


def register_dataclass(
    nodetype: Typ,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Typ:
    """Makes a dataclass a container.

    Args:
      nodetype: a dataclass; or any class whose constructor takes the fields by name, with both lists of fields.
      data_fields: names of the fields that are children. None: the fields that are not marked as static.
      meta_fields: names of the fields that are part of the structure; their values must be hashable. None: the fields
        marked by ``dataclasses.field(metadata=dict(static=True))``, as `phlox.tree.static` does.
      drop_fields: names of fields that are ignored.

    Returns:
      `nodetype`.

    Raises:
      ArgumentError: only one of the lists is given, or none and `nodetype` is no dataclass.
      OptionError: the lists lack a field of the dataclass, contain other names, or overlap.
      ValueError: the class is registered already.

    >>> import dataclasses
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weights: float
    ...     name: str = dataclasses.field(metadata=dict(static=True), default="dense")
    >>> tree_map(lambda x: 2 * x, Layer(1.5))
    Layer(weights=3.0, name='dense')
    """
    import dataclasses  # here, to keep `import phlox` fast

    if (data_fields is None) != (meta_fields is None):
        raise ArgumentError(
            "register_dataclass: data_fields and meta_fields must both be specified when either is specified. "
            f"Got {data_fields=} {meta_fields=}."
        )
    if dataclasses.is_dataclass(nodetype):
        fields = [field for field in dataclasses.fields(nodetype) if field.init and field.name not in drop_fields]
        names = [field.name for field in fields]
        if data_fields is None or meta_fields is None:
            meta_fields = [field.name for field in fields if field.metadata.get("static", False)]
            data_fields = [name for name in names if name not in meta_fields]
        listed_fields = {*data_fields, *meta_fields}
        if missing := sorted(set(names) - listed_fields):
            raise OptionError(
                f"register_dataclass: data_fields and meta_fields must include all dataclass fields of "
                f"{nodetype.__name__}. Missing fields: {{{', '.join(map(repr, missing))}}}"
            )
        if unknown := sorted(listed_fields - set(names)):
            raise OptionError(
                f"register_dataclass: data_fields and meta_fields must include all dataclass fields of "
                f"{nodetype.__name__} and no others. Unexpected fields: {{{', '.join(map(repr, unknown))}}}"
            )
    elif data_fields is None or meta_fields is None:
        raise ArgumentError(
            "register_dataclass: data_fields and meta_fields are required when nodetype is not a dataclass. "
            f"Got {nodetype=}.",
            instead="register_dataclass(cls, data_fields=[...], meta_fields=[...])",
        )
    data, meta = tuple(data_fields), tuple(meta_fields)
    if both := sorted({*data} & {*meta}):
        raise OptionError(
            "register_dataclass: data_fields and meta_fields must not overlap. Overlapping fields: "
            f"{{{', '.join(map(repr, both))}}}"
        )
    registry.register_dataclass_node(nodetype, list(data), list(meta))
    _registered[nodetype] = data, meta
    reader.cache_clear()
    return nodetype


def register_static(cls: Typ) -> Typ:
    """Class decorator: makes the class a container without children; the instance itself is part of the structure.

    Args:
      cls: the class, whose instances must be hashable and comparable.

    Returns:
      `cls`.

    Raises:
      ValueError: the class is registered already.

    >>> @register_static
    ... class Mode(str):
    ...     pass
    >>> tree_leaves([Mode("train"), 1])
    [1]
    """
    register_pytree_node(cls, lambda x: ((), x), lambda aux, _children: aux)
    return cls


@functools.lru_cache(4096)
def reader(typ: type) -> Callable[[Any], tuple[Hashable, Sequence[Any]]] | None:
    """A function that takes containers of class `typ` apart, faster than `flatten` does; None unless `typ` is a
    dataclass or a named tuple.

    It returns (key, children). The key represents the structure of the container without that of its children.
    """
    if fields := _registered.get(typ):
        data, meta = fields
        return lambda x: ((typ, *[getattr(x, name) for name in meta]), [getattr(x, name) for name in data])
    if issubclass(typ, tuple) and hasattr(typ, "_fields") and typ.__iter__ is tuple.__iter__ and typ not in _registered:
        return lambda x: ((typ, len(x)), x)
    return None


def is_tree_node(typ: type) -> bool:
    """True when instances of `typ` are containers.

    Args:
      typ: any class.

    Returns:
      A bool.

    >>> is_tree_node(list), is_tree_node(int)
    (True, False)
    """
    return registry.is_node(typ)


def _ordered_dict(x: OrderedDict[Any, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    return list(x.values()), tuple(x)


def _default_dict(x: defaultdict[Any, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    keys = tuple(sorted(x))
    return [x[key] for key in keys], (x.default_factory, keys)


register_pytree_node(
    OrderedDict,
    _ordered_dict,
    lambda keys, values: OrderedDict(zip(keys, values, strict=True)),
    lambda x: ([(DictKey(key), value) for key, value in x.items()], tuple(x)),
)
register_pytree_node(
    defaultdict,
    _default_dict,
    lambda aux, values: defaultdict(aux[0], zip(aux[1], values, strict=True)),
    lambda x: ([(DictKey(key), x[key]) for key in sorted(x)], (x.default_factory, tuple(sorted(x)))),
)


# --- prefixes -------------------------------------------------------------------------------------------


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


def spread(what: str, prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool], instead: str) -> list[Any]:
    """`broadcast_prefix` for a prefix that a user wrote. The error calls it `what` and advises `instead`."""
    try:
        return broadcast_prefix(prefix_tree, full_tree, is_leaf)
    except TreeError as error:
        raise tree_error(
            f"{what} specification must be a tree prefix of the corresponding value; got specification {prefix_tree!r} "
            f"for value tree {tree_structure(full_tree)}",
            error.differences,  # type: ignore[attr-defined]
            instead=instead,
        ) from None


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """A tree with the structure of `full_tree` and the leaves of `prefix_tree` repeated.

    Args:
      prefix_tree: a prefix of `full_tree`: a tree that has leaves in place of some subtrees of `full_tree`.
      full_tree: any tree.
      is_leaf: function of a node of either tree: True where it counts as a leaf. None: no container does.

    Returns:
      A tree.

    Raises:
      TreeError: `prefix_tree` is no prefix.

    >>> tree_broadcast((1, 2), ([0, 0], 0))
    ([1, 1], 2)
    """
    return tree_structure(full_tree, is_leaf).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def is_none(x: Any) -> bool:
    """`is_leaf` for trees in which None is a value, such as the axes of vmap."""
    return x is None


# --- how two trees differ -------------------------------------------------------------------------------


class Difference(NamedTuple):
    """One place where two trees differ: its path, what was expected there, and what was found."""

    path: KeyPath
    expected: str
    got: str


def differences(expected: PyTreeDef, got: PyTreeDef, *, prefix: bool = False, path: KeyPath = ()) -> list[Difference]:
    """All places where the structure `got` differs from `expected`, outermost first.

    With ``prefix=True`` a leaf of `expected` matches any subtree.
    """
    want, have = expected.node_data(), got.node_data()
    if want is None or have is None:
        same = want is have or (prefix and want is None)
        return [] if same else [Difference(path, describe(expected), describe(got))]
    if want[0] is not have[0] or (want[1] != have[1] and want[0] is not dict):
        return [Difference(path, *_describe_both(expected, got))]
    children, others = expected.children(), got.children()
    if want[0] is dict:
        return _dict_differences(want[1], children, have[1], others, prefix, path)
    if len(children) != len(others):
        return [Difference(path, describe(expected), describe(got))]
    mismatches: list[Difference] = []
    for key, child, other in zip(child_keys(expected), children, others, strict=True):
        mismatches += differences(child, other, prefix=prefix, path=(*path, key))
    return mismatches


def _dict_differences(
    keys: list[Any],
    children: list[PyTreeDef],
    other_keys: list[Any],
    others: list[PyTreeDef],
    prefix: bool,
    path: KeyPath,
) -> list[Difference]:
    mismatches: list[Difference] = []
    mine, yours = dict(zip(keys, children, strict=True)), dict(zip(other_keys, others, strict=True))
    for key in keys:
        if key in yours:
            mismatches += differences(mine[key], yours[key], prefix=prefix, path=(*path, DictKey(key)))
        else:
            mismatches.append(Difference((*path, DictKey(key)), describe(mine[key]), "no such key"))
    for key in other_keys:
        if key not in mine:
            mismatches.append(Difference((*path, DictKey(key)), "no such key", describe(yours[key])))
    return mismatches


def named_paths(treedef: PyTreeDef, tree: Any = None) -> list[KeyPath]:
    """The path to each leaf of a structure, for messages.

    Children of classes that were registered without keys are named by the attributes that hold them: ``.weights``
    instead of ``[<flat index 0>]``, which only JAX's own paths (`tree_flatten_with_path`) say. `tree` is a tree of this
    structure, if there is one: it helps with classes whose constructors convert their arguments.
    """
    if treedef.node_data() is None:
        return [()]
    below: Sequence[Any] = treedef.children()
    parts = [None] * len(below) if tree is None else [child for _, child in _one_level(tree)]
    rows = zip(child_keys(treedef, tree), below, parts, strict=True)
    return [(key, *path) for key, child, part in rows for path in named_paths(child, part)]


def _one_level(tree: Any) -> list[tuple[KeyEntry, Any]]:
    return list(registry.flatten_one_level_with_keys(tree)[0])


def child_keys(treedef: PyTreeDef, tree: Any = None) -> list[KeyEntry]:
    """The keys of the direct children of a node, for messages: see `named_paths`."""
    node_data = treedef.node_data()
    count = len(treedef.children())
    if node_data is None or count == 0:
        return []
    if node_data[0] is dict:
        return [DictKey(key) for key in node_data[1]]
    if node_data[0] in (list, tuple):
        return [SequenceKey(i) for i in range(count)]
    if hasattr(node_data[0], "_fields") and node_data[0] not in _registered:
        # Not asked of jaxlib: until 0.10 it gives every child the name of the first field.
        return [GetAttrKey(name) for name in node_data[0]._fields]
    try:
        # An instance whose children occur nowhere else: the attributes that hold them are unambiguous.
        one_level = PyTreeDef.from_node_data_and_children(registry, node_data, [tree_structure(0)] * count)
        keys = _attribute_keys(one_level.unflatten([object() for _ in range(count)]))
    except Exception:  # the user's class does not take any object as a child
        keys = [FlattenedIndexKey(i) for i in range(count)]
    return _attribute_keys(tree) if tree is not None and any(map(_is_number, keys)) else keys


def _attribute_keys(node: Any) -> list[KeyEntry]:
    """The keys of the direct children of `node`; attributes or items take the place of numbers."""
    pairs = _one_level(node)
    if not any(_is_number(key) for key, _ in pairs):
        return [key for key, _ in pairs]
    slots = [name for kind in type(node).__mro__ for name in _slots(kind) if hasattr(node, name)]
    attributes = {name: getattr(node, name) for name in [*getattr(node, "__dict__", ()), *slots]}
    holders: dict[int, list[KeyEntry]] = {}
    for key, value in _items(node):
        holders.setdefault(id(value), []).append(key)
    for name, value in attributes.items():
        holders.setdefault(id(value), []).append(GetAttrKey(name))
        for key, item in _items(value):
            holders.setdefault(id(item), []).append(GetAttrKey(f"{name}{key}"))
    candidates = [holders.get(id(child), []) for _, child in pairs]
    return [names[0] if len(names) == 1 else key for names, (key, _) in zip(candidates, pairs, strict=True)]


def _items(value: Any) -> list[tuple[KeyEntry, Any]]:
    if isinstance(value, dict):
        return [(DictKey(key), item) for key, item in value.items()]
    return [(SequenceKey(i), item) for i, item in enumerate(value)] if isinstance(value, list | tuple) else []


def _slots(kind: type) -> Sequence[str]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _is_number(key: KeyEntry) -> bool:
    return isinstance(key, FlattenedIndexKey)


def describe(treedef: PyTreeDef) -> str:
    """A structure in a few words: ``a leaf``, ``None``, ``a list of 3``, ``a dict with keys 'a', 'b'``, ``a Layer with
    .weights, .bias``."""
    data = treedef.node_data()
    if data is None:
        return "a leaf"
    kind, aux = data
    if kind is type(None):
        return "None"
    if kind is dict:
        return "a dict with keys " + ", ".join(map(repr, aux)) if aux else "an empty dict"
    keys = child_keys(treedef)
    article = "an" if kind.__name__[0].lower() in "aeiou" else "a"
    if not keys or kind in (list, tuple) or any(map(_is_number, keys)):
        return f"{article} {kind.__name__} of {len(keys)}"
    if all(isinstance(key, DictKey) for key in keys):
        return f"{article} {kind.__name__} with keys " + ", ".join(repr(key.key) for key in keys)
    shown = [keystr((key,)) for key in keys[:8]]
    return f"{article} {kind.__name__} with " + ", ".join([*shown, "…"] if len(keys) > 8 else shown)


def _describe_both(expected: PyTreeDef, got: PyTreeDef) -> tuple[str, str]:
    """Both structures in a few words, with their static data where the rest of the words is equal."""
    texts = describe(expected), describe(got)
    want, have = expected.node_data(), got.node_data()
    if texts[0] != texts[1] or want is None or have is None:
        return texts
    fields = _registered.get(want[0])
    static = _differing(want[1], have[1], fields[1] if fields else ())
    return f"{texts[0]} and {static[0]}", f"{texts[1]} and {static[1]}"


def _differing(want: Any, have: Any, names: Sequence[str]) -> tuple[str, str]:
    """The parts of the static data of two nodes that differ; `names` are those of a dataclass's fields."""
    texts: tuple[list[str], list[str]] = [], []
    if type(want) is type(have) is tuple and len(want) == len(have):
        for i, pair in enumerate(zip(want, have, strict=True)):
            if pair[0] != pair[1]:
                for text, value in zip(texts, pair, strict=True):
                    text.append(f".{names[i]}={value!r:.80}" if names else f"{value!r:.80}")
    if texts[0] and texts[0] != texts[1]:
        mine, yours = (", ".join(text) for text in texts)
    else:
        mine, yours = f"{want!r:.80}", f"{have!r:.80}"
    if mine == yours:
        yours += ", which is not equal to it"
    return f"static data {mine}", f"static data {yours}"


def _kind(expected: str, got: str) -> str:
    """The kind of difference between two descriptions of structures, for the message."""
    if "no such key" in (expected, got):
        return " (different keys)"
    if not expected.startswith(("a ", "an ", "None")):
        return ""
    if expected.split()[:2] != got.split()[:2]:
        return " (different types)"
    if " static data " in expected:
        return " (different static data)"
    return " (different lengths)" if " of " in expected else " (different keys)"


def tree_error(what: str, differences: list[Difference], instead: str = "") -> TreeError:
    """A `TreeError` that lists `differences`; its attributes describe the first difference.

    Args:
      what: the first line of the message.
      differences: those of two trees; the message lists the first five.
      instead: what to write instead.

    Returns:
      The error, to be raised. Its attribute `differences` has them.

    >>> error = tree_error("these differ", [Difference((DictKey("a"),), "a tuple", "a leaf")])
    >>> error.path, error.expected, error.got
    ((DictKey(key='a'),), 'a tuple', 'a leaf')
    """
    lines = [what, f"  Mismatch details ({len(differences)} found):"] if differences else [what]
    for path, expected, got in differences[:5]:
        lines.append(f"    at {keystr(path) or 'the top'}: expected {expected}, got {got}{_kind(expected, got)}")
    if len(differences) > 5:
        lines.append(f"    and {len(differences) - 5} more places")
    first = differences[0] if differences else Difference((), "", "")
    return TreeError("\n".join(lines), instead=instead, differences=differences, **first._asdict())


class _Word(str):
    """A text that is printed without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def typed_text(tree: PyTreeDef, types: Iterable[str]) -> str:
    """A structure with the types of its leaves, in one line: ``(f32[3], {'count': i32[]})``.

    Args:
      tree: the structure.
      types: a text for each leaf.

    Returns:
      The text, shortened to 200 characters.

    >>> typed_text(tree_structure((0, None, {"a": 0})), ["f32[3]", "i32[]"])
    "(f32[3], None, {'a': i32[]})"
    """
    try:
        text = repr(tree.unflatten(map(_Word, types)))
    except Exception:  # a class of the user that does not accept these leaves
        text = str(tree)
    return text if len(text) <= 200 else text[:200] + "…"


def check_same(expected: PyTreeDef, got: PyTreeDef, what: str, instead: str = "") -> None:
    """Raises a `TreeError` that starts with `what`, unless the two structures are equal."""
    if expected != got:
        raise tree_error(what, differences(expected, got), instead)


# --- structures as values -------------------------------------------------------------------------------


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
    return _pytree.treedef_tuple(registry, list(treedefs))
