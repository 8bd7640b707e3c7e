"""The functions that `jit` returns: the hot path.

They are plain functions of Python, which are called sooner than objects of a class, and bind to objects as methods do.
The `JitFunction` behind them does the work. A call is filed by the keys of the arguments (types and places, see
`_xla.placement`), by the class of Python numbers, and by the settings that tracing depends on; all that it needs has
been worked out when its `Entry` was made. What is called is read first: Python looks up `entry.execute(...)` as a
method, which takes a twentieth of the call, because jaxlib's code leaves cold caches behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._base import config
from .._base.config import overridden
from .._base.wrapping import COMPILED, wraps
from .._ir.primitive import tracing
from .._xla.array import ArrayImpl
from .._xla.compile import JaxRuntimeError
from . import arguments
from .entry import Entry, gather

if TYPE_CHECKING:
    from .jit import JitFunction

_FAILURES = (JaxRuntimeError, ValueError, RuntimeError)


def function_of(jitted: JitFunction) -> Any:
    """What the user calls: a function with name and signature of the one that is jitted, and methods of `jitted`."""
    call: Any = _choosing(jitted) if jitted.chooses else _plain(jitted)
    call.__name__ = call.__qualname__ = arguments.fun_name(jitted.fun)
    wraps(jitted.fun)(call)
    for name in COMPILED:
        setattr(call, name, getattr(jitted, name))
    call._jit = jitted
    return call


class _Missing:
    """The first argument of a call without arguments by position."""


_MISSING = _Missing()


def _positional(x: Any, rest: tuple[Any, ...]) -> tuple[Any, ...]:
    return () if x is _MISSING else (x, *rest)


def _plain(jitted: JitFunction) -> Callable[..., Any]:
    """The function of those whose arguments are all dynamic.

    Python fills in the first argument sooner than it makes a tuple of it.
    """
    one, fast = jitted.lane.one, jitted.lane.fast

    def call(x: Any = _MISSING, /, *rest: Any, **kwargs: Any) -> Any:
        if tracing() is not None:
            return jitted.guarded(jitted.call_traced, _positional(x, rest), kwargs)
        mark = (config.everywhere if overridden() is None else config.current()).called
        entry = one.get(x._key) if type(x) is ArrayImpl and not rest and not kwargs else None
        if entry is not None and entry.mark is mark:
            given: Any = [x._buf]
        else:
            key, given = [mark], []
            try:
                if type(x) is ArrayImpl:
                    key.append(x._key)
                    given.append(x._buf)
                elif x is not _MISSING:
                    gather(key, given, (x,))
                for other in rest:
                    if type(other) is ArrayImpl:
                        key.append(other._key)
                        given.append(other._buf)
                    else:
                        gather(key, given, (other,))
                if kwargs:
                    for name, other in kwargs.items():
                        key.append(name)
                        if type(other) is ArrayImpl:
                            key.append(other._key)
                            given.append(other._buf)
                        else:
                            gather(key, given, (other,))
                entry = fast.get(filed := tuple(key))
            except Exception:  # no tree: the general path finds it, and says so
                entry = filed = None
            if entry is None:
                return jitted.guarded(jitted.call_flat, _positional(x, rest), kwargs, jitted.lane, filed)
        try:
            entry.calls += 1
            prepare, execute, finish = entry.prepare, entry.execute, entry.finish
            if prepare is not None:
                given = prepare(given)
            results = execute(given).consume_with_handlers(entry.handlers)
            if finish is not None:
                return finish(results)
            array = ArrayImpl()  # `wrap` written out
            array._buf = results[0]
            array.aval = entry.aval
            array._key = entry.key
            return array
        except _FAILURES:
            jitted.explain_failure(entry, _positional(x, rest), kwargs)
            raise

    return call


def _choosing(jitted: JitFunction) -> Callable[..., Any]:
    """The function of those with static arguments: these choose a lane of compiled calls."""
    layouts, layout_of = jitted.layouts, jitted.layout

    def call(*args: Any, **kwargs: Any) -> Any:
        if tracing() is not None:
            return jitted.guarded(jitted.call_traced, args, kwargs)
        mark = (config.everywhere if overridden() is None else config.current()).called
        entry: Entry | None = None
        given: Any
        lane = filed = None
        try:
            if kwargs:
                layout = layouts.get((len(args), *kwargs)) or layout_of(args, kwargs)
                values = (*args, *kwargs.values())
            else:
                layout = layouts.get(len(args)) or layout_of(args, kwargs)
                values = args
            if layout.arrange is not None:
                values = layout.arrange(values)
            lane = layout.sole
            if lane is None:
                if layout.only is None:
                    lane = layout.lane(*values[layout.static])
                else:
                    lane = layout.lanes.get(value := values[layout.only])
                    if lane is None or lane.kind is not type(value):
                        lane = layout.lane_of(value)
            if (alone := layout.alone) is not None and type(x := values[alone]) is ArrayImpl:
                entry = lane.one.get(x._key)
            if entry is not None and entry.mark is mark:
                given = [x._buf]
            else:
                key = [mark]
                given = []
                gather(key, given, values[layout.dynamic])
                filed = tuple(key)
                entry = lane.fast.get(filed)
        except Exception:  # a static argument that is not hashable, or no tree: the general path finds it, and says so
            entry = None
        if entry is None:
            return jitted.guarded(jitted.call_flat, args, kwargs, lane, filed)
        try:
            entry.calls += 1
            prepare, execute, finish = entry.prepare, entry.execute, entry.finish
            if prepare is not None:
                given = prepare(given)
            results = execute(given).consume_with_handlers(entry.handlers)
            if finish is not None:
                return finish(results)
            array = ArrayImpl()  # `wrap` written out
            array._buf = results[0]
            array.aval = entry.aval
            array._key = entry.key
            return array
        except _FAILURES:
            jitted.explain_failure(entry, args, kwargs)
            raise

    return call
