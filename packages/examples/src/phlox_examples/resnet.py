"""``./train resnet``: shortcuts make deep networks trainable.

A block of a residual network (He et al. 2015) computes a change of its input, not its output:

    y = relu(x + f(x)),      f: convolution, BatchNorm, relu, convolution, BatchNorm.

The derivative of y with respect to x is the identity plus that of f. Through many blocks gradients therefore reach the
first layers undiminished; without the identity they are products of many matrices, which vanish or explode.

This program trains the same deep network twice, with ``x +`` and without it, from the same first parameters and with
the same batches. `nn.Stack` makes a chain of equal blocks, compiled once as a loop.
"""

from __future__ import annotations

import argparse
from typing import Any

import phlox
import phlox_data
import phlox_nn as nn
import phlox_optim as optim

from . import digits, plots, report, results
from .fitting import fit
from .options import settings_of

CHANNELS = 16


class Block(nn.Layer):
    """Two convolutions, and the input added to what they make, unless it is to do without."""

    convolutions: nn.Layer
    shortcut: bool

    def __call__(self, x: Any) -> Any:
        """The block applied to arrays (n, 4, 4, CHANNELS)."""
        change = self.convolutions(x)
        return nn.relu(x + change if self.shortcut else change)


def network(blocks: int, shortcut: bool) -> nn.Layer:
    """A network of so many blocks."""
    convolution, norm = nn.Conv(CHANNELS, CHANNELS, (3, 3), use_bias=False), nn.BatchNorm(CHANNELS)
    block = Block(nn.Sequential(convolution, norm, nn.relu, convolution, norm), shortcut)
    return nn.Sequential(
        *(nn.Conv(1, CHANNELS, (3, 3), strides=2, use_bias=False), norm, nn.relu),
        *(nn.Stack(block, blocks), nn.global_avg_pool, nn.Linear(CHANNELS, 10)),
    )


def run(options: argparse.Namespace) -> None:
    """Trains with shortcuts and without, and draws both."""
    results.make_folder(options.out, "--out")
    data = digits.load(options.seed, (8, 8, 1))
    digits.steps(data, options.batch_size)
    batches = phlox_data.batches(data.train, options.batch_size, seed=options.seed, last="drop")
    tests = [phlox.device_put(data.test)]

    histories = []
    for shortcut in (True, False):
        report.show(f"{options.blocks} blocks {'with' if shortcut else 'without'} shortcuts")
        model = network(options.blocks, shortcut)

        def loss(params: Any, batch: Any, state: Any, model: nn.Layer = model) -> Any:
            scores, state = model.apply(params, batch["image"], state=state, train=True)
            figures = digits.measure(scores, batch["label"])
            return figures.pop("loss"), {**figures, "state": state}

        def measure(params: Any, batch: Any, state: Any, model: nn.Layer = model) -> Any:
            return digits.measure(model.apply(params, batch["image"], state=state)[0], batch["label"])

        step = optim.make_step(loss, optim.sgd(options.learning_rate, momentum=0.9))
        state = step.init(model.init(phlox.random.key(options.seed)), state=model.init_state())
        evaluate = optim.make_evaluation(measure, tests, prefix="test_")
        histories.append(fit(state, step, batches, epochs=options.epochs, evaluate=evaluate)[1])

    with_them, without = (history[-1]["test_accuracy"] for history in histories)
    layers = 2 * options.blocks + 2
    figure = plots.figure(f"{layers} layers: {with_them:.1%} of digits read with shortcuts, {without:.1%} without")
    left, right = figure.subplots(1, 2)
    for history, color, name in zip(histories, (plots.BLUE, plots.ORANGE), ("with", "without"), strict=True):
        epochs = [row["epoch"] for row in history]
        plots.curve(left, epochs, [row["loss"] for row in history], color, name)
        plots.curve(right, epochs, [row["test_accuracy"] for row in history], color, name)
    left.set(title="Loss of training pictures", xlabel="epoch", ylabel="cross entropy (nats)", yscale="log")
    right.set(title="Accuracy on test pictures", xlabel="epoch", ylabel="read correctly")
    plots.percents(right)
    plots.part_names(left)
    plots.part_names(right)
    contents = {
        "settings": settings_of(options),
        "with_shortcuts": histories[0],
        "without_shortcuts": histories[1],
        "test_accuracy": with_them,
    }
    written = results.write(options, contents, figure)
    report.show(f"Test accuracy: {with_them:.2%}, and {without:.2%} without shortcuts. Wrote {' and '.join(written)}.")
