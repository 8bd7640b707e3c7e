"""Primitives that compute nothing: optimization barriers, sinks of unused values, and the index of the platform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base.errors import UnsupportedError
from ..._ir import dtypes
from ..._ir.avals import shaped
from ..._ir.effects import Effect
from ..._ir.key_uses import passes_each, reads
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import each, whole
from ..._transform.array_operations import instantiate
from ..._transform.padding import pad_elementwise
from ..._transform.transpose import is_linear
from ..._xla.platforms import platform_of
from ..._xla.text import Function, Value
from ..structure.shape import structural

# --- optimization_barrier: users of any result wait until all operands are computed ---------------------


def _barrier_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    # Tangents get a barrier of their own, so that linearization separates it from that of the primals.
    return optimization_barrier.bind(*primals), optimization_barrier.bind(*map(instantiate, tangents))


def _barrier_transpose(cotangents: Sequence[Any], *args: Any) -> list[Any]:
    outs = optimization_barrier.bind(*map(instantiate, cotangents))
    return [ct if is_linear(x) else None for ct, x in zip(outs, args, strict=True)]


optimization_barrier = Primitive(
    "optimization_barrier",
    multiple_results=True,
    types=lambda *avals: list(avals),
    sharding=each,
    memory_in_types=True,
    lower=lambda f, *xs: f.barrier(xs) if xs else [],
    jvp=_barrier_jvp,
    transpose=_barrier_transpose,
    batch=lambda axis, args, dims: (optimization_barrier.bind(*args), list(dims)),
    pad=pad_elementwise,
    extend=lambda params, trailing, *avals: params,
    keys=passes_each,
    nan_checked=False,
)


# --- stage: the identity, whose result is a variable of the jaxpr even if its operand is a literal -------

stage = structural(
    "stage",
    types=lambda x: x,
    lower=lambda f, x: x,
    transpose=lambda ct, aval: ct,
    batch=lambda x, dim: (stage.bind(x), dim),
    extend=lambda params, trailing, x: params,
    memory_in_types=True,
)

# --- dce_sink: an effect that uses its operand, so that dead code elimination keeps it ------------------


class SinkEffect(Effect):
    """Marks the operand as used."""


def _sink_lower(f: Function, x: Value, prevent_mlir_dce: bool) -> list[Value]:
    if prevent_mlir_dce:
        attributes = 'call_target_name = "dce_sink", has_side_effect = true, api_version = 4 : i32, backend_config = {}'
        f.op("stablehlo.custom_call", [x], [], attributes)
    return []


dce_sink = Primitive(
    "dce_sink",
    multiple_results=True,
    types=lambda x, prevent_mlir_dce: [],
    sharding=whole,
    lower=_sink_lower,
    jvp=lambda primals, tangents, **params: (dce_sink.bind(*primals, **params), []),
    batch=lambda axis, args, dims, **params: (dce_sink.bind(*args, **params), []),
    extend=lambda params, trailing, x: params,
    eager=lambda x, prevent_mlir_dce: [],
    effects=lambda params: frozenset([SinkEffect()]),
    keys=reads,
    nan_checked=False,
)

# --- platform_index: which of several platforms the program is compiled for -----------------------------


def _platform_lower(f: Function, platforms: tuple[tuple[str, ...] | None, ...]) -> Value:
    platform = platform_of(f)
    for i, names in enumerate(platforms):
        if names is None or platform in names:
            return f.number(np.int32(i), f.out)
    known = ", ".join(name for names in platforms if names for name in names)
    raise UnsupportedError(
        f"platform_dependent: a branch for {known}, and none for {platform}, which the program is compiled for",
        instead="default=...",
        platform=platform,
    )


platform_index = Primitive(
    "platform_index",
    types=lambda platforms: shaped((), dtypes.int32),
    lower=_platform_lower,
    nan_checked=False,
)
