"""The data: scikit-learn's images of handwritten digits, split into a training set and a test set."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import phlox_optim as optim
from phlox_optim import metrics

from .errors import ProgramError

TESTS = 360


class Digits(NamedTuple):
    """Both sets as dicts: ``image``, float32 of shape (n, *shape), and ``label``, int32 of shape (n,)."""

    train: dict[str, Any]
    test: dict[str, Any]


def load(seed: int, shape: tuple[int, ...] = (64,)) -> Digits:
    """The digits, split by `seed` and stratified by label, standardized to mean 0 and deviation 1 over all pixels.

    `shape` is that of a picture: (64,), or (8, 8, 1) for convolutions.
    """
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images, labels.astype("int32"), test_size=TESTS, stratify=labels, random_state=seed)
    train_images, test_images, train_labels, test_labels = parts
    mean, deviation = np.mean(train_images), np.std(train_images)

    def part(images: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
        return {"image": ((images - mean) / deviation).astype("float32").reshape(-1, *shape), "label": labels}

    return Digits(part(train_images, train_labels), part(test_images, test_labels))


def steps(digits: Digits, batch_size: int) -> int:
    """The number of full batches of an epoch. Raises `ProgramError` if there are none."""
    count = len(digits.train["label"])
    if batch_size > count:
        raise ProgramError(f"--batch-size {batch_size}: there are only {count} pictures to learn from")
    return count // batch_size


def measure(scores: Any, labels: Any) -> dict[str, Any]:
    """The mean cross entropy of scores (n, 10) and labels (n,), as ``loss``, and the ``accuracy``."""
    losses = optim.softmax_cross_entropy_with_integer_labels(scores, labels)
    return {"loss": losses.mean(), "accuracy": metrics.accuracy(scores, labels)}
