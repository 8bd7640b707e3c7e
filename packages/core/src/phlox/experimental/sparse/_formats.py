"""The formats of sparse arrays, as pytrees whose elements are differentiable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._base import pytree
from ..._base.errors import ArgumentError, ShapeError
from ...ops import segment_sum
from ...typing import Array, DTypeLike


class JAXSparse:
    """The base of sparse arrays. Subclasses have `data`, the stored elements, and `shape`."""

    data: Any
    shape: tuple[int, ...]
    __array_priority__ = 2000

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements, stored or not."""
        return int(np.prod(self.shape))

    @property
    def nse(self) -> int:
        """Number of stored elements."""
        return int(self.data.shape[-1])

    def todense(self) -> Array:
        """The array with all of its elements."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dtype}{list(self.shape)}, nse={self.nse})"

    def __mul__(self, other: Any) -> Any:
        if np.ndim(other):
            raise ArgumentError("a sparse array is multiplied by a number only", instead="x.todense() * other")
        return self._with(self.data * other)

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self._with(-self.data)

    def _with(self, data: Any) -> Any:
        raise NotImplementedError


@pytree.register_pytree_node_class
class BCOO(JAXSparse):
    """An array of which the elements `data` at `indices` (one row of indices each) are stored; all others are zero.

    >>> m = BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m, m @ jnp.ones(2)
    (BCOO(float32[2, 2], nse=2), Array([2., 3.], dtype=float32))
    """

    def __init__(
        self, args: tuple[Any, Any], *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ):
        self.data, self.indices = args
        self.shape = tuple(shape)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> BCOO:
        """The elements of `mat` that are not zero, at most `nse` of them; under `jit`, `nse` must be given."""
        mat = jnp.asarray(mat)
        count = int((mat != 0).sum()) if nse is None else nse
        places = jnp.nonzero(mat, size=count, fill_value=mat.shape)
        indices = jnp.stack(places, -1).astype(index_dtype) if mat.ndim else jnp.zeros((count, 0), index_dtype)
        data = mat.at[places].get(mode="fill", fill_value=0)
        return cls((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: DTypeLike | None = None) -> BCOO:
        """The same elements as a sparse matrix of SciPy."""
        found = mat.tocoo()
        indices = jnp.column_stack((found.row, found.col)).astype(index_dtype or np.int32)
        return cls((jnp.asarray(found.data), indices), shape=found.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], dtype: Any, index_dtype: Any) -> BCOO:
        return cls((jnp.zeros(0, dtype), jnp.zeros((0, len(shape)), index_dtype)), shape=shape)

    def todense(self) -> Array:
        """The array with all of its elements; elements with equal indices are added."""
        places = tuple(self.indices[:, axis] for axis in range(self.ndim))
        return jnp.zeros(self.shape, self.dtype).at[places].add(self.data, mode="drop")

    @property
    def T(self) -> BCOO:
        """The array with its axes in reverse order."""
        return self.transpose()

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """The array with its axes in another order; None reverses them."""
        order = list(range(self.ndim))[::-1] if axes is None else list(axes)
        return BCOO((self.data, self.indices[:, jnp.array(order)]), shape=[self.shape[i] for i in order])

    def sum_duplicates(self, nse: int | None = None) -> BCOO:
        """The same array, with one stored element for each index."""
        return BCOO.fromdense(self.todense(), nse=self.nse if nse is None else nse)

    def sum(self, axis: Any = None) -> Any:
        """The sum over all elements, or over an axis."""
        return self.data.sum() if axis is None else self.todense().sum(axis)

    def __matmul__(self, other: Any) -> Any:
        other = other.todense() if isinstance(other, JAXSparse) else jnp.asarray(other)
        _check(self, self.shape[-1], other.shape, other.shape[-2] if other.ndim > 1 else other.shape[0])
        rows, columns = self.indices[:, 0], self.indices[:, 1]
        picked = other.at[columns].get(mode="fill", fill_value=0)
        data = self.data.reshape(self.data.shape + (1,) * (other.ndim - 1))
        return segment_sum(data * picked, rows, self.shape[0])

    def __rmatmul__(self, other: Any) -> Any:
        other = jnp.asarray(other)
        return (self.T @ other.T).T

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, BCOO):
            return self.todense() + other
        parts = [(x.data, x.indices) for x in (self, other)]
        joined = [jnp.concatenate(pieces) for pieces in zip(*parts, strict=True)]
        return BCOO((joined[0], joined[1]), shape=self.shape)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def _with(self, data: Any) -> BCOO:
        return BCOO((data, self.indices), shape=self.shape)

    def tree_flatten(self) -> tuple[tuple[Any, Any], Any]:
        """For pytrees."""
        return (self.data, self.indices), (self.shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> BCOO:
        """For pytrees."""
        made = object.__new__(cls)
        made.data, made.indices = children
        made.shape, made.indices_sorted, made.unique_indices = aux
        return made


@pytree.register_pytree_node_class
class BCSR(JAXSparse):
    """A matrix stored by rows: row i has the elements ``data[indptr[i]:indptr[i + 1]]``, in the columns `indices`.

    >>> m = BCSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m.indptr, m @ jnp.ones(2)
    (Array([0, 1, 2], dtype=int32), Array([2., 3.], dtype=float32))
    """

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int], **_flags: bool):
        self.data, self.indices, self.indptr = args
        self.shape = tuple(shape)

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> BCSR:
        """The elements of `mat` that are not zero, at most `nse` of them; under `jit`, `nse` must be given."""
        return cls.from_bcoo(BCOO.fromdense(mat, nse=nse, index_dtype=index_dtype))

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The matrix of a `BCOO`."""
        order = jnp.lexsort((arr.indices[:, 1], arr.indices[:, 0]))
        rows, columns = arr.indices[order, 0], arr.indices[order, 1]
        starts = jnp.searchsorted(rows, jnp.arange(arr.shape[0] + 1)).astype(arr.indices.dtype)
        return cls((arr.data[order], columns, starts), shape=arr.shape)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: DTypeLike | None = None) -> BCSR:
        """The same elements as a sparse matrix of SciPy."""
        found, kind = mat.tocsr(), index_dtype or np.int32
        parts = jnp.asarray(found.data), jnp.asarray(found.indices).astype(kind), jnp.asarray(found.indptr).astype(kind)
        return cls(parts, shape=found.shape)

    def to_bcoo(self) -> BCOO:
        """The matrix as a `BCOO`."""
        rows = jnp.searchsorted(self.indptr, jnp.arange(self.nse), side="right") - 1
        return BCOO((self.data, jnp.stack([rows.astype(self.indices.dtype), self.indices], -1)), shape=self.shape)

    def todense(self) -> Array:
        """The matrix with all of its elements."""
        return self.to_bcoo().todense()

    def __matmul__(self, other: Any) -> Any:
        return self.to_bcoo() @ other

    def __rmatmul__(self, other: Any) -> Any:
        return other @ self.to_bcoo()

    def _with(self, data: Any) -> BCSR:
        return BCSR((data, self.indices, self.indptr), shape=self.shape)

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], Any]:
        """For pytrees."""
        return (self.data, self.indices, self.indptr), self.shape

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> BCSR:
        """For pytrees."""
        made = object.__new__(cls)
        made.data, made.indices, made.indptr = children
        made.shape = aux
        return made


def todense(arr: Any) -> Any:
    """A sparse array with all of its elements; other arrays as they are.

    Args:
      arr: array, sparse or not.

    Returns:
      An array.

    >>> todense(eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return arr.todense() if isinstance(arr, JAXSparse) else arr


def empty(shape: Sequence[int], dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32") -> BCOO:
    """A sparse array without stored elements.

    Args:
      shape: lengths of its axes.
      dtype: of the elements; None for float32.
      index_dtype: of the indices.

    Returns:
      A `BCOO`.

    >>> empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    return BCOO._empty(shape, dtype or jnp.float32, index_dtype)


def eye(N: int, M: int | None = None, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32") -> BCOO:
    """A sparse matrix with ones on the diagonal.

    Args:
      N: number of rows.
      M: number of columns; None for `N`.
      dtype: of the elements; None for float32.
      index_dtype: of the indices.

    Returns:
      A `BCOO`.

    >>> eye(3)
    BCOO(float32[3, 3], nse=3)
    """
    count = min(N, N if M is None else M)
    diagonal = jnp.arange(count, dtype=index_dtype)
    return BCOO(
        (jnp.ones(count, dtype or jnp.float32), jnp.stack([diagonal, diagonal], -1)), shape=(N, N if M is None else M)
    )


def _check(mat: JAXSparse, length: int, shape: tuple[int, ...], other: int) -> None:
    if mat.ndim != 2 or length != other:
        raise ShapeError(
            f"a sparse product of {list(mat.shape)} and {list(shape)}",
            instead="a matrix whose rows are as long as the columns of the other",
            shapes=[mat.shape, shape],
        )
