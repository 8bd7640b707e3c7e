"""The primitive `composite`: a named part of a program, which a compiler may replace by its own implementation.

Compilers without one use the decomposition; so do derivatives and vmap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base.errors import ArgumentError
from ..._ir.avals import ShapedArray, shaped
from ..._ir.jaxpr import ClosedJaxpr, effects_inside
from ..._ir.primitive import Primitive, sharding_in_types, vma_in_types
from ..._transform.batch import BatchAxis, Dim
from ..._xla.lower import lower_jaxpr
from ..._xla.text import Function, Value, dense, number, quoted
from .call import axes_used, jit_p


def attribute(name: str, value: Any) -> str:
    """A Python value as MLIR text for an attribute. Raises `ArgumentError` for values that cannot be attributes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, float):
        return f"{number(value, np.float32)} : f32"
    if isinstance(value, np.dtype | type):
        return shaped((), np.dtype(value)).text.removeprefix("tensor<").removesuffix(">")
    if isinstance(value, np.ndarray | np.generic):
        aval = shaped(value.shape, value.dtype)
        return f"{dense(value, aval)} : {aval.text}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(attribute(name, item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {attribute(name, item)}' for key, item in value.items())}}}"
    raise ArgumentError(f"composite: the attribute {name}={value!r} of type {type(value).__name__} cannot be written")


def _lower(f: Function, *args: Value, jaxpr: ClosedJaxpr, name: str, version: int, attributes: str) -> list[Value]:
    known = f.module.known
    symbol = known.get(("composite", jaxpr.jaxpr))
    if symbol is None:
        symbol = known["composite", jaxpr.jaxpr] = f.function(
            name, [a.aval for a in args], lambda g, *inputs: lower_jaxpr(g, jaxpr.jaxpr, inputs)
        )
    before = f"composite_attributes = {{{attributes}}}, " if attributes else ""
    behind = f", version = {version} : i32" if version else ""
    head = " ".join([f"stablehlo.composite {quoted(name)}", ", ".join([x.name for x in args])]).rstrip()
    return f.typed(f"{head} {{{before}decomposition = @{symbol}{behind}}}", args, list(f.outs))


def _types(*avals: ShapedArray, jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return jaxpr.out_avals


def _as_call(rule: str) -> Any:
    """A rule that applies this rule of `jit` to the decomposition."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, name: str, **_: Any) -> Any:
        return getattr(jit_p, rule)(primals, tangents, jaxpr=jaxpr, name=name, inline=False)

    return jvp


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], *, jaxpr: ClosedJaxpr, name: str, **_: Any
) -> Any:
    return jit_p.batch(axis, args, dims, jaxpr=jaxpr, name=name, inline=False)


def _masked(mask: Any, *args: Any, jaxpr: ClosedJaxpr, name: str, **_: Any) -> list[Any]:
    """The decomposition with masked loops, as a composite has no operand for the mask."""
    masked: list[Any] = jit_p.rule("masked")(mask, *args, jaxpr=jaxpr, name=name, inline=False)
    return masked


composite = Primitive(
    "composite",
    multiple_results=True,
    types=_types,
    vma=vma_in_types,
    sharding=sharding_in_types,
    lower=_lower,
    jvp=_as_call("jvp"),
    linearize=_as_call("linearize"),
    batch=_batch,
    masked=_masked,
    extend=lambda params, trailing, *avals: params,
    axes=lambda params: axes_used(params["jaxpr"]),
    effects=effects_inside,
    nan_checked=True,
)
