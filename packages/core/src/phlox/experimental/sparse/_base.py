"""What all sparse formats have in common. It knows no format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._api.derivatives.remat import checkpoint_name
from ..._trace.trace import Tracer
from ...typing import Array

#: the name that `todense` gives to an array of a function under `sparsify`, which finds its operation by it
DENSE = "phlox.experimental.sparse.todense"


class SparseEfficiencyWarning(UserWarning):
    """An operation on sparse arrays that costs much."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A product that cuSPARSE does not compute; filters of warnings name it, and nothing here raises it."""


class JAXSparse:
    """The base of sparse arrays: `data`, the stored elements, arrays of their indices, and `shape`."""

    data: Any
    shape: tuple[int, ...]
    #: the names of its arrays, and of what describes them beside `shape`
    _arrays: tuple[str, ...] = ()
    _flags: tuple[str, ...] = ()
    __array_priority__ = 100
    __array_ufunc__ = None  # so that a product with a NumPy array is ours
    __hash__ = None  # type: ignore[assignment]

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
        return math.prod(self.shape)

    @property
    def nse(self) -> int:
        """Number of stored elements, of each matrix of a batch."""
        return int(self.data.shape[0])

    @property
    def T(self) -> Any:
        """The array with its axes in reverse order."""
        return self.transpose()

    def transpose(self, axes: Any = None) -> Any:
        """The array with its axes in another order; None reverses them."""
        raise self._lacking("transpose")

    def todense(self) -> Array:
        """The array with all of its elements."""
        raise self._lacking("todense")

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """The sum of the elements."""
        raise self._lacking("sum")

    def block_until_ready(self) -> Any:
        """Waits until its arrays are computed."""
        for part in self.tree_flatten()[0]:
            part.block_until_ready()
        return self

    def tree_flatten(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(arrays, static data)."""
        arrays = tuple(getattr(self, name) for name in self._arrays)
        return arrays, {name: getattr(self, name) for name in ("shape", *self._flags)}

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Any) -> Any:
        """The array of these parts."""
        # Not by the constructor: transformations also put objects that are no arrays into a tree.
        result = object.__new__(cls)
        vars(result).update(zip(cls._arrays, children, strict=True), **aux_data)
        result._fit_batch()
        return result

    def _fit_batch(self) -> None:
        """Sets the shape of an array whose parts `vmap` has given fewer or more batch axes."""

    def _lacking(self, name: str) -> Exception:
        return NotImplementedError(f"{type(self).__name__} has no {name}; instead: BCOO, which has all operations")

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        if not all(hasattr(part, "dtype") for part in self.tree_flatten()[0]):
            # Transformations and error messages make trees of other objects than arrays.
            return f"{type(self).__name__}{self.tree_flatten()[0]}"
        batch, dense = getattr(self, "n_batch", 0), getattr(self, "n_dense", 0)
        if batch < 0:
            return f"{type(self).__name__}(<invalid>)"
        extra = (f", n_batch={batch}" if batch else "") + (f", n_dense={dense}" if dense else "")
        text = f"{type(self).__name__}({self.dtype}{list(self.shape)}, nse={self.nse}{extra})"
        return f"{type(self.data).__name__}[{text}]" if isinstance(self.data, Tracer) else text

    def _unary(self, name: str) -> Any:
        raise self._lacking(name)

    def _binary(self, name: str, other: Any) -> Any:
        raise self._lacking(name)

    def __neg__(self) -> Any:
        return self._unary("__neg__")

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self._unary("__abs__")

    def __add__(self, other: Any) -> Any:
        return self._binary("__add__", other)

    def __radd__(self, other: Any) -> Any:
        return self._binary("__radd__", other)

    def __sub__(self, other: Any) -> Any:
        return self._binary("__sub__", other)

    def __rsub__(self, other: Any) -> Any:
        return self._binary("__rsub__", other)

    def __mul__(self, other: Any) -> Any:
        return self._binary("__mul__", other)

    def __rmul__(self, other: Any) -> Any:
        return self._binary("__rmul__", other)

    def __truediv__(self, other: Any) -> Any:
        return self._binary("__truediv__", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._binary("__rtruediv__", other)

    def __pow__(self, other: Any) -> Any:
        return self._binary("__pow__", other)

    def __matmul__(self, other: Any) -> Any:
        return self._binary("__matmul__", other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._binary("__rmatmul__", other)

    def __getitem__(self, index: Any) -> Any:
        raise self._lacking("__getitem__")


class BatchedSparse(JAXSparse):
    """A sparse array of which the first axes may be a batch (`n_batch`), and the last ones stored whole (`n_dense`)."""

    indices: Any
    _flags = ("indices_sorted", "unique_indices")
    #: the number of axes of `indices` behind those of the batch
    _index_axes = 2

    def __init__(
        self, args: Sequence[Any], *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ):
        """Args:
        args: (data, indices) of a `BCOO`, (data, indices, indptr) of a `BCSR`.
        shape: of the array.
        indices_sorted: whether the indices are known to be in order, of a `BCSR` the columns of each row.
        unique_indices: whether they are known to differ.
        """
        vars(self).update(zip(self._arrays, map(jnp.asarray, args), strict=True))
        self.shape = tuple(map(int, shape))
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        self._check()

    def _check(self) -> None:
        raise NotImplementedError

    @property
    def n_batch(self) -> int:
        """Number of batch axes, which come first."""
        return int(self.indices.ndim) - self._index_axes

    @property
    def n_sparse(self) -> int:
        """Number of axes along which elements have indices."""
        return int(self.indices.shape[-1])

    @property
    def n_dense(self) -> int:
        """Number of axes that are stored whole, which come last."""
        return int(self.data.ndim) - 1 - self.n_batch

    def _fit_batch(self) -> None:
        parts = self.tree_flatten()[0]
        if all(hasattr(part, "ndim") for part in parts):
            batch, rest = self.n_batch, self.n_sparse + self.n_dense
            if batch >= 0 and batch + rest != len(self.shape):
                # The parts have the new axes, or lack one, at any place among the batch axes.
                lengths = np.broadcast_shapes(*(part.shape[:batch] for part in parts))
                self.shape = (*lengths, *self.shape[len(self.shape) - rest :])


def todense(arr: Any) -> Any:
    """A sparse array with all of its elements; other arrays as they are.

    Args:
      arr: array, sparse or not. In a function under `sparsify`, an argument of it may be sparse.

    Returns:
      An array.

    >>> from phlox.experimental.sparse import eye
    >>> todense(eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if isinstance(arr, JAXSparse):
        return arr.todense()
    return checkpoint_name(arr, DENSE) if isinstance(arr, Tracer) else arr


def is_sparse(x: Any) -> bool:
    """Whether `x` is a sparse array."""
    return isinstance(x, JAXSparse)


def columns(indices: Any) -> tuple[Any, ...]:
    """The index along each axis, from rows of indices."""
    return tuple(indices[..., axis] for axis in range(indices.shape[-1]))
