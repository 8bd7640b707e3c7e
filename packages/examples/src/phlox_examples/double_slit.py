"""``./train double-slit``: an electron passes two slits at once, and the stripes behind them are measured.

A particle in quantum mechanics is a wave psi(x, y), and |psi|^2 the density of where it is found. In units where mass
and Planck's constant over 2 pi are 1, the wave changes by

    i d psi/dt = (-1/2 Laplace + V) psi.

For a short time h each of the two terms is easy by itself: V multiplies psi by exp(-i h V) in each place, and in the
Fourier transform, where Laplace is multiplication by -k^2, the other one multiplies by exp(-i h k^2/2). Taken in turns,

    psi <- exp(-i h V/2) F^-1 exp(-i h k^2/2) F exp(-i h V/2) psi,

they err by h^3 in a step, and none of the wave gets lost. V is a wall with two slits, high but finite.

At its edges the box is lined with what swallows waves, or they would come back. A screen in front of the far edge adds
up what passes. The wave has the number k, that is, the length 2 pi / k. Where the paths from the two slits differ by
half a wavelength, or one and a half, the two waves extinguish each other: there the screen must stay dark.
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

NAME = "double-slit"
WIDTH, HEIGHT = 32.0, 40.0  # of the box
WALL, THICKNESS, SLIT, APART = 10.0, 0.5, 1.0, 5.0  # where the wall is; its slits from middle to middle
SCREEN = 27.0
NUMBER, START, SPREAD = 6.0, 5.0, (1.5, 5.0)  # of the wave packet: k, and where it is
DURATION, FRAMES = 4.8, 48


def box(points: int) -> tuple[Any, Any, Any, Any]:
    """Places x and y of a grid with `points` along y, and the squared wave numbers of its Fourier transform."""
    across = points * 4 // 5
    x = np.arange(across) * (WIDTH / across)
    y = (np.arange(points) - points // 2) * (HEIGHT / points)
    kx = 2 * np.pi * np.fft.fftfreq(across, WIDTH / across)
    ky = 2 * np.pi * np.fft.fftfreq(points, HEIGHT / points)
    return x, y, kx[:, None] ** 2 + ky[None, :] ** 2, (x[1] - x[0]) * (y[1] - y[0])


def obstacle(x: Any, y: Any) -> Any:
    """V: the wall."""
    closed = np.abs(np.abs(y) - APART / 2) > SLIT / 2
    return 200.0 * ((np.abs(x - WALL) < THICKNESS / 2)[:, None] & closed[None, :])


def swallowing(x: Any, y: Any, h: float) -> Any:
    """By what the wave is multiplied in each step: 1 inside, less in a margin."""
    margin = 4.0
    to_edge = np.minimum(np.minimum(x, WIDTH - x)[:, None], (HEIGHT / 2 - np.abs(y))[None, :])
    return np.exp(-12.0 * h * np.clip(1 - to_edge / margin, 0, 1) ** 2)


def packet(x: Any, y: Any, cell: float) -> Any:
    """A wave that comes from the left, wide enough to meet both slits."""
    shape = -((x - START) ** 2)[:, None] / (4 * SPREAD[0] ** 2) - (y**2)[None, :] / (4 * SPREAD[1] ** 2)
    psi = np.exp(shape + 1j * NUMBER * x[:, None])
    return psi / np.sqrt((np.abs(psi) ** 2).sum() * cell)


def split_step(psi: Any, half_potential: Any, kinetic: Any) -> Any:
    """One step: half of V, all of Laplace, half of V."""
    return half_potential * jnp.fft.ifft2(kinetic * jnp.fft.fft2(half_potential * psi))


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """The wave at several times, and what arrived on the screen."""
    x, y, k2, cell = box(options.points)
    h = DURATION / FRAMES / options.steps
    half_potential = jnp.asarray(np.exp(-0.5j * h * obstacle(x, y)) * np.sqrt(swallowing(x, y, h)), "complex64")
    kinetic = jnp.asarray(np.exp(-0.5j * h * k2), "complex64")
    screen = int(np.searchsorted(x, SCREEN))

    def step(state: Any, _: Any) -> Any:
        psi, hits = state
        psi = split_step(psi, half_potential, kinetic)
        # What flows through the screen is Im(psi* d psi/dx).
        slope = (psi[screen + 1] - psi[screen - 1]) / (2 * (x[1] - x[0]))
        return (psi, hits + h * (psi[screen].conj() * slope).imag), None

    several = phlox.jit(lambda state: phlox.lax.scan(step, state, length=options.steps)[0])
    psi = jnp.asarray(packet(x, y, cell), "complex64")
    state, waves = (psi, jnp.zeros(len(y))), [np.asarray(psi)]
    with report.progress("Waves", FRAMES) as shown:
        for _ in shown.counted(range(FRAMES)):
            state = several(state)
            waves.append(np.asarray(state[0]))
    return {
        "x": x,
        "y": y,
        "waves": np.stack(waves),
        "hits": np.asarray(state[1]),
        "norms": np.array([(np.abs(psi) ** 2).sum() * cell for psi in waves]),
    }


def expected(order: Any) -> Any:
    """Where on the screen the paths from the slits differ by `order` wavelengths."""
    # All points of equal difference 2a lie on a hyperbola whose foci are the slits.
    a, c, distance = order * np.pi / NUMBER, APART / 2, SCREEN - WALL
    return a * np.sqrt(1 + distance**2 / (c**2 - a**2))


def dark(y: Any, hits: Any) -> Any:
    """Measured positions of the two dark stripes in the middle, by parabolas through the smallest values nearby."""
    minima = []
    for place in expected(np.array([-0.5, 0.5])):
        near = np.flatnonzero(np.abs(y - place) < expected(0.5) / 2)
        low = near[hits[near].argmin()]
        left, middle, right = hits[low - 1 : low + 2]
        minima.append(y[low] + (y[1] - y[0]) * (left - right) / (2 * (left - 2 * middle + right)))
    return np.array(minima)


def draw(result: dict[str, Any], title: str) -> Figure:
    """The wave at three times, and the screen."""
    figure = plots.figure(title, (12, 5.4))
    panels = figure.subplots(1, 4, width_ratios=(3, 3, 3, 2.2), sharey=True)
    x, y = result["x"], result["y"]
    wall = np.ma.masked_equal((obstacle(x, y) > 0).T, False)
    for axes, number in zip(panels, (0, FRAMES * 11 // 24, FRAMES * 7 // 10), strict=False):
        psi = result["waves"][number].T
        brightness = np.abs(psi) / np.abs(psi).max()
        # The phase as hue, the amplitude as brightness.
        turn = np.angle(psi)[..., None] + np.array([0.0, 2.1, 4.2])
        image = (0.55 + 0.45 * np.cos(turn)) * brightness[..., None] ** 0.55
        extent = (x[0], x[-1], y[0], y[-1])
        axes.imshow(image, origin="lower", extent=extent, aspect="auto", interpolation="bilinear")
        axes.imshow(wall, origin="lower", extent=extent, aspect="auto", cmap="gray", vmin=-1, vmax=1)
        axes.axvline(SCREEN, color="white", linewidth=1, linestyle=":")
        axes.set(xticks=[], yticks=[], xlim=(0, 30), ylim=(-15, 15))
        axes.set_title(f"time {DURATION * number / FRAMES:.1f}", fontsize=10)
    axes = panels[3]
    axes.fill_betweenx(y, result["hits"], color=plots.BLUE, alpha=0.35, linewidth=0)
    axes.plot(result["hits"], y, color=plots.BLUE, linewidth=1.5)
    for order in (-1.5, -0.5, 0.5, 1.5):
        axes.axhline(expected(order), color=plots.ORANGE, linewidth=1, linestyle="--")
    axes.set(xlim=(0, None), xticks=[])
    axes.set_title("arrived on the screen;\ndashed: where paths differ\nby n + 1/2 wavelengths", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def run(options: argparse.Namespace) -> None:
    """Lets the wave pass, and measures the stripes."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    measured = dark(result["y"], result["hits"])
    apart, theory = float(measured[1] - measured[0]), float(2 * expected(0.5))
    title = f"An electron passes two slits: dark stripes {apart:.2f} apart, by the lengths of the paths {theory:.2f}"
    contents = {
        "settings": settings,
        "dark": measured.tolist(),
        "apart": apart,
        "expected": theory,
        "norms": result["norms"].tolist(),
        "hits": result["hits"].tolist(),
    }
    written = results.write(options, contents, draw(result, title))
    arrived = result["hits"].sum() * (result["y"][1] - result["y"][0])
    report.show(f"{arrived:.1%} of the wave arrived. Wrote {' and '.join(written)}.")
