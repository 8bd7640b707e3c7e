"""The option `progress` of loops: a line on the terminal that says how far a loop of a compiled program is.

The program reports at a hundred turns of a loop of known length, and at each turn of others. Printing is limited in
time, so that a fast loop does not wait for the terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .._api.jit.arguments import fun_name
from .._base.errors import ArgumentError
from .._ir import dtypes
from .._operands.promotion import to_dtype
from .._ops.elementwise.arithmetic import add, rem, sub
from .._ops.elementwise.logic import eq, or_
from .._trace.trace import typeof

#: seconds between two lines, on a terminal (where they replace each other) and elsewhere
_ON_TERMINAL, _ELSEWHERE = 0.1, 1.0
#: reports of a loop of known length
_REPORTS = 100


class Meter:
    """Prints how far the loop `name` is; `total` is the number of its turns, or None."""

    def __init__(self, name: str, total: int | None):
        self.name = name
        self.total = total
        self.turns = 0
        self.start = self.printed = time.monotonic()

    def __call__(self, index: Any) -> None:
        """Called with the index of the turn that begins. Rows of a batch report each by itself: the furthest counts."""
        turns, now = int(index) + 1, time.monotonic()
        if turns < self.turns and turns == 1:  # another run of the loop
            self.turns, self.start = 0, now
        if turns <= self.turns:
            return
        if self.turns == 0:
            self.start = now
        self.turns = turns
        on_terminal = sys.stderr.isatty()
        is_last = turns == self.total
        if is_last or now - self.printed >= (_ON_TERMINAL if on_terminal else _ELSEWHERE):
            self.printed = now
            end = "\n" if is_last or self.total is None or not on_terminal else ""
            sys.stderr.write(("\r" if on_terminal else "") + self.text(now - self.start) + end)
            sys.stderr.flush()

    def text(self, seconds: float) -> str:
        """The line: ``training: 45 % (450 of 1,000 turns), 3.2 s, 3.9 s left``."""
        if self.total is None:
            return f"{self.name}: {self.turns:,} turns, {seconds:.1f} s"
        left = seconds / self.turns * (self.total - self.turns)
        share = 100 * self.turns // self.total
        return f"{self.name}: {share} % ({self.turns:,} of {self.total:,} turns), {seconds:.1f} s, {left:.1f} s left"


def reporter(function: str, name: str | None, total: int | None) -> Callable[..., None]:
    """A function ``report(index, first=0)`` that reports a turn from the running program: `index` is a traced integer
    that is `first` in the first turn. Without a name it does nothing."""
    if name is None:
        return lambda index, first=0: None
    from .._api.debug.debug import callback  # few loops need them
    from ._branches import cond

    if not isinstance(name, str):
        raise ArgumentError(
            f"{function}: progress is the name of the loop, got {name!r}",
            instead='progress="training"',
            argument="progress",
            value=name,
        )
    meter = Meter(name, total)
    # A callback costs more than a turn of a small loop.
    every = 1 if total is None else max(1, total // _REPORTS)

    def report(index: Any, first: Any = 0) -> None:
        index = to_dtype(sub(index, to_dtype(first, typeof(index).dtype)), dtypes.int32)
        if every == 1:
            callback(meter, index)
            return
        turns = add(index, np.int32(1))
        is_due = or_(eq(rem(turns, np.int32(every)), np.int32(0)), eq(turns, np.int32(total or 0)))
        cond(is_due, lambda i: callback(meter, i), lambda i: None, index)

    return report


def reporting_body(
    function: str, body_fun: Callable[..., Any], name: str | None, total: int | None, first: Any
) -> Callable[..., Any]:
    """The body ``body_fun(index, value)`` of a loop that starts at `first`, with a report of each turn if it has a
    name."""
    if name is None:
        return body_fun
    report = reporter(function, name, total)

    def body(index: Any, value: Any) -> Any:
        report(index, first)
        return body_fun(index, value)

    body.__name__ = fun_name(body_fun)
    return body
