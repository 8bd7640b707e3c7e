"""Tables of interned objects: for each key one object, as long as anybody has it, so that caches key on identity."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
#: how many objects a table keeps that nobody else has
LIMIT = 8192
_tables: list[Interned[Any] | dict[Any, Any]] = []


class Interned(Generic[T]):
    """The objects of one kind by their keys.

    Those in use are known by weak references, and so stay unique whatever is forgotten. The last ones are also kept,
    which spares making them again, and are found by `get` without a lock: that is a method of a dict.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, T] = {}
        self._alive: weakref.WeakValueDictionary[Hashable, T] = weakref.WeakValueDictionary()
        self._adding = threading.RLock()  # the collector may run in the middle, and code of others in it
        self.get = self._kept.get
        _tables.append(self)

    def add(self, key: Hashable, make: Callable[[], T]) -> T:
        """The object with this key, made where there is none: for what `get` does not find."""
        with self._adding:
            found = self._alive.get(key)
            if found is None:
                made = make()
                found = self._alive.setdefault(key, made)
            if len(self._kept) >= LIMIT:
                self._kept.clear()
            self._kept[key] = found
        return found

    def __len__(self) -> int:
        return len(self._alive)

    def clear(self) -> None:
        """Lets go of objects that nobody else has."""
        with self._adding:
            self._kept.clear()


def forgettable(cache: dict[Any, Any]) -> dict[Any, Any]:
    """A cache of a module that is emptied with the tables: its keys hold on to interned objects."""
    _tables.append(cache)
    return cache


def forget() -> None:
    """Empties all tables, and caches that hold what is in them."""
    for table in _tables:
        table.clear()
