"""Eigenvalues of Hermitian tridiagonal matrices by bisection, and eigenvectors by inverse iteration.

Sturm's sequence counts the eigenvalues less than a number in linear time, so all eigenvalues are found in parallel.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import lax, numpy as jnp, random
from ..._api.derivatives.custom import custom_jvp
from ..._api.jit.jit import jit
from ..._base.errors import DtypeError, OptionError, ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._operands.checks import type_of
from ..._ops.linalg.matrices import adjoint, product
from ..._ops.linalg.tridiagonal import tridiagonal_solve
from ...numpy._creation.from_data import listed
from ...typing import Array, ArrayLike


@functools.partial(jit, static_argnames=("eigvals_only", "select", "select_range"))
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """Eigenvalues and eigenvectors of Hermitian tridiagonal matrices (as ``scipy.linalg.eigh_tridiagonal``).

    Args:
      d: main diagonals, vectors of length n, of shape [..., n]; their imaginary part is not read.
      e: diagonals above `d`, of shape [..., n - 1] and the same dtype: single or double precision, real or complex.
      eigvals_only: whether only the eigenvalues are returned.
      select: 'a' for all eigenvalues, 'i' for those with the indices in `select_range`. 'v', those between two values,
        is not supported.
      select_range: first and last index, counted from 0 in ascending order, both included; for 'i'.
      tol: absolute tolerance of the eigenvalues; None: the precision of the dtype times the norm.
      key: PRNG key for the initial vectors of inverse iteration; None means a fixed key.

    Returns:
      ``(w, v)``: eigenvalues [..., k], real and ascending; and eigenvectors [..., n, k], in columns, of the dtype of
      `d`.

    Raises:
      DtypeError: the dtypes differ, or are not of single or double precision.
      ShapeError: the shapes are not [..., n] and [..., n - 1].
      OptionError: `select` is unknown, or `select_range` is not in order or out of range.
      UnsupportedError: `select` is 'v'.

    >>> eigh_tridiagonal(jnp.array([2.0, 2.0]), jnp.array([1.0]), eigvals_only=True).round()
    Array([1., 3.], dtype=float32)
    """
    d, e = map(jnp.asarray, listed("eigh_tridiagonal", d, e))
    if d.dtype != e.dtype or d.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise DtypeError(
            f"eigh_tridiagonal: takes diagonals of one dtype, single or double precision, got {type_of(d).short} and "
            f"{type_of(e).short}"
        )
    if not d.ndim or not e.ndim or e.shape[-1] != max(d.shape[-1] - 1, 0):
        raise ShapeError(
            f"eigh_tridiagonal: takes diagonals of n and n - 1 elements, got {type_of(d).short} and {type_of(e).short}",
            shapes=[d.shape, e.shape],
        )
    n = type_of(d).shape[-1]
    if n <= 1:
        v = jnp.broadcast_to(jnp.eye(n, dtype=d.dtype), (*d.shape[:-1], n, n))
        return jnp.real(d) if eigvals_only else (jnp.real(d), v)
    solve = functools.partial(_values if eigvals_only else _pairs, _selected(n, select, select_range))
    key = random.key(42) if key is None else key
    signature = "(n),(m)->(k)" if eigvals_only else "(n),(m)->(k),(n,k)"
    return jnp.vectorize(lambda d, e: solve(d, e, tol, key), signature=signature)(d, e)


# Bisection itself has no derivatives of use: it selects ends of intervals.
@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _values(indices: range, d: Any, e: Any, tol: Any, key: Any) -> Any:
    """The eigenvalues of these indices."""
    return _bisection(jnp.real(d), jnp.real(e * jnp.conj(e)), jnp.abs(e), np.asarray(indices, np.int32), tol)


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _pairs(indices: range, d: Any, e: Any, tol: Any, key: Any) -> tuple[Any, Any]:
    """The eigenvalues of these indices, and their vectors, in columns."""
    w = _values(indices, d, e, tol, random.clone(key))
    return w, _inverse_iteration(jnp.real(d), e, w, key).T


def _changes(v: Any, d: Any, e: Any) -> tuple[Any, Any]:
    """The products of the matrix of the tangents `d` and `e` with vectors, and the tangents of their eigenvalues."""
    after, before = jnp.pad(v[1:], ((0, 1), (0, 0))), jnp.pad(v[:-1], ((1, 0), (0, 0)))
    above, below = jnp.pad(e, (0, 1)), jnp.pad(jnp.conj(e), (1, 0))
    change = jnp.real(d)[:, None] * v + above[:, None] * after + below[:, None] * before
    return change, jnp.real(jnp.sum(jnp.conj(v) * change, axis=0))


@_values.defjvp
def _values_jvp(indices: range, primals: Any, tangents: Any) -> tuple[Any, Any]:
    w, v = _pairs(indices, *primals)
    return w, _changes(v, *tangents[:2])[1]


@_pairs.defjvp
def _pairs_jvp(indices: range, primals: Any, tangents: Any) -> tuple[Any, Any]:
    w, v = _pairs(indices, *primals)
    change, dw = _changes(v, *tangents[:2])
    # A vector turns towards all others, also those that are not selected.
    n = type_of(v).shape[0]
    d, e, tol, key = primals
    all_w, all_v = _pairs(range(n), d, e, tol, random.clone(key))
    gap = w - all_w[:, None]
    turns = (gap != 0) & (np.arange(n)[:, None] != np.asarray(indices))
    parts = jnp.where(turns, product(adjoint(all_v), change) / jnp.where(turns, gap, 1), 0)
    return (w, v), (dw, product(all_v, parts))


def _selected(n: int, select: str, select_range: Any) -> range:
    """The indices of the selected eigenvalues."""
    if select == "a":
        return range(n)
    if select == "v":
        raise UnsupportedError("eigh_tridiagonal: select='v' is not there", instead="select='a', and then a mask")
    if select != "i":
        raise OptionError(f"eigh_tridiagonal: there is no select={select!r}", instead="'a' or 'i'")
    if select_range is None or not 0 <= select_range[0] <= select_range[1] < n:
        raise OptionError(
            f"eigh_tridiagonal: select='i' with select_range={select_range} for matrices of {n} rows",
            instead="(first, last), indices from 0 on",
        )
    return range(select_range[0], select_range[1] + 1)


def _bisection(diagonal: Any, squares: Any, sizes: Any, indices: Any, tol: Any) -> Any:
    n, dtype = type_of(diagonal).shape[0], diagonal.dtype
    info = dtypes.finfo(dtype)
    # Gershgorin's circles contain all eigenvalues.
    radii = jnp.pad(sizes, (1, 0)) + jnp.pad(sizes, (0, 1))
    least, most = jnp.min(diagonal - radii), jnp.max(diagonal + radii)
    norm = jnp.maximum(jnp.abs(least), jnp.abs(most))
    safe = np.maximum(1 / info.max, (1 + info.eps) * info.tiny).astype(dtype)
    # Sturm's sequence divides by its elements: those closer to 0 than `pivot`, for which a quotient could overflow, are
    # replaced by -pivot (PIVMIN in LAPACK's xSTEBZ).
    pivot = safe * jnp.maximum(1, jnp.max(squares))
    # Where x equals the first element of the diagonal. It is not 0 if the element beside it is: 0 / 0 would follow.
    nudge = jnp.maximum(jnp.square(info.eps * sizes[0]), pivot)
    exact = info.eps * norm if tol is None else jnp.maximum(tol, info.eps * norm)

    def below(x: Any) -> Any:
        """The number of eigenvalues less than each of `x`: the number of negative elements of Sturm's sequence."""

        def step(i: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
            q, count = state
            q = diagonal[i] - squares[i - 1] / q - x
            low = q <= pivot
            return jnp.where(low, jnp.minimum(q, -pivot), q), count + low

        q = diagonal[0] - x
        first = jnp.where(diagonal[0] == x, nudge, q)
        return lax.fori_loop(1, n, step, (first, (q < 0).astype(jnp.int32)))[1]

    # The circles, widened by their rounding errors as in xSTEBZ
    slack = jnp.asarray(n, dtype) * 2.1 * info.eps * norm
    count = type_of(indices).shape
    lower = jnp.broadcast_to(least - slack - 4.2 * pivot, count)
    upper = jnp.broadcast_to(most + slack + 2.1 * pivot, count)

    def turn(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        i, lower, upper = state
        middle = 0.5 * (upper + lower)
        counts = below(middle)
        return i + 1, jnp.where(counts <= indices, middle, lower), jnp.where(counts > indices, middle, upper)

    def go_on(state: tuple[Any, Any, Any]) -> Any:
        i, lower, upper = state
        return (i < info.nmant + 1) & (exact < jnp.max(upper - lower))

    _, lower, upper = lax.while_loop(go_on, turn, (0, lower, upper))
    return 0.5 * (lower + upper)


def _inverse_iteration(diagonal: Any, e: Any, w: Any, key: Any) -> Any:
    """The eigenvectors, in rows, by inverse iteration with (T - w)⁻¹."""
    n, k, dtype = type_of(diagonal).shape[0], type_of(w).shape[0], e.dtype
    norm = jnp.maximum(jnp.abs(w[0]), jnp.abs(w[-1]))
    close = w[1:] - w[:-1] < np.sqrt(dtypes.finfo(w.dtype).eps) * norm
    left, right = jnp.pad(close, (1, 0)), jnp.pad(close, (0, 1))
    # Groups of close eigenvalues have two members at least, so there are at most k / 2.
    starts, ends = (jnp.nonzero(x, size=k // 2 + 1)[0] for x in (~left & right, left & ~right))
    numbers = jnp.arange(k)

    def orthogonal(i: Any, v: Any) -> Any:
        """Orthogonalizes vectors of close eigenvalues, which inverse iteration does not separate."""
        start, end = starts[i], ends[i] + 1
        rows = lax.dynamic_slice_in_dim(jnp.pad(v, ((0, k), (0, 0))), start, k)
        mask = (numbers < end - start).astype(v.dtype)[:, None]
        q = jnp.linalg.qr((rows * mask).T).Q.T * mask
        moved = lax.dynamic_update_slice_in_dim(jnp.zeros((2 * k, n), v.dtype), q, start, axis=0)[:k]
        return jnp.where(((numbers >= start) & (numbers < end))[:, None], moved, v)

    below, above = jnp.pad(jnp.conj(e), (1, 0)), jnp.pad(e, (0, 1))
    shifted = (diagonal - w[:, None]).astype(dtype)
    below, above = (jnp.broadcast_to(x, (k, n)) for x in (below, above))

    def turn(state: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
        i, v, growth, _ = state
        # T - w is singular up to rounding, which is why the iteration converges; only pivots of exactly 0 are replaced.
        v = tridiagonal_solve(below, shifted, above, v[:, :, None], perturb_singular=True)[..., 0]
        size = jnp.linalg.norm(v, axis=-1, keepdims=True)
        v = lax.fori_loop(0, jnp.sum(~left & right), orthogonal, v / size.astype(dtype))
        return i + 1, v, size[:, 0], growth

    def go_on(state: tuple[Any, Any, Any, Any]) -> Any:
        i, _, growth, before = state
        return (i < 5) & jnp.any(growth >= 1.1 * before)  # as in LAPACK's xSTEIN

    v = random.normal(key, (k, n), dtype=w.dtype).astype(dtype)
    v = v / jnp.linalg.norm(v, axis=-1, keepdims=True).astype(dtype)
    return lax.while_loop(go_on, turn, (0, v, jnp.ones(k, w.dtype), jnp.zeros(k, w.dtype)))[1]
