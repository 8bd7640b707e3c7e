"""Finds tracers that outlive their transformation, for the flag `check_tracer_leaks`.

Without the flag, a tracer that was stored somewhere raises an error only when it is used, often far from the mistake.
With the flag, each transformation checks right after the user's function has returned whether tracers of ended traces
are still alive.
"""

from __future__ import annotations

import gc
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._base import config
from .._base.errors import LeakedTracerError
from .._base.scoped import scoped
from .trace import Trace, Tracer, ended_traces

#: called with a user's function and its name when a transformation of it has ended; see `_api.checks.effects`
when_ended: list[Callable[[Callable[..., Any], str], None]] = []


@contextmanager
def no_leaks(name: str, fun: Callable[..., Any] | None = None) -> Iterator[None]:
    """A context for the transformation of the function `name`; raises `LeakedTracerError` if its tracers stay alive.

    Without the flag, `fun` is checked for effects: traced values in containers outside of it.
    """
    settings = config.current()
    if not settings.check_tracer_leaks:
        yield
        if fun is not None and settings.checks != "off":
            for check in when_ended:
                check(fun, name)
        return
    noted: list[weakref.ref[Trace]] = []
    with scoped(ended_traces, noted):
        yield
    leaked = _alive(noted)
    if not leaked:
        return
    gc.collect()  # frees tracers that only reference cycles keep alive
    # The list would keep the tracers alive.
    del leaked
    leaked = _alive(noted)
    if leaked:
        raise _error(name, leaked)


def _alive(noted: list[weakref.ref[Trace]]) -> list[Tracer]:
    traces = [trace for ref in noted if (trace := ref()) is not None]
    # Traces have no list of their tracers, which would keep these alive. Python's garbage collector finds them.
    return [x for trace in traces for x in gc.get_referrers(trace) if isinstance(x, Tracer) and x.owner is trace]


def _error(name: str, leaked: list[Tracer]) -> LeakedTracerError:
    holders = [(leaked[i].aval.short, _holders(leaked[i], {id(leaked)})) for i in range(len(leaked))]
    lines = [f"Leaked traced values of {name}, which has ended:"]
    for x, (short, where) in zip(leaked, holders, strict=True):
        origin = x.owner.explain(x)
        lines.append(f"    {short}" + (f" ({origin})" if origin else "") + f" is held by {' and '.join(where)}")
    return LeakedTracerError(
        "\n".join(lines),
        instead="return the value from the function; do not store it in a global, a list or self",
        holders=holders,
    )


def _holders(x: Any, ours: set[int], depth: int = 4) -> list[str]:
    """Descriptions of the objects that refer to `x`; `ours` are ids of lists of this search, which are skipped."""
    holders = gc.get_referrers(x)
    inner = {*ours, id(holders)}
    descriptions = []
    for i in range(len(holders)):  # an iterator would be one more referrer
        if id(holders[i]) in ours or isinstance(holders[i], types.FrameType):
            continue
        text = _role(holders[i], x)
        if depth and isinstance(holders[i], list | dict | tuple | set | types.CellType):
            outer = _holders(holders[i], inner, depth - 1)
            text += f" of {outer[0]}" if outer[0] != _UNKNOWN else ""
        descriptions.append(text)
    return descriptions or [_UNKNOWN]


_UNKNOWN = "a variable"


def _role(holder: Any, x: Any) -> str:
    if isinstance(holder, types.ModuleType):
        return f"module {holder.__name__}"
    if isinstance(holder, types.FunctionType):
        return f"function {holder.__qualname__}"
    if isinstance(holder, dict):
        return next((f"{key!r}" for key, value in holder.items() if value is x), "a dict")
    if isinstance(holder, types.CellType):
        return "a variable"
    return f"a {type(holder).__qualname__}"
