"""Normalization: of each feature over the batch, or of each example over its features.

Statistics are computed in at least 32 bits, whatever the compute dtype is; results have the dtype of the inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import phlox.numpy as jnp
from phlox import lax
from phlox.errors import ArgumentError
from phlox.nn import initializers

from . import _checks
from ._layer import Layer
from ._torch_layout import Tensor, tensor


class _Norm(Layer):
    """The base of normalization layers: their parameters, statistics, and scaling."""

    features: int
    epsilon: float = 1e-5
    use_scale: bool = True
    use_bias: bool = True

    def __post_init__(self) -> None:
        _checks.size(self, features=self.features)

    def parameters(self) -> Mapping[str, Any]:
        scale = {"weight": (initializers.ones, (self.features,))} if self.use_scale else {}
        return scale | ({"bias": (initializers.zeros, (self.features,))} if self.use_bias else {})

    def _scaled(self, x: Any, mean: Any, var: Any) -> Any:
        """``(x - mean) / sqrt(var + epsilon)``, times weight, plus bias, in the dtype of `x`."""
        factor = lax.rsqrt(var + self.epsilon)
        y = (_checks.wide(x) - mean) * factor
        if self.use_scale:
            y = y * self.weight
        return jnp.asarray(y + self.bias if self.use_bias else y, jnp.result_type(x))

    def _statistics(self, x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
        """Mean and variance over axes, which are kept with length 1."""
        x = _checks.wide(x)
        mean = jnp.mean(x, axis=axes, keepdims=True)
        return mean, jnp.mean(jnp.square(x - mean), axis=axes, keepdims=True)


class BatchNorm(_Norm):
    """Normalizes each feature by its mean and variance over the batch and space.

    Keeps the shape (..., features). In training it uses the statistics of the batch, and moves the variables towards
    them; otherwise it uses the variables. Source: Ioffe and Szegedy, 2015.

    Args:
      features: the length of the last axis.
      epsilon: added to the variance.
      use_scale, use_bias: whether there are parameters weight and bias.
      momentum: the part of the variables that is kept in each step of training.
      axis_name: the name of a mapped axis, of `pmap`, `shard_map` or `vmap`, over which the batch is spread.

    Parameters: weight, bias. Variables: mean, var, in float32. All of shape (features,).

    >>> import phlox
    >>> layer = BatchNorm(2)
    >>> params, state = layer.init(phlox.random.key(0)), layer.init_state()
    >>> y, state = layer.apply(params, phlox.numpy.array([[1.0, 2.0], [3.0, 6.0]]), state=state, train=True)
    >>> y.round(3), state["mean"]
    (Array([[-1., -1.],
           [ 1.,  1.]], dtype=float32), Array([0.2, 0.4], dtype=float32))
    """

    momentum: float = 0.9
    axis_name: str | tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.part(self, momentum=self.momentum)

    def variables(self) -> Mapping[str, Any]:
        shape = (self.features,)
        return {"mean": (initializers.zeros, shape, jnp.float32), "var": (initializers.ones, shape, jnp.float32)}

    def torch_layout(self) -> Sequence[Tensor]:
        statistics = [tensor("running_mean", "mean"), tensor("running_var", "var")]
        # num_batches_tracked is a step counter of PyTorch, which is not used here.
        return [*(tensor(name, name) for name in self.parameters()), *statistics, tensor("num_batches_tracked")]

    def __call__(self, x: Any) -> Any:
        _checks.features(self, x, self.features)
        (x,) = self.cast(x)
        if not self.train:
            return self._scaled(x, self.mean, self.var)
        old_mean, old_var = self.mean, self.var
        axes = tuple(range(x.ndim - 1))
        wide = _checks.wide(x)
        mean = jnp.mean(wide, axis=axes)
        if self.axis_name is not None:
            mean = lax.pmean(mean, self.axis_name)
        var = jnp.mean(jnp.square(wide - mean), axis=axes)
        if self.axis_name is not None:
            var = lax.pmean(var, self.axis_name)
        m = self.momentum
        self.update(mean=m * old_mean + (1 - m) * mean, var=m * old_var + (1 - m) * var)
        return self._scaled(x, mean, var)


class LayerNorm(_Norm):
    """Normalizes each vector of features by its own mean and variance.

    Keeps the shape (..., features). Source: Ba, Kiros and Hinton, 2016.

    Args:
      features: the length of the last axis.
      epsilon: added to the variance.
      use_scale, use_bias: whether there are parameters weight and bias.

    Parameters: weight, bias, of shape (features,).

    >>> import phlox
    >>> layer = LayerNorm(2)
    >>> layer.apply(layer.init(phlox.random.key(0)), phlox.numpy.array([1.0, 3.0])).round(3)
    Array([-1.,  1.], dtype=float32)
    """

    def __call__(self, x: Any) -> Any:
        _checks.features(self, x, self.features)
        (x,) = self.cast(x)
        return self._scaled(x, *self._statistics(x, (-1,)))


class RMSNorm(_Norm):
    """Divides each vector of features by the square root of the mean of its squares.

    Keeps the shape (..., features). Source: Zhang and Sennrich, 2019.

    Args:
      features: the length of the last axis.
      epsilon: added to the mean of squares.
      use_scale, use_bias: whether there are parameters weight and bias; there is no bias by default.

    Parameters: weight, of shape (features,).

    >>> import phlox
    >>> layer = RMSNorm(2)
    >>> layer.apply(layer.init(phlox.random.key(0)), phlox.numpy.array([1.0, 1.0])).round(3)
    Array([1., 1.], dtype=float32)
    """

    epsilon: float = 1e-6
    use_bias: bool = False

    def __call__(self, x: Any) -> Any:
        _checks.features(self, x, self.features)
        (x,) = self.cast(x)
        squares = jnp.mean(jnp.square(_checks.wide(x)), axis=-1, keepdims=True)
        return self._scaled(x, 0, squares)


class GroupNorm(_Norm):
    """Normalizes groups of features over space, for each example.

    Keeps the shape (n, *space, features); the first axis counts examples. Source: Wu and He, 2018.

    Args:
      features: the length of the last axis.
      epsilon: added to the variance.
      use_scale, use_bias: whether there are parameters weight and bias.
      groups: how many groups there are, a divisor of `features`.

    Parameters: weight, bias, of shape (features,).

    >>> import phlox
    >>> layer = GroupNorm(4, groups=2)
    >>> layer.apply(layer.init(phlox.random.key(0)), phlox.numpy.array([[1.0, 3.0, 10.0, 30.0]])).round(3)
    Array([[-1.,  1., -1.,  1.]], dtype=float32)
    """

    groups: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.size(self, groups=self.groups)
        if self.features % self.groups:
            raise ArgumentError(
                f"GroupNorm: {self.features} features cannot be cut into {self.groups} groups",
                instead="groups=n, where n divides the number of features",
                groups=self.groups,
            )

    def __call__(self, x: Any) -> Any:
        _checks.rank(self, x, ("examples", ..., self.features))
        _checks.features(self, x, self.features)
        (x,) = self.cast(x)
        grouped = x.reshape((*x.shape[:-1], self.groups, -1))
        mean, var = self._statistics(grouped, (*range(1, x.ndim - 1), -1))
        spread = (*mean.shape[:-1], self.features // self.groups)
        mean, var = (jnp.broadcast_to(s, spread).reshape((*s.shape[:-2], self.features)) for s in (mean, var))
        return self._scaled(x, mean, var)


class InstanceNorm(_Norm):
    """Normalizes each feature over space, for each example.

    Keeps the shape (n, *space, features); the first axis counts examples. Source: Ulyanov et al., 2016.

    Args:
      features: the length of the last axis.
      epsilon: added to the variance.
      use_scale, use_bias: whether there are parameters weight and bias.

    Parameters: weight, bias, of shape (features,).

    >>> import phlox
    >>> layer = InstanceNorm(1)
    >>> layer.apply(layer.init(phlox.random.key(0)), phlox.numpy.array([[[1.0], [3.0]]])).round(3)
    Array([[[-1.],
            [ 1.]]], dtype=float32)
    """

    def __call__(self, x: Any) -> Any:
        _checks.rank(self, x, ("examples", "length", ..., self.features))
        _checks.features(self, x, self.features)
        (x,) = self.cast(x)
        return self._scaled(x, *self._statistics(x, tuple(range(1, x.ndim - 1))))
