"""Calls of foreign functions, by XLA's typed interface: compiled code that its runtime knows by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._ir.avals import ShapedArray
from .text import Function, Value, ints, quoted


def row_major(ndim: int) -> tuple[int, ...]:
    """The axes from the one that varies fastest in memory to the slowest, where the last one is fastest."""
    return tuple(reversed(range(ndim)))


def foreign_call(
    f: Function,
    target: str,
    operands: Sequence[Value],
    outs: Sequence[ShapedArray],
    config: Mapping[str, str],
    *,
    operand_orders: Sequence[Sequence[int]] | None = None,
    result_orders: Sequence[Sequence[int]] | None = None,
    aliases: Mapping[int, int] | None = None,
    has_side_effect: bool = False,
    marks: str = "",
) -> list[Value]:
    """Writes the call of `target`.

    Args:
      config: what the function gets besides arrays, as attributes of MLIR.
      operand_orders, result_orders: how arrays lie in memory, as `row_major` (the default) says it.
      aliases: operands whose memory becomes that of a result, by number.
      marks: see `Function.op`.
    """
    avals = [x.aval for x in operands]
    attributes = [
        f"call_target_name = {quoted(target)}",
        "api_version = 4 : i32",
        f"has_side_effect = {'true' if has_side_effect else 'false'}",
        f"backend_config = {{{', '.join(f'{name} = {value}' for name, value in config.items())}}}",
        f"operand_layouts = {_layouts(avals, operand_orders)}",
        f"result_layouts = {_layouts(outs, result_orders)}",
    ]
    if aliases:
        given = ", ".join(_alias(i, o, len(outs)) for i, o in aliases.items())
        attributes.append(f"output_operand_aliases = [{given}]")
    results: list[Value] = f.op("stablehlo.custom_call", operands, list(outs), ", ".join(attributes), marks=marks)
    return results


def _layouts(avals: Sequence[ShapedArray], orders: Sequence[Sequence[int]] | None) -> str:
    given = orders if orders is not None else [row_major(a.ndim) for a in avals]
    written = [f"dense<{ints(order) if order else ''}> : tensor<{len(order)}xindex>" for order in given]
    return f"[{', '.join(written)}]"


def _alias(operand: int, output: int, count: int) -> str:
    where = f"[{output}]" if count > 1 else "[]"
    return (
        f"#stablehlo.output_operand_alias<output_tuple_indices = {where}, "
        f"operand_index = {operand}, operand_tuple_indices = []>"
    )
