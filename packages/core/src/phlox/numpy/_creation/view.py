"""``x.view(dtype)``: the bits of an array reinterpreted as another dtype."""

from __future__ import annotations

from typing import Any

from ..._api.jit.jit import jit
from ..._base.errors import ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._operands.checks import check_one, type_of
from ..._operands.promotion import to_dtype
from ..._ops.elementwise import arithmetic as e, logic
from ..._ops.structure.shape import bitcast_convert_type, concatenate
from ..._ops.structure.slicing import along
from .._manipulation.shapes import reshape


def view(a: Any, dtype: Any = None, type: None = None) -> Any:
    """The bits of `a` reinterpreted as `dtype` (as ``numpy.ndarray.view``).

    Args:
      a: array of any dtype; a bool has 8 bits.
      dtype: dtype of the result; None is the dtype of `a`.
      type: not supported, must be None.

    Returns:
      An array of `dtype`; if its elements have fewer or more bits than those of `a`, the last axis is longer or
      shorter.

    Raises:
      ShapeError: the bits of the last axis do not make up a whole number of elements of `dtype`, or `a` has no axes.
      UnsupportedError: `type` is not None.

    >>> jnp.ones(2, "float16").view("uint8")
    Array([ 0, 60,  0, 60], dtype=uint8)
    """
    a = check_one("view", a)
    if type is not None:
        raise UnsupportedError("view: type= is not supported")
    return a if dtype is None else _view(a, dtype=dtypes.user_dtype(dtype, "view"))


@jit(inline=True, static_argnames="dtype")
def _view(a: Any, dtype: Any) -> Any:
    old_dtype = type_of(a).dtype
    # XLA does not reinterpret the bits of complex numbers: their parts are taken next to each other.
    if dtypes.kind(old_dtype) == "c" and old_dtype != dtype:
        parts = [reshape(x, (*type_of(x).shape, 1)) for x in (e.real(a), e.imag(a))]
        both = concatenate(*parts, dimension=type_of(a).ndim)
        return _view(reshape(both, _longer(a, 2)), dtype=dtype)
    if dtypes.kind(dtype) == "c" and old_dtype != dtype:
        numbers = _view(a, dtype=dtypes.real_part(dtype))
        pairs = reshape(numbers, _shorter(numbers, 2, dtype))
        real, imag = (_last(pairs, i) for i in (0, 1))
        return e.complex_(real, imag)
    # XLA does not reinterpret the bits of bools.
    if old_dtype == dtypes.bool_ and dtype != old_dtype:
        return _view(to_dtype(a, dtypes.uint8), dtype=dtype)
    if dtype == dtypes.bool_ and dtype != old_dtype:
        return logic.ne(_view(a, dtype=dtypes.uint8), to_dtype(0, dtypes.uint8))
    old, new = dtypes.bits(old_dtype), dtypes.bits(dtype)
    if old > new:
        return reshape(bitcast_convert_type(a, new_dtype=dtype), _longer(a, old // new))
    if old < new:
        a = reshape(a, _shorter(a, new // old, dtype))
    return bitcast_convert_type(a, new_dtype=dtype)


def _longer(a: Any, factor: int) -> tuple[int, ...]:
    shape = type_of(a).shape
    if not shape:
        raise ShapeError(f"view: {type_of(a).short} has no axis that could grow", instead="x[None].view(...)")
    return (*shape[:-1], shape[-1] * factor)


def _shorter(a: Any, factor: int, dtype: Any) -> tuple[int, ...]:
    shape = type_of(a).shape
    if not shape or shape[-1] % factor:
        raise ShapeError(f"view: the last axis of {type_of(a).short} does not fill elements of {dtype.name}")
    return (*shape[:-1], shape[-1] // factor, factor)


def _last(a: Any, i: int) -> Any:
    """Element `i` of the last axis."""
    rank = type_of(a).ndim
    return reshape(along(a, rank - 1, i, i + 1), type_of(a).shape[:-1])
