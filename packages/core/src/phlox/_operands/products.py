"""Products of two operands: the precision to use, and `dot_general` with the result dtype that users expect."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base import config
from .._ir import dtypes
from .._ops.linalg.dot import canonical_precision, dot_general
from .checks import type_of
from .integer_overflow import check_range
from .promotion import to_dtype


def chosen_precision(precision: Any) -> Any:
    """`precision`, or the configured `default_matmul_precision` for None."""
    return canonical_precision(config.current().default_matmul_precision if precision is None else precision)


def _exact_product(contracting: Any, batch: Any, a: np.ndarray, b: np.ndarray) -> Any:
    """`dot_general` by NumPy, also for arrays of Python's integers."""
    left, right = list(range(a.ndim)), list(range(a.ndim, a.ndim + b.ndim))
    for i, j in [*zip(*contracting, strict=True), *zip(*batch, strict=True)]:
        right[j] = left[i]
    shared = [left[i] for i in batch[0]]
    summed = [left[i] for i in contracting[0]]
    free = [n for n in (*left, *right) if n not in shared and n not in summed]
    return np.einsum(a, left, b, right, [*shared, *free])


def contract(
    a: Any,
    b: Any,
    contracting: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """`dot_general` of two promoted arrays. The result has their type, or `preferred_element_type`."""
    aval = type_of(a)
    dtype = aval.dtype if preferred_element_type is None else preferred_element_type
    weak = preferred_element_type is None and aval.weak_type and type_of(b).weak_type
    if dtypes.kind(dtype) in "iu":
        check_range("a product of arrays", functools.partial(_exact_product, contracting, batch), dtype, a, b)
    out = dot_general(
        a,
        b,
        dimension_numbers=(tuple(map(tuple, contracting)), tuple(map(tuple, batch))),
        precision=chosen_precision(precision),
        preferred_element_type=dtype,
    )
    return to_dtype(out, dtype, weak)
