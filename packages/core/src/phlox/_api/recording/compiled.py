"""Questions about compiled programs, answered by the user's lines: `explain_memory`, `explain_sharding`, `where_time`.

XLA keeps the line of each instruction, also through its optimizations. The functions compile without the cache on disk,
whose programs have the lines of the process that compiled them.
"""

from __future__ import annotations

import linecache
import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from ..._base import config
from ..._base.pytree import tree_leaves
from ..._base.source import Location
from ..._ir.jaxpr import Jaxpr, Var, jaxprs_in
from ..._ops.spmd.reshard import reshard_p
from ..._xla import profiling
from ..._xla.instructions import Instruction, instructions, peak_buffers
from ..jit.jit import jit
from .answers import Table

#: what an instruction moves between devices, by its opcode
_COLLECTIVES = {
    "all-gather": "each device gets the parts of the others",
    "all-reduce": "partial results of the devices are added",
    "all-to-all": "the devices exchange parts: another axis is split",
    "collective-broadcast": "one device sends to all",
    "collective-permute": "devices pass parts on",
    "ragged-all-to-all": "the devices exchange parts of unequal length",
    "reduce-scatter": "partial results are added, and each device keeps a part",
}

#: how rows begin that are for no line
_WITHOUT_LINE = ("made by the compiler", "argument ", "a closed-over array")


class LineTable(Table):
    """A table with one row for each line of the user's program. `line` is that of the first row, or None."""

    line: str | None = None


def explain_memory(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> LineTable:
    """What a compiled function holds in memory when it needs most, by the user's lines.

    Args:
      fun: function of arrays and trees of arrays, jitted or not.
      *args, **kwargs: its arguments, which may be `ShapeDtypeStruct`s. Nothing is run.

    Returns:
      A table, which prints itself: bytes on one device, of arguments, results and temporary values. Its attribute
      `line` is the line that holds most.

    >>> def f(x):
    ...     pairs = jnp.sort(x[:, None] * x, axis=0)
    ...     return jnp.sort(pairs.sum(axis=0))
    >>> phlox.explain_memory(f, jnp.ones(256)).rows[0][1]
    'temporary'
    """
    compiled = _compile(fun, args, kwargs)
    names = compiled._call.names()
    used = list(compiled._call.used_indices)
    sizes: Counter[tuple[str, str]] = Counter()
    for buffer in peak_buffers(compiled.runtime_executable()):
        place = _place(buffer.instruction)
        if buffer.kind == "argument":
            index = buffer.number - compiled._call.num_consts
            place = f"argument {names[used[index]]}" if 0 <= index < len(used) else _WITHOUT_LINE[2]
        sizes[place, buffer.kind] += buffer.size
    rows = [(f"{size:,}", kind, place) for (place, kind), size in sizes.most_common()]
    title = f"{_name(fun)} needs {sum(sizes.values()):,} bytes on each device"
    return _table(title, ("bytes", "kind", "line"), rows, sizes)


def explain_sharding(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> LineTable:
    """What a compiled function moves between devices, by the user's lines.

    Args:
      fun: function of arrays and trees of arrays, jitted or not.
      *args, **kwargs: its arguments: sharded arrays, or `ShapeDtypeStruct`s with a sharding. Nothing is run.

    Returns:
      A table, which prints itself: for each line the kind of transfer, and the bytes that a device receives, once for
      each turn of a loop. Its attribute `line` is the line that moves most.

    >>> print(phlox.explain_sharding(jnp.sum, jnp.ones(8)))
    sum moves nothing between devices...
    """
    compiled = _compile(fun, args, kwargs)
    constraints = _constraints(_jitted(fun).trace(*args, **kwargs).jaxpr.jaxpr)
    sizes: Counter[tuple[str, str]] = Counter()
    times: Counter[tuple[str, str]] = Counter()
    for instruction in instructions(compiled.runtime_executable()).values():
        # An asynchronous collective is two instructions, ``-start`` and ``-done``, and counts once.
        kind = instruction.opcode.removesuffix("-start")
        if kind in _COLLECTIVES:
            file, line = constraints.get((instruction.file, instruction.line), (instruction.file, instruction.line))
            key = _place(instruction._replace(file=file, line=line)), kind
            sizes[key] += instruction.size
            times[key] += 1
    rows = [(f"{size:,}", times[key], key[1], key[0], _COLLECTIVES[key[1]]) for key, size in sizes.most_common()]
    moved = f"{sum(sizes.values()):,} bytes to each device" if rows else "nothing between devices"
    head = ("bytes", "times", "kind", "line", "meaning")
    return _table(f"{_name(fun)} moves {moved}", head, rows, sizes)


def where_time(fun: Callable[..., Any], *args: Any, repeat: int = 5, **kwargs: Any) -> LineTable:
    """The time of a function: tracing, lowering and compiling it, and the measured run time by the user's lines.

    Args:
      fun: function of arrays and trees of arrays, jitted or not. It is run, so it should not donate its arguments.
      *args, **kwargs: its arguments.
      repeat: number of runs, of which the mean is shown.

    Returns:
      A table, which prints itself. Its attribute `line` is the line that takes most. What runs on several threads or
      devices counts once for each.

    >>> print(phlox.where_time(lambda x: jnp.sort(x @ x), jnp.ones((64, 64))))
    <lambda> takes ...
    """
    seconds: dict[str, float] = {}
    compiled = _compile(fun, args, kwargs, seconds)
    # The first run is not measured: it loads code and fills caches.
    _run(compiled, args, kwargs)
    by_name = {each.name: each for each in instructions(compiled.runtime_executable()).values()}
    times: Counter[tuple[str, str]] = Counter()  # in ns
    start = time.perf_counter()
    for _ in range(repeat):
        _run(compiled, args, kwargs)
    whole = (time.perf_counter() - start) / repeat
    for operation, nanoseconds in _profile(compiled, args, kwargs, repeat):
        instruction = by_name.get(operation)
        if instruction is not None and instruction.opcode not in ("while", "call", "conditional"):  # contain others
            times[_place(instruction), ""] += round(nanoseconds / repeat)
    total = sum(times.values()) or 1
    rows = [(f"{t / 1e6:.3f}", f"{100 * t / total:.1f}", place) for (place, _), t in times.most_common()]
    stages = ", ".join(f"{stage} {1e3 * s:.1f}" for stage, s in seconds.items())
    return _table(f"{_name(fun)} takes {1e3 * whole:.3f} ms a call; {stages} ms", ("ms", "%", "line"), rows, times)


def _jitted(fun: Any) -> Any:
    return fun if hasattr(fun, "lower") else jit(fun)


def _constraints(jaxpr: Jaxpr) -> dict[tuple[str, int], tuple[str, int]]:
    """For the lines of values that a line of the user reshards, that line.

    XLA gives the transfer the location of the value that it moves.
    """
    lines: dict[tuple[str, int], tuple[str, int]] = {}
    location_of: dict[Var, Location] = {}
    for eqn in jaxpr.eqns:
        where = eqn.source_info
        if where is not None:
            location_of.update(dict.fromkeys(eqn.outvars, where))
            origin = location_of.get(eqn.invars[0]) if eqn.invars and type(eqn.invars[0]) is Var else None
            if eqn.primitive is reshard_p and origin is not None:
                lines[origin.file, origin.line] = where.file, where.line
        for inner in jaxprs_in(eqn.params):
            lines.update(_constraints(inner))
    return lines


def _compile(fun: Any, args: Any, kwargs: Any, seconds: dict[str, float] | None = None) -> Any:
    """The compiled function; the times of the stages go into `seconds`."""
    stage: Any = _jitted(fun)
    # A program from the disk has the lines of the process that stored it.
    with config.scope(enable_compilation_cache=False):
        for name, method in (("tracing", "trace"), ("lowering", "lower"), ("compiling", "compile")):
            start = time.perf_counter()
            stage = stage.trace(*args, **kwargs) if method == "trace" else getattr(stage, method)()
            if seconds is not None:
                seconds[name] = time.perf_counter() - start
    return stage


def _run(compiled: Any, args: Any, kwargs: Any) -> None:
    for x in tree_leaves(compiled(*args, **kwargs)):
        x.block_until_ready()


def _profile(compiled: Any, args: Any, kwargs: Any, repeat: int) -> list[tuple[str, float]]:
    """The names and times in ns of the instructions that ran."""
    profiling.start_clients()
    options = profiling.profiler.ProfileOptions()
    # Python's own functions would fill the recording.
    options.python_tracer_level = 0
    session = profiling.profiler.ProfilerSession(options)
    try:
        for _ in range(repeat):
            _run(compiled, args, kwargs)
    finally:
        content = session.stop()
    events = []
    for plane in profiling.ProfileData.from_serialized_xspace(content).planes:
        for line in plane.lines:
            for event in line.events:
                operation = dict(event.stats).get("hlo_op")
                if operation is not None:
                    events.append((str(operation), event.duration_ns))
    return events


def _table(title: str, head: tuple[str, ...], rows: list[Any], sizes: Counter[tuple[str, str]]) -> LineTable:
    table = LineTable(title, head, rows)
    lines = [place for (place, _), _ in sizes.most_common() if not place.startswith(_WITHOUT_LINE)]
    if lines:
        table.line = lines[0].split(": ")[0]
        table.title = f"{title}; most at {lines[0]}"
    return table


def _place(instruction: Instruction | None) -> str:
    """A line of the user with its text, or the name of an instruction that has none."""
    if instruction is None or not instruction.line:
        return _WITHOUT_LINE[0] if instruction is None else f"{_WITHOUT_LINE[0]} ({instruction.opcode})"
    text = linecache.getline(instruction.file, instruction.line).strip()
    file = instruction.file.removeprefix(os.getcwd() + os.sep)
    return f"{file}:{instruction.line}: {text}"


def _name(fun: Any) -> str:
    return str(getattr(fun, "__name__", type(fun).__name__))
