"""``jax._src.tree_util._registry``: whether a class is a container, by ``in``."""

from __future__ import annotations

from typing import Any

from ..._base.pytree import is_tree_node


class _Containers:
    def __contains__(self, kind: Any) -> bool:
        # A named tuple is a container although its class is not registered; JAX's table does not have it.
        named = isinstance(kind, type) and issubclass(kind, tuple) and kind is not tuple
        return isinstance(kind, type) and not named and is_tree_node(kind)


_registry = _Containers()
