"""Basic samplers: bits, uniform, normal, randint, bernoulli, permutation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import numpy as jnp
from .._api.devices.out_sharding import OutSharding, takes_out_sharding
from .._api.jit.jit import jit
from .._base.docstrings import docs_from
from .._base.errors import DtypeError, OptionError, ShapeError, TypePromotionError
from .._ir import dtypes
from .._ir.dimensions import is_symbolic
from .._ir.promotion import promote
from .._operands.checks import as_shape, canonical_axis, check, check_one, type_of
from .._operands.promotion import to_dtype
from .._operands.short_floats import round_to, widen
from .._ops.elementwise import arithmetic as e, logic
from .._ops.elementwise.error_functions import erf, erf_inv
from .._ops.random import keys as ops
from .._ops.random.uniform import between, normal as normal_real
from .._ops.structure.iota import iota
from .._ops.structure.numbers import scalar_of
from .._ops.structure.shape import convert
from .._ops.structure.sort import sort
from .._trace.trace import Tracer
from ..lax._branches import cond
from ..lax._conveniences import broadcast_to_rank
from ..numpy._manipulation.broadcasting import broadcast_shapes
from ..typing import Array, ArrayLike, DTypeLike, Key, Shape
from ._keys import check_key


def _need_safe(function: str, dtype: Any, *parameters: Any) -> None:
    """Raises `TypePromotionError` for a parameter that the dtype of the result cannot hold."""
    for aval in map(type_of, parameters):
        if aval.dtype != dtype and promote(((aval.dtype, aval.weak_type), (dtype, False)))[0] != dtype:
            raise TypePromotionError(f"{function}: a parameter {aval.short} does not fit into the result's {dtype}")


def _shape(function: str, shape: Any, *parameters: Any) -> tuple[int, ...]:
    """The shape of the result: `shape`, or that of the parameters. Raises unless the parameters broadcast to it."""
    shapes = [type_of(p).shape for p in check(function, *parameters)] if parameters else []
    common = broadcast_shapes(*shapes) if shapes else ()
    if shape is None:
        return common
    out_shape = as_shape(shape, function)
    if broadcast_shapes(out_shape, common) != out_shape:
        raise ShapeError(f"{function}: parameters of shape {common} do not broadcast to shape {out_shape}")
    return out_shape


def _integer(function: str, dtype: Any) -> Any:
    out_dtype = dtypes.int_dtype(dtype, function)
    if dtypes.kind(out_dtype) not in "iu":
        raise DtypeError(f"dtype argument to `{function}` must be an int dtype, got {out_dtype}")
    return out_dtype


def _float(function: str, dtype: Any) -> Any:
    out_dtype = dtypes.float_dtype(dtype, function)
    if dtypes.kind(out_dtype) != "f":
        raise DtypeError(f"dtype argument to `{function}` must be a float dtype, got {out_dtype}")
    _need_samples(function, out_dtype)
    return out_dtype


def _inexact(function: str, dtype: Any) -> Any:
    out_dtype = dtypes.float_dtype(dtype, function)
    if not dtypes.is_inexact(out_dtype):
        raise DtypeError(f"dtype argument to `{function}` must be a float or complex dtype, got {out_dtype}")
    _need_samples(function, out_dtype)
    return out_dtype


def sample(
    name: str,
    draw: Callable[..., Any],
    key: Any,
    parameters: tuple[Any, ...],
    shape: Any,
    dtype: Any,
    *options: Any,
    checked_dtype: Callable[[str, Any], Any] = _float,
) -> Array:
    """``draw(key, *parameters, shape, dtype, *options)`` after the checks of the sampler `name`."""
    key = check_key(name, key)
    dtype = checked_dtype(name, dtype)
    parameters = tuple(check(name, *parameters))
    _need_safe(name, dtype, *parameters)
    return draw(key, *parameters, _shape(name, shape, *parameters), dtype, *options)


#: Floats of less than 8 bits, and those without zero: no sampler ends, or has a meaning, in their arithmetic.
_WITHOUT_SAMPLES = frozenset(
    d for d in dtypes.SMALL_FLOATS if d.name.startswith(("float4", "float6")) or d.name == "float8_e8m0fnu"
)


def _need_samples(function: str, dtype: Any) -> None:
    """Raises `DtypeError` for floats that hold no random numbers."""
    if dtype in _WITHOUT_SAMPLES:
        instead = f"float32, and .astype({str(dtype)!r})"
        raise DtypeError(f"{function}: {dtype} cannot hold random numbers", instead=instead)


# --- bits and uniform numbers ---------------------------------------------------------------------------


@functools.partial(jit, inline=True, static_argnames=("shape", "bit_width"))
def _bits(key: Any, shape: tuple[int, ...], bit_width: int) -> Any:
    return ops.random_bits(key, bit_width=bit_width, shape=shape)


@takes_out_sharding
def bits(key: Key, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None) -> Array:
    """Random unsigned integers, uniformly distributed over all values of the dtype.

    Args:
      key: one PRNG key, new-style or old-style.
      shape: shape of the result.
      dtype: an unsigned integer dtype; uint32 by default (uint64 in x64 mode).

    Returns:
      An array of this shape and dtype.

    Raises:
      DtypeError: `key` is not a PRNG key, or `dtype` is not an unsigned integer dtype.
      ShapeError: `key` is an array of several keys.

    >>> from phlox import random
    >>> random.bits(random.key(0), (2,), "uint8").dtype
    dtype('uint8')
    """
    key = check_key("bits", key)
    out_dtype = dtypes.canonical(dtypes.uint64) if dtype is None else dtypes.user_dtype(dtype, "bits")
    if dtypes.kind(out_dtype) != "u":
        raise DtypeError(f"dtype argument to `bits` must be an unsigned int dtype, got {out_dtype}")
    return _bits(key, shape=as_shape(shape, "bits"), bit_width=dtypes.bits(out_dtype))


@functools.partial(jit, static_argnums=(3, 4))
def _uniform(key: Any, minval: Any, maxval: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    low, high = (broadcast_to_rank(convert(v, dtype), len(shape)) for v in (minval, maxval))
    return between(key, low, high, shape, dtype)


@takes_out_sharding
@docs_from(bits)
def uniform(
    key: Key,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random samples of the uniform distribution over [minval, maxval).

    Args:
      dtype: a floating dtype, float32 by default (float64 in x64 mode).
      minval, maxval: lower bound, included, and upper bound, not included: numbers or arrays that broadcast to `shape`.

    Raises:
      DtypeError: `key` is not a PRNG key, or `dtype` is not floating.
      ShapeError: `key` is an array of several keys, or the bounds do not broadcast to `shape`.

    >>> from phlox import random
    >>> random.uniform(random.PRNGKey(0), (2,))
    Array([0.947667 , 0.9785799], dtype=float32)
    """
    key = check_key("uniform", key)
    out_dtype = _float("uniform", dtype)
    lower = type_of(check_one("uniform", minval)).shape
    if shape is not None and set(lower) == {1} and as_shape(shape, "uniform") == ():
        shape = lower  # as JAX: a bound of one element gives its shape to a scalar
    return _uniform(key, minval, maxval, _shape("uniform", shape, minval, maxval), out_dtype)


# --- normal numbers -------------------------------------------------------------------------------------


_normal_real = jit(normal_real, static_argnums=(1, 2))


@functools.partial(jit, static_argnums=(1, 2))
def _normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    if dtypes.kind(dtype) != "c":
        return _normal_real(key, shape, dtype)
    halves = ops.random_split(key, shape=(2,))
    parts = [_normal_real(halves[i], shape, dtypes.real_part(dtype)) for i in (0, 1)]
    real, imag = (to_dtype(part, dtype) for part in parts)
    # The parts have the variance 1 / 2 after the division, so that the complex numbers have the variance 1.
    return e.div(e.add(real, e.mul(scalar_of(1j, dtype), imag)), scalar_of(np.sqrt(2), dtype))


@takes_out_sharding
@docs_from(bits)
def normal(key: Key, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None) -> Array:
    """Random samples of the standard normal distribution: mean 0, variance 1.

    Complex dtypes give independent real and imaginary parts of variance 1/2 each.

    Args:
      dtype: a floating or complex dtype, float32 by default (float64 in x64 mode).

    Raises:
      DtypeError: `key` is not a PRNG key, or `dtype` is neither floating nor complex.

    >>> from phlox import random
    >>> random.normal(random.key(42), (3,)).shape
    (3,)
    """
    key = check_key("normal", key)
    return _normal(key, as_shape(shape, "normal"), _inexact("normal", dtype))


#: Beyond, erf has fewer values than the interval: samples of intervals there are drawn by `_normal_tail`.
_TAIL = 2.0


def _may_be_tail(lower: Any, upper: Any) -> bool:
    """Whether an interval may lie in a tail: of bounds that are no Python numbers only the running program knows."""
    known = isinstance(lower, int | float) and isinstance(upper, int | float)
    return not known or lower > _TAIL or upper < -_TAIL


@functools.partial(jit, static_argnums=(3, 4, 5))
def _truncated_normal(key: Any, lower: Any, upper: Any, shape: tuple[int, ...], dtype: Any, may_be_tail: bool) -> Any:
    root = scalar_of(np.sqrt(2), dtype)
    low, high = convert(lower, dtype), convert(upper, dtype)
    u = uniform(key, shape, dtype, erf(e.div(low, root)), erf(e.div(high, root)))
    out = e.mul(root, erf_inv(u))
    if may_be_tail:
        left, right = (high < -_TAIL) & (high > -np.inf), (low > _TAIL) & (low < np.inf)
        # The tails take the samples of the same key, of which only one of the two is in the result.
        operands = ops.random_clone(key), low, high, left, right, out
        out = cond(jnp.any(left | right), _with_tails, lambda *xs: xs[-1], *operands)
    inf = scalar_of(np.inf, dtype)
    # Rounding must not move a sample out of the open interval.
    first, last = (jnp.nextafter(e.stop_gradient(x), edge) for x, edge in ((low, inf), (high, -inf)))
    return jnp.clip(out, first, last)


def _with_tails(key: Any, low: Any, high: Any, left: Any, right: Any, out: Any) -> Any:
    """`out`, with other samples where the interval lies in the left or in the right tail."""
    near = jnp.where(left, -high, jnp.where(right, low, _TAIL))
    far = jnp.where(left, -low, jnp.where(right, high, np.inf))
    u = uniform(key, type_of(out).shape, type_of(out).dtype)
    # In 8 bits XLA takes minutes to compile so many operations.
    tail = round_to(_normal_tail(widen(u), widen(near), widen(far)), type_of(out).dtype)
    return jnp.where(left, -tail, jnp.where(right, tail, out))


def _normal_tail(u: Any, near: Any, far: Any) -> Any:
    """The number between two positive ones, beyond which lies the fraction of normal numbers that `u` tells.

    Newton's method for the distance d of x = near + d. Q(x) = exp(-x**2 / 2) erfcx(x / sqrt(2)) / 2 is the probability
    beyond `x`; its logarithm has all digits however small it is.
    """
    from ..scipy.special import erfcx  # imported for tails alone

    def scaled(x: Any) -> Any:
        return erfcx(x * np.sqrt(0.5).item())

    at_near = scaled(near)
    relative = jnp.log(scaled(far) / at_near) - 0.5 * (far - near) * (far + near)
    log = jnp.log1p(u * jnp.expm1(relative))  # of Q(x) / Q(near)
    # The start of Newton's iteration is the solution if erfcx were constant: near d + d**2 / 2 = -log.
    distance = -2 * log / (near + jnp.sqrt(near * near - 2 * log))
    for _ in range(4):
        beyond = scaled(near + distance)
        # Newton's step divides by the derivative of -log(Q), which is sqrt(2 / pi) / erfcx(x / sqrt(2)).
        excess = distance * (near + 0.5 * distance) - jnp.log(beyond / at_near) + log
        distance = distance - excess * beyond * np.sqrt(0.5 * np.pi).item()
    return near + distance


@takes_out_sharding
@docs_from(uniform)
def truncated_normal(
    key: Key,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random samples of the standard normal distribution, restricted to the interval from `lower` to `upper`.

    Args:
      lower, upper: lower and upper bound, not included: numbers or arrays.
      shape: shape of the result, to which the bounds broadcast; None means their broadcast shape.

    >>> from phlox import random
    >>> bool(abs(random.truncated_normal(random.key(0), -1.0, 1.0, (100,))).max() < 1)
    True
    """
    key = check_key("truncated_normal", key)
    out_dtype = _float("truncated_normal", dtype)
    whole = _shape("truncated_normal", shape, lower, upper)
    return _truncated_normal(key, lower, upper, whole, out_dtype, _may_be_tail(lower, upper))


# --- integers and choices -------------------------------------------------------------------------------


def _into_range(x: Any, dtype: Any) -> Any:
    """Integers clipped to the range of `dtype` and converted to it."""
    source, target = dtypes.iinfo(type_of(x).dtype), dtypes.iinfo(dtype)
    low, high = max(int(source.min), int(target.min)), min(int(source.max), int(target.max))
    return convert(jnp.clip(x, to_dtype(low, type_of(x).dtype), to_dtype(high, type_of(x).dtype)), dtype)


@functools.partial(jit, static_argnums=(3, 4))
def _randint(key: Any, minval: Any, maxval: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    info = dtypes.iinfo(dtype)
    width = int(info.bits)
    word = np.dtype(f"uint{width}")
    low, high = (v if dtypes.kind(type_of(v).dtype) in "iu" else convert(v, dtypes.int32) for v in (minval, maxval))
    top = min(int(info.max), int(dtypes.iinfo(type_of(high).dtype).max))
    # The end is exclusive, so that the largest number of the dtype is drawn only if the end is one beyond it.
    beyond = logic.gt(high, to_dtype(top, type_of(high).dtype))
    low, high = (broadcast_to_rank(_into_range(v, dtype), len(shape)) for v in (low, high))
    beyond = broadcast_to_rank(beyond, len(shape))
    # Twice as many bits as the dtype has, reduced modulo the span: the bias is small.
    halves = ops.random_split(key, shape=(2,))
    high_bits, low_bits = (ops.random_bits(halves[i], bit_width=width, shape=shape) for i in (0, 1))
    span = convert(e.sub(*jnp.broadcast_arrays(high, low)), word)
    one = scalar_of(1, word)
    # An empty interval gives `minval`, as in JAX.
    span = jnp.where(high <= low, one, span)
    span = jnp.where(logic.and_(*jnp.broadcast_arrays(beyond, high > low)), e.add(span, one), span)
    # 2**width modulo the span by a square, as 2**width itself does not fit into a word.
    factor = e.rem(scalar_of(2 ** (width // 2), word), span)
    factor = e.rem(e.mul(factor, factor), span)
    offset = e.add(e.mul(e.rem(high_bits, span), factor), e.rem(low_bits, span))
    return e.add(low, convert(e.rem(offset, span), dtype))


@takes_out_sharding
@docs_from(uniform)
def randint(
    key: Key,
    shape: Shape,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random integers, uniformly distributed from `minval`, included, to `maxval`, not included.

    Args:
      minval, maxval: lower bound, included, and upper bound, not included: integers or arrays of integers that
        broadcast to `shape`. Where `maxval` is not greater than `minval`, the result is `minval`. Bounds outside the
        range of `dtype` are clamped to it.
      dtype: an integer dtype; int32 by default (int64 in x64 mode).

    Raises:
      DtypeError: `key` is not a PRNG key, or `dtype` is not an integer dtype.

    >>> from phlox import random
    >>> random.randint(random.key(0), (5,), 0, 10).dtype
    dtype('int32')
    """
    key = check_key("randint", key)
    out_dtype = _integer("randint", dtype)
    out_shape = _shape("randint", shape, minval, maxval)
    info = dtypes.iinfo(out_dtype)
    if info.bits >= 32:
        return _randint(key, minval, maxval, out_shape, out_dtype)
    # Narrow integers are drawn as int32: with more random bits the modulus has less bias.
    low = jnp.clip(convert(minval, dtypes.int32), int(info.min), int(info.max))
    high = jnp.clip(convert(maxval, dtypes.int32), int(info.min), int(info.max) + 1)
    return convert(_randint(key, low, high, out_shape, np.dtype(dtypes.int32)), out_dtype)


@takes_out_sharding
def bernoulli(
    key: Key, p: ArrayLike = 0.5, shape: Shape | None = None, mode: str = "low", *, out_sharding: OutSharding = None
) -> Array:
    """Random bools that are True with probability `p`.

    Args:
      key: one PRNG key, new-style or old-style.
      p: probability of True, a float or an array of floats.
      shape: shape of the result, to which `p` broadcasts; None means the shape of `p`.
      mode: precision: 'low', or 'high', which uses twice as many random bits and so resolves smaller probabilities.

    Returns:
      A bool array of this shape.

    Raises:
      DtypeError: `key` is not a PRNG key, or `p` is not an array of floats.
      ShapeError: `key` is an array of several keys, or `p` does not broadcast to `shape`.
      OptionError: `mode` is unknown.

    >>> from phlox import random
    >>> random.bernoulli(random.key(0), 0.3, (4,)).dtype
    dtype('bool')
    """
    key = check_key("bernoulli", key)
    aval = type_of(check("bernoulli", p)[0])
    if dtypes.kind(aval.dtype) != "f":
        raise DtypeError(f"bernoulli: p must be of floats, got {aval.short}", instead="a probability, as in 0.5")
    if mode not in (None, "low", "high"):
        raise OptionError(f"bernoulli: got mode={mode!r}, expected 'high' or 'low'")
    return _bernoulli(key, p, _shape("bernoulli", shape, p), aval.dtype, mode == "high")


@functools.partial(jit, static_argnums=(2, 3, 4))
def _bernoulli(key: Any, p: Any, shape: tuple[int, ...], dtype: Any, high: bool) -> Any:
    p = to_dtype(p, dtype)
    if not high:
        return uniform(key, shape, dtype) < p
    coarse, fine = uniform(key, (2, *shape), dtype)
    # Not coarse + fine * 2**-nmant < p, whose sum would round the lower bits away.
    return fine * 2 ** -dtypes.finfo(dtype).nmant < p - coarse


@functools.partial(jit, static_argnums=2)
def _shuffle(key: Any, x: Any, axis: int) -> Any:
    # Shuffles by sorting with random keys; as these may repeat, large arrays are sorted several times.
    aval = type_of(x)
    if is_symbolic(aval.size):
        from ..lax import fori_loop

        size = aval.size.as_value()  # the rounds are those of the formula below
        rounds = 1 + convert(size > 1625, dtypes.int32) + convert(size > 2642245, dtypes.int32)
        return fori_loop(0, rounds, lambda _, state: _shuffled_once(state[0], state[1], axis), (key, x))[1]
    # As in JAX: the words of all rounds together have at least n**3 values for n elements.
    rounds = int(np.ceil(3 * np.log(max(1, aval.size)) / np.log(np.iinfo(np.uint32).max)))
    for _ in range(rounds):
        key, x = _shuffled_once(key, x, axis)
    return x


def _shuffled_once(key: Any, x: Any, axis: int) -> tuple[Any, Any]:
    """The key of the next round, and `x` sorted by random words."""
    halves = ops.random_split(key, shape=(2,))
    words = ops.random_bits(halves[1], bit_width=32, shape=type_of(x).shape)
    return halves[0], sort(words, x, dimension=axis, is_stable=True, num_keys=1)[1]


@takes_out_sharding
def permutation(
    key: Key, x: ArrayLike, axis: int = 0, independent: bool = False, *, out_sharding: OutSharding = None
) -> Array:
    """A random permutation of the integers from 0 to `x` - 1, or of the array `x` along `axis`.

    Args:
      key: one PRNG key, new-style or old-style.
      x: an array to shuffle; or an integer known while tracing, which stands for ``arange(x)``.
      axis: axis number to shuffle along; the first by default.
      independent: whether each vector along `axis` is shuffled separately; by default all are permuted in the same way.

    Returns:
      An array of the shape and dtype of `x`; int32 of shape (x,) for an integer.

    Raises:
      DtypeError: `key` is not a PRNG key, or `x` is a scalar that is not an integer.
      ShapeError: `key` is an array of several keys.
      AxisError: `axis` is out of range for `x`.

    >>> from phlox import random
    >>> sorted(random.permutation(random.key(0), 4).tolist())
    [0, 1, 2, 3]
    """
    key = check_key("permutation", key)
    if is_symbolic(x):
        x = jnp.arange(x)  # type: ignore[arg-type]
    x = check_one("permutation", x)
    aval = type_of(x)
    if aval.ndim == 0:
        if dtypes.kind(aval.dtype) not in "iu":
            raise DtypeError(f"permutation: x must be an integer or have axes, got {aval.short}")
        canonical_axis(axis, 1, "permutation")
        if isinstance(x, Tracer):
            x.__index__()
        count = jnp.arange(int(x))
        return _shuffle(key, count, 0)
    at = canonical_axis(axis, aval.ndim, "permutation")
    if independent or aval.ndim == 1:
        return _shuffle(key, x, at)
    order = _shuffle(key, iota(dtype=dtypes.canonical(dtypes.int64), shape=(aval.shape[at],), dimension=0), 0)
    return jnp.take(x, order, at, unique_indices=True)
