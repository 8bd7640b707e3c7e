"""``./train vit``: a vision transformer reads handwritten digits, and shows where it looks.

A transformer works on a set of vectors. To make one of a picture, cut it into 16 patches of 2 x 2 pixels, multiply each
by a matrix, and add to each the vector of its position, which is learnt like all other parameters (Dosovitskiy et al.
2020). Each block then lets patches look at each other,

    x = x + attention(norm(x)),      attention: softmax(q k^T / sqrt(d)) v,   q, k, v linear in x,

and changes each by itself, x = x + mlp(norm(x)). The mean over patches goes to a linear layer.

1437 pictures are few for a transformer, which knows nothing of space beforehand: noise on the pictures and dropout keep
it from learning them by heart. Where it looks is asked by a derivative: that of the score of the digit with respect to
the pixels, by `grad`, for many pictures at once by `vmap`.
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
NOISE = 0.5  # standard deviation of the noise that is added to training pictures, whose own is 1


class ViT(nn.Layer):
    """The network: patches, their positions, blocks, and a linear layer for the mean."""

    patches: nn.Conv
    blocks: nn.Stack
    norm: nn.LayerNorm
    head: nn.Linear

    def parameters(self) -> dict[str, Any]:
        """The vectors of positions."""
        return {"positions": (nn.initializers.normal(0.5), (PATCHES, FEATURES))}

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
    noise_key, dropout_key = phlox.random.split(key)
    images = batch["image"] + NOISE * phlox.random.normal(noise_key, batch["image"].shape)
    figures = digits.measure(model.apply(params, images, key=dropout_key, train=True), batch["label"])
    return figures.pop("loss"), figures


def measure(params: Any, batch: Any) -> Any:
    """Loss and accuracy, without dropout."""
    return digits.measure(model.apply(params, batch["image"]), batch["label"])


def score(params: Any, image: Any, label: Any) -> Any:
    """The logarithm of the probability that the network gives to a label of one picture."""
    return nn.log_softmax(model.apply(params, image[None])[0])[label]


def run(options: argparse.Namespace) -> None:
    """Trains, and draws on which pixels the scores depend."""
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

    accuracy = history[-1]["test_accuracy"]
    figure = plots.figure(f"A vision transformer reads {accuracy:.1%} of unseen digits", (11, 5))
    left, right = figure.subfigures(1, 2, width_ratios=(1.2, 1))
    plots.loss_curves(left.subplots(), history, {"loss": "training, with noise", "test_loss": "test"})
    # Of each digit the first two test pictures.
    chosen = np.concatenate([np.flatnonzero(data.test["label"] == digit)[:2] for digit in range(10)])
    images, labels = data.test["image"][chosen], data.test["label"][chosen]
    slopes = np.asarray(phlox.jit(phlox.vmap(phlox.grad(score, argnums=1), (None, 0, 0)))(state.params, images, labels))
    right.suptitle("Where ink speaks for the digit (red) and where against it (blue)", fontsize=10)
    for axes, image, slope in zip(right.subplots(4, 5).flat, images, slopes, strict=True):
        plots.signed(axes, slope.squeeze())
        axes.contour(image.squeeze(), levels=[0.2], colors="black", linewidths=1)
    contents = {"settings": settings_of(options), "epochs": history, "test_accuracy": accuracy}
    written = results.write(options, contents, figure)
    report.show(f"Test accuracy: {accuracy:.2%}. Wrote {' and '.join(written)}.")
