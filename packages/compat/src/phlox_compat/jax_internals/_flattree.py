"""``jax._src.flattree``: values in nested groups, by which JAX 0.12 describes the operands of scan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any


class FlatTree:
    """A list of values, and the groups that they form.

    Attributes:
      vals: the values.
      groups: the groups, each a `FlatTree`; empty if the values are not grouped.
    """

    def __init__(self, vals: Iterable[Any], groups: Sequence[FlatTree] = ()):
        self.vals = list(vals)
        self.groups = tuple(groups)

    def __len__(self) -> int:
        return len(self.vals)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.vals)

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self.groups or self.vals))})"

    def unpack(self) -> tuple[FlatTree, ...]:
        """The groups."""
        return self.groups

    def update(self, new_vals: Iterable[Any]) -> FlatTree:
        """The same groups of other values."""
        vals = list(new_vals)
        if len(vals) != len(self.vals):
            raise ValueError(f"{len(vals)} values for the groups of {len(self.vals)}")
        rest = iter(vals)
        return FlatTree(vals, [group.update([next(rest) for _ in group]) for group in self.groups])

    def map(self, f: Callable[[Any], Any]) -> FlatTree:
        """The same groups of the results of `f`."""
        return self.update(map(f, self.vals))


def pack(groups: Iterable[FlatTree]) -> FlatTree:
    """A tree with these groups."""
    groups = tuple(groups)
    return FlatTree([x for group in groups for x in group], groups)


def nones(count: int) -> FlatTree:
    """A group of so many values None."""
    return FlatTree([None] * count)
