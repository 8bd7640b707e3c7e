"""The primitive `triangular_solve`: systems of equations with a triangular matrix."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..._base.errors import ShapeError
from ..._ir.avals import ShapedArray
from ..._ir.dimensions import surely_at_least
from ..._ir.sharding_types import Entries, check_whole, entries_of, join
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, add, zero_tangent
from ..._transform.batch import BatchAxis, Dim
from ..._xla.cuda_calls import is_cuda
from ..._xla.lapack import LETTERS, lapack
from ..._xla.text import Function, Value, flag
from ..elementwise.arithmetic import neg
from .matrices import (
    Shape,
    batch_solve,
    conjugated,
    linalg,
    lower_triangle,
    need_square,
    product,
    swapped,
    upper_triangle,
)
from .padding import triangular_solve_pad


def _result(dtype: Any, a: Shape, b: Shape, *, left_side: bool, **_: Any) -> list[tuple[Shape, Any]]:
    n = need_square("triangular_solve", a)
    if b[0 if left_side else 1] != n:
        side = "rows" if left_side else "columns"
        raise ShapeError(f"triangular_solve: a of shape {a} needs b with {n} {side}, got shape {b}", shapes=[a, b])
    return [(b, dtype)]


def _lower(
    f: Function,
    a: Value,
    b: Value,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Value:
    if conjugate_a and not transpose_a:
        # LAPACK and XLA conjugate together with a transposition only.
        a = f.op("chlo.conj", [a], a.aval)
    # XLA calls cuBLAS on GPUs, and writes out the substitution for narrow floats.
    if is_cuda(f) or a.aval.dtype.name not in LETTERS:
        how = ("ADJOINT" if conjugate_a else "TRANSPOSE") if transpose_a else "NO_TRANSPOSE"
        flags = {"left_side": left_side, "lower": lower, "unit_diagonal": unit_diagonal}
        words = [f"{name} = {flag(value)}" for name, value in flags.items()]
        words.append(f"transpose_a = #stablehlo<transpose {how}>")
        return f.op("stablehlo.triangular_solve", [a, b], f.out, ", ".join(words))
    (out,) = lapack(
        f,
        "trsm",
        [a, b],
        [f.out],
        aliases={1: 0},
        diag="U" if unit_diagonal else "N",
        side="L" if left_side else "R",
        trans_x=("C" if conjugate_a else "T") if transpose_a else "N",
        uplo="L" if lower else "U",
    )
    return out


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    """A x = b gives dx = A⁻¹ (db - dA x); with the matrix on the right, x A = b, dx = (db - x dA) A⁻¹."""
    a, b = primals
    da, db = tangents
    x = triangular_solve.bind(a, b, **params)
    total: Any = zero_tangent(x)
    if type(da) is not Zero:
        # Elements that are not read have no tangent: those of the other triangle, and a diagonal that counts as one.
        k = 1 if params["unit_diagonal"] else 0
        da = neg(lower_triangle(da, -k) if params["lower"] else upper_triangle(da, k))
        da = swapped(da) if params["transpose_a"] else da
        da = conjugated(da) if params["conjugate_a"] else da
        left = params["left_side"]
        rows, columns = typeof(x).shape[-2:]
        # Both orders of the products give the same result; choose the one that solves for fewer columns (or rows).
        more = rows - columns if left else columns - rows
        first, count = (da, x), surely_at_least(more, 1)
        if not left:
            first = (x, da)
        if count:
            total = triangular_solve.bind(a, product(*first), **params)
        else:
            solved = triangular_solve.bind(a, da, **params)
            total = product(solved, x) if left else product(x, solved)
    if type(db) is not Zero:
        total = add(total, triangular_solve.bind(a, db, **params))
    return x, total


def _transpose(ct: Any, a: Any, b: Any, *, transpose_a: bool, **params: Any) -> list[Any]:
    # The transpose of A⁻¹ is A⁻ᵀ, without conjugation: cotangents pair with tangents by the plain product.
    return [None, triangular_solve.bind(a, ct, transpose_a=not transpose_a, **params)]


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], *, left_side: bool, **params: Any
) -> tuple[Any, Dim]:
    return batch_solve(partial(triangular_solve.bind, left_side=left_side, **params), axis, args, dims, left_side)


def _sharding(out: ShapedArray, a: ShapedArray, b: ShapedArray, *, left_side: bool, **_: Any) -> Entries:
    """The stack and the equations (columns of `b`, rows with ``left_side=False``) may be split."""
    check_whole("triangular_solve", a, (a.ndim - 2, a.ndim - 1), (a, b))
    check_whole("triangular_solve", b, (b.ndim - 2 if left_side else b.ndim - 1,), (a, b))
    stack = zip(entries_of(a)[:-2], entries_of(b)[:-2], strict=True)
    return (*[join("triangular_solve", (a, b), pair) for pair in stack], *entries_of(b)[-2:])


triangular_solve = linalg(
    "triangular_solve",
    ranks=(2, 2),
    narrow=True,
    result=_result,
    sharding=_sharding,
    lower=_lower,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    pad=triangular_solve_pad,
)


def solve_triangular(
    a: Any,
    b: Any,
    *,
    left_side: bool = True,
    lower: bool = True,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """`triangular_solve` with defaults for its parameters."""
    return triangular_solve.bind(
        a,
        b,
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal,
    )
