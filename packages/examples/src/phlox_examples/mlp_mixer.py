"""``./train mlp-mixer``: reading digits without convolutions and without attention.

A picture is cut into 16 patches, each a vector of 64 features: a matrix x of 16 x 64. An MLP-mixer (Tolstikhin et al.
2021) applies two small networks in turn, one along columns, which mixes places, and one along rows, which mixes
features:

    x = x + mlp1(norm(x)^T)^T,      x = x + mlp2(norm(x)).

All features share mlp1, and all places share mlp2. What places mlp1 of the first block compares can be seen in its
weights, one picture of 4 x 4 for each hidden unit.
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


class Mixer(nn.Layer):
    """A block: mixes places, then features."""

    norm1: nn.LayerNorm
    places: nn.MLP
    norm2: nn.LayerNorm
    features: nn.MLP

    def __call__(self, x: Any) -> Any:
        """The block applied to arrays (n, 16, 64)."""
        x = x + self.places(self.norm1(x).mT).mT
        return x + self.features(self.norm2(x))


block = Mixer(nn.LayerNorm(64), nn.MLP((16, 32, 16)), nn.LayerNorm(64), nn.MLP((64, 128, 64)))
model = nn.Sequential(
    *(nn.Conv(1, 64, (2, 2), strides=2), lambda x: x.reshape(len(x), 16, 64)),
    *(nn.Stack(block, 4), nn.LayerNorm(64), nn.global_avg_pool, nn.Linear(64, 10)),
)


def loss(params: Any, batch: Any) -> Any:
    """The loss of a batch, and beside it the accuracy."""
    figures = measure(params, batch)
    return figures.pop("loss"), figures


def measure(params: Any, batch: Any) -> Any:
    """Loss and accuracy."""
    return digits.measure(model.apply(params, batch["image"]), batch["label"])


def run(options: argparse.Namespace) -> None:
    """Trains, and draws which places the first block compares."""
    results.make_folder(options.out, "--out")
    data = digits.load(options.seed, (8, 8, 1))
    steps = digits.steps(data, options.batch_size)
    batches = phlox_data.batches(data.train, options.batch_size, seed=options.seed, last="drop")

    rate = optim.cosine_decay_schedule(options.learning_rate, options.epochs * steps)
    # The moving average of parameters reads better than the last ones: the figures of the test are its own.
    step = optim.make_step(loss, optim.adamw(rate, weight_decay=0.01), clip=1.0, ema=0.97)
    state = step.init(model.init(phlox.random.key(options.seed)))
    evaluate = optim.make_evaluation(measure, [phlox.device_put(data.test)], prefix="test_")
    state, history = fit(state, step, batches, epochs=options.epochs, evaluate=evaluate)

    accuracy = history[-1]["test_ema_accuracy"]
    figure = plots.figure(f"An MLP-mixer reads {accuracy:.1%} of unseen digits", (11, 5))
    left, right = figure.subfigures(1, 2, width_ratios=(1.4, 1))
    plots.loss_curves(left.subplots(), history, {"loss": "training", "test_ema_loss": "test"})
    right.suptitle(
        "What the 32 hidden units of the first block make of\nthe 4 x 4 places (red: they add, blue: they subtract)",
        fontsize=10,
    )
    # A stack has the parameters of its layers along the first axis.
    weights = next(x for x in phlox.tree.leaves(state.ema["2"]) if x.shape == (4, 16, 32))
    for axes, unit in zip(right.subplots(6, 6).flat, [*np.asarray(weights)[0].T, *[None] * 4], strict=True):
        if unit is None:
            axes.axis("off")
            continue
        plots.signed(axes, unit.reshape(4, 4))
    contents = {"settings": settings_of(options), "epochs": history, "test_accuracy": accuracy}
    written = results.write(options, contents, figure)
    report.show(f"Test accuracy: {accuracy:.2%}. Wrote {' and '.join(written)}.")
