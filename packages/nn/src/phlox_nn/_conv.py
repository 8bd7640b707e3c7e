"""Convolutions over one, two or three axes, and the transposed ones that undo their strides."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from phlox import lax
from phlox.errors import ArgumentError
from phlox.nn import initializers

from . import _checks
from ._layer import Layer
from ._torch_layout import KERNEL, SAME, Layout, Tensor, tensor, transposed_kernel

Lengths = int | tuple[int, ...]
#: "SAME" or "VALID" as in `phlox.lax`; one number for both ends of all axes, or one number or pair for each axis
Padding = str | int | Sequence[int] | Sequence[tuple[int, int]]


def padding_pairs(layer: Any, padding: Padding, count: int) -> str | list[tuple[int, int]]:
    """Padding in the form of `phlox.lax`. Raises `ArgumentError` for anything else."""
    if isinstance(padding, str):
        if padding.upper() in ("SAME", "VALID", "SAME_LOWER"):
            return padding.upper()
    elif _checks.is_index(padding):
        return [(operator.index(padding),) * 2] * count
    elif isinstance(padding, Sequence) and len(padding) == count:
        pairs: list[Any] = [(p, p) if _checks.is_index(p) else p for p in padding]
        if all(isinstance(p, Sequence) and len(p) == 2 and all(map(_checks.is_index, p)) for p in pairs):
            return [(int(p[0]), int(p[1])) for p in pairs]
    raise ArgumentError(
        f"{type(layer).__name__}: padding must be 'SAME', 'VALID', an integer, or one (or a pair) for each of {count} "
        f"axes, got {padding!r}",
        padding=padding,
    )


class _Convolution(Layer):
    """The base of convolution layers: checks, and inputs with any number of batch axes."""

    in_features: int
    out_features: int
    kernel_size: Lengths
    strides: Lengths = 1
    padding: Padding = "SAME"
    dilation: Lengths = 1
    groups: int = 1
    use_bias: bool = True
    weight_init: initializers.Initializer = initializers.lecun_normal()
    bias_init: initializers.Initializer = initializers.zeros

    def __post_init__(self) -> None:
        _checks.size(self, in_features=self.in_features, out_features=self.out_features, groups=self.groups)
        count = self._count
        if not 1 <= count <= 3:
            raise ArgumentError(
                f"{type(self).__name__}: kernel_size must have one to three lengths, got {self.kernel_size!r}",
                instead="for example (3, 3)",
                kernel_size=self.kernel_size,
            )
        for name in ("kernel_size", "strides", "dilation"):
            _checks.lengths(self, name, getattr(self, name), count)
        padding_pairs(self, self.padding, count)
        if self.in_features % self.groups or self.out_features % self.groups:
            raise ArgumentError(
                f"{type(self).__name__}: {self.in_features} and {self.out_features} features cannot be cut into "
                f"{self.groups} groups",
                groups=self.groups,
            )

    def parameters(self) -> Mapping[str, Any]:
        kernel = self._each("kernel_size")
        weight = {"weight": (self.weight_init, (*kernel, self.in_features // self.groups, self.out_features))}
        return weight | ({"bias": (self.bias_init, (self.out_features,))} if self.use_bias else {})

    @property
    def _layout(self) -> Layout:
        """The layout of the kernel in PyTorch."""
        return KERNEL

    def torch_layout(self) -> Sequence[Tensor]:
        layouts = {"weight": self._layout, "bias": SAME}
        return [tensor(name, name, layout=layouts[name]) for name in self.parameters()]

    @property
    def _count(self) -> int:
        """The number of spatial axes."""
        return len(self.kernel_size) if isinstance(self.kernel_size, Sequence) else 1

    def _each(self, name: str) -> tuple[int, ...]:
        """The value of a field as one number for each axis."""
        return _checks.lengths(self, name, getattr(self, name), self._count)

    def _convolve(self, x: Any, weight: Any) -> Any:
        """The convolution of inputs with one batch axis, (n, *space, features), without the bias."""
        raise NotImplementedError

    def __call__(self, x: Any) -> Any:
        count = self._count
        _checks.rank(self, x, (..., *AXES[-count:], self.in_features))
        _checks.features(self, x, self.in_features)
        x, weight = _checks.one_dtype(*self.cast(x), self.weight)
        lead = x.shape[: -count - 1]
        y = self._convolve(x.reshape((math.prod(lead), *x.shape[-count - 1 :])), weight)
        y = y.reshape((*lead, *y.shape[1:]))
        return y + self.bias if self.use_bias else y


AXES = ("depth", "height", "width")
_NUMBERS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


class Conv(_Convolution):
    """A convolution over one, two or three axes, as many as `kernel_size` has lengths.

    Maps (..., *space, in_features) to (..., *space, out_features).

    Args:
      in_features, out_features: lengths of the last axis before and after.
      kernel_size: the lengths of the kernel; a number for one axis.
      strides: how far the kernel moves from one element of the output to the next.
      padding: "SAME", "VALID", a number of zeros at both ends, one for each axis, or pairs of numbers.
      dilation: distance between elements of the kernel.
      groups: features are divided into so many groups, each with its part of the kernel; as many as features make a
        depthwise convolution.
      use_bias: whether something is added.
      weight_init, bias_init: initializers.

    Parameters: weight (*kernel_size, in_features / groups, out_features), bias (out_features,).

    >>> import phlox
    >>> layer = Conv(3, 8, (3, 3), strides=2)
    >>> layer.apply(layer.init(phlox.random.key(0)), phlox.numpy.ones((5, 28, 28, 3))).shape
    (5, 14, 14, 8)
    """

    def _convolve(self, x: Any, weight: Any) -> Any:
        count = self._count
        return lax.conv_general_dilated(
            x,
            weight,
            self._each("strides"),
            padding_pairs(self, self.padding, count),
            rhs_dilation=self._each("dilation"),
            dimension_numbers=_NUMBERS[count],
            feature_group_count=self.groups,
        )


class ConvTranspose(_Convolution):
    """A transposed convolution, which makes the spatial axes `strides` times longer.

    Maps (..., *space, in_features) to (..., *space, out_features). The kernel is not reversed, as in flax.

    Args: as for `Conv`; padding is that of the convolution which this one transposes, so that ``padding=1`` takes away
      an element at each end.

    Parameters: weight (*kernel_size, in_features / groups, out_features), bias (out_features,).

    >>> import phlox
    >>> layer = ConvTranspose(8, 3, (3, 3), strides=2)
    >>> layer.apply(layer.init(phlox.random.key(0)), phlox.numpy.ones((5, 14, 14, 8))).shape
    (5, 28, 28, 3)
    """

    @property
    def _layout(self) -> Layout:
        return transposed_kernel(self.groups)

    def _convolve(self, x: Any, weight: Any) -> Any:
        kernel, strides, dilation = (self._each(name) for name in ("kernel_size", "strides", "dilation"))
        padding = padding_pairs(self, self.padding, len(kernel))
        pads = []
        for axis, (k, s, d) in enumerate(zip(kernel, strides, dilation, strict=True)):
            reach = d * (k - 1)  # the extent of the dilated kernel, minus 1
            if padding == "VALID":
                pads.append((reach, s - 1 + max(reach + 1 - s, 0)))
            elif isinstance(padding, str):
                low = reach if s > reach else -(-(reach + s - 1) // 2)
                pads.append((low, reach + s - 1 - low))
            else:
                low, high = padding[axis]
                pads.append((reach - low, reach - high))
        return lax.conv_general_dilated(
            x,
            weight,
            (1,) * len(kernel),
            pads,
            lhs_dilation=strides,
            rhs_dilation=dilation,
            dimension_numbers=_NUMBERS[len(kernel)],
            feature_group_count=self.groups,
        )
