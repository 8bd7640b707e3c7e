"""The `padded_call` primitive: the call of a Jaxpr of symbolic shapes by one compiled program for all sizes.

Its operands have their true lengths. When it is executed, they are padded on the host to the largest lengths of
`ranges`, and the results are cut on the host: slices on devices would be compiled for each length. A derivative, and a
batch, is the padded call of the derivative of the Jaxpr. Inside of other programs, whose shapes are known, nothing is
padded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..._base import config
from ..._base.errors import PhloxError, SizesError, SizesWarning
from ..._base.source import location_in, warn
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.jaxpr import ClosedJaxpr, effects_inside, hoisted, memoized
from ..._ir.primitive import Primitive, sharding_in_types
from ..._ir.substitution import aval_for, program_for
from ..._trace.interpret import eval_jaxpr
from ..._trace.staging import stage
from ..._transform.array_operations import Zero, fill
from ..._transform.batch import BatchAxis, Dim
from ..._transform.jaxprs import batch_jaxpr, jvp_jaxpr, linearize_jaxpr, transpose_jaxpr
from ..._transform.padding import Padding
from ..._transform.transpose import is_linear
from ..._xla.array import Array
from ..._xla.lower import lower_jaxpr
from ..._xla.text import Function, Value
from .call import axes_used, call, decomposes, jit_p, narrow_call
from .host_padding import cut_on_host, length_array, pad_on_host

#: (name, length) for each name of a size
Lengths = tuple[tuple[str, int], ...]
#: (name, least, largest length) for each name of a size
Ranges = tuple[tuple[str, int, int], ...]


def call_padded(closed: ClosedJaxpr, args: Sequence[Any], *, lengths: Lengths, ranges: Ranges) -> list[Any]:
    """Calls a Jaxpr of symbolic shapes on arrays of these lengths."""
    if closed.consts:
        args = [*closed.consts, *args]
        closed = hoisted(closed)
    return padded_call.bind(*args, jaxpr=closed, lengths=lengths, ranges=ranges)


def padded_program(closed: ClosedJaxpr, ranges: Ranges) -> ClosedJaxpr:
    """The program on padded arrays. Its first inputs are the true lengths. Raises `SizesError` if there is none."""

    def make() -> ClosedJaxpr | SizesError:
        padding = Padding({name: (low, high) for name, low, high in ranges}, {})

        def fun(*values: Any) -> list[Any]:
            padding.lengths = dict(zip([name for name, *_ in ranges], values, strict=False))
            return padding.run(closed, values[len(ranges) :])

        avals = [shaped((), dtypes.int32)] * len(ranges) + [padding.aval(a) for a in closed.in_avals]
        try:
            return ClosedJaxpr(*stage(fun, avals, name=closed.jaxpr.name))
        except SizesError as error:
            return error.with_traceback(None)

    program = memoized(closed.jaxpr, ("padded", ranges), make)
    if isinstance(program, SizesError):
        raise program
    return program


# --- execution ------------------------------------------------------------------------------------------


class _Runner:
    """Calls the padded program of a Jaxpr for a range of lengths.

    Attributes:
      program: the program on padded arrays, whose constants are operands.
      in_avals: the padded types of the operands.
      out_shapes: the true shapes of the results, by the lengths.
    """

    def __init__(self, jaxpr: ClosedJaxpr, ranges: Ranges):
        program = padded_program(jaxpr, ranges)
        self.program, self.consts = hoisted(program), program.consts
        self.name = jaxpr.jaxpr.name
        self.in_avals = program.in_avals[len(ranges) :]
        self.out_avals = jaxpr.out_avals
        self.out_shapes: dict[Lengths, list[tuple[int, ...]]] = {}

    def __call__(self, args: Sequence[Any], lengths: Lengths) -> list[Any]:
        shapes = self.out_shapes.get(lengths)
        if shapes is None:
            values = dict(lengths)
            shapes = self.out_shapes[lengths] = [aval_for(a, values).shape for a in self.out_avals]
        numbers = [length_array(n, config.current().executed) for _, n in lengths]
        longer = [pad_on_host(x, aval) for x, aval in zip(args, self.in_avals, strict=True)]
        outs = jit_p.bind(*self.consts, *numbers, *longer, jaxpr=self.program, name=self.name, inline=False)
        return [cut_on_host(out, shape) for out, shape in zip(outs, shapes, strict=True)]

    def accepts(self, args: Sequence[Any]) -> bool:
        """Whether this process holds all elements of the operands, and their shardings divide the padded shapes."""
        for x, aval in zip(args, self.in_avals, strict=True):
            if isinstance(x, Array) and len(x.sharding.devices) > 1:
                tiles = x.sharding.tiles(aval.ndim)
                if not x.is_fully_addressable or any(n % parts for n, parts in zip(aval.shape, tiles, strict=True)):
                    return False
        return True


def _eager(*args: Any, jaxpr: ClosedJaxpr, lengths: Lengths, ranges: Ranges) -> list[Any]:
    memo, key = jaxpr.jaxpr.memo, ("runner", ranges)
    runner = memo.get(key)
    if runner is None:
        try:
            runner = _Runner(jaxpr, ranges)
        except SizesError as error:
            warn_of_refusal(jaxpr.jaxpr.name, error)
            runner = functools.partial(_call_exact, jaxpr)
        memo[key] = runner
    if type(runner) is _Runner and not runner.accepts(args):
        return _call_exact(jaxpr, args, lengths)
    outs: list[Any] = runner(args, lengths)
    return outs


def _call_exact(jaxpr: ClosedJaxpr, args: Sequence[Any], lengths: Lengths) -> list[Any]:
    return call(_exact(jaxpr, lengths), args, name=jaxpr.jaxpr.name)


def _exact(jaxpr: ClosedJaxpr, lengths: Lengths) -> ClosedJaxpr:
    return memoized(jaxpr.jaxpr, ("exact", lengths), lambda: program_for(jaxpr, dict(lengths)))


def warn_of_refusal(name: str, error: Exception, function: str = "pad_axes") -> None:
    """Warns that a function is compiled for each size."""
    error = as_refusal(error)
    place = f", at {error.where}" if error.where is not None else ""
    warn(f"{function}: {name} is compiled for each size of its arguments: {error.what}{place}", SizesWarning)


def as_refusal(error: Exception) -> PhloxError:
    """The error without its traceback, whose frames hold tracers. An error of Python gets the line that it is from."""
    if isinstance(error, PhloxError):
        return error.with_traceback(None)
    return SizesError(f"{type(error).__name__}: {error}", where=location_in(error.__traceback__))


# --- rules ----------------------------------------------------------------------------------------------


def _types(*avals: ShapedArray, jaxpr: ClosedJaxpr, lengths: Lengths, ranges: Ranges) -> list[ShapedArray]:
    values = dict(lengths)
    return [aval_for(a, values) for a in jaxpr.out_avals]


def _lower(f: Function, *args: Value, jaxpr: ClosedJaxpr, lengths: Lengths, ranges: Ranges) -> list[Value]:
    return lower_jaxpr(f, _exact(jaxpr, lengths).jaxpr, args)


def _or_exact(rule: str) -> Callable[..., Any]:
    """Decorator for rules: where a symbolic length has no derivative or batch, that of the exact program is taken."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, jaxpr: ClosedJaxpr, lengths: Lengths, ranges: Ranges) -> Any:
            if ("exact", rule) not in jaxpr.jaxpr.memo:
                try:
                    return function(*args, jaxpr=jaxpr, lengths=lengths, ranges=ranges)
                except Exception as error:  # if the rule fails for numbers too, that of the exact program says why
                    jaxpr.jaxpr.memo["exact", rule] = True
                    warn_of_refusal(f"the rule {rule} of {jaxpr.jaxpr.name}", error)
            return jit_p.rule(rule)(*args, jaxpr=_exact(jaxpr, lengths), name=jaxpr.jaxpr.name, inline=False)

        return run

    return decorate


@_or_exact("jvp")
def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], jaxpr: ClosedJaxpr, **sizes: Any
) -> tuple[list[Any], list[Any]]:
    derived, present = jvp_jaxpr(jaxpr, tuple(type(t) is not Zero for t in tangents))
    results = call_padded(derived, [*primals, *(t for t in tangents if type(t) is not Zero)], **sizes)
    count = len(jaxpr.out_avals)
    return results[:count], fill(results[count:], present, _types(jaxpr=jaxpr, **sizes))


@_or_exact("linearize")
def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], jaxpr: ClosedJaxpr, **sizes: Any
) -> tuple[list[Any], list[Any]]:
    split = linearize_jaxpr(jaxpr, tuple(type(t) is not Zero for t in tangents))
    results = call_padded(split.primal, primals, **sizes)
    sources = {"in": primals, "out": results}
    residuals = [sources[kind][i] for kind, i in split.residuals]
    moving = [t for t in tangents if type(t) is not Zero]
    outs = call_padded(split.linear, [*residuals, *moving], **sizes) if any(split.nonzero) else []
    return results[: len(jaxpr.out_avals)], fill(outs, split.nonzero, _types(jaxpr=jaxpr, **sizes))


@_or_exact("transpose")
def _transpose(cotangents: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, **sizes: Any) -> list[Any]:
    linear = tuple(is_linear(x) for x in args)
    nonzero = tuple(type(ct) is not Zero for ct in cotangents)
    derived, present = transpose_jaxpr(jaxpr, linear, nonzero)
    operands = [x for x in args if not is_linear(x)] + [ct for ct in cotangents if type(ct) is not Zero]
    results, there = iter(call_padded(derived, operands, **sizes)), iter(present)
    return [(next(results) if next(there) else Zero(x.aval)) if is_linear(x) else None for x in args]


@_or_exact("batch")
def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], jaxpr: ClosedJaxpr, **sizes: Any
) -> tuple[list[Any], list[Dim]]:
    derived, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
    return call_padded(derived, args, **sizes), out_dims


def _unfold(*args: Any, jaxpr: ClosedJaxpr, lengths: Lengths, ranges: Ranges) -> list[Any]:
    exact = _exact(jaxpr, lengths)
    return eval_jaxpr(exact.jaxpr, exact.consts, *args)


padded_call = Primitive(
    "padded_call",
    multiple_results=True,
    types=_types,
    sharding=sharding_in_types,
    lower=_lower,
    jvp=_jvp,
    linearize=_linearize,
    decomposes=lambda params: decomposes(params["jaxpr"]),
    unfold=_unfold,
    transpose=_transpose,
    batch=_batch,
    eager=_eager,
    axes=lambda params: axes_used(params["jaxpr"]),
    effects=effects_inside,
    narrow=narrow_call,
    nan_checked=True,
)
