"""The gamma distribution, and those computed from gamma samples: beta, chi-square, Dirichlet, F, Student, ball."""

from __future__ import annotations

import functools
from typing import Any

from .. import numpy as jnp
from .._api.devices.out_sharding import OutSharding, takes_out_sharding
from .._api.jit.jit import jit
from .._base.docstrings import docs_from
from .._base.errors import ShapeError
from .._operands.checks import as_shape, check_one, integer, type_of
from .._ops.elementwise import arithmetic as e
from .._ops.random import keys as ops
from .._ops.random.gamma import random_gamma
from .._ops.structure.shape import convert
from ..typing import Array, ArrayLike, DTypeLike, Key, Shape
from ._approximate import approximate_gamma, check_method
from ._choices import rademacher
from ._distributions import exponential
from ._keys import check_key
from ._samplers import _float, _shape, normal, sample


@functools.partial(jit, static_argnums=(2, 3, 4))
def _gamma(key: Any, a: Any, shape: tuple[int, ...], dtype: Any, log_space: bool) -> Any:
    return random_gamma(key, jnp.broadcast_to(convert(a, dtype), shape), log_space=log_space)


@takes_out_sharding
def gamma(
    key: Key,
    a: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: OutSharding = None,
) -> Array:
    """Random samples of the gamma distribution, whose density is proportional to x**(a - 1) exp(-x).

    They have a derivative with respect to `a`: that of the sample at a fixed value of the distribution function.
    Samples for a tiny `a` underflow to 0; `loggamma` gives their logarithms.

    Args:
      key: one PRNG key, new-style or old-style.
      a: shape parameter, positive number or array.
      shape: shape of the result, to which `a` broadcasts; None: the shape of `a`.
      dtype: a floating dtype, float32 by default (float64 in x64 mode).
      method: ``"exact"``, by rejection, or ``"approximate"``, without a loop and several times faster: quantiles
        have relative errors of about 5e-4, and derivatives are those of the formula.

    Returns:
      An array of this shape and dtype.

    Raises:
      OptionError: `method` is neither of the two.
      DtypeError: `key` is not a PRNG key, or `dtype` is not floating.
      ShapeError: `key` is an array of several keys, or `a` does not broadcast to `shape`.

    >>> from phlox import random
    >>> bool((random.gamma(random.key(0), 2.0, (100,)) > 0).all())
    True
    """
    key = check_key("gamma", key)
    check_method("gamma", method)
    draw = approximate_gamma if method == "approximate" else _gamma
    return draw(key, a, _shape("gamma", shape, a), _float("gamma", dtype), False)


@takes_out_sharding
@docs_from(gamma)
def loggamma(
    key: Key,
    a: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: OutSharding = None,
) -> Array:
    """Logarithms of random numbers of the gamma distribution, accurate for a tiny `a` as well.

    >>> from phlox import random
    >>> bool(jnp.isfinite(random.loggamma(random.key(0), 1e-4, (100,))).all())
    True
    """
    key = check_key("loggamma", key)
    check_method("loggamma", method)
    draw = approximate_gamma if method == "approximate" else _gamma
    return draw(key, a, _shape("loggamma", shape, a), _float("loggamma", dtype), True)


@functools.partial(jit, static_argnums=(3, 4, 5))
def _beta(key: Any, a: Any, b: Any, shape: tuple[int, ...], dtype: Any, method: str) -> Any:
    keys = ops.random_split(key, shape=(2,))
    logs = [
        loggamma(k, jnp.broadcast_to(convert(x, dtype), shape), shape, dtype, method=method)
        for k, x in zip(keys, (a, b), strict=True)
    ]
    # Only the ratio of the samples matters; dividing by the larger one avoids underflow.
    largest = e.max_(*logs)
    first, second = (e.exp(e.sub(x, largest)) for x in logs)
    return first / (first + second)


@takes_out_sharding
@docs_from(gamma)
def beta(
    key: Key,
    a: ArrayLike,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: OutSharding = None,
) -> Array:
    """Random samples of the beta distribution on [0, 1], with density proportional to x**(a - 1) (1 - x)**(b - 1).

    Args:
      a, b: positive numbers or arrays.
      shape: shape of the result, to which the parameters broadcast; None: their broadcast shape.

    Raises:
      ShapeError: `key` is an array of several keys, or the parameters do not broadcast to `shape`.
      TypePromotionError: the dtype of a parameter does not promote to that of the result.

    >>> from phlox import random
    >>> bool((random.beta(random.key(0), 2.0, 3.0, (100,)) < 1).all())
    True
    """
    check_method("beta", method)
    return sample("beta", _beta, key, (a, b), shape, dtype, method)


@functools.partial(jit, static_argnums=(2, 3))
def _dirichlet(key: Any, alpha: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    from ..nn._functions import softmax  # imported late, as phlox.random alone does not need phlox.nn

    # By logarithms: with small alpha all gamma numbers of a vector may underflow, and their ratios with them.
    return softmax(loggamma(key, convert(alpha, dtype), shape, dtype), -1)


@takes_out_sharding
def dirichlet(
    key: Key,
    alpha: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random probabilities of the Dirichlet distribution: vectors of positive numbers that add up to 1.

    Args:
      key: one PRNG key, new-style or old-style.
      alpha: positive concentrations along the last axis; further axes are independent distributions.
      shape: shape of the result without its last axis; None: that of `alpha` without its last axis.
      dtype: a floating dtype, float32 by default (float64 in x64 mode).

    Returns:
      An array of shape ``(*shape, alpha.shape[-1])`` and this dtype.

    Raises:
      DtypeError: `key` is not a PRNG key, or `dtype` is not floating.
      ShapeError: `key` is an array of several keys, `alpha` has no axis, or its others do not broadcast to `shape`.

    >>> from phlox import random
    >>> random.dirichlet(random.key(0), jnp.ones(3), (5,)).shape
    (5, 3)
    """
    key = check_key("dirichlet", key)
    dtype = _float("dirichlet", dtype)
    alpha = check_one("dirichlet", alpha)
    aval = type_of(alpha)
    if not aval.ndim:
        raise ShapeError(f"dirichlet: alpha must have an axis of concentrations, got {aval.short}", shapes=[()])
    batch = jnp.broadcast_shapes(aval.shape[:-1], () if shape is None else as_shape(shape, "dirichlet"))
    if shape is not None and batch != as_shape(shape, "dirichlet"):
        raise ShapeError(f"dirichlet: alpha {aval.short} does not broadcast to shape {shape} and its last axis")
    return _dirichlet(key, alpha, (*batch, aval.shape[-1]), dtype)


@functools.partial(jit, static_argnums=(2, 3, 4))
def _chisquare(key: Any, df: Any, shape: tuple[int, ...], dtype: Any, method: str) -> Any:
    # A chi-square number is twice a gamma number of df / 2.
    # As in JAX by `loggamma`, whose exponentials differ from the numbers of `gamma` in the last bits.
    return jnp.exp(loggamma(key, convert(df, dtype) / 2, shape, dtype, method=method)) * 2


@takes_out_sharding
@docs_from(gamma)
def chisquare(
    key: Key,
    df: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: OutSharding = None,
) -> Array:
    """Random samples of the chi-square distribution: sums of the squares of `df` normal numbers.

    Args:
      df: degrees of freedom, positive number or array.
      shape: shape of the result, to which `df` broadcasts; None: the shape of `df`.

    Raises:
      ShapeError: `key` is an array of several keys, or `df` does not broadcast to `shape`.
      TypePromotionError: the dtype of `df` does not promote to that of the result.

    >>> from phlox import random
    >>> bool((random.chisquare(random.key(0), 3.0, (100,)) > 0).all())
    True
    """
    check_method("chisquare", method)
    return sample("chisquare", _chisquare, key, (df,), shape, dtype, method)


@functools.partial(jit, static_argnums=(3, 4))
def _f(key: Any, dfnum: Any, dfden: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    # JAX draws the denominator from the first key.
    below, above = ops.random_split(key, shape=(2,))
    num, den = convert(dfnum, dtype), convert(dfden, dtype)
    return (chisquare(above, num, shape, dtype) / num) / (chisquare(below, den, shape, dtype) / den)


@takes_out_sharding
def f(
    key: Key,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random samples of the F distribution: ratios of chi-square numbers, each over its degrees of freedom.

    Args:
      key: one PRNG key, new-style or old-style.
      dfnum, dfden: degrees of freedom of numerator and denominator, positive numbers or arrays.
      shape: shape of the result, to which the parameters broadcast; None: their broadcast shape.
      dtype: a floating dtype, float32 by default (float64 in x64 mode).

    Returns:
      An array of this shape and dtype.

    Raises:
      DtypeError: `key` is not a PRNG key, or `dtype` is not floating.
      ShapeError: `key` is an array of several keys, or the parameters do not broadcast to `shape`.
      TypePromotionError: the dtype of a parameter does not promote to that of the result.

    >>> from phlox import random
    >>> bool((random.f(random.key(0), 3.0, 4.0, (100,)) > 0).all())
    True
    """
    return sample("f", _f, key, (dfnum, dfden), shape, dtype)


@functools.partial(jit, static_argnums=(2, 3))
def _t(key: Any, df: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    normals, gammas = ops.random_split(key, shape=(2,))
    half = convert(df, dtype) / 2
    # A chi-square number is 2 * gamma(half), so df / chi-square is half / gamma(half).
    return normal(normals, shape, dtype) * jnp.sqrt(half / gamma(gammas, half, shape, dtype))


@takes_out_sharding
@docs_from(f)
def t(
    key: Key,
    df: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random numbers of Student's t distribution with `df` degrees of freedom.

    Args:
      df: degrees of freedom, positive number or array.
      shape: shape of the result, to which `df` broadcasts; None: the shape of `df`.

    Raises:
      ShapeError: `key` is an array of several keys, or `df` does not broadcast to `shape`.
      TypePromotionError: the dtype of `df` does not promote to that of the result.

    >>> from phlox import random
    >>> random.t(random.key(0), 5.0, (3,)).shape
    (3,)
    """
    return sample("t", _t, key, (df,), shape, dtype)


@functools.partial(jit, static_argnums=(2, 3))
def _generalized_normal(key: Any, p: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    sizes, signs = ops.random_split(key, shape=(2,))
    # abs(x)**p is a gamma number of 1 / p.
    return rademacher(signs, shape, dtype) * gamma(sizes, 1 / p, shape, dtype) ** (1 / p)


@takes_out_sharding
@docs_from(rademacher)
def generalized_normal(
    key: Key, p: float, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Random numbers with a density proportional to exp(-abs(x)**p).

    Args:
      p: exponent, a positive number: 1 gives the Laplace distribution, 2 a normal one of variance 1/2.
      dtype: a floating dtype, float32 by default (float64 in x64 mode).

    Raises:
      DtypeError: `key` is not a PRNG key, or `dtype` is not floating.

    >>> from phlox import random
    >>> random.generalized_normal(random.key(0), 3.0, (3,)).shape
    (3,)
    """
    key = check_key("generalized_normal", key)
    dtype = _float("generalized_normal", dtype)
    return _generalized_normal(key, check_one("generalized_normal", p), as_shape(shape, "generalized_normal"), dtype)


@functools.partial(jit, static_argnums=(2, 3, 4))
def _ball(key: Any, p: Any, d: int, shape: tuple[int, ...], dtype: Any) -> Any:
    first, second = ops.random_split(key, shape=(2,))
    # F. Barthe et al. 2005, A probabilistic approach to the geometry of the l_p^n-ball
    inside = generalized_normal(first, p, (*shape, d), dtype)
    more = exponential(second, shape, dtype)
    return inside / (((jnp.abs(inside) ** p).sum(-1) + more) ** (1 / p))[..., None]


@takes_out_sharding
def ball(
    key: Key,
    d: int,
    p: float = 2,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random points of the uniform distribution over the unit ball of the p-norm in `d` dimensions.

    Args:
      key: one PRNG key, new-style or old-style.
      d: number of dimensions.
      p: exponent of the norm ``sum(abs(x)**p)**(1/p)``, a positive number.
      shape: shape of the array of points.
      dtype: a floating dtype, float32 by default (float64 in x64 mode).

    Returns:
      An array of shape ``(*shape, d)`` and this dtype.

    Raises:
      DtypeError: `key` is not a PRNG key, or `dtype` is not floating.
      ShapeError: `key` is an array of several keys.

    >>> from phlox import random
    >>> bool((jnp.linalg.norm(random.ball(random.key(0), 3, shape=(100,)), axis=-1) < 1).all())
    True
    """
    key = check_key("ball", key)
    count = integer("ball", "d", d)
    return _ball(key, check_one("ball", p), count, as_shape(shape, "ball"), _float("ball", dtype))
