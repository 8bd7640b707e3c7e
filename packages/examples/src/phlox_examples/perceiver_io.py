"""``./train perceiver-io``: any set of pixels is read, and any pixel is asked for.

A transformer in which all inputs attend to each other needs time and memory as the square of their number. Perceiver IO
(Jaegle et al. 2021) lets a few learnt vectors, the latents, attend to the inputs instead, thinks in them, and is asked
questions, which attend to them:

    latents <- attend(latents, inputs),
    latents <- attend(latents, latents), some times,
    answers = attend(questions, latents).

So the time grows only linearly with inputs and with questions, and neither needs to have any form. Here the inputs are
pixels of digits: each is its place and its ink, as many of them as one likes and in any order. The questions are "which
digit is it?", and for places "how much ink is there?".

In each step a random part of the pixels is shown. In the end the network reads digits of which only few pixels are
seen, and says what is where nothing is seen; how much it errs stands beside the error of always saying the mean.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import phlox
import phlox.numpy as jnp
import phlox_data
import phlox_nn as nn
import phlox_optim as optim

from . import digits, plots, report, results
from .fitting import fit
from .options import settings_of

NAME = "perceiver-io"
FEATURES, LATENTS, THOUGHTS = 64, 16, 2
SHOWN = (4, 8, 16, 32, 64)  # pixels that are seen, in the examination


class Perceiver(nn.Layer):
    """Scores of the ten digits (n, 10) and ink of all pixels (n, 64), from ink (n, k) of pixels at positions (n, k)."""

    positions: nn.Embedding
    ink: nn.Linear
    read: nn.MultiHeadAttention
    thoughts: nn.Stack
    answer: nn.MultiHeadAttention
    norms: tuple[nn.LayerNorm, nn.LayerNorm, nn.LayerNorm]
    digit: nn.Linear
    pixel: nn.MLP

    def parameters(self) -> Any:
        normal = nn.initializers.normal(0.02)
        return {"latents": (normal, (LATENTS, FEATURES)), "which_digit": (normal, (1, FEATURES))}

    def __call__(self, ink: Any, positions: Any, seen: Any) -> Any:
        """`seen` (n, k) are bools: the others are not attended to."""
        n = len(ink)
        inputs = self.norms[0](self.ink(ink[..., None]) + self.positions(positions))
        latents = jnp.broadcast_to(self.latents, (n, LATENTS, FEATURES))
        latents = latents + self.read(self.norms[1](latents), inputs, mask=seen[:, None])
        latents = self.norms[2](self.thoughts(latents))
        questions = jnp.concatenate([self.which_digit, self.positions(jnp.arange(64))])
        questions = jnp.broadcast_to(questions, (n, 65, FEATURES))
        answers = questions + self.answer(questions, latents)
        return self.digit(answers[:, 0]), self.pixel(answers[:, 1:])[..., 0]


def network() -> Perceiver:
    """The network."""
    thought = nn.Sequential(
        nn.Residual(nn.Sequential(nn.LayerNorm(FEATURES), nn.MultiHeadAttention(FEATURES, 4))),
        nn.Residual(nn.Sequential(nn.LayerNorm(FEATURES), nn.MLP((FEATURES, 2 * FEATURES, FEATURES), nn.gelu))),
    )
    norm = nn.LayerNorm(FEATURES)
    return Perceiver(
        nn.Embedding(64, FEATURES),
        nn.Linear(1, FEATURES),
        nn.MultiHeadAttention(FEATURES, 4),
        nn.Stack(thought, THOUGHTS),
        nn.MultiHeadAttention(FEATURES, 4),
        (norm, norm, norm),
        nn.Linear(FEATURES, 10),
        nn.MLP((FEATURES, FEATURES, 1), nn.gelu),
    )


model = network()


def answers(params: Any, images: Any, seen: Any) -> Any:
    """Scores and ink, of pictures (n, 64) of which the pixels `seen` (n, 64) are shown."""
    positions = jnp.broadcast_to(jnp.arange(64), images.shape)
    return model.apply(params, jnp.where(seen, images, 0.0), positions, seen)


def random_part(key: Any, n: int) -> Any:
    """Which pixels of n pictures are seen: from 4 to all, in equal probability."""
    count_key, order_key = phlox.random.split(key)
    count = phlox.random.randint(count_key, (n, 1), 4, 65)
    rank = phlox.random.uniform(order_key, (n, 64)).argsort(1).argsort(1)
    return rank < count


def loss(params: Any, batch: dict[str, Any], key: Any) -> Any:
    """Cross entropy of the digits, and the mean square of the error of pixels that are not seen."""
    seen = random_part(key, len(batch["label"]))
    scores, ink = answers(params, batch["image"], seen)
    figures = digits.measure(scores, batch["label"])
    hidden = ~seen
    ink_error = (hidden * (ink - batch["image"]) ** 2).sum() / jnp.maximum(hidden.sum(), 1)
    return figures["loss"] + ink_error, {"accuracy": figures["accuracy"], "ink_error": ink_error}


def examine(params: Any, test: dict[str, Any], mean: Any, key: Any) -> dict[str, list[float]]:
    """Accuracies and errors of hidden pixels for each number of SHOWN, and the error of always saying the mean."""
    rank = np.asarray(phlox.random.uniform(key, test["image"].shape)).argsort(1).argsort(1)
    accuracy, error, of_mean = [], [], []
    look = phlox.jit(answers)
    for count in SHOWN:
        scores, ink = map(np.asarray, look(params, test["image"], rank < count))
        hidden = rank >= count
        accuracy.append(float((scores.argmax(1) == test["label"]).mean()))
        if hidden.any():
            error.append(float(np.sqrt(((ink - test["image"])[hidden] ** 2).mean())))
            of_mean.append(float(np.sqrt(((mean - test["image"])[hidden] ** 2).mean())))
    return {"accuracy": accuracy, "error": error, "error_of_mean": of_mean}


def draw(result: dict[str, Any], title: str) -> Figure:
    """Pictures with hidden pixels and what the network makes of them, and both examinations."""
    figure = plots.figure(title, (12, 5))
    grid = figure.add_gridspec(3, 8, width_ratios=(2, 2, 2, 2, 2, 1, 8, 8))
    names = ("seen", "said", "true")
    for column, pictures in enumerate(result["pictures"]):
        for row, pixels in enumerate(pictures):
            axes = figure.add_subplot(grid[row, column])
            # Pixels that are not seen are nan, and red.
            axes.set_facecolor("#f3c9b5")
            plots.picture(axes, pixels.reshape(8, 8))
            if column == 0:
                axes.set_ylabel(names[row])
    left, right = figure.add_subplot(grid[:, 6]), figure.add_subplot(grid[:, 7])
    left.plot(SHOWN, result["accuracy"], "o-", color=plots.ORANGE, linewidth=2)
    left.set(title="Test digits read correctly", xlabel="pixels that are seen", xscale="log", ylim=(0, 1.05))
    plots.percents(left)
    right.plot(SHOWN[:-1], result["error_of_mean"], "o-", color=plots.GREY, linewidth=2, label="always the mean")
    right.plot(SHOWN[:-1], result["error"], "o-", color=plots.BLUE, linewidth=2, label="Perceiver IO")
    right.set(title="Error of hidden pixels (deviations)", xlabel="pixels that are seen", xscale="log", ylim=(0, None))
    right.legend(frameon=False)
    for axes in (left, right):
        axes.set_xticks(SHOWN, [str(count) for count in SHOWN])
        axes.set_xticks([], minor=True)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def run(options: argparse.Namespace) -> None:
    """Trains, examines with few pixels, and draws."""
    results.make_folder(options.out, "--out")
    data = digits.load(options.seed)
    digits.steps(data, options.batch_size)
    batches = phlox_data.batches(data.train, options.batch_size, seed=options.seed, last="drop")
    params_key, noise_key, exam_key = phlox.random.split(phlox.random.key(options.seed), 3)
    rate = optim.warmup_cosine_decay_schedule(
        0.0, options.learning_rate, min(50, options.epochs * len(batches) // 2), options.epochs * len(batches)
    )
    step = optim.make_step(loss, optim.adamw(rate, weight_decay=0.01), clip=1.0)
    state, history = fit(step.init(model.init(params_key), key=noise_key), step, batches, epochs=options.epochs)

    mean = data.train["image"].mean(0)
    result: dict[str, Any] = examine(state.params, data.test, mean, exam_key)
    some = data.test["image"][:5]
    seen = np.asarray(phlox.random.uniform(phlox.random.clone(exam_key), some.shape)).argsort(1).argsort(1) < 24
    _, ink = answers(state.params, some, seen)
    result["pictures"] = list(zip(np.where(seen, some, np.nan), np.asarray(ink), some, strict=True))
    few, share = SHOWN[2], result["accuracy"][2]
    title = (
        f"{few} of 64 pixels, in any order: {share:.0%} of digits are read; of all pixels {result['accuracy'][-1]:.0%}"
    )
    names = ("accuracy", "error", "error_of_mean")
    contents = {"settings": settings_of(options), "epochs": history, "shown": list(SHOWN)}
    contents |= {name: result[name] for name in names}
    written = results.write(options, contents, draw(result, title))
    report.show(f"{share:.1%} are read from {few} pixels. Wrote {' and '.join(written)}.")
