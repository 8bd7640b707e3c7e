"""Associated Legendre functions and spherical harmonics."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import DtypeError, ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._operands.checks import check, check_one, integer, type_of
from ...typing import Array


def _points(function: str, m: Any, n: Any, z: Any) -> tuple[int, Any]:
    m, n, z = integer(function, "m", m), integer(function, "n", n), check_one(function, z)
    if type_of(z).dtype not in (np.float32, np.float64):
        raise DtypeError(f"{function}: z must be float32 or float64, got {type_of(z).short}")
    if type_of(z).ndim != 1:
        raise ShapeError(f"{function}: z must be a vector, got {type_of(z).short}", shapes=[type_of(z).shape])
    if m != n:
        raise UnsupportedError(f"{function}: m={m} and n={n} must be equal", instead=f"m={max(m, n)}, n={max(m, n)}")
    return m, z


def _root(z: Any) -> Any:
    """sqrt(1 - z**2)"""
    # Not 1 - z * z, which cancels close to 1.
    return jnp.sqrt((1 - z) * (1 + z))


def _legendre(size: int, z: Any, root: Any, normalized: bool) -> list[Any]:
    """P(m, n) for all m up to `size`, an array [m, z] for each n: the diagonal, then up in n for all m at once.

    `root` is sqrt(1 - z**2).
    """
    m = np.arange(size + 1)
    dtype = type_of(z).dtype

    def column(numbers: Any) -> Any:
        return jnp.asarray(numbers, dtype)[:, None]

    diagonal = jnp.full_like(z, math.sqrt(0.25 / math.pi) if normalized else 1)
    here, before, columns = jnp.zeros((size + 1, *z.shape), dtype), jnp.zeros((size + 1, *z.shape), dtype), []
    for degree in range(size + 1):
        if degree:
            # P(m, m) = -(2 m - 1) sqrt(1 - z**2) P(m - 1, m - 1). Normalized values have a recurrence of their own, as
            # without normalization the diagonal, (2 m - 1)!!, overflows float32 at order 29.
            diagonal = -diagonal * root * (math.sqrt((2 * degree + 1) / (2 * degree)) if normalized else 2 * degree - 1)
            inside = m < degree
            if normalized:
                first = np.sqrt((4 * degree**2 - 1) / np.where(inside, degree**2 - m * m, 1))
                second = np.sqrt(
                    np.where(inside, (degree - 1) ** 2 - m * m, 0).clip(0) / max(4 * (degree - 1) ** 2 - 1, 1)
                )
                after = column(first) * (z * here - column(second) * before)
            else:
                down = np.where(inside, degree - m, 1)
                after = column((2 * degree - 1) / down) * z * here - column((degree + m - 1) / down) * before
            here, before = jnp.where(inside[:, None], after, 0), here
        here = jnp.where((m == degree)[:, None], diagonal, here)
        columns.append(here)
    return columns


def lpmn_values(m: int, n: int, z: Array, is_normalized: bool) -> Array:
    """Associated Legendre functions of all orders and degrees up to `n`, with the Condon-Shortley phase.

    Args:
      m, n: the highest order and degree, which must be equal.
      z: vector of numbers from -1 to 1, float32 or float64.
      is_normalized: whether to multiply by the factors of spherical harmonics.

    Returns:
      An array of shape [n + 1, n + 1, len(z)], by order, degree and number; 0 where the order is above the degree.

    Raises:
      UnsupportedError: `m` and `n` differ.
      ShapeError: `z` is not a vector.
      DtypeError: `z` is of another dtype.

    >>> round(float(lpmn_values(2, 2, np.array([0.5], np.float32), False)[0, 2, 0]), 3)
    -0.125
    """
    size, z = _points("lpmn_values", m, n, z)
    return _values(jnp.asarray(z), size, bool(is_normalized))


@functools.partial(jit, static_argnums=(1, 2))
def _values(z: Any, size: int, normalized: bool) -> Any:
    return jnp.stack(_legendre(size, z, _root(z), normalized), axis=1)


@docs_from(lpmn_values)
def lpmn(m: int, n: int, z: Array) -> tuple[Array, Array]:
    """Associated Legendre functions of all orders and degrees up to `n`, and their derivatives.

    Args:
      z: vector of numbers between -1 and 1, float32 or float64.

    Returns:
      The functions, as `lpmn_values` gives them, and their derivatives by `z`, of the same shape.

    >>> round(float(lpmn(2, 2, np.array([0.5], np.float32))[1][0, 2, 0]), 3)
    1.5
    """
    size, z = _points("lpmn", m, n, z)
    return _values_and_slopes(jnp.asarray(z), size)


@functools.partial(jit, static_argnums=(1,))
def _values_and_slopes(z: Any, size: int) -> tuple[Any, Any]:
    rows = _legendre(size, z, _root(z), False)
    m = jnp.arange(size + 1, dtype=type_of(z).dtype)[:, None]
    slopes = [jnp.zeros_like(rows[0])]
    for degree in range(1, size + 1):
        # P'(n) = ((n + m) P(n - 1) - n z P(n)) / (1 - z**2), where P(n - 1) is 0 for m = n
        slopes.append(((degree + m) * rows[degree - 1] - degree * z * rows[degree]) / ((1 - z) * (1 + z)))
    return jnp.stack(rows, axis=1), jnp.stack(slopes, axis=1)


def sph_harm_y(
    n: Array, m: Array, theta: Array, phi: Array, diff_n: int | None = None, n_max: int | None = None
) -> Array:
    """Spherical harmonics (as ``scipy.special.sph_harm_y``).

    Args:
      n: degrees, not negative, integers.
      m: orders, integers.
      theta: polar angles, from 0 to pi.
      phi: azimuthal angles; all four broadcast with each other.
      diff_n: must be None; derivatives are those of `grad`.
      n_max: the largest of `n`, known while tracing; None where the values of `n` are known.

    Returns:
      A complex array of the broadcast shape, with at least one axis; 0 where abs(m) > n.

    Raises:
      UnsupportedError: `diff_n` is given.
      ConcretizationTypeError: `n` is traced and `n_max` is not given.

    >>> round(float(sph_harm_y(np.array([0]), np.array([0]), np.array([0.5]), np.array([0.0]))[0].real), 4)
    0.2821
    """
    if diff_n is not None:
        raise UnsupportedError(f"sph_harm_y: diff_n={diff_n!r} is not there", instead="phlox.grad")
    n, m, theta, phi = check("sph_harm_y", n, m, theta, phi)
    # The values of `n` are known here even where jit traces the other arguments.
    size = int(np.max(n, initial=0)) if n_max is None else integer("sph_harm_y", "n_max", n_max)
    n, m, theta, phi = map(jnp.asarray, (n, m, theta, phi))
    # Integers count as the default float, as in jax; there are no complex numbers of half precision.
    kinds = [x.dtype if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.result_type(float) for x in (theta, phi)]
    dtype = jnp.promote_types(jnp.promote_types(*kinds), jnp.float32)
    return _harmonics(n, m, theta.astype(dtype), phi.astype(dtype), size)


@functools.partial(jit, static_argnums=(4,))
def _harmonics(n: Any, m: Any, theta: Any, phi: Any, size: int) -> Any:
    n, m, theta, phi = jnp.broadcast_arrays(*(jnp.atleast_1d(x) for x in (n, m, theta, phi)))
    shape, dtype = theta.shape, theta.dtype
    n, m, theta, phi = (jnp.ravel(x) for x in (n, m, theta, phi))
    # The root of 1 - cos(theta)**2 loses a small sine, and has no derivative at 0 and pi.
    sine = jnp.sin(theta)
    root = jnp.where((theta < 0) | (theta > np.asarray(np.pi, dtype)), jnp.abs(sine), sine)
    table = jnp.stack(_legendre(size, jnp.cos(theta), root, True), axis=1)
    order = jnp.abs(m)
    inside = (order <= n) & (n <= size)
    value = table[jnp.where(inside, order, 0), jnp.where(inside, n, 0), jnp.arange(theta.size)]
    angle = order.astype(dtype) * phi
    # Y(n, -m) = (-1)**m conj(Y(n, m))
    sign = jnp.where((m < 0) & (order % 2 == 1), -1, 1)
    value = jnp.where(inside, value, 0)
    real, imag = sign * value * jnp.cos(angle), sign * jnp.where(m < 0, -1, 1) * value * jnp.sin(angle)
    return jnp.reshape(lax.complex(real, imag), shape).astype(dtypes.to_complex(dtype))
