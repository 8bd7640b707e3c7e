"""`RuleTable`, a mapping from primitives to rules that is a view of one attribute of all primitives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from phlox.extend import Primitive

from .._core import all_primitives


class RuleTable(MutableMapping[Primitive, Callable[..., Any]]):
    """A view of the attribute `slot`. `adapt` converts a rule from JAX's form to phlox's, `restore` converts back."""

    def __init__(
        self,
        slot: str,
        adapt: Callable[[Any], Any] = lambda rule: rule,
        restore: Callable[[Any], Any] = lambda rule: rule,
    ):
        self._slot = slot
        self._adapt = adapt
        self._restore = restore

    def __setitem__(self, primitive: Primitive, rule: Callable[..., Any]) -> None:
        setattr(primitive, self._slot, self._adapt(rule))

    def __getitem__(self, primitive: Primitive) -> Callable[..., Any]:
        rule = getattr(primitive, self._slot)
        if rule is None:
            raise KeyError(primitive)
        return self._restore(rule)

    def __delitem__(self, primitive: Primitive) -> None:
        setattr(primitive, self._slot, None)

    def __iter__(self) -> Iterator[Primitive]:
        return (p for p in all_primitives().values() if getattr(p, self._slot) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
