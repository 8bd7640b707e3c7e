"""The caches of jitted functions: traced and compiled programs. They die with the function."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from ..._base import config, interning, monitoring
from ..._xla.program import Program
from .arguments import fun_name
from .entry import LIMIT, Entry, FastPath
from .options import Options


class Stats(NamedTuple):
    """What one jitted function has cost so far.

    Attributes:
      entries: compiled programs in the cache, one for each kind of arguments.
      calls: how often these programs were called.
      traces: Jaxprs in the cache.
      loaded: programs that were loaded from disk instead of being compiled.
      trace, lower, compile, load: total seconds. The time of loading is included in that of compiling.
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
      traces: Jaxprs, by types of arguments.
      entries: compiled calls, by types and placements; a call by position and one by name share an entry.
      calls: fast paths, by (fingerprint of settings, call key), and by the call key alone for the latest settings.
      history: the compilations of these entries, for `explain` and reports of recompilation.
      account: times and counts of events, for `stats`.
    """

    __slots__ = ("__weakref__", "account", "calls", "entries", "history", "traces")

    def __init__(self) -> None:
        self.traces: dict[Any, Any] = {}
        self.entries: dict[Any, Entry] = {}
        self.calls: dict[Any, FastPath] = {}
        self.history: list[Any] = []
        self.account = monitoring.Account()

    def clear(self) -> None:
        with _entries_lock:
            self.traces.clear()
            self.entries.clear()
            self.calls.clear()
            self.history.clear()

    def keep(self, key: Any, entry: Entry, fun: Callable[..., Any]) -> Entry:
        """Stores an entry and returns it, or the one that another thread has stored meanwhile: fast paths may refer to
        that. If its program was compiled quickly, one of the optimized program replaces it later; `fun` is for
        messages."""
        # All at once, since an order of use would have to be updated at each call. Fast paths hold entries, and go with
        # them.
        if len(self.entries) >= LIMIT:
            self.entries.clear()
            self.calls.clear()
        # `setdefault` is atomic, so that two threads which compile the same call end with one entry.
        stored = self.entries.setdefault(key, entry)
        if stored is entry and entry.program.optimized is not None:
            # Only weak references go to the thread, so that the function and its programs can die meanwhile.
            entry.program.replace_later(entry, fun_name(fun), functools.partial(_replace, weakref.ref(self), key))
        return stored

    def forget_calls(self, entry: Any) -> None:
        """Removes the fast paths of an entry that is not in use any more."""
        # `variants` has entries of the same program for leaves in other orders, which have fast paths too.
        gone = {id(entry), *map(id, list(entry.variants.values()))}
        for call_key, fast_path in list(self.calls.items()):
            if id(fast_path[-1]) in gone:
                self.calls.pop(call_key, None)

    def stats(self) -> Stats:
        """See `Stats`."""
        entries, seconds = list(self.entries.values()), self.account.seconds
        return Stats(
            len(entries),
            sum(entry.runs() for entry in entries),
            len(self.traces),
            self.account.events.get(monitoring.CACHE_HIT, 0),
            *[seconds.get(event, 0.0) for event in _STAGES],
        )


def _replace(caches: weakref.ref[Caches], key: Any, entry: Entry, program: Program) -> None:
    """Puts an entry with `program` in place of `entry`, if that is still in use. The next call of each kind takes the
    general path, which finds it."""
    store = caches()
    if store is None:
        return
    # Under the lock: the entries may be cleared between the question and the answer.
    with _entries_lock:
        if store.entries.get(key) is not entry:
            return
        store.entries[key] = entry.with_program(program)
    # After the entry is replaced: a call in between stores the new one.
    store.forget_calls(entry)


#: held while the entries of a function are replaced or cleared
_entries_lock = threading.Lock()
_STAGES = (monitoring.TRACE, monitoring.LOWER, monitoring.COMPILE, monitoring.CACHE_READ)
_by_function: weakref.WeakKeyDictionary[Any, dict[Options, Caches]] = weakref.WeakKeyDictionary()


def caches_for(fun: Callable[..., Any], options: Options) -> Caches:
    """The caches for `fun` and `options`: all uses of `jit(f)` share them if `f` supports weak references."""
    try:
        return _by_function.setdefault(fun, {}).setdefault(options, Caches())
    # The callable is unhashable or has no weak references: each `jit` of it gets caches of its own.
    except TypeError:
        return Caches()


def clear_caches() -> None:
    """Clears the caches of traced and compiled programs in this process; the cache on disk stays.

    Returns:
      None. Jitted functions are traced and compiled again when they are next called.

    >>> clear_caches()
    """
    from ..._ir.primitive import primitives

    # Iterates over lists, as other threads may add functions meanwhile, and functions may die.
    functions = [fun for reference in _by_function.keyrefs() if (fun := reference()) is not None]
    for fun in functions:
        for caches in list(_by_function.get(fun, {}).values()):
            caches.clear()
    for one in primitives().values():
        one.cache.clear()
    config.forget()
    interning.forget()
