"""Operators for arrays, for the primitives that long formulas compute.

`Formula` wraps an array; its operators bind primitives and take Python numbers as constants of the array's dtype. (The
operators of arrays themselves belong to `phlox.numpy`, which is not imported here.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._ir import dtypes
from ..._ir.memory_spaces import any_spaces
from ..._trace.trace import typeof
from ..._transform.sharding_types import in_one_space
from ..structure.shape import bitcast_convert_type, convert
from . import arithmetic as e, logic
from .families import literal, repeat_to


class Formula:
    """An array with operators that bind primitives."""

    __slots__ = ("x",)

    def __init__(self, x: Any):
        self.x = x

    def _apply(self, primitive: Any, other: Any, swapped: bool = False) -> Formula:
        # A number gets the dtype of this array, whatever its own is: 0.5 makes no float64 of float32.
        y = self.of(other).x
        return Formula(primitive(y, self.x) if swapped else primitive(self.x, y))

    def of(self, value: Any) -> Formula:
        """A number as a constant of this dtype; a formula unchanged."""
        return value if type(value) is Formula else Formula(literal(self.x, value))

    def full(self, value: Any) -> Formula:
        """An array of this shape filled with a number."""
        return Formula(repeat_to(literal(self.x, value), typeof(self.x).shape))

    def everywhere_like(self, other: Formula) -> Formula:
        """An array of the other's shape filled with this number."""
        return Formula(repeat_to(self.x, typeof(other.x).shape))

    def __add__(self, other: Any) -> Formula:
        return self._apply(e.add, other)

    def __radd__(self, other: Any) -> Formula:
        return self._apply(e.add, other, True)

    def __sub__(self, other: Any) -> Formula:
        return self._apply(e.sub, other)

    def __rsub__(self, other: Any) -> Formula:
        return self._apply(e.sub, other, True)

    def __mul__(self, other: Any) -> Formula:
        return self._apply(e.mul, other)

    def __rmul__(self, other: Any) -> Formula:
        return self._apply(e.mul, other, True)

    def __truediv__(self, other: Any) -> Formula:
        return self._apply(e.div, other)

    def __rtruediv__(self, other: Any) -> Formula:
        return self._apply(e.div, other, True)

    def __neg__(self) -> Formula:
        return Formula(e.neg(self.x))

    def __abs__(self) -> Formula:
        return Formula(e.abs_(self.x))

    def __lt__(self, other: Any) -> Formula:
        return self._apply(logic.lt, other)

    def __le__(self, other: Any) -> Formula:
        return self._apply(logic.le, other)

    def __gt__(self, other: Any) -> Formula:
        return self._apply(logic.gt, other)

    def __ge__(self, other: Any) -> Formula:
        return self._apply(logic.ge, other)

    def equals(self, other: Any) -> Formula:
        return self._apply(logic.eq, other)

    def differs(self, other: Any) -> Formula:
        return self._apply(logic.ne, other)

    def __and__(self, other: Any) -> Formula:
        return self._apply(logic.and_, other)

    def __or__(self, other: Any) -> Formula:
        return self._apply(logic.or_, other)

    def __xor__(self, other: Any) -> Formula:
        return self._apply(logic.xor, other)

    def __lshift__(self, count: int) -> Formula:
        return self._apply(logic.shift_left, count)

    def __rshift__(self, count: int) -> Formula:
        """The bits shifted to the right, with zeros on the left."""
        return self._apply(logic.shift_right_logical, count)

    def __invert__(self) -> Formula:
        return Formula(logic.not_(self.x))

    def where(self, yes: Any, no: Any) -> Formula:
        """`yes` where this is true, else `no`; at least one of the two is a formula."""
        # A number takes the dtype of the other case, not that of the condition.
        like = yes if type(yes) is Formula else no
        chosen, other = like.of(yes).x, like.of(no).x
        operands: Sequence[Any] = self.x, chosen, other
        if any_spaces():
            operands = in_one_space(*operands)
        # NumPy broadcasts no symbolic lengths.
        shapes = [typeof(x).shape for x in operands if typeof(x).shape]
        shape = tuple(next((n for n in lengths if n != 1), 1) for lengths in zip(*shapes, strict=True))
        return Formula(logic.select(*(repeat_to(x, shape) for x in operands)))

    def to(self, dtype: Any) -> Formula:
        """This array with another element type."""
        return Formula(convert(self.x, dtype))

    def bits(self, dtype: Any) -> Formula:
        """The bits as another element type of the same width."""
        return Formula(bitcast_convert_type(self.x, new_dtype=np.dtype(dtype)))

    @property
    def is_nan(self) -> Formula:
        return self.differs(self)


def rounded_once(formula: Callable[..., Formula]) -> Callable[..., Any]:
    """The function of arrays that a function of formulas is.

    Dtypes narrower than float32 are computed in float32, so that the result alone is rounded to them.
    """

    def run(*xs: Any, **params: Any) -> Any:
        dtype = typeof(xs[0]).dtype
        wide = dtypes.float32 if dtype.itemsize < 4 else dtype
        return convert(formula(*[Formula(convert(x, wide)) for x in xs], **params).x, dtype)

    return run


def exp(x: Formula) -> Formula:
    return Formula(e.exp(x.x))


def log(x: Formula) -> Formula:
    return Formula(e.log(x.x))


def log1p(x: Formula) -> Formula:
    return Formula(e.log1p(x.x))


def sqrt(x: Formula) -> Formula:
    return Formula(e.sqrt(x.x))


def floor(x: Formula) -> Formula:
    return Formula(e.floor(x.x))


def nearest(x: Formula) -> Formula:
    """The nearest whole number; the even one of two."""
    return Formula(e.round_(x.x, rounding_method=1))


def polynomial(x: Formula, coefficients: Sequence[float]) -> Formula:
    """``coefficients[0] + coefficients[1] x + …``, by Horner's rule."""
    total = x.full(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total
