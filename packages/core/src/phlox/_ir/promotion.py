"""dtype promotion: JAX's lattice, in which Python scalars are weakly typed.

`_lattice` maps each type to the types directly above it. Several types promote to their least upper bound. A weak type
(of a Python scalar, or of an array made from one) is below every strong type of its kind, so ``f16_array * 2.0`` has
dtype f16.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .._base import config
from .._base.errors import ArgumentError, TypePromotionError
from . import dtypes
from .dtypes import (
    COMPLEX,
    FLOATS,
    SIGNED,
    SMALL_FLOATS,
    UNSIGNED,
    Dtype,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

_WEAK = {"i": "weak int", "u": "weak int", "f": "weak float", "c": "weak complex"}
Node = Any  # a numpy dtype, or one of the three names above


def _lattice(x64: bool) -> dict[Node, tuple[Node, ...]]:
    tiny = [dtype for dtype in (*SIGNED, *UNSIGNED) if dtypes.bits(dtype) < 8]
    return {
        # For each type the types directly above it. The weak types of Python numbers are below the sized types of
        # their kind, so that a number does not widen an array.
        bool_: ("weak int",),
        "weak int": (uint8, int8, *tiny),
        **dict.fromkeys(tiny, ()),
        uint8: (int16, uint16),
        uint16: (int32, uint32),
        # In 32-bit mode uint32 and int32 must have an upper bound of 32 bits: int32.
        uint32: (int64 if x64 else int32, uint64),
        # No integer type holds all numbers of uint64 and int64, so their bound is a float, as in JAX.
        uint64: ("weak float",),
        int8: (int16,),
        int16: (int32,),
        int32: (int64,),
        int64: ("weak float",),
        "weak float": (*SMALL_FLOATS, bfloat16, float16, "weak complex"),
        **dict.fromkeys(SMALL_FLOATS, ()),
        bfloat16: (float32,),
        float16: (float32,),
        float32: (float64, complex64),
        float64: (complex128,),
        "weak complex": (complex64,),
        complex64: (complex128,),
        complex128: (),
    }


def _strict_lattice() -> dict[Node, tuple[Node, ...]]:
    """Only weak types promote; two different strong types have no common type."""
    return {
        bool_: (),
        "weak int": (*SIGNED, *UNSIGNED, "weak float"),
        "weak float": (*FLOATS, "weak complex"),
        "weak complex": COMPLEX,
        **dict.fromkeys((*SIGNED, *UNSIGNED, *FLOATS, *COMPLEX), ()),
    }


@functools.cache
def _upper_bounds(strict: bool, x64: bool) -> dict[Node, frozenset[Node]]:
    lattice = _strict_lattice() if strict else _lattice(x64)
    bounds: dict[Node, frozenset[Node]] = {}
    for node in lattice:
        _add_bounds(bounds, lattice, node)
    return bounds


def _add_bounds(
    bounds: dict[Node, frozenset[Node]], lattice: dict[Node, tuple[Node, ...]], node: Node
) -> frozenset[Node]:
    """The node and all above it, after adding them to `bounds`."""
    if node not in bounds:
        bounds[node] = frozenset({node}).union(*(_add_bounds(bounds, lattice, higher) for higher in lattice[node]))
    return bounds[node]


def _node(dtype: Dtype, weak: bool) -> Node:
    return _WEAK.get(dtypes.kind(dtype), dtype) if weak else dtype


@functools.lru_cache(4096)
def _join(nodes: frozenset[Node], strict: bool, x64: bool) -> Node:
    if len(nodes) == 1:
        return next(iter(nodes))
    bounds = _upper_bounds(strict, x64)
    unknown = [node for node in nodes if node not in bounds]
    if unknown:
        raise _no_promotion(nodes)
    common = frozenset.intersection(*(bounds[node] for node in nodes))
    # The least of the common bounds is the one that all others are above. There is none where two are not ordered.
    least = [node for node in common if common <= bounds[node]]
    if len(least) != 1:
        raise _no_promotion(nodes, strict)
    return least[0]


def _no_promotion(nodes: frozenset[Node], strict: bool = False) -> TypePromotionError:
    names = sorted(str(node) for node in nodes)
    if any(isinstance(node, dtypes.ExtendedDtype) for node in nodes):
        return TypePromotionError(
            f"arithmetic does not accept dtypes {', '.join(names)}: PRNG keys are no numbers",
            instead=dtypes.INSTEAD_OF_KEYS,
            dtypes=names,
        )
    if dtypes.float0 in nodes:
        return TypePromotionError(f"{dtypes.NO_FLOAT0}: {names}", instead=dtypes.INSTEAD_OF_FLOAT0, dtypes=names)
    return TypePromotionError(
        f"Input dtypes {tuple(names)} have no available implicit dtype promotion path"
        + (" (strict dtype promotion is on)" if strict else ""),
        instead="convert explicitly, for example x.astype(phlox.numpy.float32)",
        dtypes=names,
    )


_DEFAULTS = {"weak int": int64, "weak float": float64, "weak complex": complex128}


def promote(types: tuple[tuple[Dtype, bool], ...], lenient: bool = False) -> tuple[Dtype, bool]:
    """The (dtype, weak_type) of the result of an operation on operands of these (dtype, weak_type).

    A 64-bit result becomes the 32-bit type of its kind when 64-bit mode is off, unless the flag `explicit_x64_dtypes`
    keeps 64-bit types that are named and an operand has one. With `lenient` the flag ``numpy_dtype_promotion`` has no
    effect.
    """
    if not types:
        raise ArgumentError("promotion needs at least one array, number or dtype")
    settings = config.current()
    strict = settings.numpy_dtype_promotion == "strict" and not lenient
    wide = settings.enable_x64 or (settings.explicit_x64_dtypes == "allow" and any(map(_is_wide, types)))
    return _promote(types, strict, wide)


def _is_wide(operand: tuple[Dtype, bool]) -> bool:
    dtype, weak = operand
    return not weak and dtype in dtypes.NARROW


@functools.lru_cache(4096)
def _promote(types: tuple[tuple[Dtype, bool], ...], strict: bool, x64: bool) -> tuple[Dtype, bool]:
    if len(set(types)) == 1:
        dtype, weak = types[0]  # the results of arrays of 64 bits have 64 bits, outside of 64-bit mode too
        return dtype, weak and dtype != bool_
    if all(weak for _, weak in types):
        # Only weak types: promote as if they were strong, and stay weak.
        node = _join(frozenset(dtype for dtype, _ in types), False, x64)
        return _narrow(_DEFAULTS.get(node, node), x64), node != bool_
    node = _join(frozenset(_node(dtype, weak) for dtype, weak in types), strict, x64)
    # A weak node as the result of strong types, as of int64 and uint64, is their default dtype, and stays weak as in
    # JAX.
    return _narrow(_DEFAULTS.get(node, node), x64), node in _DEFAULTS


def _narrow(dtype: Dtype, x64: bool) -> Dtype:
    return dtype if x64 else dtypes.NARROW.get(dtype, dtype)


def promote_types(a: Any, b: Any) -> np.dtype:
    """The element type in which values of both `a` and `b` are computed, by JAX's promotion lattice (as
    ``numpy.promote_types``).

    Args:
      a, b: dtypes, or names or scalar types of them; Python's `int`, `float` and `complex` stand for weak types.

    Returns:
      The dtype. It may have 64 bits although 64-bit mode is off.

    >>> promote_types("int32", "float16"), promote_types("bfloat16", float)
    (dtype('float16'), dtype(bfloat16))
    """
    first, second = (_named(x) for x in (a, b))
    settings = config.current()
    node = _join(frozenset({first, second}), settings.numpy_dtype_promotion == "strict", settings.enable_x64)
    return _DEFAULTS.get(node, node)


def _named(x: Any) -> Node:
    weak = {int: "weak int", float: "weak float", complex: "weak complex"}
    if isinstance(x, type) and x in weak:
        return weak[x]
    return dtypes.as_dtype(x)
