"""``./train mandelbrot``: the Mandelbrot set, its boundary drawn with a derivative, its area measured.

A number c of the complex plane is in the set if the sequence z <- z^2 + c, from z = 0, stays bounded. It does not once
|z| > 2, so that a picture counts steps until then. But near the boundary these counts jump from pixel to pixel, and the
finest threads of the set, thinner than a pixel, are lost between them.

The derivative tells how far away the set is without looking there: for a point c outside,

    distance ~ |z| log |z| / |dz/dc|,

right up to a factor of 4 at most. dz/dc is the derivative of the whole loop with respect to c. `jvp` gives it in one
pass, complex numbers and `while_loop` included; the loop is written for one number and `vmap` runs it for a picture.

The same derivative gives the light: c |-> log |z| is a hill over the plane, z / (dz/dc) points up its slope, and the
brightness is the cosine of the angle between the slope and the lamp.
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

NAME = "mandelbrot"
AREA = 1.50659189  # Fisher and Hill (1993) and later counts of pixels
FAR = 1e4  # |z| where a sequence counts as escaped: the estimate of the distance is better far out
WHOLE = (-0.74, 0.0, 1.3)  # middle and half height
VALLEY = (-0.743643887, 0.131825904, 0.0028)


def escape(c: Any, limit: int) -> tuple[Any, Any]:
    """The value z with which the sequence of `c` passes `FAR`, and after how many steps; `limit` if it does not."""

    def inside(state: Any) -> Any:
        z, count = state
        return (jnp.abs(z) < FAR) & (count < limit)

    def step(state: Any) -> Any:
        z, count = state
        return z * z + c, count + 1

    return phlox.lax.while_loop(inside, step, (jnp.zeros_like(c), 0))


def look(c: Any, limit: int) -> tuple[Any, Any, Any]:
    """Steps until `c` escapes, without jumps; its distance from the set; and the direction in which this grows."""
    (z, count), (dz, _) = phlox.jvp(lambda c: escape(c, limit), (c,), (jnp.ones_like(c),))
    outside = count < limit
    # Inside the set the logarithms have no meaning, and the values that are put there instead are not used.
    size = jnp.where(outside, jnp.abs(z), FAR)
    dz = jnp.where(outside, dz, 1.0)
    smooth = jnp.where(outside, count - jnp.log2(jnp.log(size) / jnp.log(FAR)), jnp.inf)
    distance = jnp.where(outside, size * jnp.log(size) / jnp.abs(dz), 0.0)
    slope = jnp.where(outside, z / dz, 1.0)
    return smooth, distance, slope / jnp.abs(slope)


def pixels(view: tuple[float, float, float], width: int, height: int) -> Any:
    """The numbers at the middles of the pixels of a view."""
    x, y, half = view
    across = (np.arange(width) + 0.5 - width / 2) * 2 * half / height
    up = (np.arange(height) + 0.5 - height / 2) * 2 * half / height
    return (x + across)[None, :] + 1j * (y + up)[:, None]


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """Both views, row by row of tiles, and the area of the set."""
    # 32 bits do not tell the pixels of the valley apart.
    with phlox.enable_x64(True):
        views = {
            "whole": (pixels(WHOLE, options.height, options.height), options.limit),
            "valley": (pixels(VALLEY, options.height * 3 // 2, options.height), 2 * options.limit),
        }
        tile = phlox.jit(phlox.vmap(look, (0, None)))
        # A while_loop of many runs as long as its slowest, so that a picture in tiles takes less time than in one.
        rows = {name: np.array_split(c, max(1, options.height // 4)) for name, (c, _) in views.items()}
        result: dict[str, Any] = {"pixel": 2 * WHOLE[2] / options.height}
        with report.progress("Tiles", sum(map(len, rows.values()))) as shown:
            for name, (c, limit) in views.items():
                parts = []
                for part in shown.counted(rows[name]):
                    parts.append([np.asarray(x) for x in tile(part.reshape(-1), limit)])
                result[name] = tuple(np.concatenate(p).reshape(c.shape) for p in zip(*parts, strict=True))
    distance = result["whole"][1]
    result["area"] = float(np.sum(distance == 0) * result["pixel"] ** 2)
    return result


def colors(view: tuple[Any, Any, Any], pixel: float) -> Any:
    """A picture (height, width, 3): hue by steps, light by slope, and the set and its threads dark by distance."""
    smooth, distance, slope = view
    outside = np.isfinite(smooth)
    steps = np.where(outside, smooth, 1.0)
    phase = 2 * np.pi * (0.79 + 0.51 * np.log(np.maximum(steps, 1.0)))
    hue = 0.5 + 0.5 * np.cos(phase[..., None] + np.array([0.0, 0.75, 1.7]))
    lamp = np.exp(1j * np.pi / 4)
    light = np.clip(((slope * lamp.conjugate()).real + 1.4) / 2.4, 0, 1)
    edge = np.clip(distance / (1.5 * pixel), 0, 1) ** 0.5
    return np.where(outside[..., None], hue * (0.35 + 0.65 * light[..., None]) * edge[..., None], 0.02)


def draw(result: dict[str, Any], title: str) -> Figure:
    """The whole set and the valley of the seahorses."""
    figure = plots.figure(title, (12, 5.4))
    left, right = figure.subplots(1, 2, width_ratios=(2, 3))
    height = result["whole"][0].shape[0]
    for axes, name, (x, y, half), text in (
        (left, "whole", WHOLE, "The set: light by the derivative"),
        (right, "valley", VALLEY, f"Valley of the seahorses, {WHOLE[2] / VALLEY[2]:.0f} times larger"),
    ):
        shape = result[name][0].shape
        wide = half * shape[1] / shape[0]
        image = colors(result[name], 2 * half / height)
        axes.imshow(image, origin="lower", extent=(x - wide, x + wide, y - half, y + half), interpolation="lanczos")
        axes.set(title=text, xticks=[], yticks=[])
    return figure


def run(options: argparse.Namespace) -> None:
    """Draws the set, and compares its area with the known one."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    area = result["area"]
    title = f"The Mandelbrot set by jvp of a while_loop: area {area:.3f} (known: {AREA:.3f})"
    contents = {"settings": settings, "area": area, "known_area": AREA}
    written = results.write(options, contents, draw(result, title))
    report.show(f"Area: {area:.4f}, {abs(area / AREA - 1):.2%} off. Wrote {' and '.join(written)}.")
