"""The primitive `call_exported`: a call of an exported program, which is embedded in the module."""

from __future__ import annotations

from collections.abc import Sequence

from ..._base.errors import DtypeError, ShapeError
from ..._ir.avals import ShapedArray
from ..._ir.effects import Effects
from ..._ir.primitive import Primitive, sharding_in_types
from ..._xla.embed import embed
from ..._xla.text import Function, Value


class ExportedProgram:
    """A serialized StableHLO program, and its types. It takes the arguments at the positions `argument_indices`."""

    __slots__ = ("argument_indices", "artifact", "effects", "in_avals", "name", "out_avals")

    def __init__(
        self,
        name: str,
        artifact: bytes,
        in_avals: Sequence[ShapedArray],
        out_avals: Sequence[ShapedArray],
        argument_indices: Sequence[int],
        effects: Effects,
    ):
        self.name = name
        self.artifact = artifact
        self.in_avals = in_avals
        self.out_avals = out_avals
        self.argument_indices = argument_indices
        self.effects = effects

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.name}, ...)"


def _types(*avals: ShapedArray, exported: ExportedProgram) -> list[ShapedArray]:
    for i, (expected, got) in enumerate(zip(exported.in_avals, avals, strict=True)):
        if expected.shape != got.shape:
            raise ShapeError(
                f"argument number {i} of the exported function {exported.name} has type {got.short}, "
                f"and it was exported for {expected.short}",
                shapes=[expected.shape, got.shape],
            )
        if expected.dtype != got.dtype:
            raise DtypeError(
                f"argument number {i} of the exported function {exported.name} has type {got.short}, "
                f"and it was exported for {expected.short}",
                instead=f"x.astype({expected.dtype})",
            )
    return list(exported.out_avals)


def _lower(f: Function, *args: Value, exported: ExportedProgram) -> list[Value]:
    outs = list(f.outs)
    return f.call(
        embed(f, exported, exported.artifact, exported.name), [args[i] for i in exported.argument_indices], outs
    )


call_exported = Primitive(
    "call_exported",
    multiple_results=True,
    types=_types,
    sharding=sharding_in_types,
    lower=_lower,
    extend=lambda params, trailing, *avals: params,
    effects=lambda params: params["exported"].effects,
    nan_checked=True,
)
