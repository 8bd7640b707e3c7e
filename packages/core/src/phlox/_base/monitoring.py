"""Events of tracing, lowering and compilation, for registered listeners; and logging.

Events have JAX's names, so that listeners written for JAX work: ``/jax/core/compile/…`` for the stages of a program,
``/jax/compilation_cache/…`` for the disk cache.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from . import config
from .docstrings import docs_from
from .scoped import scoped

if TYPE_CHECKING:
    import logging

TRACE = "/jax/core/compile/jaxpr_trace_duration"
LOWER = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"
CACHE_ASKED = "/jax/compilation_cache/compile_requests_use_cache"
CACHE_HIT = "/jax/compilation_cache/cache_hits"
CACHE_MISS = "/jax/compilation_cache/cache_misses"
CACHE_READ = "/jax/compilation_cache/cache_retrieval_time_sec"


class Listener(Protocol):
    """Called with the name of the event, its values as positional arguments, and metadata as keyword arguments."""

    def __call__(self, event: str, *values: Any, **metadata: Any) -> None: ...


_events: list[Listener] = []
_durations: list[Listener] = []
_spans: list[Listener] = []
_scalars: list[Listener] = []
#: while a profile is recorded: makes contexts that appear in it under this name
annotation: Callable[[str], AbstractContextManager[Any]] | None = None


class Account:
    """Sums of what is recorded in the context `on`: durations and counts of events, by name."""

    __slots__ = ("events", "seconds")

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.events: dict[str, int] = {}


# Set around the stages of one jitted function, so that its `stats` hold its own times. A context variable, as threads
# compile at once.
_account: ContextVar[Account | None] = ContextVar("phlox_account", default=None)


def on(account: Account) -> AbstractContextManager[None]:
    """A context in which events and durations are also added to `account`."""
    return scoped(_account, account)


def _notify(listeners: list[Listener], event: str, *values: Any, **metadata: Any) -> None:
    # A copy, since a listener may register or remove one.
    for listener in tuple(listeners):
        listener(event, *values, **metadata)


def record_event(event: str, **kwargs: str | int) -> None:
    """Calls the listeners of events.

    Args:
      event: name of the event, by convention a path such as ``"/my/event"``.
      **kwargs: metadata for the listeners.

    >>> record_event("/my/event", kind="test")
    """
    # Accounts come first, so that they are right even if a listener raises.
    account = _account.get()
    if account is not None:
        account.events[event] = account.events.get(event, 0) + 1
    _notify(_events, event, **kwargs)


@docs_from(record_event)
def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Calls the listeners of durations.

    Args:
      duration: duration in seconds.
      **kwargs: metadata for the listeners.

    >>> record_event_duration_secs("/my/event", 0.5)
    """
    account = _account.get()
    if account is not None:
        account.seconds[event] = account.seconds.get(event, 0.0) + duration
    _notify(_durations, event, duration, **kwargs)


@docs_from(record_event)
def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Calls the listeners of time spans.

    Args:
      start_time, end_time: begin and end in seconds, as ``time.time`` returns them.
      **kwargs: metadata for the listeners.

    >>> record_event_time_span("/my/event", 0.0, 0.5)
    """
    _notify(_spans, event, start_time, end_time, **kwargs)


@docs_from(record_event)
def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Calls the listeners of numbers.

    Args:
      event: name of the number, by convention a path such as ``"/my/loss"``.
      value: the number.
      **kwargs: metadata for the listeners.

    >>> record_scalar("/my/loss", 0.1)
    """
    _notify(_scalars, event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Adds a function that is called at each event.

    Args:
      callback: is called as ``callback(event, **metadata)``.

    >>> heard = []
    >>> listener = lambda event, **metadata: heard.append(event)
    >>> register_event_listener(listener)
    >>> record_event("/my/event")
    >>> unregister_event_listener(listener)
    >>> heard
    ['/my/event']
    """
    _events.append(callback)


@docs_from(register_event_listener)
def register_event_duration_secs_listener(callback: Listener) -> None:
    """Adds a function that is called for each duration that is recorded.

    Args:
      callback: is called as ``callback(event, seconds, **metadata)``.

    >>> names = []
    >>> listener = lambda event, seconds, **metadata: names.append(event.split("/")[-1])
    >>> register_event_duration_secs_listener(listener)
    >>> _ = phlox.jit(lambda x: x + 1)(1.0)
    >>> unregister_event_duration_listener(listener)
    >>> "jaxpr_trace_duration" in names
    True
    """
    _durations.append(callback)


@docs_from(register_event_listener)
def register_event_time_span_listener(callback: Listener) -> None:
    """Adds a function that is called for each time span that is recorded.

    Args:
      callback: is called as ``callback(event, start, end, **metadata)``, with times as ``time.time`` returns them.

    >>> listener = lambda event, start, end, **metadata: None
    >>> register_event_time_span_listener(listener)
    >>> unregister_event_time_span_listener(listener)
    """
    _spans.append(callback)


@docs_from(register_event_listener)
def register_scalar_listener(callback: Listener) -> None:
    """Adds a function that is called for each number that is recorded.

    Args:
      callback: is called as ``callback(event, value, **metadata)``.

    >>> listener = lambda event, value, **metadata: None
    >>> register_scalar_listener(listener)
    >>> unregister_scalar_listener(listener)
    """
    _scalars.append(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Undoes `register_event_listener`.

    Args:
      callback: the function that was registered.

    Raises:
      AssertionError: `callback` is not registered.

    >>> listener = lambda event, **metadata: None
    >>> register_event_listener(listener)
    >>> unregister_event_listener(listener)
    """
    _remove(_events, callback)


@docs_from(unregister_event_listener)
def unregister_event_duration_listener(callback: Listener) -> None:
    """Undoes `register_event_duration_secs_listener`.

    >>> listener = lambda event, seconds, **metadata: None
    >>> register_event_duration_secs_listener(listener)
    >>> unregister_event_duration_listener(listener)
    """
    _remove(_durations, callback)


@docs_from(unregister_event_listener)
def unregister_event_time_span_listener(callback: Listener) -> None:
    """Undoes `register_event_time_span_listener`.

    >>> listener = lambda event, start, end, **metadata: None
    >>> register_event_time_span_listener(listener)
    >>> unregister_event_time_span_listener(listener)
    """
    _remove(_spans, callback)


@docs_from(unregister_event_listener)
def unregister_scalar_listener(callback: Listener) -> None:
    """Undoes `register_scalar_listener`.

    >>> listener = lambda event, value, **metadata: None
    >>> register_scalar_listener(listener)
    >>> unregister_scalar_listener(listener)
    """
    _remove(_scalars, callback)


def _remove(listeners: list[Listener], callback: Listener) -> None:
    if callback not in listeners:
        raise AssertionError(f"{callback!r} is not registered")
    listeners.remove(callback)


def clear_event_listeners() -> None:
    """Removes all listeners.

    >>> clear_event_listeners()
    """
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()


@functools.cache
def _logger() -> logging.Logger:
    """The logger, cached: `logging.getLogger` takes a lock at each call, and an interrupt there could block other
    threads."""
    import logging  # here, to keep `import phlox` fast

    logger = logging.getLogger("phlox")
    if config.logger_name != "phlox":
        logger.parent = logging.getLogger(config.logger_name)
    return logger


def warn(message: str, *values: Any) -> None:
    """Logs a warning."""
    _logger().warning(message, *values)


def log_stage(message: str, *values: Any) -> None:
    """Logs a stage of compilation: as a warning with the flag `log_compiles`, else at level DEBUG."""
    log(config.current().log_compiles, lambda: (message, *values))


def log(aloud: bool, message: Callable[[], tuple[Any, ...]]) -> None:
    """Logs ``message()``, a message and its values: `aloud` as a warning, else at level DEBUG.

    `message` is called only if the entry is logged.
    """
    if aloud:
        warn(*message())
    elif "logging" in sys.modules:  # otherwise nobody has configured logging, and DEBUG is off
        logger = _logger()
        if logger.isEnabledFor(10):  # logging.DEBUG
            logger.debug(*message())


@contextmanager
def timed(event: str, stage: str, name: str) -> Iterator[None]:
    """A context that records and logs the duration of a stage of program `name`. `stage` contains ``%s`` for the name,
    as "tracing %s for jit" (JAX's words)."""
    # `time.time` and not the monotonic clock: time spans have times of day, as in JAX.
    start = time.time()
    if annotation is None:
        yield
    else:
        with annotation(stage % name):
            yield
    end = time.time()
    log_stage(f"Finished {stage} in %.9f sec", name, end - start)
    record_event_duration_secs(event, end - start, fun_name=name)
    record_event_time_span(event, start, end, fun_name=name)
