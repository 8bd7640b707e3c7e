"""Metrics of classifiers and of regression: precision, recall, F1, AUC, average precision, calibration, R2.

They are equal to scikit-learn's on the whole set, whatever the batches are.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import numpy as np

import phlox
import phlox.numpy as jnp
from phlox.errors import ArgumentError, ShapeError
from phlox.extend import lenient_promotion

from ._metric import Metric

Average = Literal["binary", "macro", "micro", "weighted"] | None


@phlox.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Classes(Metric):
    """Precision, recall or F1, from the numbers of examples of each class, f32[classes].

    Attributes:
      hits: examples of the class that are predicted as it.
      predicted: examples that are predicted as the class.
      labelled: examples of the class.
      kind: "precision", "recall" or "f1".
      average: how classes are averaged, see `precision`.
    """

    hits: Any
    predicted: Any
    labelled: Any
    kind: str = dataclasses.field(metadata={"static": True})
    average: Average = dataclasses.field(metadata={"static": True})

    def value(self) -> Any:
        hits, predicted, labelled = self.hits, self.predicted, self.labelled
        if self.average == "micro":
            hits, predicted, labelled = hits.sum(), predicted.sum(), labelled.sum()
        below = {"precision": predicted, "recall": labelled, "f1": (predicted + labelled) / 2}[self.kind]
        # A class without examples or predictions counts as 0, as in scikit-learn.
        each = jnp.where(below > 0, hits / jnp.where(below > 0, below, 1), 0.0)
        if self.average == "binary":
            return each[1]
        if self.average == "weighted":
            return (each * labelled).sum() / labelled.sum()
        if self.average == "macro":
            present = (labelled > 0) | (predicted > 0)  # scikit-learn does not know of other classes
            return jnp.where(present, each, 0).sum() / present.sum()
        return each


@lenient_promotion()
def _classes(kind: str, scores: Any, labels: Any, mask: Any, average: Any, threshold: Any) -> Classes:
    scores, labels = jnp.asarray(scores), jnp.asarray(labels)
    is_binary = scores.shape == labels.shape
    average = ("binary" if is_binary else "macro") if average == "default" else average
    if average not in ("binary", "macro", "micro", "weighted", None):
        raise ArgumentError(
            f"{kind}: average is {average!r}", instead='"binary", "macro", "micro", "weighted", or None for each class'
        )
    if is_binary:
        predictions, classes = (scores > threshold).astype(jnp.int32), 2
    else:
        predictions, classes = _best(kind, scores, labels), scores.shape[-1]
    if average == "binary" and classes != 2:
        raise ArgumentError(f'{kind}: average is "binary", with {classes} classes', instead='average="macro"')
    weights = _weights(kind, labels, mask)

    def count(chosen: Any, weights: Any) -> Any:
        return jnp.zeros(classes, jnp.float32).at[chosen].add(weights, mode="drop")

    labels = in_classes(labels, classes)
    hits = count(labels, weights * (predictions == labels))
    return Classes(hits, count(predictions, weights), count(labels, weights), kind, average)


def in_classes(labels: Any, classes: int) -> Any:
    """Labels as int32 for ``at[labels].add(mode="drop")``, which drops negative ones too, as those of no class."""
    labels = jnp.asarray(labels, jnp.int32)
    return jnp.where(labels < 0, classes, labels)


def _best(name: str, scores: Any, labels: Any) -> Any:
    """The class with the highest score of each example."""
    if scores.ndim == 0 or scores.shape[:-1] != labels.shape or jnp.issubdtype(labels.dtype, jnp.inexact):
        raise ShapeError(
            f"{name} got scores {phlox.typeof(scores).short} and labels {phlox.typeof(labels).short}",
            instead="scores [..., classes] and integer labels [...], or scores [...] of the second of two classes",
            expected=scores.shape[:-1],
            got=labels.shape,
        )
    return scores.argmax(-1)


def _weights(name: str, values: Any, mask: Any) -> Any:
    """The mask as float32 weights of the shape of `values`, ones by default."""
    if mask is None:
        return jnp.ones(values.shape, jnp.float32)
    mask = jnp.asarray(mask)
    if mask.shape != values.shape:
        raise ShapeError(
            f"{name}: the mask has shape {mask.shape}, the examples {values.shape}",
            instead="a mask with an element for each example",
            expected=values.shape,
            got=mask.shape,
        )
    return mask.astype(jnp.float32)


def precision(
    scores: Any, labels: Any, mask: Any = None, *, average: Any = "default", threshold: float = 0.5
) -> Classes:
    """The fraction of examples predicted as a class that belong to it.

    Args:
      scores: ``[..., classes]``, of which the highest is the prediction; or ``[...]``, scores of the second of two
        classes, which is predicted above `threshold`.
      labels: integers ``[...]``.
      mask: ``[...]``: which examples count, or their weights.
      average: over classes: "macro" (their mean), "micro" (all examples together), "weighted" (by their labels),
        "binary" (the second of two), None (each class). By default "macro", for scores ``[...]`` "binary".
      threshold: see `scores`; 0.5 for probabilities, 0 for logits.

    Returns:
      A metric.

    >>> precision(jnp.array([0.9, 0.8, 0.3, 0.1]), jnp.array([1, 0, 1, 0])).value()
    Array(0.5, dtype=float32)
    """
    return _classes("precision", scores, labels, mask, average, threshold)


def recall(scores: Any, labels: Any, mask: Any = None, *, average: Any = "default", threshold: float = 0.5) -> Classes:
    """The fraction of the examples of a class that are predicted as it. Arguments as for `precision`.

    >>> recall(jnp.array([0.9, 0.3, 0.7, 0.1]), jnp.array([1, 1, 0, 0])).value()
    Array(0.5, dtype=float32)
    """
    return _classes("recall", scores, labels, mask, average, threshold)


def f1(scores: Any, labels: Any, mask: Any = None, *, average: Any = "default", threshold: float = 0.5) -> Classes:
    """The harmonic mean of precision and recall. Arguments as for `precision`.

    >>> f1(jnp.array([0.9, 0.8, 0.3, 0.1]), jnp.array([1, 0, 1, 0])).value()
    Array(0.5, dtype=float32)
    """
    return _classes("f1", scores, labels, mask, average, threshold)


@phlox.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Ranking(Metric):
    """AUC or average precision, which need the order of all examples: their scores, labels and weights are kept.

    The memory grows by twelve bytes for each example.
    """

    scores: Any
    labels: Any
    weights: Any
    kind: str = dataclasses.field(metadata={"static": True})

    additive: ClassVar[bool] = False

    def merged(self, other: Any) -> Any:
        join = np.concatenate if isinstance(self.scores, np.ndarray) else jnp.concatenate
        return phlox.tree.map(lambda a, b: join([a, b]), self, other)

    def value(self) -> Any:
        scores, labels, weights = (np.asarray(x) for x in (self.scores, self.labels, self.weights))
        order = np.argsort(-scores, kind="stable")
        scores, labels, weights = scores[order], labels[order] > 0, weights[order].astype(np.float64)
        ends = np.flatnonzero(np.append(np.diff(scores) != 0, len(scores) > 0))  # equal scores have one threshold
        positive, negative = (np.cumsum(np.where(own, weights, 0))[ends] for own in (labels, ~labels))
        if not len(ends) or not positive[-1] or (self.kind == "auc" and not negative[-1]):
            return np.float32(np.nan)
        if self.kind == "auc":
            x, y = (np.concatenate([[0], part / part[-1]]) for part in (negative, positive))
            return np.float32((np.diff(x) * (y[1:] + y[:-1]) / 2).sum())
        gains = np.diff(np.concatenate([[0], positive / positive[-1]]))
        total = positive + negative
        return np.float32((gains * np.divide(positive, total, out=np.zeros_like(total), where=total > 0)).sum())


def _ranking(kind: str, scores: Any, labels: Any, mask: Any) -> Ranking:
    scores, labels = jnp.asarray(scores), jnp.asarray(labels)
    if scores.shape != labels.shape:
        raise ShapeError(
            f"{kind} got scores {phlox.typeof(scores).short} and labels {phlox.typeof(labels).short}",
            instead="scores [...] of the second of two classes, such as scores[..., 1], and labels [...] of 0 and 1",
            expected=scores.shape,
            got=labels.shape,
        )
    weights = _weights(kind, labels, mask)
    return Ranking(scores.astype(jnp.float32).ravel(), labels.astype(jnp.int32).ravel(), weights.ravel(), kind)


def auc(scores: Any, labels: Any, mask: Any = None) -> Ranking:
    """The area under the ROC curve: the probability that an example of the second class has the higher score.

    Args:
      scores: of the second of two classes, ``[...]``, probabilities or logits.
      labels: 0 or 1, ``[...]``.
      mask: ``[...]``: which examples count, or their weights.

    Returns:
      A metric. It keeps the scores of all examples, so that it is exact. nan without examples of both classes.

    >>> auc(jnp.array([0.1, 0.4, 0.35, 0.8]), jnp.array([0, 0, 1, 1])).value()
    np.float32(0.75)
    """
    return _ranking("auc", scores, labels, mask)


def average_precision(scores: Any, labels: Any, mask: Any = None) -> Ranking:
    """The mean of precisions at all thresholds, weighted by the gain in recall. Arguments and result as for `auc`.

    >>> average_precision(jnp.array([0.1, 0.4, 0.35, 0.8]), jnp.array([0, 0, 1, 1])).value().round(3)
    np.float32(0.833)
    """
    return _ranking("average_precision", scores, labels, mask)


@phlox.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Calibration(Metric):
    """The expected calibration error, from sums in equal intervals of confidence, f32[bins]."""

    confidence: Any
    hits: Any
    count: Any

    def value(self) -> Any:
        return jnp.abs(self.confidence - self.hits).sum() / self.count.sum()


@lenient_promotion()
def calibration_error(probabilities: Any, labels: Any, mask: Any = None, *, bins: int = 15) -> Calibration:
    """The expected calibration error: by how much confidence and accuracy differ. Source: Guo et al., 2017.

    Args:
      probabilities: ``[..., classes]``, of which the highest is the confidence; or ``[...]``, of the second of two
        classes, which are compared with the fraction of its examples.
      labels: integers ``[...]``.
      mask: ``[...]``: which examples count, or their weights.
      bins: the number of equal intervals of confidence.

    Returns:
      A metric.

    >>> calibration_error(jnp.array([0.9, 0.9, 0.9, 0.9]), jnp.array([1, 1, 1, 0])).value() < 0.1501
    Array(True, dtype=bool)
    """
    probabilities, labels = jnp.asarray(probabilities), jnp.asarray(labels)
    if probabilities.shape == labels.shape:
        confidence, hits = probabilities, labels > 0
    else:
        hits = _best("calibration_error", probabilities, labels) == labels
        confidence = probabilities.max(-1)
    weights = _weights("calibration_error", labels, mask)
    confidence = confidence.astype(jnp.float32)
    place = jnp.clip((confidence * bins).astype(jnp.int32), 0, bins - 1)
    sums = (jnp.zeros(bins, jnp.float32).at[place].add(part * weights) for part in (confidence, hits, 1.0))
    return Calibration(*sums)


@phlox.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Variance(Metric):
    """R2, from the mean of the targets, the sum of their squared deviations from it, and that of squared errors.

    Two are merged by Chan's formula, as sums of squares of numbers far from zero would lose their digits.
    """

    count: Any
    mean: Any
    deviations: Any
    errors: Any

    additive: ClassVar[bool] = False

    def merged(self, other: Any) -> Any:
        count = self.count + other.count
        share = other.count / jnp.where(count > 0, count, 1)
        step = other.mean - self.mean
        deviations = self.deviations + other.deviations + step**2 * self.count * share
        return Variance(count, self.mean + step * share, deviations, self.errors + other.errors)

    def value(self) -> Any:
        return 1 - self.errors / self.deviations


@lenient_promotion()
def r2(predictions: Any, targets: Any, mask: Any = None) -> Variance:
    """The coefficient of determination: the part of the variance of the targets that predictions explain.

    Args:
      predictions, targets: numbers of one shape.
      mask: of this shape: which of them count, or their weights.

    Returns:
      A metric.

    >>> r2(jnp.array([2.5, 0.0, 2.0, 8.0]), jnp.array([3.0, -0.5, 2.0, 7.0])).value() > 0.94
    Array(True, dtype=bool)
    """
    predictions, targets, weights = pair("r2", predictions, targets, mask)
    count = weights.sum()
    mean = (targets * weights).sum() / jnp.where(count > 0, count, 1)
    return Variance(
        count, mean, ((targets - mean) ** 2 * weights).sum(), ((predictions - targets) ** 2 * weights).sum()
    )


def pair(name: str, predictions: Any, targets: Any, mask: Any) -> tuple[Any, Any, Any]:
    """Predictions and targets in float32, zeros where the weight is 0, and the weights."""
    predictions, targets = jnp.asarray(predictions, jnp.float32), jnp.asarray(targets, jnp.float32)
    if predictions.shape != targets.shape:
        raise ShapeError(
            f"{name} got predictions {phlox.typeof(predictions).short} and targets {phlox.typeof(targets).short}",
            instead="arrays of one shape: predictions of shape (n, 1) are predictions[:, 0]",
            expected=targets.shape,
            got=predictions.shape,
        )
    weights = _weights(name, targets, mask)
    return jnp.where(weights != 0, predictions, 0), jnp.where(weights != 0, targets, 0), weights
