"""PRNG keys: their element type, and the primitives that make, split and use them.

An array of keys is an array of `KeyDtype` elements; in memory each is two 32-bit words. The primitives' types
speak of keys, their lowering of words, through the generator in `threefry.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base.errors import DtypeError, OptionError, ShapeError
from .._ir import dtypes
from .._ir.avals import ShapedArray, shaped
from .._ir.dtypes import ExtendedDtype
from .._ir.primitive import Primitive
from .._transform.batch import BatchAxis, Dim, place_axis
from .._transform.words import move_axis
from . import threefry
from .families import broadcast_shape, lowered_as


class Impl:
    """A random number generator: its name, its tag in printed types, and the shape of its keys in words."""

    def __init__(self, name: str, tag: str, key_shape: tuple[int, ...]):
        self.name = name
        self.tag = tag
        self.key_shape = key_shape

    def __repr__(self) -> str:
        return self.tag


THREEFRY = Impl("threefry2x32", "fry", (2,))
IMPLS = {THREEFRY.name: THREEFRY}


def find_impl(name: Any) -> Impl:
    """The generator of this name, or of keys of this element type (None: the default)."""
    if name is None:
        return THREEFRY
    if isinstance(name, Impl):
        return name
    if isinstance(name, KeyDtype):
        return name.impl
    found = IMPLS.get(str(name))
    if found is None:
        raise OptionError(f"unknown PRNG implementation {name!r}", instead="one of " + ", ".join(map(repr, IMPLS)))
    return found


class KeyDtype(ExtendedDtype):
    """The element type of PRNG keys, ``key<fry>``."""

    physical = dtypes.uint32
    type = dtypes.prng_key

    def __init__(self, impl: Impl):
        self.impl = impl
        self.name = f"key<{impl.tag}>"
        self.element_shape = impl.key_shape

    def __reduce__(self) -> Any:
        return key_dtype, (self.impl.name,)


_dtypes = {impl.name: KeyDtype(impl) for impl in IMPLS.values()}


def key_dtype(name: str) -> KeyDtype:
    """The element type of keys of this generator."""
    return _dtypes[name]


def is_key(aval: ShapedArray) -> bool:
    """Whether arrays of this type hold PRNG keys."""
    return isinstance(aval.dtype, KeyDtype)


def _need_keys(name: str, aval: ShapedArray) -> None:
    if not is_key(aval):
        raise DtypeError(f"{name} takes an array of PRNG keys, got {aval.short}", instead="phlox.random.key(0)")


def _unchanged(params: dict[str, Any], trailing: tuple[int, ...], *avals: ShapedArray) -> dict[str, Any]:
    return params


def _front(make: Callable[[], Primitive]) -> Callable[..., Any]:
    """Batching of an operation on keys with one operand: the mapped axis goes in front."""

    def batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], **params: Any) -> tuple[Any, Dim]:
        dim = dims[0]
        assert dim is not None
        return make().bind(move_axis(args[0], dim, 0), **params), 0

    return batch


random_seed = Primitive(
    "random_seed",
    types=lambda seeds, impl: shaped(seeds.shape, key_dtype(impl.name)),
    lower=lowered_as(lambda seeds, impl: threefry.seed(seeds)),
    batch=_front(lambda: random_seed),
    extend=_unchanged,
    nan_checked=False,
)


def _wrap_types(base: ShapedArray, impl: Impl) -> ShapedArray:
    shape = impl.key_shape
    if base.dtype != dtypes.uint32 or base.shape[base.ndim - len(shape) :] != shape:
        raise DtypeError(
            f"random_wrap: keys of {impl.name} are made of uint32[..., {', '.join(map(str, shape))}], got {base.short}"
        )
    return shaped(base.shape[: base.ndim - len(shape)], key_dtype(impl.name))


random_wrap = Primitive(
    "random_wrap",
    types=_wrap_types,
    lower=lambda f, base, impl: base,
    batch=_front(lambda: random_wrap),
    extend=_unchanged,
    nan_checked=False,
)


def _unwrap_types(keys: ShapedArray) -> ShapedArray:
    _need_keys("random_unwrap", keys)
    return keys.physical


random_unwrap = Primitive(
    "random_unwrap",
    types=_unwrap_types,
    lower=lambda f, keys: keys,
    batch=_front(lambda: random_unwrap),
    extend=_unchanged,
    nan_checked=False,
)


def _split_types(keys: ShapedArray, shape: tuple[int, ...]) -> ShapedArray:
    _need_keys("random_split", keys)
    return shaped((*keys.shape, *shape), keys.dtype)


random_split = Primitive(
    "random_split",
    types=_split_types,
    lower=lowered_as(lambda keys, shape: threefry.split(keys, shape)),
    batch=_front(lambda: random_split),
    extend=_unchanged,
    nan_checked=False,
)


def _fold_types(keys: ShapedArray, msgs: ShapedArray) -> ShapedArray:
    _need_keys("random_fold_in", keys)
    if msgs.dtype != dtypes.uint32:
        raise DtypeError(f"random_fold_in: data must be uint32, got {msgs.short}")
    if keys.shape != msgs.shape:
        raise ShapeError(f"random_fold_in: {keys.short} and data {msgs.short} must have one shape")
    return shaped(broadcast_shape("random_fold_in", (keys, msgs)), keys.dtype)


def _fold_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim]) -> tuple[Any, Dim]:
    return random_fold_in.bind(*[place_axis(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]), 0


random_fold_in = Primitive(
    "random_fold_in",
    types=_fold_types,
    lower=lowered_as(lambda keys, msgs: threefry.fold_in(keys, msgs)),
    batch=_fold_batch,
    extend=_unchanged,
    nan_checked=False,
)


def _bits_types(keys: ShapedArray, bit_width: int, shape: tuple[int, ...]) -> ShapedArray:
    _need_keys("random_bits", keys)
    return shaped((*keys.shape, *shape), np.dtype(f"uint{bit_width}"))


random_bits = Primitive(
    "random_bits",
    types=_bits_types,
    lower=lowered_as(lambda keys, bit_width, shape: threefry.bits(keys, bit_width, shape)),
    batch=_front(lambda: random_bits),
    extend=_unchanged,
    nan_checked=False,
)
