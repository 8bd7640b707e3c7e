"""`Partial`: a `functools.partial` that is a pytree of its bound arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .pytree import register_pytree_node_class


class _Opaque:
    """Wraps a `functools.partial`, and equals it, so that another `functools.partial` does not merge with it."""

    def __init__(self, whole: functools.partial[Any]):
        self.whole = whole
        self.func, self.args, self.keywords = whole.func, whole.args, whole.keywords

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.whole(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.whole == (other.whole if isinstance(other, _Opaque) else other)

    def __hash__(self) -> int:
        return hash(self.whole)

    def __repr__(self) -> str:
        return repr(self.whole)


@register_pytree_node_class
class Partial(functools.partial[Any]):
    """`functools.partial` as a pytree: bound arguments are children, the function is part of the treedef.

    So a function with bound arrays can be an argument of functions under `jit` and `vmap`.

    >>> phlox.tree.leaves(Partial(max, 3))
    [3]
    """

    def __new__(cls, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Partial:
        # functools.partial merges with an inner partial; but the arguments of the inner one belong to the treedef here.
        inner: Any = _Opaque(func) if isinstance(func, functools.partial) else func
        return super().__new__(cls, inner, *args, **kwargs)

    def tree_flatten(self) -> tuple[Any, Any]:
        return (self.args, self.keywords), self.func

    @classmethod
    def tree_unflatten(cls, func: Any, children: Any) -> Partial:
        args, keywords = children
        return cls(func, *args, **keywords)
