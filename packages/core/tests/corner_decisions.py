"""Why results of `corners` differ from the truth: each difference has one of these decisions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Decision:
    """A reason, the letter by which the page refers to it, and the differences to which it applies."""

    letter: str
    reason: str
    applies: Callable[[Any], bool]


def _is_nan(x: Any) -> bool:
    return bool(np.isnan(x))


def _named(*names: str) -> Callable[[Any], bool]:
    return lambda d: d.name in names


DECISIONS: list[Decision] = []


def decide(letter: str, reason: str, applies: Callable[[Any], bool]) -> None:
    DECISIONS.append(Decision(letter, " ".join(reason.split()), applies))


def decision(difference: Any) -> Decision | None:
    """The first decision that applies."""
    return next((d for d in DECISIONS if d.applies(difference)), None)


def _names(*names: str) -> Callable[[Any], bool]:
    return lambda d: d.name in names


def _number(x: Any) -> complex | None:
    """A result or truth as a number; None for anything else, such as an interval or an error."""
    try:
        return complex(x)
    except (TypeError, ValueError):
        return None


def _distance(d: Any) -> float:
    """The relative distance of two finite numbers, else infinity."""
    result, truth = _number(d.result), _number(getattr(d.truth, "value", d.truth))
    if result is None or truth is None or not (np.isfinite(result) and np.isfinite(truth)):
        return np.inf
    return float(abs(result - truth) / max(abs(truth), 1e-300)) if truth or result else 0.0


def _is_complex(d: Any) -> bool:
    return d.dtype.startswith("complex")


def _both_infinite(d: Any) -> bool:
    result, truth = _number(d.result), _number(getattr(d.truth, "value", d.truth))
    return result is not None and truth is not None and bool(np.isinf(result) and np.isinf(truth))


HALF = ("float16", "bfloat16")
DERIVATIVES = ("first", "second")

decide(
    "s",
    """XLA sets processors to treat subnormal numbers of float32, float64 and bfloat16 as zero, operands as well as
    results. Functions of bits (`frexp`, `nextafter`, `sign`) and XLA's own powers may answer something between.""",
    lambda d: d.flushed or (bool(d.corners & {"subnormal"}) and not _is_complex(d)),
)
decide(
    "n",
    """`norm` and `std` have a kink where all numbers are equal or zero: the derivative there is nan, as in jax.""",
    lambda d: d.name in ("numpy.std", "numpy.linalg.norm") and d.what == "first" and " to " in str(d.truth),
)
decide(
    "q",
    """Computed by squares, which overflow from the root of the largest number on, and underflow below that of the
    smallest, as in NumPy. `hypot` and `abs` of complex numbers are scaled; where numbers may be so large, divide them by
    their maximum first.""",
    _names("numpy.std", "numpy.var", "numpy.linalg.norm", "nn.squareplus", "nn.sparse_plus"),
)
decide(
    "c",
    """A complex operand has an infinite, nan, or very large part. XLA's formulas are not those of C99's Annex G: an
    infinity may come out as nan, or with a nan beside it.""",
    lambda d: _is_complex(d) and bool(d.corners & {"inf", "nan", "largest"}),
)
decide(
    "d",
    """Division of or by a complex zero: infinite or nan parts, with signs other than C's.""",
    lambda d: _is_complex(d) and "zero" in d.corners and not np.isfinite(_number(d.result) or 0),
)
decide(
    "e",
    """The sign of a zero part of a complex result, or a part that has underflowed beside a larger one. On which side of a
    cut an operand lies is kept by all functions that have cuts.""",
    lambda d: _is_complex(d) and _distance(d) < 1e-5,
)
decide(
    "z",
    """At the pole itself, -0.0: the sign of the infinite derivative is that of 1 / -0.0.""",
    lambda d: d.what in DERIVATIVES and "zero" in d.corners and _both_infinite(d),
)
decide(
    "o",
    """A derivative at infinity, or where the square of the operand overflows: the formula has inf - inf or 0 * inf, and
    is nan, infinite or 0, as in jax. Those of `abs`, `hypot`, `arctan2`, `logaddexp`, quotients and of functions of
    `phlox.nn` up to the largest third of exponents are right.""",
    lambda d: d.what in DERIVATIVES and bool(d.corners & {"largest", "inf"}),
)
decide(
    "h",
    """Of half precision, each operation is rounded: a sum or a product of two results loses another bit or two.""",
    lambda d: d.dtype in HALF and d.what == "value" and _distance(d) < 0.1,
)
decide(
    "r",
    """More than 64 eps from the truth, and less than a thousandth: the page on special functions has the figures.""",
    lambda d: d.what == "value" and _distance(d) < 1e-3,
)
