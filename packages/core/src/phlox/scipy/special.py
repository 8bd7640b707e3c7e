"""``phlox.scipy.special``: special functions."""

from typing import Any

from .. import lax
from ..nn import logsumexp, sigmoid as _sigmoid
from ..numpy._promote import check, promote_inexact

__all__ = ["erf", "erfc", "erfinv", "expit", "logsumexp"]


def erf(x: Any) -> Any:
    """The error function, elementwise (as ``scipy.special.erf``).

    >>> erf(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return lax.erf(*promote_inexact(*check("erf", x)))


def erfc(x: Any) -> Any:
    """1 - erf(x), elementwise (as ``scipy.special.erfc``).

    >>> erfc(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return lax.erfc(*promote_inexact(*check("erfc", x)))


def erfinv(x: Any) -> Any:
    """The inverse of erf, elementwise (as ``scipy.special.erfinv``).

    >>> erfinv(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return lax.erf_inv(*promote_inexact(*check("erfinv", x)))


def expit(x: Any) -> Any:
    """1 / (1 + exp(-x)), elementwise (as ``scipy.special.expit``).

    >>> expit(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return _sigmoid(x)
