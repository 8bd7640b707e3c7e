"""Convolution and transposed convolution layers, for axes in any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phlox import lax, numpy as jnp, random, typeof
from phlox.errors import ArgumentError, ShapeError
from phlox.nn.initializers import Initializer, glorot_normal, normal

from ._checks import features, lengths, output_shape, pair, shape_with_axes
from ._layer import Layer, Params, Shape

Specs = tuple[str, str, str]
SEQUENCES: Specs = ("NHC", "HIO", "NHC")
IMAGES: Specs = ("NHWC", "HWIO", "NHWC")
SMALL = normal(1e-6)


def GeneralConv(
    dimension_numbers: Specs,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = SMALL,
) -> Layer:
    """A convolution (`phlox.lax.conv_general_dilated`) plus a bias for each feature.

    Parameters are ``(W, b)``: a kernel with axes in the order of `dimension_numbers`, and a bias of the rank of the
    outputs, whose axes have length 1 except that of the features.

    Args:
      dimension_numbers: the order of the axes of inputs, kernel and outputs, such as ``("NHWC", "HWIO", "NHWC")``.
      out_chan: the number of features of the outputs.
      filter_shape: the lengths of the kernel along its spatial axes, in their order in the kernel.
      strides: the strides of the kernel, by default 1.
      padding: 'VALID', 'SAME', 'SAME_LOWER', or a pair of numbers for each spatial axis.
      W_init, b_init: initializers, by default Glorot's for the kernel and small normal numbers for the bias.

    Raises:
      ArgumentError: sizes are no positive integers or not one for each spatial axis, or `dimension_numbers` is not of
        this form.
      ShapeError: lengths of `input_shape` other than the batch's are -1, or inputs do not fit the kernel.
      TreeError: the parameters are not a pair ``(W, b)``.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> stax.GeneralConv(("NWC", "WIO", "NWC"), 8, (3,)).init(phlox.random.key(0), (-1, 10, 4))[0]
    (-1, 8, 8)
    """
    name, convolve = f"GeneralConv({out_chan})", lax.conv_general_dilated
    return _convolution(name, convolve, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


def GeneralConvTranspose(
    dimension_numbers: Specs,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = SMALL,
) -> Layer:
    """A transposed convolution (`phlox.lax.conv_transpose`) plus a bias; arguments and errors as for `GeneralConv`.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> stax.GeneralConvTranspose(("NWC", "WIO", "NWC"), 8, (3,), (2,)).init(phlox.random.key(0), (-1, 10, 4))[0]
    (-1, 21, 8)
    """
    name, convolve = f"GeneralConvTranspose({out_chan})", lax.conv_transpose
    return _convolution(name, convolve, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


def Conv(
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = SMALL,
) -> Layer:
    """`GeneralConv` of images (N, H, W, C) with kernels (H, W, I, O).

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> output_shape, (W, b) = stax.Conv(8, (3, 3), padding="SAME").init(phlox.random.key(0), (-1, 28, 28, 1))
    >>> output_shape, W.shape, b.shape
    ((-1, 28, 28, 8), (3, 3, 1, 8), (1, 1, 1, 8))
    """
    name, convolve = f"Conv({out_chan})", lax.conv_general_dilated
    return _convolution(name, convolve, IMAGES, out_chan, filter_shape, strides, padding, W_init, b_init)


def Conv1DTranspose(
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = SMALL,
) -> Layer:
    """`GeneralConvTranspose` of sequences (N, H, C) with kernels (H, I, O).

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> stax.Conv1DTranspose(8, (3,), (2,)).init(phlox.random.key(0), (-1, 10, 4))[0]
    (-1, 21, 8)
    """
    name, convolve = f"Conv1DTranspose({out_chan})", lax.conv_transpose
    return _convolution(name, convolve, SEQUENCES, out_chan, filter_shape, strides, padding, W_init, b_init)


def ConvTranspose(
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = SMALL,
) -> Layer:
    """`GeneralConvTranspose` of images (N, H, W, C) with kernels (H, W, I, O).

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> stax.ConvTranspose(8, (2, 2), (2, 2)).init(phlox.random.key(0), (-1, 7, 7, 4))[0]
    (-1, 14, 14, 8)
    """
    name, convolve = f"ConvTranspose({out_chan})", lax.conv_transpose
    return _convolution(name, convolve, IMAGES, out_chan, filter_shape, strides, padding, W_init, b_init)


def _convolution(
    name: str,
    convolve: Callable[..., Any],
    dimension_numbers: Specs,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: Any,
    W_init: Initializer | None,
    b_init: Initializer,
) -> Layer:
    inputs_spec, kernel_spec, outputs_spec = _checked_specs(name, dimension_numbers)
    batch, channels = inputs_spec.index("N"), inputs_spec.index("C")
    width = features(name, out_chan)
    window = lengths(name, "filter_shape", filter_shape, len(kernel_spec) - 2)
    steps = lengths(name, "strides", strides or (1,) * len(window), len(window))
    make_W = W_init or glorot_normal(kernel_spec.index("I"), kernel_spec.index("O"))

    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
        in_shape = shape_with_axes(name, input_shape, len(inputs_spec), batch)
        space, sizes = iter(window), {"O": width, "I": in_shape[channels]}
        kernel_shape = tuple(sizes[letter] if letter in sizes else next(space) for letter in kernel_spec)

        def outputs(x: Any) -> Any:
            return convolve(x, jnp.ones(kernel_shape, x.dtype), steps, padding, dimension_numbers=dimension_numbers)

        shape = output_shape(outputs, in_shape, batch, outputs_spec.index("N"))
        W_key, b_key = random.split(rng)
        bias_shape = tuple(width if letter == "C" else 1 for letter in outputs_spec)
        return shape, (make_W(W_key, kernel_shape), b_init(b_key, bias_shape))

    def apply(params: Params, inputs: Any, **kwargs: Any) -> Any:
        W, b = pair(name, params, "(W, b)")
        x, kernel = typeof(inputs), typeof(W)
        ranks_fit = len(x.shape) == len(inputs_spec) and len(kernel.shape) == len(kernel_spec)
        if not ranks_fit or x.shape[channels] != kernel.shape[kernel_spec.index("I")]:
            raise ShapeError(
                f"{name}: the inputs, {x.short} with axes {inputs_spec}, do not fit the weights, {kernel.short} with "
                f"axes {kernel_spec}",
                instead="inputs of the shape that init was given",
                shapes=[x.shape, kernel.shape],
            )
        return convolve(inputs, W, steps, padding, dimension_numbers=dimension_numbers) + b

    return Layer(init, apply)


def _checked_specs(name: str, dimension_numbers: Any) -> Specs:
    """`dimension_numbers`; raises unless it has three words with the letters of batch and feature axes."""
    words = dimension_numbers if isinstance(dimension_numbers, tuple | list) else ()
    needed = ("NC", "IO", "NC")
    if (
        len(words) != 3
        or not all(isinstance(word, str) and len(word) == len(words[0]) for word in words)
        or not all(set(letters) <= set(word) for word, letters in zip(words, needed, strict=True))
    ):
        raise ArgumentError(
            f"{name}: dimension_numbers must be three words of one length, with letters N and C for batch and features "
            f"of inputs and outputs, I and O for the features of the kernel, got {dimension_numbers!r}",
            instead="for example ('NHWC', 'HWIO', 'NHWC')",
            dimension_numbers=dimension_numbers,
        )
    inputs_spec, kernel_spec, outputs_spec = words
    return inputs_spec, kernel_spec, outputs_spec
