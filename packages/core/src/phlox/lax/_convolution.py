"""Convolutions of ``phlox.lax``: the general one, and special cases of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._api.devices.out_sharding import OutSharding, lay_out, operands_for
from .._base.docstrings import docs_from
from .._base.errors import OptionError, ShapeError
from .._ir import dtypes
from .._operands.checks import check, check_one, integer, integers, per_axis, type_of
from .._operands.products import chosen_precision
from .._ops.linalg.dot import PrecisionLike, canonical_precision
from .._ops.structure import shape as _shape
from .._ops.windows import conv as _conv
from .._ops.windows.conv import ConvDimensionNumbers as ConvDimensionNumbers
from .._ops.windows.geometry import dilated, padtype_to_pads as padtype_to_pads
from ..typing import Array, ArrayLike, DTypeLike
from ._contraction import dot_general
from ._convolution_shapes import (
    ConvGeneralDilatedDimensionNumbers,
    Ints,
    Padding,
    conv_dimension_numbers,
    transposed_pads,
)
from ._structural import transpose


def _pairs(padding: Any) -> tuple[tuple[int, int], ...]:
    try:
        return tuple((integer("conv", "padding", low), integer("conv", "padding", high)) for low, high in padding)
    except (TypeError, ValueError, AttributeError) as error:
        raise OptionError(
            f"the padding argument must be a word or a pair of numbers for each axis, got {padding!r}",
            instead="a word like 'SAME', or a pair (low, high) for each axis",
        ) from error


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Ints,
    padding: Padding,
    lhs_dilation: Ints | None = None,
    rhs_dilation: Ints | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An N-dimensional convolution as in neural networks, without reversal of the kernel (StableHLO's ``convolution``).

    Args:
      lhs: input, an array with a batch axis, a feature axis and spatial axes, in the order of `dimension_numbers`.
      rhs: kernel, an array of the dtype of `lhs` with an output feature axis, an input feature axis and spatial axes.
      window_strides: stride of the kernel along each spatial axis.
      padding: 'VALID', 'SAME', 'SAME_LOWER' (see `padtype_to_pads`), or a pair (low, high) of numbers of zeros to add
        for each spatial axis; negative numbers remove elements.
      lhs_dilation, rhs_dilation: dilation factors of input and kernel along each spatial axis: factor d inserts d - 1
        zeros between neighbouring elements. None means 1.
      dimension_numbers: axis numbers of the batch, feature and spatial dimensions, in a form that
        `conv_dimension_numbers` takes.
      feature_group_count: number of groups into which the input features are divided; each group is convolved with its
        own part of the kernel. A depthwise convolution has as many groups as input features.
      batch_group_count: number of groups into which the batch is divided; each group is convolved with its own part of
        the kernel. At least one of the two group counts must be 1.
      precision: as for `dot_general`, except that algorithms are not accepted.
      preferred_element_type: dtype in which products are summed, and of the result; None means the dtype of the
        operands.
      out_sharding: a `NamedSharding`, or a `PartitionSpec` of the mesh of the context, for the result; None: derived
        from the operands, or chosen by the compiler.

    Returns:
      An array with its axes in the order of ``out_spec``, of `preferred_element_type` or the dtype of the operands.

    Raises:
      ShapeError: shapes, strides, dilations or group counts are incompatible.
      DtypeError: the dtypes differ, or `preferred_element_type` cannot hold the sums.
      ArgumentError: `dimension_numbers` is invalid.
      OptionError: `padding` or `precision` is unknown, or `padding` is a string and `lhs_dilation` is given.

    >>> from phlox import lax
    >>> x = jnp.arange(4.0).reshape(1, 1, 4)
    >>> lax.conv_general_dilated(x, jnp.ones((1, 1, 2)), (1,), "VALID")
    Array([[[1., 3., 5.]]], dtype=float32)
    """
    lhs, rhs = operands_for(out_sharding, *check("conv_general_dilated", lhs, rhs))
    left, right = type_of(lhs), type_of(rhs)
    numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    options = {"window_strides": window_strides, "lhs_dilation": lhs_dilation, "rhs_dilation": rhs_dilation}
    strides, inner, gaps = (per_axis("conv_general_dilated", *option, left.ndim - 2) for option in options.items())
    if isinstance(padding, str):
        if any(d != 1 for d in inner):
            raise OptionError(
                f"conv_general_dilated: padding={padding!r} with lhs_dilation={inner}",
                instead="pairs (low, high), or conv_transpose",
            )
        window = [dilated(right.shape[i], d) for i, d in zip(numbers.rhs_spec[2:], gaps, strict=True)]
        space = [left.shape[i] for i in numbers.lhs_spec[2:]]
        padding = padtype_to_pads(space, window, strides, padding)
    pair = chosen_precision(precision)
    if pair is not None and type(pair) is not tuple:
        raise OptionError(f"conv_general_dilated: precision={precision}", instead="a lax.Precision")
    out = _conv.conv_general_dilated(
        lhs,
        rhs,
        window_strides=strides,
        padding=_pairs(padding),
        lhs_dilation=inner,
        rhs_dilation=gaps,
        dimension_numbers=numbers,
        feature_group_count=integer("conv_general_dilated", "feature_group_count", feature_group_count),
        batch_group_count=integer("conv_general_dilated", "batch_group_count", batch_group_count),
        precision=pair,
        preferred_element_type=None
        if preferred_element_type is None
        else dtypes.user_dtype(preferred_element_type, "conv_general_dilated"),
    )
    return lay_out("conv_general_dilated", out, out_sharding)


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Ints,
    padding: Padding,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """A convolution without dilation, of arrays with axes in the default order (StableHLO's ``convolution``).

    Args:
      lhs: input, an array of shape (batch, input features, *spatial).
      rhs: kernel, an array of shape (output features, input features, *window), of the dtype of `lhs`.
      window_strides, padding, precision, preferred_element_type: as for `conv_general_dilated`.

    Returns:
      An array of shape (batch, output features, *spatial).

    Raises:
      ShapeError: shapes or strides are incompatible.
      DtypeError: the dtypes differ, or `preferred_element_type` cannot hold the sums.
      OptionError: `padding` or `precision` is unknown.

    >>> from phlox import lax
    >>> lax.conv(jnp.ones((1, 2, 5, 5)), jnp.ones((3, 2, 3, 3)), (1, 1), "SAME").shape
    (1, 3, 5, 5)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


@docs_from(conv)
def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Ints,
    padding: Padding,
    lhs_dilation: Ints | None,
    rhs_dilation: Ints | None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """A convolution of arrays with axes in the default order (StableHLO's ``convolution``).

    Args:
      window_strides, padding, lhs_dilation, rhs_dilation, precision, preferred_element_type: as for
        `conv_general_dilated`.

    Raises:
      ShapeError: shapes, strides or dilations are incompatible.
      OptionError: `padding` or `precision` is unknown, or `padding` is a string and `lhs_dilation` is given.

    >>> from phlox import lax
    >>> x = jnp.ones((1, 1, 4))
    >>> lax.conv_with_general_padding(x, jnp.ones((1, 1, 2)), (1,), [(0, 0)], None, (3,))
    Array([[[2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


_CHANNELS_LAST = {2: ("NC", "IO", "NC"), 3: ("NHC", "HIO", "NHC"), 4: ("NHWC", "HWIO", "NHWC")}
_CHANNELS_LAST[5] = ("NHWDC", "HWDIO", "NHWDC")


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Ints,
    padding: Padding,
    rhs_dilation: Ints | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """A transposed convolution, which makes the spatial axes `strides` times longer (StableHLO's ``convolution``).

    Args:
      lhs: input, an array with a batch axis, a feature axis and spatial axes, in the order of `dimension_numbers`.
      rhs: kernel, an array of the dtype of `lhs` with an output feature axis, an input feature axis and spatial axes.
      strides: upsampling factor for each spatial axis.
      padding: 'SAME' or 'VALID', the padding of the forward convolution; or a pair (low, high) for each spatial axis,
        the padding of the dilated input or, with `use_consistent_padding`, of the forward convolution.
      rhs_dilation: dilation factors of the kernel along each spatial axis; None means 1.
      dimension_numbers: as for `conv_dimension_numbers`, except that None means the order with features last: ("NHWC",
        "HWIO", "NHWC") for two spatial axes.
      transpose_kernel: whether to reverse the kernel's spatial axes and swap its two feature axes, which makes the
        result the transpose of the forward convolution with the same kernel.
      precision, preferred_element_type: as for `conv_general_dilated`.
      use_consistent_padding: whether pairs in `padding` are the padding of the forward convolution.

    Returns:
      An array with its axes in the order of ``out_spec``.

    Raises:
      ShapeError: shapes, strides or dilations are incompatible.
      DtypeError: the dtypes differ, or `preferred_element_type` cannot hold the sums.
      OptionError: `padding` or `precision` is unknown, or there are more than three spatial axes and no
        `dimension_numbers`.

    >>> from phlox import lax
    >>> lax.conv_transpose(jnp.ones((1, 3, 1)), jnp.ones((2, 1, 1)), (2,), "SAME").shape
    (1, 6, 1)
    """
    lhs, rhs = check("conv_transpose", lhs, rhs)
    left, right = type_of(lhs), type_of(rhs)
    if dimension_numbers is None and left.ndim not in _CHANNELS_LAST:
        raise OptionError(f"conv_transpose of {left.short} needs dimension_numbers")
    numbers = conv_dimension_numbers(
        left.shape, right.shape, _CHANNELS_LAST[left.ndim] if dimension_numbers is None else dimension_numbers
    )
    strides = per_axis("conv_transpose", "strides", strides, left.ndim - 2)
    gaps = per_axis("conv_transpose", "rhs_dilation", rhs_dilation, left.ndim - 2)
    if use_consistent_padding or isinstance(padding, str):
        widths = [dilated(right.shape[i], d) for i, d in zip(numbers.rhs_spec[2:], gaps, strict=True)]
        forward = [padding] * len(strides) if isinstance(padding, str) else padding
        if len(forward) != len(strides):
            raise ShapeError(f"conv_transpose: {len(forward)} pairs of padding for {len(strides)} spatial axes")
        padding = [transposed_pads(k, s, p) for k, s, p in zip(widths, strides, forward, strict=True)]
    # The transposed convolution has the spatially reversed kernel, with input and output features exchanged.
    if transpose_kernel:
        rhs = _shape.rev(rhs, dimensions=numbers.rhs_spec[2:])
        order = list(range(right.ndim))
        out, in_axis = numbers.rhs_spec[:2]
        order[out], order[in_axis] = in_axis, out
        rhs = _shape.transpose(rhs, permutation=tuple(order))
    # Strides become dilation of the input, with zeros between its elements; the kernel moves by one element.
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * (left.ndim - 2),
        padding,
        strides,
        gaps,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


# --- patches, and locally connected layers --------------------------------------------------------------


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Ints,
    window_strides: Ints,
    padding: Padding,
    lhs_dilation: Ints | None = None,
    rhs_dilation: Ints | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The patches of the input that a kernel of `filter_shape` is applied to, as features (StableHLO's
    ``convolution``).

    Args:
      lhs: input, an array with a batch axis, a feature axis and spatial axes, in the order of `dimension_numbers`.
      filter_shape: length of the patches along each spatial axis.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision, preferred_element_type: as for
        `conv_general_dilated`.

    Returns:
      An array with its axes in the order of ``out_spec``. Its feature axis holds the elements of all patches: first all
      those of the first input feature, then those of the second, and so on.

    Raises:
      ShapeError: shapes, strides or dilations are incompatible, or `filter_shape` is negative.
      OptionError: `padding` or `precision` is unknown, or `padding` is a string and `lhs_dilation` is given.

    >>> from phlox import lax
    >>> lax.conv_general_dilated_patches(jnp.arange(3.0).reshape(1, 1, 3), (2,), (1,), "VALID")
    Array([[[0., 1.],
            [1., 2.]]], dtype=float32)
    """
    lhs = check_one("conv_general_dilated_patches", lhs)
    aval = type_of(lhs)
    filter_shape = integers("conv_general_dilated_patches", "filter_shape", filter_shape)
    if any(n < 0 for n in filter_shape):
        raise ShapeError(f"conv_general_dilated_patches: filter_shape {filter_shape} has a negative length")
    numbers = conv_dimension_numbers(aval.shape, (1, 1, *filter_shape), dimension_numbers)
    size, features = math.prod(filter_shape), aval.shape[numbers.lhs_spec[1]]
    # One kernel for each position of the window: 1 at this position, else 0.
    kernel = np.tile(np.eye(size, dtype=aval.dtype), (features, 1)).reshape(features * size, 1, *filter_shape)
    kernel = np.moveaxis(kernel, (0, 1), numbers.rhs_spec[:2])
    return conv_general_dilated(
        lhs,
        kernel,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        features,
        # The zeros and ones of the kernel are exact in every precision.
        precision=None if precision is None else (precision, "default"),  # type: ignore[arg-type]
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Ints,
    padding: Padding,
    filter_shape: Ints,
    lhs_dilation: Ints | None = None,
    rhs_dilation: Ints | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
) -> Array:
    """A convolution with a separate kernel at each position of the output, a locally connected layer (StableHLO's
    ``dot_general``).

    Args:
      lhs: input, an array with a batch axis, a feature axis and spatial axes, in the order of `dimension_numbers`.
      rhs: kernels: the spatial axes are those of the output, and the input feature axis holds the elements of a
        flattened patch, in the order of `conv_general_dilated_patches`.
      filter_shape: length of the kernels along each spatial axis.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision: as for `conv_general_dilated`.

    Returns:
      An array with its axes in the order of ``out_spec``.

    Raises:
      ShapeError: shapes, strides or dilations are incompatible.
      OptionError: `padding` or `precision` is unknown, or `padding` is a string and `lhs_dilation` is given.

    >>> from phlox import lax
    >>> kernels = jnp.array([[1.0, 0.0], [0.0, 1.0]]).reshape(1, 2, 2)
    >>> lax.conv_general_dilated_local(jnp.arange(3.0).reshape(1, 1, 3), kernels, (1,), "VALID", (2,))
    Array([[[0., 2.]]], dtype=float32)
    """
    lhs = check_one("conv_general_dilated_local", lhs)
    pair = canonical_precision(precision)
    patches = conv_general_dilated_patches(
        lhs,
        filter_shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        dimension_numbers,
        pair[0] if type(pair) is tuple else precision,
    )
    numbers = conv_dimension_numbers(type_of(lhs).shape, (1, 1, *filter_shape), dimension_numbers)
    out_spec, rhs_spec = numbers.out_spec, numbers.rhs_spec
    # Spatial positions are batch axes of the product, in the order that they have in the output.
    axis_pairs = sorted(zip(out_spec[2:], rhs_spec[2:], strict=True))
    batch = tuple(a for a, _ in axis_pairs), tuple(b for _, b in axis_pairs)
    out = dot_general(patches, rhs, (((out_spec[1],), (rhs_spec[1],)), batch), precision)
    # Move the last two axes of the product to the positions of the output's batch and features.
    rank = type_of(out).ndim
    order = list(range(rank - 2))
    for place, axis in sorted(zip(out_spec[:2], (rank - 2, rank - 1), strict=True)):
        order.insert(place, axis)
    return transpose(out, order)
