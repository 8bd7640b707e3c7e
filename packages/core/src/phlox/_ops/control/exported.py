"""The primitive `call_exported`: a call of an exported program, which is embedded in the module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..._base.errors import DeviceError, DtypeError, ShapeError
from ..._ir.avals import ShapedArray
from ..._ir.dimensions import is_symbolic
from ..._ir.effects import Effects
from ..._ir.primitive import Primitive, sharding_in_types
from ..._xla.embed import embed
from ..._xla.platforms import platform_of
from ..._xla.text import Function, Value


@dataclass(eq=False, slots=True)
class ExportedProgram:
    """A serialized StableHLO program for each of several platforms, and its types.

    It takes the arguments at the positions `argument_indices`. With `any_platform` other platforms run the first one.
    """

    name: str
    artifacts: Mapping[str, bytes]
    any_platform: bool
    argument_names: Sequence[str]
    in_avals: Sequence[ShapedArray]
    out_avals: Sequence[ShapedArray]
    argument_indices: Sequence[int]
    effects: Effects

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.name}, ...)"


def check_argument(function: str, name: str, expected: ShapedArray, got: ShapedArray) -> None:
    """Raises unless an argument of an exported function has the dtype, rank and constant lengths of its type."""
    what = f"the exported function {function} takes {expected.short}, and got {got.short}"
    if expected.dtype != got.dtype:
        raise DtypeError(f"Dtype mismatch for {name}: {what}", instead=f"x.astype({expected.dtype})")
    shapes = [expected.shape, got.shape]
    if expected.ndim != got.ndim:
        raise ShapeError(f"Rank mismatch for {name}: {what}", shapes=shapes)
    for axis, (length, other) in enumerate(zip(*shapes, strict=True)):
        if not is_symbolic(length) and length != other:
            raise ShapeError(f"Shape mismatch for {name}.shape[{axis}] (expected same constant): {what}", shapes=shapes)


def check_platform(function: str, platforms: Sequence[str], platform: str) -> None:
    """Raises unless the function was exported for this platform."""
    if platform not in platforms:
        raise DeviceError(
            f"Function {function} was exported for platforms {', '.join(platforms)}, and is used on {platform}",
            instead=f"export(f, platforms=({', '.join(map(repr, [*platforms, platform]))}))",
        )


def _call_exported_types(*avals: ShapedArray, exported: ExportedProgram) -> list[ShapedArray]:
    for name, expected, got in zip(exported.argument_names, exported.in_avals, avals, strict=True):
        check_argument(exported.name, name, expected, got)
    return list(exported.out_avals)


def _call_exported_lower(f: Function, *args: Value, exported: ExportedProgram) -> list[Value]:
    platform, platforms = platform_of(f), list(exported.artifacts)
    if not exported.any_platform:
        check_platform(exported.name, platforms, platform)
    artifact = exported.artifacts.get(platform, exported.artifacts[platforms[0]])
    symbol = embed(f, exported, artifact, exported.name)
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
