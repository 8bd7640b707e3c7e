"""The plots. Curves are labelled at their ends instead of in a legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, PercentFormatter

BLUE, ORANGE, GREY = "#2368a2", "#d1651a", "#6b6b6b"


def learning_curves(history: Sequence[Sequence[float]], title: str) -> Figure:
    """Loss and accuracy over epochs; each row of `history` has loss, test loss and test accuracy."""
    loss, test_loss, accuracy = np.transpose(history)
    epochs = np.arange(1, len(history) + 1)
    figure = _figure(title)
    left, right = figure.subplots(1, 2)

    _curve(left, epochs, loss, BLUE, "training,\nnoisy pictures")
    _curve(left, epochs, test_loss, ORANGE, "test")
    left.set(title="Loss", xlabel="epoch", ylabel="cross entropy (nats)", yscale="log")
    left.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    left.yaxis.set_major_formatter("{x:g}")
    left.yaxis.set_minor_formatter("")

    _curve(right, epochs, accuracy, ORANGE, f"{accuracy[-1]:.1%}")
    right.set(title="Accuracy on test pictures", xlabel="epoch", ylabel="read correctly")
    right.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return figure


def compared_curves(curves: np.ndarray, devices: int, tolerance: float, title: str) -> Figure:
    """The losses of each step on one device and on several (the rows of `curves`), and their difference."""
    steps = np.arange(1, curves.shape[1] + 1)
    figure = _figure(title)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))

    above.plot(steps, curves[0], color=BLUE, linewidth=6, alpha=0.35, label="1 device")
    above.plot(steps, curves[1], color=ORANGE, linewidth=1.5, label=f"{devices} devices")
    above.set(ylabel="loss of a step (nats)")
    above.legend(frameon=False)

    difference = np.abs(curves[0] - curves[1])
    below.semilogy(steps, difference, ".", color=GREY)
    below.axhline(tolerance, color="black", linewidth=1)
    below.annotate(f"at most {tolerance:.0e} is allowed", (1, tolerance), (0, -4), textcoords="offset points", va="top")
    below.set(xlabel="step (without a dot: no difference at all)", ylabel="difference (nats)")
    below.set_ylim(1e-18, 10 * max(tolerance, difference.max()))
    for axes in (above, below):
        _tidy(axes)
    return figure


def _figure(title: str) -> Figure:
    figure = Figure(figsize=(10, 4.8), layout="constrained")
    figure.suptitle(title, fontsize=14, fontweight="bold")
    return figure


def _curve(axes: Any, epochs: np.ndarray, values: np.ndarray, color: str, name: str) -> None:
    axes.plot(epochs, values, color=color, linewidth=2, marker="o", markersize=3)
    axes.annotate(name, (epochs[-1], values[-1]), (6, 0), textcoords="offset points", color=color, va="center")
    _tidy(axes)


def _tidy(axes: Any) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.03)
