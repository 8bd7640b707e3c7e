"""Effects under a trace: containers and attributes outside of a function that hold a traced value after its end."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from ..._base.checks import report
from ..._trace.trace import Tracer
from .reads import CACHED, MISSING, Read, Reader, walk

# Bounds, because a container of the user's may be a whole data set.
#: how deep containers are searched, and how many of their items in all
_DEPTH, _ITEMS = 3, 1000
_CONTAINERS = (dict, list, tuple, set, frozenset, deque)


def check(reader: Reader, fun: Callable[..., Any], name: str) -> None:
    """Reports the first value outside of the function `name` that holds one of its tracers, which have ended."""
    seen: set[int] = set()
    # Paths are walked again from the function: the trace has ended, and values may have been replaced since.
    for read in reader.reads:
        x = walk(fun, read.path, reader.statics)
        # One report for a value that is read by several names.
        if id(x) in seen or x is MISSING:
            continue
        seen.add(id(x))
        holding = next(_ended(x, _DEPTH, [_ITEMS]), None)
        if holding is None:
            continue
        path, tracer = holding
        # A tracer that is an argument itself was passed, not stored.
        if tracer is x and read.path[-1][0] in ("argument", "static"):
            continue
        what = f"{read.text}{path}, outside of the function," if path or tracer is not x else f"{read.text}"
        instead = f"return the value from {name}, and store it outside"
        if isinstance(x, CACHED):
            instead = f"call {read.text} before {name} is traced; or let it return arrays of NumPy, or have no cache"
        report(
            "effects under a trace",
            f"{what} holds a traced value {tracer.aval.short} after {name} was traced. The function runs once, for the "
            "trace, so it is stored once, and has no number",
            instead=instead,
            location=_writer(reader.reads, read).location,
        )
        return


def _ended(x: Any, depth: int, left: list[int]) -> Iterator[tuple[str, Tracer]]:
    """(path, tracer) of the tracers in `x` whose trace has ended."""
    if isinstance(x, Tracer):
        if not x.owner.live:
            yield "", x
        return
    # One list for the whole search, so that all containers share the count.
    left[0] -= 1
    if depth < 0 or left[0] < 0:
        return
    if isinstance(x, CACHED):  # its keys and results are no attributes
        # A cache of functools has no public way to its contents, but the garbage collector knows them.
        for item in gc.get_referents(x):
            if isinstance(item, (Tracer, *_CONTAINERS)):
                yield from ((" (its cache)", tracer) for _, tracer in _ended(item, depth - 1, left))
    elif isinstance(x, dict):
        # A list first, as other threads may change the container. Methods of the user's subclasses are not called.
        for key, item in list(islice(dict.items(x), left[0])):
            for path, tracer in _ended(item, depth - 1, left):
                yield f"[{key!r}]{path}", tracer
    elif kind := next((kind for kind in _CONTAINERS if isinstance(x, kind)), None):
        ordered = isinstance(x, list | tuple | deque)
        for i, item in enumerate(list(islice(kind.__iter__(x), left[0]))):
            for path, tracer in _ended(item, depth - 1, left):
                yield (f"[{i}]" if ordered else "") + path, tracer
    # Classes are shared by the whole program, and hold few values of a trace.
    elif not isinstance(x, type) and isinstance(values := _attributes(x), dict):
        for key, item in list(values.items()):
            for path, tracer in _ended(item, depth - 1, left):
                yield f".{key}{path}", tracer


def _attributes(x: Any) -> Any:
    """The attributes stored in an object, without asking its class."""
    try:
        # `object.__getattribute__`, because the class may compute attributes.
        return object.__getattribute__(x, "__dict__")
    except AttributeError:
        return None


def _writer(reads: Sequence[Read], read: Read) -> Read:
    """The read of the same value, or of a part of it, at which the code writes; `read` if there is none."""
    size = len(read.path)
    return next((r for r in reads if r.writes and r.path[:size] == read.path), read)
