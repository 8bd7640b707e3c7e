"""Householder reflections: `geqrf` and `geqp3` compute those that make a matrix triangular, two others multiply them.

Reflections are stored as in LAPACK: vectors below the diagonal of a matrix, and a factor for each.
"""

from __future__ import annotations

from typing import Any

from ..._base.errors import DtypeError, ShapeError
from ..._ir import dtypes
from ..._xla.cuda_calls import cuda_call, is_cuda
from ..._xla.lapack import lapack, orthogonal
from ..._xla.text import Function, Value
from ..elementwise.families import INEXACT
from .matrices import Shape, linalg


def _reflections_lower(f: Function, a: Value) -> list[Value]:
    if is_cuda(f):
        return cuda_call(f, "cusolver_geqrf_ffi", [a], f.outs, aliases={0: 0})
    # LAPACK works in place: an alias {operand: result} lets XLA reuse the memory of the operand, and copy it where
    # needed.
    return lapack(f, "geqrf", [a], f.outs, aliases={0: 0})


geqrf = linalg(
    "geqrf",
    ranks=(2,),
    result=lambda dtype, a: [(a, dtype), ((min(a),), dtype)],
    lower=_reflections_lower,
    many=True,
)


def _pivoted_result(dtype: Any, a: Shape, order: Shape, *, use_magma: bool | None) -> list[tuple[Shape, Any]]:
    if order[0] != a[1]:
        raise ShapeError(f"geqp3: an order of {order[0]} columns for a matrix of shape {a}", shapes=[a, order])
    return [(a, dtype), (order, dtypes.int32), ((min(a),), dtype)]


def _pivoted_lower(f: Function, a: Value, order: Value, *, use_magma: bool | None) -> list[Value]:
    if order.aval.dtype != dtypes.int32:
        raise DtypeError(f"geqp3: the order of columns must be int32, got {order.aval.short}")
    if is_cuda(f):
        magma = {None: "auto", True: "on", False: "off"}[use_magma]
        return cuda_call(f, "cuhybrid_geqp3", [a, order], f.outs, aliases={0: 0, 1: 1}, magma=magma)
    return lapack(f, "geqp3", [a, order], f.outs, aliases={0: 0, 1: 1})


#: `geqrf` with column pivoting, so that the diagonal decreases; the permutation counts from one.
geqp3 = linalg(
    "geqp3",
    ranks=(2, 1),
    result=_pivoted_result,
    lower=_pivoted_lower,
    many=True,
    kinds=(INEXACT, "i"),
)


def _product_result(dtype: Any, a: Shape, taus: Shape) -> list[tuple[Shape, Any]]:
    if a[0] < a[1]:
        raise ShapeError(f"householder_product: takes matrices with no more columns than rows, got shape {a}")
    if taus[0] > a[1]:
        raise ShapeError(f"householder_product: {taus[0]} factors for {a[1]} columns", shapes=[a, taus])
    return [(a, dtype)]


def _product_lower(f: Function, a: Value, taus: Value) -> Value:
    if is_cuda(f):
        return cuda_call(f, "cusolver_orgqr_ffi", [a, taus], [f.out], aliases={0: 0})[0]
    return lapack(f, orthogonal(a.aval) + "gqr", [a, taus], [f.out], aliases={0: 0})[0]


householder_product = linalg("householder_product", ranks=(2, 1), result=_product_result, lower=_product_lower)


def _multiply_result(dtype: Any, a: Shape, taus: Shape, c: Shape, *, left: bool, **_: Any) -> list[tuple[Shape, Any]]:
    if c[0 if left else 1] != a[0]:
        side = "rows" if left else "columns"
        raise ShapeError(f"ormqr: a of shape {a} needs c with {a[0]} {side}, got shape {c}", shapes=[a, c])
    if taus[0] > min(a):
        raise ShapeError(f"ormqr: {taus[0]} factors for a matrix of shape {a}", shapes=[a, taus])
    return [(c, dtype)]


def _multiply_lower(f: Function, a: Value, taus: Value, c: Value, *, left: bool, transpose: bool) -> Value:
    operands, side = [a, taus, c], {"left": left, "transpose": transpose}
    if is_cuda(f):
        return cuda_call(f, "cusolver_ormqr_ffi", operands, [f.out], aliases={2: 0}, **side)[0]
    return lapack(f, orthogonal(a.aval) + "mqr", operands, [f.out], aliases={2: 0}, **side)[0]


ormqr = linalg("ormqr", ranks=(2, 1, 2), result=_multiply_result, lower=_multiply_lower)
