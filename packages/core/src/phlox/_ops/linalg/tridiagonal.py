"""Tridiagonal matrices: reduction of Hermitian matrices to tridiagonal form, and solving tridiagonal systems."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..._base.errors import ShapeError
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, add, instantiate
from ..._transform.batch import BatchAxis, Dim
from ..._xla.cuda_calls import cuda_call, is_cuda
from ..._xla.lapack import lapack, perturbed_tridiagonal_solve, symmetric
from ..._xla.matrix_calls import nan_unless, status, succeeded
from ..._xla.text import Function, Value
from ..elementwise.arithmetic import add as plus, mul, neg
from ..elementwise.families import literal, lowered_as
from ..structure.shape import pad
from .matrices import Shape, batch_solve, block, linalg, need_square, over_columns, real_of


def _result(dtype: Any, shape: Shape, *, lower: bool) -> list[tuple[Shape, Any]]:
    n = need_square("tridiagonal", shape)
    if n == 0:
        raise ShapeError("tridiagonal: takes matrices with one row at least", shapes=[shape])
    real = real_of(dtype)
    return [(shape, dtype), ((n,), real), ((n - 1,), real), ((n - 1,), dtype)]


def _lower(f: Function, a: Value, *, lower: bool) -> list[Value]:
    types = [*f.outs, status(a.aval.shape[:-2])]
    if is_cuda(f):
        *outs, info = cuda_call(f, "cusolver_sytrd_ffi", [a], types, aliases={0: 0}, lower=lower)
    else:
        uplo = "L" if lower else "U"
        *outs, info = lapack(f, symmetric(a.aval) + "trd", [a], types, aliases={0: 0}, uplo=uplo)
    ok = succeeded(f, info)
    return [nan_unless(f, ok, x) for x in outs]


tridiagonal = linalg("tridiagonal", ranks=(2,), result=_result, lower=_lower, many=True)


# --- solving --------------------------------------------------------------------------------------------


def _solve_result(dtype: Any, dl: Shape, d: Shape, du: Shape, b: Shape, **_: Any) -> list[tuple[Shape, Any]]:
    if not dl == d == du == b[:1]:
        raise ShapeError(
            f"tridiagonal_solve: three diagonals of one length, and b with as many rows, got shapes {dl}, {d}, {du} "
            f"and {b}",
            shapes=[dl, d, du, b],
        )
    return [(b, dtype)]


def _solve_lower(f: Function, dl: Value, d: Value, du: Value, b: Value, *, perturb_singular: bool) -> Value:
    operands = [dl, d, du, b]
    if is_cuda(f):
        return _cuda_solve(f, operands, perturb_singular)
    if perturb_singular:
        return perturbed_tridiagonal_solve(f, operands)
    outs = [*[x.aval for x in operands], status(b.aval.shape[:-2])]
    *_, x, info = lapack(f, "gtsv", operands, outs, aliases={0: 0, 1: 1, 2: 2, 3: 3})
    return nan_unless(f, succeeded(f, info), x)


def _cuda_solve(f: Function, operands: list[Value], perturb_singular: bool) -> Value:
    if perturb_singular:
        return cuda_call(f, "cu_tridiagonal_solve_perturbed", operands, [f.out])[0]
    b = f.out
    missing = 3 - b.shape[-2]
    if missing <= 0:
        return cuda_call(f, "cusparse_gtsv2_ffi", operands, [b], aliases={3: 0})[0]
    # cuSPARSE takes three equations at least: others say that a further unknown is 0.
    *diagonals, rhs = (
        lowered_as(_longer)(f, x, axis=-2 if i == 3 else -1, by=missing, value=float(i == 1))
        for i, x in enumerate(operands)
    )
    (x,) = cuda_call(f, "cusparse_gtsv2_ffi", [*diagonals, rhs], [rhs.aval], aliases={3: 0})
    return lowered_as(block)(f, x, rows=(0, b.shape[-2]), columns=(0, b.shape[-1]))


def _longer(x: Any, axis: int, by: int, value: float) -> Any:
    config = [(0, 0, 0)] * typeof(x).ndim
    config[axis] = (0, by, 0)
    return pad(x, literal(x, value), padding_config=tuple(config))


def _shifted(x: Any, by: int) -> Any:
    """Vectors shifted by one position to the right or left, with 0 in the free position."""
    none = ((0, 0, 0),) * (typeof(x).ndim - 1)
    return pad(x, literal(x, 0), padding_config=(*none, (by, -by, 0)))


def _product(dl: Any, d: Any, du: Any, x: Any) -> Any:
    """The product of the matrix with these three diagonals and `x`."""
    aval = typeof(x)
    none = ((0, 0, 0),) * (aval.ndim - 2)
    zero, k = literal(x, 0), aval.shape[-1]
    above = pad(x, zero, padding_config=(*none, (1, -1, 0), (0, 0, 0)))
    below = pad(x, zero, padding_config=(*none, (-1, 1, 0), (0, 0, 0)))
    terms = [mul(over_columns(diagonal, k), y) for diagonal, y in ((dl, above), (d, x), (du, below))]
    return plus(plus(terms[0], terms[1]), terms[2])


def _solve_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    *diagonals, _ = primals
    *ddiagonals, db = tangents
    x = tridiagonal_solve.bind(*primals, **params)
    if any(type(t) is not Zero for t in ddiagonals):
        lower, middle, upper = map(instantiate, ddiagonals)
        # A x = b gives dx = A⁻¹ (db - dA x).
        db = add(db, neg(_product(lower, middle, upper, x)))
    return x, tridiagonal_solve.bind(*diagonals, db, **params)


def _solve_transpose(ct: Any, dl: Any, d: Any, du: Any, b: Any, **params: Any) -> list[Any]:
    # Row i holds dl[i], d[i], du[i] for columns i - 1, i, i + 1. The transpose exchanges the outer diagonals, each
    # moved by one row.
    return [None, None, None, tridiagonal_solve.bind(_shifted(du, 1), d, _shifted(dl, -1), ct, **params)]


def _solve_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], **params: Any) -> tuple[Any, Dim]:
    return batch_solve(partial(tridiagonal_solve.bind, **params), axis, args, dims)


tridiagonal_solve = linalg(
    "tridiagonal_solve",
    ranks=(1, 1, 1, 2),
    result=_solve_result,
    lower=_solve_lower,
    jvp=_solve_jvp,
    transpose=_solve_transpose,
    batch=_solve_batch,
)
