"""Keys of arrays: the type, and for arrays that were put somewhere, the place. Compiled programs are found by them."""

from __future__ import annotations

from .._base.interning import Interned
from .._ir.avals import ShapedArray
from .sharding import Sharding, default_sharding, interned


class Placed:
    """The key of an array that lies somewhere in particular: its type, its sharding, and whether that is meant.

    A committed array stays where it is and draws computations there; one that is not may be moved.
    """

    __slots__ = ("__weakref__", "aval", "committed", "sharding")

    def __init__(self, aval: ShapedArray, sharding: Sharding, committed: bool):
        self.aval = aval
        self.sharding = sharding
        self.committed = committed

    def __repr__(self) -> str:
        return f"{self.aval.short} on {self.sharding}"


Key = ShapedArray | Placed
_placed: Interned[Placed] = Interned()


def key_for(aval: ShapedArray, sharding: Sharding, committed: bool) -> Key:
    """The key of arrays of this type that lie there; equal places give the same object.

    Uncommitted arrays on the first device, which is nearly all of them, have their type as key.
    """
    sharding = interned(sharding)
    if not committed and sharding is default_sharding():
        return aval
    full = (aval, sharding, committed)
    found = _placed.get(full)
    if found is None:
        found = _placed.add(full, lambda: Placed(*full))
    return found


def aval_of(key: Key) -> ShapedArray:
    """The type of arrays with this key."""
    return key if type(key) is ShapedArray else key.aval  # type: ignore[union-attr]


def sharding_of(key: Key) -> Sharding:
    """Where arrays with this key lie."""
    return default_sharding() if type(key) is ShapedArray else key.sharding


def is_committed(key: Key) -> bool:
    """Whether arrays with this key must stay where they are."""
    return type(key) is not ShapedArray and key.committed  # type: ignore[union-attr]
