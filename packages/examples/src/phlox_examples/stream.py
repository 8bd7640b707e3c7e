"""``./train stream``: learning from a source that never ends and slowly changes.

Items (x, y) come one after the other, y = w . x + noise, and nobody knows w, which wanders: with each item each of its
numbers moves at random by sqrt(q). There is no training set, no epoch and no end. Each item is first predicted, then
learnt, then forgotten; so the mean error of the predictions is an honest one, and memory does not grow.

The simplest learner makes a gradient step with each item, of rate m (Widrow and Hoff 1960):

    w' <- w' + m (y - w' . x) x.

With a small m it lags behind, with a large one it follows the noise. For independent normal x its excess, the mean of
|w - w'|^2 by which the squared error of predictions is above that of the noise s^2, is known exactly, in d dimensions:

    excess = d (m^2 s^2 + q) / (2 m - m^2 (d + 2)).

Nine rates run side by side by `vmap`, and must fall on this curve. The best possible learner is Kalman's filter, which
knows q and s; a learner that is frozen after the first items gets worse by d q with each one.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import phlox
import phlox.numpy as jnp
import phlox_data

from . import plots, report, results
from .options import settings_of

NAME = "stream"
DIMENSIONS, NOISE, DRIFT = 16, 0.5, 1e-4  # d, s and q
RATES = np.geomspace(0.002, 0.09, 9)
BATCH = 500  # items that arrive together


def source(seed: int) -> Iterator[dict[str, Any]]:
    """Items without end, BATCH at a time: x (BATCH, d) and y (BATCH,)."""
    random = np.random.default_rng(seed)
    w = random.standard_normal(DIMENSIONS)
    while True:
        x = random.standard_normal((BATCH, DIMENSIONS))
        steps = math.sqrt(DRIFT) * random.standard_normal((BATCH, DIMENSIONS))
        paths = w + np.cumsum(steps, axis=0) - steps  # w of each item, which moves after it
        y = (paths * x).sum(1) + NOISE * random.standard_normal(BATCH)
        w = w + steps.sum(0)
        yield {"x": x.astype("float32"), "y": y.astype("float32")}


def gradient_step(w: Any, rate: Any, item: dict[str, Any]) -> tuple[Any, Any]:
    """Predicts an item and learns it. Returns the weights and the error of the prediction."""
    error = item["y"] - w @ item["x"]
    return w + rate * error * item["x"], error


def kalman_step(state: Any, item: dict[str, Any]) -> tuple[Any, Any]:
    """The same by Kalman's filter, whose state is the mean and the covariance of what it knows about w."""
    w, covariance = state
    error = item["y"] - w @ item["x"]
    seen = covariance @ item["x"]
    gain = seen / (item["x"] @ seen + NOISE**2)
    return (w + gain * error, covariance - jnp.outer(gain, seen) + DRIFT * jnp.eye(DIMENSIONS)), error


def start() -> Any:
    """All learners at the beginning: those with a rate, Kalman's, and the weights of the frozen one."""
    none = jnp.zeros(DIMENSIONS)
    return jnp.zeros((len(RATES), DIMENSIONS)), (none, jnp.eye(DIMENSIONS)), none


@phlox.jit
def learnt(learners: Any, batch: dict[str, Any]) -> tuple[Any, Any]:
    """All learners after a batch, and their mean squared errors on it: of each rate, of Kalman's, of the frozen one."""

    def one(learners: Any, item: dict[str, Any]) -> Any:
        weights, kalman, frozen = learners
        weights, errors = phlox.vmap(gradient_step, (0, 0, None))(weights, jnp.asarray(RATES, "float32"), item)
        kalman, error = kalman_step(kalman, item)
        all_errors = jnp.concatenate([errors, error[None], (item["y"] - frozen @ item["x"])[None]])
        return (weights, kalman, frozen), all_errors**2

    learners, squares = phlox.lax.scan(one, learners, batch)
    return learners, squares.mean(0)


def known_excess(rate: Any) -> Any:
    """The excess of a learner with this rate, once it has settled."""
    return DIMENSIONS * (rate**2 * NOISE**2 + DRIFT) / (2 * rate - rate**2 * (DIMENSIONS + 2))


def train(options: argparse.Namespace) -> dict[str, Any]:
    """Learns as many batches as the options say. Returns the errors of each (batch, learner)."""
    stream = phlox_data.from_iterable(lambda epoch: source(options.seed + epoch))
    count, settled = options.batches, options.batches // 5
    learners, errors = start(), []
    with report.progress("Learning", count) as shown:
        shown.row("    items", "slowest", "   best", "fastest", " Kalman", " frozen")
        for number, batch in enumerate(shown.counted(stream.epoch(0)), 1):
            learners, squares = learnt(learners, batch)
            errors.append(np.asarray(squares))
            if number == settled:
                # From here on one learner keeps what Kalman's filter knows now.
                learners = (*learners[:2], learners[1][0])
            if number % max(1, count // 10) == 0:
                recent = np.mean(errors[-max(1, count // 10) :], axis=0) - NOISE**2
                columns = (recent[0], recent[: len(RATES)].min(), recent[len(RATES) - 1], recent[-2], recent[-1])
                shown.row(f"{number * BATCH:,}", *(f"{value:.3f}" for value in columns))
            if number == count:
                break
    excess = np.array(errors) - NOISE**2
    return {"excess": excess, "settled": settled, "mean": excess[settled:].mean(0)}


def draw(result: dict[str, Any], title: str) -> Figure:
    """The excess over time, and over the rate."""
    figure = plots.figure(title, (12, 4.8))
    left, right = figure.subplots(1, 2)
    excess, settled = result["excess"], result["settled"]
    window = max(1, len(excess) // 40)
    smooth = np.stack([np.convolve(column, np.full(window, 1 / window), "valid") for column in excess.T], 1)
    items = (np.arange(len(smooth)) + window) * BATCH / 1000
    best = int(result["mean"][: len(RATES)].argmin())
    for number, name, color in (
        (0, f"rate {RATES[0]:.3f}", plots.BLUE),
        (best, f"rate {RATES[best]:.3f}", plots.ORANGE),
        (len(RATES), "Kalman's filter", "black"),
    ):
        left.semilogy(items, np.maximum(smooth[:, number], 1e-4), color=color, linewidth=1.5, label=name)
    late = np.arange(len(smooth)) >= settled
    left.semilogy(items[late], np.maximum(smooth[late, -1], 1e-4), color=plots.GREY, linewidth=1.5, label="frozen")
    left.set(title="Squared error of predictions, without that of the noise", xlabel="thousand items")
    left.legend(frameon=False)
    plots.tidy(left)
    rates = np.geomspace(RATES[0] * 0.9, RATES[-1] * 1.03, 200)
    right.loglog(rates, known_excess(rates), color=plots.GREY, linewidth=1.5, label="known")
    right.loglog(RATES, result["mean"][: len(RATES)], "o", color=plots.ORANGE, label="measured")
    right.axhline(result["mean"][len(RATES)], color="black", linewidth=1, linestyle="--", label="Kalman's filter")
    right.set(title="Excess over the learning rate", xlabel="rate")
    right.legend(frameon=False)
    right.grid(alpha=0.25, which="both")
    right.spines[["top", "right"]].set_visible(False)
    return figure


def run(options: argparse.Namespace) -> None:
    """Learns for a while, compares with what is known, and draws."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = train(options)
    mean = result["mean"]
    best = int(mean[: len(RATES)].argmin())
    items = options.batches * BATCH
    title = (
        f"{items:,} items of a wandering source: the best rate is {RATES[best]:.3f}, frozen it is {mean[-1]:.1f} off"
    )
    contents = {
        "settings": settings,
        "rates": RATES.tolist(),
        "excess": mean[: len(RATES)].tolist(),
        "known_excess": known_excess(RATES).tolist(),
        "kalman": float(mean[-2]),
        "frozen": float(mean[-1]),
    }
    written = results.write(options, contents, draw(result, title))
    report.show(f"Kalman's filter is {mean[-2]:.3f} above the noise. Wrote {' and '.join(written)}.")
