"""The current trace and its identity, as flax, haiku and equinox ask for them."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from phlox.core import Trace, Tracer
from phlox.extend import Primitive

from .._core import BatchTrace, JaxprTrace, axis_env, current_trace
from ._parameters import jax_parameters


@contextlib.contextmanager
def take_current_trace() -> Iterator[Trace | None]:
    """Yields the current trace; inside of the context there is none, and operations are executed at once."""
    trace = current_trace.get()
    with set_current_trace(None):
        yield trace


@contextlib.contextmanager
def set_current_trace(trace: Trace | None, check_leaks: bool = False) -> Iterator[None]:
    """A context in which `trace` is the current one."""
    token = current_trace.set(trace)
    try:
        yield
    finally:
        current_trace.reset(token)


def eval_context() -> contextlib.AbstractContextManager[None]:
    """A context without a current trace: operations are executed."""
    return set_current_trace(None)


class OpaqueTraceState:
    """The identity of the current trace: two are equal if the same trace was current."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        trace = current_trace.get()
        self._trace = None if trace is None else weakref.ref(trace)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._alive() is other._alive()

    def _alive(self) -> Any:
        return self if self._trace is not None and self._trace() is None else self._trace and self._trace()


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """The state that tells whether an object is used under the trace under which it was made."""
    return OpaqueTraceState()


def find_top_trace(_xs: Iterable[Any]) -> Trace | None:
    """The current trace."""
    return current_trace.get()


# equinox compares ``tracer._trace.main`` with ``find_top_trace(xs).main``.
def _set_owner(tracer: Tracer, trace: Trace) -> None:
    tracer.owner = trace


def _process(self: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Traces of libraries have JAX's name for `process`, and read JAX's parameters."""
    return self.process_primitive(primitive, args, jax_parameters(primitive, params))  # type: ignore[attr-defined]


def _init(self: Tracer, trace: Trace, aval: Any = None) -> None:
    """Tracers of libraries give their trace and, since JAX 0.11, their type to the base class."""
    self.owner = trace
    if aval is not None:
        self.aval = aval  # type: ignore[misc]


def _bind_with_trace(self: Primitive, trace: Trace | None, args: Iterable[Any], *avals_and_params: Any) -> Any:
    """Applies the primitive under `trace`. The last argument is the parameters; JAX 0.11 added `avals` before them."""
    with set_current_trace(trace):
        return self.bind(*args, **avals_and_params[-1])


Primitive.bind_with_trace = _bind_with_trace  # type: ignore[attr-defined]
Tracer.__init__ = _init  # type: ignore[assignment, method-assign]
Tracer._trace = property(lambda tracer: tracer.owner, _set_owner)  # type: ignore[attr-defined]
Trace.process = _process  # type: ignore[method-assign]
Trace.full_raise = lambda trace, x: x  # type: ignore[attr-defined]
Trace.main = property(lambda trace: trace)  # type: ignore[attr-defined]


def full_lower(x: Any) -> Any:
    """The value behind a tracer of a library, for tracers whose class says how to get it; anything else itself."""
    return x.full_lower() if isinstance(x, Tracer) and hasattr(x, "full_lower") else x


class TraceTag:
    """A mark by which a trace knows its tracers in JAX; phlox's tracers know their trace."""


def trace_state_clean() -> bool:
    """Whether no transformation is running."""
    return current_trace.get() is None


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the mapped axes in scope."""
    return [name for name, *_ in axis_env.get()]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether a mapped axis with a name is in scope."""
    return bool(axis_env.get())


def _running() -> Iterator[Trace]:
    trace = current_trace.get()
    while trace is not None:
        yield trace
        trace = trace.parent


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a function is being staged to a Jaxpr."""
    return any(isinstance(trace, JaxprTrace) for trace in _running())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether a function is being batched."""
    return any(isinstance(trace, BatchTrace) for trace in _running())
