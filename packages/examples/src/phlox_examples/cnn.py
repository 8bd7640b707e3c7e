"""``./train cnn``: a convolutional network reads handwritten digits, which a PyTorch DataLoader brings.

A convolution computes each output pixel from a small neighbourhood, with the same weights everywhere:

    y[i, j, c] = sum over (a, b, d) of  w[a, b, d, c] x[i + a, j + b, d].

So what is learnt about a stroke in one corner holds in all others. Two convolutions, each followed by averaging over
2 x 2 pixels, make 2 x 2 places with 64 channels out of a picture; two linear layers make scores of them.

Two layers behave otherwise in training than afterwards. BatchNorm standardizes each channel by mean and variance of
the batch, and afterwards by running averages of these: the state of the network, which is not learnt by gradients.
Dropout sets a random quarter of activations to zero. In phlox_nn state and keys go into `apply` and come out of it.
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

model = nn.Sequential(
    *(nn.Conv(1, 32, (3, 3)), nn.BatchNorm(32), nn.relu, nn.avg_pool((2, 2))),
    *(nn.Conv(32, 64, (3, 3)), nn.BatchNorm(64), nn.relu, nn.avg_pool((2, 2))),
    *(nn.flatten, nn.Linear(256, 128), nn.relu, nn.Dropout(0.25), nn.Linear(128, 10)),
)


def loss(params: Any, batch: Any, state: Any, key: Any) -> Any:
    """The loss of a batch, and beside it the accuracy and the new state."""
    scores, state = model.apply(params, batch["image"], state=state, key=key, train=True)
    figures = digits.measure(scores, batch["label"])
    return figures.pop("loss"), {**figures, "state": state}


def measure(params: Any, batch: Any, state: Any) -> Any:
    """Loss and accuracy, without dropout and with the running averages of BatchNorm."""
    scores, _ = model.apply(params, batch["image"], state=state)
    return digits.measure(scores, batch["label"])


def run(options: argparse.Namespace) -> None:
    """Trains, and draws the filters of the first convolution and the digits that are misread."""
    results.make_folder(options.out, "--out")
    torch = phlox_data.require("torch")

    # 1. The data, as one has it in PyTorch: a dataset with an element for each picture, and a loader.
    data = digits.load(options.seed, (8, 8, 1))
    digits.steps(data, options.batch_size)
    pictures = [dict(zip(data.train, values, strict=True)) for values in zip(*data.train.values(), strict=True)]

    def loader(epoch: int) -> Any:
        order = torch.Generator().manual_seed(options.seed + epoch)
        return torch.utils.data.DataLoader(
            pictures, options.batch_size, shuffle=True, generator=order, drop_last=True, collate_fn=phlox_data.collate
        )

    # 2. The training.
    step = optim.make_step(loss, optim.adamw(options.learning_rate))
    params_key, dropout_key = phlox.random.split(phlox.random.key(options.seed))
    state = step.init(model.init(params_key), state=model.init_state(), key=dropout_key)
    tests = phlox.device_put(data.test)
    evaluate = optim.make_evaluation(measure, [tests], prefix="test_")
    batches = phlox_data.from_torch(loader)
    state, history = fit(state, step, batches, epochs=options.epochs, evaluate=evaluate)

    # 3. The picture: how it went, what the first layer looks for, and where the network errs.
    scores, _ = phlox.jit(model.apply)(state.params, tests["image"], state=state.state)
    read, labels = np.asarray(scores).argmax(1), data.test["label"]
    accuracy = history[-1]["test_accuracy"]
    figure = plots.figure(f"A convolutional network reads {accuracy:.1%} of unseen digits", (11, 5))
    left, middle, right = figure.subfigures(1, 3, width_ratios=(1.4, 1, 1))
    plots.loss_curves(left.subplots(), history, {"loss": "training", "test_loss": "test"})
    middle.suptitle("The 32 filters of the first convolution\n(blue: negative, red: positive)", fontsize=10)
    filters = np.asarray(state.params["0"]["weight"])
    for axes, number in zip(middle.subplots(8, 4).flat, range(32), strict=True):
        plots.signed(axes, filters[..., 0, number])
    wrong = np.flatnonzero(read != labels)
    right.suptitle(f"{len(wrong)} of {len(labels)} are misread" if len(wrong) else "None is misread", fontsize=10)
    for axes, place in zip(right.subplots(4, 3).flat, [*wrong[:12], *[None] * 12], strict=False):
        axes.axis("off")
        if place is not None:
            plots.picture(axes, data.test["image"][place], f"{labels[place]} read as {read[place]}", plots.ORANGE)
    contents = {"settings": settings_of(options), "epochs": history, "test_accuracy": accuracy}
    written = results.write(options, contents, figure)
    report.show(f"Test accuracy: {accuracy:.2%}. Wrote {' and '.join(written)}.")
