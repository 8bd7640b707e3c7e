"""``./train diffusion``: points become noise, and a network learns the way back.

Points x_0 of a distribution are mixed with more and more noise, in T steps,

    x_t = sqrt(a_t) x_0 + sqrt(1 - a_t) e,        e from N(0, 1),      a_t from 1 down to 0,

until nothing but noise is left. A network that sees x_t and t learns to tell e, by least squares (Ho, Jain, Abbeel
2020). It cannot know it: the best that it can say is the mean of e given x_t, and with this mean each step can be
undone, a little at a time: from noise, new points of the distribution.

Here the distribution is a ring of eight normal distributions. So all is known: the best answer in closed form, by how
much the network misses it, and what samples must be like. Each of the eight must get its eighth of the points, in its
own place and as wide as it is. Beside a sample of the network stands one drawn by the best answer itself.
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
from .errors import ProgramError
from .options import settings_of

NAME = "diffusion"
MODES, RADIUS, WIDTH = 8, 1.5, 0.12
CENTRES = RADIUS * np.stack(
    [np.cos(2 * np.pi * np.arange(MODES) / MODES), np.sin(2 * np.pi * np.arange(MODES) / MODES)], 1
)
TIMES, WAVES = 400, 8
CHUNK = 250  # steps of the training between two rows


def schedule() -> Any:
    """a_t for t = 0 ... TIMES, by the cosine of Nichol and Dhariwal (2021)."""
    wave = np.cos((np.arange(TIMES + 1) / TIMES + 0.008) / 1.008 * np.pi / 2) ** 2
    # By no step is more than 0.98 of what is left made noise, or the last step could not be undone.
    signal = np.cumprod(np.concatenate([[1.0], np.maximum(wave[1:] / wave[:-1], 0.02)]))
    return signal.astype("float32")


SIGNAL = schedule()


def drawn(key: Any, count: int) -> Any:
    """Points (count, 2) of the distribution."""
    mode_key, noise_key = phlox.random.split(key)
    mode = phlox.random.randint(mode_key, (count,), 0, MODES)
    return jnp.asarray(CENTRES, "float32")[mode] + WIDTH * phlox.random.normal(noise_key, (count, 2))


class Denoiser(nn.Layer):
    """Tells the noise (n, 2) in points (n, 2) at times (n,)."""

    network: nn.MLP

    def __call__(self, x: Any, t: Any) -> Any:
        angle = t[:, None] / TIMES * np.pi * 2.0 ** np.arange(-1, WAVES - 1, dtype="float32")
        return self.network(jnp.concatenate([x, jnp.sin(angle), jnp.cos(angle)], axis=1))


model = Denoiser(nn.MLP((2 + 2 * WAVES, 128, 128, 128, 2), nn.silu))


def best(x: Any, t: Any) -> Any:
    """The mean of e given x_t, for the ring of normal distributions."""
    signal = jnp.asarray(SIGNAL)[t][:, None]
    variance = signal * WIDTH**2 + 1 - signal
    apart = x[:, None] - jnp.sqrt(signal)[..., None] * jnp.asarray(CENTRES, x.dtype)
    share = nn.softmax(-(apart**2).sum(-1) / (2 * variance))
    # Given the mode, x_0 and e are normal, and e is a fixed part of how far x_t is from the middle of the mode.
    return jnp.sqrt(1 - signal) / variance * (share[..., None] * apart).sum(1)


def noisy(key: Any, count: int) -> tuple[Any, Any, Any]:
    """Points with noise, their times, and the noise."""
    point_key, time_key, noise_key = phlox.random.split(key, 3)
    t = phlox.random.randint(time_key, (count,), 1, TIMES + 1)
    e = phlox.random.normal(noise_key, (count, 2))
    signal = jnp.asarray(SIGNAL)[t][:, None]
    return jnp.sqrt(signal) * drawn(point_key, count) + jnp.sqrt(1 - signal) * e, t, e


def sampled(denoise: Any, key: Any, count: int) -> Any:
    """Points at each time (TIMES + 1, count, 2), from noise at first to samples in the end."""
    start_key, key = phlox.random.split(key)

    def back(x: Any, row: Any) -> Any:
        t, key = row
        signal, before = jnp.asarray(SIGNAL)[t], jnp.asarray(SIGNAL)[t - 1]
        step = signal / before
        e = denoise(x, jnp.full(count, t))
        mean = (x - (1 - step) / jnp.sqrt(1 - signal) * e) / jnp.sqrt(step)
        # The noise that a step back has of its own; none in the last one.
        spread = jnp.sqrt((1 - before) / (1 - signal) * (1 - step))
        x = mean + spread * phlox.random.normal(key, x.shape)
        return x, x

    x = phlox.random.normal(start_key, (count, 2))
    _, path = phlox.lax.scan(back, x, (jnp.arange(TIMES, 0, -1), phlox.random.split(key, TIMES)))
    return jnp.concatenate([x[None], path])


def statistics(x: Any) -> dict[str, Any]:
    """The share of each mode, and the deviations of points from the middle of theirs, along each direction."""
    apart = x[:, None] - CENTRES
    mode = (apart**2).sum(-1).argmin(1)
    own = apart[np.arange(len(x)), mode]
    shares = np.bincount(mode, minlength=MODES) / len(x)
    # Points between the modes would spoil the deviation, and are counted on their own.
    far = np.linalg.norm(own, axis=1) > 5 * WIDTH
    return {"shares": shares.tolist(), "width": float(own[~far].std()), "astray": float(far.mean())}


def train(options: argparse.Namespace) -> dict[str, Any]:
    """Trains the network, and draws samples by it and by the best answer."""
    keys = phlox.random.split(phlox.random.key(options.seed), 5)
    tx = optim.adam(optim.cosine_decay_schedule(options.learning_rate, options.steps))

    def wrong(params: Any, x: Any, t: Any, e: Any) -> Any:
        return ((model.apply(params, x, t) - e) ** 2).mean()

    def step(carry: Any, key: Any) -> Any:
        params, state = carry
        value, gradient = phlox.value_and_grad(wrong)(params, *noisy(key, options.batch_size))
        updates, state = tx.update(gradient, state)
        return (optim.apply_updates(params, updates), state), value

    several = phlox.jit(lambda carry, keys: phlox.lax.scan(step, carry, keys))
    params = model.init(keys[0])
    carry, losses = (params, tx.init(params)), []
    x, t, e = noisy(keys[2], 20_000)
    least = float(((best(x, t) - e) ** 2).mean())
    with report.progress("Training", options.steps // CHUNK) as shown:
        shown.row("  step", "loss of the network", "of the best answer")
        for number in shown.counted(range(options.steps // CHUNK)):
            carry, values = several(carry, phlox.random.split(phlox.random.fold_in(keys[1], number), CHUNK))
            losses.append(float(values.mean()))
            if not np.isfinite(losses[-1]):
                raise ProgramError("the loss has become infinite: choose a smaller --learning-rate", status=1)
            shown.row(str((number + 1) * CHUNK), f"{losses[-1]:.4f}", f"{least:.4f}")
    params = carry[0]
    sampler = phlox.jit(sampled, static_argnums=(0, 2))
    by_network = np.asarray(sampler(lambda x, t: model.apply(params, x, t), keys[3], options.samples))
    by_best = np.asarray(sampler(best, keys[4], options.samples))
    excess = float(((model.apply(params, x, t) - best(x, t)) ** 2).mean())
    return {"losses": losses, "least": least, "excess": excess, "path": by_network, "best": by_best[-1]}


def draw(result: dict[str, Any], title: str) -> Figure:
    """Points on their way, the losses, and the shares of the modes."""
    figure = plots.figure(title, (12, 6.6))
    grid = figure.add_gridspec(2, 4, height_ratios=(3, 2))
    for column, number in enumerate((0, TIMES * 3 // 5, TIMES * 17 // 20, TIMES)):
        axes = figure.add_subplot(grid[0, column])
        axes.plot(*result["path"][number][:2000].T, ".", color=plots.BLUE, markersize=2, alpha=0.6)
        axes.plot(*CENTRES.T, "+", color=plots.ORANGE, markersize=7)
        axes.set(xlim=(-3, 3), ylim=(-3, 3), xticks=[], yticks=[], aspect="equal")
        axes.set_title(
            "noise" if number == 0 else "samples" if number == TIMES else f"{number} steps back", fontsize=11
        )
    left, right = figure.add_subplot(grid[1, :2]), figure.add_subplot(grid[1, 2:])
    steps = CHUNK * np.arange(1, len(result["losses"]) + 1)
    left.plot(steps, result["losses"], "o-", markersize=3, color=plots.BLUE, linewidth=2)
    left.axhline(result["least"], color=plots.ORANGE, linewidth=1.5, linestyle="--", label="the best answer")
    left.set(title="Mean square of the error of the noise", xlabel="step")
    left.legend(frameon=False)
    plots.tidy(left)
    modes = np.arange(MODES)
    for offset, points, name, color in (
        (-0.2, result["path"][-1], "network", plots.BLUE), (0.2, result["best"], "best answer", plots.ORANGE)
    ):  # fmt: skip
        right.bar(modes + offset, statistics(points)["shares"], 0.38, color=color, label=name)
    right.axhline(1 / MODES, color="black", linewidth=1)
    right.set(title="Share of each mode (line: an eighth)", xlabel="mode", ylim=(0, 0.25))
    right.legend(frameon=False, ncols=2)
    plots.tidy(right)
    return figure


def run(options: argparse.Namespace) -> None:
    """Trains, samples, judges the samples, and draws."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = train(options)
    ours, known = statistics(result["path"][-1]), statistics(result["best"])
    title = f"From noise to points: modes {ours['width']:.3f} wide, they should be {WIDTH}; {ours['astray']:.1%} astray"
    contents = {
        "settings": settings,
        "losses": result["losses"],
        "best_loss": result["least"],
        "excess": result["excess"],
        "samples": ours,
        "best_samples": known,
    }
    written = results.write(options, contents, draw(result, title))
    report.show(f"The network misses the best answer by {result['excess']:.4f}. Wrote {' and '.join(written)}.")
