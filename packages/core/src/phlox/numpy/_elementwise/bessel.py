"""The modified Bessel functions of orders 0 and 1 with all their derivatives, for `phlox.numpy` and `phlox.scipy`."""

from __future__ import annotations

import functools
import math
from typing import Any

from ..._api.derivatives.custom import custom_jvp
from ..._ir import dtypes
from ..._ops.elementwise import special
from ..._ops.elementwise.formula import Formula, exp
from ..._ops.structure.shape import convert
from ..._trace.trace import typeof


def _unscaled(x: Any, scaled: Any, at_infinity: Formula) -> Any:
    """exp(abs(x)) * scaled. The exponential alone overflows before the product: there it is taken by two factors."""
    size = abs(Formula(x))
    large = size > math.floor(math.log(float(dtypes.finfo(typeof(x).dtype).max)))
    factor = exp(large.where(0.5 * size, size))
    # At infinity the product would be inf * 0.
    out = size.equals(math.inf).where(at_infinity, factor * Formula(scaled) * large.where(factor, 1)).x
    return convert(out, typeof(x).dtype, typeof(x).weak_type)


@custom_jvp
def i0(x: Any) -> Any:
    """I_0(x), whose derivative is I_1(x)."""
    return _unscaled(x, special.bessel_i0e(x), abs(Formula(x)))


@custom_jvp
def i1(x: Any) -> Any:
    """I_1(x), whose derivative is I_0(x) - I_1(x) / x."""
    return _unscaled(x, special.bessel_i1e(x), Formula(x))


def _difference(larger: Formula, smaller: Formula) -> Formula:
    """larger - smaller, infinite where the larger operand is: the smaller one may have overflowed too."""
    return larger.equals(math.inf).where(larger, larger - smaller)


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _quotient(n: int, x: Any) -> Any:
    """I_n(x) / x**n, an even function without a pole; its derivative is x times that of order n + 1."""
    y = Formula(x)
    near = abs(y) <= special.QUOTIENT_END
    series = special.bessel_quotient(n, near.where(y, 0.0))
    safe = near.where(1.0, y)
    if n == 1:
        far = Formula(i1(x)) / safe
    else:
        before = Formula(i0(x) if n == 2 else _quotient(n - 2, x))
        far = _difference(before, 2.0 * (n - 1) * Formula(_quotient(n - 1, x))) / safe / safe
    return near.where(series, far).x


@_quotient.defjvp
def _quotient_jvp(n: int, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return _quotient(n, x), (Formula(t) * Formula(x) * Formula(_quotient(n + 1, x))).x


i0.defjvps(lambda t, out, x: (Formula(t) * Formula(i1(x))).x)
i1.defjvps(lambda t, out, x: (Formula(t) * _difference(Formula(i0(x)), Formula(_quotient(1, x)))).x)
