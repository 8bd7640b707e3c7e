"""Writes custom calls: calls of compiled functions that are registered with XLA's runtime by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._ir.avals import ShapedArray
from .text import Function, Value, ints, quoted, symbol_text

#: for each array its layout in memory: the axes from the one that varies fastest to the slowest
Layouts = Sequence[Sequence[int]]


def row_major(ndim: int) -> tuple[int, ...]:
    """The default layout: the last axis varies fastest."""
    return tuple(reversed(range(ndim)))


def row_majors(avals: Sequence[ShapedArray]) -> Layouts:
    """The default layouts of arrays of these types."""
    return [row_major(a.ndim) for a in avals]


def dictionary(attributes: Mapping[str, str]) -> str:
    """A dictionary attribute of attributes that are given as text: ``{a = 1 : i32}``."""
    named = (f"{name if name.isidentifier() else quoted(name)} = {text}" for name, text in attributes.items())
    return f"{{{', '.join(named)}}}"


def typed(attributes: Mapping[str, str]) -> list[str]:
    """The configuration of a call by XLA's typed FFI; the `attributes` are given as text."""
    # The form that JAX writes: XLA finds the dictionary in an attribute of its own. A dictionary in `backend_config`
    # itself would need ``api_version = 4``.
    return ['backend_config = ""', f"mhlo.backend_config = {dictionary(attributes)}"]


def untyped(version: int, config: str) -> list[str]:
    """The configuration of a call by one of the older interfaces, where `config` is a string."""
    return [f"api_version = {version} : i32", f"backend_config = {quoted(config)}"]


def foreign_call(
    f: Function,
    target: str,
    operands: Sequence[Value],
    outs: Sequence[ShapedArray],
    config: Sequence[str],
    *,
    layouts: tuple[Layouts, Layouts] | None,
    aliases: Mapping[int, int] | None = None,
    has_side_effect: bool = False,
    marks: str = "",
) -> list[Value]:
    """Adds a custom call of `target`; returns its results.

    Args:
      config: a result of `typed` or `untyped`.
      layouts: layouts of the operands and of the results; None leaves them to the compiler.
      aliases: index of an operand -> index of the result that takes over its memory.
      marks: attributes of other dialects.
    """
    parts = list(config)
    if has_side_effect:
        parts.append("has_side_effect = true")
    if layouts is not None:
        parts += [f"{which}_layouts = {_written(x)}" for which, x in zip(("operand", "result"), layouts, strict=True)]
    if aliases:
        parts.append(f"output_operand_aliases = [{', '.join(_alias(i, o, len(outs)) for i, o in aliases.items())}]")
    if marks:
        parts.append(marks)
    name = f.fresh()
    # MLIR names several results by one name and a number: ``%3:2`` defines ``%3#0`` and ``%3#1``.
    left = f"{name} = " if len(outs) == 1 else f"{name}:{len(outs)} = " if outs else ""
    result = outs[0].text if len(outs) == 1 else "(" + ", ".join([a.text for a in outs]) + ")"
    f.line(
        f"{left}stablehlo.custom_call @{symbol_text(target)}({', '.join(map(str, operands))}) "
        f"{{{', '.join(parts)}}} : ({', '.join(x.aval.text for x in operands)}) -> {result}"
    )
    return [Value(f"{name}#{i}" if len(outs) > 1 else name, aval) for i, aval in enumerate(outs)]


def _written(layouts: Layouts) -> str:
    # A scalar has no axes: its order is an empty tensor, which MLIR writes as ``dense<>``.
    texts = [f"dense<{ints(order) if order else ''}> : tensor<{len(order)}xindex>" for order in layouts]
    return f"[{', '.join(texts)}]"


def _alias(operand: int, output: int, count: int) -> str:
    # A single result is returned alone and not in a tuple, so it has no index.
    where = f"[{output}]" if count > 1 else "[]"
    return (
        f"#stablehlo.output_operand_alias<output_tuple_indices = {where}, "
        f"operand_index = {operand}, operand_tuple_indices = []>"
    )
