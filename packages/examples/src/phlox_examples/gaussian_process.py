"""``./train gaussian-process``: a curve with error bars, whose assumptions are learnt from the data too.

A Gaussian process says of a function only how strongly its values at two times belong together: the covariance
k(t, t'). Here it is the sum of a slow trend and of a season that may change slowly,

    k(t, t') = a^2 exp(-d^2 / 2 l^2)  +  b^2 exp(-2 sin^2(pi d / p) / s^2 - d^2 / 2 m^2),      d = t - t'.

With noise of variance n^2 the measured values y have the covariance K = k(T, T) + n^2 I, and their log probability is

    log p(y) = -1/2 y K^-1 y - 1/2 log det K - N/2 log 2 pi.

The seven numbers a, l, b, p, s, m, n are those that make the data most probable: `grad` goes through the Cholesky
factor of K, and Adam climbs. The period p is among them. Given the data, values at other times t* are normal with

    mean k(t*, T) K^-1 y,      variance k(t*, t*) - k(t*, T) K^-1 k(T, t*).
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import phlox
import phlox.numpy as jnp
import phlox_optim as optim

from . import plots, report, results
from .options import settings_of

NAME = "gaussian-process"
PERIOD, NOISE = 1.0, 0.25  # of the data that are made; the program has to find them
YEARS, SHOWN = 8.0, 11.0  # how long is measured, and how far the curve is drawn
FIRST = {"a": 1.0, "l": 2.0, "b": 1.0, "p": 1.15, "s": 1.0, "m": 5.0, "n": 0.5}
CHUNK = 50  # steps between two rows of the table


def truth(t: Any) -> Any:
    """The curve that is measured."""
    season = np.sin(2 * np.pi * t / PERIOD) + 0.4 * np.sin(4 * np.pi * t / PERIOD + 1)
    return season + 1.2 * np.sin(0.55 * t + 2.5)


def measured(points: int, seed: int) -> tuple[Any, Any]:
    """Times and noisy values, with a gap of a year and a half."""
    random = np.random.default_rng(seed)
    t = np.sort(random.uniform(0, YEARS - 1.5, points))
    t = np.where(t > 4, t + 1.5, t)
    return t, truth(t) + NOISE * random.standard_normal(points)


def covariance(h: Any, t: Any, u: Any) -> Any:
    """k of each time in `t` with each in `u`."""
    d = t[:, None] - u[None, :]
    trend = h["a"] ** 2 * jnp.exp(-(d**2) / (2 * h["l"] ** 2))
    wave = jnp.sin(jnp.pi * d / h["p"]) / h["s"]
    return trend + h["b"] ** 2 * jnp.exp(-2 * wave**2 - d**2 / (2 * h["m"] ** 2))


def factor(h: Any, t: Any) -> Any:
    """The Cholesky factor of K."""
    return jnp.linalg.cholesky(covariance(h, t, t) + h["n"] ** 2 * jnp.eye(len(t)))


def log_probability(logs: Any, t: Any, y: Any) -> Any:
    """log p(y), as a function of the logarithms of the seven numbers, since these must stay positive."""
    root = factor(phlox.tree.map(jnp.exp, logs), t)
    white = phlox.scipy.linalg.solve_triangular(root, y, lower=True)
    return -white @ white / 2 - jnp.log(jnp.diag(root)).sum() - len(t) / 2 * jnp.log(2 * jnp.pi)


def predict(h: Any, t: Any, y: Any, times: Any) -> tuple[Any, Any]:
    """Mean and standard deviation of the curve at other times."""
    root = factor(h, t)
    across = phlox.scipy.linalg.solve_triangular(root, covariance(h, t, times), lower=True)
    white = phlox.scipy.linalg.solve_triangular(root, y, lower=True)
    variance = h["a"] ** 2 + h["b"] ** 2 - (across**2).sum(0)
    return across.T @ white, jnp.sqrt(jnp.maximum(variance, 0.0))


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """The seven numbers that make the data most probable, and the curve before and after they were found."""
    # K is nearly singular where points lie close together.
    with phlox.enable_x64(True), report.progress("Climbing", options.steps // CHUNK) as shown:
        t, y = map(jnp.asarray, measured(options.points, options.seed))
        times = jnp.linspace(0, SHOWN, 500)
        optimizer = optim.adam(optim.cosine_decay_schedule(0.05, options.steps))
        logs = {name: jnp.log(jnp.asarray(value)) for name, value in FIRST.items()}

        def step(state: Any, _: Any) -> Any:
            logs, moments = state
            value, slope = phlox.value_and_grad(log_probability)(logs, t, y)
            downhill = phlox.tree.map(jnp.negative, slope)
            updates, moments = optimizer.update(downhill, moments, logs)
            return (optim.apply_updates(logs, updates), moments), value

        climb = phlox.jit(lambda state: phlox.lax.scan(step, state, length=CHUNK))
        state, climbed = (logs, optimizer.init(logs)), []
        shown.row("step", "log probability", "period", " noise")
        for _ in shown.counted(range(options.steps // CHUNK)):
            state, values = climb(state)
            climbed += np.asarray(values).tolist()
            p, n = (float(jnp.exp(state[0][name])) for name in "pn")
            shown.row(str(len(climbed)), f"{climbed[-1]:.2f}", f"{p:.4f}", f"{n:.3f}")

        hyperparameters = phlox.tree.map(jnp.exp, state[0])
        curves = [predict(h, t, y, times) for h in (phlox.tree.map(jnp.exp, logs), hyperparameters)]
        return {
            "numbers": {name: float(value) for name, value in hyperparameters.items()},
            "log_probability": climbed,
            "data": (np.asarray(t), np.asarray(y)),
            "times": np.asarray(times),
            "first": tuple(map(np.asarray, curves[0])),
            "last": tuple(map(np.asarray, curves[1])),
        }


def inside(result: dict[str, Any]) -> float:
    """Which share of the true curve lies in the band of two standard deviations; 0.95 is promised."""
    mean, deviation = result["last"]
    return float(np.mean(np.abs(truth(result["times"]) - mean) < 2 * deviation))


def draw(result: dict[str, Any], title: str) -> Figure:
    """The curve with its band, before and after, and the climb."""
    figure = plots.figure(title, (11, 6))
    panels = figure.subplot_mosaic([["last", "last"], ["first", "climb"]], height_ratios=(3, 2), width_ratios=(2, 1))
    t, y = result["data"]
    for name, color in (("last", plots.BLUE), ("first", plots.GREY)):
        axes, times, (mean, deviation) = panels[name], result["times"], result[name]
        band = (mean - 2 * deviation, mean + 2 * deviation)
        axes.fill_between(times, *band, color=color, alpha=0.22, linewidth=0, label="two standard deviations")
        axes.plot(times, mean, color=color, linewidth=2, label="mean")
        axes.plot(times, truth(times), color=plots.ORANGE, linewidth=1, linestyle="--", label="truth")
        axes.plot(t, y, ".", color="black", markersize=4, label="measured")
        plots.tidy(axes)
        axes.set(xlim=(0, SHOWN), ylim=(-4.2, 4.2))
    panels["last"].legend(frameon=False, ncols=4, loc="upper left")
    panels["last"].set(title="With the numbers of the last step", xlabel="time (years)")
    panels["first"].set(title="With the first guess (period 1.15)", xlabel="time (years)")
    panels["climb"].plot(result["log_probability"], color=plots.BLUE, linewidth=2)
    plots.tidy(panels["climb"])
    panels["climb"].set(title="log p(y)", xlabel="step of Adam")
    return figure


def run(options: argparse.Namespace) -> None:
    """Learns the seven numbers, and draws the curve that follows from them."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    p, n, share = result["numbers"]["p"], result["numbers"]["n"], inside(result)
    title = f"From {options.points} points: period {p:.3f} (truth {PERIOD:g}), noise {n:.2f} (truth {NOISE:g})"
    contents = {
        "settings": settings,
        "numbers": result["numbers"],
        "log_probability": result["log_probability"],
        "inside_band": share,
    }
    written = results.write(options, contents, draw(result, title))
    report.show(f"{share:.0%} of the true curve lies in the band. Wrote {' and '.join(written)}.")
