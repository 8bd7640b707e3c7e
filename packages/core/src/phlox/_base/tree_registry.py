"""The registry of pytree containers, and the keys of their children.

phlox has a registry of its own: classes that are registered with JAX in the same process are leaves for phlox, and the
reverse.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from .docstrings import docs_from
from .errors import ArgumentError, OptionError
from .native import native

_pytree = native.pytree
PyTreeDef: TypeAlias = native.PyTreeDef
DictKey = _pytree.DictKey
GetAttrKey = _pytree.GetAttrKey
SequenceKey = _pytree.SequenceKey
FlattenedIndexKey = _pytree.FlattenedIndexKey

KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]
T = TypeVar("T")
Typ = TypeVar("Typ", bound=type)

# A registry of phlox's own: jax registers its classes with jaxlib's default one, and a class that both know, such as
# OrderedDict, would be registered twice, which raises.
# None is a node without leaves, as in JAX.
registry = _pytree.PyTreeRegistry(
    enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=True
)
# Treedefs are pickled with their registry, which is found by these names.
registry.__module__, registry.__name__ = __name__, "registry"
#: flatten(tree, is_leaf=None) -> (leaves, treedef): the fast path calls this C++ method directly.
flatten = registry.flatten
#: registered class -> for dataclasses (names of data fields, names of meta fields), for other classes None
registered: dict[type, tuple[tuple[str, ...], tuple[str, ...]] | None] = {}


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A path as text: ``['a'][0].x``, or ``a/0/x`` with ``simple=True, separator='/'``.

    Args:
      keys: a path: a tuple of keys, as `tree_flatten_with_path` returns it.
      simple: write only the keys, without brackets, quotes and dots.
      separator: text between keys.

    Returns:
      A string; empty for the root.

    >>> keystr(phlox.tree_util.tree_leaves_with_path({"a": [5]})[0][0], simple=True, separator="/")
    'a/0'
    """
    if not simple:
        return separator.join(map(str, keys))
    return separator.join(_simple_key(key) for key in keys)


def _simple_key(key: KeyEntry) -> str:
    # Keys of JAX have one of these attributes each.
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


# --- registration -------------------------------------------------------------------------------------


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

    Raises:
      ValueError: the class is registered already.

    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> register_pytree_node(Pair, lambda pair: ((pair.x, pair.y), None), lambda _, children: Pair(*children))
    >>> phlox.tree_util.tree_leaves({"a": Pair(1, 2), "b": 3})
    [1, 2, 3]
    """
    registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)
    registered[nodetype] = None
    reader.cache_clear()


@docs_from(register_pytree_node)
def register_pytree_with_keys(
    nodetype: type[T],
    flatten_with_keys: Callable[[T], tuple[Iterable[tuple[KeyEntry, Any]], Hashable]],
    unflatten_func: Callable[[Any, Iterable[Any]], T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Like `register_pytree_node`, for containers whose children have names: the keys appear in paths.

    Args:
      flatten_with_keys: ``flatten_with_keys(x)`` returns (pairs of key and child, aux), with keys such as `GetAttrKey`.
      unflatten_func: ``unflatten_func(aux, children)`` returns an instance.
      flatten_func: ``flatten_func(x)`` returns (children, aux), for flattening without paths. None:
        `flatten_with_keys` is used.

    >>> class Point:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> register_pytree_with_keys(
    ...     Point, lambda p: ([(GetAttrKey("x"), p.x)], None), lambda _, children: Point(*children)
    ... )
    >>> [keystr(path) for path, _ in phlox.tree_util.tree_leaves_with_path([Point(1)])]
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
    >>> phlox.tree_util.tree_map(lambda x: 2 * x, Single(3)).x
    6
    """
    # The method is looked up at each call, so that subclasses and later changes of the class count.
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


@docs_from(register_pytree_node_class)
def register_pytree_with_keys_class(cls: Typ) -> Typ:
    """Class decorator: makes the class a container, by its method ``tree_flatten_with_keys()`` and its classmethod
    ``tree_unflatten(aux, children)``.

    Args:
      cls: the class. ``tree_flatten_with_keys()`` returns (pairs of key and child, aux). ``tree_flatten()`` is optional
        and returns (children, aux).

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
    >>> keystr(phlox.tree_util.tree_leaves_with_path(Named(3))[0][0])
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
    >>> phlox.tree_util.tree_map(lambda x: 2 * x, Layer(1.5))
    Layer(weights=3.0, name='dense')
    """
    import dataclasses  # here, to keep `import phlox` fast

    if (data_fields is None) != (meta_fields is None):
        raise ArgumentError(
            "register_dataclass: data_fields and meta_fields must both be specified when either is specified. "
            f"Got {data_fields=} {meta_fields=}."
        )
    if dataclasses.is_dataclass(nodetype):
        fields = [field for field in dataclasses.fields(nodetype) if field.name not in drop_fields]
        # Fields with ``init=False`` are computed by the constructor, and cannot be passed to it.
        names = [field.name for field in fields if field.init]
        if data_fields is None or meta_fields is None:
            meta_fields = [field.name for field in fields if field.metadata.get("static", False)]
            data_fields = [field.name for field in fields if field.name not in meta_fields]
        listed_fields = {*data_fields, *meta_fields}
        if missing := sorted(set(names) - listed_fields):
            raise OptionError(
                f"register_dataclass: data_fields and meta_fields must include all dataclass fields of "
                f"{nodetype.__name__}. Missing fields: {{{', '.join(map(repr, missing))}}}"
            )
        if unknown := sorted(listed_fields - set(names)):
            raise OptionError(
                f"register_dataclass: data_fields and meta_fields must include all dataclass fields with "
                f"``init=True`` of {nodetype.__name__} and no others. Unexpected fields: "
                f"{{{', '.join(map(repr, unknown))}}}",
                instead=f"drop_fields={unknown}, if the constructor computes them",
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
    registered[nodetype] = data, meta
    # `reader` may have answered for this class before it was registered.
    reader.cache_clear()
    return nodetype


@docs_from(register_pytree_node_class)
def register_static(cls: Typ) -> Typ:
    """Class decorator: makes the class a container without children; the instance itself is part of the structure.

    Args:
      cls: the class, whose instances must be hashable and comparable.

    >>> @register_static
    ... class Mode(str):
    ...     pass
    >>> phlox.tree_util.tree_leaves([Mode("train"), 1])
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
    if fields := registered.get(typ):
        data, meta = fields
        return lambda x: ((typ, *[getattr(x, name) for name in meta]), [getattr(x, name) for name in data])
    # A named tuple with an `__iter__` of its own would be read in another order than jaxlib reads it.
    if issubclass(typ, tuple) and hasattr(typ, "_fields") and typ.__iter__ is tuple.__iter__ and typ not in registered:
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
    # The order of insertion is part of the structure, unlike that of dicts, which are sorted.
    return list(x.values()), tuple(x)


def _default_dict(x: defaultdict[Any, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    # Sorted like a dict, whose leaves it has in the same order.
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
