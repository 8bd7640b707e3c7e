"""The true values and derivatives of `corners`, by mpmath with many digits, or by NumPy and SciPy in wider floats."""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import mpmath
import numpy as np

mpf = mpmath.mpf


@dataclasses.dataclass(frozen=True)
class Truth:
    """The right result at one point: a number, or any of an interval, or anything where nobody says what is right."""

    value: Any
    other: Any = None  # the other end of the interval of subgradients
    anything: bool = False
    strict_zero: bool = False
    absolute: float = 0.0

    def allows(self, result: Any, dtype: str, what: str) -> bool:
        if self.anything:
            return True
        if isinstance(result, bool | np.bool_ | np.integer):
            return bool(result == self.value) or (self.value != self.value)
        if isinstance(result, complex | np.complexfloating):
            return self._allows_complex(complex(result), dtype, what)
        result = float(result)
        if self.other is not None:
            low, high = sorted((float(self.value), float(self.other)))
            return low <= result <= high
        return close(result, float(np.real(self.value)), dtype, what, self.strict_zero, 0.0, self.absolute)

    def _allows_complex(self, result: complex, dtype: str, what: str) -> bool:
        value = complex(self.value)
        if np.isinf(value.real) or np.isinf(value.imag):  # an infinity, whatever the other part
            parts = [(result.real, value.real), (result.imag, value.imag)]
            return all(close(r, v, dtype, what, True) for r, v in parts if not np.isnan(v))
        size = abs(value) if np.isfinite(abs(value)) else 0.0
        return close(result.real, value.real, dtype, what, self.strict_zero, size) and close(
            result.imag, value.imag, dtype, what, self.strict_zero, size
        )

    def __str__(self) -> str:
        return f"{self.value}" if self.other is None else f"from {self.value} to {self.other}"


ANYTHING = Truth(None, anything=True)


def info_of(dtype: str) -> Any:
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    if real not in ("float16", "bfloat16", "float32", "float64"):
        real = "float32"
    return ml_dtypes.finfo(getattr(ml_dtypes, real) if real == "bfloat16" else np.dtype(real))


def close(
    result: float, truth: float, dtype: str, what: str, strict_zero: bool, size: float = 0.0, absolute: float = 0.0
) -> bool:
    """Whether a part of a result is right up to the tolerance, including nan, infinities and, if strict, signs of 0."""
    from corners import NARROW_TOLERANCE, TOLERANCE

    info = info_of(dtype)
    if np.isnan(truth) or np.isnan(result):
        return bool(np.isnan(truth) and np.isnan(result))
    tiny, eps = float(info.tiny), float(info.eps)
    if result == truth:
        return not strict_zero or truth != 0 or np.signbit(result) == np.signbit(truth)
    if abs(truth) < 2 * tiny and abs(result) < 2 * tiny:
        return True
    allowed = (NARROW_TOLERANCE if dtype in ("float16", "bfloat16") else TOLERANCE)[what]
    if np.isinf(truth) and not np.isinf(result):
        return abs(result) >= float(info.max) * (1 - allowed * eps) and np.sign(result) == np.sign(truth)
    if np.isinf(result):
        return abs(truth) >= float(info.max) * (1 - allowed * eps) and np.sign(result) == np.sign(truth)
    bound = allowed * eps * max(abs(truth), size) + absolute
    if what != "value":
        bound += allowed * eps / 16
    return abs(result - truth) <= bound


def rounded(value: Any, dtype: str) -> Any:
    """A wide number as float64 or complex128 with the value that the dtype has."""
    with np.errstate(all="ignore"):
        if dtype in ("complex64", "complex128"):
            return complex(np.asarray(value).astype(dtype))
        if dtype in ("float16", "float32", "float64", "bfloat16"):
            real = getattr(ml_dtypes, dtype) if dtype == "bfloat16" else np.dtype(dtype)
            return float(np.asarray(float(np.real(value))).astype(real))
    return value


def truths(case: Any, dtype: str, columns: list[np.ndarray], what: str, argument: int) -> list[Truth]:
    """The truth at each point."""
    if what == "value":
        values = case.truth(dtype, *columns)
        return [
            ANYTHING if value is None else Truth(rounded(value, dtype), strict_zero=case.signed_zeros)
            for value in values
        ]
    return [_derivative(case, dtype, point, what, argument) for point in zip(*columns, strict=True)]


# --- derivatives ----------------------------------------------------------------------------------------

#: Decimal exponents of two numbers in place of infinity, which formulas of mpmath often do not take.
HUGE = (60, 90)


def _derivative(case: Any, dtype: str, point: tuple[Any, ...], what: str, argument: int) -> Truth:
    """By one-sided differences. They may differ (a kink), or one of them may not exist (an end of the domain)."""
    xs = [float(x) for x in point]
    if case.exact is None or any(np.isnan(x) for x in xs):
        return ANYTHING
    value = case.truth(dtype, *(np.array([x]) for x in point))[0]
    if value is None or np.isnan(np.real(value)):
        return ANYTHING
    if any(np.isinf(x) for i, x in enumerate(xs) if i != argument):
        return ANYTHING
    sides = [_one_sided(case, xs, argument, sign, what) for sign in (1, -1)]
    numbers = [float(s) for s in sides if s is not None]
    if not numbers:
        return ANYTHING
    if what == "second" and _derivative(case, dtype, point, "first", argument).other is not None:
        return ANYTHING  # at a kink
    numbers = [rounded(n, dtype) for n in numbers]
    if len(numbers) == 1 or close(*numbers, dtype, what, False):
        return Truth(numbers[0])
    return Truth(*numbers)


def _one_sided(case: Any, xs: list[float], argument: int, sign: int, what: str) -> Any:
    x = xs[argument]
    if np.isinf(x):
        if np.sign(x) != sign:
            return None
        pair = [_slope(case, xs, argument, mpf(sign) * mpf(10) ** e, sign, what) for e in HUGE]
    else:
        pair = [_slope(case, xs, argument, mpf(x), sign, what, e) for e in (40, 60)]
    return limit(*pair)


def limit(a: Any, b: Any) -> Any:
    """The limit of a sequence with these two elements, of which the second is much further on; None if there is none."""
    if a is None or b is None:
        return None
    if abs(a - b) <= mpf(10) ** -18 * max(abs(a), abs(b)):
        return b
    if max(abs(a), abs(b)) < mpf(10) ** -18:
        return mpf(0)
    if abs(b) > abs(a) * 1.2 and mpmath.sign(a) == mpmath.sign(b):
        return mpmath.sign(b) * mpmath.inf
    return None


def _slope(case: Any, xs: list[float], argument: int, x: Any, sign: int, what: str, digits: int = 40) -> Any:
    """The difference quotient of a step that is `digits` decimal places below `x`, on one side."""
    size = int(mpmath.log10(abs(x))) if x else 0
    step = mpf(sign) * mpf(10) ** (min(size, 0) - digits)
    order = 1 if what == "first" else 2
    others = sum(abs(int(mpmath.log10(abs(mpf(v))))) for i, v in enumerate(xs) if i != argument and v)
    needed = (abs(size) + digits) * order + others + 60
    with mpmath.workdps(needed):
        exact = lambda y: case.exact(*(y if i == argument else mpf(v) for i, v in enumerate(xs)))
        try:
            values = [exact(x + k * step) for k in range(1, order + 2)]
        except (ValueError, ZeroDivisionError, OverflowError, TypeError, mpmath.libmp.NoConvergence):
            return None
        if any(v is None or (isinstance(v, mpmath.mpc) and v.imag != 0) for v in values):
            return None
        values = [mpmath.re(v) for v in values]
        if not all(mpmath.isfinite(v) for v in values):
            return None
        if order == 1:
            return (values[1] - values[0]) / step
        return (values[2] - 2 * values[1] + values[0]) / step**2
