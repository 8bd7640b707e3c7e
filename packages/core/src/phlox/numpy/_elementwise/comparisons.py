"""Comparisons of two operands. Integers are compared by value, also where no common dtype holds both operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._operands.broadcasting import where
from ..._operands.checks import check, type_of
from ..._operands.integers import saturated, unheld
from ..._operands.promotion import promoted, to_dtype
from ..._ops.elementwise import arithmetic as e, logic
from ..._ops.random import equality
from .define import define_binary
from .unary import is_kind

Compare = Callable[[Any, Any], Any]


def _by_parts(primitive: Any) -> Compare:
    """A comparison that also takes complex numbers, ordered by real part, then by imaginary part."""

    def compare(x: Any, y: Any) -> Any:
        if not is_kind(x, "c"):
            return primitive(x, y)
        tie = logic.eq(e.real(x), e.real(y))
        return logic.select(tie, primitive(e.imag(x), e.imag(y)), primitive(e.real(x), e.real(y)))

    return compare


def _of_values(compare: Compare) -> Callable[..., Any]:
    """A comparison of operands of any dtypes, from one of operands of one dtype."""

    def apply(function: str, x: Any, y: Any) -> Any:
        i = unheld(x, y)
        if i is None:
            return compare(*promoted(function, x, y))
        operands = [x, y]
        beyond, other = operands[i], type_of(operands[1 - i]).dtype
        operands[i], inside = saturated(beyond, other)
        near = compare(*promoted(function, *operands))
        # Zero is in the range of each dtype, so that it compares with a number outside as all numbers inside do.
        operands[i] = np.int32(1 if beyond > 0 else -1) if type(beyond) is int else beyond
        operands[1 - i] = to_dtype(0, type_of(operands[i]).dtype, type_of(operands[i]).weak_type)
        return where(inside, near, compare(*promoted(function, *operands)))

    return apply


def _checked(function: str, x: Any, y: Any) -> list[Any]:
    return [function, *check(function, x, y)]


def _comparison(name: str, compare: Compare, what: str, example: str, result: bool, note: str = "") -> Any:
    return define_binary(name, _checked, _of_values(compare), what, example, str(result), note=note)


_ORDER = "Complex numbers are ordered by real part, then by imaginary part."
equal = _comparison("equal", equality.equal, "Where x == y", "1, 1", True)
not_equal = _comparison("not_equal", equality.not_equal, "Where x != y", "1, 1", False)
less = _comparison("less", _by_parts(logic.lt), "Where x < y", "1, 2", True, _ORDER)
less_equal = _comparison("less_equal", _by_parts(logic.le), "Where x <= y", "1, 1", True, _ORDER)
greater = _comparison("greater", _by_parts(logic.gt), "Where x > y", "1, 2", False, _ORDER)
greater_equal = _comparison("greater_equal", _by_parts(logic.ge), "Where x >= y", "1, 1", True, _ORDER)
