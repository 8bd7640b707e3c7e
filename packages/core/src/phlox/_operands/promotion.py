"""Promotion of operands to one dtype and one rank.

The rules for dtypes are in `_ir.promotion`; this module applies them to values. The conversions are cached by the
types of the operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from .._base import config
from .._base.errors import ShapeError
from .._base.interning import clear_if_full, forgettable
from .._base.source import warn
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.promotion import promote
from .._ops.structure.numbers import keep_dtype, literal_of
from .._ops.structure.shape import broadcast_in_dim, convert_array
from .._trace.trace import ArrayBase
from ..typing import Array
from .checks import checked, type_of, warn_of_lost_parts

_PYTHON = {"i": int, "f": float, "c": complex, "b": bool}


def to_dtype(x: Any, dtype: Any, weak: bool = False, *, warns: bool = True) -> Array:
    """`x` with this dtype and weak type. Numbers stay numbers, so that they become literals in programs.

    Warns of imaginary parts that are lost, where the user is not told otherwise.
    """
    aval = type_of(x)
    if aval.dtype == dtype and aval.weak_type == weak:
        return x
    if warns:
        warn_of_lost_parts(aval.dtype, dtype)
    # Converted here, a number costs no operation, and XLA sees a constant of the final dtype.
    if isinstance(x, np.generic | bool | int | float | complex) and not aval.shape:
        value = literal_of(x, dtype)
        return _PYTHON[dtypes.kind(dtype)](value) if weak else keep_dtype(value)
    return convert_array(x, dtype, weak)


def common_dtype(*args: Any) -> tuple[Any, bool]:
    """The (dtype, weak_type) to which the arguments are promoted."""
    return promote(tuple((a.dtype, a.weak_type) for a in map(type_of, args)))


def promote_dtypes(*args: Any) -> list[Array]:
    """The arguments converted to their common dtype."""
    if len(args) == 1:
        return list(args)
    dtype, weak = common_dtype(*args)
    return [to_dtype(x, dtype, weak) for x in args]


def promote_inexact(*args: Any) -> list[Array]:
    """Like `promote_dtypes`, but integers and bools become floats."""
    dtype, weak = common_dtype(*args)
    if dtypes.is_inexact(dtype):
        return [to_dtype(x, dtype, weak) for x in args]
    return [to_dtype(x, dtypes.to_inexact(dtype), weak) for x in args]


def promote_shapes(function: str, *args: Any) -> list[Array]:
    """The arguments with axes of length one in front, so that all except scalars have the same rank."""
    shapes = [type_of(x).shape for x in args]
    if len(set(shapes)) > 1:
        common_shape(function, shapes)
    ranks = {len(s) for s in shapes if s}
    if len(ranks) < 2:
        return list(args)
    _check_rank_promotion(function, shapes)
    rank = max(ranks)
    return [_to_rank(x, rank) if s else x for x, s in zip(args, shapes, strict=True)]


def common_shape(function: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape to which these shapes broadcast, by NumPy's rule. Raises `ShapeError` if they do not.

    `function` names the function that takes the arrays; it is empty where the user passed shapes.
    """
    rank = max((len(s) for s in shapes), default=0)
    result = []
    for lengths in zip(*[(1,) * (rank - len(s)) + s for s in shapes], strict=True):
        distinct = {n for n in lengths if n != 1}
        if len(distinct) > 1:
            refuse = _refuse_operands if function and all(len(s) == rank for s in shapes) else _refuse_shapes
            refuse(function, shapes)
        result.append(distinct.pop() if distinct else 1)
    return tuple(result)


def _refuse_operands(function: str, shapes: Sequence[tuple[int, ...]]) -> NoReturn:
    raise ShapeError(
        f"{function} got incompatible shapes for broadcasting: {', '.join(map(str, shapes))}.",
        instead="lengths that agree or are 1; or x[:, None] adds an axis",
        shapes=list(shapes),
    )


def _refuse_shapes(function: str, shapes: Sequence[tuple[int, ...]]) -> NoReturn:
    raise ShapeError(
        f"{function + ': ' if function else ''}Incompatible shapes for broadcasting: "
        f"shapes=[{', '.join(map(str, shapes))}]",
        instead="lengths that agree or are 1, counted from the last axis; x[:, None] adds an axis",
        shapes=list(shapes),
    )


def _to_rank(x: Any, rank: int) -> Any:
    shape = type_of(x).shape
    missing = rank - len(shape)
    if not missing:
        return x
    return broadcast_in_dim(x, shape=(1,) * missing + shape, broadcast_dimensions=tuple(range(missing, rank)))


def _check_rank_promotion(function: str, shapes: list[tuple[int, ...]]) -> None:
    mode = config.current().numpy_rank_promotion
    if mode == "allow":
        return
    where = f"for {function} on shapes {' '.join(map(str, shapes))}"
    if mode == "raise":
        what = f"Operands could not be broadcast together {where} and with numpy_rank_promotion='raise'"
        raise ShapeError(what, instead="x[None, :] adds the axis explicitly", shapes=shapes)
    warn(f"Following NumPy automatic rank promotion {where}", UserWarning)


#: by types of the arguments: the (dtype, weak, rank) that each is converted to, or None for an unchanged argument
_plans: dict[Any, list[tuple[Any, bool, int] | None] | None] = forgettable({})
_PLANS_LIMIT = 8192


def _convert_operands(function: str, args: Sequence[Any], inexact: bool) -> Sequence[Any]:
    """Converts the operands by the cached plan of their types."""
    avals, values = [], []
    for i, x in enumerate(args):
        if isinstance(x, ArrayBase):
            avals.append(x.aval)
            values.append(x)
        else:
            x, aval = checked(function, i, x)
            avals.append(aval)
            values.append(x)
    # Types are interned, so that hashing the key costs little.
    key = (inexact, config.current().trace_fingerprint, *avals)
    try:
        plan = _plans[key]
    except KeyError:
        plan = _plan(function, avals, inexact)
        if config.current().numpy_rank_promotion != "warn":  # "warn" must warn every time, so it is not cached
            clear_if_full(_plans, _PLANS_LIMIT)[key] = plan
    if plan is None:
        return values
    return [
        x if conversion is None else _to_rank(to_dtype(x, conversion[0], conversion[1]), conversion[2])
        for x, conversion in zip(values, plan, strict=True)
    ]


def _plan(function: str, avals: Sequence[ShapedArray], inexact: bool) -> list[tuple[Any, bool, int] | None] | None:
    """The conversion of each argument of these types to one dtype and one rank; None if none is needed."""
    dtype, weak = avals[0].dtype, avals[0].weak_type
    if inexact or len(avals) > 1:
        dtype, weak = promote(tuple((a.dtype, a.weak_type) for a in avals))
    if inexact and not dtypes.is_inexact(dtype):
        dtype = dtypes.to_inexact(dtype)
    shapes = [a.shape for a in avals]
    if len(set(shapes)) > 1:
        common_shape(function, shapes)
    if len({len(s) for s in shapes if s}) > 1:
        _check_rank_promotion(function, shapes)
    rank = max((len(s) for s in shapes), default=0)
    plan = [
        None
        if (a.dtype, a.weak_type) == (dtype, weak) and a.ndim in (0, rank)
        else (dtype, weak, rank if a.shape else 0)
        for a in avals
    ]
    return plan if any(plan) else None


def promoted(function: str, *args: Any) -> Sequence[Array]:
    """The arguments checked, and converted to one dtype and one rank, for elementwise functions."""
    return _convert_operands(function, args, inexact=False)


def promoted_inexact(function: str, *args: Any) -> Sequence[Array]:
    """Like `promoted`, but integers become floats."""
    return _convert_operands(function, args, inexact=True)
