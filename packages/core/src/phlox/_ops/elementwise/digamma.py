"""The derivative of the logarithm of the gamma function, to two units in the last place on the positive axis.

XLA's own (CHLO's) is a sum over Lanczos's coefficients: it is up to 14 units off, and has no digits near its zero on
the positive axis. Here that zero is a factor. Near the zeros on the negative axis the error is that of numbers near 1.
"""

from __future__ import annotations

import numpy as np

from ..._ir import dtypes
from ..._trace.trace import typeof
from .formula import Formula, log, nearest, polynomial, rounded_once

# The zero is the sum of the two.
_ZERO, _ZERO_REST = 1.4616321449683622, 9.549995429965697e-17
#: from here on the zero is a factor, and up to the second number
_LEAST, _FAR = 0.75, 2.0

# Quotients of polynomials, that of the constant first, fitted with 50 digits.
# digamma(1 + y) / (1 + y - zero) - 1 for y from -1/4 to 1 (3.5e-9, and 8e-19)
_NEAR_32 = (
    (0.2503801372795233, -0.45252122419286245, -0.4513133010811177, -0.06580909336267302),
    (1.0, 1.6062459083526623, 0.6752377626760724, 0.06872006023141732),
)
_NEAR_64 = (
    (
        0.2503801375034054, -0.3065039922255189, -0.696223977910591, -0.36251192476982524, -0.07430905717008762,
        -0.005945585264904424, -0.00013427462831683854,
    ),
    (
        1.0, 2.189428338215577, 1.6878240350836806, 0.5876082109138477, 0.09567021028764532, 0.006593268528050685,
        0.00013557289194897926,
    ),
)  # fmt: skip
# (digamma(1/2 + h) - log(h)) h**2, a function of h**-2, for h from 3/2 (9e-10, and 9e-18, relative to digamma)
_FAR_32 = (
    (0.04166655346712184, 0.05600287369345482, 0.005220670431848299),
    (1.0, 1.5189570305514473, 0.30043003430134935),
)
_FAR_64 = (
    (
        0.04166666666665081, 0.6227388901430104, 2.9624297214705027, 5.4680934030165, 3.7911732758445833,
        0.7743961497415904, 0.016273475736104475,
    ),
    (
        1.0, 15.120733363303897, 73.65217976366637, 142.82752336955065, 110.5065131568671, 29.815597499504033,
        1.8864730030938164,
    ),
)  # fmt: skip
# (1/r - pi cot(pi r)) / r, a function of r**2, for r up to 1/2 (5e-10, and 1e-20)
_COTANGENT_32 = (
    (3.289868135440356, -1.785470576060088, 0.09669240767209039),
    (1.0, -1.200691506932159, 0.200941101256236),
)
_COTANGENT_64 = (
    (3.289868133696453, -2.3953398071848695, 0.4270738352757182, -0.020968258999378788, 0.00014714373944130525),
    (1.0, -1.386069620208031, 0.42334171513634655, -0.038084048172671345, 0.0008119534765443314),
)


def _quotient(x: Formula, single: tuple[tuple[float, ...], ...], double: tuple[tuple[float, ...], ...]) -> Formula:
    above, below = double if typeof(x.x).dtype == dtypes.float64 else single
    return polynomial(x, above) / polynomial(x, below)


def _positive(x: Formula) -> Formula:
    """digamma(x) for x from 3/4."""
    zero = _ZERO if typeof(x.x).dtype == dtypes.float64 else float(np.float32(_ZERO))
    slope = 1.0 + _quotient(x - 1.0, _NEAR_32, _NEAR_64)
    # Two products, as XLA of jaxlib 0.10 subtracts the sum of two constants that are subtracted one after the other.
    near = (x - zero) * slope - ((_ZERO - zero) + _ZERO_REST) * slope
    half = x - 0.5
    inverse = 1.0 / (half * half)
    return (x < _FAR).where(near, log(half) + inverse * _quotient(inverse, _FAR_32, _FAR_64))


@rounded_once
def digamma(y: Formula) -> Formula:
    """digamma(y)."""
    size, negative, small = abs(y), y < 0.0, y < _LEAST
    rest = size - nearest(size)
    # digamma(y) = digamma(1 + y) - 1/y; and for negative numbers, by reflection, digamma(1 - y) + pi cot(-pi y).
    value = _positive(small.where(size + 1.0, y))
    cotangent = negative.where(rest * _quotient(rest * rest, _COTANGENT_32, _COTANGENT_64), 0.0)
    shifted = value - 1.0 / negative.where(-rest, y) - cotangent
    pole = negative & rest.equals(0.0)
    return pole.where(float("nan"), small.where(shifted, value))
