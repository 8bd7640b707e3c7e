"""Convolution of `BCOO` vectors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ... import lax, numpy as jnp
from ..._api.jit.programs import ShapeDtypeStruct, eval_shape
from ..._base.errors import ShapeError
from ...typing import DTypeLike
from ._bcoo import BCOO, is_inside, zero_unless
from ._layouts import bcoo_update_layout


def _stored(x: Any) -> tuple[Any, Any]:
    """The elements of the one vector of `x`, of shape [1, 1, n], and their positions. Those of padding are zero."""
    if not isinstance(x, BCOO):
        return x[0, 0], jnp.arange(x.shape[2])
    x = bcoo_update_layout(x, n_batch=0, n_dense=0, on_inefficient=None)
    return zero_unless(is_inside(x.indices, x.shape), x.data), x.indices[:, 2]


def bcoo_conv_general_dilated(
    lhs: Any,
    rhs: Any,
    *,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> BCOO:
    """The convolution of a vector with a kernel, one or both of them sparse.

    Args:
      lhs, rhs: `BCOO` or dense arrays of shape [1, 1, n].
      window_strides, padding, lhs_dilation, rhs_dilation: as of `phlox.lax.conv_general_dilated`.
      dimension_numbers, feature_group_count, batch_group_count, precision: the same.
      preferred_element_type, out_sharding: the same.

    Returns:
      A `BCOO` of shape [1, 1, m] with an element for each pair of stored elements, whose indices may be equal.

    Raises:
      ShapeError: an operand has another shape.

    >>> from phlox.experimental.sparse import BCOO
    >>> x = BCOO.fromdense(jnp.array([[[0.0, 2.0, 0.0, 3.0]]]))
    >>> bcoo_conv_general_dilated(x, jnp.ones((1, 1, 2)), window_strides=(1,), padding="VALID").todense()
    Array([[[2., 2., 3.]]], dtype=float32)
    """
    lhs, rhs = (x if isinstance(x, BCOO) else jnp.asarray(x) for x in (lhs, rhs))
    if lhs.ndim != 3 or lhs.shape[:2] != (1, 1) or rhs.ndim != 3 or rhs.shape[:2] != (1, 1):
        raise ShapeError(
            f"bcoo_conv_general_dilated: shapes {lhs.shape} and {rhs.shape}",
            instead="one vector and one kernel: [1, 1, n]",
        )
    convolve = functools.partial(
        lax.conv_general_dilated,
        window_strides=window_strides,
        padding=padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=dimension_numbers,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )
    out = eval_shape(convolve, *(ShapeDtypeStruct(x.shape, x.dtype) for x in (lhs, rhs)))
    stride = window_strides[0]
    inner, gap = (1 if dilation is None else dilation[0] for dilation in (lhs_dilation, rhs_dilation))
    if isinstance(padding, str):
        padding = lax.padtype_to_pads(lhs.shape[2:], [gap * (rhs.shape[2] - 1) + 1], window_strides, padding)
    (data, positions), (kernel, offsets) = _stored(lhs), _stored(rhs)
    first = positions[:, None] * inner + padding[0][0] - offsets * gap
    reached = (first >= 0) & (first % stride == 0) & (first // stride < out.shape[2])
    columns = jnp.where(reached, first // stride, out.shape[2]).reshape(-1, 1)
    products = zero_unless(reached, data[:, None].astype(out.dtype) * kernel.astype(out.dtype)).reshape(-1)
    return BCOO((products, jnp.pad(columns, ((0, 0), (2, 0)))), shape=out.shape)
