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

    _names: tuple[str, ...]

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

    def _aux(self) -> dict[str, Any]:
        return {"shape": self.shape}

    def tree_flatten(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Its arrays, and what is no array."""
        return tuple(getattr(self, name) for name in self._names), self._aux()

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Any) -> Any:
        """The matrix of these parts."""
        result = object.__new__(cls)
        vars(result).update(zip(cls._names, children, strict=True))
        result._set(**aux_data)
        return result

    def _set(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)


@pytree.register_pytree_node_class
class COO(_Matrix):
    """A matrix of elements `data` at rows `row` and columns `col`.

    >>> COO.fromdense(jnp.eye(2)) @ jnp.ones(2)
    Array([1., 1.], dtype=float32)
    """

    _names = ("data", "row", "col")

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
        self._set(shape, rows_sorted, cols_sorted)

    def _set(self, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False) -> None:
        self.shape = tuple(shape)
        self._rows_sorted, self._cols_sorted = rows_sorted, cols_sorted

    def _aux(self) -> dict[str, Any]:
        return {"shape": self.shape, "rows_sorted": self._rows_sorted, "cols_sorted": self._cols_sorted}

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
        flags = {"rows_sorted": self._cols_sorted, "cols_sorted": self._rows_sorted}
        return COO((self.data, self.col, self.row), shape=shape, **flags)


class _Compressed(_Matrix):
    _names = ("data", "indices", "indptr")

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        """Args:
        args: (data, indices, indptr).
        shape: of the matrix.
        """
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.shape = tuple(shape)

    @classmethod
    def _of_rows(cls, rows: BCSR, shape: Sequence[int]) -> Any:
        return cls((rows.data, rows.indices, rows.indptr), shape=shape)

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

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
        """The elements of `mat` that are not zero."""
        rows = BCSR.fromdense(mat, nse=nse, index_dtype=index_dtype)
        return cls._of_rows(rows, rows.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> CSR:
        return cls._of_rows(BCSR._empty(shape, dtype=dtype, index_dtype=index_dtype), shape)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> CSR:
        return cls._of_rows(BCSR.from_bcoo(BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype)), (N, M))

    def to_bcoo(self) -> BCOO:
        """The matrix as a `BCOO`."""
        return BCSR((self.data, self.indices, self.indptr), shape=self.shape).to_bcoo()


@pytree.register_pytree_node_class
class CSC(_Compressed):
    """A matrix stored by columns: column i has ``data[indptr[i]:indptr[i + 1]]``, in the rows `indices`.

    >>> CSC.fromdense(jnp.eye(2)).T
    CSR(float32[2, 2], nse=2)
    """

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSC:
        """The elements of `mat` that are not zero."""
        mat = jnp.asarray(mat)
        return cls._of_rows(BCSR.fromdense(mat.T, nse=nse, index_dtype=index_dtype), mat.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> CSC:
        return cls._of_rows(BCSR._empty(tuple(shape)[::-1], dtype=dtype, index_dtype=index_dtype), shape)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> CSC:
        return cls._of_rows(BCSR.from_bcoo(BCOO._eye(M, N, -k, dtype=dtype, index_dtype=index_dtype)), (N, M))

    def to_bcoo(self) -> BCOO:
        """The matrix as a `BCOO`."""
        by_columns = BCSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])
        return by_columns.to_bcoo().transpose((1, 0))


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
