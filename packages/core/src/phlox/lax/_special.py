"""Special functions of ``phlox.lax``, elementwise, without promotion: operands must have one dtype."""

from __future__ import annotations

from typing import Any

from .._ops import incomplete, special
from .._ops.families import FLOAT, broadcast_shape, check_kind, repeat_to, same_dtype
from ..numpy._promote import check, type_of
from ._elementwise import _binary, _f, _unary

bessel_i0e = _unary(
    special.bessel_i0e, "bessel_i0e", "exp(-abs(x)) times the modified Bessel function of order 0", "0.0", _f("1.")
)
bessel_i1e = _unary(
    special.bessel_i1e, "bessel_i1e", "exp(-abs(x)) times the modified Bessel function of order 1", "0.0", _f("0.")
)
digamma = _unary(special.digamma, "digamma", "The derivative of lgamma", "1.0", _f("-0.5772154"))
lgamma = _unary(special.lgamma, "lgamma", "log(abs(gamma(x)))", "1.0", _f("0."))
igamma = _binary(incomplete.igamma, "igamma", "The regularized lower incomplete gamma function", "1.0, 0.0", _f("0."))
igammac = _binary(incomplete.igammac, "igammac", "1 - igamma(a, x)", "1.0, 0.0", _f("1."))
igamma_grad_a = _binary(
    incomplete.igamma_grad_a, "igamma_grad_a", "The derivative of igamma(a, x) by a", "1.0, 0.0", _f("0.")
)
polygamma = _binary(special.polygamma, "polygamma", "The m-th derivative of digamma", "1.0, 1.0", _f("1.6449342"))
zeta = _binary(special.zeta, "zeta", "Hurwitz' zeta function: the sum of (q + k)**-x", "2.0, 1.0", _f("1.6449342"))


def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function, elementwise. It has a derivative by `x` alone.

    >>> betainc(1.0, 1.0, 0.5)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return incomplete.regularized_incomplete_beta(*check("betainc", a, b, x))


def random_gamma_grad(a: Any, x: Any) -> Any:
    """How a sample `x` of the gamma distribution with parameter `a` moves with it, elementwise.

    >>> random_gamma_grad(np.float32(1.0), np.float32(0.0))
    Array(0., dtype=float32)
    """
    a, x = check("random_gamma_grad", a, x)
    avals = [type_of(a), type_of(x)]
    check_kind("random_gamma_grad", avals[0], FLOAT)
    same_dtype("random_gamma_grad", avals)
    shape = broadcast_shape("random_gamma_grad", avals)
    return incomplete.sample_derivative(repeat_to(a, shape), repeat_to(x, shape))
