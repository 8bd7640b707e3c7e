"""``./train molecular-dynamics``: liquid argon from the forces between its atoms.

Two atoms at distance r have the energy of Lennard-Jones, in units of its depth and of the atom's diameter,

    u(r) = 4 (r^-12 - r^-6):

they attract each other weakly and repel each other strongly once they touch. The energy of all is the sum over pairs,
the forces are minus its gradient. Nothing else is said about them here: one `grad` of the sum gives all forces.

The atoms are in a box that repeats in all directions, and each pair meets at its shortest distance. Pairs beyond the
cutoff are left out; u is shifted such that u and its slope are 0 there, or the energy would jump when a pair crosses.

First the atoms, on a crystal's places, are melted and brought to temperature by rescaling their velocities; then they
are left alone, and the leapfrog rule must conserve the energy. How atoms are arranged is told by g(r), the density at
distance r from an atom, relative to the mean. For density 0.8442 and temperature 0.728, near the triple point of argon,
the first shell of neighbours is a peak of height 3 at r = 1.09 (Verlet 1968).
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

NAME = "molecular-dynamics"
DENSITY, TEMPERATURE, MELTING = 0.8442, 0.728, 2.0
STEP, CUTOFF, BINS = 0.004, 2.5, 160
CHUNK = 50  # steps between two measurements


def crystal(cells: int) -> tuple[Any, float]:
    """Positions of 4 cells^3 atoms on a face-centred cubic lattice, and the length of the box."""
    corners = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]]) / 2
    lattice = np.stack(np.meshgrid(*[np.arange(cells)] * 3), -1).reshape(-1, 1, 3)
    positions = (lattice + corners).reshape(-1, 3)
    length = (len(positions) / DENSITY) ** (1 / 3)
    return (positions + 0.25) * (length / cells), length


def distances(x: Any, length: float) -> Any:
    """The squared shortest distance of each pair, once, in the order of `triu_indices`."""
    i, j = np.triu_indices(len(x), 1)
    d = x[i] - x[j]
    d = d - length * jnp.round(d / length)
    return (d**2).sum(-1)


def pair_energy(squared: Any) -> Any:
    """u of a squared distance, shifted to end at the cutoff with slope 0."""
    inverse, edge = 1 / squared**3, CUTOFF**-6
    height, slope = 4 * (edge**2 - edge), 4 * (-12 * edge**2 + 6 * edge) / CUTOFF
    u = 4 * (inverse**2 - inverse) - height - slope * (jnp.sqrt(squared) - CUTOFF)
    return jnp.where(squared < CUTOFF**2, u, 0.0)


def potential(x: Any, length: float) -> Any:
    """The energy of all pairs."""
    return pair_energy(distances(x, length)).sum()


def temperature(v: Any) -> Any:
    """Twice the kinetic energy per degree of freedom; the box as a whole is at rest, which takes three of them."""
    return (v**2).sum() / (3 * len(v) - 3)


def radial_distribution(squared: Any, length: float) -> Any:
    """g(r) in bins up to half the box, of the squared distances of some moments."""
    r = jnp.sqrt(squared)
    counts, edges = jnp.histogram(r, BINS, (0.0, length / 2))
    atoms = (1 + np.sqrt(1 + 8 * squared.shape[-1])) / 2
    shells = 4 / 3 * jnp.pi * (edges[1:] ** 3 - edges[:-1] ** 3) / length**3
    pairs = atoms * (atoms - 1) / 2 * (squared.size / squared.shape[-1])
    return counts / (shells * pairs)


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """Energies over time, g(r), and where the atoms are in the end."""
    with phlox.enable_x64(True):
        start, length = crystal(options.cells)
        x = jnp.asarray(start)
        v = phlox.random.normal(phlox.random.key(options.seed), x.shape)
        v = v - v.mean(0)

        def step(state: Any, _: Any) -> Any:
            x, v, force = state
            v = v + STEP / 2 * force
            x = (x + STEP * v) % length
            force = -phlox.grad(potential)(x, length)
            return (x, v + STEP / 2 * force, force), None

        def several(x: Any, v: Any, target: Any) -> Any:
            # 0: left alone.
            v = v * jnp.where(target > 0, jnp.sqrt(target / temperature(v)), 1.0)
            state = (x, v, -phlox.grad(potential)(x, length))
            (x, v, _), _ = phlox.lax.scan(step, state, length=CHUNK)
            return x, v, (potential(x, length), (v**2).sum() / 2, distances(x, length))

        several = phlox.jit(several)
        warm, free = options.steps // 3 // CHUNK, options.steps // CHUNK
        targets = [MELTING] * (warm // 2) + [TEMPERATURE] * (warm - warm // 2) + [0.0] * free
        energies, squared = [], []
        with report.progress("Moving", warm + free) as shown:
            shown.row("step", "temperature", "potential energy", "total energy")
            for number in shown.counted(range(warm + free)):
                x, v, (low, high, pairs) = several(x, v, targets[number])
                energies.append([float(low), float(high)])
                if number >= warm:
                    squared.append(pairs)
                if number % 10 == 9:
                    each = np.array([float(low), float(low + high)]) / len(x)
                    shown.row(str((number + 1) * CHUNK), f"{temperature(v):.3f}", *(f"{e:.5f}" for e in each))
        g = radial_distribution(jnp.stack(squared), length)
        return {
            "energies": np.asarray(energies) / len(x),
            "warm": warm,
            "temperature": float(np.mean([high for _, high in energies[warm:]]) * 2 / (3 * len(x) - 3)),
            "r": (np.arange(BINS) + 0.5) * length / 2 / BINS,
            "g": np.asarray(g),
            "atoms": np.asarray(x),
            "velocities": np.asarray(v),
            "length": length,
        }


def draw(result: dict[str, Any], title: str) -> Figure:
    """The atoms, their energies over time, and g(r)."""
    figure = plots.figure(title, (12, 5))
    panels = figure.subplot_mosaic([["box", "energy"], ["box", "g"]], width_ratios=(5, 6))
    x, length = result["atoms"], result["length"]
    # Seen from the front: what is further behind is paler, and drawn first.
    order = np.argsort(-x[:, 2])
    axes, depth = panels["box"], x[order, 2] / length
    speed = np.linalg.norm(result["velocities"], axis=1)[order]
    points = axes.scatter(
        *x[order, :2].T, s=(2100 / length**2) * 16, c=speed, cmap="plasma", alpha=1 - 0.75 * depth,
        edgecolors="black", linewidths=0.4, vmin=0, vmax=2.5
    )  # fmt: skip
    bar = figure.colorbar(points, ax=axes, shrink=0.7, label="speed")
    bar.solids.set_alpha(1)
    axes.set(xlim=(0, length), ylim=(0, length), xticks=[], yticks=[], aspect="equal", title="The box in the end")

    axes, energies = panels["energy"], result["energies"]
    times = np.arange(1, len(energies) + 1) * CHUNK * STEP
    for values, name, color in (
        (energies[:, 1], "kinetic", plots.ORANGE),
        (energies.sum(1), "total", "black"),
        (energies[:, 0], "potential", plots.BLUE),
    ):
        axes.plot(times, values, color=color, linewidth=1.8)
        axes.annotate(name, (times[-1], values[-1]), (6, 0), textcoords="offset points", color=color, va="center")
    axes.axvspan(0, times[result["warm"] - 1], color=plots.GREY, alpha=0.15, linewidth=0)
    axes.set(title="Energy of an atom (grey: melted, and brought to temperature)")
    axes.set(xlabel="time (a step is 0.004)", ylabel="energy (depths of u)")
    plots.tidy(axes)

    axes = panels["g"]
    axes.plot(result["r"], result["g"], color=plots.BLUE, linewidth=2)
    axes.axhline(1, color=plots.GREY, linewidth=1)
    top = int(result["g"].argmax())
    axes.annotate(
        f"{result['g'][top]:.2f} at r = {result['r'][top]:.2f}", (result["r"][top], result["g"][top]), (10, -6),
        textcoords="offset points", color=plots.BLUE
    )  # fmt: skip
    axes.set(title="g(r): the density of neighbours", xlabel="r (diameters)", ylabel="relative density")
    plots.tidy(axes)
    return figure


def run(options: argparse.Namespace) -> None:
    """Melts, waits, measures, and draws."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    total = result["energies"][result["warm"] :].sum(1)
    drift = float(np.abs(total - total[0]).max())
    top = int(result["g"].argmax())
    atoms, place = len(result["atoms"]), result["r"][top]
    title = f"{atoms} atoms of liquid argon: energy kept to {drift:.0e}, neighbours at {place:.2f} diameters"
    contents = {
        "settings": settings,
        "temperature": result["temperature"],
        "energy_drift": drift,
        "peak": {"r": float(result["r"][top]), "g": float(result["g"][top])},
        "r": result["r"].tolist(),
        "g": result["g"].tolist(),
    }
    written = results.write(options, contents, draw(result, title))
    report.show(f"Temperature {result['temperature']:.3f}. Wrote {' and '.join(written)}.")
