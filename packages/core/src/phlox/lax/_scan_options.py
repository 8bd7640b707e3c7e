"""The options `length` and `unroll` of `scan`, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base import pytree
from .._base.errors import AxisError, ConcretizationTypeError, OptionError, ShapeError, ShardingTypeError
from .._base.pytree import PyTreeDef
from .._ir.dimensions import is_symbolic
from .._operands.checks import integer
from .._trace.trace import Tracer, typeof


def unroll_count(unroll: Any, steps: int, function: str) -> int:
    """The number of steps in one iteration of the loop, from 1 to `steps`."""
    _check_known("unroll", "`int` or `bool`", unroll)
    count = (0 if unroll else 1) if isinstance(unroll, bool) else integer(function, "unroll", unroll)
    if count < 0:
        raise OptionError(f"{function}: `unroll` must be a bool or an integer that is not negative, got {unroll}")
    if is_symbolic(steps):  # unrolling has no effect on the values
        return 1
    return min(count or steps, steps) or 1


def _check_known(option: str, kind: str, value: Any) -> None:
    if isinstance(value, Tracer):
        raise ConcretizationTypeError(
            f"The `{option}` argument to `scan` expects a concrete {kind} value, "
            f"got {value.aval.short}, which is traced",
            instead="a Python number, or an argument that is static (static_argnums)",
            aval=value.aval,
        )


def common_length(arrays: Sequence[Any], tree: PyTreeDef, length: int | None, function: str = "scan") -> int:
    """The number of steps: the common length of the first axes of `xs`, or `length`."""
    lengths: dict[int, str] = {}
    for path, x in zip(pytree.named_paths(tree), arrays, strict=True):
        aval = typeof(x)
        if not aval.shape:
            raise AxisError(
                f"{function} got value with no leading axis to scan over: xs{pytree.keystr(path)} is {aval.short}"
            )
        if aval.spec is not None and aval.spec.entries[0]:
            raise ShardingTypeError(
                f"{function}: 0th dimension of all xs should be replicated: xs{pytree.keystr(path)} is {aval.short}",
                instead="phlox.reshard(x, phlox.P(None, ...)) first",
                avals=[aval],
            )
        lengths.setdefault(aval.shape[0], f"xs{pytree.keystr(path)}: {aval.short}")
    if length is not None:
        _check_known("length", "`int`", length)
        if lengths and [*lengths] != [int(length)]:
            sizes = [typeof(x).shape[0] for x in arrays]
            raise ShapeError(f"scan got `length` argument of {length} which disagrees with leading axis sizes {sizes}.")
        lengths.setdefault(int(length), f"length={length}")
    if not lengths:
        raise OptionError("scan got no values to scan over and `length` not provided", instead="length=...")
    if len(lengths) > 1:
        raise ShapeError(f"{function}: first axes of different lengths: {'; '.join(lengths.values())}")
    return next(iter(lengths))
