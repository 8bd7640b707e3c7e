"""Counts the calls of a compiled program, and sends those at which checks do work to the general path."""

from __future__ import annotations

import sys


class CallCounter:
    """The number of calls of a program.

    The fast path takes one item of the iterator `calls_until_check` for each call: this counts it, and costs no more
    than adding 1 to an attribute. When the iterator is used up, the call takes the general path, which makes the next
    one. So checks that do work at calls 2, 3, 4, 8, 16, 32, … cost the other calls nothing.

    Attributes:
      calls_until_check: an iterator with an item for each call until checks are next due.
    """

    __slots__ = ("_before", "_length", "calls_until_check")

    def __init__(self) -> None:
        self._before = 0
        # Until checks are switched on, the iterator never ends.
        self._begin(sys.maxsize)

    def _begin(self, length: int) -> None:
        self._length = length
        self.calls_until_check = iter(range(length))

    @property
    def calls(self) -> int:
        """How often the program was called."""
        # The iterator's own count of what is left is the only record of the calls; it is kept in C.
        return self._before + self._length - self.calls_until_check.__length_hint__()  # type: ignore[attr-defined]

    def check_soon(self) -> None:
        """Makes checks due at calls 2, 3, 4, 8, 16, … . Called before the first call."""
        self._begin(1)

    def is_due(self) -> bool:
        """Whether checks do work at the next call."""
        return self.calls_until_check.__length_hint__() == 0  # type: ignore[attr-defined]

    def renew(self) -> None:
        """Makes the iterator for the calls after the checks."""
        self._before = self.calls
        self._begin(next_sample(self._before + 1) - self._before - 1)

    def count(self) -> None:
        """Counts a call on the general path."""
        # More than one turn if other threads used up the iterator that was just made.
        while next(self.calls_until_check, None) is None:
            self.renew()


def next_sample(call: int) -> int:
    """The next call after this one at which checks do work: 2, 3, 4, 8, 16, 32, …"""
    # Faults that show at every call are seen within four; later ones at powers of two cost a vanishing share of the
    # time.
    return call + 1 if call < 4 else 1 << call.bit_length()
