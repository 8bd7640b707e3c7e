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
from ..._ir.avals import scalar_aval
from ..._ir.dtypes import Dtype
from ..._ir.jaxpr import Atom, Jaxpr


def dtypes_of_integers(jaxpr: Jaxpr) -> dict[int, Dtype]:
    """The dtypes to which a Jaxpr converts inputs that may be Python integers, if they do not hold all of these.

    The dtypes are by the index of the input.
    """
    result: dict[int, Dtype] = {}
    integer = scalar_aval(int)
    positions: dict[Atom, int] = {v: i for i, v in enumerate(jaxpr.invars) if v.aval is integer}
    if not positions:
        return result
    default = dtypes.iinfo(integer.dtype)
    # The default is enough to compare: a Python integer outside of it has been refused before.
    for eqn in jaxpr.eqns:
        if eqn.primitive.name != "convert_element_type" or (i := positions.get(eqn.invars[0])) is None:
            continue
        dtype = eqn.params["new_dtype"]
        if dtypes.kind(dtype) in "iu" and not (dtypes.holds(dtype, default.min) and dtypes.holds(dtype, default.max)):
            result[i] = dtype
    return result


def checking(dtype: Dtype, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`convert`, preceded by a check that `dtype` holds the number."""
    limits = dtypes.iinfo(dtype)
    # Python ints: comparing with NumPy's scalars is slower.
    low, high = int(limits.min), int(limits.max)

    def checked(x: Any) -> Any:
        if low <= x <= high:
            return convert(x)
        raise dtypes.too_large(x, dtype)

    return checked


def check_all(integer_dtypes: Mapping[int, Dtype], leaves: Sequence[Any]) -> None:
    """Raises `NumberRangeError` if one of `leaves` is a Python integer that the dtype at its index does not hold."""
    for i, dtype in integer_dtypes.items():
        if type(leaves[i]) is int and not dtypes.holds(dtype, leaves[i]):
            raise dtypes.too_large(leaves[i], dtype)
