"""The primitive that reports the sharding of an array when it is decided: eagerly, or after XLA's partitioner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._ir.effects import DebugEffect
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import whole
from ..._xla.host_values import as_array
from ..._xla.partitioner import inspect_lower


def _eager(x: Any, callback: Callable[[Any], None]) -> list[Any]:
    callback(as_array(x).sharding)
    return []


inspect_sharding = Primitive(
    "inspect_sharding",
    multiple_results=True,
    types=lambda x, callback: [],
    sharding=whole,
    lower=inspect_lower,
    eager=_eager,
    jvp=lambda primals, tangents, **params: (inspect_sharding.bind(*primals, **params), []),
    transpose=lambda cotangents, x, **params: [None],
    batch=lambda axis, args, dims, **params: (inspect_sharding.bind(*args, **params), []),
    effects=lambda params: frozenset([DebugEffect()]),
    nan_checked=False,
)
