"""Functions of integers and bits: gcd, lcm, bitwise_count, divmod, packbits, unpackbits."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import DtypeError, OptionError
from ..._ir import dtypes
from ..._operands.checks import check, check_one, integer, type_of
from ..._operands.promotion import promoted, to_dtype
from ..._ops.elementwise import arithmetic as e, logic
from ..._ops.elementwise.families import literal
from ..._ops.structure import shape as ops
from ..._ops.structure.slicing import along
from ...typing import Array, ArrayLike
from .._manipulation.broadcasting import broadcast_arrays
from .._manipulation.shapes import flat_or_along, moveaxis, reshape
from .._statistics.reductions import sum
from .binary import floor_divide, remainder
from .choose import where
from .unary import abs, as_bool, is_kind, number


def _whole_numbers(function: str, x1: Any, x2: Any) -> tuple[Any, ...]:
    types = [type_of(x) for x in check(function, x1, x2)]
    x1, x2 = promoted(function, x1, x2)
    if not is_kind(x1, "iu"):
        raise DtypeError(f"{function} takes integers, got {type_of(x1).short}", instead="x.astype(int)")
    dtype = type_of(x1).dtype
    # Only results of the default integer dtype can be weakly typed.
    weak = dtype == dtypes.canonical(dtypes.int64) and all(
        t.weak_type and t.ndim == 0 and t.dtype.kind in "iu" for t in types
    )
    x1, x2 = (to_dtype(x, dtype, weak) for x in (x1, x2))
    return broadcast_arrays(x1, x2)


@jit
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor, not negative, elementwise; of 0 and 0 it is 0 (as ``numpy.gcd``).

    Args:
      x1, x2: integer arrays or numbers that broadcast against each other.

    Returns:
      An array of the broadcast shape, of the promoted dtype.

    Raises:
      DtypeError: the promoted dtype is not an integer dtype.

    >>> gcd(12, 18)
    Array(6, dtype=int32, weak_type=True)
    """
    from ...lax import while_loop  # here, as `phlox.numpy` does not wait for lax

    x1, x2 = (abs(x) for x in _whole_numbers("gcd", x1, x2))

    def divide(pair: Any) -> Any:
        x, y = pair
        # Pairs whose second number is 0 are done, and stay as they are until all others are.
        nothing = logic.eq(y, literal(y, 0))
        rest = e.rem(x, logic.select(nothing, literal(y, 1), y))
        return logic.select(nothing, x, y), logic.select(nothing, y, rest)

    return while_loop(lambda pair: as_bool(pair[1]).any(), divide, (x1, x2))[0]


@jit
@docs_from(gcd)
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple, not negative, elementwise; 0 where either is 0 (as ``numpy.lcm``).

    >>> lcm(4, 6)
    Array(12, dtype=int32, weak_type=True)
    """
    x1, x2 = _whole_numbers("lcm", x1, x2)
    divisor = gcd(x1, x2)
    nothing = logic.eq(divisor, literal(divisor, 0))
    # The division comes first, as the product of both numbers may overflow.
    multiple = e.mul(abs(x1), e.div(abs(x2), logic.select(nothing, literal(divisor, 1), divisor)))
    return where(nothing, literal(multiple, 0), multiple)


@jit(inline=True)
def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of bits that are set in the absolute value of `x`, elementwise (as ``numpy.bitwise_count``).

    Args:
      x: array of integers or bools, of any shape, or a number.

    Returns:
      A uint8 array of the shape of `x`.

    Raises:
      DtypeError: `x` is not of integers or bools.

    >>> bitwise_count(np.array([7, -8]))
    Array([3, 1], dtype=uint8)
    """
    x = check_one("bitwise_count", x)
    if is_kind(x, "fc"):
        raise DtypeError(f"bitwise_count takes integers, got {type_of(x).short}", instead="x.astype(int)")
    return to_dtype(logic.population_count(abs(number(x))), dtypes.uint8)


@jit(inline=True)
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Any, Any]:
    """(floor_divide(x1, x2), remainder(x1, x2)), elementwise (as ``numpy.divmod``).

    Args:
      x1, x2: real arrays or numbers that broadcast against each other.

    Returns:
      Two arrays of the broadcast shape, of the promoted dtype; bools give int32.

    Raises:
      DtypeError: an operand is complex.

    >>> divmod(7, -2)
    (Array(-4, dtype=int32, weak_type=True), Array(-1, dtype=int32, weak_type=True))
    """
    return floor_divide(x1, x2), remainder(x1, x2)


# --- bits in bytes --------------------------------------------------------------------------------------


def _bit_positions(function: str, bitorder: str) -> np.ndarray:
    if bitorder not in ("big", "little"):
        raise OptionError(f"{function}: bitorder={bitorder!r}", instead="'big' or 'little'")
    bits = np.arange(8, dtype=np.uint8)
    return bits[::-1] if bitorder == "big" else bits


@functools.partial(jit, static_argnames=("axis", "bitorder"))
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """The elements of `a` packed as bits, eight in each uint8 (as ``numpy.packbits``).

    Args:
      a: array of bools or integers, of any shape; nonzero elements are packed as 1.
      axis: axis along which bits are packed; None flattens `a`.
      bitorder: order of bits in a byte: 'big' puts the first of eight elements in the highest bit, 'little' in the
        lowest.

    Returns:
      A uint8 array, an eighth as long along `axis`; the last byte is padded with zero bits.

    Raises:
      DtypeError: `a` is not of bools or integers.
      OptionError: `bitorder` is neither 'big' nor 'little'.

    >>> packbits(np.array([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    a = check_one("packbits", a)
    bit_positions = _bit_positions("packbits", bitorder)
    if not is_kind(a, "biu"):
        raise DtypeError(f"packbits takes bools or integers, got {type_of(a).short}", instead="a != 0")
    a, at = flat_or_along("packbits", a, axis)
    bits = to_dtype(moveaxis(as_bool(a), at, -1), dtypes.uint8)
    *others, n = type_of(bits).shape
    count = (n + 7) // 8
    padding = [(0, 0, 0)] * len(others) + [(0, 8 * count - n, 0)]
    bits = ops.pad(bits, np.uint8(0), padding_config=tuple(padding))
    groups = reshape(bits, (*others, count, 8))
    return moveaxis(sum(groups << bit_positions, -1, dtypes.uint8), -1, at)


@functools.partial(jit, static_argnames=("axis", "count", "bitorder"))
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of the uint8 array `a` along `axis` or flattened, as zeros and ones (as ``numpy.unpackbits``).

    Args:
      a: uint8 array of any shape.
      axis: axis along which bits are unpacked; None flattens `a`.
      count: the number of bits to return, padded with zeros if there are fewer; a negative number drops that many bits
        at the end; None returns all.
      bitorder: order of bits in a byte: 'big' starts with the highest bit, 'little' with the lowest.

    Returns:
      A uint8 array, eight times as long as `a` along `axis`, or `count`.

    Raises:
      DtypeError: `a` is of another dtype.
      OptionError: `bitorder` is neither 'big' nor 'little'.

    >>> unpackbits(np.array([160], np.uint8), count=3)
    Array([1, 0, 1], dtype=uint8)
    """
    a = check_one("unpackbits", a)
    bit_positions = _bit_positions("unpackbits", bitorder)
    if type_of(a).dtype != dtypes.uint8:
        raise DtypeError(f"unpackbits takes uint8, got {type_of(a).short}", instead="a.view('uint8')")
    a, at = flat_or_along("unpackbits", a, axis)
    last = moveaxis(a, at, -1)
    *others, n = type_of(last).shape
    bits = reshape((reshape(last, (*others, n, 1)) >> bit_positions) & np.uint8(1), (*others, 8 * n))
    if count is not None:
        count = integer("unpackbits", "count", count)
        length = count if count >= 0 else max(8 * n + count, 0)
        bits = along(bits, len(others), 0, min(length, 8 * n))
        padding = [(0, 0, 0)] * len(others) + [(0, max(length - 8 * n, 0), 0)]
        bits = ops.pad(bits, np.uint8(0), padding_config=tuple(padding))
    return moveaxis(bits, -1, at)
