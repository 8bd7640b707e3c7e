"""Eigenvalues and eigenvectors: `eigh` of Hermitian matrices, `eig` of general ones."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base.errors import OptionError, UnsupportedError
from ..._ir import dtypes
from ..._ir.avals import shaped
from ..._trace.trace import typeof
from ..._xla.cuda_calls import cuda_call, is_cuda
from ..._xla.lapack import lapack, symmetric
from ..._xla.matrix_calls import nan_unless, status, succeeded
from ..._xla.text import Function, Value
from ..elementwise.arithmetic import abs_, add, complex_, conj, div, imag, mul, neg, real
from ..elementwise.families import literal
from ..elementwise.logic import eq, select
from ..reductions.reduce import argmax, reduce_sum
from ..structure.iota import iota
from ..structure.shape import convert
from .lu import solve
from .matrices import (
    Shape,
    adjoint,
    by_values,
    by_vectors,
    column_products,
    decomposition,
    diagonal_of,
    differences,
    hermitian_part,
    linalg,
    need_square,
    over_rows,
    product,
    real_of,
    safe_inverse,
    scaled,
    swapped,
)
from .spectral_padding import eigh_pad


class EighImplementation(enum.Enum):
    """Implementations of `eigh`. CPUs have QR.

    >>> phlox.lax.linalg.eigh(jnp.eye(2), implementation=EighImplementation.QR)[1]
    Array([1., 1.], dtype=float32)
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class EigImplementation(enum.Enum):
    """Implementations of `eig`. CPUs have LAPACK.

    >>> phlox.lax.linalg.eig(jnp.eye(2), implementation=EigImplementation.LAPACK)[0].shape
    (2,)
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


def _partial(subset_by_index: Any, count: int) -> bool:
    return subset_by_index is not None and tuple(subset_by_index) != (0, count)


def _eigh_result(dtype: Any, shape: Shape, *, subset_by_index: Any, **_: Any) -> list[tuple[Shape, Any]]:
    n = need_square("eigh", shape)
    count = n if subset_by_index is None else subset_by_index[1] - subset_by_index[0]
    return [((n, count), dtype), ((count,), real_of(dtype))]


#: the numbers by which jaxlib's target selects an algorithm of cuSOLVER
_CUDA_EIGH = {None: 0, EighImplementation.QR: 1, EighImplementation.JACOBI: 2}


def _eigh_lower(
    f: Function, x: Value, *, lower: bool, sort_eigenvalues: bool, subset_by_index: Any, algorithm: Any
) -> list[Value]:
    if _partial(subset_by_index, x.aval.shape[-1]):
        raise UnsupportedError("eigh: subset_by_index is not there", instead="all of them, and then a slice")
    outs = [*f.outs, status(x.aval.shape[:-2])]
    if is_cuda(f):
        if algorithm not in _CUDA_EIGH:
            raise UnsupportedError(f"eigh: implementation={algorithm} is not there on a GPU", instead="QR, or None")
        number = np.uint8(_CUDA_EIGH[algorithm])
        call = cuda_call(f, "cusolver_syevd_ffi", [x], outs, aliases={0: 0}, lower=lower, algorithm=number)
    elif algorithm in (None, EighImplementation.QR):
        uplo = "L" if lower else "U"
        call = lapack(f, symmetric(x.aval) + "evd", [x], outs, aliases={0: 0}, mode="V", uplo=uplo)
    else:
        raise UnsupportedError(f"eigh: implementation={algorithm} is not there on a CPU", instead="QR, or None")
    vectors, values, info = call
    ok = succeeded(f, info)
    return [nan_unless(f, ok, vectors), nan_unless(f, ok, values)]


def _eigh_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    """First order perturbation theory: dw = diag(M), dV = V (F ∘ M), with M = Vᴴ dA V and F[i, j] = 1 / (w[j] - w[i]).

    For equal eigenvalues F is zero, and M is kept: see `safe_inverse` and `_transform.spectra`.
    """
    (a,), (da,) = primals, tangents
    if _partial(params["subset_by_index"], typeof(a).shape[-1]):
        raise UnsupportedError("eigh: no derivatives of a part of the eigenvalues", instead="subset_by_index=None")
    # As in JAX, the derivative is taken at the Hermitian part.
    v, w = eigh.bind(hermitian_part(a), **params)
    change = product(da, v)
    inner = product(adjoint(v), change)
    dw = column_products(v, change)
    of = decomposition(w, inner, dw)
    dv = product(v, scaled(inner, safe_inverse(differences(w), w)))
    return [v, w], [by_vectors(dv, of), by_values(dw, of)]


eigh = linalg(
    "eigh",
    ranks=(2,),
    result=_eigh_result,
    lower=_eigh_lower,
    many=True,
    jvp=_eigh_jvp,
    pad=eigh_pad,
    decomposes=True,
)


# --- general matrices -----------------------------------------------------------------------------------


def _eig_result(
    dtype: Any, shape: Shape, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool, **_: Any
) -> list[tuple[Shape, Any]]:
    n = need_square("eig", shape)
    dtype = dtypes.to_complex(dtype)
    return [((n,), dtype), *[(shape, dtype)] * (compute_left_eigenvectors + compute_right_eigenvectors)]


def _eig_lower(
    f: Function,
    x: Value,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    implementation: Any,
    **_: Any,
) -> list[Value]:
    if is_cuda(f):
        return _cuda_eig(f, x, compute_left_eigenvectors, compute_right_eigenvectors, implementation)
    if implementation not in (None, EigImplementation.LAPACK):
        raise OptionError(f"eig: implementation={implementation} is not there on a CPU", instead="LAPACK, or None")
    values = f.out
    aval = x.aval
    is_real = dtypes.kind(aval.dtype) == "f"
    one, vectors = shaped(values.shape, aval.dtype), shaped(aval.shape, values.dtype)
    *parts, left, right, info = lapack(
        f,
        "geev",
        [x],
        [*[one] * (2 if is_real else 1), vectors, vectors, status(aval.shape[:-2])],
        compute_left="V" if compute_left_eigenvectors else "N",
        compute_right="V" if compute_right_eigenvectors else "N",
    )
    # LAPACK returns the eigenvalues of real matrices as real and imaginary parts, the vectors as complex ones.
    w = f.op("stablehlo.complex", parts, values) if is_real else parts[0]
    eigenvectors = [v for v, yes in ((left, compute_left_eigenvectors), (right, compute_right_eigenvectors)) if yes]
    ok = succeeded(f, info)
    return [nan_unless(f, ok, y) for y in (w, *eigenvectors)]


def _cuda_eig(f: Function, x: Value, left: bool, right: bool, implementation: Any) -> list[Value]:
    """LAPACK's or MAGMA's routine for an array on the GPU, as cuSOLVER has no left eigenvectors."""
    if implementation is EigImplementation.CUSOLVER:
        raise UnsupportedError("eig: cuSOLVER's routine is not called", instead="implementation=None", platform="cuda")
    magma = {None: "auto", EigImplementation.MAGMA: "on"}.get(implementation, "off")
    values, stack = f.outs[0], x.aval.shape[:-2]
    is_real = dtypes.kind(x.aval.dtype) == "f"
    vectors = shaped(x.aval.shape, values.dtype)
    parts = [shaped(values.shape, x.aval.dtype)] * (2 if is_real else 1)
    target = "cuhybrid_eig_real" if is_real else "cuhybrid_eig_comp"
    outs = [*parts, vectors, vectors, status(stack)]
    *w, vl, vr, info = cuda_call(f, target, [x], outs, magma=magma, left=left, right=right)
    whole = f.op("stablehlo.complex", w, values) if is_real else w[0]
    ok = succeeded(f, info)
    return [nan_unless(f, ok, y) for y in (whole, *[vl] * left, *[vr] * right)]


def _eig_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool,
    implementation: Any,
) -> tuple[list[Any], list[Any]]:
    (a,), (da,) = primals, tangents
    if (compute_left_eigenvectors or compute_right_eigenvectors) and not enable_eigvec_derivs:
        raise UnsupportedError(
            "eig: derivatives of the eigenvectors of general matrices are right under conditions only: distinct "
            "eigenvalues, and a result that does not depend on how the vectors are scaled",
            instead="phlox.lax.linalg.eig(..., enable_eigvec_derivs=True) where they hold",
        )
    w, *vectors = eig.bind(
        a,
        compute_left_eigenvectors=compute_left_eigenvectors,
        compute_right_eigenvectors=True,
        enable_eigvec_derivs=enable_eigvec_derivs,
        implementation=implementation,
    )
    right = vectors[-1]
    da = convert(da, typeof(right).dtype)
    if not (compute_left_eigenvectors or compute_right_eigenvectors):
        # Only the diagonal of V⁻¹ dA V is needed, which takes no second matrix product.
        inner = mul(solve(right, da), swapped(right))
        return [w], [reduce_sum(inner, axes=(typeof(inner).ndim - 1,))]
    dw, dright = _vectors_tangent(w, right, da)
    outs, douts = [w], [dw]
    if compute_left_eigenvectors:
        outs.append(vectors[0])
        # Left eigenvectors are the right ones of Aᴴ, whose eigenvalues are the conjugates.
        douts.append(_vectors_tangent(conj(w), vectors[0], adjoint(da))[1])
    if compute_right_eigenvectors:
        outs.append(right)
        douts.append(dright)
    return outs, douts


def _vectors_tangent(w: Any, v: Any, da: Any) -> tuple[Any, Any]:
    """Tangents of eigenvalues and of eigenvectors with LAPACK's normalization.

    A V = V W does not determine the scale of each column v: dv = u + c v with U = V (F ∘ P), P = V⁻¹ dA V, for any c.
    LAPACK's columns have length one, and their largest element is real; both conditions together determine c.
    """
    inner = product(solve(v, da), v)
    u = product(v, mul(inner, safe_inverse(differences(w), w)))
    aval = typeof(v)
    rows, n = aval.ndim - 2, aval.shape[-1]
    largest = over_rows(argmax(abs_(v), axes=(rows,), index_dtype=dtypes.int32), n)
    is_largest = eq(iota(dtype=dtypes.int32, shape=aval.shape, dimension=rows), largest)

    def at_largest(x: Any) -> Any:
        return reduce_sum(select(is_largest, x, literal(x, 0)), axes=(rows,))

    along = neg(real(reduce_sum(mul(conj(v), u), axes=(rows,))))
    turn = neg(div(imag(at_largest(u)), real(at_largest(v))))
    return diagonal_of(inner), add(u, mul(v, over_rows(complex_(along, turn), n)))


eig = linalg("eig", ranks=(2,), result=_eig_result, lower=_eig_lower, many=True, jvp=_eig_jvp)
