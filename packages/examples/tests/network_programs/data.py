"""What the programs learn from: scikit-learn's digits, and sequences made here. NumPy arrays, the same for both twins."""

import functools

import numpy as np


@functools.cache
def _digits():
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return (images / 16).astype(np.float32).reshape(-1, 8, 8, 1), labels.astype(np.int32)


def digits(steps, size=64):
    """Batches of handwritten digits: images (size, 8, 8, 1) from 0 to 1, and labels (size,)."""
    images, labels = _digits()
    rng = np.random.default_rng(0)
    for _ in range(steps):
        chosen = rng.integers(0, len(images), size)
        yield images[chosen], labels[chosen]


TEXT = "the quick brown fox jumps over the lazy dog and runs away; "
CHARACTERS = sorted(set(TEXT))


def characters(steps, size=16, length=32):
    """Batches of text as numbers of characters: (size, length + 1)."""
    numbers = np.array([CHARACTERS.index(c) for c in TEXT * 3], np.int32)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        starts = rng.integers(0, len(TEXT), size)
        yield np.stack([numbers[s : s + length + 1] for s in starts])


def sentences(steps, size=32, length=12, words=20):
    """Batches of sentences of different lengths: words (size, length), tags (size, length) and lengths (size,).

    A word's tag is 0, 1 or 2: whether it is below, equal to or above the word before it.
    """
    rng = np.random.default_rng(0)
    for _ in range(steps):
        tokens = rng.integers(1, words, (size, length))
        before = np.pad(tokens, ((0, 0), (1, 0)))[:, :-1]
        tags = 1 + np.sign(tokens - before)
        yield tokens.astype(np.int32), tags.astype(np.int32), rng.integers(4, length + 1, size).astype(np.int32)
