"""Metrics of training and evaluation, accumulated over batches: ``from phlox_optim import metrics``.

A metric is a pytree whose leaves are sums over examples. Metrics of two batches are therefore merged by adding their
leaves, those of several devices by `phlox.lax.psum`; only `Metric.value` divides. They can be made in jitted functions.
Metrics that are no function of sums (`auc`, `average_precision`, `r2`) say in `Metric.merged` how two are merged;
`merge` and `over_devices` merge any metrics, exactly as if all examples were one batch.

    batch = metrics.accuracy(scores, labels)
    total = metrics.merge(total, batch)
    print(total.value())
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

import phlox
import phlox.numpy as jnp
from phlox.errors import ArgumentError, ShapeError
from phlox.extend import lenient_promotion

from ._metric import Metric as Metric
from ._scores import (
    Calibration as Calibration,
    Classes as Classes,
    Ranking as Ranking,
    Variance as Variance,
    auc as auc,
    average_precision as average_precision,
    calibration_error as calibration_error,
    f1 as f1,
    in_classes,
    pair,
    precision as precision,
    r2 as r2,
    recall as recall,
)

__all__ = ["Calibration", "Classes", "Confusion", "Mean", "Metric", "Perplexity", "Ranking", "Sum", "Variance"]
__all__ += [
    "accuracy",
    "auc",
    "average_precision",
    "calibration_error",
    "confusion",
    "f1",
    "mae",
    "mean",
    "merge",
    "mse",
]
__all__ += ["over_devices", "perplexity", "precision", "r2", "recall", "top_k", "values"]


@phlox.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Mean(Metric):
    """A mean over examples: `total` is the sum of their values, `count` their number. nan if `count` is 0."""

    total: Any
    count: Any

    def value(self) -> Any:
        return self.total / self.count


@phlox.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Sum(Metric):
    """A sum, such as a number of events.

    >>> values({"skipped": merge(Sum(1), Sum(2))})
    {'skipped': 3}
    """

    total: Any

    def value(self) -> Any:
        return jnp.asarray(self.total)


@phlox.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Perplexity(Mean):
    """The exponential of a mean of losses (in nats)."""

    def value(self) -> Any:
        return jnp.exp(self.total / self.count)


@phlox.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Confusion(Metric):
    """A confusion matrix: counts `matrix[label, prediction]`, i32[classes, classes]; of fractional weights f32."""

    matrix: Any

    def value(self) -> Any:
        return self.matrix


@lenient_promotion()
def _summed(kind: type[Mean], values: Any, mask: Any) -> Mean:
    values = jnp.asarray(values, jnp.float32)
    if mask is None:
        return kind(values.sum(), jnp.float32(values.size))
    mask = jnp.asarray(mask)
    if mask.shape != values.shape:
        raise ShapeError(
            f"the mask has shape {mask.shape}, the examples {values.shape}",
            instead="a mask with an element for each example",
            expected=values.shape,
            got=mask.shape,
        )
    weights = mask.astype(jnp.float32)
    # Masked values may be nan, in which case 0 times them is nan, here and in derivatives.
    return kind((jnp.where(mask != 0, values, 0) * weights).sum(), weights.sum())


def mean(values: Any, mask: Any = None) -> Mean:
    """The mean of `values`, of any shape. `mask`, of the same shape, selects values (bools) or weights them (numbers).

    >>> mean(jnp.array([1.0, 2.0, 6.0]), mask=jnp.array([True, True, False])).value()
    Array(1.5, dtype=float32)
    """
    return _summed(Mean, values, mask)


def mae(predictions: Any, targets: Any, mask: Any = None) -> Mean:
    """The mean absolute error of `predictions`. All arrays have one shape; `mask` as for `mean`.

    >>> mae(jnp.array([1.0, 5.0]), jnp.array([2.0, 3.0])).value()
    Array(1.5, dtype=float32)
    """
    predictions, targets, _ = pair("mae", predictions, targets, mask)
    return mean(jnp.abs(predictions - targets), mask)


def mse(predictions: Any, targets: Any, mask: Any = None) -> Mean:
    """The mean squared error of `predictions`. All arrays have one shape; `mask` as for `mean`.

    >>> mse(jnp.array([1.0, 5.0]), jnp.array([2.0, 3.0])).value()
    Array(2.5, dtype=float32)
    """
    predictions, targets, _ = pair("mse", predictions, targets, mask)
    return mean((predictions - targets) ** 2, mask)


def perplexity(losses: Any, mask: Any = None) -> Perplexity:
    """The perplexity of `losses`: cross entropies in nats, one for each token.

    >>> perplexity(jnp.log(jnp.array([2.0, 8.0]))).value()
    Array(4., dtype=float32)
    """
    metric = _summed(Perplexity, losses, mask)
    assert isinstance(metric, Perplexity)
    return metric


@lenient_promotion()
def accuracy(scores: Any, labels: Any, mask: Any = None) -> Mean:
    """The fraction of examples whose highest score is that of the label.

    Args:
      scores: ``[..., classes]``.
      labels: integers ``[...]``.
      mask: ``[...]``: which examples count.

    >>> accuracy(jnp.array([[0.1, 0.9], [0.8, 0.2]]), jnp.array([1, 1])).value()
    Array(0.5, dtype=float32)
    """
    return mean(_predictions("accuracy", scores, labels) == labels, mask)


@lenient_promotion()
def top_k(scores: Any, labels: Any, k: int, mask: Any = None) -> Mean:
    """The fraction of examples whose label has one of the `k` highest scores. Arguments as for `accuracy`.

    >>> top_k(jnp.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]]), jnp.array([2, 2]), k=2).value()
    Array(0.5, dtype=float32)
    """
    _predictions("top_k", scores, labels)
    _, best = phlox.lax.top_k(jnp.asarray(scores), k)
    return mean((best == jnp.asarray(labels)[..., None]).any(-1), mask)


@lenient_promotion()
def confusion(scores: Any, labels: Any, mask: Any = None) -> Confusion:
    """The confusion matrix: counts of examples by label and class of the highest score. Arguments as for `accuracy`.

    >>> confusion(jnp.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]]), jnp.array([1, 1, 1])).value()
    Array([[0, 0],
           [1, 2]], dtype=int32)
    """
    predictions = _predictions("confusion", scores, labels)
    classes = jnp.shape(scores)[-1]
    labels = in_classes(labels, classes)
    counts = jnp.ones(predictions.shape, jnp.int32) if mask is None else jnp.asarray(mask)
    # Weights that are no integers are summed as they are.
    dtype = jnp.float32 if jnp.issubdtype(counts.dtype, jnp.floating) else jnp.int32
    matrix = jnp.zeros((classes, classes), dtype)
    return Confusion(matrix.at[labels, predictions].add(counts.astype(dtype), mode="drop"))


def _predictions(name: str, scores: Any, labels: Any) -> Any:
    scores, labels = jnp.asarray(scores), jnp.asarray(labels)
    if scores.ndim == 0 or scores.shape[:-1] != labels.shape or not jnp.issubdtype(labels.dtype, jnp.integer):
        raise ShapeError(
            f"{name} got scores {phlox.typeof(scores).short} and labels {phlox.typeof(labels).short}",
            instead="scores [..., classes] and integer labels [...], without the axis of the classes",
            expected=scores.shape[:-1],
            got=labels.shape,
        )
    return scores.argmax(-1)


@lenient_promotion()
def divide(total: Any, count: Any) -> Any:
    """`total / count`; `total` if `count` is 0."""
    return total / jnp.where(count == 0, jnp.ones_like(count), count)


def examples_in(batch: Any) -> int:
    """The number of examples in a batch: the length of the first axis if all arrays in it have the same, else 1."""
    lengths = {jnp.shape(leaf)[0] for leaf in phlox.tree.leaves(batch) if jnp.ndim(leaf)}
    return lengths.pop() if len(lengths) == 1 else 1


def as_metric(name: str, figure: Any, examples: int = 1) -> Metric:
    """A metric unchanged, or a scalar as the mean over so many examples. Raises `ArgumentError` for anything else."""
    if isinstance(figure, Metric):
        return figure
    if (not hasattr(figure, "shape") and not isinstance(figure, int | float)) or jnp.shape(figure) != ():
        what = phlox.typeof(figure).short if hasattr(figure, "shape") else f"a {type(figure).__name__}"
        raise ArgumentError(
            f"the figure {name!r} is {what}",
            instead="a scalar, or a metric of phlox_optim.metrics, such as metrics.mean(values)",
            argument=figure,
        )
    return Mean(jnp.asarray(figure, jnp.float32) * examples, jnp.float32(examples))


def merge(first: Any, second: Any) -> Any:
    """Merges two metrics, or two trees of metrics of equal structure, to the metrics of the examples of both.

    >>> merge({"loss": mean(jnp.array([1.0]))}, {"loss": mean(jnp.array([4.0, 7.0]))})["loss"].value()
    Array(4., dtype=float32)
    """
    return phlox.tree.map(
        lambda one, other: one.merged(other) if isinstance(one, Metric) else jnp.add(one, other),
        first,
        second,
        is_leaf=lambda node: isinstance(node, Metric),
    )


def over_devices(figures: Any, axis_name: Any) -> Any:
    """Merges the metrics of all devices of a mapped axis, of `pmap`, `shard_map` or `vmap`.

    Args:
      figures: a metric, or a tree of metrics.
      axis_name: the name of the axis.

    Returns:
      The same on each device.

    >>> phlox.vmap(lambda x: over_devices(mean(x), "i").value(), axis_name="i")(jnp.array([[1.0], [3.0]]))
    Array([2., 2.], dtype=float32)
    """

    def one(metric: Any) -> Any:
        if not isinstance(metric, Metric) or metric.additive:
            return phlox.lax.psum(metric, axis_name)
        return merge_stacked(phlox.lax.all_gather(metric, axis_name))

    return phlox.tree.map(one, figures, is_leaf=lambda node: isinstance(node, Metric))


def merge_stacked(figures: Any) -> Any:
    """Merges the metrics that lie along a first axis of all leaves, as `phlox.lax.scan` returns them."""

    def one(metric: Any) -> Any:
        if not isinstance(metric, Metric) or metric.additive:
            return phlox.tree.map(lambda leaf: leaf.sum(0), metric)
        first, *rest = (phlox.tree.map(lambda x, n=n: x[n], metric) for n in range(len(phlox.tree.leaves(metric)[0])))
        for other in rest:
            first = first.merged(other)
        return first

    return phlox.tree.map(one, figures, is_leaf=lambda node: isinstance(node, Metric))


def values(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The values of metrics as Python numbers, or NumPy arrays if they are not scalars. Waits for their computation.

    >>> values({"loss": mean(jnp.array([1.0, 2.0]))})
    {'loss': 1.5}
    """
    arrays = {name: np.asarray(as_metric(name, figure).value()) for name, figure in figures.items()}
    return {name: array if array.ndim else array.item() for name, array in arrays.items()}
