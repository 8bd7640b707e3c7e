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
from ..._ir.jaxpr import ClosedJaxpr, hoisted, memoized
from ..._ir.substitution import aval_for, program_for
from ..._trace.interpret import eval_jaxpr
from ..._trace.staging import stage
from ..._transform.padding import Padding
from ..._xla.array import Array
from ..._xla.lower import lower_jaxpr
from ..._xla.text import Function, Value
from .call import call, jit_p, rebuild_call
from .host_padding import cut_on_host, length_array, pad_on_host
from .once import runs_once

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
            # The refusal is memoized as well, so that the program is not traced again for it.
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
        length_arrays = [length_array(n, config.current().execution_fingerprint) for _, n in lengths]
        padded = [pad_on_host(x, aval) for x, aval in zip(args, self.in_avals, strict=True)]
        outs = jit_p.bind(*self.consts, *length_arrays, *padded, jaxpr=self.program, name=self.name, inline=False)
        return [cut_on_host(out, shape) for out, shape in zip(outs, shapes, strict=True)]

    def accepts(self, args: Sequence[Any]) -> bool:
        """Whether this process holds all elements of the operands, and their shardings divide the padded shapes."""
        for x, aval in zip(args, self.in_avals, strict=True):
            if isinstance(x, Array) and len(x.sharding.devices) > 1:
                tiles = x.sharding.tiles(aval.ndim)
                if not x.is_fully_addressable or any(n % parts for n, parts in zip(aval.shape, tiles, strict=True)):
                    return False
        return True


def _padded_eager(*args: Any, jaxpr: ClosedJaxpr, lengths: Lengths, ranges: Ranges) -> list[Any]:
    memo, key = jaxpr.jaxpr.memo, ("runner", ranges)
    runner = memo.get(key)
    if runner is None:
        try:
            runner = _Runner(jaxpr, ranges)
        except SizesError as error:
            warn_of_refusal(jaxpr.jaxpr.name, error)
            # Compiled for each size, as the warning says.
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


def _padded_types(*avals: ShapedArray, jaxpr: ClosedJaxpr, lengths: Lengths, ranges: Ranges) -> list[ShapedArray]:
    values = dict(lengths)
    return [aval_for(a, values) for a in jaxpr.out_avals]


def _padded_lower(f: Function, *args: Value, jaxpr: ClosedJaxpr, lengths: Lengths, ranges: Ranges) -> list[Value]:
    return lower_jaxpr(f, _exact(jaxpr, lengths).jaxpr, args)


def _or_exact(rule: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The rule `function`; where a symbolic length has no derivative or batch, that of the exact program."""

    def run(*args: Any, jaxpr: ClosedJaxpr, lengths: Lengths, ranges: Ranges) -> Any:
        if ("exact", rule) not in jaxpr.jaxpr.memo:
            try:
                return function(*args, jaxpr=jaxpr, lengths=lengths, ranges=ranges)
            except Exception as error:  # if the rule fails for numbers too, that of the exact program says why
                # Remembered, so that the rule is tried, and the user warned, once.
                jaxpr.jaxpr.memo["exact", rule] = True
                warn_of_refusal(f"the rule {rule} of {jaxpr.jaxpr.name}", error)
        return jit_p.rule(rule)(*args, jaxpr=_exact(jaxpr, lengths), name=jaxpr.jaxpr.name, inline=False)

    return run


def _padded_unfold(*args: Any, jaxpr: ClosedJaxpr, lengths: Lengths, ranges: Ranges) -> list[Any]:
    exact = _exact(jaxpr, lengths)
    return eval_jaxpr(exact.jaxpr, exact.consts, *args)


padded_call = runs_once(
    "padded_call",
    rebuild=rebuild_call,
    vma=None,
    types=_padded_types,
    lower=_padded_lower,
    unfold=_padded_unfold,
    eager=_padded_eager,
    nan_checked=True,
)
for _rule in ("jvp", "linearize", "transpose", "batch"):
    setattr(padded_call, _rule, _or_exact(_rule, padded_call.rule(_rule)))
