"""Forms of maximum and minimum that keep nan, which XLA's on CPUs lose in large arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._xla.forms import Form
from ..._xla.text import Function, Number, Value
from ..elementwise.arithmetic import max_, min_
from ..elementwise.families import fit
from ..reductions.reduce import Axes, reduce_lower, reduce_max, reduce_min

#: From so many elements on, XLA reduces on CPUs by a library (YNN) whose extrema pass over nan, those that it computes
#: on the way to a sum too.
_YNN, _YNN_DTYPES = 4096, (dtypes.float32, dtypes.float64)


def _loses_nan(aval: ShapedArray) -> bool:
    return aval.size >= _YNN and aval.dtype in _YNN_DTYPES


def _keeping_nan(primitive: Any) -> Form:
    """The form of an elementwise extremum: nan operands are selected."""

    def applies(f: Function, x: Value, y: Value) -> bool:
        return _loses_nan(f.out)

    return Form(applies, or_nan(primitive), "max and min of a nan and a number are the number without it")


def or_nan(primitive: Any) -> Callable[[Function, Value, Value], Value]:
    """The lowering rule of an elementwise extremum that keeps nan."""

    def write(f: Function, x: Value, y: Value) -> Value:
        operands = [fit(f, v, f.out.shape) for v in (x, y)]
        out: Value = primitive.lower(f, *operands)
        for operand in operands:
            # A constant that is not nan, as the zero of relu, needs no check.
            if not (isinstance(operand, Number) and operand.value == operand.value):
                out = f.select(f.compare("NE", operand, operand), operand, out)
        return out

    return write


def _reduction_keeping_nan(primitive: Any) -> Form:
    """The form of a reduction: where an element is nan, and nowhere else, the sum of |x| is nan."""

    def applies(f: Function, x: Value, axes: Axes) -> bool:
        return _loses_nan(x.aval)

    def write(f: Function, x: Value, axes: Axes) -> Value:
        out = primitive.lower(f, x, axes)
        total = reduce_lower(f, "stablehlo.add", f.same("stablehlo.abs", x), 0, axes, out.aval)
        return f.select(f.compare("NE", total, total), total, out)

    return Form(applies, write, "XLA's extremum passes over nan; 2.7 of its time")


FORMS = {
    max_: [_keeping_nan(max_)],
    min_: [_keeping_nan(min_)],
    reduce_max: [_reduction_keeping_nan(reduce_max)],
    reduce_min: [_reduction_keeping_nan(reduce_min)],
}
