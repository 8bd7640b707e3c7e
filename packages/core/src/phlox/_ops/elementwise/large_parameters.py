"""Incomplete gamma and beta functions of large parameters, without differences of large numbers.

The factor ``x**a exp(-x) / gamma(a)`` and the one of the beta function are written by Stirling's series and by
``deviance(m) = m - log1p(m)``, whose argument is how far x is from where the factor is largest. Near there the loops of
`incomplete_gamma.py` need more turns the larger a is, and N. M. Temme's uniform expansion fewer terms: The asymptotic
expansion of the incomplete gamma functions, SIAM J. Math. Anal. 10 (1979).
"""

from __future__ import annotations

import functools
import math

from .error_functions import erfc
from .formula import Formula, exp, log, log1p, polynomial, sqrt

#: parameters from which Temme's expansion, and Stirling's series, have the precision of float64
LARGE, STIRLING = 20.0, 10.0
#: how far x may be from a, relative to a, for Temme's expansion; and the same of `eta`
NEAR, _NEAR_ETA = 0.3, 0.34
#: coefficients of 1/a, 1/a**3 … in log(gamma(a)) (DLMF 5.11.1)
_STIRLING = ((1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156))


def deviance(m: Formula, ratio: Formula) -> Formula:
    """``m - log1p(m)``; `ratio` is 1 + m, with the digits that m lacks where it is near -1."""
    # log1p(m) = 2 atanh(s) and m - 2 s = m s; the series of atanh for s up to 0.3
    s = m / (m + 2.0)
    series = polynomial(s * s, [1 / (2 * k + 3) for k in range(15)])
    return (abs(s) < 0.3).where(s * (m - 2.0 * s * s * series), m - log(ratio))


def remainder(a: Formula, terms: int = len(_STIRLING)) -> Formula:
    """``log(gamma(a)) - ((a - 1/2) log(a) - a + log(2 pi) / 2)``, for large a."""
    return polynomial(1.0 / (a * a), [above / below for above, below in _STIRLING[:terms]]) / a


def digamma_remainder(a: Formula) -> Formula:
    """``digamma(a) - log(a)`` for large a."""
    terms = [-(2 * k + 1) * above / below for k, (above, below) in enumerate(_STIRLING)]
    return (polynomial(1.0 / (a * a), terms) / a - 0.5) / a


def log_quotient(m: Formula, ratio: Formula) -> Formula:
    """``log1p(m)``; `ratio` is as in `deviance`."""
    return (abs(m) < 0.5).where(log1p(m), log(ratio))


def log_gamma_factor(a: Formula, x: Formula) -> Formula:
    """``a log(x) - x - log(gamma(a))`` for large a."""
    # By Stirling's series a log(x) - x and log(gamma(a)) share their large terms. What is left of them is a * deviance,
    # which is small where x is near a.
    return 0.5 * log(a / (2 * math.pi)) - a * deviance((x - a) / a, x / a) - remainder(a)


def log_gamma_factor_slopes(a: Formula, x: Formula) -> tuple[Formula, Formula]:
    """The derivatives of `log_gamma_factor` by a and by x."""
    return log_quotient((x - a) / a, x / a) - digamma_remainder(a), (a - x) / x


def _beta_quotients(a: Formula, b: Formula, x: Formula) -> list[tuple[Formula, Formula]]:
    """How far x is from a / (a + b), and 1 - x from b / (a + b), as the arguments of `deviance`."""
    total, rest = a + b, 1.0 - x
    moved = x * b - a * rest
    return [(moved / a, x / a * total), (-moved / b, rest / b * total)]


def log_beta_factor(a: Formula, b: Formula, x: Formula) -> Formula:
    """``log(x**a (1 - x)**b gamma(a + b) / (gamma(a) gamma(b)))`` for large a and b."""
    total = a + b
    small = remainder(total) - remainder(a) - remainder(b)
    for parameter, quotients in zip((a, b), _beta_quotients(a, b, x), strict=True):
        small = small - parameter * deviance(*quotients)
    return 0.5 * log(a / total * b / (2 * math.pi)) + small


def log_beta_factor_slopes(a: Formula, b: Formula, x: Formula) -> tuple[Formula, Formula, Formula]:
    """The derivatives of `log_beta_factor` by a, b and x."""
    above, below = _beta_quotients(a, b, x)
    total = digamma_remainder(a + b)
    by_x = -above[0] * (a / x) / (1.0 - x)
    return (
        log_quotient(*above) - digamma_remainder(a) + total,
        log_quotient(*below) - digamma_remainder(b) + total,
        by_x,
    )


def log_gamma_ratio(a: Formula, b: Formula) -> Formula:
    """``log(gamma(a + b) / gamma(a))`` for large a."""
    small = remainder(a + b) - remainder(a)
    return (a - 0.5) * log1p(b / a) + b * (log(a + b) - 1.0) + small


@functools.cache
def _terms(eps: float) -> tuple[tuple[float, ...], ...]:
    """Row k has the coefficients of the powers of eta in the term with ``a**-k``, as many as matter for `LARGE`.

    With alpha of DLMF 8.12.11 and gamma of 5.11.5, row 0 is ``(n + 2) alpha[n + 2]``, and row k is
    ``(-1)**k gamma[k] row_0[n] + (n + 2) row_k-1[n + 2]``: A. R. DiDonato and A. H. Morris, Computation of the
    incomplete gamma function ratios and their inverse, ACM TOMS 12 (1986).
    """
    from fractions import Fraction  # slow to import, as it imports `decimal`

    rows, columns = 14, 26
    # Each row has two coefficients less than the row before.
    count = columns + 2 * rows + 3
    alpha = [Fraction(0), Fraction(1), Fraction(1, 3)]
    for n in range(3, count):
        total = alpha[n - 1] - sum(j * alpha[j] * alpha[n - j + 1] for j in range(2, n))
        alpha.append(total / (n + 1))
    first = [Fraction(-1, 3), *((n + 2) * alpha[n + 2] for n in range(1, count - 2))]
    # exp of Stirling's series: the coefficients of a**-k in gamma(a) / its leading term
    logs = [Fraction(0)] * (rows + 1)
    logs[1 : rows + 1 : 2] = [Fraction(*pair) for pair in _STIRLING]
    stirling = [Fraction(1)]
    for k in range(1, rows):
        stirling.append(sum((j * logs[j] * stirling[k - j] for j in range(1, k + 1)), Fraction(0)) / k)
    terms, row = [], first
    for k in range(rows):
        if k:
            row = [(-1) ** k * stirling[k] * first[n] + (n + 2) * row[n + 2] for n in range(len(row) - 2)]
        scale = LARGE**-k
        needed = [n for n in range(columns) if abs(float(row[n])) * _NEAR_ETA**n * scale > eps / 16]
        if not needed:
            break
        terms.append(tuple(float(c) for c in row[: needed[-1] + 1]))
    return tuple(terms)


def _eta(a: Formula, x: Formula) -> tuple[Formula, Formula]:
    """The deviance of x from a, and eta: eta²/2 is the deviance, and eta has the sign of x - a."""
    far = deviance((x - a) / a, x / a)
    root = sqrt(2.0 * far)
    return far, (x < a).where(-root, root)


def temme(a: Formula, x: Formula, eps: float) -> tuple[Formula, Formula]:
    """The incomplete gamma function and 1 minus it, where `is_near`."""
    far, eta = _eta(a, x)
    inverse = 1.0 / a
    total = x.full(0)
    for row in _terms(eps)[::-1]:
        total = total * inverse + polynomial(eta, row)
    rest = total * exp(-(a * far)) / sqrt(2 * math.pi * a)
    scaled = sqrt(a * far)
    scaled = (x < a).where(-scaled, scaled)
    # Both tails are computed, as 1 minus one of them would lose the digits of the smaller one.
    lower, upper = (0.5 * Formula(erfc(z.x)) for z in (-scaled, scaled))
    return lower - rest, upper + rest


def temme_by_a(a: Formula, x: Formula, eps: float) -> tuple[Formula, Formula]:
    """The derivatives by a of the incomplete gamma function and of a sample, where `is_near`.

    All terms of the first have the factor ``exp(-a deviance)``, and so has the density, by which it is divided in the
    second.
    """
    far, eta = _eta(a, x)
    moved, inverse = (x - a) / a, 1.0 / a
    # The sum of `temme`, and its derivatives by eta and by 1 / a
    total = by_eta = by_inverse = x.full(0)
    for row in _terms(eps)[::-1]:
        by_inverse = by_inverse * inverse + total
        total = total * inverse + polynomial(eta, row)
        by_eta = by_eta * inverse + polynomial(eta, [n * c for n, c in enumerate(row)][1:] or [0.0])
    # The derivative of eta by a is -moved / (a eta), that of a deviance is -log(x / a).
    middle = eta.equals(0.0)
    safe, logarithm = middle.where(1.0, eta), log1p(moved)
    slope = by_eta * middle.where(1.0, moved / safe) + by_inverse * inverse
    slope = middle.where(1.0, logarithm / safe) + total * (logarithm - 0.5 * inverse) - slope * inverse
    return -slope * exp(-(a * far)) / sqrt(2 * math.pi * a), slope * (x / a) * exp(remainder(a))


def is_near(a: Formula, x: Formula) -> Formula:
    """Mask of the elements for which `temme` holds."""
    return (a >= LARGE) & (abs(x - a) < a * NEAR)
