"""The primitive `iota`: an array that counts along one of its axes."""

from __future__ import annotations

from typing import Any

from ..._base.errors import ShapeError
from ..._ir.avals import ShapedArray, shaped
from ..._ir.primitive import Primitive
from ..._ir.printing import shown_with
from ..._transform.padding import pad_elementwise
from ..._xla.text import Function, Iota, Value
from ..elementwise.families import NUMBER, check_kind


def _iota_types(dtype: Any, shape: tuple[int, ...], dimension: int) -> ShapedArray:
    check_kind("iota", shaped((), dtype), NUMBER)
    if any(n < 0 for n in shape) or not 0 <= dimension < len(shape):
        raise ShapeError(f"iota: cannot count along axis {dimension} of shape {tuple(shape)}", shapes=[shape])
    return shaped(tuple(shape), dtype)


def _iota_lower(f: Function, dtype: Any, shape: tuple[int, ...], dimension: int) -> Value:
    return Iota(f.op("stablehlo.iota", [], f.out, f"iota_dimension = {dimension} : i64"), dimension)


iota = Primitive(
    "iota",
    remembers=True,
    types=_iota_types,
    lower=_iota_lower,
    pad=pad_elementwise,
    show=shown_with(sharding=None),
    nan_checked=False,
    light=True,
)
