"""`polynomial`, the values of a polynomial by Horner's rule."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from .._api.jit.jit import jit
from .._base.errors import DtypeError, ShapeError
from .._ir import dtypes
from .._operands.checks import check, check_one, type_of
from .._operands.promotion import to_dtype
from .._ops.elementwise import arithmetic as e
from .._ops.elementwise.families import literal, repeat_to
from ..typing import Array, ArrayLike
from ._conveniences import broadcast_shapes
from ._more import stack
from ._scan import scan

#: the number of coefficients up to which the products are written out, as in JAX
_MAX_WRITTEN_OUT = 8


def polynomial(x: ArrayLike, coeffs: Sequence[ArrayLike], *, unroll: int | None = None) -> Array:
    """The values at `x` of the polynomial ``coeffs[0] + coeffs[1] x + coeffs[2] x² + ...`` by Horner's rule (as
    ``jax.lax.polynomial``).

    Args:
      x: array of numbers.
      coeffs: coefficients in the order of increasing powers: numbers, or arrays with as many axes as `x`, converted to
        the dtype of `x`. Axes of length 1 broadcast.
      unroll: number of coefficients up to which the operations are written out, instead of a loop; None for 8. Of a
        loop it is the number of steps that are unrolled.

    Returns:
      An array of the broadcast shape and of the dtype of `x`.

    Raises:
      DtypeError: `x` is of bools.
      ShapeError: a coefficient has another number of axes than `x`, or does not broadcast.

    >>> from phlox import lax
    >>> lax.polynomial(3.0, [1.0, 5.0, 2.0])
    Array(34., dtype=float32, weak_type=True)
    """
    x = check_one("polynomial", x)
    aval = type_of(x)
    coeffs = [_coefficient(x, c) for c in coeffs]
    for c in coeffs:
        if type_of(c).ndim not in (0, aval.ndim) and aval.ndim:
            raise ShapeError(
                f"polynomial: {type_of(c).short} as a coefficient, and x is {aval.short}",
                instead="coefficients with as many axes as x",
                shapes=[type_of(c).shape, aval.shape],
            )
    if len(coeffs) > 1 and dtypes.kind(aval.dtype) == "b":
        raise DtypeError(f"polynomial: x is {aval.short}; it takes integers, floats and complex numbers", aval=aval)
    return _horner(x, coeffs, unroll=_MAX_WRITTEN_OUT if unroll is None else unroll)


def _coefficient(x: Any, c: Any) -> Any:
    (c,) = check("polynomial", c)
    value = to_dtype(c, type_of(x).dtype)
    return to_dtype(value, type_of(x).dtype, True) if type_of(x).weak_type and not type_of(c).ndim else value


@functools.partial(jit, inline=True, static_argnames="unroll")
def _horner(x: Any, coeffs: Sequence[Any], unroll: int) -> Any:
    if not coeffs:
        return e.mul(x, literal(x, 0))
    shape = broadcast_shapes(type_of(x).shape, *(type_of(c).shape for c in coeffs))
    if len(coeffs) <= max(unroll, 1):
        value = coeffs[-1]
        for c in coeffs[-2::-1]:
            value = e.add(e.mul(value, x), c)
        return repeat_to(value, shape)
    terms = broadcast_shapes(*(type_of(c).shape for c in coeffs))
    start = repeat_to(to_dtype(0, type_of(x).dtype), shape)
    steps = stack([repeat_to(c, terms) for c in reversed(coeffs)])
    return scan(lambda value, c: (e.add(e.mul(value, x), c), None), start, steps, unroll=unroll)[0]
