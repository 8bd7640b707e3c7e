"""What is kept of jitted functions: programs traced and compiled, by function. It dies with the function."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from ..._base import config, interning, monitoring
from .entry import LIMIT, Entry, FastPath
from .options import Options
from .reference_calls import ReferenceCall


class Stats(NamedTuple):
    """What one jitted function has cost so far.

    Attributes:
      entries: compiled programs that are kept, one for each kind of arguments.
      calls: how often these were called.
      traces: programs that are kept as they were traced.
      loaded: programs that were found on disk instead of being compiled.
      trace, lower, compile, load: seconds spent in all. Loading is a part of what is counted as compiling.
    """

    entries: int
    calls: int
    traces: int
    loaded: int
    trace: float
    lower: float
    compile: float
    load: float

    def __str__(self) -> str:
        seconds = ", ".join(f"{name} {getattr(self, name) * 1e3:.1f} ms" for name in ("trace", "lower", "compile"))
        return f"{self.entries} programs ({self.loaded} from disk), {self.calls} calls; {seconds}"


class Caches:
    """What was traced and compiled for one function with one set of options.

    Attributes:
      traces: Jaxprs, by types.
      entries: compiled programs, by types and places, however a call is written.
      calls: the same as calls are written; what is under (settings, key) is under the key too, for the last settings.
      reference_calls: calls of functions that use references.
      account: what all this took.
    """

    __slots__ = ("__weakref__", "account", "calls", "entries", "reference_calls", "traces")

    def __init__(self) -> None:
        self.traces: dict[Any, Any] = {}
        self.entries: dict[Any, Entry | ReferenceCall] = {}
        self.calls: dict[Any, FastPath] = {}
        self.reference_calls: dict[Any, ReferenceCall] = {}
        self.account = monitoring.Account()

    def clear(self) -> None:
        self.traces.clear()
        self.reference_calls.clear()
        self.entries.clear()
        self.calls.clear()

    def stats(self) -> Stats:
        """See `Stats`."""
        found, seconds = [e for e in list(self.entries.values()) if type(e) is Entry], self.account.seconds
        return Stats(
            len(found),
            sum(entry.runs() for entry in found),
            len(self.traces),
            self.account.events.get(monitoring.CACHE_HIT, 0),
            *[seconds.get(event, 0.0) for event in _STAGES],
        )


_STAGES = (monitoring.TRACE, monitoring.LOWER, monitoring.COMPILE, monitoring.CACHE_READ)
_by_function: weakref.WeakKeyDictionary[Any, dict[Options, Caches]] = weakref.WeakKeyDictionary()


def caches_for(fun: Callable[..., Any], options: Options) -> Caches:
    """`jit(f)` written twice shares one cache, as long as `f` can be referred to weakly."""
    try:
        return _by_function.setdefault(fun, {}).setdefault(options, Caches())
    except TypeError:
        return Caches()


def bounded(cache: dict[Any, Any]) -> dict[Any, Any]:
    """`cache`, emptied when it has grown beyond its bound."""
    if len(cache) >= LIMIT:
        cache.clear()
    return cache


def clear_caches() -> None:
    """Forgets all that was traced and compiled in this process (the cache on disk stays).

    Returns:
      None. Jitted functions are traced and compiled anew when they are called again.

    >>> clear_caches()
    """
    from ..._ir.primitive import primitives

    # Lists, as other threads may add functions meanwhile, and functions may die.
    functions = [fun for reference in _by_function.keyrefs() if (fun := reference()) is not None]
    for fun in functions:
        for caches in list(_by_function.get(fun, {}).values()):
            caches.clear()
    for one in primitives().values():
        one.cache.clear()
    config.forget()
    interning.forget()
