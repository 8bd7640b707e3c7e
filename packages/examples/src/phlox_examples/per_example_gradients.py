"""``./train per-example-gradients``: wrong labels are found by the gradients of single examples.

A training step needs the mean of the gradients of a batch, and libraries compute nothing else. In phlox the loss is
written for one example, and its gradient by `grad`; `vmap` makes of it a function for all examples at once:

    grad(loss)(params, image, label)                            the gradient of one example
    vmap(grad(loss), in_axes=(None, 0, 0))(params, images, labels)   those of all, in one program

Here some labels are wrong on purpose. Early in training the network has learnt what most examples say: those with
wrong labels pull it elsewhere, and their gradients are long. So the examples whose gradients are longest are the ones
to look at, without knowing any right label.
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

model = nn.MLP((64, 128, 10), nn.relu)


def loss_of_one(params: Any, image: Any, label: Any) -> Any:
    """The loss of one example."""
    return optim.softmax_cross_entropy_with_integer_labels(model.apply(params, image), label)


def loss(params: Any, batch: Any) -> Any:
    """The mean loss of a batch."""
    return phlox.vmap(loss_of_one, in_axes=(None, 0, 0))(params, batch["image"], batch["label"]).mean()


@phlox.jit
def norms(params: Any, images: Any, labels: Any) -> Any:
    """The norm of the gradient of each example, over all parameters."""
    gradients = phlox.vmap(phlox.grad(loss_of_one), in_axes=(None, 0, 0))(params, images, labels)
    return phlox.vmap(optim.global_norm)(gradients)


def run(options: argparse.Namespace) -> None:
    """Makes labels wrong, trains a little, and draws whose gradients are longest."""
    results.make_folder(options.out, "--out")
    train = digits.load(options.seed).train
    digits.steps(digits.Digits(train, train), options.batch_size)
    rng = np.random.default_rng(options.seed)
    true = train["label"]
    wrong = np.zeros(len(true), bool)
    wrong[rng.choice(len(true), options.wrong, replace=False)] = True
    # Another digit than the true one.
    labels = np.where(wrong, (true + rng.integers(1, 10, len(true))) % 10, true).astype("int32")

    batches = phlox_data.batches(
        {"image": train["image"], "label": labels}, options.batch_size, seed=options.seed, last="drop"
    )
    step = optim.make_step(loss, optim.adam(options.learning_rate))
    state, history = fit(step.init(model.init(phlox.random.key(options.seed))), step, batches, epochs=options.epochs)

    lengths = np.asarray(norms(state.params, train["image"], labels))
    order = np.argsort(-lengths)
    hits = int(wrong[order[: options.wrong]].sum())
    title = f"{hits} of {options.wrong} wrong labels are among the {options.wrong} longest gradients"
    figure = plots.figure(title, (11, 5))
    left, right = figure.subfigures(1, 2)
    axes = left.subplots()
    bins = np.geomspace(max(lengths.min(), 1e-4), lengths.max(), 40)
    axes.hist(lengths[~wrong], bins, color=plots.BLUE, alpha=0.7, label=f"{(~wrong).sum()} with the right label")
    axes.hist(lengths[wrong], bins, color=plots.ORANGE, alpha=0.8, label=f"{options.wrong} with a wrong label")
    axes.set(xscale="log", xlabel="norm of the gradient of one example", ylabel="examples")
    axes.legend(frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    right.suptitle("The longest gradients, and their labels (orange: wrong on purpose)", fontsize=10)
    for axes, place in zip(right.subplots(4, 6).flat, order, strict=False):
        plots.picture(
            axes, train["image"][place].reshape(8, 8), f"“{labels[place]}”", plots.ORANGE if wrong[place] else "black"
        )
    contents = {
        "settings": settings_of(options),
        "epochs": history,
        "found": hits,
        "share_found": hits / options.wrong,
    }
    written = results.write(options, contents, figure)
    report.show(f"Found {hits} of {options.wrong} wrong labels. Wrote {' and '.join(written)}.")
