"""Why results of `corners` differ from the truth: each difference has one of these decisions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from corner_truth import info_of


@dataclasses.dataclass(frozen=True)
class Decision:
    """A reason, the letter by which the page refers to it, and the differences to which it applies."""

    letter: str
    reason: str
    applies: Callable[[Any], bool]


DECISIONS: list[Decision] = []


def decide(letter: str, reason: str, applies: Callable[[Any], bool]) -> None:
    DECISIONS.append(Decision(letter, " ".join(reason.split()), applies))


def decision(difference: Any) -> Decision | None:
    """The first decision that applies."""
    return next((d for d in DECISIONS if d.applies(difference)), None)


def _names(*names: str) -> Callable[[Any], bool]:
    return lambda d: d.name in names


def _is_nan(x: Any) -> bool:
    number = _number(x)
    return number is not None and bool(np.isnan(number))


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


def _is_small(d: Any) -> bool:
    """Whether the truth is below a thousand of the smallest normal number of the dtype."""
    truth = _number(getattr(d.truth, "value", d.truth))
    return truth is not None and abs(truth) < 1000 * float(info_of(d.dtype).tiny)


def _is_complex(d: Any) -> bool:
    return d.dtype.startswith("complex")


def _both_infinite(d: Any) -> bool:
    result, truth = _number(d.result), _number(getattr(d.truth, "value", d.truth))
    return result is not None and truth is not None and bool(np.isinf(result) and np.isinf(truth))


ENTROPIES = ("entr", "kl_div", "rel_entr", "xlogy", "xlog1py", "boxcox", "boxcox1p")
INCOMPLETE = ("scipy.special.betainc", "scipy.special.gammainc", "scipy.special.gammaincc")
HALF = ("float16", "bfloat16")
DERIVATIVES = ("first", "second")
RIGHT_AT_INFINITY = ("numpy.divide", "numpy.arctan2", "numpy.logaddexp", "numpy.logaddexp2", "numpy.angle")

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
    "t",
    """A part of a complex operand is as small as the smallest normal number, beside one of ordinary size: its square or
    its product with the other part underflows, where the function has a branch point or a pole.""",
    lambda d: _is_complex(d) and "tiny" in d.corners,
)
decide(
    "z",
    """At the pole itself, -0.0: the sign of the infinite derivative is that of 1 / -0.0.""",
    lambda d: d.what in DERIVATIVES and "zero" in d.corners and _both_infinite(d),
)
decide(
    "o",
    """A derivative at infinity, or where the square of the operand overflows: the formula has inf - inf or 0 * inf, and
    is nan, infinite or 0, as in jax. `arctan2`, `angle`, `logaddexp` and quotients are right there, and
    `hypot` where it does not overflow itself.""",
    lambda d: (
        d.what in DERIVATIVES
        and (bool(d.corners & {"largest", "inf"}) or d.name in ("scipy.special.expi", "scipy.special.i1"))
        and d.name not in RIGHT_AT_INFINITY
    ),
)
decide(
    "k",
    """nan where the derivative is infinite: an end of the domain, or a pole.""",
    lambda d: d.what in DERIVATIVES and _is_nan(d.result) and "inf" in str(d.truth),
)
decide(
    "u",
    """A factor of the result is subnormal, and counts as zero: results below a thousand of the smallest normal number may
    be 0.""",
    lambda d: d.what == "value" and _number(d.result) == 0 and _is_small(d),
)
decide(
    "g",
    """`gelu` by tanh, the default: 1 + tanh(x) is 0 where tanh rounds to -1, as in jax; `approximate=False` has all digits.""",
    lambda d: d.name == "nn.gelu" and d.what == "value" and d.dtype not in HALF,
)
decide(
    "h",
    """Of half precision, each operation is rounded: a sum or a product of two results loses another bit or two, and what
    is left of 1 + tanh(x) or of the logarithm of a sum near 1 more.""",
    lambda d: d.dtype in HALF and d.what == "value" and _distance(d) < 0.7,
)
decide(
    "a",
    """`arctan2` has no derivative at the origin: nan, as in jax.""",
    lambda d: d.name == "numpy.arctan2" and d.what == "first" and "zero" in d.corners,
)
decide(
    "i",
    """Integers: a quotient by 0 is -1 or -2 where NumPy warns and has 0, and `gcd` of the least number may be negative, as
    in jax.""",
    lambda d: d.corners == {"integers"} and d.name in ("numpy.floor_divide", "numpy.gcd"),
)
decide(
    "b",
    """Derivatives of `beta`, `betaln` and their relatives where one operand is tiny: differences of numbers as large as its
    reciprocal.""",
    lambda d: d.name in ("scipy.special.beta", "scipy.special.betaln") and d.what == "first",
)
decide(
    "v",
    """Entropies at 0 and Box-Cox transforms there: the derivative is 0 or nan where it is infinite, as in jax.""",
    lambda d: d.what in DERIVATIVES and d.name.removeprefix("scipy.special.") in ENTROPIES,
)
decide(
    "r",
    """More than the tolerance from the truth, and less than a thousandth. Of special functions their page has figures.""",
    lambda d: _distance(d) < 1e-3,
)
decide(
    "y",
    """An end of the domain: SciPy has nan or an infinity of one sign; phlox, as jax, the limit, or nan at poles from whose
    sides the limits differ.""",
    lambda d: (
        d.name.startswith("scipy.special.") and (d.what == "value" or (d.name in INCOMPLETE and "zero" in d.corners))
    ),
)
