"""``./train shallow-water``: currents of an ocean meander and break into eddies; mass and energy are conserved.

A layer of water of thickness h moves with velocity (u, v) on a rotating plane. Water that comes together makes it
thicker, and pressure g h, rotation f and the flow itself make it move (Vallis 2017, chapter 3):

    dh/dt = - div(h u, h v),
    du/dt = + q h v - d/dx (g h + (u^2 + v^2)/2),         q = (f + dv/dx - du/dy) / h,
    dv/dt = - q h u - d/dy (g h + (u^2 + v^2)/2).

h stands in the middles of cells, u and v on their walls, and q in their corners; where one is needed in the place of
another, neighbours are averaged. Sadourny (1975) found the averages with which the energy

    sum of (h u^2 + h v^2 + g h^2) / 2

is conserved exactly, as if space were continuous; time is stepped by Runge-Kutta. Mass is conserved in any case, as
what leaves a cell enters another.

Is it the sea that it should be? Small waves must have the frequency of Poincare, w^2 = f^2 + g H k^2, and without
rotation the speed sqrt(g H). Both are measured. Then two currents flow against each other, in balance of pressure and
rotation, like the Gulf Stream at its upper layer. The balance is unstable, and a small disturbance grows to eddies.
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

NAME = "shallow-water"
# Meters and seconds. g is that of an upper layer which is lighter than the water below by two parts in a thousand.
GRAVITY, DEPTH, ROTATION = 0.02, 500.0, 1e-4
SIDE, WIDTH, SPEED = 800e3, 25e3, 1.0  # of the basin, and of the currents
COURANT = 0.4  # cells that a wave passes in a step
DAY, FRAMES = 86400.0, 40
MODES = 12  # waves whose frequencies are measured


def forward(x: Any, axis: int) -> Any:
    """The neighbour in the direction of an axis; the basin repeats."""
    return jnp.roll(x, -1, axis)


def backward(x: Any, axis: int) -> Any:
    """The neighbour against the direction of an axis."""
    return jnp.roll(x, 1, axis)


def rates(state: Any, cell: float, rotation: Any) -> Any:
    """The rates of change of h, u and v (x, y); u stands left of h, v below it, q left below."""
    h, u, v = state
    flow_x = (h + backward(h, 0)) / 2 * u
    flow_y = (h + backward(h, 1)) / 2 * v
    spin = (v - backward(v, 0) - u + backward(u, 1)) / cell
    around = (h + backward(h, 0) + backward(h, 1) + backward(backward(h, 0), 1)) / 4
    q = (rotation + spin) / around
    head = GRAVITY * h + (u**2 + forward(u, 0) ** 2 + v**2 + forward(v, 1) ** 2) / 4
    # What q h v does to u, it takes from v: so neither gains energy by it.
    across = q * (flow_y + backward(flow_y, 0)) / 2
    along = q * (flow_x + backward(flow_x, 1)) / 2
    return (
        -(forward(flow_x, 0) - flow_x + forward(flow_y, 1) - flow_y) / cell,
        (across + forward(across, 1)) / 2 - (head - backward(head, 0)) / cell,
        -(along + forward(along, 0)) / 2 - (head - backward(head, 1)) / cell,
    )


def advance(state: Any, cell: float, rotation: Any, step: float) -> Any:
    """One step of Runge-Kutta, of fourth order."""

    def moved(slope: Any, size: Any) -> Any:
        return phlox.tree.map(lambda x, dx: x + size * dx, state, slope)

    a = rates(state, cell, rotation)
    b = rates(moved(a, step / 2), cell, rotation)
    c = rates(moved(b, step / 2), cell, rotation)
    d = rates(moved(c, step), cell, rotation)
    return phlox.tree.map(lambda x, a, b, c, d: x + step / 6 * (a + 2 * b + 2 * c + d), state, a, b, c, d)


def energy(state: Any) -> Any:
    """The mean energy of a square meter, per density; that of water at rest is taken off."""
    h, u, v = state
    kinetic = (h + backward(h, 0)) / 2 * u**2 + (h + backward(h, 1)) / 2 * v**2
    return (kinetic + GRAVITY * (h - DEPTH) ** 2).mean() / 2


def frequency(mode: Any, rotation: Any, points: int) -> Any:
    """The measured frequency of a wave of so many periods in the basin, of 1 mm in height."""
    cell = SIDE / points
    step = COURANT * cell / np.sqrt(GRAVITY * DEPTH)
    shape = jnp.cos(2 * jnp.pi * mode * jnp.arange(points) / points)[:, None] * jnp.ones(2)
    still = jnp.zeros_like(shape)

    def move(state: Any, _: Any) -> Any:
        return advance(state, cell, rotation, step), ((state[0] - DEPTH) * shape).mean()

    _, heights = phlox.lax.scan(move, (DEPTH + 1e-3 * shape, still, still), length=4 * points)
    # A part of the wave stays, balanced by rotation; differences are of the part that swings: for it
    # x(t + s) + x(t - s) = 2 cos(w s) x(t).
    x = jnp.diff(heights)
    cosine = ((x[2:] + x[:-2]) * x[1:-1]).sum() / (2 * (x[1:-1] ** 2).sum())
    return jnp.arccos(cosine) / step


def currents(key: Any, points: int) -> Any:
    """Two currents against each other in balance, and a small disturbance."""
    y = (jnp.arange(points) + 0.5) * SIDE / points

    def profile(y: Any) -> Any:
        return 1 / jnp.cosh((y - SIDE / 4) / WIDTH) ** 2 - 1 / jnp.cosh((y - 3 * SIDE / 4) / WIDTH) ** 2

    u = SPEED * profile(y)
    # f u = -g dh/dy, with h between two places of u
    slope = -ROTATION / GRAVITY * (u + backward(u, 0)) / 2
    h = jnp.cumsum(slope) * SIDE / points
    h = DEPTH + h - h.mean()
    phases = 2 * jnp.pi * phlox.random.uniform(key, (8, 1))
    x = jnp.arange(points) / points
    noise = jnp.cos(2 * jnp.pi * jnp.arange(1, 9)[:, None] * x + phases).sum(0)
    h = h + 3.0 * noise[:, None] * jnp.abs(profile(y))
    return h, jnp.broadcast_to(u, h.shape), jnp.zeros_like(h)


def vorticity(state: Any, cell: float) -> Any:
    """dv/dx - du/dy in multiples of f."""
    _, u, v = state
    return (v - backward(v, 0) - u + backward(u, 1)) / cell / ROTATION


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """Frequencies of waves, and the currents over time."""
    with phlox.enable_x64(True):
        modes = jnp.arange(1, MODES + 1)
        measure = phlox.jit(phlox.vmap(lambda mode, f: frequency(mode, f, options.points)))
        free, rotating = measure(modes, jnp.zeros(MODES)), measure(modes, jnp.full(MODES, ROTATION))

        cell = SIDE / options.points
        longest = COURANT * cell / np.sqrt(GRAVITY * DEPTH)
        count = int(np.ceil(options.days * DAY / FRAMES / longest))
        step = options.days * DAY / FRAMES / count
        several = phlox.jit(
            lambda state: phlox.lax.scan(lambda s, _: (advance(s, cell, ROTATION, step), None), state, length=count)[0]
        )
        state = currents(phlox.random.key(options.seed), options.points)
        frames, energies, masses = [], [], []
        with report.progress("Currents", FRAMES) as shown:
            shown.row("  day", "     mass, m", "energy, m3/s2", "fastest, m/s")
            for number in range(FRAMES + 1):
                frames.append(np.asarray(vorticity(state, cell)))
                energies.append(float(energy(state)))
                masses.append(float(state[0].mean()))
                if number % 10 == 0:
                    day, fastest = options.days * number / FRAMES, float(jnp.abs(state[1]).max())
                    shown.row(f"{day:.1f}", f"{masses[-1]:.9f}", f"{energies[-1]:.9f}", f"{fastest:.3f}")
                if number < FRAMES:
                    state = next(shown.counted([several(state)]))
        return {
            "wave_numbers": np.asarray(2 * np.pi * modes / SIDE),
            "free": np.asarray(free),
            "rotating": np.asarray(rotating),
            "frames": np.stack(frames),
            "energies": np.array(energies),
            "masses": np.array(masses),
            "days": options.days,
        }


def draw(result: dict[str, Any], title: str) -> Figure:
    """The vorticity at three times, the frequencies of waves, and what is conserved."""
    figure = plots.figure(title, (12, 7))
    panels = figure.subplot_mosaic([["0", "1", "2"], ["waves", "waves", "kept"]], height_ratios=(6, 5))
    extent = (0, SIDE / 1e3, 0, SIDE / 1e3)
    largest = np.abs(result["frames"]).max()
    for name, number in zip("012", (0, FRAMES // 2, FRAMES), strict=True):
        axes, frame = panels[name], result["frames"][number].T
        shades = {"cmap": "RdBu_r", "vmin": -0.7 * largest, "vmax": 0.7 * largest}
        image = axes.imshow(frame, origin="lower", extent=extent, interpolation="bilinear", **shades)
        axes.set(title=f"day {result['days'] * number / FRAMES:.0f}", xlabel="km")
    figure.colorbar(image, ax=panels["2"], label="spin of the water (f)")

    axes, k = panels["waves"], result["wave_numbers"]
    line = np.linspace(0, k[-1] * 1.05, 200)
    for rotation, name, color, label in (
        (ROTATION, "rotating", plots.BLUE, "sqrt(f² + gH k²)"),
        (0.0, "free", plots.ORANGE, "sqrt(gH) k"),
    ):
        axes.plot(line * 1e3, np.sqrt(rotation**2 + GRAVITY * DEPTH * line**2) * 3600, color=color, label=label)
        axes.plot(k * 1e3, result[name] * 3600, "o", color=color)
    axes.set(title="Waves: measured (points) and known (lines)", ylabel="radians / hour")
    axes.legend(frameon=False)
    plots.tidy(axes)
    axes.xaxis.set_major_locator(axes.yaxis.get_major_locator().__class__())
    axes.set_xlabel("wave number (radians / km)")

    axes = panels["kept"]
    days = result["days"] * np.arange(1, FRAMES + 1) / FRAMES
    for name, color in (("energies", plots.ORANGE), ("masses", plots.BLUE)):
        change = np.abs(result[name][1:] / result[name][0] - 1)
        axes.semilogy(
            days, np.maximum(change, 1e-17), color=color, label={"energies": "energy", "masses": "mass"}[name]
        )
    axes.set(title="Changes since the beginning", xlabel="day", ylabel="relative", ylim=(1e-17, 1e-2))
    axes.legend(frameon=False)
    plots.tidy(axes)
    return figure


def run(options: argparse.Namespace) -> None:
    """Measures waves, lets the currents flow, and draws."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    speed, known = float(result["free"][0] / result["wave_numbers"][0]), float(np.sqrt(GRAVITY * DEPTH))
    error = float(np.abs(result["energies"] / result["energies"][0] - 1).max())
    title = f"An ocean conserves its energy to {error:.0e}; its waves run {speed:.4f} m/s, sqrt(gH) is {known:.4f}"
    contents = {
        "settings": settings,
        "wave_speed": speed,
        "known_speed": known,
        "energy_error": error,
        "mass_error": float(np.abs(result["masses"] / result["masses"][0] - 1).max()),
        "largest_spin": np.abs(result["frames"]).max((1, 2)).tolist(),
    }
    written = results.write(options, contents, draw(result, title))
    report.show(f"Waves run {speed:.4f} m/s. Wrote {' and '.join(written)}.")
