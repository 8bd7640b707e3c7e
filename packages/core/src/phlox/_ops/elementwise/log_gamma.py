"""The logarithm of the gamma function, to two units in the last place on the positive axis.

XLA's own (CHLO's) adds large terms: it is up to 7 units off at small whole numbers, and has no digits near its zeros 1
and 2. Here the zeros are factors. Near the two largest zeros on the negative axis the argument of the logarithm is the
sum of two floats. Near the other zeros the error is that of numbers near 1.
"""

from __future__ import annotations

import math

from ..._ir import dtypes
from ..._trace.trace import typeof
from .formula import Formula, floor, log, nearest, polynomial, rounded_once
from .large_parameters import remainder

# log(gamma(x)) / ((x - 1) (x - 2)) - 1/2 for x from 1/2 to 3 as a quotient of polynomials, that of the constant first:
# minimax fits of 40 digits (8e-9, and 4e-17).
_NUMERATOR_32 = (1.6368352514080877, 9.618275569088228, 2.130774256346678, -5.846831692999861, -0.9168162480453986)
_DENOMINATOR_32 = (1.0, 17.67018746809464, 43.39136889194421, 21.7614539759884, 1.9398654063839433)
_NUMERATOR_64 = (
    2.274496716686104, 86.13749534963033, 659.1413439987465, 1461.7351494576826, 679.7460329222356, -634.0652780737579,
    -500.5415213870244, -90.3203003878753, -3.8609526384129307, -0.0009916453805978323,
)  # fmt: skip
_DENOMINATOR_64 = (
    1.0, 71.60926521555018, 981.7982835428577, 4419.159422444028, 7890.583574578822, 5983.283528373621,
    1912.4796902657495, 233.49405466081095, 7.9996534788522045,
)  # fmt: skip


def _is_double(x: Formula) -> bool:
    return bool(typeof(x.x).dtype == dtypes.float64)


def _without_zeros(x: Formula) -> Formula:
    """log(gamma(x)) / ((x - 1) (x - 2)) for x from 1/2 to 3."""
    above, below = (_NUMERATOR_64, _DENOMINATOR_64) if _is_double(x) else (_NUMERATOR_32, _DENOMINATOR_32)
    return 0.5 + polynomial(x, above) / polynomial(x, below)


def log_gamma_1p(x: Formula) -> Formula:
    """log(gamma(1 + x)) for x from 0 to 1, with all digits near 0 too."""
    return x * (x - 1.0) * _without_zeros(x + 1.0)


def _sine(x: Formula) -> Formula:
    """sin(pi x) / pi for x from 0 to 1/2."""
    terms = range(11 if _is_double(x) else 6)
    return x * polynomial(x * x, [(-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k + 1) for k in terms])


def _product(whole: Formula, rest: Formula, positive: Formula, start: Formula, stop: int) -> Formula:
    """``start (2 + rest) (3 + rest) …``, up to ``whole - 1 + rest`` for positive numbers and ``whole + rest`` else."""
    last = positive.where(whole - 1.0, whole)
    for k in range(2, stop):
        start = start * (last >= k).where(rest + k, 1.0)
    return start


def _gap(rest: Formula) -> Formula:
    """The square of ``1 - rest - rest**2``, to a few units in its own last place."""
    scale = 2.0**26 if _is_double(rest) else 2.0**12
    # The square of the head is exact, and so is its difference from 1 - rest near the zeros.
    head = nearest(rest * scale) * (1 / scale)
    root = ((1.0 - rest) - head * head) - (rest - head) * (rest + head)
    return root * root


@rounded_once
def log_gamma(y: Formula) -> Formula:
    """log(abs(gamma(y)))."""
    far_from = 10 if _is_double(y) else 8
    size, positive = abs(y), y > 0.0
    # Subnormal numbers, which processors take as zeros, are whole multiples of the smallest one.
    info = dtypes.finfo(typeof(y.x).dtype)
    is_tiny, multiple = size < float(info.tiny), size.bits(f"int{info.bits}").to(info.dtype)
    whole = floor(size)
    rest = size - whole
    # gamma(y) = gamma(2 + rest) (2 + rest) … (y - 1); gamma(y + 1) / y below 1/2; and for negative numbers, by
    # reflection, abs(gamma(y)) = gamma(2 - rest) / (rest (1 - rest) (1 + rest) … (whole + rest)).
    small, short = y < 0.5, y < 3.0
    base = positive.where(small.where(y + 1.0, short.where(y, rest + 2.0)), 2.0 - rest)
    pair = rest * (rest + 1.0)
    start = positive.where(small.where(y, 1.0), (whole >= 1.0).where(pair, rest) * (1.0 - rest))
    product = _product(positive.where(short.where(0.0, whole), whole), rest, positive, start, far_from)
    # From -3 to -2 it is pair (2 - pair), near the two zeros there 1 less a small number.
    gap = _gap(rest)
    close = whole.equals(2.0) & (gap < 0.25) & ~positive
    product = close.where(1.0 - gap, product)
    far = size >= far_from
    power = log(is_tiny.where(multiple, far.where(size, product)))
    near = power + close.where(((1.0 - product) - gap) / product, 0.0)
    near = (base - 1.0) * (base - 2.0) * _without_zeros(base) + small.where(-near, near)
    correction = remainder(far.where(size, far_from), 7 if _is_double(y) else 3) + 0.5 * (math.log(2 * math.pi) - 1)
    large = (size - 0.5) * (power - 1.0) + correction
    reflected = -(log(_sine((rest > 0.5).where(1.0 - rest, rest))) + power) - large
    value = far.where(positive.where(large, reflected), near)
    pole = rest.equals(0.0) & ~positive
    value = (pole | size.equals(math.inf)).where(math.inf, value)
    return is_tiny.where(-math.log(2) * (info.minexp - info.nmant) - power, value)
