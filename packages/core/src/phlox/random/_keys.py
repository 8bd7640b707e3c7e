"""Functions of keys: making, splitting, wrapping and unwrapping them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .._api.jit.jit import jit
from .._base import checks, config
from .._base.beside_jax import is_of_jax
from .._base.errors import ArgumentError, DtypeError, OptionError, ShapeError
from .._base.source import warn
from .._ir import dtypes
from .._ir.avals import ShapedArray, typeof_value
from .._ir.primitive import current_trace
from .._operands.checks import as_shape, check_one
from .._ops.random import generators, keys as ops
from .._ops.structure.shape import convert
from .._trace.trace import not_an_array
from .._xla import key_records
from .._xla.array import ArrayImpl
from ..typing import Array, ArrayLike, DTypeLike, Key


def _type(x: Any, function: str) -> Any:
    aval = typeof_value(x)
    if aval is None:
        if is_of_jax(x):
            raise not_an_array(x, f"the key of {function}")
        raise ArgumentError(
            f"unexpected PRNG key type {type(x)}: {function} takes a key first, got {x!r:.60}",
            instead=f"phlox.random.{function}(phlox.random.key(0), ...)",
            argument="key",
            value=x,
        )
    return aval


def check_key(function: str, key: Any, *, single: bool = True) -> Any:
    """`key` as a new-style key array. Old-style keys are arrays of words.

    With `single`, the key must be one key. Raises `DtypeError` or `ShapeError` otherwise.
    """
    aval: Any = getattr(key, "aval", None)
    if type(aval) is ShapedArray and type(aval.dtype) is ops.KeyDtype and not aval.shape:
        return key  # the usual case
    aval = _type(key, function)
    if not ops.is_key(aval):
        impl = ops.find_impl(None)
        if aval.dtype != dtypes.uint32 or aval.shape[-1:] != impl.key_shape:
            raise DtypeError(
                f"{function} takes a PRNG key, got {f'{key!r}, ' if type(key) in (int, float) else ''}{aval.short}",
                instead=f"phlox.random.key({key})" if type(key) is int else "phlox.random.key(seed)",
                aval=aval,
            )
        _legacy(function)
        words = key
        # All samplers work with new-style keys; the same words give the same numbers.
        key = ops.random_wrap(words, impl=impl)
        if checks.is_strict() and current_trace.get() is None and type(words) is ArrayImpl:
            key_records.share(words, key)
        aval = _type(key, function)
    if single and aval.shape:
        raise ShapeError(
            f"{function} accepts a single key, but was given a key array of shape {aval.shape}",
            instead=f"phlox.vmap({function}), or one key of the array",
            shapes=[aval.shape],
        )
    return key


def _legacy(function: str) -> None:
    """Applies the config flags about old-style keys (arrays of numbers)."""
    settings = config.current()
    if settings.legacy_prng_key == "allow" and not settings.enable_custom_prng:
        return
    what = f"{function} got an old-style key, an array of uint32"
    if settings.legacy_prng_key == "error":
        raise OptionError(f"{what}, and legacy_prng_key is 'error'", instead="phlox.random.key(seed)")
    kind = UserWarning if settings.legacy_prng_key == "warn" else FutureWarning
    warn(f"{what}; phlox.random.key(seed) makes one of the new style", kind)


def _in_style_of(key: Any, keys: Any) -> Any:
    """New keys in the style of `key`: new-style keys, or words."""
    is_new_style = type(key.dtype) is ops.KeyDtype or config.current().enable_custom_prng
    return keys if is_new_style else ops.random_unwrap(keys)


def _seeds(seed: Any, function: str) -> Any:
    """The seed as an array or a number of NumPy, with the offset of the flag `random_seed_offset`."""
    offset = config.current().random_seed_offset
    seed = _checked_seed(seed, function)
    return seed + np.asarray(offset, seed.dtype) if offset else seed


def _checked_seed(seed: Any, function: str) -> Any:
    aval = typeof_value(seed)
    if aval is None or dtypes.kind(aval.dtype) not in "biu":
        got = repr(seed) if aval is None else aval.short
        raise DtypeError(f"{function}: a seed must be an integer, got {got}", seed=seed)
    if aval.shape:
        raise ShapeError(
            f"{function}: a seed must be one integer, got {aval.short}", instead=f"phlox.vmap({function})(seeds)"
        )
    if isinstance(seed, int) and not isinstance(seed, bool):
        # Seeds wrap around to the width of the default integers, negative ones included.
        bits = dtypes.bits(dtypes.canonical(dtypes.int64))
        wrapped = (seed + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
        if not -(1 << 63) <= seed < 1 << 63:
            raise dtypes.too_large(seed, dtypes.int64)
        return np.asarray(wrapped, dtypes.canonical(dtypes.int64))
    if aval.dtype == dtypes.bool_:
        return np.asarray(seed, dtypes.int32) if isinstance(seed, bool) else convert(seed, dtypes.int32)
    return seed


@functools.partial(jit, inline=True, static_argnames="impl")
def _make(seed: Any, impl: generators.Impl) -> Any:
    return ops.random_seed(seed, impl=impl)


@functools.partial(jit, inline=True, static_argnames="impl")
def _make_raw(seed: Any, impl: generators.Impl) -> Any:
    return ops.random_unwrap(ops.random_seed(seed, impl=impl))


def key_dtype(impl_spec: str | Any | None = None) -> Any:
    """The dtype of the keys of a PRNG implementation, given by its name.

    Args:
      impl_spec: name of a generator: 'threefry2x32', 'rbg' or 'unsafe_rbg'; None means the value of the flag
        `default_prng_impl`.

    Returns:
      The dtype of key arrays of this generator.

    Raises:
      OptionError: there is no generator of this name.
      ArgumentError: `impl_spec` is neither a name nor a generator nor a dtype of keys.

    >>> key_dtype()
    key<fry>
    """
    return ops.key_dtype(impl_spec)


def _impl(function: str, impl: Any, dtype: Any) -> generators.Impl:
    """The PRNG implementation with this name or with this dtype of keys."""
    if impl is not None and dtype is not None:
        raise OptionError(f"{function} takes impl or dtype, not both")
    return ops.find_impl(impl if dtype is None else dtype)


def key(seed: ArrayLike, *, impl: str | Any | None = None, dtype: DTypeLike | None = None) -> Array:
    """A new-style PRNG key, an array of dtype ``key<fry>`` and shape (), from an integer seed.

    Args:
      seed: integer seed: a Python integer, or an array of integers or bools of shape (). Python integers are taken
        modulo 2**32 (2**64 in x64 mode).
      impl: name of the generator: 'threefry2x32', 'rbg' or 'unsafe_rbg'; None means the value of the flag
        `default_prng_impl`.
      dtype: dtype of the key, which determines the generator, see `key_dtype`; an alternative to `impl`.

    Returns:
      One key: an array of shape () of the generator's key dtype.

    Raises:
      DtypeError: `seed` is not an integer.
      ShapeError: `seed` is not a scalar.
      NumberRangeError: `seed` is a Python integer of more than 64 bits.
      OptionError: `impl` and `dtype` are both given, or `impl` names no generator.

    >>> key(0)
    Array((), dtype=key<fry>) overlaying:
    [0 0]
    """
    return _make(_seeds(seed, "key"), impl=_impl("key", impl, dtype))


def PRNGKey(seed: ArrayLike, *, impl: str | Any | None = None) -> Array:
    """An old-style PRNG key, an array of two uint32, from an integer seed.

    Args:
      seed: integer seed: a Python integer, or an array of integers of shape (), as for `key`.
      impl: name of the generator, as for `key`.

    Returns:
      The words of one key: uint32 of shape (2,), or of shape (4,) for 'rbg' and 'unsafe_rbg'. With the flag
      `enable_custom_prng`, a new-style key.

    Raises:
      DtypeError: `seed` is not an integer.
      ShapeError: `seed` is not a scalar.
      NumberRangeError: `seed` is a Python integer of more than 64 bits.
      OptionError: `impl` names no generator.

    >>> PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    make = _make if config.current().enable_custom_prng else _make_raw
    return make(_seeds(seed, "PRNGKey"), impl=ops.find_impl(impl))


def wrap_key_data(key_bits_array: ArrayLike, *, impl: str | Any | None = None, dtype: DTypeLike | None = None) -> Array:
    """New-style keys made from their words, which `key_data` returns.

    Args:
      key_bits_array: words of the keys: uint32 of shape [..., n], where n is the number of words in one key; 2 for the
        default generator.
      impl: name of the generator, as for `key`.
      dtype: dtype of the keys, which determines the generator, see `key_dtype`; an alternative to `impl`.

    Returns:
      An array of keys, of the shape of `key_bits_array` without its last axis.

    Raises:
      DtypeError: `key_bits_array` is not uint32, or its last axis has another length.
      OptionError: `impl` and `dtype` are both given, or `impl` names no generator.

    >>> wrap_key_data(np.array([0, 1], np.uint32)).dtype
    key<fry>
    """
    return ops.random_wrap(check_one("wrap_key_data", key_bits_array), impl=_impl("wrap_key_data", impl, dtype))


def key_data(keys: Key) -> Any:
    """The words that keys consist of, as integers.

    Args:
      keys: array of keys of any shape; old-style keys are returned as they are.

    Returns:
      uint32 of the shape of `keys` with a further last axis for the words of each key; 2 words for the default
      generator.

    Raises:
      DtypeError: `keys` are not PRNG keys.

    >>> key_data(key(3))
    Array([0, 3], dtype=uint32)
    """
    if not ops.is_key(_type(keys, "key_data")):
        check_key("key_data", keys, single=False)
        return keys
    return ops.random_unwrap(keys)


def key_impl(keys: Key) -> Any:
    """The generator of keys, in a form that `key` and `wrap_key_data` accept as `impl`.

    Args:
      keys: array of keys of any shape, new-style or old-style.

    Returns:
      The name of the generator, a string; for a custom generator, the object that describes it.

    Raises:
      DtypeError: `keys` are not PRNG keys.

    >>> key_impl(key(0))
    'threefry2x32'
    """
    keys = check_key("key_impl", keys, single=False)
    impl = _type(keys, "key_impl").dtype.impl
    return impl.name if impl == generators.KNOWN.get(impl.name) else impl


def clone(key: Key) -> Any:
    """A copy of `key` (as ``jax.random.clone``), for drawing the same numbers again on purpose.

    The flags `checks` and `debug_key_reuse` count the uses of the copy separately from those of `key`.

    Args:
      key: keys of any shape, new-style or old-style.

    Returns:
      The same keys, which give the same random numbers.

    Raises:
      DtypeError: `key` is not a PRNG key.

    >>> clone(PRNGKey(1))
    Array([0, 1], dtype=uint32)
    """
    keys = check_key("clone", key, single=False)
    if keys is not key and not checks.is_strict():
        return key  # only strict checks record the uses of words
    return _in_style_of(key, ops.random_clone(keys))


@functools.partial(jit, inline=True, static_argnames="shape")
def _split(key: Any, shape: tuple[int, ...]) -> Any:
    return _in_style_of(key, ops.random_split(check_key("split", key), shape=shape))


def split(key: Key, num: int | tuple[int, ...] = 2) -> Array:
    """New keys, independent of each other and of `key`.

    Args:
      key: one PRNG key, new-style or old-style; do not use it again.
      num: number of keys, or shape of the array of keys.

    Returns:
      Keys of shape (num,), or of shape `num` if it is a tuple, in the style of `key`; old-style keys are uint32 with a
      last axis for the 2 words of each.

    Raises:
      DtypeError: `key` is not a PRNG key.
      ShapeError: `key` is an array of several keys.

    >>> key_0, key_1 = split(PRNGKey(0))
    >>> key_0
    Array([1797259609, 2579123966], dtype=uint32)
    """
    return _split(key, shape=(num,) if type(num) is int else as_shape(num, "split"))


@functools.partial(jit, inline=True)
def _fold_in(key: Any, data: Any) -> Any:
    return _in_style_of(key, ops.random_fold_in(check_key("fold_in", key), convert(data, dtypes.uint32)))


def fold_in(key: Key, data: ArrayLike) -> Array:
    """A new key derived from `key` and the integer `data`, for example the number of a training step.

    Args:
      key: one PRNG key, new-style or old-style.
      data: integer to combine with the key: a Python number from 0 to 2**32 - 1, or an array of shape (), which is
        converted to uint32.

    Returns:
      One key, in the style of `key`.

    Raises:
      DtypeError: `key` is not a PRNG key, or `data` is not a real number.
      ShapeError: `key` is an array of several keys, or `data` is not a scalar.
      NumberRangeError: `data` is a Python number out of the range of uint32.

    >>> fold_in(PRNGKey(0), 1)
    Array([ 928981903, 3453687069], dtype=uint32)
    """
    aval = typeof_value(data)
    if aval is None or dtypes.kind(aval.dtype) not in "biuf":
        raise DtypeError(f"fold_in: data must be a number, got {data!r}")
    if aval.shape:
        raise ShapeError(f"fold_in: data must be one integer, got {aval.short}", instead="phlox.vmap")
    if isinstance(data, int | float):
        if not -1 < data < 1 << 32:
            raise dtypes.too_large(data, dtypes.uint32)
        data = int(data)
        # A Python number is an int32 argument of the program, which cannot hold 2**31 and more.
        if type(key) is not ArrayImpl or current_trace.get() is not None or data >= 1 << 31:
            return _fold_in(key, np.uint32(data))
        out = _fold_in(key, data)  # a Python number, for which the call is faster
        if ops.is_key(_type(key, "fold_in")) or checks.is_strict():
            key_records.fold(key, out, data)
        return out
    return _fold_in(key, data)
