"""Interning: for each key there is one object while it is alive, so that caches can hash and compare it by identity."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, MutableMapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_Cache = TypeVar("_Cache", bound=MutableMapping[Any, Any])
#: how many objects a table keeps alive by itself
LIMIT = 8192
_tables: list[Interned[Any] | MutableMapping[Any, Any]] = []


class Interned(Generic[T]):
    """A table of interned objects of one kind.

    Weak references to all living objects keep them unique: a strong table could not be emptied without making a second
    object for a key in use. Recent objects are also kept alive, so that they need not be made again. `get` finds these
    without a lock, because it is the method of a dict.
    """

    def __init__(self) -> None:
        self._recent: dict[Hashable, T] = {}
        self._alive: weakref.WeakValueDictionary[Hashable, T] = weakref.WeakValueDictionary()
        # Reentrant: a garbage collection inside `add` may run finalizers, which may call `add` again.
        self._adding = threading.RLock()
        self.get = self._recent.get
        _tables.append(self)

    def add(self, key: Hashable, make: Callable[[], T]) -> T:
        """The object with this key, made by `make` if there is none. To be called when `get` returns None."""
        with self._adding:
            value = self._alive.get(key)
            if value is None:
                new = make()
                # `setdefault`: the finalizer of a collection inside of `make` may have added the same key.
                value = self._alive.setdefault(key, new)
            # Objects that are in use stay unique: `_alive` still has them.
            clear_if_full(self._recent, LIMIT)[key] = value
        return value

    def __len__(self) -> int:
        return len(self._alive)

    def clear(self) -> None:
        """Drops the strong references: objects without other references are freed."""
        with self._adding:
            self._recent.clear()


def clear_if_full(cache: _Cache, limit: int = 4096) -> _Cache:
    """`cache`, which is first emptied if it has `limit` entries. To know what was used last would cost each hit."""
    if len(cache) >= limit:
        cache.clear()
    return cache


def forgettable(cache: _Cache) -> _Cache:
    """Registers a module's cache of interned objects or of traces, so that `forget` empties it; returns it."""
    _tables.append(cache)
    return cache


def forget() -> None:
    """Clears all tables and registered caches."""
    for table in _tables:
        table.clear()
