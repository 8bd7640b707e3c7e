"""Dimension numbers of convolutions, and the shapes of their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base.errors import ArgumentError, OptionError, ShapeError
from .._ops.windows.conv import ConvDimensionNumbers
from .._ops.windows.geometry import padtype_to_pads, positions

Ints = Sequence[int]
Padding = str | Sequence[tuple[int, int]]
#: what users may pass as `dimension_numbers`
ConvGeneralDilatedDimensionNumbers = ConvDimensionNumbers | Sequence[str] | None


def _three_words(words: Any) -> bool:
    return isinstance(words, tuple | list) and len(words) == 3 and all(isinstance(word, str) for word in words)


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The axis permutations that dimension strings such as ("NHWC", "HWIO", "NHWC") denote, in the order of a
    `ConvDimensionNumbers` (as ``jax.lax.conv_general_permutations``).

    Args:
      dimension_numbers: three strings, for lhs, rhs and output, with one letter for each axis. In lhs and output, N is
        the batch axis and C the feature axis; in rhs, O is the output feature axis and I the input feature axis. All
        other letters are spatial axes, and are the same in the three strings.

    Returns:
      Three tuples of axis numbers: (N, C, *spatial) of lhs, (O, I, *spatial) of rhs and (N, C, *spatial) of the output,
      with the spatial axes in the order of the rhs string.

    Raises:
      ArgumentError: there are not three strings, a required letter is missing, a letter occurs twice, or the spatial
        letters differ.

    >>> from phlox import lax
    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    pairs = ("NC", "OI", "NC")
    if not _three_words(dimension_numbers):
        raise ArgumentError(
            f"dimension_numbers={dimension_numbers!r} must be three words", instead="('NHWC', 'HWIO', 'NHWC')"
        )
    for i, (word, pair) in enumerate(zip(dimension_numbers, pairs, strict=True)):
        if any(word.count(letter) != 1 for letter in pair):
            raise ArgumentError(f"dimension_numbers[{i}]={word!r} must have the letters {pair[0]} and {pair[1]} once")
        if len(set(word)) != len(word):
            raise ArgumentError(f"dimension_numbers[{i}]={word!r} has a letter twice")
    letters = [set(word) - set(pair) for word, pair in zip(dimension_numbers, pairs, strict=True)]
    if letters.count(letters[0]) != 3:
        raise ArgumentError(f"the words of dimension_numbers={dimension_numbers} name different spatial axes")
    # The kernel's word gives the order of the spatial axes for all three.
    order = [letter for letter in dimension_numbers[1] if letter not in "OI"]
    return tuple(
        tuple(word.index(letter) for letter in (*pair, *order))
        for word, pair in zip(dimension_numbers, pairs, strict=True)
    )


def conv_dimension_numbers(
    lhs_shape: Ints, rhs_shape: Ints, dimension_numbers: ConvGeneralDilatedDimensionNumbers
) -> ConvDimensionNumbers:
    """The `ConvDimensionNumbers` for `dimension_numbers` in any accepted form (as ``jax.lax.conv_dimension_numbers``).

    Args:
      lhs_shape, rhs_shape: shapes of the input and of the kernel.
      dimension_numbers: a `ConvDimensionNumbers`, which is returned unchanged; three strings, see
        `conv_general_permutations`; or None for the default order: batch, feature and spatial axes of the input, and
        output feature, input feature and spatial axes of the kernel.

    Returns:
      A `ConvDimensionNumbers`.

    Raises:
      ArgumentError: `dimension_numbers` has none of these forms.
      ShapeError: the two shapes, or a string and its shape, have different numbers of axes.

    >>> from phlox import lax
    >>> lax.conv_dimension_numbers((1, 2, 5), (3, 2, 2), None)
    ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    rank = len(lhs_shape)
    if rank != len(rhs_shape):
        raise ShapeError(
            f"convolution of an array of {rank} axes with a kernel of {len(rhs_shape)}", shapes=[lhs_shape, rhs_shape]
        )
    if dimension_numbers is None:
        in_order = tuple(range(rank))
        return ConvDimensionNumbers(in_order, in_order, in_order)
    words = dimension_numbers
    if not _three_words(words):
        raise ArgumentError(f"dimension_numbers={words!r}", instead="three words, such as ('NHWC', 'HWIO', 'NHWC')")
    for i, word in enumerate(words):
        if len(word) != rank:
            raise ShapeError(f"dimension_numbers[{i}]={word!r} must have {rank} letters, one for each axis")
    return ConvDimensionNumbers(*conv_general_permutations(words))


def conv_shape_tuple(
    lhs_shape: Ints, rhs_shape: Ints, strides: Ints, pads: Padding, batch_group_count: int = 1
) -> tuple[int, ...]:
    """The shape of the result of a convolution, with axes in the default order (as ``jax.lax.conv_shape_tuple``).

    Args:
      lhs_shape: shape of the input: (batch, input features, *spatial).
      rhs_shape: shape of the kernel: (output features, input features, *window).
      strides: stride of the kernel along each spatial axis.
      pads: 'VALID', 'SAME', 'SAME_LOWER', or a pair (low, high) for each spatial axis.
      batch_group_count: number of groups into which the batch is divided.

    Returns:
      The tuple (batch, output features, *spatial).

    Raises:
      ShapeError: `pads` does not have one pair for each spatial axis, or removes more elements than there are.
      PaddingError: `pads` is unknown.

    >>> from phlox import lax
    >>> lax.conv_shape_tuple((8, 3, 10), (4, 3, 3), (2,), "VALID")
    (8, 4, 4)
    """
    space, window = lhs_shape[2:], rhs_shape[2:]
    if isinstance(pads, str):
        _check_counts(len(space), strides)
        pads = padtype_to_pads(space, window, strides, pads)
    _check_counts(len(space), strides, pads)
    padded = [n + low + high for n, (low, high) in zip(space, pads, strict=True)]
    if any(n < 0 for n in padded):
        raise ShapeError(f"padding {pads} takes away more than the spatial axes {tuple(space)} have")
    window_positions = (positions(n, k, s) for n, k, s in zip(padded, window, strides, strict=True))
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *window_positions)


def _check_counts(count: int, strides: Ints, pads: Sequence[Any] = ()) -> None:
    """Raises `ShapeError` unless there is one stride, and one pair of padding if any, for each spatial axis."""
    if len(strides) != count:
        raise ShapeError(f"{len(strides)} strides for {count} spatial axes")
    if pads and len(pads) != count:
        raise ShapeError(f"{len(pads)} pairs of padding for {count} spatial axes")


def _permuted(shape: Ints, axes: Ints) -> tuple[int, ...]:
    return tuple(shape[i] for i in axes)


def _unpermuted(shape: Ints, axes: Ints) -> tuple[int, ...]:
    return tuple(shape[list(axes).index(i)] for i in range(len(axes)))


def conv_general_shape_tuple(
    lhs_shape: Ints, rhs_shape: Ints, window_strides: Ints, padding: Padding, dimension_numbers: Sequence[str]
) -> tuple[int, ...]:
    """The shape of the result of a convolution, with axes in any order (as ``jax.lax.conv_general_shape_tuple``).

    Args:
      lhs_shape, rhs_shape: shapes of the input and of the kernel.
      window_strides: stride of the kernel along each spatial axis.
      padding: 'VALID', 'SAME', 'SAME_LOWER', or a pair (low, high) for each spatial axis.
      dimension_numbers: three strings, see `conv_general_permutations`.

    Returns:
      The shape of the result, a tuple, with axes in the order of the third string.

    Raises:
      ArgumentError: `dimension_numbers` is invalid.
      ShapeError: `padding` does not have one pair for each spatial axis.
      PaddingError: `padding` is unknown.

    >>> from phlox import lax
    >>> lax.conv_general_shape_tuple((8, 10, 3), (3, 3, 4), (1,), "SAME", ("NHC", "HIO", "NHC"))
    (8, 10, 4)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    out_shape = conv_shape_tuple(_permuted(lhs_shape, lhs), _permuted(rhs_shape, rhs), window_strides, padding)
    return _unpermuted(out_shape, out)


def transposed_pads(width: int, stride: int, padding: Any) -> tuple[int, int]:
    # The padding of the input with which the shapes are those of a forward convolution read backwards. (The rounding of
    # "SAME" is JAX's.)
    """The padding of a transposed convolution whose forward convolution has `padding`."""
    if padding == "SAME":
        total = width + stride - 2
        low = width - 1 if stride > width - 1 else -(-total // 2)
    elif padding == "VALID":
        total = width + stride - 2 + max(width - stride, 0)
        low = width - 1
    elif isinstance(padding, tuple):
        low = width - padding[0] - 1
        total = low + width - padding[1] - 1
    else:
        raise OptionError(f"conv_transpose: padding={padding!r}", instead="'SAME', 'VALID', or pairs (low, high)")
    return low, total - low


def conv_transpose_shape_tuple(
    lhs_shape: Ints, rhs_shape: Ints, window_strides: Ints, padding: Padding, dimension_numbers: Sequence[str]
) -> tuple[int, ...]:
    """The shape of the result of `conv_transpose`, with axes in any order (as ``jax.lax.conv_transpose_shape_tuple``).

    Args:
      lhs_shape, rhs_shape: shapes of the input and of the kernel.
      window_strides: upsampling factor for each spatial axis.
      padding: 'VALID' or 'SAME', the padding of the forward convolution; or a pair (low, high) for each spatial axis,
        the padding of the dilated input.
      dimension_numbers: three strings, see `conv_general_permutations`.

    Returns:
      The shape of the result, a tuple, with axes in the order of the third string.

    Raises:
      ArgumentError: `dimension_numbers` is invalid.
      OptionError: `padding` is unknown.

    >>> from phlox import lax
    >>> lax.conv_transpose_shape_tuple((8, 10, 3), (3, 4, 3), (2,), "SAME", ("NHC", "HOI", "NHC"))
    (8, 20, 4)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    operand_shape, kernel = _permuted(lhs_shape, lhs), _permuted(rhs_shape, rhs)
    _check_counts(len(kernel) - 2, window_strides, () if isinstance(padding, str) else padding)
    if isinstance(padding, str):
        padding = [transposed_pads(k, s, padding) for k, s in zip(kernel[2:], window_strides, strict=True)]
    space = (
        (n - 1) * s - k + 2 + low + high
        for n, k, s, (low, high) in zip(operand_shape[2:], kernel[2:], window_strides, padding, strict=True)
    )
    return _unpermuted((operand_shape[0], kernel[0], *space), out)
