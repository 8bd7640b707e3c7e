"""Handwritten digits for the tasks: arrays, and their batches."""

import numpy as np
from sklearn.datasets import load_digits

IMAGES, LABELS = load_digits(return_X_y=True)
IMAGES, LABELS = (IMAGES / 16).astype(np.float32), LABELS.astype(np.int32)
X, Y, X_VALID, Y_VALID = IMAGES[:1536], LABELS[:1536], IMAGES[1536:], LABELS[1536:]
BATCHES = [(X[n : n + 64], Y[n : n + 64]) for n in range(0, 1536, 64)]
VALID = [(X_VALID, Y_VALID)]
#: prompts for a language model of 50 tokens, and how many tokens continue them
TOKENS, NEW_TOKENS = np.arange(1, 17, dtype=np.int32).reshape(2, 8) * 3, 16
