"""Custom calls of routines on stacks of matrices: LAPACK's on CPUs (`lapack`), NVIDIA's on GPUs (`cuda_calls`).

The last two axes are those of the matrix. Both kinds of routines want it in Fortran's column-major layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray, shaped
from .foreign import foreign_call, row_major, typed
from .text import Function, Value, quoted

#: a bool, a 32-bit integer, an 8-bit integer of NumPy, a letter, or a word
Attribute = bool | int | str | np.uint8


def matrix_call(
    f: Function,
    target: str,
    operands: Sequence[Value],
    outs: Sequence[ShapedArray],
    *,
    aliases: Mapping[int, int] | None,
    attributes: Mapping[str, Attribute],
    column_major: bool = True,
) -> list[Value]:
    """Adds the call of `target` on stacks of matrices and vectors; returns its results.

    The arrays with the most axes are stacks of matrices. They are column-major unless `column_major` is False; the
    others are row-major. A string of one letter is passed as a character, as LAPACK's options are.
    """
    # With rank 0 no array counts as a stack of matrices.
    rank = max(x.aval.ndim for x in operands) if column_major else 0
    return foreign_call(
        f,
        target,
        operands,
        outs,
        typed({name: _attribute(value) for name, value in attributes.items()}),
        layouts=([_order(x.aval, rank) for x in operands], [_order(a, rank) for a in outs]),
        aliases=aliases,
    )


def _attribute(value: Attribute) -> str:
    # bool first, as it is a subclass of int.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, np.uint8):
        return f"{value} : ui8"
    if isinstance(value, int):
        return f"{value} : i32"
    # LAPACK's options are letters, such as U for upper, which the FFI takes as 8-bit numbers.
    return f"{ord(value)} : ui8" if len(value) == 1 else quoted(value)


def _order(aval: ShapedArray, rank: int) -> tuple[int, ...]:
    order = row_major(aval.ndim)
    return (order[1], order[0], *order[2:]) if aval.ndim == rank >= 2 else order


def status(batch: tuple[int, ...]) -> ShapedArray:
    """The type of the result ``info`` of a routine: for each matrix 0, or an error number."""
    return shaped(batch, dtypes.int32)


def nan_unless(f: Function, ok: Value, x: Value) -> Value:
    """`x` with nan in the matrices (or vectors) of the stack for which `ok` is false."""
    # `ok` has the batch axes, which are the first of `x`.
    mask = f.broadcast(ok, x.aval.shape, range(ok.aval.ndim))
    nan = complex("nan+nanj") if dtypes.kind(x.aval.dtype) == "c" else float("nan")
    return f.select(mask, x, f.constant(nan, x.aval))


def succeeded(f: Function, info: Value, direction: str = "EQ") -> Value:
    """Whether ``info`` is 0, for each matrix; with direction GE also where it is positive: the matrix was singular."""
    return f.compare(direction, info, f.constant(0, info.aval))
