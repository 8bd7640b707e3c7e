"""The option `host`: entries of a batch that stay on the host as NumPy arrays, since no device knows text or bytes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from phlox.errors import ArgumentError

#: names of dict entries and named tuples' fields, and positions in tuples and lists
Names: TypeAlias = Collection[str | int]


@dataclass(frozen=True, slots=True, eq=False)
class OnHost:
    """What stands under such a name: a leaf of trees, whatever it holds."""

    value: Any

    def array(self, name: str) -> np.ndarray:
        """The value as an array whose first axis counts the examples; strings of different length are one dtype."""
        if isinstance(self.value, np.ndarray):
            return self.value
        try:
            return np.asarray(self.value)
        except ValueError:  # lists of different length: one object for each example
            array = np.empty(len(self.value), object)
            array[:] = self.value
            return array
        except RuntimeError as error:  # a tensor that needs its gradient, for example
            raise ArgumentError(
                f"{name}: {error}", instead="an array or a list of strings", path=name, value=self.value
            ) from error


def check_names(host: Names) -> frozenset[str | int]:
    """The names as a set. Raises `ArgumentError` for a single string and for other things than names."""
    if isinstance(host, str) or not isinstance(host, Collection) or not all(isinstance(n, str | int) for n in host):
        raise ArgumentError(f"host={host!r} is no list of names", instead='host=["text"]', argument="host", value=host)
    return frozenset(host)


def keep(tree: Any, host: frozenset[str | int]) -> Any:
    """`tree` with `OnHost` around the entries that are named in `host`, at any depth of dicts, tuples and lists."""
    if not host:
        return tree
    if isinstance(tree, Mapping):
        entries = {name: OnHost(value) if name in host else keep(value, host) for name, value in tree.items()}
        return entries if type(tree) is dict else type(tree)(entries)  # type: ignore[call-arg]
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        pairs = zip(tree._fields, tree, strict=True)
        fields: list[Any] = [OnHost(value) if name in host else keep(value, host) for name, value in pairs]
        return type(tree)(*fields)
    if isinstance(tree, tuple | list):
        items: list[Any] = [OnHost(value) if i in host else keep(value, host) for i, value in enumerate(tree)]
        return items if isinstance(tree, list) else tuple(items)
    return tree
