"""PRNG keys: their extended dtype, and the primitives that make, split and use them.

An array of keys has the dtype `KeyDtype`; in memory each key is a few 32-bit words. The `types` rules of the primitives
see keys; their lowering rules see words, and use an implementation of `generators.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base import config
from ..._base.errors import ArgumentError, DtypeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.dimensions import is_symbolic
from ..._ir.dtypes import ExtendedDtype
from ..._ir.jaxpr import JaxprEqn
from ..._ir.key_uses import add_key_type, makes, reads, replaces
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import batches
from ..._trace.trace import typeof
from ..._transform.array_operations import move_axis
from ..._transform.batch import batch_of_one
from ..._transform.padding import Padding, pad_elementwise, refuse
from ..elementwise.families import broadcast_shape, elementwise_batch, lowered_as
from ..structure.padding import reshaped
from .generators import KNOWN, Impl, named


def find_impl(impl: Any) -> Impl:
    """The PRNG implementation with this name or of this key dtype (None: the default)."""
    if impl is None:
        return named(config.current().default_prng_impl)
    if isinstance(impl, Impl):
        return impl
    if isinstance(impl, KeyDtype):
        return impl.impl
    if not isinstance(impl, str):
        raise ArgumentError(
            f"unrecognized type {type(impl).__name__} for specifying PRNG implementation, got {impl!r}",
            instead="its name, as in impl='rbg'",
            value=impl,
        )
    return named(impl)


class KeyDtype(ExtendedDtype):
    """The dtype of PRNG keys, such as ``key<fry>``."""

    physical = dtypes.uint32
    type = dtypes.prng_key

    def __init__(self, impl: Impl):
        self.impl = impl
        self.name = f"key<{impl.tag}>"
        self.element_shape = impl.key_shape
        add_key_type(self)

    def __reduce__(self) -> Any:
        # Functions of an implementation may be closures, which cannot be pickled. A known one is found by its name.
        known = self.impl == KNOWN.get(self.impl.name)
        return key_dtype, (self.impl.name if known else self.impl,)


@functools.cache
def _dtype_of(impl: Impl) -> KeyDtype:
    return KeyDtype(impl)


def key_dtype(impl: Any) -> KeyDtype:
    """The dtype of keys of an implementation, given as for `find_impl`."""
    return _dtype_of(find_impl(impl))


def is_key(aval: ShapedArray) -> bool:
    """Whether arrays of this type hold PRNG keys."""
    return isinstance(aval.dtype, KeyDtype)


def _need_keys(name: str, aval: ShapedArray) -> None:
    if not is_key(aval):
        raise DtypeError(f"{name} takes an array of PRNG keys, got {aval.short}", instead="phlox.random.key(0)")


def _unchanged(params: dict[str, Any], trailing: tuple[int, ...], *avals: ShapedArray) -> dict[str, Any]:
    return params


def with_impl(params: dict[str, Any], trailing: tuple[int, ...], *avals: ShapedArray) -> dict[str, Any]:
    """The rule `extend`: adds the implementation to the parameters, because the lowering rule sees only words."""
    return {**params, "impl": avals[0].dtype.impl}


def _rank(impl: Impl, words: Any) -> int:
    """The number of axes of an array of keys, given its words."""
    return typeof(words).ndim - len(impl.key_shape)


def _of_keys(name: str, **rules: Any) -> Primitive:
    """A primitive of one operand, of or into PRNG keys, with these `rules` in place of the shared ones."""
    shared = {
        "batch": batch_of_one(lambda x, dim, **params: (prim.bind(x, **params), dim)),
        "pad": pad_elementwise,
        "extend": _unchanged,
        "keys": makes,
        "nan_checked": False,
    }
    prim = Primitive(name, **{**shared, **rules})
    return prim


random_seed = _of_keys(
    "random_seed",
    types=lambda seeds, impl: shaped(seeds.shape, key_dtype(impl)),
    sharding=batches,
    lower=lowered_as(lambda seeds, impl: impl.each(impl.seed, [typeof(seeds).ndim], seeds)),
)


def _wrap_types(base: ShapedArray, impl: Impl) -> ShapedArray:
    shape = impl.key_shape
    if base.dtype != dtypes.uint32 or base.shape[base.ndim - len(shape) :] != shape:
        raise DtypeError(
            f"random_wrap: keys of {impl.name} are made of uint32[..., {', '.join(map(str, shape))}], got {base.short}"
        )
    return shaped(base.shape[: base.ndim - len(shape)], key_dtype(impl))


random_wrap = _of_keys(
    "random_wrap",
    types=_wrap_types,
    sharding=batches,
    # In memory an array of keys is the array of their words.
    lower=lambda f, base, impl: base,
    # The last axes of the words are those of one key, so the mapped axis goes in front.
    batch=batch_of_one(lambda x, dim, **params: (random_wrap.bind(move_axis(x, dim, 0), **params), 0)),
)


def _unwrap_types(keys: ShapedArray) -> ShapedArray:
    _need_keys("random_unwrap", keys)
    return keys.physical


random_unwrap = _of_keys(
    "random_unwrap",
    types=_unwrap_types,
    sharding=batches,
    lower=lambda f, keys: keys,
    keys=reads,
)


def _split_types(keys: ShapedArray, shape: tuple[int, ...]) -> ShapedArray:
    _need_keys("random_split", keys)
    return shaped((*keys.shape, *shape), keys.dtype)


def depends_on_count(eqn: JaxprEqn, shape: Sequence[Any], moves: bool = False) -> bool:
    """Whether padded axes of `shape`, for which each key makes numbers, change the positions of these.

    Refuses numbers that depend on how many are drawn and, unless the caller `moves` them, those whose positions change.
    """
    # Axes of length one change no positions.
    axes, keys = [n for n in shape if n != 1], eqn.invars[0].aval
    if not any(map(is_symbolic, (*axes, *keys.shape))):
        return False
    if keys.dtype.impl.name != "threefry2x32" or not config.current().threefry_partitionable:
        refuse(eqn, "these random numbers depend on how many are drawn")
    # The counter of an element is its position in the flattened array. A longer first axis leaves it, a longer inner
    # axis does not.
    changes = any(map(is_symbolic, axes[1:]))
    if changes and not moves:
        refuse(eqn, "these random numbers depend on the lengths of other axes than the first")
    return changes


def _numbers_pad(padding: Padding, eqn: JaxprEqn, keys: Any) -> Any:
    """Numbers, or new keys, that depend on their position alone: those of a longer array begin with those of a
    shorter one."""
    shape, old = eqn.params["shape"], eqn.outvars[0].aval
    if not depends_on_count(eqn, shape, moves=not is_key(old)):
        return pad_elementwise(padding, eqn, keys)
    # Draws the numbers in one axis, in which their positions do not depend on padding, and reshapes them afterwards.
    flat = shaped((*eqn.invars[0].aval.shape, math.prod(shape)), old.dtype)
    drawn = eqn.primitive.bind(keys, **{**eqn.params, "shape": (padding.capacity(math.prod(shape)),)})
    return reshaped(padding, eqn, drawn, flat, old)


random_split = _of_keys(
    "random_split",
    types=_split_types,
    sharding=batches,
    lower=lowered_as(lambda keys, impl, shape: impl.each(lambda k: impl.split(k, shape), [_rank(impl, keys)], keys)),
    pad=_numbers_pad,
    extend=with_impl,
    keys=replaces,
)


def _clone_types(keys: ShapedArray) -> ShapedArray:
    _need_keys("random_clone", keys)
    return keys


random_clone = _of_keys(
    "random_clone",
    types=_clone_types,
    lower=lambda f, keys: keys,
)


def _fold_types(keys: ShapedArray, msgs: ShapedArray) -> ShapedArray:
    _need_keys("random_fold_in", keys)
    if msgs.dtype != dtypes.uint32:
        raise DtypeError(f"random_fold_in: data must be uint32, got {msgs.short}")
    return shaped(broadcast_shape("random_fold_in", (keys, msgs)), keys.dtype)


random_fold_in = Primitive(
    "random_fold_in",
    types=_fold_types,
    lower=lowered_as(
        lambda keys, msgs, impl: impl.each(impl.fold_in, [_rank(impl, keys), typeof(msgs).ndim], keys, msgs)
    ),
    batch=elementwise_batch(lambda: random_fold_in),
    pad=pad_elementwise,
    extend=with_impl,
    keys=makes,
    nan_checked=False,
)


def _bits_types(keys: ShapedArray, bit_width: int, shape: tuple[int, ...]) -> ShapedArray:
    _need_keys("random_bits", keys)
    return shaped((*keys.shape, *shape), np.dtype(f"uint{bit_width}"))


random_bits = _of_keys(
    "random_bits",
    types=_bits_types,
    sharding=batches,
    lower=lowered_as(
        lambda keys, impl, bit_width, shape: impl.each(
            lambda k: impl.random_bits(k, bit_width, shape), [_rank(impl, keys)], keys
        )
    ),
    pad=_numbers_pad,
    extend=with_impl,
    keys=None,
)
