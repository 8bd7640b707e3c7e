"""Random choices: rademacher, geometric, categorical, choice."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .. import lax, numpy as jnp
from .._api.devices.out_sharding import OutSharding, takes_out_sharding
from .._api.jit.jit import jit
from .._base.docstrings import docs_from
from .._base.errors import ArgumentError, DtypeError, OptionError, ShapeError
from .._ir import dtypes
from .._ir.dimensions import is_symbolic
from .._operands.checks import as_shape, canonical_axis, check, check_one, type_of
from .._operands.promotion import promote_inexact
from .._trace.trace import Tracer
from ..numpy._manipulation.shapes import expand_dims
from ..typing import Array, ArrayLike, DTypeLike, Key, Shape
from ._distributions import gumbel, precision
from ._keys import check_key
from ._samplers import _integer, _shape, bernoulli, permutation, randint, uniform


@functools.partial(jit, static_argnums=(1, 2))
def _rademacher(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    # Not 2 x - 1 in the dtype: int2 has no 2.
    return jnp.where(bernoulli(key, 0.5, shape), 1, -1).astype(dtype)


@takes_out_sharding
def rademacher(
    key: Key, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Random signs: -1 or 1 with equal probability.

    Args:
      key: one PRNG key, new-style or old-style.
      shape: shape of the result.
      dtype: int32 by default (int64 in x64 mode).

    Returns:
      An array of this shape and dtype.

    Raises:
      DtypeError: `key` is not a PRNG key.
      ShapeError: `key` is an array of several keys.

    >>> from phlox import random
    >>> int(abs(random.rademacher(random.key(0), (100,))).sum())
    100
    """
    key = check_key("rademacher", key)
    return _rademacher(key, as_shape(shape, "rademacher"), dtypes.int_dtype(dtype, "rademacher"))


@functools.partial(jit, static_argnums=(2, 3))
def _geometric(key: Any, p: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    (p,) = promote_inexact(p)
    u = uniform(key, shape, type_of(p).dtype)
    u = jnp.where(u == 0, 1, u)  # log(0) is -inf
    return (jnp.floor(jnp.log(u) / jnp.broadcast_to(jnp.log1p(-p), shape)) + 1).astype(dtype)


@takes_out_sharding
@docs_from(rademacher)
def geometric(
    key: Key,
    p: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random numbers of trials up to the first success, where each trial succeeds with probability `p`; at least 1.

    Args:
      p: probabilities of success, number or array.
      shape: shape of the result, to which `p` broadcasts; None: the shape of `p`.
      dtype: an integer dtype, int32 by default (int64 in x64 mode).

    Raises:
      DtypeError: `key` is not a PRNG key, or `dtype` is not one of integers.
      ShapeError: `key` is an array of several keys, or `p` does not broadcast to `shape`.

    >>> from phlox import random
    >>> bool((random.geometric(random.key(0), 0.3, (100,)) >= 1).all())
    True
    """
    key = check_key("geometric", key)
    p = check_one("geometric", p)
    out_dtype = _integer("geometric", dtype)
    return _geometric(key, p, _shape("geometric", shape, p), out_dtype)


def _best(values: Any, count: int) -> Any:
    """The positions of the `count` largest elements along the last axis, largest first."""
    return jnp.argsort(values, axis=-1, descending=True)[..., :count]


@functools.partial(jit, static_argnames=("shape", "axis", "replace", "mode"))
def _categorical(key: Any, logits: Any, shape: tuple[int, ...], axis: int, replace: bool, mode: str | None) -> Any:
    aval = type_of(logits)
    front = shape[: len(shape) - (aval.ndim - 1)]
    if replace:
        own = list(shape[len(front) :])
        own.insert(axis, aval.shape[axis])
        # The Gumbel trick: the argmax of logits plus Gumbel noise is i with the probability softmax(logits)[i].
        noise = gumbel(key, (*front, *own), aval.dtype, mode)
        return jnp.argmax(noise + expand_dims(logits, tuple(range(len(front)))), axis=axis - aval.ndim)
    count = math.prod(front)
    if count > aval.shape[axis]:
        raise OptionError(
            f"Number of samples without replacement ({count}) cannot exceed the number of categories "
            f"({aval.shape[axis]}) of categorical",
        )
    # Without replacement: the largest sums are the successive draws of the same distribution.
    indices = _best(jnp.moveaxis(logits + gumbel(key, aval.shape, aval.dtype, mode), axis, -1), count)
    return jnp.reshape(jnp.moveaxis(indices, -1, 0), shape)


@takes_out_sharding
def categorical(
    key: Key,
    logits: ArrayLike,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random category indices: index i along `axis` is drawn with probability softmax(logits)[i].

    Args:
      key: one PRNG key, new-style or old-style.
      logits: unnormalised log probabilities, an array of floats; axes other than `axis` are independent distributions.
      axis: axis of `logits` with the categories; the last by default.
      shape: shape of the result, which ends with the shape of `logits` without `axis`; None means exactly that shape.
      replace: whether to draw with replacement; False draws distinct categories (the Gumbel top-k trick).
      mode: 'low', 'high' or 'highest', see `gumbel`.

    Returns:
      Category indices of this shape: int32 (int64 in x64 mode).

    Raises:
      DtypeError: `key` is not a PRNG key, or `logits` are not floats.
      ShapeError: `key` is an array of several keys, or `shape` does not fit `logits`.
      AxisError: `axis` is out of range for `logits`.
      OptionError: without replacement there are fewer categories than draws, or `mode` is unknown.

    >>> from phlox import random
    >>> random.categorical(random.key(0), jnp.log(jnp.array([0.0, 1.0])), shape=(3,))
    Array([1, 1, 1], dtype=int32)
    """
    key = check_key("categorical", key)
    logits = check_one("categorical", logits)
    precision("categorical", mode)
    aval = type_of(logits)
    at = canonical_axis(axis, aval.ndim, "categorical")
    batch = (*aval.shape[:at], *aval.shape[at + 1 :])
    out_shape = batch if shape is None else as_shape(shape, "categorical")
    if out_shape[len(out_shape) - len(batch) :] != batch and jnp.broadcast_shapes(out_shape, batch) != out_shape:
        raise ShapeError(
            f"categorical: shape {out_shape} does not end in {batch}, the shape of logits without axis {at}"
        )
    return _categorical(key, logits, shape=out_shape, axis=at, replace=replace, mode=mode)


def choice(
    key: Key,
    a: ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Random elements of the array `a` along `axis`, or random integers from ``range(a)`` for an integer `a`.

    Args:
      key: one PRNG key, new-style or old-style.
      a: array to draw from; or a Python integer, which stands for ``arange(a)``.
      shape: shape of the sample, a tuple or list; in the result it replaces `axis` of `a`.
      replace: whether to draw with replacement.
      p: probability of each element, a vector; None means equal probabilities.
      axis: axis of `a` along which elements are drawn; the first by default. Ignored for an integer.
      mode: precision of the random numbers: 'low', 'high' or 'highest', see `gumbel`; used for `p` without replacement.

    Returns:
      An array of the dtype of `a` whose shape is that of `a` with `axis` replaced by `shape`; of shape `shape` for an
      integer, and if `shape` contains a 0.

    Raises:
      ArgumentError: `shape` is neither a tuple nor a list.
      DtypeError: `key` is not a PRNG key, or `a` is a scalar that is not an integer.
      ShapeError: `key` is an array of several keys, or `p` is not a vector with one probability for each element.
      AxisError: `axis` is out of range for `a`.
      OptionError: there are no elements to draw from, or fewer than draws without replacement; elements of probability
        zero are not counted.

    >>> from phlox import random
    >>> sorted(random.choice(random.key(0), 4, (4,), replace=False).tolist())
    [0, 1, 2, 3]
    """
    key = check_key("choice", key)
    if not isinstance(shape, tuple | list):
        raise ArgumentError(f"choice: shape must be a tuple, got {shape!r}")
    (arr,) = (jnp.asarray(x) for x in check("choice", a))
    shape = as_shape(shape, "choice")
    count = math.prod(shape)
    if arr.ndim:
        axis = canonical_axis(axis, arr.ndim, "choice")
        size: Any = arr.shape[axis]
    elif dtypes.kind(arr.dtype) in "iu":
        axis, size = 0, a if is_symbolic(a) else int(a)  # type: ignore[arg-type]
    else:
        raise DtypeError(f"choice: a must be an integer or have axes, got {type_of(arr).short}")
    if not count:
        return jnp.zeros(shape, arr.dtype)
    if size <= 0:
        raise OptionError("choice: there is nothing to choose from")
    if not replace and count > size:
        raise OptionError(f"choice: {count} elements without replacement from {size}", instead="replace=True, or fewer")
    if p is None and not replace:
        result = permutation(key, arr if arr.ndim else size, axis)[(slice(None),) * axis + (slice(count),)]
    else:
        indices = randint(key, shape, 0, size) if p is None else _weighted(key, p, size, shape, replace, mode)
        result = jnp.take(arr, indices, axis) if arr.ndim else indices
    return jnp.reshape(result, (*arr.shape[:axis], *shape, *arr.shape[axis + 1 :]))


def _weighted(key: Any, p: Any, size: int, shape: tuple[int, ...], replace: bool, mode: str | None) -> Any:
    (weights,) = promote_inexact(*check("choice", p))
    if type_of(weights).shape != (size,):
        raise ShapeError(f"choice: p must have shape ({size},), got {type_of(weights).short}")
    if not replace:
        if not isinstance(weights, Tracer) and (possible := np.count_nonzero(np.asarray(weights))) < math.prod(shape):
            raise OptionError(
                f"choice: {math.prod(shape)} elements without replacement, and only {possible} have a probability",
                instead="replace=True, or fewer",
            )
        scores = gumbel(key, (size,), type_of(weights).dtype, mode) + jnp.log(weights)
        return _best(scores, math.prod(shape)).astype(int)
    total = jnp.cumsum(weights)
    # From (0, total] and not from [0, total): 0 would choose the first element even if its probability is 0.
    drawn = total[-1] * (1 - uniform(key, shape, total.dtype))
    # The index of the first element whose partial sum reaches the drawn value. Rounding errors of the parallel sum must
    # not let an element without probability be the first: its partial sum is that of the element before it.
    reached = lax.cummax(jnp.where(weights > 0, total, 0))
    return jnp.searchsorted(reached, jnp.minimum(drawn, reached[-1])).astype(int)
