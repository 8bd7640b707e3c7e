"""``./train neural-ode``: the law of a pendulum, learnt from a few noisy swings.

A pendulum with friction moves by x' = f(x), where x = (angle, speed) and

    f(angle, speed) = (speed, -sin(angle) - 0.15 speed).

The program does not know f. It has a network with the same two inputs and outputs in its place, and measurements of x
along some swings. A solver goes from each first measurement along the network's arrows, and the loss is how far it
passes from the other measurements. The gradient goes through all steps of the solver (Runge and Kutta's of order 4),
which are one `scan`: so the network learns rates although only places were measured.

What it has learnt is tried on swings that begin elsewhere. Between the measured swings it must have found the arrows
by itself; two of these trials are drawn.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
import phlox_optim as optim

from . import plots, report, results
from .options import settings_of

NAME = "neural-ode"
FRICTION, NOISE = 0.15, 0.05
INTERVAL, SUBSTEPS = 0.25, 2  # time between two measurements, and steps of the solver in it
SWINGS, MEASUREMENTS, PART = 16, 40, 14
WIDTH, CHUNK = 32, 50


def pendulum(x: Any) -> Any:
    """f, which the network has to find."""
    angle, speed = x[..., 0], x[..., 1]
    return jnp.stack([speed, -jnp.sin(angle) - FRICTION * speed], -1)


#: The network that says the rate of change at a place. Its last weights are small, so that nothing moves at first.
network = nn.Sequential(
    nn.MLP((2, WIDTH, WIDTH), nn.tanh),
    nn.tanh,
    nn.Linear(WIDTH, 2, weight_init=nn.initializers.variance_scaling(0.01, "fan_in", "normal")),
)


def solve(f: Any, start: Any, count: int) -> Any:
    """The places (count, ...) at the times of measurements, the first one of which is `start`."""
    h = INTERVAL / SUBSTEPS

    def step(x: Any, _: Any) -> Any:
        k1 = f(x)
        k2 = f(x + h / 2 * k1)
        k3 = f(x + h / 2 * k2)
        k4 = f(x + h * k3)
        return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), x

    return phlox.lax.scan(step, start, length=SUBSTEPS * (count - 1) + 1)[1][::SUBSTEPS]


def starts(key: Any, count: int) -> Any:
    """Where swings begin: up to 2 radians to each side, with speeds up to 1; none goes over the top."""
    return phlox.random.uniform(key, (count, 2), minval=-1, maxval=1) * jnp.array([2.0, 1.0])


def loss(params: Any, measured: Any) -> Any:
    """How far the solver passes from the measurements, on average."""
    # Parts of a swing: over whole ones an early error is a large one later, and hides what is right.
    parts = jnp.stack([measured[i : i + PART] for i in range(0, len(measured) - PART + 1, PART - 1)], 1)
    passed = solve(lambda x: network.apply(params, x), parts[0], PART)
    return ((passed - parts) ** 2).mean()


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """Trains, and follows swings that were not seen."""
    keys = phlox.random.split(phlox.random.key(options.seed), 4)
    measured = phlox.jit(solve, static_argnums=(0, 2))(pendulum, starts(keys[0], SWINGS), MEASUREMENTS)
    measured = measured + NOISE * phlox.random.normal(keys[1], measured.shape)
    step = optim.make_step(loss, optim.adam(optim.cosine_decay_schedule(0.01, options.steps)))

    # Steps as short as these are taken many at once, in one program.
    @phlox.jit
    def several(state: Any, measured: Any) -> Any:
        return phlox.lax.scan(lambda state, _: step.function(state, measured), state, length=CHUNK)

    state, losses = step.init(network.init(keys[2])), []
    with report.progress("Training", options.steps // CHUNK) as shown:
        shown.row("step", "     loss")
        for number in shown.counted(range(options.steps // CHUNK)):
            state, figures = several(state, measured)
            losses += np.asarray(figures["loss"].value()).tolist()
            if number % 4 == 3:
                shown.row(str(len(losses)), f"{losses[-1]:.5f}")

    params = state.params
    unseen = starts(keys[3], 50)
    count = 2 * MEASUREMENTS
    true = phlox.jit(solve, static_argnums=(0, 2))(pendulum, unseen, count)
    guessed = phlox.jit(lambda params: solve(lambda x: network.apply(params, x), unseen, count))(params)
    grid = jnp.stack(jnp.meshgrid(jnp.linspace(-2.4, 2.4, 40), jnp.linspace(-2.0, 2.0, 40)), -1)
    return {
        "losses": losses,
        "measured": np.asarray(measured),
        "true": np.asarray(true),
        "guessed": np.asarray(guessed),
        "grid": np.asarray(grid),
        "field": np.asarray(network.apply(params, grid)),
        "true_field": np.asarray(pendulum(grid)),
    }


def error(result: dict[str, Any]) -> float:
    """The root mean square distance from the true angle, over all times of the unseen swings."""
    return float(np.sqrt(((result["true"] - result["guessed"])[..., 0] ** 2).mean()))


def draw(result: dict[str, Any], title: str) -> Figure:
    """The learnt arrows among the measurements, two unseen swings, and the loss."""
    figure = plots.figure(title, (12, 5.6))
    panels = figure.subplot_mosaic([["field", "swings"], ["field", "loss"]], width_ratios=(1, 1), height_ratios=(3, 2))
    axes, grid, field = panels["field"], result["grid"], result["field"]
    off = np.linalg.norm(field - result["true_field"], axis=-1)
    shown = axes.pcolormesh(
        grid[..., 0], grid[..., 1], off, cmap="Oranges", vmin=0, vmax=1, shading="gouraud", rasterized=True
    )
    figure.colorbar(shown, ax=axes, label="error of the learnt rate", location="left", aspect=40)
    axes.streamplot(
        grid[0, :, 0], grid[:, 0, 1], field[..., 0], field[..., 1], color=plots.GREY, linewidth=0.8, density=1.2
    )
    axes.plot(*result["measured"].reshape(-1, 2).T, ".", color="black", markersize=3)
    axes.set(
        xlim=(-2.4, 2.4),
        ylim=(-2, 2),
        xlabel="angle (rad)",
        ylabel="speed",
        title="Learnt arrows, and what was measured",
    )

    times = INTERVAL * np.arange(len(result["true"]))
    axes = panels["swings"]
    order = np.argsort(-np.abs(result["true"][..., 0]).max(0))
    for number, color in zip(order[[10, 30]], (plots.BLUE, plots.ORANGE), strict=True):
        axes.plot(times, result["true"][:, number, 0], color=color, linewidth=6, alpha=0.3)
        axes.plot(times, result["guessed"][:, number, 0], color=color, linewidth=1.6)
    axes.axvline(INTERVAL * (MEASUREMENTS - 1), color=plots.GREY, linewidth=1)
    axes.annotate(
        "longer than\nany measurement", (INTERVAL * (MEASUREMENTS - 1), axes.get_ylim()[1]), (6, -2),
        textcoords="offset points", color=plots.GREY, va="top", fontsize=9
    )  # fmt: skip
    axes.set(title="Two unseen swings: truth (wide), learnt (thin)", xlabel="time", ylabel="angle (rad)")
    plots.tidy(axes)

    axes = panels["loss"]
    axes.semilogy(result["losses"], color=plots.BLUE)
    axes.axhline(NOISE**2, color=plots.GREY, linewidth=1)
    axes.annotate(
        "variance of the noise", (0.5, NOISE**2), (0, -3), xycoords=("axes fraction", "data"),
        textcoords="offset points", color=plots.GREY, va="top"
    )  # fmt: skip
    axes.set(title="Loss", xlabel="step", ylim=(NOISE**2 / 5, None))
    plots.tidy(axes)
    return figure


def run(options: argparse.Namespace) -> None:
    """Trains, tries what was learnt, and draws it."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    off = error(result)
    title = f"The law learnt from {SWINGS} noisy swings predicts new ones to {off:.2f} rad (noise: {NOISE})"
    contents = {"settings": settings, "losses": result["losses"], "error": off}
    written = results.write(options, contents, draw(result, title))
    report.show(f"Unseen swings, twice as long, are predicted to {off:.3f} rad. Wrote {' and '.join(written)}.")
