"""The lowering rule of maximum and minimum."""

from __future__ import annotations

from ..._ir import dtypes
from ..._ir.avals import shaped
from ..._xla.text import Function, Value


def extremum_lower(f: Function, direction: str, x: Value, y: Value) -> Value:
    """Writes a maximum (direction GT) or minimum (LT)."""
    name = "stablehlo.maximum" if direction == "GT" else "stablehlo.minimum"
    if x.aval.dtype.name == "float8_e8m0fnu":
        # XLA compares in float32, where 2**-127 becomes 0 and then nan. The bits are ordered alike, with nan last. For
        # a minimum 1 is added, which makes nan the first.
        octets, moved = shaped(x.aval.shape, dtypes.uint8), int(direction == "LT")
        one = f.number(moved, octets)
        bits = [f.same("stablehlo.add", f.unlike("stablehlo.bitcast_convert", v, octets), one) for v in (x, y)]
        return f.unlike("stablehlo.bitcast_convert", f.same("stablehlo.subtract", f.same(name, *bits), one), x.aval)
    if dtypes.kind(x.aval.dtype) != "c":
        return f.same(name, x, y)
    return f.select(compare_ordered(f, direction, x, y), x, y)


def compare_ordered(f: Function, direction: str, x: Value, y: Value) -> Value:
    """Writes a comparison (GT or LT); complex numbers are ordered by real part, then by imaginary part."""
    if dtypes.kind(x.aval.dtype) != "c":
        return f.compare(direction, x, y)
    part = shaped(x.aval.shape, dtypes.real_part(x.aval.dtype))
    xr, yr = (f.unlike("stablehlo.real", v, part) for v in (x, y))
    xi, yi = (f.unlike("stablehlo.imag", v, part) for v in (x, y))
    first = f.compare(direction, xr, yr)
    tie = f.same("stablehlo.and", f.compare("EQ", xr, yr), f.compare(direction, xi, yi))
    return f.same("stablehlo.or", first, tie)
