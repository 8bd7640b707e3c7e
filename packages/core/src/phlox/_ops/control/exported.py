"""The primitive `call_exported`: a call of an exported program, which is embedded in the module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._base.errors import DtypeError, ShapeError
from ..._ir.avals import ShapedArray
from ..._ir.effects import Effects
from ..._ir.primitive import Primitive, sharding_in_types
from ..._xla.embed import embed
from ..._xla.text import Function, Value


@dataclass(eq=False, slots=True)
class ExportedProgram:
    """A serialized StableHLO program, and its types. It takes the arguments at the positions `argument_indices`."""

    name: str
    artifact: bytes
    in_avals: Sequence[ShapedArray]
    out_avals: Sequence[ShapedArray]
    argument_indices: Sequence[int]
    effects: Effects

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.name}, ...)"


def _call_exported_types(*avals: ShapedArray, exported: ExportedProgram) -> list[ShapedArray]:
    for i, (expected, got) in enumerate(zip(exported.in_avals, avals, strict=True)):
        what = (
            f"argument number {i} of the exported function {exported.name} has type {got.short}, and it was exported "
            f"for {expected.short}"
        )
        if expected.shape != got.shape:
            raise ShapeError(what, shapes=[expected.shape, got.shape])
        if expected.dtype != got.dtype:
            raise DtypeError(what, instead=f"x.astype({expected.dtype})")
    return list(exported.out_avals)


def _call_exported_lower(f: Function, *args: Value, exported: ExportedProgram) -> list[Value]:
    symbol = embed(f, exported, exported.artifact, exported.name)
    return f.call(symbol, [args[i] for i in exported.argument_indices], list(f.outs))


call_exported = Primitive(
    "call_exported",
    multiple_results=True,
    types=_call_exported_types,
    sharding=sharding_in_types,
    lower=_call_exported_lower,
    extend=lambda params, trailing, *avals: params,
    effects=lambda params: params["exported"].effects,
    nan_checked=True,
)
