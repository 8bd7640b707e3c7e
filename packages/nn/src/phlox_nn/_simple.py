"""Small layers: the identity, an activation with a learnt slope, enlarging over space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import phlox
import phlox.numpy as jnp
from phlox.errors import ArgumentError
from phlox.nn import initializers

from . import _checks
from ._conv import AXES
from ._layer import Layer


class Identity(Layer):
    """The layer that returns its input: in the place of another one, as for ``nn.replace(model, "norm", Identity())``.

    Further arguments of the call are ignored.

    >>> Identity().apply({}, jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        return x

    def decode(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the input, as the call does."""
        return x


class PReLU(Layer):
    """``x`` where it is positive, elsewhere ``weight * x`` with a learnt slope. Source: He et al., 2015.

    Keeps shape and dtype.

    Args:
      features: the number of slopes: 1 for all features together, or the length of the last axis.
      slope: the initial slope.

    Parameters: weight (features,).

    >>> import phlox
    >>> layer = PReLU()
    >>> layer.apply(layer.init(phlox.random.key(0)), jnp.array([-4.0, 2.0]))
    Array([-1.,  2.], dtype=float32)
    """

    features: int = 1
    slope: float = 0.25

    def __post_init__(self) -> None:
        _checks.size(self, features=self.features)

    def parameters(self) -> Mapping[str, Any]:
        return {"weight": (initializers.constant(self.slope), (self.features,))}

    def __call__(self, x: Any) -> Any:
        if self.features > 1:
            _checks.features(self, x, self.features)
        (x,) = self.cast(x)
        x = jnp.asarray(x, _checks.inexact(x))
        return jnp.where(x > 0, x, jnp.asarray(self.weight, x.dtype) * x)


class Upsample(Layer):
    """Makes the spatial axes longer, by repeating elements or by interpolation.

    Maps (n, *space, features) to (n, *larger space, features); the first axis counts examples.

    Args:
      scale: how many times longer the axes become: one integer for all of them, or one for each.
      method: "nearest" repeats elements, "linear" and "cubic" interpolate (`phlox.image.resize`). "nearest" and
        "linear" are PyTorch's, the latter as ``mode="bilinear", align_corners=False``; "cubic" is Keys' with a = -0.5,
        where PyTorch has -0.75.

    >>> Upsample(2).apply({}, jnp.arange(2.0).reshape(1, 2, 1))[..., 0]
    Array([[0., 0., 1., 1.]], dtype=float32)
    """

    scale: int | tuple[int, ...]
    method: Literal["nearest", "linear", "cubic"] = "nearest"

    def __post_init__(self) -> None:
        _checks.lengths(self, "scale", self.scale, len(self.scale) if isinstance(self.scale, tuple) else 1)
        if self.method not in ("nearest", "linear", "cubic"):
            raise ArgumentError(
                f"Upsample: method is {self.method!r}",
                instead='"nearest", "linear" (for images too, where PyTorch says bilinear) or "cubic"',
                method=self.method,
            )

    def __call__(self, x: Any) -> Any:
        count = len(self.scale) if isinstance(self.scale, tuple) else max(jnp.ndim(x) - 2, 1)
        if jnp.ndim(x) != count + 2:
            axes = ("examples", *AXES[-min(count, 3) :], "features")
            _checks.wrong_shape(self, x, axes)
        (x,) = self.cast(x)
        scales = _checks.lengths(self, "scale", self.scale, count)
        x = jnp.asarray(x)
        if self.method == "nearest":
            for axis, scale in enumerate(scales, 1):
                x = jnp.repeat(x, scale, axis)
            return x
        space = [n * scale for n, scale in zip(x.shape[1:-1], scales, strict=True)]
        return phlox.image.resize(x, (x.shape[0], *space, x.shape[-1]), self.method, antialias=False)
