"""Sparse arrays from shapes: empty ones, identity matrices, random ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import numpy as jnp, random
from ..._base.errors import OptionError
from ...typing import DTypeLike
from ._base import JAXSparse
from ._bcoo import BCOO, mapped
from ._layouts import bcoo_sort_indices
from ._plain import COO, CSC, CSR
from ._rows import BCSR

_FORMATS: dict[str, Any] = {"bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}


def _format(name: str) -> Any:
    if name not in _FORMATS:
        raise OptionError(f"sparse_format={name!r}", instead=f"one of {sorted(_FORMATS)}")
    return _FORMATS[name]


def empty(
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """A sparse array without stored elements.

    Args:
      shape: lengths of its axes.
      dtype: of the elements; None for the default float.
      index_dtype: of the indices.
      sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
      **kwds: `n_batch`, `n_dense` and `nse` of a "bcoo".

    Returns:
      A sparse array.

    >>> empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    result: JAXSparse = _format(sparse_format)._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)
    return result


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """A sparse matrix with ones on a diagonal.

    Args:
      N: number of rows.
      M: number of columns; None for `N`.
      k: which diagonal; above the main one if positive.
      dtype: of the elements; None for the default float.
      index_dtype: of the indices.
      sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
      **kwds: `n_batch` and `n_dense` of a "bcoo".

    Returns:
      A sparse matrix.

    >>> eye(3)
    BCOO(float32[3, 3], nse=3)
    """
    kind, width = _format(sparse_format), N if M is None else M
    if kind is BCSR:
        return BCSR.from_bcoo(BCOO._eye(N, width, k, dtype=dtype, index_dtype=index_dtype, **kwds))
    result: JAXSparse = kind._eye(N, width, k, dtype=dtype, index_dtype=index_dtype, **kwds)
    return result


def random_bcoo(
    key: Any,
    shape: Sequence[int],
    *,
    dtype: DTypeLike = np.float64,
    indices_dtype: DTypeLike | None = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Any] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """A sparse array with random elements at random indices.

    Args:
      key: random key.
      shape: of the array.
      dtype: of the elements.
      indices_dtype: of the indices; None for int32.
      nse: number of stored elements, of each matrix of a batch; below 1 the part of all elements.
      n_batch: number of batch axes.
      n_dense: number of dense axes.
      unique_indices: whether indices differ.
      sorted_indices: whether they are in order.
      generator: ``generator(key, shape, dtype)`` draws the elements.
      **kwds: more arguments of `generator`.

    Returns:
      A `BCOO`.

    >>> random_bcoo(phlox.random.key(0), (4, 5), nse=3, dtype="float32")
    BCOO(float32[4, 5], nse=3)
    """
    shape = tuple(map(int, shape))
    n_sparse = len(shape) - n_batch - n_dense
    if n_sparse < 0 or n_batch < 0 or n_dense < 0:
        raise OptionError(f"random_bcoo: n_batch={n_batch} and n_dense={n_dense} for {len(shape)} axes")
    batch, sparse, dense = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
    size = int(np.prod(sparse))
    count = int(np.ceil(nse * size)) if 0 <= nse < 1 else int(nse)
    kind = indices_dtype or jnp.int32
    keys = random.split(key, int(np.prod(batch)) + 1)  # the elements, then the indices of each matrix
    data = generator(keys[0], shape=(*batch, count, *dense), dtype=dtype, **kwds)

    def draw_indices(key: Any) -> Any:
        if not sparse:
            return jnp.zeros((count, 0), kind)
        flat = random.choice(key, size, (count,), replace=not unique_indices)
        return jnp.stack(jnp.unravel_index(flat, sparse), -1).astype(kind)

    indices = mapped(draw_indices, 1)(keys[1:]).reshape(*batch, count, n_sparse)
    result = BCOO((data, indices), shape=shape, unique_indices=unique_indices)
    return bcoo_sort_indices(result) if sorted_indices else result
