"""``./train vit``: a vision transformer reads handwritten digits, and finds out by itself how patches lie.

A transformer works on a set of vectors. To make one of a picture, cut it into 16 patches of 2 x 2 pixels, multiply each
by a matrix, and add to each the vector of its position, which is learnt like all other parameters (Dosovitskiy et al.
2020). Each block then lets patches look at each other,

    x = x + attention(norm(x)),      attention: softmax(q k^T / sqrt(d)) v,   q, k, v linear in x,

and changes each by itself, x = x + mlp(norm(x)). The mean over patches goes to a linear layer.

Nothing tells the network that patch 5 lies beside patch 6: the picture shows what its position vectors know of it.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import phlox
import phlox_data
import phlox_nn as nn
import phlox_optim as optim

from . import digits, plots, report, results
from .fitting import fit
from .options import settings_of

FEATURES, PATCHES = 64, 16


class ViT(nn.Layer):
    """The network: patches, their positions, blocks, and a linear layer for the mean."""

    patches: nn.Conv
    blocks: nn.Stack
    norm: nn.LayerNorm
    head: nn.Linear

    def parameters(self) -> dict[str, Any]:
        """The vectors of positions."""
        return {"positions": (nn.initializers.normal(0.02), (PATCHES, FEATURES))}

    def __call__(self, images: Any) -> Any:
        """Scores (n, 10) of pictures (n, 8, 8, 1)."""
        x = self.patches(images).reshape(len(images), PATCHES, FEATURES) + self.positions
        return self.head(self.norm(self.blocks(x)).mean(1))


block = nn.Sequential(
    nn.Residual(nn.Sequential(nn.LayerNorm(FEATURES), nn.MultiHeadAttention(FEATURES, 4))),
    nn.Residual(nn.Sequential(nn.LayerNorm(FEATURES), nn.MLP((FEATURES, 4 * FEATURES, FEATURES)), nn.Dropout(0.1))),
)
# A convolution whose windows do not overlap multiplies each patch by one matrix.
patches = nn.Conv(1, FEATURES, (2, 2), strides=2)
model = ViT(patches, nn.Stack(block, 4), nn.LayerNorm(FEATURES), nn.Linear(FEATURES, 10))


def loss(params: Any, batch: Any, key: Any) -> Any:
    """The loss of a batch, and beside it the accuracy."""
    found = digits.measure(model.apply(params, batch["image"], key=key, train=True), batch["label"])
    return found.pop("loss"), found


def measure(params: Any, batch: Any) -> Any:
    """Loss and accuracy, without dropout."""
    return digits.measure(model.apply(params, batch["image"]), batch["label"])


def run(options: argparse.Namespace) -> None:
    """Trains, and draws how alike the vectors of positions are."""
    results.make_folder(options.out, "--out")
    data = digits.load(options.seed, (8, 8, 1))
    steps = digits.steps(data, options.batch_size)
    batches = phlox_data.batches(data.train, options.batch_size, seed=options.seed, last="drop")

    # Transformers need small steps at first, and clipped gradients.
    total = options.epochs * steps
    rate = optim.warmup_cosine_decay_schedule(0.0, options.learning_rate, total // 10, total)
    step = optim.make_step(loss, optim.adamw(rate, weight_decay=0.01), clip=1.0)
    params_key, dropout_key = phlox.random.split(phlox.random.key(options.seed))
    state = step.init(model.init(params_key), key=dropout_key)
    evaluate = optim.make_evaluation(measure, [phlox.device_put(data.test)], prefix="test_")
    state, history = fit(state, step, batches, epochs=options.epochs, evaluate=evaluate)

    vectors = np.asarray(state.params["positions"])
    vectors = vectors - vectors.mean(0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = vectors @ vectors.T
    rows, columns = np.divmod(np.arange(PATCHES), 4)
    distance = np.abs(rows[:, None] - rows) + np.abs(columns[:, None] - columns)
    beside, far = float(alike[distance == 1].mean()), float(alike[distance > 3].mean())

    accuracy = history[-1]["test_accuracy"]
    figure = plots.figure(f"A vision transformer reads {accuracy:.1%} of unseen digits", (11, 5))
    left, right = figure.subfigures(1, 2, width_ratios=(1.3, 1))
    plots.loss_curves(left.subplots(), history, {"loss": "training", "test_loss": "test"})
    right.suptitle(
        "How alike the position vector of each patch is to those of all\n"
        f"(red: alike; on average {beside:+.2f} for neighbours, {far:+.2f} far away)",
        fontsize=10,
    )
    for axes, values in zip(right.subplots(4, 4).flat, alike, strict=True):
        plots.signed(axes, values.reshape(4, 4), 1.0)
    contents = {
        "settings": settings_of(options),
        "epochs": history,
        "test_accuracy": accuracy,
        "similarity_of_neighbours": beside,
        "similarity_far_away": far,
    }
    written = results.write(options.out, "vit", contents, figure)
    report.show(f"Test accuracy: {accuracy:.2%}. Wrote {' and '.join(written)}.")
