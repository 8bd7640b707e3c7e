"""Matrix products of block-scaled operands (narrow floats with a scale for each block), given or quantized here.

Three formats: mxfp8 and mxfp4, whose scales are powers of two (float8_e8m0fnu, one for 32 numbers of float8_e4m3fn or
float4_e2m1fn); and nvfp4, whose scales are narrow floats (float8_e4m3fn, one for 16 of float4_e2m1fn), with one global
scale.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import lax, numpy as jnp
from .._api.derivatives.custom import custom_vjp
from .._base.errors import ArgumentError, DtypeError, OptionError, ShapeError
from .._base.source import warn
from .._ir import dtypes
from .._operands.checks import check, type_of
from ..typing import Array, ArrayLike, DTypeLike

_BATCHED = (((2,), (2,)), ((0,), (0,)))


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """The products of stacked matrices ``lhs @ rhs.T``, whose rows are stored in blocks that have a scale each.

    Args:
      lhs, rhs: of shapes (batch, m, k) and (batch, n, k).
      lhs_scales, rhs_scales: of shapes (batch, m, blocks) and (batch, n, blocks); each is multiplied with the
        ``k // blocks`` elements of its block.
      preferred_element_type: the dtype of the result. It is computed in float32.

    Returns:
      An array of shape (batch, m, n), of dtype `preferred_element_type`.

    Raises:
      ShapeError: shapes do not fit.

    >>> a, b = jnp.array([[[1, 2, 3]]]), jnp.array([[[4, 5, 6]]])
    >>> half = jnp.full((1, 1, 1), 0.5)
    >>> scaled_matmul(a, b, half, half)
    Array([[[8.]]], dtype=float32)
    """
    factors = check("scaled_matmul", lhs, rhs, lhs_scales, rhs_scales)
    avals = [type_of(x) for x in factors]
    shown = ", ".join(aval.short for aval in avals)
    if any(aval.ndim != 3 for aval in avals):
        raise ShapeError(f"scaled_matmul: takes arrays with 3 axes, got {shown}", shapes=[a.shape for a in avals])
    a, b, sa, sb = (aval.shape for aval in avals)
    fits = a[::2] == b[::2] and sa[::2] == sb[::2] and sa[:2] == a[:2] and sb[:2] == b[:2]
    if not fits or not sa[2] or a[2] % sa[2]:
        raise ShapeError(f"scaled_matmul: shapes do not fit: {shown}", shapes=[a, b, sa, sb])
    out_dtype = dtypes.user_dtype(preferred_element_type, "scaled_matmul")
    scaled = [
        jnp.astype(x, dtypes.float32) * jnp.repeat(jnp.astype(scale, dtypes.float32), a[2] // sa[2], axis=-1)
        for x, scale in zip(factors[:2], factors[2:], strict=True)
    ]
    return jnp.astype(lax.dot_general(scaled[0], scaled[1], _BATCHED, preferred_element_type=dtypes.float32), out_dtype)


@dataclasses.dataclass(slots=True)
class BlockScaleConfig:
    """How one operand is quantized; made by `get_scaled_dot_general_config`.

    Attributes:
      mode: "mxfp8", "mxfp4" or "nvfp4".
      block_size: how many numbers share a scale.
      data_type, scale_type: the dtypes of numbers and scales.
      global_scale: what all numbers are divided by first, for nvfp4; None for the others.
      infer_only: kept for those who read it; it changes nothing.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: ArrayLike | None = None) -> BlockScaleConfig:
    """The settings of a format of quantization, for `scaled_dot_general`.

    Args:
      mode: 'nvfp4' (blocks of 16 numbers in float4_e2m1fn), 'mxfp8' (blocks of 32 in float8_e4m3fn) or 'mxfp4' (blocks
        of 32 in float4_e2m1fn).
      global_scale: for 'nvfp4' what all numbers are divided by first, a number or an array of shape (1,), 1 by default;
        without meaning for 'mxfp8'.

    Returns:
      A `BlockScaleConfig`, with the attributes `mode`, `block_size`, `data_type`, `scale_type` and `global_scale`.

    Raises:
      OptionError: there is no such `mode`, or it is 'mxfp4' and has a `global_scale`.

    >>> get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "nvfp4":
        scale = jnp.ones((1,), dtypes.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, jnp.float4_e2m1fn.dtype.type, jnp.float8_e4m3fn.dtype.type, scale, False)
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, jnp.float8_e4m3fn.dtype.type, jnp.float8_e8m0fnu.dtype.type, None, False)
    if mode == "mxfp4":
        if global_scale is not None:
            raise OptionError("get_scaled_dot_general_config: mxfp4 has no global_scale", instead="global_scale=None")
        return BlockScaleConfig(mode, 32, jnp.float4_e2m1fn.dtype.type, jnp.float8_e8m0fnu.dtype.type, None, False)
    raise OptionError(f"get_scaled_dot_general_config: mode={mode!r}", instead="'nvfp4', 'mxfp8' or 'mxfp4'")


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    preferred_element_type: DTypeLike | None = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Array:
    """`lax.dot_general` of operands that are quantized first, and so are cotangents in the derivative.

    The derivative is that of the product without quantization. With nvfp4 cotangents are not quantized; they are zero
    for elements that quantization clipped.

    Args:
      lhs, rhs: arrays of floats.
      dimension_numbers: ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)), as for `lax.dot_general`.
      preferred_element_type: the dtype of the result: float32, bfloat16 or float16.
      configs: how to quantize `lhs`, `rhs` and the cotangent, by `get_scaled_dot_general_config`. Without them nothing
        is quantized.
      implementation: deprecated, has no effect.

    Returns:
      An array of dtype `preferred_element_type`: the batch axes, then the other axes of `lhs`, then those of `rhs`.

    Raises:
      DtypeError: there are `configs` and `preferred_element_type` is another dtype.
      ArgumentError: `configs` are not three.
      ShapeError: shapes do not fit, or blocks do not divide the number of contracted elements.

    >>> configs = [get_scaled_dot_general_config("mxfp8")] * 3
    >>> x = jnp.ones((2, 32))
    >>> scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs)
    Array([[32., 32.],
           [32., 32.]], dtype=float32)
    """
    if implementation is not None:
        warn("scaled_dot_general: implementation= has no effect", DeprecationWarning)
    if configs is None:
        return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)
    lhs, rhs = map(jnp.asarray, check("scaled_dot_general", lhs, rhs))
    out_dtype = None if preferred_element_type is None else np.dtype(preferred_element_type)
    if out_dtype not in (dtypes.float32, dtypes.bfloat16, dtypes.float16):
        raise DtypeError(
            f"scaled_dot_general: preferred_element_type={out_dtype}", instead="float32, bfloat16 or float16"
        )
    if len(configs) != 3:
        raise ArgumentError(f"scaled_dot_general: {len(configs)} configs", instead="three: lhs, rhs, cotangent")
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    left, lhs_free = _as_matrices(lhs, lhs_contract, lhs_batch)
    right, rhs_free = _as_matrices(rhs, rhs_contract, rhs_batch)
    shape = [*[lhs.shape[i] for i in lhs_batch], *[lhs.shape[i] for i in lhs_free], *[rhs.shape[i] for i in rhs_free]]
    return _quantized_product(left, right, out_dtype, configs).reshape(shape)


def _as_matrices(x: Any, contract: Sequence[int], batch: Sequence[int]) -> tuple[Any, list[int]]:
    """`x` with its axes merged to (batch, free, contracted), and its free axes."""
    free = [i for i in range(x.ndim) if i not in (*contract, *batch)]
    groups = (batch, free, contract)
    moved = jnp.transpose(x, [int(i) for group in groups for i in group])
    return moved.reshape([math.prod(x.shape[i] for i in group) for group in groups]), free


def _quantized_product(lhs: Any, rhs: Any, out_dtype: Any, configs: Sequence[BlockScaleConfig]) -> Any:
    of_lhs, of_rhs, of_cotangent = configs
    fine = of_lhs.mode == "nvfp4"

    def product(a: Any, b: Any, of_a: BlockScaleConfig, of_b: BlockScaleConfig, dtype: Any) -> Any:
        (a, a_scales), (b, b_scales) = _quantize(a, of_a), _quantize(b, of_b)
        return scaled_matmul(a, b, a_scales, b_scales, dtype)

    @custom_vjp
    def dot(lhs: Any, rhs: Any) -> Any:
        if not fine:
            return product(lhs, rhs, of_lhs, of_rhs, out_dtype)
        out = product(lhs, rhs, of_lhs, of_rhs, dtypes.float32)
        return (out * (of_lhs.global_scale * of_rhs.global_scale)).astype(out_dtype)

    def forward(lhs: Any, rhs: Any) -> Any:
        return dot(lhs, rhs), (lhs, rhs)

    def backward(saved: Any, g: Any) -> Any:
        lhs, rhs = saved
        # The product is a bᵀ, so that the cotangents are g b and gᵀ a. Each is again a product over the last axes.
        turned = jnp.swapaxes(g, 1, 2)
        if not fine:
            to_lhs = product(g, jnp.swapaxes(rhs, 1, 2), of_cotangent, of_rhs, out_dtype)
            to_rhs = product(turned, jnp.swapaxes(lhs, 1, 2), of_cotangent, of_lhs, out_dtype)
        else:
            to_lhs = jnp.matmul(g, rhs, preferred_element_type=out_dtype)
            to_rhs = jnp.matmul(turned, lhs, preferred_element_type=out_dtype)
            to_lhs, to_rhs = _unclipped(lhs, to_lhs, of_lhs), _unclipped(rhs, to_rhs, of_rhs)
        return to_lhs.astype(lhs.dtype), to_rhs.astype(rhs.dtype)

    dot.defvjp(forward, backward)
    return dot(lhs, rhs)


def _largest(dtype: Any, like: Any) -> Any:
    return dtypes.finfo(np.dtype(dtype)).max.astype(like)


def _unclipped(x: Any, cotangent: Any, config: BlockScaleConfig) -> Any:
    """The cotangent of `x`, which is zero where quantization clipped."""
    bound = config.global_scale * _largest(config.data_type, x.dtype) * _largest(config.scale_type, x.dtype)
    return jnp.where(jnp.abs(x) <= bound, cotangent, 0)


def _quantize(x: Any, config: BlockScaleConfig) -> tuple[Any, Any]:
    """`x` of shape (batch, rows, k) quantized to the format's dtype, and the scales of its blocks."""
    *front, length = x.shape
    if length < config.block_size or length % config.block_size:
        raise ShapeError(f"scaled_dot_general: {length} contracted elements in blocks of {config.block_size}")
    blocks = x.reshape(*front, length // config.block_size, config.block_size)
    top = _largest(config.data_type, x.dtype)
    if config.mode == "nvfp4":
        blocks = blocks / config.global_scale
        scales = jnp.clip(_needed(blocks, top), 0, _largest(config.scale_type, x.dtype))
        # The barrier keeps XLA from removing the conversion to the scale's dtype and back, which rounds.
        stored = lax.optimization_barrier(scales.astype(config.scale_type))
        by = stored.astype(dtypes.float32)
    else:
        exponents = _exponents_above(_needed(blocks, top))
        stored = lax.bitcast_convert_type(exponents, config.scale_type)
        by = _powers(exponents, x.dtype)
    numbers = jnp.clip(blocks / by, -top, top).astype(config.data_type)
    return numbers.reshape(x.shape), stored[..., 0]


def _needed(blocks: Any, top: Any) -> Any:
    """The scale of each block, from its largest absolute value."""
    return jnp.max(jnp.abs(blocks), axis=-1, keepdims=True) / top


def _exponents_above(x: Any) -> Any:
    """The exponents, as float8_e8m0fnu stores them, of the least powers of two that are at least `x`."""
    bits = lax.bitcast_convert_type(x.astype(dtypes.float32), dtypes.uint32)
    exponent, fraction = bits >> 23, bits & 0x7FFFFF
    # Not rounded up: numbers less than the smallest power, 2**-127 (a subnormal number), and the largest exponent.
    up = (fraction > 0) & (exponent != 0xFE) & ~((exponent == 0) & (fraction <= 0x400000))
    return jnp.where(up, exponent + 1, exponent).astype(dtypes.uint8)


def _powers(exponents: Any, dtype: Any) -> Any:
    scales = lax.bitcast_convert_type(exponents.astype(dtypes.uint32) << 23, dtypes.float32)
    # The exponent 0 stands for 2**-127, but as bits of a float it is 0.0.
    least = 2.0**-15 if dtype == dtypes.float16 else 2.0**-127
    return jnp.where(scales == 0, np.float32(least), scales).astype(dtype)
