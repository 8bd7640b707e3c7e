"""What the pictures of the programs have in common. Curves are labelled at their ends instead of in a legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, PercentFormatter

BLUE, ORANGE, GREY = "#2368a2", "#d1651a", "#6b6b6b"


def figure(title: str, size: tuple[float, float] = (10, 4.8)) -> Figure:
    """An empty figure of `size` inches with a title, which says the result."""
    fig = Figure(figsize=size, layout="constrained")
    set_title(fig, title)
    return fig


def set_title(fig: Figure, title: str) -> None:
    """Sets the title of a figure, or replaces it."""
    fig.suptitle(title, fontsize=14, fontweight="bold")


def tidy(axes: Any) -> None:
    """Whole numbers along x, a pale grid, and no frame at the top and at the right."""
    # By default it asks for two ticks, and a training of one epoch has no two whole numbers to show.
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.03)


def percents(axes: Any) -> None:
    """Shows what goes from 0 to 1 along y in percent."""
    axes.yaxis.set_major_formatter(PercentFormatter(1))


def curve(axes: Any, x: Any, y: Any, color: str, name: str) -> None:
    """A curve with its name at its end."""
    axes.plot(x, y, color=color, linewidth=2, marker="o" if len(x) <= 100 else None, markersize=3)
    axes.annotate(name, (x[-1], y[-1]), (6, 0), textcoords="offset points", color=color, va="center")
    tidy(axes)


def picture(axes: Any, pixels: Any, title: str = "", color: str = "black") -> None:
    """A grey picture, dark on white, with a short title."""
    axes.imshow(np.asarray(pixels).squeeze(), cmap="gray_r", interpolation="nearest")
    axes.set_title(title, fontsize=9, color=color)
    axes.set(xticks=[], yticks=[])


def signed(axes: Any, values: Any, largest: float | None = None) -> None:
    """A small picture of positive (red) and negative (blue) numbers; the palest is 0."""
    values = np.asarray(values)
    largest = float(np.abs(values).max()) if largest is None else largest
    axes.imshow(values, cmap="RdBu_r", vmin=-largest, vmax=largest, interpolation="nearest")
    axes.set(xticks=[], yticks=[])


def loss_curves(axes: Any, history: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> None:
    """Losses over epochs, on a logarithmic scale; `names` has for each metric of `history` what is written beside."""
    epochs = [row["epoch"] for row in history]
    for (metric, name), color in zip(names.items(), (BLUE, ORANGE), strict=False):
        curve(axes, epochs, [row[metric] for row in history], color, name)
    axes.set(title="Loss", xlabel="epoch", ylabel="cross entropy (nats)", yscale="log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    part_names(axes)


def part_names(axes: Any) -> None:
    """Moves the names at the ends of two curves apart, if these end close to each other."""
    low, high = sorted(axes.texts, key=lambda text: text.xy[1])
    ends = axes.transData.transform([low.xy, high.xy])[:, 1]
    if ends[1] - ends[0] < 0.04 * axes.bbox.height:
        low.set_position((6, -7))
        high.set_position((6, 7))


def accuracy_curve(axes: Any, history: Sequence[Mapping[str, Any]]) -> None:
    """The accuracy on test pictures over epochs."""
    accuracy = [row["test_accuracy"] for row in history]
    curve(axes, [row["epoch"] for row in history], accuracy, ORANGE, f"{accuracy[-1]:.1%}")
    axes.set(title="Accuracy on test pictures", xlabel="epoch", ylabel="read correctly")
    percents(axes)


def learning_curves(history: Sequence[Mapping[str, Any]], title: str) -> Figure:
    """Loss and accuracy over epochs, from the metrics ``loss``, ``test_loss`` and ``test_accuracy``."""
    fig = figure(title)
    left, right = fig.subplots(1, 2)
    loss_curves(left, history, {"loss": "training", "test_loss": "test"})
    accuracy_curve(right, history)
    return fig
