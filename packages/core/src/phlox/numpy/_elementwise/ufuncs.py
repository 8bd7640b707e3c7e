"""The functions that are `ufunc` objects, as in JAX. Operators of arrays call the jitted functions inside directly."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.errors import DtypeError, ShapeError
from ..._ir import dtypes
from ..._operands.checks import canonical_axes, type_of
from ..._operands.promotion import promote_inexact, to_dtype
from ..._ops.elementwise import arithmetic as e, logic
from ..._ops.reductions import reduce as ops
from .._statistics.reductions import cumprod, cumsum, max as largest, min as smallest, prod, restore_axes, sum
from . import binary as _binary, floats as _floats, unary as _unary
from .choose import where as select_elements
from .ufunc import ufunc
from .unary import as_bool, is_kind


def _folding(
    function: str, reduce: Callable[..., Any], combine: Callable[..., Any], neutral: int, truth: bool
) -> Callable[..., Any]:
    """A `reduce` method for a bitwise or logical function, by one XLA reduction instead of a loop."""

    @functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "keepdims"))
    def fold(a: Any, initial: Any, where: Any, axis: Any, dtype: Any, keepdims: bool) -> Any:
        axes = canonical_axes(axis, type_of(a).ndim, function)
        a = as_bool(a) if truth else a
        result = type_of(a).dtype if dtype is None else dtype
        a = to_dtype(a, result)
        if where is not None:
            a = select_elements(where, a, np.asarray(neutral).astype(result))
        out = reduce(a, axes=axes)
        if initial is not None:
            if type_of(initial).shape:
                raise ShapeError(f"{function}: initial must be a number, got {type_of(initial).short}")
            out = combine(to_dtype(initial, result), out)
        return restore_axes(out, axes, keepdims)

    def whole(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        if not truth and not is_kind(a, "biu"):
            raise DtypeError(f"{function}: takes integers, got {type_of(a).short}", instead="a.astype(int)")
        out_dtype = dtypes.optional_dtype(dtype, function)
        return fold(a, initial, where, axis=axis, dtype=out_dtype, keepdims=keepdims)

    return whole


def _extremum(reduce: Callable[..., Any]) -> Callable[..., Any]:
    def extremum(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        if dtype is not None:
            a = to_dtype(a, dtypes.user_dtype(dtype, reduce.__name__))
        return reduce(a, axis, keepdims=keepdims, initial=initial, where=where)

    return extremum


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "keepdims"))
def _log_sum_exp(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    """The logarithm of a sum of exponentials. `dtype` is ignored, as in JAX."""
    (a,) = promote_inexact(a)
    # Before the exponential: 0 times the exponential of a masked nan is nan in the derivative.
    a = a if where is None else select_elements(where, a, to_dtype(-np.inf, type_of(a).dtype))
    top = largest(e.real(a) if is_kind(a, "c") else a, axis, keepdims=True, initial=-np.inf)
    # inf - inf would be nan. The shift cancels in the result, so it needs no derivative.
    top = e.stop_gradient(select_elements(e.is_finite(top), top, 0))
    total = sum(e.exp(e.sub(a, to_dtype(top, type_of(a).dtype))), axis, keepdims=keepdims)
    out = e.log(total) + to_dtype(top.reshape(type_of(total).shape), type_of(total).dtype)
    return out if initial is None else _binary.logaddexp(initial, out)


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "keepdims"))
def _log2_sum_exp2(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    ln2 = float(np.log(2))
    begin = None if initial is None else _binary.multiply(initial, ln2)
    return _binary.divide(_log_sum_exp(_binary.multiply(a, ln2), axis, dtype, keepdims, begin, where), ln2)


def _updating(method: str, bools: bool = True) -> Callable[..., Any]:
    """An `at` method by ``x.at[i].add`` or similar. With `bools`, arrays of bools are updated as numbers and compared
    with zero."""

    @jit
    def update(a: Any, indices: Any, b: Any) -> Any:
        if bools and type_of(a).dtype == dtypes.bool_:
            out = getattr(to_dtype(a, dtypes.int32).at[indices], method)(to_dtype(as_bool(b), dtypes.int32))
            return as_bool(out)
        return getattr(a.at[indices], method)(b)

    return update


def _made(function: Any, nin: int, **options: Any) -> ufunc:
    return ufunc(function, nin, 1, name=function.__name__, call=function, **options)


add = _made(_binary.add, 2, identity=0, reduce=sum, accumulate=cumsum, at=_updating("add"))
multiply = _made(_binary.multiply, 2, identity=1, reduce=prod, accumulate=cumprod, at=_updating("mul"))
subtract = _made(_binary.subtract, 2, at=_updating("subtract", bools=False))
negative = _made(_unary.negative, 1)
maximum = _made(_binary.maximum, 2, reduce=_extremum(largest))
minimum = _made(_binary.minimum, 2, reduce=_extremum(smallest))
logaddexp = _made(_binary.logaddexp, 2, identity=-np.inf, reduce=_log_sum_exp)
logaddexp2 = _made(_floats.logaddexp2, 2, identity=-np.inf, reduce=_log2_sum_exp2)
bitwise_and = _made(
    _binary.bitwise_and, 2, identity=-1, reduce=_folding("bitwise_and.reduce", ops.reduce_and, logic.and_, -1, False)
)
bitwise_or = _made(
    _binary.bitwise_or, 2, identity=0, reduce=_folding("bitwise_or.reduce", ops.reduce_or, logic.or_, 0, False)
)
bitwise_xor = _made(
    _binary.bitwise_xor, 2, identity=0, reduce=_folding("bitwise_xor.reduce", ops.reduce_xor, logic.xor, 0, False)
)
logical_and = _made(
    _binary.logical_and, 2, identity=True, reduce=_folding("logical_and.reduce", ops.reduce_and, logic.and_, 1, True)
)
logical_or = _made(
    _binary.logical_or, 2, identity=False, reduce=_folding("logical_or.reduce", ops.reduce_or, logic.or_, 0, True)
)
logical_xor = _made(
    _binary.logical_xor, 2, identity=False, reduce=_folding("logical_xor.reduce", ops.reduce_xor, logic.xor, 0, True)
)
