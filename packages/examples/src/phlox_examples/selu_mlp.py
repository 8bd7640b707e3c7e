"""``./train selu-mlp``: trains a SELU network to classify handwritten digits."""

from __future__ import annotations

import argparse
import contextlib

import numpy as np

import phlox

from . import digits, plots, report, results
from .checkpoints import Checkpoints
from .feeds import feed
from .network import train_epoch, training
from .options import settings_of

FIGURES = ("loss", "test_loss", "test_accuracy")  # metrics of an epoch; `loss` is the mean over its steps


def run(options: argparse.Namespace) -> None:
    """Trains, prints the metrics of each epoch, and writes the results."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    data = digits.load(settings.seed)
    steps = digits.steps(data, settings.batch_size)
    batches = feed(options.loader, data.train, settings.batch_size, settings.seed, options.out)
    tests = phlox.device_put(data.test)

    init, step, evaluate = map(phlox.jit, training(settings, settings.epochs * steps))
    state = init(phlox.random.key(settings.seed))
    history: list[list[float]] = []

    with contextlib.ExitStack() as stack:
        checkpoints = None
        if options.checkpoint is not None:
            agreed = {**settings._asdict(), "loader": options.loader}
            checkpoints = stack.enter_context(Checkpoints(options.checkpoint, agreed))
            state, history = checkpoints.resume(state, len(FIGURES))
            if history:
                report.show(f"Epochs 1 to {len(history)} are in {options.checkpoint}.")
        bar = report.progress("Training", steps * settings.epochs, done=steps * len(history))
        shown = stack.enter_context(bar)
        shown.row("epoch", "loss", "test loss", "test accuracy")
        for epoch in range(len(history), settings.epochs):
            state, losses = train_epoch(step, state, shown.counted(batches.epoch(epoch)))
            test_loss, accuracy = evaluate(state.params, tests)
            history.append([float(np.mean(losses)), float(test_loss), float(accuracy)])
            shown.row(f"{epoch + 1}", f"{history[-1][0]:.4f}", f"{test_loss:.4f}", f"{accuracy:.2%}")
            if checkpoints is not None:
                checkpoints.save(state, history)

    accuracy = history[-1][-1]
    title = f"A SELU network reads {accuracy:.1%} of unseen digits after {settings.epochs} epochs"
    contents = {
        "settings": {**settings._asdict(), "loader": options.loader},
        "epochs": [{"epoch": n, **dict(zip(FIGURES, row, strict=True))} for n, row in enumerate(history, 1)],
        "test_accuracy": accuracy,
    }
    written = results.write(options.out, "selu-mlp", contents, plots.learning_curves(history, title))
    report.show(f"Test accuracy: {accuracy:.2%}. Wrote {' and '.join(written)}.")
