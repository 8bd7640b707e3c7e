"""Normalization: of each feature over the batch, or of each example over its features.

Statistics are computed in at least 32 bits, whatever the compute dtype is; results have the dtype of the inputs, for
integers float32.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import phlox
import phlox.numpy as jnp
from phlox import lax, typeof
from phlox.errors import ArgumentError, ShapeError
from phlox.nn import initializers

from . import _checks
from ._layer import Layer
from ._torch_layout import Tensor, tensor


@functools.partial(phlox.custom_jvp, nondiff_argnums=(1, 2, 3))
def _moments(x: Any, axes: tuple[int, ...], keepdims: bool, axis_name: Any) -> tuple[Any, Any]:
    """Mean and variance over `axes`, and over the devices of a mapped axis where its name is given."""
    mean = _mean(x, axes, True, axis_name)
    var = _mean(jnp.square(x - mean), axes, keepdims, axis_name)
    return mean if keepdims else jnp.squeeze(mean, axes), var


@_moments.defjvp
def _moments_jvp(axes: Any, keepdims: Any, axis_name: Any, primals: Any, tangents: Any) -> tuple[Any, Any]:
    # The sum of deviations is 0, so the mean's own tangent cancels in that of the variance; a rule knows it, and saves
    # its sums. The variance comes first, so that in the transpose the last term of x's cotangent is a full product. XLA
    # would copy the addition of a broadcast mean into every later use, so that a chain of residual blocks computes
    # cotangents again in each block: a quarter of a mixer's step, and a third of its compilation.
    (x,), (x_dot,) = primals, tangents
    mean = _mean(x, axes, True, axis_name)
    var_dot = _mean(2 * (x - mean) * x_dot, axes, keepdims, axis_name)
    return _moments(x, axes, keepdims, axis_name), (_mean(x_dot, axes, keepdims, axis_name), var_dot)


def _mean(x: Any, axes: tuple[int, ...], keepdims: bool, axis_name: Any) -> Any:
    mean = jnp.mean(x, axis=axes, keepdims=keepdims)
    return mean if axis_name is None else lax.pmean(mean, axis_name)


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
        y = (_checks.wide(x) - mean) * (factor * self.weight if self.use_scale else factor)
        return jnp.asarray(y + self.bias if self.use_bias else y, _checks.inexact(x))

    def _statistics(self, x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
        """Mean and variance over axes, which are kept with length 1."""
        mean, var = _moments(_checks.wide(x), axes, True, None)
        return mean, var


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
      unbiased: which variance of the batch the variable `var` moves towards, if the batch has n numbers of each
        feature: False divides the sum of squares by n, as flax and Keras do; True by n - 1, as PyTorch does. In
        training, the batch is normalized with the first one in any case, as everywhere.

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
    unbiased: bool = False

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
        mean, var = _moments(_checks.wide(x), tuple(range(x.ndim - 1)), False, self.axis_name)
        m, correction = self.momentum, self._correction(x) if self.unbiased else 1
        self.update(mean=m * old_mean + (1 - m) * mean, var=m * old_var + (1 - m) * correction * var)
        return self._scaled(x, mean, var)

    def _correction(self, x: Any) -> float:
        """The unbiased variance divided by the biased one. Raises if there is one number of each feature."""
        n = math.prod(x.shape[:-1]) * (1 if self.axis_name is None else lax.axis_size(self.axis_name))
        if n < 2:
            raise ShapeError(
                f"{self._name()}: {typeof(x).short} has {n} number of each feature, which has no unbiased variance",
                instead="a larger batch, or unbiased=False",
                shapes=[x.shape],
                layer=self.path,
            )
        return n / (n - 1)


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
        size = self.features // self.groups
        grouped = x.reshape((*x.shape[:-1], self.groups, size))
        mean, var = self._statistics(grouped, (*range(1, x.ndim - 1), -1))
        spread = (*mean.shape[:-1], size)
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
