"""Bessel functions of the first kind, of whole orders, and modified ones of the orders 0 and 1."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.derivatives.custom import custom_jvp
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._operands.checks import integer, type_of
from ...numpy._elementwise import bessel
from ...typing import Array, ArrayLike
from ._shared import at_least_single, real_inexact

#: From here on Hankel's expansion of J0 and J1 has 16 digits with `_HANKEL_TERMS` terms.
_LARGE, _HANKEL_TERMS = 25, 16


@functools.partial(custom_jvp, nondiff_argnums=(1, 2))
def _bessel_jn(z: Any, v: int, count: int) -> Any:
    """The orders 0 to `v`, in rows; `count` is the least order at which the recurrence downwards begins."""
    # Both recurrences are stable where J does not decay faster than their rounding errors: upwards for orders below z.
    highest = max(v, _LARGE)
    digits = 40 if type_of(z).dtype == np.float32 else 160
    down = _downwards(z, v, max(count, highest + math.isqrt(digits * highest)))
    return jnp.where(jnp.abs(z) > highest, _upwards(z, v, highest), down)


def _upwards(z: Any, v: int, least: int) -> Any:
    """J(k + 1) = 2 k / z J(k) - J(k - 1) from J0 and J1 by Hankel's expansion (DLMF 10.17.3), above `least`."""
    size = jnp.maximum(jnp.abs(z), least)
    factor, sine, cosine = jnp.sqrt(1 / (np.pi * size)), jnp.sin(size), jnp.cos(size)

    def expansion(order: int) -> tuple[Any, Any]:
        """The sums of the even and of the odd terms a(k) / z^k, of alternating signs."""
        term, sums = jnp.ones_like(size), [jnp.zeros_like(size)] * 2
        for k in range(_HANKEL_TERMS):
            sums[k % 2] = sums[k % 2] + (-1) ** (k // 2) * term
            term = term * ((4 * order**2 - (2 * k + 1) ** 2) / (8 * (k + 1))) / size
        return sums[0], sums[1]

    (p, q), (r, s) = expansion(0), expansion(1)
    first = factor * (p * (cosine + sine) - q * (sine - cosine))
    second = factor * (r * (sine - cosine) + s * (sine + cosine))

    def step(state: Any, k: Any) -> tuple[Any, Any]:
        here, after = state
        return (after, 2 * k / size * after - here), here

    _, values = lax.scan(step, (first, second), jnp.arange(1, v + 2).astype(type_of(z).dtype))
    odd = jnp.reshape(jnp.arange(v + 1) % 2 == 1, (v + 1,) + (1,) * type_of(z).ndim)
    values = jnp.where(odd & (z < 0), -values, values)
    return jnp.where(jnp.isinf(z), 0, values)


def _downwards(z: Any, v: int, count: int) -> Any:
    """J(k - 1) = 2 k / z J(k) - J(k + 1) from a high order down, divided by J0 + 2 (J2 + J4 + ...) = 1 (Miller)."""
    # Downward, because for orders above z the upward recurrence is unstable: rounding errors grow as Y does while J
    # decays.
    orders = jnp.reshape(jnp.arange(v + 1), (v + 1,) + (1,) * type_of(z).ndim)
    # At z = 0 the recurrence divides by 0; the values there, 1, 0, 0, …, are inserted at the end.
    safe = jnp.where(z == 0, 1, z)
    # The distance to the largest float leaves room for one more factor of 2 k / z before the next scaling.
    large = 1e15 if type_of(z).dtype == np.float32 else 1e140

    def down(i: Any, state: Any) -> Any:
        after, here, total, values = state
        k = count - i
        before = 2 * k.astype(type_of(z).dtype) / safe * here - after
        # Numbers that grow too large are made smaller all together.
        scale = jnp.where(jnp.abs(before) > large, 1 / large, 1)
        before, here = before * scale, here * scale
        values = jnp.where(orders == k - 1, before, values * scale)
        # `before` is J(k - 1), so that the even orders are those of odd k. They count twice, but order 0 once.
        total = total * scale + jnp.where(k == 1, before, jnp.where(k % 2 == 1, 2 * before, 0))
        return here, before, total, values

    zero = jnp.zeros_like(z)
    # Any small number may start the recurrence: the division by the sum removes its scale.
    start = zero, jnp.full_like(z, 1 / large), zero, jnp.stack([zero] * (v + 1))
    _, _, total, values = lax.fori_loop(0, count, down, start)
    return jnp.where(z == 0, jnp.where(orders == 0, 1, 0), values / total)


@_bessel_jn.defjvp
def _bessel_jn_jvp(v: int, count: int, primals: Any, tangents: Any) -> tuple[Any, Any]:
    (z,), (t,) = primals, tangents
    more = _bessel_jn(z, v + 1, count)
    # J'(k) = (J(k - 1) - J(k + 1)) / 2, and J(-1) = -J(1).
    before = jnp.concatenate([-more[1:2], more[:v]])
    return more[: v + 1], t * 0.5 * (before - more[1:])


@functools.partial(jit, static_argnames=("v", "n_iter"))
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind of the orders 0 to `v`.

    By their recurrence in the order: downwards (Miller's algorithm), for large abs(z) upwards.

    Args:
      z: real array of any shape; integers are converted to floats.
      v: the highest order, an integer known while tracing.
      n_iter: the least order at which the recurrence downwards begins; it begins higher where that is not enough.

    Returns:
      An array of shape ``(v + 1, *z.shape)``, of the floating dtype of `z`.

    Raises:
      DtypeError: `z` is complex.

    >>> [round(float(y), 4) for y in bessel_jn(1.0, v=1)]
    [0.7652, 0.4401]
    """
    order, count = integer("bessel_jn", "v", v), integer("bessel_jn", "n_iter", n_iter)
    (z,), dtype = at_least_single("bessel_jn", z)
    if order < 0:
        return jnp.zeros((0, *type_of(z).shape), dtype)
    return _bessel_jn(z, order, count).astype(dtype)


# --- modified Bessel functions --------------------------------------------------------------------------


def i0e(x: ArrayLike) -> Array:
    """exp(-abs(x)) * i0(x), elementwise (as ``scipy.special.i0e``).

    Args:
      x: real array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and floating dtype of `x`.

    Raises:
      DtypeError: `x` is complex.

    >>> round(float(i0e(0.0)), 3)
    1.0
    """
    return lax.bessel_i0e(*real_inexact("i0e", x))


@jit(inline=True)
@docs_from(i0e)
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 0, elementwise (as ``scipy.special.i0``).

    >>> round(float(i0(0.0)), 3)
    1.0
    """
    return bessel.i0(*real_inexact("i0", x))


@docs_from(i0e)
def i1e(x: ArrayLike) -> Array:
    """exp(-abs(x)) * i1(x), elementwise (as ``scipy.special.i1e``).

    >>> i1e(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return lax.bessel_i1e(*real_inexact("i1e", x))


@jit(inline=True)
@docs_from(i0e)
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 1, elementwise (as ``scipy.special.i1``).

    >>> i1(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return bessel.i1(*real_inexact("i1", x))
