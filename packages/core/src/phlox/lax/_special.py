"""Special functions of ``phlox.lax``, elementwise, without promotion: operands must have one dtype."""

from __future__ import annotations

from .._base.docstrings import docs_from
from .._operands.checks import check, type_of
from .._ops.elementwise import incomplete_beta, incomplete_gamma, special
from .._ops.elementwise.families import FLOAT, broadcast_shape, check_kind, repeat_to, same_dtype
from ..typing import Array, ArrayLike


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function, elementwise (as ``scipy.special.gammainc``).

    Args:
      a: parameter, positive: array of floats.
      x: upper limit of the integral, not negative, of the dtype of `a`. Axes of length 1 and scalars broadcast.

    Returns:
      An array of the broadcast shape, of the dtype of the operands: from 0 to 1, nan outside of the domain.

    Raises:
      DtypeError: the elements are not floats, or the dtypes differ.
      ShapeError: the shapes are incompatible.

    >>> igamma(1.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return incomplete_gamma.igamma(*check("igamma", a, x))


@docs_from(igamma)
def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """``1 - igamma(a, x)``, elementwise (as ``scipy.special.gammaincc``).

    Args:
      x: lower limit of the integral, not negative, of the dtype of `a`. Axes of length 1 and scalars broadcast.

    >>> igammac(1.0, 0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return incomplete_gamma.igammac(*check("igammac", a, x))


@docs_from(igamma)
def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of ``igamma(a, x)`` with respect to `a`, elementwise (as ``jax.lax.igamma_grad_a``).

    It has no derivative itself.

    Args:
      a, x: arrays of floats, of one dtype, as for `igamma`. Axes of length 1 and scalars broadcast.

    Returns:
      An array of the broadcast shape, of the dtype of the operands.

    >>> igamma_grad_a(1.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return incomplete_gamma.igamma_grad_a(*check("igamma_grad_a", a, x))


@docs_from(igamma)
def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order `m` of `digamma`, elementwise (as ``scipy.special.polygamma``).

    It can be differentiated with respect to `x` only.

    Args:
      m: orders, whole numbers that are not negative: array of floats.
      x: array of the dtype of `m`. Axes of length 1 and scalars broadcast.

    Returns:
      An array of the broadcast shape, of the dtype of the operands; nan where `m` is not an order.

    >>> round(float(polygamma(1.0, 1.0)), 3)
    1.645
    """
    return special.polygamma(*check("polygamma", m, x))


@docs_from(igamma_grad_a)
def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Hurwitz' zeta function, elementwise: the sum of ``(q + k)**-x`` over k = 0, 1, … (as ``scipy.special.zeta``).

    It has no derivative.

    Args:
      x: exponents, above 1: array of floats.
      q: array of the dtype of `x`. Axes of length 1 and scalars broadcast.

    >>> round(float(zeta(2.0, 1.0)), 3)
    1.645
    """
    return special.zeta(*check("zeta", x, q))


@docs_from(igamma)
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function, elementwise (as ``scipy.special.betainc``).

    Unlike JAX's it has derivatives with respect to all three; those by `a` and `b` have none in turn.

    Args:
      a, b: parameters, positive: arrays of floats.
      x: upper limit of the integral, from 0 to 1. All three have one dtype. Axes of length 1 and scalars broadcast.

    >>> round(float(betainc(1.0, 1.0, 0.5)), 3)
    0.5
    """
    return incomplete_beta.regularized_incomplete_beta(*check("betainc", a, b, x))


@docs_from(igamma_grad_a)
def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of a sample `x` of the gamma distribution with respect to its parameter `a`, elementwise (as
    ``jax.lax.random_gamma_grad``).

    Args:
      a: parameter, positive: array of floats.
      x: samples, not negative, of the dtype of `a`. Axes of length 1 and scalars broadcast.

    >>> random_gamma_grad(np.float32(1.0), np.float32(0.0))
    Array(0., dtype=float32)
    """
    a, x = check("random_gamma_grad", a, x)
    avals = [type_of(a), type_of(x)]
    check_kind("random_gamma_grad", avals[0], FLOAT)
    same_dtype("random_gamma_grad", avals)
    shape = broadcast_shape("random_gamma_grad", avals)
    return incomplete_gamma.sample_derivative(repeat_to(a, shape), repeat_to(x, shape))
