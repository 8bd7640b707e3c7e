"""Densities estimated from samples, by a normal distribution around each point."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ... import lax, nn, numpy as jnp, random
from ..._api.jit.jit import jit
from ..._base.errors import ArgumentError, OptionError, ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._operands.checks import check_one, type_of
from ..._operands.promotion import promote_dtypes, promote_inexact
from ...tree_util import register_pytree_node_class
from ...typing import Array, ArrayLike
from ..special import ndtr

_FIELDS = ("neff", "dataset", "weights", "covariance", "inv_cov")


@register_pytree_node_class
class gaussian_kde:
    """A density estimated from samples: the mean of normal distributions around them (as
    ``scipy.stats.gaussian_kde``).

    Estimates are pytrees: they can be arguments and results of transformed functions.

    Args:
      dataset: real samples, a vector, or of shape [d, n] for n points of d dimensions.
      bw_method: factor by which the standard deviations of the data are multiplied: 'scott' (also for None) or
        'silverman', a number, or a function of the estimate.
      weights: weight of each point, a vector of length n; None means that all are equal.

    Attributes:
      dataset: the samples, [d, n].
      weights: the weights, [n], with the sum 1.
      neff: the effective number of points, 1 / sum(weights**2).
      covariance, inv_cov: covariance of the normal distributions and its inverse, [d, d].
      d, n: the numbers of dimensions and of points.

    Raises:
      UnsupportedError: `dataset` is complex.
      ShapeError: there is but one sample, or the weights do not fit.
      OptionError: `bw_method` is unknown.

    >>> kde = gaussian_kde(jnp.array([0.0, 1.0, 1.5]))
    >>> round(float(kde(1.0)[0]), 3)
    0.43
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(
        self,
        dataset: ArrayLike,
        bw_method: str | Array | Callable[[Any], Any] | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        data = _real("gaussian_kde", dataset)
        if not type_of(data).size > 1:
            raise ShapeError(f"gaussian_kde takes several samples, got {type_of(data).short}", shapes=[data.shape])
        n = type_of(data).shape[1]
        if weights is None:
            (data,) = promote_inexact(data)
            shares = jnp.full(n, 1 / n, type_of(data).dtype)
        else:
            data, shares = promote_inexact(data, jnp.atleast_1d(check_one("gaussian_kde", weights)))
            if type_of(shares).shape != (n,):
                raise ShapeError(
                    f"gaussian_kde: weights must be a vector of length {n}, got {type_of(shares).short}",
                    shapes=[type_of(data).shape, type_of(shares).shape],
                )
            shares = shares / jnp.sum(shares)
        self.dataset, self.weights = data, shares
        # Kish's effective number of samples, which is n for equal weights
        self.neff = 1 / jnp.sum(jnp.square(shares))
        factor = self._factor("scott" if bw_method is None else bw_method)
        covariance = jnp.atleast_2d(jnp.cov(data, rowvar=True, bias=False, aweights=shares))
        self.covariance = covariance * factor**2
        self.inv_cov = jnp.linalg.inv(covariance) / factor**2

    def _factor(self, method: Any) -> Any:
        exponent = -1 / (self.d + 4)
        if isinstance(method, str):
            if method not in ("scott", "silverman"):
                raise OptionError(
                    f"gaussian_kde: there is no bw_method={method!r}",
                    instead="'scott', 'silverman', a number or a function",
                )
            return jnp.power(self.neff if method == "scott" else self.neff * (self.d + 2) / 4, exponent)
        if callable(method):
            return method(self)
        if not jnp.isscalar(method):
            raise ArgumentError(
                f"gaussian_kde: bw_method must be one number, got a {type(method).__name__}",
                instead="'scott', 'silverman', a number or a function",
            )
        return method

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """The arrays that the estimate consists of, as `phlox.tree_util` asks for them.

        Returns:
          A pair of the arrays and None.

        >>> len(gaussian_kde(jnp.arange(3.0)).tree_flatten()[0])
        5
        """
        return tuple(getattr(self, name) for name in _FIELDS), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> gaussian_kde:
        """The estimate of these arrays.

        Args:
          aux_data: None.
          children: the arrays that `tree_flatten` returns first.

        Returns:
          A `gaussian_kde`.

        >>> gaussian_kde.tree_unflatten(None, gaussian_kde(jnp.arange(3.0)).tree_flatten()[0]).n
        3
        """
        kde = object.__new__(cls)
        for name, child in zip(_FIELDS, children, strict=True):
            setattr(kde, name, child)
        return kde

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return type_of(self.dataset).shape[0]

    @property
    def n(self) -> int:
        """The number of points."""
        return type_of(self.dataset).shape[1]

    def evaluate(self, points: ArrayLike) -> Array:
        """The density at points.

        Args:
          points: a vector of m numbers for d = 1, or of shape [d, m]; one point may be a vector of length d.

        Returns:
          A vector of m densities.

        Raises:
          ShapeError: the points have another number of dimensions.
          UnsupportedError: the points are complex.

        >>> round(float(gaussian_kde(jnp.arange(3.0)).evaluate(1.0)[0]), 3)
        0.318
        """
        return _density(self.dataset, self.weights, self.covariance, self._points("evaluate", points), log=False)

    def __call__(self, points: ArrayLike) -> Array:
        return self.evaluate(points)

    def pdf(self, x: ArrayLike) -> Array:
        """The same as `evaluate`.

        Args:
          x: a vector of m numbers for d = 1, or of shape [d, m]; one point may be a vector of length d.

        Returns:
          A vector of m densities.

        >>> round(float(gaussian_kde(jnp.arange(3.0)).pdf(1.0)[0]), 3)
        0.318
        """
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density, computed without underflow.

        Args:
          x: a vector of m numbers for d = 1, or of shape [d, m]; one point may be a vector of length d.

        Returns:
          A vector of m numbers.

        >>> round(float(gaussian_kde(jnp.arange(3.0)).logpdf(1.0)[0]), 3)
        -1.145
        """
        return _density(self.dataset, self.weights, self.covariance, self._points("logpdf", x), log=True)

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the density times a normal density.

        Args:
          mean: mean of the normal density, a vector of length d.
          cov: its covariance, a matrix [d, d]; for d = 1 a number.

        Returns:
          A scalar.

        Raises:
          ShapeError: the shapes do not fit the estimate.

        >>> round(float(gaussian_kde(jnp.arange(3.0)).integrate_gaussian(1.0, 1.0)), 3)
        0.257
        """
        center: Any = jnp.atleast_1d(jnp.squeeze(jnp.asarray(mean)))
        around: Any = jnp.atleast_2d(cov)
        if center.shape != (self.d,) or around.shape != (self.d, self.d):
            raise ShapeError(
                f"integrate_gaussian: an estimate of {self.d} dimensions, with the mean {type_of(center).short} and "
                f"the cov {type_of(around).short}",
                shapes=[center.shape, around.shape],
            )
        # The integral of the product of two normal densities is a normal density whose covariance is the sum of theirs.
        return _density(self.dataset, self.weights, self.covariance + around, center[:, None], log=False)[0]

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The integral of a density of one dimension from `low` to `high`.

        Args:
          low, high: numbers.

        Returns:
          A scalar.

        Raises:
          ShapeError: the estimate is of several dimensions, or a limit is not a number.

        >>> round(float(gaussian_kde(jnp.arange(3.0)).integrate_box_1d(0.0, 2.0)), 3)
        0.591
        """
        if self.d != 1 or jnp.ndim(low) or jnp.ndim(high):
            raise ShapeError(
                f"integrate_box_1d takes two numbers and an estimate of one dimension, which has {self.d}",
                shapes=[jnp.shape(low), jnp.shape(high)],
            )
        sigma = jnp.sqrt(self.covariance[0, 0])
        start, end = ((limit - self.dataset[0]) / sigma for limit in (low, high))
        # Far above the mean both values of ndtr are nearly 1: there the interval is reflected.
        above = start + end > 0
        share = ndtr(jnp.where(above, -start, end)) - ndtr(jnp.where(above, -end, start))
        return jnp.sum(self.weights * share)

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two densities.

        Args:
          other: another estimate, of the same number of dimensions.

        Returns:
          A scalar.

        Raises:
          ShapeError: the numbers of dimensions differ.

        >>> kde = gaussian_kde(jnp.arange(3.0))
        >>> round(float(kde.integrate_kde(kde)), 3)
        0.24
        """
        if other.d != self.d:
            raise ShapeError(
                f"integrate_kde: estimates of dimensions {self.d} and {other.d}", shapes=[(self.d,), (other.d,)]
            )
        densities = _density(self.dataset, self.weights, self.covariance + other.covariance, other.dataset, log=False)
        return jnp.sum(densities * other.weights)

    def resample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Random points of the estimated distribution.

        Args:
          key: a key of `phlox.random`.
          shape: shape of the sample.

        Returns:
          An array of shape ``(d, *shape)``.

        >>> gaussian_kde(jnp.arange(3.0)).resample(random.key(0), (4,)).shape
        (1, 4)
        """
        return _resample(self, key, tuple(shape))

    def integrate_box(self, low_bounds: ArrayLike, high_bounds: ArrayLike, maxpts: int | None = None) -> Array:
        """Integrals over boxes of several dimensions are not supported.

        Args:
          low_bounds, high_bounds: limits.
          maxpts: number of points.

        Returns:
          Nothing; it always raises.

        Raises:
          UnsupportedError: always.

        >>> gaussian_kde(jnp.arange(3.0)).integrate_box(0.0, 1.0)
        Traceback (most recent call last):
        phlox._base.errors.UnsupportedError: ...
        """
        raise UnsupportedError("integrate_box: boxes of several dimensions are not there", instead="integrate_box_1d")

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """The bandwidth of an estimate cannot be changed.

        Args:
          bw_method: as in the constructor.

        Returns:
          Nothing; it always raises.

        Raises:
          UnsupportedError: always.

        >>> gaussian_kde(jnp.arange(3.0)).set_bandwidth(0.5)
        Traceback (most recent call last):
        phlox._base.errors.UnsupportedError: ...
        """
        raise UnsupportedError("set_bandwidth: estimates do not change", instead="gaussian_kde(dataset, bw_method)")

    def _points(self, function: str, points: Any) -> Any:
        points = _real(function, points)
        d, m = type_of(points).shape
        if d == self.d:
            return points
        if d == 1 and m == self.d:
            return jnp.reshape(points, (m, 1))
        raise ShapeError(
            f"{function}: the points {type_of(points).short} have {d} dimensions, the samples {self.d}",
            shapes=[(d, m), (self.d, self.n)],
        )


def _real(function: str, x: Any) -> Any:
    x = jnp.atleast_2d(check_one(function, x))
    if dtypes.kind(type_of(x).dtype) == "c":
        raise UnsupportedError(f"{function}: complex points are not there, got {type_of(x).short}", instead="x.real")
    return x


@functools.partial(jit, static_argnames=("log",))
def _density(dataset: Any, weights: Any, covariance: Any, points: Any, log: bool) -> Any:
    dataset, weights, covariance, points = promote_inexact(dataset, weights, covariance, points)
    d = type_of(dataset).shape[0]
    factor = lax.linalg.cholesky(covariance)
    # The Cholesky factor turns Mahalanobis distances into Euclidean ones, and gives the determinant.
    data, at = (lax.linalg.triangular_solve(factor, x, left_side=True, lower=True) for x in (dataset, points))
    log_norm = -jnp.sum(jnp.log(jnp.diagonal(factor))) - 0.5 * d * math.log(2 * math.pi)
    heights = log_norm - 0.5 * jnp.sum(jnp.square(at[:, :, None] - data[:, None, :]), axis=0)
    if log:
        return nn.logsumexp(heights, axis=1, b=weights[None, :])
    return jnp.sum(weights[None, :] * jnp.exp(heights), axis=1)


@functools.partial(jit, static_argnames=("shape",))
def _resample(kde: gaussian_kde, key: Any, shape: tuple[int, ...]) -> Any:
    chosen, around = random.split(key)
    # The density is a mixture: a sample is one of the points, chosen by weight, and noise of the common covariance.
    at = random.choice(chosen, kde.n, shape=shape, p=kde.weights)
    dataset, covariance = promote_dtypes(kde.dataset, kde.covariance)
    zero = jnp.zeros(kde.d, type_of(covariance).dtype)
    noise = random.multivariate_normal(around, zero, covariance, shape=shape, dtype=type_of(dataset).dtype)
    return dataset[:, at] + jnp.moveaxis(noise, -1, 0)
