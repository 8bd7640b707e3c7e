"""`Partial`: a function with arrays bound to it, as a pytree of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .pytree import register_pytree_node_class


class _Opaque:
    """A `functools.partial` that another one does not merge with; equal to the one it stands for."""

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
    """`functools.partial` whose bound arguments are children of a pytree; the function is structure.

    Lets a function with arrays bound to it pass through `jit` and `vmap` as an argument.

    >>> phlox.tree.leaves(Partial(max, 3))
    [3]
    """

    def __new__(cls, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Partial:
        # functools.partial would merge with an inner partial, whose bound arguments are structure here.
        inner: Any = _Opaque(func) if isinstance(func, functools.partial) else func
        return super().__new__(cls, inner, *args, **kwargs)

    def tree_flatten(self) -> tuple[Any, Any]:
        return (self.args, self.keywords), self.func

    @classmethod
    def tree_unflatten(cls, func: Any, children: Any) -> Partial:
        args, keywords = children
        return cls(func, *args, **keywords)
