"""The primitive `composite`: a named part of a program, which a compiler may replace by its own implementation.

Compilers without one use the decomposition; so do derivatives and vmap.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..._base.errors import ArgumentError
from ..._ir.avals import shaped
from ..._ir.jaxpr import ClosedJaxpr
from ..._trace.program_primitive import ProgramPrimitive
from ..._trace.trace import typeof
from ..._xla.lower import lower_jaxpr
from ..._xla.text import Function, Value, dense, number, quoted
from .call import call, jit_p
from .masked import masked_jaxpr

#: the names that StableHLO takes: a namespace, and names in it
_NAME = re.compile(r"[a-zA-Z]\w*(\.[\w$]+)+", re.ASCII)


def attribute(name: str, value: Any) -> str:
    """A Python value as MLIR text for an attribute. Raises `ArgumentError` for values that cannot be attributes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, np.generic):
        text = number(value, value.dtype)
        return text if value.dtype == bool else f"{text} : {element_text(value.dtype)}"
    if isinstance(value, float):
        return f"{number(value, np.float64)} : f64"
    if isinstance(value, np.dtype | type):
        return element_text(np.dtype(value))
    if isinstance(value, np.ndarray):
        aval = shaped(value.shape, value.dtype)
        return f"{dense(value, aval)} : {aval.text}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(attribute(name, item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {attribute(name, item)}' for key, item in value.items())}}}"
    raise ArgumentError(f"composite: the attribute {name}={value!r} of type {type(value).__name__} cannot be written")


def element_text(dtype: np.dtype) -> str:
    """An element type as MLIR writes it."""
    return shaped((), dtype).text.removeprefix("tensor<").removesuffix(">")


def _composite_lower(
    f: Function, *args: Value, jaxpr: ClosedJaxpr, name: str, version: int, attributes: str
) -> list[Value]:
    if not _NAME.fullmatch(name):
        raise ArgumentError(
            f"composite: name={name!r} has no namespace", instead="a name such as 'my_project.my_operation'"
        )
    known = f.module.known
    # One function for each decomposition, however often it is called.
    symbol = known.get(("composite", jaxpr.jaxpr))
    if symbol is None:
        symbol = known["composite", jaxpr.jaxpr] = f.function(
            name, [a.aval for a in args], lambda g, *inputs: lower_jaxpr(g, jaxpr.jaxpr, inputs)
        )
    before = f"composite_attributes = {{{attributes}}}, " if attributes else ""
    behind = f", version = {version} : i32" if version else ""
    head = " ".join([f"stablehlo.composite {quoted(name)}", ", ".join([x.name for x in args])]).rstrip()
    return f.typed(f"{head} {{{before}decomposition = @{symbol}{behind}}}", args, list(f.outs))


def _as_call(rule: str) -> Any:
    """A rule that applies this rule of `jit` to the decomposition."""

    def apply(*args: Any, jaxpr: ClosedJaxpr, name: str, **_: Any) -> Any:
        return jit_p.rule(rule)(*args, jaxpr=jaxpr, name=name, inline=False)

    return apply


def _composite_eager(*args: Any, jaxpr: ClosedJaxpr, name: str, **_: Any) -> list[Any]:
    """The decomposition: only compilers of larger programs have implementations of their own."""
    return call(jaxpr, args, name=name)


def _composite_masked(mask: Any, *args: Any, jaxpr: ClosedJaxpr, name: str, **_: Any) -> list[Any]:
    """The decomposition with masked loops, as a composite has no operand for the mask."""
    return call(masked_jaxpr(jaxpr, typeof(mask)), [mask, *args], name=name)


composite = ProgramPrimitive(
    "composite",
    types=lambda *avals, jaxpr, **_: jaxpr.out_avals,
    lower=_composite_lower,
    eager=_composite_eager,
    jvp=_as_call("jvp"),
    linearize=_as_call("linearize"),
    batch=_as_call("batch"),
    masked=_composite_masked,
    nan_checked=True,
)
