"""Python integers as arguments of the library's functions: the dtypes that they are converted to must hold them.

One program adds any number to an array: ``x + 1`` and ``x + 300`` pass the number as an int32, which the program
converts to the dtype of `x`. The program cannot raise an error, so that the number is checked before the call. Programs
whose integers keep their dtype, which are most, have nothing to check.

In functions of users the conversion may be meant, as in ``seed.astype(uint32)``; their arguments wrap, as in JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._ir import dtypes
from ..._ir.dtypes import Dtype
from ..._ir.jaxpr import Jaxpr, Var


def narrowed(jaxpr: Jaxpr, invars: Mapping[int, Var]) -> dict[int, Dtype]:
    """The dtypes to which a Jaxpr converts its inputs `invars` and which do not hold all integers of the default dtype.

    Both mappings are by the position of the argument.
    """
    positions = {v: i for i, v in invars.items()}
    default = dtypes.iinfo(dtypes.canonical(dtypes.int64))
    found: dict[int, Dtype] = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive.name != "convert_element_type" or (i := positions.get(eqn.invars[0])) is None:
            continue
        dtype = eqn.params["new_dtype"]
        if dtypes.kind(dtype) in "iu" and not (dtypes.holds(dtype, default.min) and dtypes.holds(dtype, default.max)):
            found[i] = dtype
    return found


def checking(dtype: Dtype, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`convert`, preceded by a check that `dtype` holds the number."""
    limits = dtypes.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)

    def checked(x: Any) -> Any:
        if low <= x <= high:
            return convert(x)
        raise dtypes.too_large(x, dtype)

    return checked


def check_all(narrow: Mapping[int, Dtype], leaves: Sequence[Any]) -> None:
    """Raises `NumberRangeError` if the dtype of an argument does not hold its number."""
    for i, dtype in narrow.items():
        if not dtypes.holds(dtype, leaves[i]):
            raise dtypes.too_large(leaves[i], dtype)
