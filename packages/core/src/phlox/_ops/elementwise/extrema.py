"""The text of maximum and minimum, and what XLA's are wrong at on CPUs."""

from __future__ import annotations

from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._xla.platforms import cpu_only
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
    # Complex numbers are ordered by real part, then by imaginary part.
    part = shaped(x.aval.shape, dtypes.real_part(x.aval.dtype))
    xr, yr = (f.unlike("stablehlo.real", v, part) for v in (x, y))
    xi, yi = (f.unlike("stablehlo.imag", v, part) for v in (x, y))
    first = f.compare(direction, xr, yr)
    tie = f.same("stablehlo.and", f.compare("EQ", xr, yr), f.compare(direction, xi, yi))
    return f.select(f.same("stablehlo.or", first, tie), x, y)


#: From so many elements on, XLA reduces on CPUs by a library (YNN) whose extrema pass over nan, those that it computes
#: on the way to a sum too.
_YNN, _YNN_DTYPES = 4096, (dtypes.float32, dtypes.float64)


def extrema_lose_nan(f: Function, aval: ShapedArray) -> bool:
    """Whether XLA's maximum and minimum of arrays of this type may be a number where an operand is nan."""
    return aval.size >= _YNN and aval.dtype in _YNN_DTYPES and cpu_only(f)
