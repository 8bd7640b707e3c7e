"""``./train tf-digits``: a network learns digits that tf.data shuffles, shifts and batches.

Many pipelines of data are written for TensorFlow. `phlox_data.from_tf` reads a `tf.data.Dataset` as it is, in a thread
of its own: the next batch is made while the current step computes. TensorFlow never touches a GPU.

The pipeline here moves each picture by up to a pixel in both directions, anew in each epoch. A network that has seen a
stroke in several places reads it in others too: the picture compares how well digits are read that are moved in the
test as well, by a network that learnt from moved pictures and one that did not.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np

import phlox
import phlox_data
import phlox_nn as nn
import phlox_optim as optim

from . import digits, plots, report, results
from .fitting import fit
from .options import settings_of

model = nn.Sequential(nn.flatten, nn.MLP((64, 256, 128, 10), nn.relu))


def measure(params: Any, batch: Any) -> Any:
    """Loss and accuracy."""
    return digits.measure(model.apply(params, batch["image"]), batch["label"])


def loss(params: Any, batch: Any) -> Any:
    """The loss of a batch, and beside it the accuracy."""
    figures = measure(params, batch)
    return figures.pop("loss"), figures


def run(options: argparse.Namespace) -> None:
    """Trains with moved pictures and with pictures as they are, and draws both."""
    results.make_folder(options.out, "--out")
    # Suppresses TensorFlow's messages about the CPU at import.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    tf = phlox_data.require("tensorflow")

    # 1. The data, as one has it in TensorFlow.
    data = digits.load(options.seed, (8, 8, 1))
    digits.steps(data, options.batch_size)
    background = float(data.train["image"].min())

    def moved(example: Any, number: Any) -> Any:
        """The picture, moved by -1, 0 or 1 pixels along both axes; what comes in at the sides is background."""
        by = tf.random.stateless_uniform([2], number, 0, 3, tf.int32)
        wide = tf.pad(example["image"], [[1, 1], [1, 1], [0, 0]], constant_values=background)
        return {**example, "image": tf.slice(wide, [by[0], by[1], 0], [8, 8, 1])}

    def pipeline(part: Any, epoch: int, move: bool) -> Any:
        pictures = tf.data.Dataset.from_tensor_slices(part).shuffle(len(part["label"]), seed=options.seed + epoch)
        if move:
            numbers = tf.data.Dataset.random(seed=options.seed + epoch, rerandomize_each_iteration=False).batch(2)
            pictures = tf.data.Dataset.zip(pictures, numbers).map(moved, num_parallel_calls=2)
        return pictures.batch(options.batch_size, drop_remainder=True)

    # 2. The tests: each test picture, moved in all nine ways.
    wide = np.pad(data.test["image"], ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=background)
    nine = [wide[:, i : i + 8, j : j + 8] for i in range(3) for j in range(3)]
    tests = phlox.device_put({"image": np.concatenate(nine), "label": np.tile(data.test["label"], 9)})
    evaluate = optim.make_evaluation(measure, [tests], prefix="test_")

    # 3. Two trainings, which differ by the pipeline only.
    histories = []
    for move in (True, False):
        report.show(f"Pictures {'moved in each epoch anew' if move else 'as they are'}")
        step = optim.make_step(loss, optim.adam(options.learning_rate))
        state = step.init(model.init(phlox.random.key(options.seed)))
        batches = phlox_data.from_tf(lambda epoch, move=move: pipeline(data.train, epoch, move))
        histories.append(fit(state, step, batches, epochs=options.epochs, evaluate=evaluate)[1])

    # 4. The picture.
    moved_accuracy, plain_accuracy = (history[-1]["test_accuracy"] for history in histories)
    title = (
        f"Moved digits: {moved_accuracy:.1%} are read after learning from moved ones, {plain_accuracy:.1%} otherwise"
    )
    figure = plots.figure(title, (11, 4.8))
    left, right = figure.subfigures(1, 2)
    left.suptitle("The first pictures of a batch from tf.data", fontsize=10)
    batch = next(iter(pipeline(data.train, 0, True)))
    for axes, image in zip(left.subplots(3, 5).flat, np.asarray(batch["image"]), strict=False):
        plots.picture(axes, image)
    axes = right.subplots()
    for history, color, name in zip(histories, (plots.BLUE, plots.ORANGE), ("moved", "as they are"), strict=True):
        plots.curve(axes, [row["epoch"] for row in history], [row["test_accuracy"] for row in history], color, name)
    axes.set(title="Accuracy on moved test pictures", xlabel="epoch", ylabel="read correctly")
    plots.percents(axes)
    plots.part_names(axes)
    contents = {
        "settings": settings_of(options),
        "moved": histories[0],
        "as_they_are": histories[1],
        "test_accuracy": moved_accuracy,
    }
    written = results.write(options, contents, figure)
    report.show(f"Test accuracy: {moved_accuracy:.2%}, {plain_accuracy:.2%} otherwise. Wrote {' and '.join(written)}.")
