"""Polynomials as vectors of coefficients, the highest power first: values, sums, products, quotients, derivatives."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, ShapeError
from ..._ir import dtypes
from ..._ir.dimensions import is_symbolic, surely_at_least
from ..._operands.checks import check, integer, type_of
from ..._operands.promotion import promote_dtypes, promote_inexact, to_dtype
from ..._transform.sharding_types import in_device_memory
from ...typing import Array, ArrayLike
from .._creation.fill import arange, ones, zeros
from .._creation.from_data import asarray
from .._elementwise.binary import add, divide, multiply
from .._elementwise.choose import where
from .._elementwise.unary import absolute
from .._indexing.reading import diag
from .._manipulation.broadcasting import broadcast_shapes, broadcast_to
from .._manipulation.edit import trim_zeros
from .._manipulation.joining import concatenate
from .._manipulation.repeat import roll
from .._manipulation.shapes import atleast_1d
from .._searches.sorting import argsort
from .convolve import convolve


def _length(p: Any) -> int:
    aval = type_of(p)
    if not aval.shape:
        raise ShapeError(f"a polynomial is a vector of its coefficients, got {aval.short}", instead="x.reshape(1)")
    return aval.shape[0]


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int | None = None) -> Array:
    """The values at `x` of the polynomial with coefficients `p` along its first axis (as ``numpy.polyval``).

    Args:
      p: coefficients: an array of shape (degree + 1, ...), the highest power first.
      x: points at which to evaluate: an array that broadcasts against the axes of `p` after the first.
      unroll: number of coefficients up to which the operations are written out instead of a loop; None for 8.

    Returns:
      An array of the broadcast shape, of the promoted dtype.

    >>> jnp.polyval(jnp.array([1, 0, 2]), jnp.array([1, 3]))
    Array([ 3, 11], dtype=int32)
    """
    return _polyval(*check("polyval", p, x), unroll=unroll)


@functools.partial(jit, static_argnames="unroll")
def _polyval(p: Any, x: Any, unroll: int | None) -> Any:
    from ...lax import broadcast_to_rank, polynomial, scan  # here, as `phlox.numpy` does not wait for lax

    p, x = (to_dtype(v, type_of(v).dtype) for v in promote_dtypes(p, x))
    shape = broadcast_shapes(type_of(p).shape[1:], type_of(x).shape)
    if is_symbolic(_length(p)):  # no list of coefficients has that length
        start = broadcast_to(to_dtype(0, type_of(x).dtype), shape)
        return scan(lambda y, coefficient: (add(multiply(y, x), coefficient), None), start, p)[0]
    coefficients = [p[i] for i in range(_length(p))][::-1]
    if not coefficients:
        return broadcast_to(to_dtype(0, type_of(x).dtype), shape)
    x, *coefficients = (broadcast_to_rank(v, len(shape)) if type_of(v).ndim else v for v in (x, *coefficients))
    return polynomial(x, coefficients, unroll=unroll)


@jit(inline=True)
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials (as ``numpy.polyadd``).

    Args:
      a1, a2: vectors of coefficients, the highest power first.

    Returns:
      A vector of coefficients of the promoted dtype, of the length of the longer argument.

    >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([10, 20, 30]))
    Array([10, 21, 32], dtype=int32)
    """
    a1, a2 = promote_dtypes(*check("polyadd", a1, a2))
    n = _length(a1) - _length(a2)
    # Of symbolic lengths one comparison may be decided where the other is not.
    short, long, n = (a2, a1, n) if surely_at_least(n, 0) or not -n >= 0 else (a1, a2, -n)
    return concatenate([long[:n], add(long[n:], short)])


@jit(inline=True)
@docs_from(polyadd)
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials, the first minus the second (as ``numpy.polysub``).

    >>> jnp.polysub(jnp.array([10, 20, 30]), jnp.array([1, 2]))
    Array([10, 19, 28], dtype=int32)
    """
    a1, a2 = promote_dtypes(*check("polysub", a1, a2))
    return polyadd(a1, -asarray(a2))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials (as ``numpy.polymul``).

    Args:
      a1, a2: vectors of coefficients, the highest power first; integers become floats.
      trim_leading_zeros: True drops leading zeros of both first, which requires that they are not traced.

    Returns:
      A vector of floats or complex numbers, of length ``len(a1) + len(a2) - 1``.

    >>> jnp.polymul(jnp.array([1, 2]), jnp.array([1, -2]))
    Array([ 1.,  0., -4.], dtype=float32)
    """
    factors = promote_inexact(*check("polymul", a1, a2))
    if trim_leading_zeros and any(_length(x) > 1 for x in factors):
        factors = [trim_zeros(x, "f") for x in factors]
    first, second = (x if _length(x) else zeros(1, type_of(x).dtype) for x in factors)
    return convolve(first, second)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Quotient and remainder of the division of two polynomials (as ``numpy.polydiv``).

    Args:
      u, v: vectors of coefficients of dividend and divisor, the highest power first; integers become floats.
      trim_leading_zeros: True drops leading coefficients of the remainder that are nearly zero, which requires that the
        arguments are not traced; with False it has the length of `u`.

    Returns:
      A tuple (quotient, remainder) of vectors of floats or complex numbers.

    >>> jnp.polydiv(jnp.array([1.0, 0.0, -4.0]), jnp.array([1.0, 2.0]))
    (Array([ 1., -2.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    quotient, rest = _polydiv(*check("polydiv", u, v))
    if trim_leading_zeros:
        # JAX's tolerance, absolute for all sizes of coefficients
        nearly = np.sqrt(dtypes.finfo(type_of(rest).dtype).eps)
        length = _length(trim_zeros(where(absolute(rest) < nearly, 0, 1), "f"))
        rest = rest[_length(rest) - length :]
    return quotient, rest


@jit
def _polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    rest, v = promote_inexact(u, v)
    steps = _length(rest) - _length(v) + 1
    quotient = []
    # Products with the reciprocal, as in NumPy and JAX: quotients would be rounded differently.
    scale = divide(1.0, v[0])
    for k in range(steps):
        quotient.append(multiply(scale, rest[k]))
        rest = rest.at[k : k + _length(v)].add(-quotient[-1] * v)
    dtype = type_of(rest).dtype
    return (to_dtype(concatenate([q[None] for q in quotient]), dtype) if quotient else zeros(1, dtype)), rest


def _check_order(function: str, m: int) -> int:
    times = integer(function, "m", m)
    if times < 0:
        raise ArgumentError(f"{function}: m={times} times", instead="a number that is not negative")
    return times


@functools.partial(jit, inline=True, static_argnames="m")
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The `m`-th derivative of a polynomial (as ``numpy.polyder``).

    Args:
      p: vector of coefficients, the highest power first; integers become floats.
      m: order of the derivative, an integer, not traced.

    Returns:
      A vector of floats or complex numbers, shorter by `m`; empty where `p` is not longer than `m`.

    Raises:
      ArgumentError: `m` is negative.

    >>> jnp.polyder(jnp.array([1.0, 2.0, 3.0]))
    Array([2., 2.], dtype=float32)
    """
    (p,) = promote_inexact(*check("polyder", p))
    times = _check_order("polyder", m)
    if times == 0:
        return asarray(p)
    # k (k - 1) … (k - m + 1), as exact integers on the host
    factors = [math.perm(k, times) for k in reversed(range(times, _length(p)))]
    return multiply(p[: _length(p) - times], np.asarray(factors, np.float64).astype(type_of(p).dtype))


@functools.partial(jit, inline=True, static_argnames="m")
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The `m`-fold integral of a polynomial (as ``numpy.polyint``).

    Args:
      p: vector of coefficients, the highest power first; integers become floats.
      m: number of integrations, an integer, not traced.
      k: constants of integration: a number for all, or a vector of `m` numbers in the order of the integrations; None
        is 0.

    Returns:
      A vector of floats or complex numbers, longer by `m`.

    Raises:
      ArgumentError: `m` is negative.
      ShapeError: `k` does not have `m` elements.

    >>> jnp.polyint(jnp.array([2.0, 2.0]))
    Array([1., 2., 0.], dtype=float32)
    """
    p, k = promote_inexact(*check("polyint", p, 0 if k is None else k))
    times = _check_order("polyint", m)
    constants = atleast_1d(k)
    if _length(constants) == 1:
        constants = broadcast_to(constants, (times,))
    if type_of(constants).shape != (times,):
        raise ShapeError(f"polyint: {type_of(k).short} constants for {times} integrals")
    if times == 0:
        return asarray(p)
    total = _length(p) + times
    # The constants are integrated by the integrals that follow theirs, as often as their power says.
    divisors = [math.perm(power, min(power, times)) for power in reversed(range(total))]
    return divide(concatenate([p, constants]), np.asarray(divisors, np.float64).astype(type_of(p).dtype))


@jit(inline=True)
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The coefficients of the polynomial with the given zeros and leading coefficient 1 (as ``numpy.poly``).

    Args:
      seq_of_zeros: vector of the n zeros, or a square matrix of n rows, whose characteristic polynomial is returned.
        Integers become floats.

    Returns:
      A vector of n + 1 coefficients, the highest power first, of floats or complex numbers; complex for a matrix.

    Raises:
      ShapeError: `seq_of_zeros` is neither a vector nor a square matrix.

    >>> jnp.poly(jnp.array([2.0, -2.0]))
    Array([ 1.,  0., -4.], dtype=float32)
    """
    (roots,) = promote_inexact(*check("poly", seq_of_zeros))
    roots = in_device_memory(atleast_1d(roots))
    shape = type_of(roots).shape
    if len(shape) == 2 and shape[0] == shape[1] and shape[0]:
        from .._linalg.decompositions import eigvals  # imported late, to keep `import phlox` fast

        roots = eigvals(roots)
        shape = type_of(roots).shape
    if len(shape) != 1:
        raise ShapeError(f"poly: takes a vector, got {type_of(roots).short}", shapes=[shape])
    dtype = type_of(roots).dtype
    if not shape[0]:
        return ones((), dtype)
    product = ones(1, dtype)
    for i in range(shape[0]):
        product = convolve(product, concatenate([ones(1, dtype), -roots[i : i + 1]]))
    return to_dtype(product, dtype)


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The zeros of the polynomial with coefficients `p` (as ``numpy.roots``).

    Args:
      p: vector of n coefficients, the highest power first.
      strip_zeros: True drops leading zeros, which is not possible in traced functions; with False, the result ends with
        a nan for each leading zero.

    Returns:
      A vector of n - 1 complex numbers, fewer by the number of leading zeros that were dropped.

    Raises:
      ShapeError: `p` has more than one axis.
      ConcretizationTypeError: `p` is traced and `strip_zeros` is true.

    >>> jnp.roots(jnp.array([1.0, 0.0, 0.0])).shape
    (2,)
    """
    (p,) = promote_inexact(*check("roots", p))
    p = atleast_1d(p)
    aval = type_of(p)
    if aval.ndim != 1:
        raise ShapeError(f"roots: coefficients are a vector, got {aval.short}", shapes=[aval.shape])
    n = aval.shape[0]
    wide = dtypes.to_complex(aval.dtype) if dtypes.kind(aval.dtype) != "c" else aval.dtype
    if n < 2:
        return zeros(0, wide)
    nonzero: Any = p != 0
    leading = where(nonzero.any(), nonzero.argmax(), n)
    if not strip_zeros:
        return _roots_behind(p, leading)
    # The length of the result depends on values here, which a traced polynomial does not have.
    first = int(leading)
    if first >= n - 1:
        return zeros(0, wide)
    return _companion_roots(p[first:])  # type: ignore[index]


def _companion_roots(p: Any) -> Any:
    """The eigenvalues of the companion matrix of a polynomial whose first coefficient is not zero."""
    n = _length(p)
    below = diag(ones(n - 2, type_of(p).dtype), -1)
    from .._linalg.decompositions import eigvals  # imported late, to keep `import phlox` fast

    return eigvals(below.at[0, :].set(divide(-p[1:], p[0])))


@jit
def _roots_behind(p: Any, leading: Any) -> Any:
    n = _length(p)
    # If all coefficients are 0, ones give the eigenvalues finite numbers to work with. No root is known then.
    p = where(leading == n, to_dtype(1, type_of(p).dtype), p)
    # Leading zeros, rolled to the end, add roots that are 0. These are sorted behind the others and become nan.
    roots = _companion_roots(roll(p, -leading))
    order = argsort((roots == 0).astype(np.int32))
    known = arange(n - 1) < n - 1 - leading
    return where(known, roots[order], np.asarray(complex(np.nan, np.nan), type_of(roots).dtype))
