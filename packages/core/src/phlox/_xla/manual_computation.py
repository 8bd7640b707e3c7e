"""Shardy's `sdy.manual_computation`: what each device does with its parts of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._ir.avals import ShapedArray
from .text import Function, Value, axis_text


def manual_computation(
    f: Function,
    mesh: Any,
    axes: Sequence[Any],
    operands: Sequence[tuple[Value, ShapedArray, str]],
    outs: Sequence[tuple[ShapedArray, str]],
    body: Callable[..., Sequence[Value]],
) -> list[Value]:
    """Writes a computation that each device along `axes` of a mesh does on its part of the operands.

    `operands` are (value, type of a part, sharding), `outs` (type, sharding), and `body(g, *parts)` writes the
    computation of one device.
    """
    # The axes that an outer computation of this kind has left to the compiler, or all of them, less those of this.
    auto = tuple(n for n in (f.auto if f.axes else mesh.axis_names) if n not in axes)
    is_whole = mesh.size == 1
    inner = Function(f.module, tuple(mesh.shape.items()), f.counter, f.indent + "  " * (not is_whole), f.label, auto)
    if is_whole:
        # XLA removes computations of this kind from programs of one device, but not those with callbacks.
        results = body(inner, *[Value(x.name, part) for x, part, _ in operands])
        values = [Value(x.name, a) for x, (a, _) in zip(results, outs, strict=True)]
        f.lines += inner.lines  # after all names are known: that of a constant adds its line
        f.located = len(f.lines)
        return values
    parts = [Value(inner.fresh(), aval) for _, aval, _ in operands]
    results = body(inner, *parts)
    names = ", ".join([x.name for x, _, _ in operands])
    name = f.fresh()
    left = f"{name} = " if len(outs) == 1 else f"{name}:{len(outs)} = " if outs else ""
    in_shardings, out_shardings = (", ".join([f"<{x[-1]}>" for x in xs]) for xs in (operands, outs))
    mapped = ", ".join(axis_text(axis) for axis in mesh.axis_names if axis in axes)
    head = ", ".join(f"{p}: {p.aval.text}" for p in parts)
    begin = (
        f"{left}sdy.manual_computation({names}) in_shardings=[{in_shardings}] out_shardings=[{out_shardings}] "
        f"manual_axes={{{mapped}}} ({head}) {{"
    )
    types = ", ".join(r.aval.text for r in results)
    returned = f" {', '.join(map(str, results))} : {types}" if results else ""
    operand_types = ", ".join(x.aval.text for x, _, _ in operands)
    end = f"{f.indent}}} : ({operand_types}) -> ({', '.join(a.text for a, _ in outs)})"
    # One entry, because `locate` adds a location to each entry.
    f.line("\n".join([begin, *inner.lines, f"{inner.indent}sdy.return{returned}", end]))
    return [Value(f"{name}#{i}" if len(outs) > 1 else name, a) for i, (a, _) in enumerate(outs)]
