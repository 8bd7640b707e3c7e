"""``./train hmc``: Hamiltonian Monte Carlo, many chains at once, on a density in the form of a banana.

To draw from a density p(q) that is known up to a factor, think of U(q) = -log p(q) as a landscape, on which a particle
rolls without friction. With a momentum m drawn from a normal distribution, H(q, m) = U(q) + |m|^2/2 is conserved, so
that the particle goes far and still arrives where p is as large as its momentum allows. The leapfrog rule follows it,

    m <- m - h/2 grad U(q),      q <- q + h m,      m <- m - h/2 grad U(q),

it keeps volumes and can be run backwards, so that accepting its end with probability min(1, exp(H_before - H_after))
makes up exactly for what it errs. `grad` gives the force; the chain is written for one particle, and `vmap` runs many.

Whether the chains have forgotten where they began is told by R-hat, which compares the variance between chains with
the variance within them: 1 when both agree. The draws of a chain are not independent; n of them are worth
n / (1 + 2 sum of autocorrelations) independent ones, the effective sample size.

The banana is q1 ~ N(0, 1.5), q2 ~ N(q1^2/2, 0.4) given q1. So the mean of q2 must come out as 1.5^2/2 = 1.125, and its
variance as 1.5^4/2 + 0.4^2 = 2.69125.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import phlox
import phlox.numpy as jnp

from . import plots, report, results
from .options import settings_of

NAME = "hmc"
WIDE, NARROW = 1.5, 0.4
MEAN, VARIANCE = np.array([0.0, WIDE**2 / 2]), np.array([WIDE**2, WIDE**4 / 2 + NARROW**2])
CHUNK = 100  # draws between two steps of the progress bar


def potential(q: Any) -> Any:
    """U(q) = -log p(q), up to a constant."""
    return q[0] ** 2 / (2 * WIDE**2) + (q[1] - q[0] ** 2 / 2) ** 2 / (2 * NARROW**2)


def leapfrog(q: Any, m: Any, size: Any, steps: int) -> Any:
    """Position and momentum at each step of a flight."""

    def step(state: Any, _: Any) -> Any:
        q, m = state
        m = m - size / 2 * phlox.grad(potential)(q)
        q = q + size * m
        m = m - size / 2 * phlox.grad(potential)(q)
        return (q, m), (q, m)

    return phlox.lax.scan(step, (q, m), length=steps)[1]


def transition(q: Any, key: Any, size: Any, steps: int) -> Any:
    """One draw: the next position, and the probability with which the end of the flight was accepted."""
    momentum_key, size_key, accept_key = phlox.random.split(key, 3)
    m = phlox.random.normal(momentum_key, q.shape)
    # A flight that is a whole turn ends where it began; with step sizes at random no length is such in all draws.
    size = size * phlox.random.uniform(size_key, minval=0.6, maxval=1.4)
    path_q, path_m = leapfrog(q, m, size, steps)
    new_q, new_m = path_q[-1], path_m[-1]
    lost = potential(new_q) + new_m @ new_m / 2 - potential(q) - m @ m / 2
    # A flight that leaves the numbers of 32 bits is not accepted.
    probability = jnp.where(jnp.isfinite(lost), jnp.minimum(1.0, jnp.exp(-lost)), 0.0)
    return jnp.where(phlox.random.uniform(accept_key) < probability, new_q, q), probability


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """The draws (draw, chain, coordinate), what they say, and a few flights to look at."""
    first_key, key, flight_key = phlox.random.split(phlox.random.key(options.seed), 3)

    def step(q: Any, key: Any) -> Any:
        keys = phlox.random.split(key, options.chains)
        q, probability = phlox.vmap(lambda q, key: transition(q, key, options.step_size, options.flight))(q, keys)
        return q, (q, probability.mean())

    several = phlox.jit(lambda q, keys: phlox.lax.scan(step, q, keys))
    # The chains begin far apart, and what they draw in the first fifth is thrown away.
    q = 2 * phlox.random.normal(first_key, (options.chains, 2))
    keys = phlox.random.split(key, (options.draws * 6 // 5 // CHUNK, CHUNK))
    parts = []
    with report.progress("Drawing", len(keys)) as shown:
        for some in shown.counted(keys):
            q, part = several(q, some)
            parts.append(part)
    draws = jnp.concatenate([part[0] for part in parts])[-options.draws :]
    momenta = phlox.random.normal(flight_key, (4, 2))
    flights = phlox.vmap(lambda q, m: leapfrog(q, m, options.step_size, options.flight)[0])(q[:4], momenta)
    rho = phlox.jit(autocorrelation)(draws)
    return {
        "draws": np.asarray(draws),
        "accepted": float(jnp.mean(jnp.stack([part[1] for part in parts]))),
        "mean": np.asarray(draws.mean((0, 1))),
        "variance": np.asarray(draws.var((0, 1))),
        "r_hat": np.asarray(r_hat(draws)),
        "autocorrelation": np.asarray(rho),
        "effective": np.asarray([effective(r, options.draws * options.chains) for r in np.asarray(rho).T]),
        "flights": np.concatenate([np.asarray(q[:4, None]), np.asarray(flights)], axis=1),
    }


def r_hat(draws: Any) -> Any:
    """R-hat of each coordinate. Chains are cut in halves, so that one that drifts differs from itself."""
    halves = draws.reshape(2, -1, *draws.shape[1:])
    means, within = halves.mean(1), halves.var(1, ddof=1).mean((0, 1))
    between = means.reshape(-1, draws.shape[-1]).var(0, ddof=1)
    return jnp.sqrt((halves.shape[1] - 1) / halves.shape[1] + between / within)


def autocorrelation(draws: Any) -> Any:
    """The correlation of draws that are 0, 1, 2 ... apart, over all chains, by Fourier transformation."""
    count = len(draws)
    waves = jnp.fft.rfft(draws - draws.mean((0, 1)), 2 * count, axis=0)
    products = jnp.fft.irfft(jnp.abs(waves) ** 2, axis=0)[:count].mean(1)
    return products / products[0]


def effective(rho: Any, total: int) -> float:
    """The effective sample size. Autocorrelations are added in pairs until a pair is negative, which is noise."""
    pairs = rho[: len(rho) // 2 * 2].reshape(-1, 2).sum(1)
    end = int(np.argmax(pairs < 0)) if (pairs < 0).any() else len(pairs)
    return float(total / (2 * pairs[:end].sum() - 1))


def draw(result: dict[str, Any], title: str) -> Figure:
    """The density with draws and flights, the distribution of q2, and the autocorrelations."""
    figure = plots.figure(title, (11, 5.2))
    panels = figure.subplot_mosaic([["banana", "marginal"], ["banana", "memory"]], width_ratios=(3, 2))
    axes, draws = panels["banana"], result["draws"].reshape(-1, 2)
    x, y = np.meshgrid(np.linspace(-5, 5, 300), np.linspace(-2.5, 9, 300))
    axes.contourf(x, y, np.exp(-potential((x, y))), levels=np.geomspace(3e-3, 1, 9), cmap="Blues", extend="max")
    shown = draws[:: max(1, len(draws) // 1500)]
    axes.plot(*shown.T, ".", color="black", markersize=2, alpha=0.5)
    for flight in result["flights"]:
        axes.plot(*flight.T, color=plots.ORANGE, linewidth=1.6)
        axes.plot(*flight[0], "o", color=plots.ORANGE, markersize=6)
    axes.set(xlim=(-5, 5), ylim=(-2.5, 9), xlabel="q1", ylabel="q2", title="Draws (dots) and four flights (lines)")
    axes.spines[["top", "right"]].set_visible(False)

    axes = panels["marginal"]
    axes.hist(draws[:, 0], 80, density=True, color=plots.BLUE, alpha=0.35)
    line = np.linspace(-5, 5, 300)
    axes.plot(line, np.exp(-(line**2) / (2 * WIDE**2)) / (WIDE * np.sqrt(2 * np.pi)), color=plots.BLUE, linewidth=2)
    axes.set(title="q1: drawn (area) and exact (line)", yticks=[], xlim=(-5, 5))
    plots.tidy(axes)

    axes = panels["memory"]
    for i, color in enumerate((plots.BLUE, plots.ORANGE)):
        axes.plot(
            result["autocorrelation"][:31, i], color=color, linewidth=2, marker="o", markersize=3, label=f"q{i + 1}"
        )
    axes.axhline(0, color="black", linewidth=0.8)
    axes.legend(frameon=False)
    axes.set(title="Autocorrelation", xlabel="draws apart")
    plots.tidy(axes)
    return figure


def run(options: argparse.Namespace) -> None:
    """Draws, judges the draws, and shows them."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    with report.progress("", 0) as shown:
        shown.row("coordinate", "   mean", "  exact", "variance", "  exact", "R-hat ", "effective")
        for i in range(2):
            mean, variance = result["mean"][i], result["variance"][i]
            figures = (f"{mean:.3f}", f"{MEAN[i]:.3f}", f"{variance:.3f}", f"{VARIANCE[i]:.3f}")
            shown.row(f"q{i + 1}", *figures, f"{result['r_hat'][i]:.4f}", f"{result['effective'][i]:.0f}")
    total = options.chains * options.draws
    worth = result["effective"].min()
    title = f"{options.chains} chains agree: R-hat {result['r_hat'].max():.4f}; {total:,} draws are worth {worth:,.0f}"
    names = ("mean", "variance", "r_hat", "effective")
    contents = {"settings": settings, "accepted": result["accepted"], **{name: result[name].tolist() for name in names}}
    written = results.write(options, contents, draw(result, title))
    report.show(f"{result['accepted']:.0%} of the flights were accepted. Wrote {' and '.join(written)}.")
