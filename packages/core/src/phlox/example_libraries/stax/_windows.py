"""Layers over the axes of space: convolutions, pooling, and normalization over the batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import lax, nn, numpy as jnp, random
from ..._api.stage_out import eval_shape
from ...nn.initializers import Initializer, glorot_normal, normal, ones, zeros
from ._layer import Layer, Params, Shape, checked_shape

Specs = tuple[str, str, str]


def _shape_of(function: Callable[[Any], Any], input_shape: Shape, batch: int) -> Shape:
    """The shape of what `function` makes of an array, whose length along the axis `batch` may be unknown, -1."""
    known = [1 if axis == batch else n for axis, n in enumerate(input_shape)]
    shape = list(eval_shape(function, jnp.empty(known, jnp.float32)).shape)
    shape[batch] = input_shape[batch]
    return tuple(shape)


def _convolution(
    convolve: Callable[..., Any],
    dimension_numbers: Specs,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: Any,
    W_init: Initializer | None,
    b_init: Initializer,
) -> Layer:
    inputs_spec, kernel_spec, outputs_spec = dimension_numbers
    steps = strides or (1,) * len(filter_shape)
    make_W = W_init or glorot_normal(kernel_spec.index("I"), kernel_spec.index("O"))

    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
        input_shape = checked_shape("a convolution", input_shape)
        lengths = iter(filter_shape)
        features = {"O": out_chan, "I": input_shape[inputs_spec.index("C")]}
        kernel_shape = [features[letter] if letter in features else next(lengths) for letter in kernel_spec]

        def outputs(x: Any) -> Any:
            return convolve(x, jnp.ones(kernel_shape, x.dtype), steps, padding, dimension_numbers=dimension_numbers)

        shape = _shape_of(outputs, input_shape, inputs_spec.index("N"))
        W_key, b_key = random.split(rng)
        bias_shape = [out_chan if letter == "C" else 1 for letter in outputs_spec]
        return shape, (make_W(W_key, kernel_shape), b_init(b_key, bias_shape))

    def apply(params: Params, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return convolve(inputs, W, steps, padding, dimension_numbers=dimension_numbers) + b

    return Layer(init, apply)


def GeneralConv(
    dimension_numbers: Specs,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = normal(1e-6),  # noqa: B008
) -> Layer:
    """A convolution (`phlox.lax.conv_general_dilated`) plus a bias for each feature; parameters are ``(W, b)``.

    Args:
      dimension_numbers: which axes mean what, as ``("NHWC", "HWIO", "NHWC")``.
      out_chan: how many features the outputs have.
      filter_shape: the lengths of the kernel.
      strides: how far it moves, by default 1.
      padding: 'VALID', 'SAME', or pairs of numbers.
      W_init, b_init: initializers.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> stax.GeneralConv(("NWC", "WIO", "NWC"), 8, (3,)).init(phlox.random.key(0), (-1, 10, 4))[0]
    (-1, 8, 8)
    """
    return _convolution(
        lax.conv_general_dilated, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init
    )


def GeneralConvTranspose(
    dimension_numbers: Specs,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = normal(1e-6),  # noqa: B008
) -> Layer:
    """A transposed convolution (`phlox.lax.conv_transpose`) plus a bias; arguments as for `GeneralConv`.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> stax.GeneralConvTranspose(("NWC", "WIO", "NWC"), 8, (3,), (2,)).init(phlox.random.key(0), (-1, 10, 4))[0]
    (-1, 21, 8)
    """
    return _convolution(lax.conv_transpose, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


#: `GeneralConv` of images (N, H, W, C) with kernels (H, W, I, O)
Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
#: `GeneralConvTranspose` of sequences (N, H, C) with kernels (H, I, O)
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
#: `GeneralConvTranspose` of images (N, H, W, C) with kernels (H, W, I, O)
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Initializer = zeros,
    gamma_init: Initializer = ones,
) -> Layer:
    """Mean 0 and deviation 1 over `axis`, always those of the batch at hand, then times gamma, plus beta.

    Args:
      axis: the axes over which statistics are taken.
      epsilon: added to the variance.
      center, scale: whether there is a beta, a gamma; parameters are ``(beta, gamma)``, () for one that is not there.
      beta_init, gamma_init: initializers.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> init, apply = stax.BatchNorm(axis=0)
    >>> shape, params = init(phlox.random.key(0), (-1, 3))
    >>> apply(params, phlox.numpy.ones((5, 3))).shape
    (5, 3)
    """
    axes = (axis,) if np.isscalar(axis) else tuple(axis)  # type: ignore[arg-type]

    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        beta_key, gamma_key = random.split(rng)
        return input_shape, (
            beta_init(beta_key, shape) if center else (),
            gamma_init(gamma_key, shape) if scale else (),
        )

    def apply(params: Params, inputs: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        spread = tuple(None if i in axes else slice(None) for i in range(jnp.ndim(inputs)))
        y = nn.standardize(inputs, axes, epsilon=epsilon)
        y = gamma[spread] * y if scale else y
        return y + beta[spread] if center else y

    return Layer(init, apply)


def _pool(
    reduce: Callable[[Any, Any, Any, Any], Any],
    window_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: str,
    spec: str | None,
) -> Layer:
    places = (0, len(window_shape) + 1) if spec is None else (spec.index("N"), spec.index("C"))
    window, steps = list(window_shape), list(strides or (1,) * len(window_shape))
    for place in sorted(places):
        window.insert(place, 1)
        steps.insert(place, 1)

    def apply(params: Params, inputs: Any, **kwargs: Any) -> Any:
        return reduce(inputs, tuple(window), tuple(steps), padding)

    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
        return _shape_of(lambda x: apply((), x), checked_shape("pooling", input_shape), places[0]), ()

    return Layer(init, apply)


def MaxPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID", spec: str | None = None
) -> Layer:
    """The largest element of each window.

    Args:
      window_shape: the lengths of the window along the axes of space.
      strides: how far it moves, by default 1.
      padding: 'VALID' or 'SAME'.
      spec: which axis holds examples (N) and which features (C), by default the first and the last.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> stax.MaxPool((2,)).apply((), phlox.numpy.arange(4.0).reshape(1, 4, 1)).shape
    (1, 3, 1)
    """
    return _pool(lambda x, *how: lax.reduce_window(x, -np.inf, lax.max, *how), window_shape, strides, padding, spec)


def SumPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID", spec: str | None = None
) -> Layer:
    """The sum of each window; arguments as for `MaxPool`.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> stax.SumPool((2,)).apply((), phlox.numpy.arange(4.0).reshape(1, 4, 1))[0, :, 0]
    Array([1., 3., 5.], dtype=float32)
    """
    return _pool(lambda x, *how: lax.reduce_window(x, 0.0, lax.add, *how), window_shape, strides, padding, spec)


def AvgPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID", spec: str | None = None
) -> Layer:
    """The mean of each window, of those elements that lie in the array; arguments as for `MaxPool`.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> stax.AvgPool((2,)).apply((), phlox.numpy.arange(4.0).reshape(1, 4, 1))[0, :, 0]
    Array([0.5, 1.5, 2.5], dtype=float32)
    """

    def mean(x: Any, *how: Any) -> Any:
        count = lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, *how)
        return lax.reduce_window(x, 0.0, lax.add, *how) / count

    return _pool(mean, window_shape, strides, padding, spec)
