"""Draws the pictures of the tutorial: python docs/pictures/draw.py [NAME ...]. Needs matplotlib, and phlox for one.

The background is transparent, and lines and letters have a grey that can be read on white and on black, so that one
file serves both colour schemes. Letters are paths: a page looks the same wherever it is read.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyArrowPatch, Rectangle

FOLDER = Path(__file__).parent
INK, BLUE, ORANGE, GREEN = "#808894", "#3b82c4", "#d9822b", "#2e9e6b"
SHADES = [BLUE, ORANGE, GREEN, "#9b6fc0"]

plt.rcParams.update(
    {
        "svg.hashsalt": "phlox",
        "savefig.transparent": True,
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.size": 11,
    }
)


def canvas(width: float, height: float) -> Any:
    """Axes without frame on which one unit is one cell."""
    figure, axes = plt.subplots(figsize=(width * 0.55, height * 0.55))
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="equal")
    axes.axis("off")
    figure.subplots_adjust(0, 0, 1, 1)
    return axes


def cells(axes: Any, x: float, y: float, rows: list[list[Any]], colors: Any = BLUE, alpha: float = 0.15) -> None:
    """A matrix of cells with its upper left corner at x, y; `colors` is one, or one for each row."""
    for i, row in enumerate(rows):
        color = colors if isinstance(colors, str) else colors[i]
        for j, entry in enumerate(row):
            axes.add_patch(Rectangle((x + j, y + i), 1, 1, facecolor=color, alpha=alpha, edgecolor="none"))
            axes.add_patch(Rectangle((x + j, y + i), 1, 1, facecolor="none", edgecolor=color))
            axes.text(x + j + 0.5, y + i + 0.5, str(entry), ha="center", va="center")


def box(axes: Any, x: float, y: float, width: float, text: str, color: str = ORANGE, height: float = 1) -> None:
    """A box with text."""
    axes.add_patch(Rectangle((x, y), width, height, facecolor=color, alpha=0.15, edgecolor="none"))
    axes.add_patch(Rectangle((x, y), width, height, facecolor="none", edgecolor=color))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center")


def arrow(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """An arrow from one point to another."""
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=12, color=INK, shrinkA=2, shrinkB=2))


def broadcast() -> None:
    axes = canvas(13, 2.4)
    cells(axes, 0.2, 0.2, [[0, 1, 2], [3, 4, 5]])
    axes.text(3.9, 1.2, "+", ha="center", va="center", fontsize=16)
    cells(axes, 4.6, 0.2, [[10, 20, 30]], ORANGE)
    cells(axes, 4.6, 1.2, [[10, 20, 30]], ORANGE, alpha=0.06)
    axes.text(8.3, 1.2, "=", ha="center", va="center", fontsize=16)
    cells(axes, 9.2, 0.2, [[10, 21, 32], [13, 24, 35]], GREEN)


def keys() -> None:
    axes = canvas(14, 4.4)
    box(axes, 0.2, 1.7, 2, "key")
    box(axes, 3, 1.7, 2, "split", INK)
    arrow(axes, (2.2, 2.2), (3, 2.2))
    for y, name, end in ((0.2, "key", "for later"), (1.7, "first", "normal"), (3.2, "second", "normal")):
        box(axes, 6.2, y, 2, name)
        arrow(axes, (5, 2.2), (6.2, y + 0.5))
        arrow(axes, (8.2, y + 0.5), (9.2, y + 0.5))
        axes.text(9.4, y + 0.5, end, va="center")
    for y, color in ((1.7, BLUE), (3.2, GREEN)):
        cells(axes, 11.4, y + 0.1, [["", ""]], color)


def jit() -> None:
    axes = canvas(17, 3.6)
    box(axes, 0.2, 1, 2.8, "Python\nfunction", BLUE, 1.6)
    box(axes, 5, 1, 3.2, "operations\nmul, gt, select", ORANGE, 1.6)
    box(axes, 10.4, 1, 2.8, "compiled\nprogram", GREEN, 1.6)
    for x, end, label in ((3, 5, "trace"), (8.2, 10.4, "compile"), (13.2, 15.2, "run")):
        arrow(axes, (x, 1.8), (end, 1.8))
        axes.text((x + end) / 2, 1.4, label, ha="center")
    axes.text(15.3, 1.8, "result", va="center")
    for left, right, label in ((3, 10.4, "once for each shape and dtype"), (13.2, 16.4, "each call")):
        axes.plot([left, left, right, right], [2.8, 3, 3, 2.8], color=INK, linewidth=1)
        axes.text((left + right) / 2, 3.4, label, ha="center", va="center")


def grad() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8))
    x = np.linspace(-0.5, 3, 60)
    left.plot(x, x**3, color=BLUE)
    left.plot(x, 8 + 12 * (x - 2), color=ORANGE, linewidth=1)
    left.plot([2], [8], "o", color=ORANGE)
    left.set(title="f(x) = x³, tangent at 2", ylim=(-5, 27), xlabel="x")
    left.title.set_color(INK)
    right.plot(x, 3 * x**2, color=GREEN)
    right.plot([2], [12], "o", color=ORANGE)
    right.annotate("12: the slope at 2", (2, 12), (0.1, 18), color=INK, arrowprops={"arrowstyle": "->", "color": INK})
    right.set(title="grad(f)(x) = 3x²", ylim=(-2, 27), xlabel="x")
    figure.tight_layout()


def vmap() -> None:
    axes = canvas(15, 3.6)
    for i in range(3):
        y = 0.2 + 1.15 * i
        cells(axes, 0.2, y, [[f"a{i}"]], BLUE)
        cells(axes, 1.6, y, [[f"b{i}"]], BLUE)
        arrow(axes, (2.7, y + 0.5), (4, y + 0.5))
        box(axes, 4, y, 1.5, "f", ORANGE)
        arrow(axes, (5.5, y + 0.5), (6.8, y + 0.5))
        cells(axes, 6.8, y, [[f"f{i}"]], GREEN)
    axes.text(8.6, 1.85, "=", fontsize=16, va="center")
    cells(axes, 9.5, 0.35, [["a0", "b0"], ["a1", "b1"], ["a2", "b2"]], BLUE)
    arrow(axes, (11.5, 1.85), (12, 1.85))
    box(axes, 12, 0.35, 1.2, "vmap\n(f)", ORANGE, 3)
    arrow(axes, (13.2, 1.85), (13.8, 1.85))
    cells(axes, 13.8, 0.35, [["f0"], ["f1"], ["f2"]], GREEN)


def scan() -> None:
    axes = canvas(14.5, 4.4)
    for i, (value, total) in enumerate(((1, 1), (2, 3), (3, 6), (4, 10))):
        x = 2 + 3 * i
        cells(axes, x + 0.25, 0.1, [[value]], BLUE)
        arrow(axes, (x + 0.75, 1.1), (x + 0.75, 1.7))
        box(axes, x, 1.7, 1.5, "turn", ORANGE)
        arrow(axes, (x - 1.5, 2.2), (x, 2.2))
        axes.text(x - 0.8, 1.95, str(total - value), ha="center")
        arrow(axes, (x + 0.75, 2.7), (x + 0.75, 3.3))
        cells(axes, x + 0.25, 3.3, [[total]], GREEN)
    arrow(axes, (12.5, 2.2), (13.6, 2.2))
    axes.text(14, 2.2, "10", va="center", ha="center")
    for y, label in ((0.6, "xs"), (3.8, "ys")):
        axes.text(0.6, y, label, va="center")


def training() -> None:
    import phlox
    import phlox_nn as nn
    import phlox_optim as optim

    model = nn.Sequential(nn.Linear(2, 16), nn.tanh, nn.Linear(16, 2))
    params = model.init(phlox.random.key(0))
    x = phlox.random.uniform(phlox.random.key(1), (512, 2), minval=-1, maxval=1)
    y = ((x**2).sum(axis=1) < 0.5).astype(int)
    tx = optim.adam(0.02)

    def loss(params: Any) -> Any:
        return optim.softmax_cross_entropy_with_integer_labels(model.apply(params, x), y).mean()

    @phlox.jit
    def step(params: Any, state: Any) -> Any:
        value, gradients = phlox.value_and_grad(loss)(params)
        changes, state = tx.update(gradients, state, params)
        return optim.apply_updates(params, changes), state, value

    state, losses = tx.init(params), []
    for _ in range(300):
        params, state, value = step(params, state)
        losses.append(float(value))
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3))
    left.plot(losses, color=BLUE)
    left.set(xlabel="step", title="loss", ylim=(0, None))
    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 41), np.linspace(-1, 1, 41)), -1).astype("float32")
    inside = np.asarray(phlox.nn.softmax(model.apply(params, grid))[..., 1])
    points, kinds = np.asarray(x)[:200], np.asarray(y)[:200]
    right.contour(grid[..., 0], grid[..., 1], inside, levels=[0.5], colors=[ORANGE], linewidths=2)
    right.scatter(*points[kinds == 1].T, s=7, color=GREEN)
    right.scatter(*points[kinds == 0].T, s=7, color=BLUE)
    right.set(aspect="equal", title="where the network says: inside")
    figure.tight_layout()


def batches() -> None:
    axes = canvas(14, 3.6)
    order = np.random.default_rng(1).permutation(10)
    cells(axes, 2.2, 0.2, [list(range(10))], INK)
    axes.text(0.2, 0.7, "examples", va="center", fontsize=9)
    arrow(axes, (7.2, 1.2), (7.2, 2.2))
    axes.text(7.5, 1.7, "shuffled by seed and epoch", va="center", fontsize=9)
    for start, end, color, x in ((0, 4, BLUE, 1.4), (4, 8, ORANGE, 6.2), (8, 10, GREEN, 11)):
        cells(axes, x, 2.3, [order[start:end].tolist()], color)


def devices() -> None:
    axes = canvas(13, 8.6)
    cells(axes, 0.6, 0.3, [[i] for i in range(8)], [SHADES[i // 2] for i in range(8)])
    for d in range(4):
        y = 0.3 + 2 * d
        arrow(axes, (1.8, y + 1), (5, y + 1))
        axes.add_patch(Rectangle((5, y + 0.05), 5.4, 1.9, facecolor="none", edgecolor=INK, linestyle="--"))
        cells(axes, 5.3, y + 0.5, [[2 * d, 2 * d + 1]], SHADES[d])
        axes.text(7.9, y + 1, f"device {d}", va="center")


PICTURES: list[Callable[[], None]] = [broadcast, keys, jit, grad, vmap, scan, training, batches, devices]


def main(pictures: list[Callable[[], None]], names: list[str]) -> None:
    """Draws the pictures with these names, or all."""
    for draw in pictures:
        if not names or draw.__name__ in names:
            draw()
            file = FOLDER / f"{draw.__name__}.svg"
            plt.savefig(file, metadata={"Date": None, "Creator": None}, bbox_inches="tight", pad_inches=0.05)
            plt.close("all")
            print(file, file.stat().st_size // 1024, "KB")


if __name__ == "__main__":
    main(PICTURES, sys.argv[1:])
