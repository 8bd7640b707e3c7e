"""Stale values: what a trace read from outside of the function, as a number or an array, and what is another now.

A compiled program goes on with the values of its trace. The values are compared at calls 2, 3, 4, 8, 16, 32, … . If one
differs, the function is traced again: only if that gives another program was the value part of it. A value that has
changed twice without a part in the program is compared no more, as an epoch that is only printed.
"""

from __future__ import annotations

import functools
import re
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from types import FunctionType, MethodType, NoneType
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..._base.checks import report, retracing
from ..._base.scoped import scoped
from ..._base.source import is_users
from ..._ir.dtypes import is_extended
from ..._ir.jaxpr import ClosedJaxpr
from ..._xla.array import ArrayImpl
from ..jit.counting import next_sample
from .reads import MISSING, Path, Read, Reader, walk

#: fingerprints are computed of NumPy arrays of at most so many bytes
_SMALL = 1 << 18
#: leaves of one container that are compared
_LEAVES = 256
#: traces anew for changes of one value that were no part of the program, after which the value is compared no more
_WITHOUT_PART = 2
_IN_PLACE = "was changed in place"
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Trace(Protocol):
    """What was traced: a jitted function, or the body of a loop."""

    @property
    def closed(self) -> ClosedJaxpr:
        """The program."""

    @property
    def consts(self) -> Sequence[Any]:
        """The arrays that it closes over."""


class Value(NamedTuple):
    """A value at the time of a trace.

    Attributes:
      kind: its class.
      plain: a number or string itself; the fingerprint of a NumPy array.
      array: a weak reference to an array, or to a function.
      parts: (key, value) of the parts of a list, tuple or dict.
    """

    kind: type
    plain: Any = None
    array: weakref.ref[Any] | None = None
    parts: tuple[tuple[Any, Value], ...] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is a number or a string, which cannot change in place."""
        return self.array is None and self.parts is None


# `left` is a list with the number of leaves that may still be compared, which inner containers share.
def value_of(x: Any, left: list[int] | None = None) -> Value | None:
    """`x` in comparable form; None if it is no number, no array, no function, and no container of them."""
    kind = type(x)
    # A bound method is made anew at each access; its function stays.
    if kind is MethodType:
        return value_of(x.__func__)
    if kind is FunctionType or kind is functools.partial:
        # Weak references: the watch must not keep values of the user alive.
        return Value(kind, None, weakref.ref(x))
    if kind in _PLAIN or isinstance(x, np.generic):
        return Value(kind, x)
    if kind is np.ndarray:
        return Value(kind, _fingerprint(x), weakref.ref(x))
    if isinstance(x, ArrayImpl):
        # Arrays of phlox are immutable, so identity is all there is to compare.
        return Value(kind, None, weakref.ref(x))
    if kind not in (list, tuple, dict):
        return None
    left = left or [_LEAVES]
    parts = []
    # Copied, as other threads may change the container; not all of it, which may be a data set.
    items = x.items() if kind is dict else enumerate(x)
    for key, item in list(islice(items, max(left[0], 0))):
        left[0] -= 1
        part = value_of(item, left) if left[0] > 0 else None
        if part is not None:
            parts.append((key, part))
    return Value(kind, len(x), None, tuple(parts)) if parts else None


def _fingerprint(x: np.ndarray) -> Any:
    # Large arrays take too long to read at calls; the bytes of object arrays are addresses.
    if x.nbytes > _SMALL or x.dtype.hasobject:
        return x.shape, x.dtype
    return x.shape, x.dtype, zlib.crc32(x.tobytes())


def changes(before: Value, now: Any) -> Iterator[tuple[str, str]]:
    """(path, description) of the parts of `now` that are not what they were."""
    if isinstance(now, MethodType):
        now = now.__func__
    kind: Any = type(now)
    if kind is not before.kind:
        yield "", f"was {_old_text(before)} and is {_text(now)} now"
    elif before.array is not None:
        # A function or array that has died is another one now, too.
        if before.array() is not now:
            yield "", f"is another {'function' if callable(now) else 'array'} now ({_text(now)})"
        elif before.plain is not None and _fingerprint(np.asarray(now)) != before.plain:
            yield "", _IN_PLACE
    elif before.parts is None:
        # nan is not equal to itself.
        same = before.plain == now or (before.plain != before.plain and now != now)
        if not same:
            yield "", f"was {before.plain!r} and is {now!r} now"
    else:
        if len(now) != before.plain:
            yield "", f"had {before.plain} items and has {len(now)} now"
        for key, part in before.parts:
            try:
                item = now[key]
            except LookupError:
                continue
            for path, text in changes(part, item):
                yield f"[{key!r}]{path}", text


def _old_text(value: Value) -> str:
    return repr(value.plain) if value.is_plain else f"a {value.kind.__name__}"


def _text(x: Any) -> str:
    if isinstance(x, ArrayImpl):
        is_number = x.aval.size == 1 and not is_extended(x.dtype) and not x.is_deleted()
        return f"{x.aval.short}, {np.asarray(x).item()!r}" if is_number else x.aval.short
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{list(x.shape)}"
    if isinstance(x, FunctionType):
        is_own = is_users(x.__code__.co_filename)
        return f"{x.__qualname__} of line {x.__code__.co_firstlineno}" if is_own else x.__qualname__
    return repr(x) if isinstance(x, _PLAIN) else f"a {type(x).__name__}"


class Watch:
    """The values from outside that one trace of a function read.

    Attributes:
      traced: the trace.
      statics: the static arguments by position or name.
      values: the value of each path.
      without_part: by path, how often the value has changed without a part in the program.
      checked_at: how many times `is_due` was called, and the number at which it is next true.
    """

    __slots__ = ("checked_at", "statics", "traced", "values", "without_part")

    def __init__(self, reader: Reader, fun: Callable[..., Any], traced: Trace):
        self.traced = traced
        self.statics = reader.statics
        # The first use is the trace itself.
        self.checked_at = 1, 2
        self.values: dict[Any, tuple[Read, Value]] = {}
        self.without_part: dict[Any, int] = {}
        written = _written(reader, fun)
        for read in (*reader.reads, *reader.functions):
            if read.path in self.values or read.path in written:
                continue
            x = walk(fun, read.path, self.statics)
            # Counters and caches that the function writes are no inputs of it.
            value = None if id(x) in written else value_of(x)
            # Static arguments are in the cache key, so plain ones cannot be stale.
            if value is not None and not (read.path[-1][0] in ("static", "argument") and value.is_plain):
                self.values[read.path] = read, value

    def is_due(self) -> bool:
        """Whether this use of the trace is one of those at which values are compared."""
        count, due = self.checked_at[0] + 1, self.checked_at[1]
        self.checked_at = count, next_sample(count) if count >= due else due
        return count >= due

    def check(self, fun: Callable[..., Any], retrace: Callable[[], Trace]) -> None:
        """Reports the values that are others now, if the function traced now is another program."""
        different = list(self._differences(fun))
        if not different:
            return
        in_place = set()
        for read, text in different:
            # The new value is remembered, so that the same difference is not looked at again.
            x = walk(fun, read.path, self.statics)
            if text.endswith(_IN_PLACE):
                in_place |= {id(leaf) for leaf in _arrays(x)}
            value = value_of(x)
            if value is not None:
                self.values[read.path] = read, value
        # A value may have changed without a part in the program: the second trace tells.
        if not _changes_program(self.traced, retrace, in_place):
            self._count(read.path for read, _ in different)
            return
        exact = _most_exact(different)
        read, text = exact[0]
        others = len(exact) - 1
        more = f" ({others} other {'value' if others == 1 else 'values'}, too)" if others else ""
        name = self.traced.closed.jaxpr.name
        report(
            "stale values",
            f"{text} since {name} was traced{more}. The compiled program goes on with the value of the trace",
            instead=_instead(read.text, walk(fun, read.path, self.statics)),
            location=read.location,
        )

    def _count(self, paths: Iterable[Path]) -> None:
        """Counts changes without a part in the program, so that tracing anew ends."""
        for path in paths:
            self.without_part[path] = self.without_part.get(path, 0) + 1
            if self.without_part[path] >= _WITHOUT_PART:
                self.values.pop(path, None)

    def _differences(self, fun: Callable[..., Any]) -> Iterator[tuple[Read, str]]:
        for read, value in list(self.values.values()):
            now = walk(fun, read.path, self.statics)
            if now is MISSING:
                continue
            for path, text in changes(value, now):
                yield read, f"{read.text}{path} {text}"
                break


def _instead(text: str, x: Any) -> str:
    """What to write instead of reading `x`, which is `text` in the user's code, from outside."""
    if callable(x):
        # A new `jit` of the same function would find the old program.
        return f"pass {text} as a static argument, or call phlox.clear_caches() after it is replaced"
    if isinstance(x, str | bytes | bool | np.bool_ | NoneType):
        return f"pass {text} as a static argument"
    if isinstance(x, int | np.integer):
        return f"pass {text} as an argument, a static one if a shape or a condition depends on it"
    return f"pass {text} as an argument"


def _most_exact(different: Sequence[tuple[Read, str]]) -> list[tuple[Read, str]]:
    """`different` without values of which a part is there too: ``settings`` beside ``settings["rate"]``."""
    paths = {read.path[:end] for read, _ in different for end in range(len(read.path))}
    return [(read, text) for read, text in different if read.path not in paths]


def _written(reader: Reader, fun: Callable[..., Any]) -> set[Any]:
    """The paths that the function itself writes, and the ids of such containers: they are its own counters."""
    written: set[Any] = set()
    for read in reader.reads:
        if read.writes:
            written.add(read.path)
            x = walk(fun, read.path, reader.statics)
            if isinstance(x, list | dict | set):
                written.add(id(x))
    return written


def _arrays(x: Any) -> Iterator[np.ndarray]:
    if isinstance(x, np.ndarray):
        yield x
    elif isinstance(x, list | tuple | dict):
        for item in list(x.values()) if isinstance(x, dict) else x:
            yield from _arrays(item)


def _changes_program(traced: Trace, retrace: Callable[[], Trace], in_place: set[int]) -> bool:
    """Whether the function traced now is another program; True if it cannot be traced any more. `in_place` has the ids
    of NumPy arrays that were changed in place."""
    # A context variable, since the traces of the functions that this one calls have to be fresh as well.
    try:
        with scoped(retracing, True):
            again = retrace()
    # It could be traced before and cannot now, which is a change as well.
    except Exception:
        return True
    if _program_text(again) != _program_text(traced) or len(again.consts) != len(traced.consts):
        return True
    pairs = zip(again.consts, traced.consts, strict=True)
    # A NumPy array that was changed in place is the same object in both traces.
    return any(id(now) in in_place if now is before else not _equal(now, before) for now, before in pairs)


def _program_text(traced: Trace) -> str:
    return re.sub("0x[0-9a-f]+", "", str(traced.closed.jaxpr))  # addresses of functions among the parameters


def _equal(now: Any, before: Any) -> bool:
    """Whether two closed-over arrays have equal elements; False for large ones."""
    for x in (now, before):
        is_array = isinstance(x, np.ndarray) or (isinstance(x, ArrayImpl) and not x.is_deleted())
        if not is_array or is_extended(x.dtype) or x.nbytes > _SMALL:
            return False
    return np.array_equal(np.asarray(now), np.asarray(before))
