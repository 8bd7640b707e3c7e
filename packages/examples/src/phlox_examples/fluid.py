"""``./train fluid``: how must a fluid be stirred so that a square of smoke becomes the letter phi?

An incompressible fluid without friction carries itself, and carries smoke:

    du/dt = -(u.grad) u - grad p,      div u = 0,      ds/dt = -(u.grad) s.

A step (Stam 1999) has two parts. What is at x now was at x - h u(x) before: each value is fetched from there, by
interpolation between four places of the grid. Then the velocity is made free of sources again: in the Fourier
transform u has a wave vector k for each component, and the part of u along k is what is to be taken away.

These steps are differentiable like any others. The program asks for the first velocity such that the smoke at the end
is the letter: the loss is the difference from it, `grad` goes back through all steps (`checkpoint` makes it compute
them anew instead of keeping what is in them), and Adam changes the velocity. Nobody tells it how to stir.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

import phlox
import phlox.numpy as jnp
import phlox_optim as optim

from . import plots, report, results
from .options import settings_of

NAME = "fluid"
STEPS, STEP = 30, 1 / 30  # in time; the fluid is stirred once, at time 0
CHUNK = 10
SMOOTH = 200  # waves of the velocity with more than about the root of this in the box are left out


def letter(points: int) -> Any:
    """The letter phi on a grid: a ring and a bar, with soft edges."""
    y, x = (np.mgrid[:points, :points] + 0.5) / points - 0.5
    ring = np.abs(np.hypot(x / 0.24, y / 0.18) - 1) * 0.2
    bar = np.maximum(np.abs(x), np.abs(y) - 0.28)
    return 1 / (1 + np.exp((np.minimum(ring, bar) - 0.04) * 3 * points / 2.5))


def square(points: int) -> Any:
    """The smoke at time 0, as much of it as the letter has: smoke can be moved, but not made."""
    y, x = (np.mgrid[:points, :points] + 0.5) / points - 0.5
    side = np.sqrt(letter(points).mean())
    return 1 / (1 + np.exp((np.maximum(np.abs(x), np.abs(y)) - side / 2) * 3 * points / 2.5))


def carried(field: Any, velocity: Any) -> Any:
    """`field` a step later, carried by a velocity (2, points, points) in lengths of the box; edges meet."""
    points = field.shape[-1]
    here = jnp.stack(jnp.meshgrid(jnp.arange(points), jnp.arange(points), indexing="ij"))
    y, x = here - STEP * points * velocity
    y0, x0 = jnp.floor(y), jnp.floor(x)
    fy, fx = y - y0, x - x0
    rows = [(y0.astype("int32") + i) % points for i in (0, 1)]
    columns = [(x0.astype("int32") + i) % points for i in (0, 1)]
    upper = (1 - fx) * field[..., rows[0], columns[0]] + fx * field[..., rows[0], columns[1]]
    lower = (1 - fx) * field[..., rows[1], columns[0]] + fx * field[..., rows[1], columns[1]]
    return (1 - fy) * upper + fy * lower


def waves(points: int) -> Any:
    """The wave vector of each place of the Fourier transform. The highest one is its own mirror image, and left out."""
    k = np.fft.fftfreq(points, 1 / points)
    k[points // 2] = 0
    return np.stack(np.meshgrid(k, k[: points // 2 + 1], indexing="ij"))


def without_sources(velocity: Any) -> Any:
    """The part of a velocity that has no divergence."""
    k = waves(velocity.shape[-1])
    transformed = jnp.fft.rfft2(velocity)
    along = (k * transformed).sum(0) / np.maximum((k**2).sum(0), 1)
    return jnp.fft.irfft2(transformed - k * along, velocity.shape[-2:])


def stirred(control: Any) -> Any:
    """The first velocity: what Adam changes, smoothed, since fine waves would only tear the smoke."""
    fine = (waves(control.shape[-1]) ** 2).sum(0)
    return without_sources(jnp.fft.irfft2(jnp.fft.rfft2(control) * np.exp(-fine / SMOOTH), control.shape[-2:]))


def flow(velocity: Any, smoke: Any) -> tuple[Any, Any]:
    """The smoke in the end, and before each step."""

    @phlox.checkpoint
    def step(state: Any, _: Any) -> Any:
        velocity, smoke = state
        moved = without_sources(carried(velocity, velocity))
        return (moved, carried(smoke, velocity)), smoke

    (_, end), before = phlox.lax.scan(step, (velocity, smoke), length=STEPS)
    return end, before


def difference(control: Any, pictures: Any) -> Any:
    """The loss: the mean square difference of what becomes of the first picture from the second."""
    smoke, target = pictures
    return ((flow(stirred(control), smoke)[0] - target) ** 2).mean()


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """Finds the first velocity, and lets the smoke flow."""
    target, smoke = (jnp.asarray(f(options.points), "float32") for f in (letter, square))
    control = 1e-3 * phlox.random.normal(phlox.random.key(options.seed), (2, options.points, options.points))
    step = optim.make_step(difference, optim.adam(optim.cosine_decay_schedule(0.04, options.steps)))
    state, losses = step.init(control), []
    with report.progress("Stirring", options.steps // CHUNK) as shown:
        shown.row("step", "difference")
        for number in shown.counted(range(options.steps // CHUNK)):
            for _ in range(CHUNK):
                state, figures = step(state, (smoke, target))
                losses.append(float(figures["loss"]))
            if number % 3 == 2:
                shown.row(str(len(losses)), f"{losses[-1]:.5f}")
    velocity = phlox.jit(stirred)(state.params)
    end, before = phlox.jit(flow)(velocity, smoke)
    return {
        "losses": losses,
        "velocity": np.asarray(velocity),
        "smoke": np.concatenate([np.asarray(before), np.asarray(end)[None]]),
        "target": np.asarray(target),
    }


def draw(result: dict[str, Any], title: str) -> Figure:
    """The smoke from square to letter, the stirring, and the loss."""
    figure = plots.figure(title, (12, 6.6))
    panels = figure.subplot_mosaic("abcd\nexyy")
    for name, number in zip("abcd", (0, STEPS // 3, 2 * STEPS // 3, STEPS), strict=True):
        panels[name].imshow(result["smoke"][number], cmap="magma", vmin=0, vmax=1, interpolation="bilinear")
        panels[name].set_title(f"time {number / STEPS:.2f}", fontsize=10)
    panels["e"].imshow(result["target"], cmap="gray", vmin=0, vmax=1, interpolation="bilinear")
    panels["e"].set_title("target", fontsize=10)
    for name in "abcde":
        panels[name].set(xticks=[], yticks=[])

    axes, (v, u) = panels["x"], result["velocity"]
    some = slice(None, None, max(1, len(u) // 24))
    positions = ((np.arange(len(u)) + 0.5) / len(u))[some]
    axes.imshow(result["smoke"][0], cmap="Greys", vmin=0, vmax=3, extent=(0, 1, 1, 0), interpolation="bilinear")
    # Arrows point along the axes of the picture, whose y grows downwards.
    axes.quiver(positions, positions, u[some, some], v[some, some], color=plots.BLUE, angles="xy", width=0.006)
    axes.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(1, 0), aspect="equal")
    axes.set_title("how it is stirred at time 0", fontsize=10)
    axes = panels["y"]
    axes.semilogy(result["losses"], color=plots.BLUE, linewidth=2)
    axes.set(title="Mean square difference from the target picture", xlabel="step of Adam")
    axes.yaxis.tick_right()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    plots.tidy(axes)
    return figure


def run(options: argparse.Namespace) -> None:
    """Finds out how to stir, and draws what comes of it."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    first, last = result["losses"][0], result["losses"][-1]
    title = f"Stirred once at the start, the smoke takes the form: {1 - last / first:.0%} of the difference is gone"
    contents = {"settings": settings, "losses": result["losses"]}
    written = results.write(options, contents, draw(result, title))
    report.show(
        f"Difference from the letter: {first:.4f} unstirred, {last:.4f} in the end. Wrote {' and '.join(written)}."
    )
