"""How one operation, or one Jaxpr, uses PRNG keys: what the rule `keys` of a primitive returns.

The analysis that reads these rules is `_trace.key_reuse`, which is imported when a program has keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._base.errors import KeyReuseError

#: what errors advise
INSTEAD = "key, subkey = phlox.random.split(key), of which each use takes another; phlox.random.clone for the same bits"

#: which keys of an array: True for all, or an array of bools of its shape
Mask = Any


#: the dtypes of keys that were made
_key_types: list[Any] = []


def add_key_type(dtype: Any) -> None:
    """Notes that there are keys of this dtype; until there are any, programs are not read for keys."""
    _key_types.append(dtype)


def has_key_types() -> bool:
    """Whether there may be keys."""
    return bool(_key_types)


class KeyUses(NamedTuple):
    """What happens to the keys among the operands and results, which are given by their numbers.

    Attributes:
      consumed: the operands that are used up, each with the mask of the keys in question.
      fresh: the results that are new keys, or that take the place of consumed ones.
      passed: pairs (operand, result) of the results that are the keys of an operand, used as often as those are.
      parts: (operand, result, positions) of the results that are some keys of an operand; the positions are those in
        the flattened operand.
      picked: pairs (operand, result) of the results that are keys of an operand at positions that are not known.

    Other results that are keys count as used.
    """

    consumed: tuple[tuple[int, Mask], ...] = ()
    fresh: tuple[int, ...] = ()
    passed: tuple[tuple[int, int], ...] = ()
    parts: tuple[tuple[int, int, np.ndarray], ...] = ()
    picked: tuple[tuple[int, int], ...] = ()

    @property
    def unused(self) -> set[int]:
        """The results that are keys nothing was drawn from, unless something was drawn from the operand before."""
        return {*self.fresh, *(o for _, o, _ in self.parts), *(o for _, o in self.picked)}


def passes(eqn: Any, uses_of: Any) -> KeyUses:
    """The rule of operations that move, shape or repeat the keys of their first operand."""
    return KeyUses(passed=((0, 0),))


def passes_each(eqn: Any, uses_of: Any) -> KeyUses:
    """The rule of operations whose results are their operands."""
    return KeyUses(passed=tuple((i, i) for i in range(len(eqn.outvars))))


def picks(eqn: Any, uses_of: Any) -> KeyUses:
    """The rule of operations that read keys of their first operand at computed positions."""
    return KeyUses(picked=((0, 0),))


def reads(eqn: Any, uses_of: Any) -> KeyUses:
    """The rule of operations that look at keys without drawing from them."""
    return KeyUses()


def makes(eqn: Any, uses_of: Any) -> KeyUses:
    """The rule of operations that make keys and use none up."""
    return KeyUses(fresh=(0,))


def replaces(eqn: Any, uses_of: Any) -> KeyUses:
    """The rule of operations that use up the keys of all operands and return new keys."""
    return KeyUses(tuple((i, True) for i in range(len(eqn.invars))), fresh=(0,))


def joined(one: Mask, other: Mask, both: Callable[[Any, Any], Any] = np.logical_or) -> Mask:
    """The keys in either mask (or in both), which may be bools; of masks of different shapes all keys, if any."""
    # Masks of one array in two shapes, as before and after a reshape.
    if np.shape(one) and np.shape(other) and np.shape(one) != np.shape(other):
        if np.size(one) != np.size(other):
            return both(bool(np.any(one)), bool(np.any(other)))
        other = np.reshape(other, np.shape(one))
    return both(one, other)


def joined_masks(consumed: tuple[tuple[int, Mask], ...]) -> tuple[tuple[int, Mask], ...]:
    """The masks of each operand joined, for operations that run one of several Jaxprs."""
    masks: dict[int, Mask] = {}
    for i, mask in consumed:
        masks[i] = joined(masks.get(i, False), mask)
    return tuple(masks.items())


def repeated(what: str, eqn: Any, number: int) -> KeyReuseError:
    """The error for a loop whose turns all consume the same key, its operand of this number."""
    return KeyReuseError(
        f"{what} leads to key reuse when repeatedly executed: it consumes {eqn.invars[number].aval.short}, argument "
        f"{number} of {eqn.primitive.name}, and puts no new key in its place",
        where=eqn.source_info,
        instead="a key in the carry that each turn splits; or phlox.random.fold_in(key, i); or keys for all turns",
    )
