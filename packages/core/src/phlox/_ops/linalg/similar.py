"""The primitives `hessenberg` and `schur`: reduction to (nearly) triangular matrices by similarity."""

from __future__ import annotations

from typing import Any

from ..._base.errors import ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._ir.avals import shaped
from ..._xla.lapack import lapack
from ..._xla.matrix_calls import nan_unless, status, succeeded
from ..._xla.text import Function, Value
from .matrices import Shape, linalg, need_square


def _hessenberg_result(dtype: Any, shape: Shape) -> list[tuple[Shape, Any]]:
    n = need_square("hessenberg", shape)
    if n == 0:
        raise ShapeError("hessenberg: takes matrices with one row at least", shapes=[shape])
    return [(shape, dtype), ((n - 1,), dtype)]


def _hessenberg_lower(f: Function, a: Value) -> list[Value]:
    report = status(a.aval.shape[:-2])
    # The range low to high is that of LAPACK's balanced matrices, counted from 1; here it is the whole matrix.
    *outs, info = lapack(f, "gehrd", [a], [*f.outs, report], aliases={0: 0}, low=1, high=a.aval.shape[-1])
    ok = succeeded(f, info)
    return [nan_unless(f, ok, x) for x in outs]


hessenberg = linalg("hessenberg", ranks=(2,), result=_hessenberg_result, lower=_hessenberg_lower, many=True)


def _schur_result(dtype: Any, shape: Shape, *, compute_schur_vectors: bool, **_: Any) -> list[tuple[Shape, Any]]:
    need_square("schur", shape)
    return [(shape, dtype)] * (2 if compute_schur_vectors else 1)


def _schur_lower(
    f: Function, x: Value, *, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: Any
) -> list[Value]:
    if sort_eig_vals:
        raise UnsupportedError("schur: sort_eig_vals is not there", instead="sort_eig_vals=False")
    aval = x.aval
    # LAPACK returns eigenvalues of real matrices as real and imaginary parts; nothing here reads them.
    values = [shaped(aval.shape[:-1], aval.dtype)] * (1 if dtypes.kind(aval.dtype) == "c" else 2)
    form, vectors, *_, info = lapack(
        f,
        "gees",
        [x],
        [aval, aval, *values, *[status(aval.shape[:-2])] * 2],
        aliases={0: 0},
        mode="V" if compute_schur_vectors else "N",
        sort="N",
    )
    ok = succeeded(f, info)
    return [nan_unless(f, ok, y) for y in ((form, vectors) if compute_schur_vectors else (form,))]


schur = linalg("schur", ranks=(2,), result=_schur_result, lower=_schur_lower, many=True)
