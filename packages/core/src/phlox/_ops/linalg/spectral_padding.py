"""The rules `pad` of spectral decompositions: padded matrices continue with a diagonal above all of their values.

The spectrum of such a matrix is that of the matrix itself, and the diagonal; no vector mixes the two. With zeros the
vectors of zero eigenvalues would mix, as they are arbitrary.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._ir.avals import ShapedArray
from ..._ir.dimensions import is_symbolic, surely_at_least
from ..._ir.jaxpr import JaxprEqn
from ..._transform.padding import Padding, pad_elementwise, refuse
from ..elementwise.arithmetic import abs_, add, mul, sub
from ..elementwise.logic import select_n
from ..reductions.reduce import reduce_max, reduce_sum
from ..structure.shape import broadcast_in_dim, convert
from .matrices import adjoint, filled, product
from .padding import with_diagonal
from .qr import qr


def _above(padding: Padding, x: Any, aval: ShapedArray) -> Any:
    """A number above the norm of each of the matrices `x`, of the shape of the padded matrices."""
    last = (aval.ndim - 2, aval.ndim - 1)
    sizes = abs_(padding.filled(x, aval, 0, last))
    # The norm is at most the largest sum of a row and a column: both, as one triangle may be all that is read.
    sums = add(reduce_sum(sizes, axes=last[1:]), reduce_sum(sizes, axes=last[:1]))
    most = reduce_max(sums, axes=(aval.ndim - 2,))
    # Plus 1, so that it is above the values of a matrix of zeros too.
    above = add(mul(most, filled(most, 2)), filled(most, 1))
    shape = padding.shape(aval.shape)
    return broadcast_in_dim(above, shape=shape, broadcast_dimensions=tuple(range(aval.ndim - 2)))


def _with_large_diagonal(padding: Padding, x: Any, aval: ShapedArray) -> Any:
    """Square matrices, continued by a diagonal above all of their singular values."""
    above = _above(padding, x, aval)
    return with_diagonal(
        padding, x, aval, lambda diagonal: convert(select_n(diagonal, filled(above, 0), above), aval.dtype)
    )


def eigh_pad(padding: Padding, eqn: JaxprEqn, x: Any) -> Any:
    """The eigenvalues of the padding come last, and its eigenvectors have nothing in common with the others."""
    aval = eqn.invars[0].aval
    if any(map(is_symbolic, eqn.params["subset_by_index"] or ())):
        refuse(eqn, "it is for a part of the eigenvalues")
    return pad_elementwise(padding, eqn, _with_large_diagonal(padding, x, aval))


def svd_pad(padding: Padding, eqn: JaxprEqn, x: Any) -> Any:
    """Square matrices continue with a diagonal whose singular values come first. Of others the triangular factor is
    decomposed: zeros below would have a part in the vectors of singular values that are zero."""
    aval = eqn.invars[0].aval
    m, n = aval.shape[-2:]
    if not is_symbolic(m) and not is_symbolic(n):
        return pad_elementwise(padding, eqn, x)
    compute_uv = eqn.params["compute_uv"]
    if m == n:
        return _square_svd(padding, eqn, x, aval)
    if eqn.params["full_matrices"] and compute_uv:
        refuse(eqn, "the length of the matrix varies, and full_matrices asks for vectors that are arbitrary")
    if surely_at_least(m - n, 0):
        values, u, vh = _tall_svd(padding, eqn, x, aval)
    elif surely_at_least(n - m, 0):
        turned = aval.update(shape=(*aval.shape[:-2], n, m))
        values, v, uh = _tall_svd(padding, eqn, adjoint(x), turned)
        u, vh = adjoint(uh), adjoint(v)
    else:
        refuse(eqn, "the matrix has more rows than columns for some lengths, and fewer for others")
    return [values, u, vh] if compute_uv else [values]


def _square_svd(padding: Padding, eqn: JaxprEqn, x: Any, aval: ShapedArray) -> list[Any]:
    n, rank = aval.shape[-1], aval.ndim
    outs = eqn.primitive.bind(_with_large_diagonal(padding, x, aval), **padding.params(eqn))
    most = padding.capacity(n)
    if most == 0:
        return list(outs)
    front = sub(np.int32(most), padding.length(n))  # so many singular values of the padding come first
    axes = (rank - 2, rank - 1, rank - 2)  # of the values; columns of U; rows of the adjoint of V
    return [padding.from_position(out, axis, front, most) for out, axis in zip(outs, axes, strict=False)]


def _tall_svd(padding: Padding, eqn: JaxprEqn, x: Any, aval: ShapedArray) -> list[Any]:
    """Singular values and vectors of matrices with at least as many rows as columns, from their triangular factors."""
    last = (aval.ndim - 2, aval.ndim - 1)
    n = aval.shape[-1]
    # Rows of zeros do not change R, nor columns of zeros its first columns.
    zeros_below = padding.filled(x, aval, 0, last)
    q, r = qr.bind(zeros_below, pivoting=False, full_matrices=False, use_magma=None)
    square = aval.update(shape=(*aval.shape[:-2], n, n))
    r = padding.fit(r, square)
    params = {**padding.params(eqn), "compute_uv": True, "full_matrices": False}
    if is_symbolic(n):
        values, u, vh = _square_svd(padding, eqn.replace(params=params), r, square)
        # The rest of U belongs to the padding, and the product with Q must not add it.
        u = padding.filled(u, square, 0, last)
    else:
        values, u, vh = eqn.primitive.bind(r, **params)
    return [values, product(q, u), vh]
