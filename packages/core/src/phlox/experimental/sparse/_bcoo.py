"""The format `BCOO`, and its conversions from and to dense arrays.

An array is stored as `data` of shape (*batch, nse, *dense) and `indices` of shape (*batch, nse, n_sparse). Elements
with equal indices are added; those with indices outside of the shape are padding. The functions here and in the other
files are programs of `phlox.numpy` on one matrix, mapped over the batch; so they are differentiable by the elements.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._api.batching.vmap import vmap
from ..._base import pytree
from ..._base.errors import ArgumentError, ShapeError
from ..._ir import dtypes
from ...typing import Array, DTypeLike
from ._base import BatchedSparse, JAXSparse, columns
from ._functions import functions


@pytree.register_pytree_node_class
class BCOO(BatchedSparse):
    """A sparse array in the batched coordinate format.

    >>> m = BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m, m @ jnp.ones(2)
    (BCOO(float32[2, 2], nse=2), Array([2., 3.], dtype=float32))
    """

    _arrays = ("data", "indices")

    @property
    def nse(self) -> int:
        """Number of stored elements, of each matrix of a batch."""
        return int(self.indices.shape[-2])

    @property
    def sparse_shape(self) -> tuple[int, ...]:
        """The part of the shape along which elements have indices."""
        return self.shape[self.n_batch : self.n_batch + self.n_sparse]

    def _check(self) -> None:
        data, indices, shape, dtype = self.data.shape, self.indices.shape, self.shape, self.indices.dtype
        if len(indices) < 2 or not np.issubdtype(dtype, np.integer):
            raise ArgumentError(f"BCOO: indices of type {dtype}{list(indices)}", instead="integers [..., nse, n]")
        batch, nse = len(indices) - 2, indices[-2]
        dense = len(data) - batch - 1
        # Batch axes may have length one: their elements or indices are then shared, see `parts`.
        fits = dense >= 0 and data[batch] == nse and len(shape) == batch + indices[-1] + dense
        if not fits or data[batch + 1 :] != shape[len(shape) - dense :]:
            raise ShapeError(
                f"BCOO: Invalid data.shape={data} and indices.shape={indices} for an array of shape {shape}",
                instead="data (*batch, nse, *dense) and indices (*batch, nse, n_sparse)",
                shapes=[data, indices, shape],
            )
        limit = np.iinfo(dtype).max
        for length in self.sparse_shape:
            if length > limit:  # the index of padding is the length
                raise dtypes.too_large(
                    length, self.indices.dtype, "BCOO: an axis is too long for the dtype of the indices: "
                )
        for part in (data[:batch], indices[:batch]):
            if any(have not in (1, want) for have, want in zip(part, shape, strict=False)):
                raise ShapeError(f"BCOO: batch axes {part} for an array of shape {shape}", shapes=[part, shape])

    @classmethod
    def fromdense(
        cls,
        mat: Any,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """The elements of `mat` that are not zero; see `bcoo_fromdense`."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """The same elements as a sparse matrix of SciPy."""
        if n_dense or n_batch:
            raise NotImplementedError("from_scipy_sparse: n_batch and n_dense must be 0")
        coo = mat.tocoo()
        indices = jnp.column_stack((coo.row, coo.col)).astype(index_dtype or np.int32)
        return cls((jnp.asarray(coo.data), indices), shape=coo.shape)

    @classmethod
    def _empty(
        cls,
        shape: Sequence[int],
        *,
        dtype: Any = None,
        index_dtype: Any = "int32",
        n_dense: int = 0,
        n_batch: int = 0,
        nse: int = 0,
    ) -> BCOO:
        shape = tuple(shape)
        n_sparse = len(shape) - n_dense - n_batch
        if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ArgumentError(f"empty: shape {list(shape)} with n_batch={n_batch}, n_dense={n_dense}, nse={nse}")
        batch, dense = shape[:n_batch], shape[n_batch + n_sparse :]
        data = jnp.zeros((*batch, nse, *dense), dtype)
        outside = jnp.array(shape[n_batch : n_batch + n_sparse], index_dtype)
        indices = jnp.full((*batch, nse, n_sparse), outside, index_dtype)
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(
        cls,
        N: int,
        M: int,
        k: int,
        *,
        dtype: Any = None,
        index_dtype: Any = "int32",
        n_batch: int = 0,
        n_dense: int = 0,
    ) -> BCOO:
        first, count = max(-k, 0), max(min(N + min(k, 0), M - max(k, 0)), 0)
        rows = jnp.arange(first, first + count, dtype=index_dtype)
        whole = cls(
            (jnp.ones(count, dtype), jnp.stack([rows, rows + k], -1)),
            shape=(N, M),
            indices_sorted=True,
            unique_indices=True,
        )
        if n_batch + n_dense == 0:
            return whole
        return bcoo_fromdense(
            whole.todense(),
            n_batch=n_batch,
            n_dense=n_dense,
            index_dtype=index_dtype,
            nse=count if n_batch + n_dense > 1 or n_dense else None,
        )

    def todense(self) -> Array:
        """The array with all of its elements."""
        return bcoo_todense(self)

    def astype(self, dtype: DTypeLike) -> BCOO:
        """The array with elements of another dtype."""
        return self._with(self.data.astype(dtype))

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """The array with its axes in another order; None reverses them."""
        order = list(range(self.ndim))[::-1] if axes is None else [operator.index(i) % self.ndim for i in axes]
        return functions.bcoo_transpose(self, permutation=order)

    def reshape(self, *args: Any, **kwargs: Any) -> BCOO:
        """The array in another shape, with the arguments of `phlox.numpy.reshape`."""
        return functions.sparsify(lambda x: x.reshape(*args, **kwargs))(self)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> BCOO:
        """The array with other numbers of batch and dense axes; see `bcoo_update_layout`."""
        return functions.bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The same array with one stored element for each index; see `bcoo_sum_duplicates`."""
        return functions.bcoo_sum_duplicates(functions.without_zeros(self) if remove_zeros else self, nse=nse)

    def sort_indices(self) -> BCOO:
        """The same array with its elements in the order of their indices."""
        return functions.bcoo_sort_indices(self)

    def sum(self, axis: Any = None, **kwargs: Any) -> Any:
        """The sum over all elements, or over axes, with the arguments of `phlox.numpy.sum`."""
        return functions.sparsify(lambda x: x.sum(axis, **kwargs))(self)

    def _with(self, data: Any) -> BCOO:
        return self.tree_unflatten(self.tree_flatten()[1], (data, self.indices))

    def _unary(self, name: str) -> BCOO:
        # By the rules of `sparsify`, as elements with equal indices are added before their absolute values are taken.
        return functions.sparsify(getattr(operator, name))(self)

    def _binary(self, name: str, other: Any) -> Any:
        reflected = name in ("__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rmatmul__")
        operation = getattr(operator, name.replace("__r", "__") if reflected else name)
        if isinstance(other, str):
            return NotImplemented
        if name == "__pow__" and not isinstance(other, JAXSparse):
            # The exponent is not an argument: only a number known while tracing can be seen to keep zeros.
            return functions.sparsify(lambda x: operation(x, other))(self)
        pair = (other, self) if reflected else (self, other)
        return functions.sparsify(operation)(*pair)

    def __getitem__(self, index: Any) -> Any:
        return functions.sparsify(lambda x: x[index])(self)

    def _compare(self, other: Any) -> Any:
        raise NotImplementedError("comparisons of sparse arrays have dense results; instead: sparse.todense() of both")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compare

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over an array without axes")
        return (self[i] for i in range(self.shape[0]))


def parts(x: BCOO) -> tuple[Any, Any]:
    """`data` and `indices` with batch axes of full length."""
    batch = x.shape[: x.n_batch]
    data = jnp.broadcast_to(x.data, (*batch, *x.data.shape[x.n_batch :]))
    return data, jnp.broadcast_to(x.indices, (*batch, *x.indices.shape[x.n_batch :]))


def is_inside(indices: Any, shape: Sequence[int]) -> Any:
    """For each stored element, whether its indices lie in the shape; those of padding do not."""
    return (indices < jnp.array(shape, indices.dtype)).all(-1)


def zero_unless(mask: Any, data: Any) -> Any:
    """The stored elements for which `mask` holds, and zeros; `data` has dense axes after those of the mask."""
    return jnp.where(mask.reshape(mask.shape + (1,) * (data.ndim - mask.ndim)), data, jnp.zeros((), data.dtype))


def join_columns(columns: Sequence[Any], shape: Sequence[int], dtype: Any) -> Any:
    """Rows of indices from the index along each axis, of which there may be none: arrays of this shape and dtype."""
    return jnp.stack(columns, -1) if columns else jnp.zeros((*shape, 0), dtype)


def mapped(function: Callable[..., Any], n_batch: int) -> Callable[..., Any]:
    """A function of one matrix, over `n_batch` leading axes."""
    return functools.reduce(lambda f, _: vmap(f), range(n_batch), function)


def bcoo_todense(mat: BCOO) -> Array:
    """A sparse array with all of its elements.

    Args:
      mat: `BCOO`.

    Returns:
      An array of its shape.

    >>> from phlox.experimental.sparse import eye
    >>> bcoo_todense(eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    shape, dense = mat.sparse_shape, mat.shape[mat.n_batch + mat.n_sparse :]

    def one(data: Any, indices: Any) -> Any:
        if not shape:
            return data.sum(0)
        # Padding has indices outside of the shape, which "drop" leaves out.
        return jnp.zeros((*shape, *dense), mat.dtype).at[columns(indices)].add(data, mode="drop")

    return mapped(one, mat.n_batch)(*parts(mat))


def bcoo_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = np.int32
) -> BCOO:
    """The elements of a dense array that are not zero.

    Args:
      mat: array.
      nse: number of elements to store, of each matrix of a batch; None for as many as there are. Under `jit` it must
        be given.
      n_batch: number of leading axes that are a batch.
      n_dense: number of last axes that are stored whole.
      index_dtype: of the indices.

    Returns:
      A `BCOO`.

    >>> bcoo_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]), n_batch=1)
    BCOO(float32[2, 2], nse=1, n_batch=1)
    """
    mat = jnp.asarray(mat)
    n_sparse = mat.ndim - n_batch - n_dense
    if n_sparse < 0 or n_batch < 0 or n_dense < 0:
        raise ArgumentError(f"bcoo_fromdense: n_batch={n_batch} and n_dense={n_dense} for {mat.ndim} axes")
    mask = (mat != 0).any(axis=tuple(range(n_batch + n_sparse, mat.ndim)))
    if nse is None:
        counts = mask.sum(axis=tuple(range(n_batch, n_batch + n_sparse)))
        nse = int(counts.max()) if counts.size else 0
    shape = mat.shape[n_batch : n_batch + n_sparse]

    def one(mask: Any) -> Any:
        if not shape:
            return jnp.zeros((nse, 0), index_dtype)
        # Missing elements get the shape as their indices, which marks them as padding.
        positions = jnp.nonzero(mask, size=nse, fill_value=shape)
        return jnp.stack(positions, -1).astype(index_dtype)

    indices = mapped(one, n_batch)(mask)
    data = extract(indices, mat, n_batch)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def extract(indices: Any, arr: Any, n_batch: int) -> Any:
    """The elements of an array at indices; zero outside."""

    def one(indices: Any, arr: Any) -> Any:
        if not indices.shape[-1]:
            # Without sparse axes all stored elements are added to one place, so only the first gets the value.
            first = jnp.arange(indices.shape[0]).reshape((-1,) + (1,) * arr.ndim) == 0
            return jnp.where(first, arr, jnp.zeros((), arr.dtype))
        return arr.at[columns(indices)].get(mode="fill", fill_value=0)

    return mapped(one, n_batch)(indices, arr)


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array that stand where a sparse array has its elements.

    Args:
      sparr: `BCOO` whose indices are taken.
      arr: array of the same shape.
      assume_unique: whether indices are taken to differ; None for what `sparr` says. If they do not, only the first
        of equal indices gets an element.

    Returns:
      A `BCOO` with the indices of `sparr`.

    >>> from phlox.experimental.sparse import eye
    >>> bcoo_extract(eye(2), jnp.array([[1.0, 2.0], [3.0, 4.0]])).data
    Array([1., 4.], dtype=float32)
    """
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ShapeError(
            f"bcoo_extract: an array of shape {arr.shape} for a sparse one of shape {sparr.shape}",
            shapes=[arr.shape, sparr.shape],
        )
    indices = parts(sparr)[1]
    data = extract(indices, arr, sparr.n_batch)
    if not (sparr.unique_indices if assume_unique is None else assume_unique):
        keep = functions.is_first(indices, sparr.sparse_shape, sparr.n_batch)
        data = zero_unless(keep, data)
    return sparr.tree_unflatten(sparr.tree_flatten()[1], (data, indices))
