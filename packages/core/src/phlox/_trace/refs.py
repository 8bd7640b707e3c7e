"""Mutable references: a `Ref` holds an array of one type, which can be replaced.

Jaxprs stay pure: there is no primitive for references. A reference belongs to the trace that was current when it was
made, its `home`. Under that trace, a write replaces the value, which may be a tracer. Inner traces pass reads and
writes on to their parent. A `JaxprTrace` cannot do so, because its operations run later: it records which outer
references the function uses, and `stage` raises `CapturedRefsError` at the end. The caller of `stage` then stages the
function again with the values of these references as additional inputs and outputs (see `with_ref_values` and
`with_captured_refs`) and writes the new values back: they become carries of a loop, results of a branch, arguments and
results of a jitted function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base.errors import CapturedRefsError, PhloxError
from .._ir.avals import ShapedArray
from .._ir.primitive import current_trace


class AbstractRef:
    """The type of a reference: ``Ref{float32[3]}``, with the type of the array inside."""

    __slots__ = ("inner_aval", "kind", "memory_space")

    def __init__(self, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None):
        self.inner_aval = inner_aval
        self.memory_space = memory_space
        self.kind = kind

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.inner_aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.inner_aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.inner_aval.size

    @property
    def weak_type(self) -> bool:
        """True when the element type gives way in promotions."""
        return self.inner_aval.weak_type

    def update(self, inner_aval: Any = None, memory_space: Any = None, kind: Any = None) -> AbstractRef:
        """A copy with some attributes replaced."""
        return AbstractRef(
            self.inner_aval if inner_aval is None else inner_aval,
            self.memory_space if memory_space is None else memory_space,
            self.kind if kind is None else kind,
        )

    def str_short(self, short_dtypes: bool = True) -> str:
        """``Ref{f32[3]}``."""
        return f"Ref{{{self.inner_aval.strong().str_short(short_dtypes)}}}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return self.inner_aval, self.memory_space, self.kind

    def __repr__(self) -> str:
        return self.str_short(short_dtypes=False)


class Ref:
    """A reference to an array that can be written. Make one with `phlox.new_ref`.

    ``ref[...]`` reads, ``ref[i] = x`` writes, ``ref[i] += x`` adds. Functions that use references can be jitted, and be
    bodies of loops and branches; references may be their arguments, but not their results.

    >>> import phlox, phlox.numpy as jnp
    >>> ref = phlox.new_ref(jnp.zeros(3))
    >>> ref[1] = 5.0
    >>> ref
    Ref([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("__weakref__", "aval", "freed", "home", "value")

    def __init__(self, aval: AbstractRef, refs: Any):
        self.aval = aval
        self.home = current_trace.get()
        self.value = refs
        #: name of the function that freed the reference; empty while it may be used
        self.freed = ""

    def read(self, trace: Any) -> Any:
        """The value, for use under `trace`."""
        if trace is self.home:
            return self.value
        if trace is None:
            raise self._leaked()
        return trace.read_ref(self)

    def write(self, trace: Any, value: Any) -> None:
        """Replaces the value by `value`, which was computed under `trace` and has the type of the reference."""
        if trace is self.home:
            self.value = value
        elif trace is None:
            raise self._leaked()
        else:
            trace.write_ref(self, value)

    def free(self, function: str) -> None:
        """Marks the reference as freed by `function` if its home records a Jaxpr. In eager code it stays usable, as in
        JAX."""
        if self.home is not None and self.home.recorder() is self.home:
            self.freed = function

    def _leaked(self) -> PhloxError:
        from .trace import leaked  # trace.py calls the methods above

        return leaked(self)


def captured(refs: Sequence[Ref], name: str) -> CapturedRefsError:
    """The error that lists the outer references which a traced function uses."""
    types = ", ".join(str(ref.aval) for ref in refs)
    return CapturedRefsError(
        f"{name or 'a traced function'} uses references from outside ({types}), "
        "which this transformation does not pass in and out",
        instead="pass the array in and return the new one; or freeze(ref) around the function",
        refs=refs,
    )


def with_ref_values(fun: Callable[..., Any], refs: Sequence[Ref]) -> Callable[..., Any]:
    """``pure(state, *args) = (fun(*args), new state)``: `fun` with the values of `refs` as input and output.

    `pure` must be called under a `JaxprTrace`.
    """

    def pure(state: Sequence[Any], *args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        trace = current_trace.get()
        trace.refs.update(zip(refs, state, strict=True))
        out = fun(*args, **kwargs)
        return out, [ref.read(trace) for ref in refs]

    pure.__name__ = getattr(fun, "__name__", "f")
    return pure


def values(refs: Sequence[Ref]) -> list[Any]:
    """The current values of the references."""
    trace = current_trace.get()
    return [ref.read(trace) for ref in refs]


def write_all(refs: Sequence[Ref], state: Sequence[Any]) -> None:
    """Writes the values `state` to the references."""
    trace = current_trace.get()
    for ref, value in zip(refs, state, strict=True):
        ref.write(trace, value)


def with_captured_refs(run: Callable[[Sequence[Ref]], Any]) -> Any:
    """The result of ``run(refs)``, where `refs` are all outer references that the functions staged by `run` use.

    They are not known beforehand: `run` is called again with more references each time it raises `CapturedRefsError`.
    """
    refs: tuple[Ref, ...] = ()
    while True:
        try:
            return run(refs)
        except CapturedRefsError as error:
            new = [ref for ref in error.refs if ref not in refs]
            if not new:
                raise
            refs = (*refs, *new)
