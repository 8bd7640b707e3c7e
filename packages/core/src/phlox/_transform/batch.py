"""Batching: runs a function of one example on a whole batch at once.

A batched value has one more axis, at position `dim`, than the function sees. The batching rule of a primitive computes
all examples with one or a few operations. An operation without batched operands goes to the parent trace unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from .._base.errors import RefError
from .._base.source import Location
from .._ir.avals import ShapedArray, shaped
from .._ir.primitive import Primitive, current_trace
from .._ir.sharding_types import Spec
from .._trace.axes import AxisName, run_with_axis
from .._trace.trace import Trace, Tracer, bind_under, typeof
from .array_operations import insert_axis, move_axis

Dim = int | None
_T = TypeVar("_T")


class BatchAxis(NamedTuple):
    """The mapped axis: its size, its name for collectives (or None), and the mesh axes of `spmd_axis_name`, over which
    it is sharded. `explicit` says how it is split over explicit axes, as the type of an array with this axis alone."""

    size: int
    name: AxisName | None = None
    spmd: tuple[AxisName, ...] = ()
    explicit: Spec | None = None

    @property
    def split(self) -> tuple[AxisName, ...]:
        """The explicit axes, or else those of `spmd_axis_name`, that the mapped axis is split over."""
        return self.spmd if self.explicit is None else self.explicit.entries[0]

    def wider(self, aval: ShapedArray, dim: int) -> ShapedArray:
        """The type of the batch of values of type `aval`, with the mapped axis at `dim`."""
        if self.explicit is None:
            return aval.with_axis(dim, self.size)
        return aval.with_axis(dim, self.size, self.explicit.entries[0], self.explicit.mesh)


class BatchTracer(Tracer):
    """Stands for one example of the batch `value`, whose mapped axis is axis `dim`."""

    __slots__ = ("aval", "dim", "value")

    def __init__(self, trace: BatchTrace, value: Any, dim: int):
        self.owner = trace
        self.value = value
        self.dim = dim
        # Types with annotations are rare. The usual ones are looked up at once.
        whole = typeof(value)
        if whole.annotated:
            self.aval = whole.without_axis(dim)
        else:
            self.aval = shaped(whole.shape[:dim] + whole.shape[dim + 1 :], whole.dtype, whole.weak_type)


class BatchTrace(Trace):
    """Applies each operation to the whole batch, under the parent trace.

    `batch` identifies the batch: traces with the same `batch` map the same examples, and each accepts the tracers of
    the others as its own, see `accept_tracers_of`.
    """

    __slots__ = ("axis", "batch")

    def __init__(self, axis: BatchAxis):
        super().__init__()
        self.axis = axis
        self.batch = object()

    def split(self, x: Any) -> tuple[Any, Dim]:
        """The batched value of `x` and the position of its mapped axis; (x, None) if `x` is not batched here."""
        if type(x) is BatchTracer and x.owner.batch is self.batch:
            return x.value, x.dim
        return x, None

    def join(self, value: Any, dim: Dim) -> Any:
        return value if dim is None else BatchTracer(self, value, dim)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        pairs = [self.split(x) for x in args]
        axes = primitive.axes
        # A collective over this axis depends on the batch even without batched operands: psum(1) is the size of the
        # axis.
        if all(d is None for _, d in pairs) and not (axes and self.axis.name in axes(params)):
            return bind_under(self.parent, primitive, args, params)
        return self.by_rule(primitive, pairs, params)

    def by_rule(self, primitive: Primitive, pairs: Sequence[tuple[Any, Dim]], params: dict[str, Any]) -> Any:
        """Applies the batching rule to pairs of a value and the position of its mapped axis."""
        token = current_trace.set(self.parent)
        try:
            rule = primitive.rule("batch")
            out, out_dim = rule(self.axis, [x for x, _ in pairs], [d for _, d in pairs], **params)
        finally:
            current_trace.reset(token)
        if primitive.multiple_results:
            return [self.join(x, d) for x, d in zip(out, out_dim, strict=True)]
        return self.join(out, out_dim)

    def read_ref(self, ref: Any) -> Any:
        argument, dim = ref.mapped_along(self.axis)
        return self.join(argument.read(self.parent), dim)

    def write_ref(self, ref: Any, value: Any) -> None:
        whole, dim = self.split(value)
        argument, destination = ref.mapped_along(self.axis)
        if destination is not None:
            argument.write(self.parent, place_axis(whole, dim, destination, self.axis.size))
            return
        # The reference has room for one value, and the batch holds many.
        if dim is not None:
            raise RefError(
                f"a batched value was written to an unbatched array reference of type {ref.aval} from outside",
                instead="a reference with a batch axis, passed to the mapped function as an argument",
            )
        ref.write(self.parent, whole)

    def explain(self, tracer: Tracer) -> str:
        inner = tracer.value if type(tracer) is BatchTracer else None
        return inner.owner.explain(inner) if isinstance(inner, Tracer) else "mapped by vmap"

    def creation_site(self, tracer: Tracer) -> Location | None:
        inner = tracer.value if type(tracer) is BatchTracer else None
        return inner.owner.creation_site(inner) if isinstance(inner, Tracer) else None


def run_in(trace: BatchTrace, axis: BatchAxis, fun: Callable[..., _T], *args: Any) -> _T:
    """Calls ``fun(*args)`` with `trace` current and the name of `axis`, if any, in scope; returns its result."""
    if axis.name is None:
        return trace.run(fun, *args)
    return trace.run(lambda: run_with_axis(axis.name, axis.size, lambda: fun(*args)))


def run_batched(
    fun: Callable[..., Sequence[Any]], axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim]
) -> tuple[list[Any], list[Dim]]:
    """Runs flat `fun` on batched `args`; returns the outputs and the position of the mapped axis in each."""
    trace = BatchTrace(axis)
    tracers = [trace.join(x, d) for x, d in zip(args, dims, strict=True)]
    pairs = [trace.split(out) for out in run_in(trace, axis, fun, *tracers)]
    return [x for x, _ in pairs], [d for _, d in pairs]


def accept_tracers_of(home: BatchTrace, fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun`, such that later traces of the same batch accept the tracers that it closes over.

    They belong to `home` or to batch traces around it. `fun` is a user's rule, such as that of `custom_jvp`:
    a transformation may call it after `home` has processed the operation, under a new `BatchTrace` of the same
    `BatchAxis`. That trace then gets the `batch` of the original one, so that it accepts the tracers as its own.
    """
    # By identity: two vmaps of one size and name have equal axes, and different examples.
    batches = {id(trace.axis): trace for trace in _batches_around(home)}

    def run(*args: Any) -> Any:
        for trace in _batches_around(current_trace.get()):
            same = batches.get(id(trace.axis))
            if same is not None:
                trace.batch = same.batch
        return fun(*args)

    return run


def _batches_around(trace: Trace | None) -> Iterator[BatchTrace]:
    while trace is not None:
        if type(trace) is BatchTrace:
            yield trace
        trace = trace.parent


def batch_of_one(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The batching rule of an operation with one operand, from ``rule(x, dim, **params)``."""
    # Positional only: split and others have a parameter `axis` too.
    return lambda axis, args, dims, /, **params: rule(args[0], dims[0], **params)


def place_axis(x: Any, dim: Dim, destination: int, size: int) -> Any:
    """`x` with its mapped axis moved to `destination`; an `x` without a mapped axis is repeated along a new one."""
    if dim is None:
        return insert_axis(x, size, destination)
    return move_axis(x, dim, destination)


def place_axes(
    axis: BatchAxis, xs: Sequence[Any], dims: Sequence[Dim], batched: Sequence[bool], destination: int = 0
) -> list[Any]:
    """Applies `place_axis` to the operands that are marked in `batched`; the others stay as they are."""
    return [
        place_axis(x, dim, destination, axis.size) if flag else x
        for x, dim, flag in zip(xs, dims, batched, strict=True)
    ]


def batch_dims(batched: Iterable[bool], dim: int = 0) -> tuple[Dim, ...]:
    """The dims of values of which those marked in `batched` have their batch axis at `dim`."""
    return tuple(dim if flag else None for flag in batched)
