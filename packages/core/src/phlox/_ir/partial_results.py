"""Partial results in types, ``f32[4]{U:x}``: the `Reductions` of the results of operations.

They follow from what primitives say of themselves. An operation that is linear (`series`) works on partial results of
its operand, and its result has the same ones. A product takes partial results of one factor, and another factor that is
the same on all devices and has partial results as its cotangent, ``f32[4]{R:x}``. Everything else refuses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import dtypes
from .avals import ShapedArray
from .sharding_types import NO_REDUCTIONS, RESHARD, Reductions, each, reductions_of, refuse

if TYPE_CHECKING:
    from .primitive import Primitive


def result_reductions(
    primitive: Primitive, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> list[Reductions]:
    """The reductions of the results of an operation. Raises `ShardingTypeError` for operands that it cannot take."""
    known = [reductions_of(a) for a in avals]
    if all(r == NO_REDUCTIONS for r in known):
        return [NO_REDUCTIONS] * len(outs)
    # Of collectives over other axes, only sums commute with the reduction.
    if primitive.sharding is each and (primitive.axes is None or primitive.series == "linear"):
        return known
    unreduced = {(r.unreduced, r.kind) for r in known if r.unreduced}
    reduced = {r.reduced for r in known if r.reduced}
    if len(unreduced) > 1 or len(reduced) > 1:
        which = "unreduced" if len(unreduced) > 1 else "reduced"
        refuse(primitive.name, f"the operands are {which} along different axes", avals, RESHARD)
    (axes, kind), reduced_axes = next(iter(unreduced), (frozenset(), "sum")), next(iter(reduced), frozenset())
    if axes:
        _check_linear(primitive, avals, outs, kind)
    # What is equal on all devices varies where it meets what varies, along a manual axis.
    reduced_axes = reduced_axes.difference(*[a.vma for a in avals])
    if primitive.sharding is None:
        _check_reduced(primitive, avals, reduced_axes)
    elif primitive.series == "bilinear":
        # The type of a contraction says nothing of this, as in JAX.
        reduced_axes = frozenset()
    return [Reductions(axes, reduced_axes - axes, kind)] * len(outs)


def _check_linear(primitive: Primitive, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], kind: str) -> None:
    """Raises `ShardingTypeError` unless the operation on partial results gives partial results."""
    partial = [a for a in avals if reductions_of(a).unreduced]
    others = [a for a in avals if not reductions_of(a).unreduced]
    if primitive.series == "linear":
        # Indices and masks are of other dtypes.
        if any(a.dtype == partial[0].dtype for a in others):
            why = "one operand is unreduced and another is not, so that there would be implicit communication"
        elif any(dtypes.is_inexact(partial[0].dtype) and not dtypes.is_inexact(out.dtype) for out in outs):
            why = "it rounds, and a sum of rounded numbers is another one"
        elif kind != "sum" and primitive.nan_checked is not False:
            why = f"it does arithmetic, and the operand is unreduced by its {kind}"
        else:
            return
    elif kind == "sum" and primitive.sharding is None and primitive.series in ("bilinear", "quotient"):
        axes = reductions_of(partial[0]).unreduced
        if len(partial) > 1 or (primitive.series == "quotient" and partial[0] is not avals[0]):
            why = "it takes one unreduced factor" if primitive.series == "bilinear" else "the divisor is unreduced"
        elif any(a.ndim and reductions_of(a).reduced != axes for a in others):
            why = "the other operand is not reduced along the axes along which one is unreduced"
        else:
            return
    else:
        why = "it is a non-linear operation, and an operand is unreduced"
    refuse(primitive.name, why, avals, RESHARD)


def _check_reduced(primitive: Primitive, avals: Sequence[ShapedArray], axes: frozenset[Any]) -> None:
    """Raises `ShardingTypeError` if an operand of an elementwise operation is reduced along `axes`, and another is not.

    The cotangent of that other one would need communication.
    """
    for a in avals:
        same = reductions_of(a).reduced | reductions_of(a).unreduced
        if a.ndim and dtypes.is_inexact(a.dtype) and not axes <= same:
            refuse(primitive.name, "one operand is reduced along an axis along which another is not", avals, RESHARD)
