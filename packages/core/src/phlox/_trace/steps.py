"""Evaluates a recorded Jaxpr equation by equation, and keeps all values.

Each primitive is compiled alone and cached by types and parameters, as for eager execution, so that a second recording
of the same function compiles nothing. Calls, branches, custom rules and `checkpoint` are opened: their equations become
steps of their caller. `scan` and `while_loop` run as one compiled step; `turns` evaluates their turns one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from .._base.source import Location, Replay, Wrapper, replays
from .._ir import dtypes
from .._ir.dtypes import ExtendedDtype
from .._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, hoisted, recorded_x64
from .._ir.primitive import primitive
from .staging import stage
from .trace import typeof


def is_loop(eqn: JaxprEqn) -> bool:
    """Whether an equation runs its Jaxpr in turns: `scan` and `while_loop` do."""
    return eqn.primitive.steps is not None and (eqn.primitive.unbounded or "num_carry" in eqn.params)


class Value:
    """An array of a recording.

    Attributes:
      array: the array, or the number of a literal.
      step: the step that computed it; None for arguments, constants, literals and the inputs of a turn of a loop.
      label: name of an argument or of a constant; None for computed values and literals.
      loop: for an input of a turn, the step of its loop.
      operand: for an input of a turn, the operand of the loop that it is, if it is one.
    """

    __slots__ = ("array", "label", "loop", "operand", "step", "view")

    def __init__(self, array: Any, step: Step | None = None, label: str | None = None):
        self.array = array
        self.step = step
        self.label = label
        self.loop: Step | None = None
        self.operand: Value | None = None
        self.view: np.ndarray | None = None

    @property
    def is_literal(self) -> bool:
        """Whether the value is written in the program."""
        return self.step is None and self.label is None

    @property
    def aval(self) -> Any:
        """The type."""
        return typeof(self.array)

    @property
    def numbers(self) -> np.ndarray:
        """The values on the host; floats of less than 32 bits as float32. PRNG keys have none: an empty array."""
        if self.view is None:
            self.view = numbers_of(self.array)
        return self.view

    @property
    def is_inexact(self) -> bool:
        """Whether the elements are floats or complex numbers."""
        dtype = self.aval.dtype
        return not isinstance(dtype, ExtendedDtype) and dtypes.is_inexact(dtype)


def numbers_of(x: Any) -> np.ndarray:
    """The elements of an array on the host, in a type that NumPy's functions take."""
    dtype = typeof(x).dtype
    if isinstance(dtype, ExtendedDtype) or dtype == dtypes.float0:
        return np.zeros(0)
    if getattr(x, "is_fully_addressable", True) and not (hasattr(x, "sharding") and x.sharding.is_unreduced):
        values = np.asarray(x)
    else:  # of an array of several processes, the elements of this one; of partial results, all of them
        values = np.concatenate([np.asarray(shard.data).ravel() for shard in x.addressable_shards])
    return values.astype(np.float32) if dtypes.is_inexact(dtype) and values.dtype.kind not in "fc" else values


class Context(NamedTuple):
    """Where an equation stands in a program.

    Attributes:
      where: the user's line.
      scope: name scopes and transformations, outermost first.
      path: names of the called functions, branches and turns of loops that contain it, outermost first.
    """

    where: Location | None = None
    scope: tuple[str, ...] = ()
    path: tuple[str, ...] = ()


_OUTERMOST = Context()


class Step:
    """One evaluated equation.

    Attributes:
      section: the section that it belongs to.
      index: its number in the section.
      eqn: the equation.
      where, scope, path: where the equation stands, as in `Context`.
      operands, results: their `Value`s.
      mapped: whether it is inside of a map over devices: its values have a leading axis over them.
    """

    __slots__ = ("eqn", "index", "mapped", "operands", "path", "results", "scope", "section", "where")

    def __init__(self, section: Section, eqn: JaxprEqn, context: Context, mapped: bool = False):
        self.section = section
        self.index = len(section.steps)
        self.eqn = eqn
        self.where, self.scope, self.path = context
        self.mapped = mapped
        self.operands: list[Value] = []
        self.results: list[Value] = []

    @property
    def is_loop(self) -> bool:
        """Whether the step runs a loop."""
        return not self.mapped and is_loop(self.eqn)

    @property
    def is_backward(self) -> bool:
        """Whether the step belongs to the backward pass of a reverse derivative."""
        return any(type(name) is Wrapper and name == "transpose" for name in self.scope)

    @property
    def name(self) -> str:
        """Name of the primitive."""
        return self.eqn.primitive.name


class Section:
    """The steps of one Jaxpr: of the whole program, or of one turn of a loop.

    Attributes:
      inputs: values of its constants and arguments.
      outputs: its results.
      steps: the evaluated equations, with those of opened calls.
      rows: the results of each of its own equations.
    """

    __slots__ = ("inputs", "outputs", "rows", "steps")

    def __init__(self, jaxpr: Jaxpr, inputs: Sequence[Value], context: Context = _OUTERMOST):
        self.inputs = list(inputs)
        self.steps: list[Step] = []
        self.rows: list[list[Value]] = []
        self.outputs = self._evaluate(jaxpr, self.inputs, context)

    def _evaluate(self, jaxpr: Jaxpr, inputs: Sequence[Value], context: Context) -> list[Value]:
        """Adds the steps of `jaxpr`; returns its outputs. `context.where`, if there is one, is the line of them all."""
        env: dict[Var, Value] = dict(zip([*jaxpr.constvars, *jaxpr.invars], inputs, strict=True))
        has_64_bit, none = jaxpr.has_64_bit, nullcontext()
        rows: list[list[Value]] = []

        def read(v: Any) -> Value:
            return env[v] if type(v) is Var else Value(v.val)

        for eqn in jaxpr.eqns:
            operands = [read(v) for v in eqn.invars]
            scope = context.scope + (eqn.source_info.scope if eqn.source_info is not None else ())
            here = Context(context.where or eqn.source_info, scope, context.path)
            with recorded_x64(eqn) if has_64_bit else none:
                if eqn.primitive.expose is not None:
                    evaluate = self._exposed
                elif eqn.primitive.expand is not None or (eqn.primitive.steps is not None and not is_loop(eqn)):
                    evaluate = self._opened
                else:
                    evaluate = self._executed
                results = evaluate(eqn, operands, here)
            env.update(zip(eqn.outvars, results, strict=True))
            rows.append(results)
        self.rows = rows  # calls return before their caller, whose rows stay
        return [read(v) for v in jaxpr.outvars]

    def _executed(self, eqn: JaxprEqn, operands: list[Value], context: Context) -> list[Value]:
        if not eqn.outvars:  # a print or a callback, which the compiled call has run
            return []
        step = Step(self, eqn, context)
        out = eqn.primitive.bind(*[x.array for x in operands], **eqn.params)
        step.operands = operands
        step.results = [Value(x, step) for x in (out if eqn.primitive.multiple_results else [out])]
        self.steps.append(step)
        return step.results

    def _exposed(self, eqn: JaxprEqn, operands: list[Value], context: Context) -> list[Value]:
        """The results of an operation that maps a Jaxpr over devices, after steps for the equations of the Jaxpr."""
        arrays = [x.array for x in operands]
        closed = eqn.params["jaxpr"]
        env: dict[Var, Value] = dict(zip(closed.invars, operands, strict=True))
        for inner, outs in zip(closed.eqns, eqn.primitive.expose(*arrays, **eqn.params), strict=True):
            if inner.outvars:
                where = inner.source_info or context.where
                step = Step(self, inner, Context(where, context.scope, (*context.path, "each device")), mapped=True)
                step.operands = [env.get(v) or Value(getattr(v, "val", None)) for v in inner.invars]
                step.results = [Value(x, step) for x in outs]
                self.steps.append(step)
                env.update(zip(inner.outvars, step.results, strict=True))
        whole = Step(self, eqn, context)
        whole.operands = [env.get(v) or Value(getattr(v, "val", None)) for v in closed.outvars]
        whole.results = [Value(x, whole) for x in eqn.primitive.bind(*arrays, **eqn.params)]
        self.steps.append(whole)
        return whole.results

    @replays
    def _opened(self, eqn: JaxprEqn, operands: list[Value], context: Context) -> list[Value]:
        """The results of a call, whose equations become steps."""
        # The rule may pass some operands on, in another order: their values keep the steps that computed them.
        by_id = {id(x.array): x for x in operands}
        with Replay() as replay:  # what the rule stages gets the location of the equation
            replay.enter(eqn.source_info)
            closed, args, name = _program(eqn, [x.array for x in operands])
        inputs = [by_id.get(id(x)) or Value(x) for x in args]
        consts = [Value(c, label="a constant") for c in closed.consts]
        if _is_internal(closed.jaxpr):
            return self._evaluate(closed.jaxpr, [*consts, *inputs], context)
        called = Context(None, context.scope, (*context.path, name))
        return self._evaluate(closed.jaxpr, [*consts, *inputs], called)


def _program(eqn: JaxprEqn, args: Sequence[Any]) -> tuple[ClosedJaxpr, Sequence[Any], str]:
    """The Jaxpr that an equation runs once, its arguments and its name."""
    primitive, params = eqn.primitive, eqn.params
    if primitive.expand is None:
        step: tuple[ClosedJaxpr, Sequence[Any], str] = next(primitive.steps(*args, **params))
        return step
    program, consts = stage(lambda *xs: primitive.expand(*xs, **params), [typeof(x) for x in args], name=primitive.name)
    return ClosedJaxpr(program, consts), args, primitive.name


def _is_internal(jaxpr: Jaxpr) -> bool:
    """Whether a called Jaxpr is a function of phlox, such as `jnp.where`.

    Its trace is cached, with the line of the user that called it first. All its equations have this one location, which
    is not inside of a function with the name of the Jaxpr.
    """
    locations = {(id(x.code), x.offset): x.code for x in (eqn.source_info for eqn in jaxpr.eqns) if x is not None}
    return len(locations) == 1 and next(iter(locations.values())).co_name != jaxpr.name


class Turn:
    """One turn of a loop, or one evaluation of its condition.

    Attributes:
      name: "turn 3 of scan".
      is_condition: whether it is an evaluation of the condition of a `while_loop`.
      outputs: what the turn returns, computed by its compiled program.
    """

    __slots__ = ("_closed", "_step", "inputs", "is_condition", "name", "outputs")

    def __init__(self, step: Step, closed: ClosedJaxpr, inputs: list[Value], outputs: list[Value], name: str):
        self._step = step
        self._closed = closed
        self.inputs = inputs
        self.outputs = outputs
        self.name = name
        self.is_condition = closed is step.eqn.params.get("cond_jaxpr")

    def section(self) -> Section:
        """The steps of the turn."""
        step, closed = self._step, self._closed
        consts = [Value(c, label="a constant") for c in closed.consts]
        return Section(closed.jaxpr, [*consts, *self.inputs], Context(None, step.scope, (*step.path, self.name)))


def turns(step: Step) -> Iterator[Turn]:
    """The turns of a loop, in order. Each is one run of its compiled body; `Turn.section` opens it."""
    operands = {id(x.array): x for x in step.operands}
    # `steps` is a generator that yields each turn as (program, operands, name), and is sent its results.
    rule = step.eqn.primitive.steps(*[x.array for x in step.operands], **step.eqn.params)
    outs: list[Any] | None = None
    while True:
        try:
            closed, args, name = rule.send(outs)
        except StopIteration:
            return
        inputs = [_input(x, step, operands.get(id(x))) for x in args]
        # `hoisted` returns one object for each body, so that all turns share one compiled program.
        outs = primitive("jit").bind(
            *closed.consts, *args, jaxpr=hoisted(closed), name=closed.jaxpr.name or "turn", inline=False
        )
        yield Turn(step, closed, inputs, [Value(x, label="a result of the turn") for x in outs], name)


#: turns of a scan that `first_turn` runs as one program
_CHUNK = 512


def first_turn(step: Step, holds: Callable[[Turn], bool]) -> Turn | None:
    """The first turn of a loop for which ``holds(turn)`` is true, or None.

    Long scans are run in chunks: `holds` gets a chunk as if it were one turn, whose rows are those of all its turns.
    """
    for part in _chunks(step):
        if part is step:
            return next((turn for turn in bodies(step) if holds(turn)), None)
        inputs, outputs, offset = part.operands, part.results, part.index
        if holds(Turn(part, part.eqn.params["jaxpr"], inputs, outputs, f"turns from {offset} of scan")):
            turn = next((turn for turn in bodies(part) if holds(turn)), None)
            if turn is not None:
                # Turns are numbered within the part, which begins at turn `offset` of the loop.
                turn.name = f"turn {offset + int(turn.name.split()[1])} of scan"
                return turn
    return None


def _chunks(step: Step) -> Iterator[Step]:
    """A long scan as scans of `_CHUNK` turns, in the order in which they run; `index` is that of their first turn."""
    params = step.eqn.params
    length = params.get("length", 0)
    if length <= 2 * _CHUNK:
        yield step
        return
    fixed, both = params["num_consts"], params["num_consts"] + params["num_carry"]
    values = step.operands
    consts, carry, rows = values[:fixed], values[fixed:both], values[both:]
    for start in range(0, length, _CHUNK):
        count = min(_CHUNK, length - start)
        # A reversed scan begins with the last rows.
        first = length - start - count if params["reverse"] else start
        eqn = step.eqn.replace(params={**params, "length": count})
        part = Step(step.section, eqn, Context(step.where, step.scope, step.path))
        part.index = start
        part.operands = [*consts, *carry, *(_input(_rows(x.array, first, count), step, None) for x in rows)]
        outs = part.eqn.primitive.bind(*[x.array for x in part.operands], **part.eqn.params)
        part.results = [_input(x, step, None) for x in outs]
        carry = part.results[: params["num_carry"]]
        yield part


def _rows(x: Any, first: int, count: int) -> Any:
    """``x[first : first + count]``, by one program for all values of `first`."""
    # As an operand, the start is no part of the compiled program.
    starts = [np.int32(first)] + [np.int32(0)] * (x.ndim - 1)
    return primitive("dynamic_slice").bind(x, *starts, slice_sizes=(count, *x.shape[1:]))


def bodies(step: Step) -> Iterator[Turn]:
    """The turns of a loop, without the evaluations of its condition."""
    return (turn for turn in turns(step) if not turn.is_condition)


def _input(x: Any, loop: Step, operand: Value | None) -> Value:
    """A value that a turn gets from its loop."""
    label = None if operand is None else operand.label
    value = Value(x, label=label or "a carry or row of the loop")
    value.loop, value.operand = loop, operand
    return value
