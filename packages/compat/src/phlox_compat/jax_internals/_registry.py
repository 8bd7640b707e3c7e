"""``jax._src.tree_util._registry``: whether a class is a container, by ``in``, and how it is taken apart and built."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from phlox.tree_util import PyTreeDef, is_tree_node, tree_flatten


class _Containers:
    def __contains__(self, kind: Any) -> bool:
        # A named tuple is a container although its class is not registered; JAX's table does not have it.
        named = isinstance(kind, type) and issubclass(kind, tuple) and kind is not tuple
        return isinstance(kind, type) and not named and is_tree_node(kind)

    def __getitem__(self, kind: Any) -> _Entry:
        if kind not in self:
            raise KeyError(kind)
        return _Entry(_parts, _built)


class _Entry(NamedTuple):
    to_iter: Callable[[Any], tuple[list[Any], PyTreeDef]]
    from_iter: Callable[[PyTreeDef, Iterable[Any]], Any]


def _parts(tree: Any) -> tuple[list[Any], PyTreeDef]:
    """The children of a container, and what it is besides them."""
    return tree_flatten(tree, lambda x: x is not tree)


def _built(shape: PyTreeDef, children: Iterable[Any]) -> Any:
    return shape.unflatten(children)


_registry = _Containers()
