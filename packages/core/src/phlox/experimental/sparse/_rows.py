"""The format `BCSR`, matrices stored by rows, and its functions, by way of `BCOO`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._base import pytree
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, ShapeError
from ..._ir import dtypes
from ...typing import Array, DTypeLike
from ._base import BatchedSparse
from ._bcoo import BCOO, bcoo_fromdense, extract, mapped
from ._layouts import bcoo_sort_indices, bcoo_sum_duplicates
from ._products import Dimensions, bcoo_dot_general
from ._shapes import bcoo_broadcast_in_dim, bcoo_concatenate


@pytree.register_pytree_node_class
class BCSR(BatchedSparse):
    """A batch of matrices stored by rows: row i has ``data[indptr[i]:indptr[i + 1]]``, in the columns `indices`.

    >>> m = BCSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m.indptr, m @ jnp.ones(2)
    (Array([0, 1, 2], dtype=int32), Array([2., 3.], dtype=float32))
    """

    _arrays = ("data", "indices", "indptr")
    _index_axes = 1
    indptr: Any

    @property
    def n_sparse(self) -> int:
        """Number of axes along which elements have indices: rows and columns."""
        return 2

    @property
    def nse(self) -> int:
        """Number of stored elements, of each matrix of a batch."""
        return int(self.indices.shape[-1])

    def _check(self) -> None:
        if self.indptr.shape[-1:] != (self.shape[self.n_batch] + 1,) or self.n_dense < 0:
            raise ShapeError(
                f"BCSR: indptr of shape {self.indptr.shape} for an array of shape {self.shape}",
                instead="one more number than there are rows",
                shapes=[self.indptr.shape, self.shape],
            )

    @classmethod
    def fromdense(
        cls,
        mat: Any,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:
        """The elements of `mat` that are not zero; see `bcsr_fromdense`."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The matrix of a `BCOO` with two sparse axes."""
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BCSR.from_bcoo requires n_sparse=2; got {arr}")
        arr = arr if arr.indices_sorted else bcoo_sort_indices(arr)
        rows, columns = arr.indices[..., 0], arr.indices[..., 1]
        if not dtypes.holds(rows.dtype, arr.nse):  # the last number of `indptr`
            raise dtypes.too_large(arr.nse, rows.dtype, "BCSR: too many elements for the dtype of the indices: ")
        starts = jnp.arange(arr.shape[arr.n_batch] + 1)
        indptr = mapped(lambda rows: jnp.searchsorted(rows, starts), arr.n_batch)(rows).astype(rows.dtype)
        flags = {"indices_sorted": True, "unique_indices": arr.unique_indices}
        return cls((arr.data, columns, indptr), shape=arr.shape, **flags)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """The same elements as a sparse matrix of SciPy."""
        if n_dense or n_batch:
            raise NotImplementedError("from_scipy_sparse: n_batch and n_dense must be 0")
        csr, kind = mat.tocsr(), index_dtype or np.int32
        arrays = (
            jnp.asarray(csr.data),
            jnp.asarray(csr.indices).astype(kind),
            jnp.asarray(csr.indptr).astype(kind),
        )
        return cls(arrays, shape=csr.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32", **layout: int) -> BCSR:
        if len(shape) < 2:
            raise ArgumentError(f"BCSR: an array of shape {tuple(shape)}", instead="two axes or more")
        return bcsr_fromdense(jnp.zeros(shape, dtype), index_dtype=index_dtype, **{"nse": 0, **layout})

    def to_bcoo(self) -> BCOO:
        """The matrix as a `BCOO`."""

        def rows(indptr: Any) -> Any:
            return jnp.searchsorted(indptr, jnp.arange(self.nse), side="right") - 1

        row_indices = mapped(rows, self.n_batch)(self.indptr).astype(self.indices.dtype)
        indices = jnp.stack([row_indices, self.indices], -1)
        return BCOO(
            (self.data, indices),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def todense(self) -> Array:
        """The matrix with all of its elements."""
        return self.to_bcoo().todense()

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The same matrix with one stored element for each index; see `bcsr_sum_duplicates`."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def _binary(self, name: str, other: Any) -> Any:
        if name not in ("__matmul__", "__rmatmul__"):
            raise self._lacking(name)
        return self.to_bcoo()._binary(name, other.to_bcoo() if isinstance(other, BCSR) else other)


def bcsr_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = np.int32
) -> BCSR:
    """The elements of a dense array that are not zero.

    Args:
      mat: array of two axes, and of those of the batch and those that are stored whole.
      nse: number of elements to store, of each matrix of a batch; None for as many as there are.
      n_batch: number of leading axes that are a batch.
      n_dense: number of last axes that are stored whole.
      index_dtype: of the indices.

    Returns:
      A `BCSR`.

    >>> bcsr_fromdense(jnp.eye(2)).indptr
    Array([0, 1, 2], dtype=int32)
    """
    elements = bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)
    result = BCSR.from_bcoo(elements)
    result.indices_sorted = result.unique_indices = False
    return result


def bcsr_todense(mat: BCSR) -> Array:
    """A sparse matrix with all of its elements.

    Args:
      mat: `BCSR`.

    Returns:
      An array.

    >>> bcsr_todense(bcsr_fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return mat.todense()


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Any:
    """The elements of a dense matrix that stand where a sparse one has its elements.

    Args:
      indices: columns of the elements.
      indptr: where each row starts among them.
      mat: array.

    Returns:
      An array of the elements.

    >>> bcsr_extract(jnp.array([1, 0]), jnp.array([0, 1, 2]), jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([2., 3.], dtype=float32)
    """
    indices, indptr, mat = jnp.asarray(indices), jnp.asarray(indptr), jnp.asarray(mat)
    which = BCSR((jnp.zeros(indices.shape, mat.dtype), indices, indptr), shape=mat.shape[: indices.ndim + 1])
    return extract(which.to_bcoo().indices, mat, indices.ndim - 1)


@docs_from(bcoo_dot_general)
def bcsr_dot_general(
    lhs: BCSR,
    rhs: Any,
    *,
    dimension_numbers: Dimensions,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Sums of products over pairs of axes, as `phlox.lax.dot_general`.

    Args:
      lhs: `BCSR`.
      rhs: array.

    Returns:
      An array.

    >>> bcsr_dot_general(bcsr_fromdense(jnp.eye(2)), jnp.ones(2), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([1., 1.], dtype=float32)
    """
    return bcoo_dot_general(
        lhs.to_bcoo(), rhs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type
    )


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """The same matrix with one stored element for each index.

    Args:
      mat: `BCSR`.
      nse: number of elements to store; None for as many as there are indices.

    Returns:
      A `BCSR`.

    >>> bcsr_sum_duplicates(bcsr_fromdense(jnp.eye(2)))
    BCSR(float32[2, 2], nse=2)
    """
    return BCSR.from_bcoo(bcoo_sum_duplicates(mat.to_bcoo(), nse=nse))


@docs_from(bcsr_sum_duplicates)
def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """A sparse matrix with more batch or dense axes.

    Args:
      shape: of the result.
      broadcast_dimensions: the axis of the result for each axis of `mat`.
      sharding: not used.

    >>> bcsr_broadcast_in_dim(bcsr_fromdense(jnp.eye(2)), shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCSR(float32[3, 2, 2], nse=2, n_batch=1)
    """
    return BCSR.from_bcoo(bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions))


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Sparse matrices one after the other along an axis.

    Args:
      operands: of class `BCSR`.
      dimension: the axis.

    Returns:
      A `BCSR`.

    >>> bcsr_concatenate([bcsr_fromdense(jnp.eye(2))] * 2, dimension=0)
    BCSR(float32[4, 2], nse=4)
    """
    return BCSR.from_bcoo(bcoo_concatenate([x.to_bcoo() for x in operands], dimension=dimension))
