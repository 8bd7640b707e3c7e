"""The formats `COO`, `CSR` and `CSC`: single matrices with products by dense ones. `BCOO` has more operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._base import pytree
from ..._base.docstrings import docs_from
from ...typing import Array, DTypeLike
from ._base import JAXSparse
from ._bcoo import BCOO, bcoo_fromdense
from ._rows import BCSR


class _Matrix(JAXSparse):
    """A single matrix in a format that `to_bcoo` translates."""

    def to_bcoo(self) -> BCOO:
        """The matrix as a `BCOO`."""
        raise NotImplementedError

    def todense(self) -> Array:
        """The matrix with all of its elements."""
        return self.to_bcoo().todense()

    def _binary(self, name: str, other: Any) -> Any:
        if name != "__matmul__":
            raise self._lacking(name)
        if isinstance(other, JAXSparse):
            raise NotImplementedError("matmul between two sparse objects; instead: BCOO")
        return self.to_bcoo() @ jnp.asarray(other)


@pytree.register_pytree_node_class
class COO(_Matrix):
    """A matrix of elements `data` at rows `row` and columns `col`.

    >>> COO.fromdense(jnp.eye(2)) @ jnp.ones(2)
    Array([1., 1.], dtype=float32)
    """

    _arrays, _flags = ("data", "row", "col"), ("rows_sorted", "cols_sorted")

    def __init__(
        self, args: tuple[Any, Any, Any], *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False
    ):
        """Args:
        args: (data, row, col).
        shape: of the matrix.
        rows_sorted: whether rows are known to be in order.
        cols_sorted: whether columns are known to be in order.
        """
        self.data, self.row, self.col = map(jnp.asarray, args)
        self.shape, self.rows_sorted, self.cols_sorted = tuple(shape), rows_sorted, cols_sorted

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> COO:
        """The elements of `mat` that are not zero."""
        elements = bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype)
        return cls(
            (elements.data, elements.indices[:, 0], elements.indices[:, 1]), shape=elements.shape, rows_sorted=True
        )

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> COO:
        none = jnp.zeros(0, index_dtype)
        return cls((jnp.zeros(0, dtype), none, none), shape=shape, rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> COO:
        whole = BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype)
        parts = whole.data, whole.indices[:, 0], whole.indices[:, 1]
        return cls(parts, shape=(N, M), rows_sorted=True, cols_sorted=True)

    def to_bcoo(self) -> BCOO:
        """The matrix as a `BCOO`."""
        return BCOO((self.data, jnp.stack([self.row, self.col], -1)), shape=self.shape)

    def transpose(self, axes: Any = None) -> COO:
        """The matrix with rows and columns exchanged."""
        if axes is not None:
            raise NotImplementedError("axes of a transpose")
        shape = self.shape[::-1]
        flags = {"rows_sorted": self.cols_sorted, "cols_sorted": self.rows_sorted}
        return COO((self.data, self.col, self.row), shape=shape, **flags)


class _Compressed(_Matrix):
    _arrays = ("data", "indices", "indptr")
    #: the axes of the matrix in the order in which `BCSR` stores them
    _order = (0, 1)

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        """Args:
        args: (data, indices, indptr).
        shape: of the matrix.
        """
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.shape = tuple(shape)

    @classmethod
    def _of_rows(cls, rows: BCSR) -> Any:
        return cls((rows.data, rows.indices, rows.indptr), shape=[rows.shape[i] for i in cls._order])

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> Any:
        """The elements of `mat` that are not zero."""
        return cls._of_rows(BCSR.fromdense(jnp.transpose(mat, cls._order), nse=nse, index_dtype=index_dtype))

    @classmethod
    def _empty(cls, shape: Sequence[int], **options: Any) -> Any:
        return cls._of_rows(BCSR._empty([shape[i] for i in cls._order], **options))

    @classmethod
    def _eye(cls, N: int, M: int, k: int, **options: Any) -> Any:
        return cls._of_rows(BCSR.from_bcoo(BCOO._eye(N, M, k, **options).transpose(cls._order)))

    def to_bcoo(self) -> BCOO:
        """The matrix as a `BCOO`."""
        return BCSR((self.data, self.indices, self.indptr), shape=[self.shape[i] for i in self._order]).to_bcoo()

    def transpose(self, axes: Any = None) -> Any:
        """The matrix with rows and columns exchanged."""
        if axes is not None:
            raise NotImplementedError("axes of a transpose")
        kind = CSC if isinstance(self, CSR) else CSR
        return kind((self.data, self.indices, self.indptr), shape=self.shape[::-1])


@pytree.register_pytree_node_class
class CSR(_Compressed):
    """A matrix stored by rows: row i has ``data[indptr[i]:indptr[i + 1]]``, in the columns `indices`.

    >>> CSR.fromdense(jnp.eye(2)).T
    CSC(float32[2, 2], nse=2)
    """


@pytree.register_pytree_node_class
class CSC(_Compressed):
    """A matrix stored by columns: column i has ``data[indptr[i]:indptr[i + 1]]``, in the rows `indices`.

    >>> CSC.fromdense(jnp.eye(2)).T
    CSR(float32[2, 2], nse=2)
    """

    _order = (1, 0)

    def to_bcoo(self) -> BCOO:
        """The matrix as a `BCOO`."""
        return super().to_bcoo().transpose(self._order)


def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> COO:
    """The elements of a dense matrix that are not zero, as `COO`.

    Args:
      mat: array of two axes.
      nse: number of elements to store; None for as many as there are.
      index_dtype: of the indices.

    Returns:
      A `COO`.

    >>> coo_fromdense(jnp.eye(2)).row
    Array([0, 1], dtype=int32)
    """
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


@docs_from(coo_fromdense)
def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
    """The elements of a dense matrix that are not zero, as `CSR`.

    Returns:
      A `CSR`.

    >>> csr_fromdense(jnp.eye(2)).indptr
    Array([0, 1, 2], dtype=int32)
    """
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


def matrix_todense(mat: JAXSparse) -> Array:
    """A sparse matrix with all of its elements: `coo_todense`, `csr_todense`.

    Args:
      mat: `COO` or `CSR`.

    Returns:
      An array.

    >>> matrix_todense(coo_fromdense(jnp.eye(1)))
    Array([[1.]], dtype=float32)
    """
    return mat.todense()


@docs_from(matrix_todense)
def matrix_vector_product(mat: Any, v: Any, transpose: bool = False) -> Array:
    """The product of a sparse matrix and a dense vector: `coo_matvec`, `csr_matvec`.

    Args:
      v: vector.
      transpose: whether `mat` is transposed first.

    >>> matrix_vector_product(coo_fromdense(jnp.eye(2)), jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    return (mat.T if transpose else mat) @ v


@docs_from(matrix_vector_product)
def matrix_product(mat: Any, B: Any, *, transpose: bool = False) -> Array:
    """The product of a sparse and a dense matrix: `coo_matmat`, `csr_matmat`.

    Args:
      B: matrix.

    >>> matrix_product(coo_fromdense(jnp.eye(2)), jnp.ones((2, 2)))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return (mat.T if transpose else mat) @ B
