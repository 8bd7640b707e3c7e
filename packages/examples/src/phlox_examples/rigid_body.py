"""``./train rigid-body``: boxes collide, pile up and slide; contacts are an energy, and friction has a potential too.

A box in the plane has a place x, y and an angle a. Where a corner of one box is inside of another, by the depth d, the
two are pressed apart, with the energy

    U = sum of k d^2 / 2        over all corners and boxes.

Minus the gradient of U by x, y and a has all forces and all torques: nobody derives them. As U depends only on how the
boxes lie to each other, momentum and angular momentum are conserved, and the leapfrog rule keeps the energy.

Real boxes also lose energy. A force that depends on velocities v can be minus the gradient of a potential by v. For a
corner that is pressed with force n, glides with speed s and sinks with speed w, it is

    D = m n sqrt(s^2 + e^2) + c w^2 / 2,

whose gradient by s is Coulomb's friction m n, except for speeds below e, where it vanishes instead of jumping.

Three things are checked: boxes that meet in empty space keep momentum, angular momentum and energy; a pile that has
come to rest presses on the floor with its whole weight; on a slope of angle b a box stays where tan b is less than m,
and else accelerates by g (sin b - m cos b).
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

import phlox
import phlox.numpy as jnp

from . import plots, report, results
from .options import settings_of

NAME = "rigid-body"
GRAVITY, STIFFNESS, DAMPING, FRICTION, SLOW = 10.0, 2e4, 60.0, 0.5, 0.01  # k, c, m and e above
# Seconds of a frame, and steps in it. Without friction nothing forgives that forces jump where a corner comes into
# another box near one of its corners, and so steps are ten times as short.
FRAME, STEPS, LOSSLESS_STEPS = 0.025, 100, 1000
BIN = 2.6  # half the width of the bin of the pile
CORNERS = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
SLOPES = np.deg2rad(np.arange(10, 46, 5))


def turned(angle: Any, vector: Any) -> Any:
    """Vectors (..., 2), turned by angles (...)."""
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack(
        [cos * vector[..., 0] - sin * vector[..., 1], sin * vector[..., 0] + cos * vector[..., 1]], axis=-1
    )


def inertia(sizes: Any) -> Any:
    """Mass, mass and moment of inertia of boxes with half their sizes (n, 2), of density 1; shape (n, 3)."""
    mass = 4 * sizes[:, 0] * sizes[:, 1]
    return jnp.stack([mass, mass, mass * (sizes**2).sum(1) / 3], axis=1)


def corners(q: Any, sizes: Any) -> Any:
    """The places of all corners (n, 4, 2) of boxes q (n, 3)."""
    return q[:, None, :2] + turned(q[:, None, 2], sizes[:, None] * CORNERS)


def contacts(q: Any, sizes: Any, walls: bool) -> tuple[Any, Any, Any]:
    """Depths and directions of all contacts, and the places of all corners (n, 4, 2).

    Depths are (n, 4, n), and (n, 4, n + 3) with the floor and the two walls of the bin; below 0 there is no contact.
    """
    points = corners(q, sizes)
    local = turned(-q[:, 2], points[:, :, None] - q[:, :2])
    room = sizes - jnp.abs(local)
    sideways = room[..., 0] < room[..., 1]
    itself = jnp.eye(len(q), dtype=bool)[:, None]
    depth = jnp.where(itself, -1.0, room.min(-1))
    outward = jnp.sign(local) * jnp.stack([sideways, ~sideways], axis=-1)
    normal = turned(q[:, 2], outward)
    if walls:
        x, y = points[..., 0], points[..., 1]
        depth = jnp.concatenate([depth, jnp.stack([-y, x - BIN, -BIN - x], axis=-1)], axis=-1)
        fixed = jnp.broadcast_to(jnp.array([[0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]]), (len(q), 4, 3, 2))
        normal = jnp.concatenate([normal, fixed], axis=2)
    return depth, normal, points


def potential(q: Any, sizes: Any, gravity: Any, walls: bool) -> Any:
    """U of all contacts, and the weight; `gravity` is a vector."""
    depth, _, _ = contacts(q, sizes, walls)
    weight = -(inertia(sizes)[:, :1] * q[:, :2] * gravity).sum()
    return STIFFNESS / 2 * (jnp.maximum(depth, 0) ** 2).sum() + weight


def dissipation(v: Any, q: Any, sizes: Any, walls: bool) -> Any:
    """D of all contacts."""
    depth, normal, points = contacts(q, sizes, walls)
    arm = points[:, :, None] - q[:, :2]

    def cross(spin: Any, arm: Any) -> Any:
        return spin[..., None] * jnp.stack([-arm[..., 1], arm[..., 0]], axis=-1)

    own = v[:, None, :2] + cross(v[:, None, 2], points - q[:, None, :2])
    other = v[:, :2] + cross(v[:, 2], arm)
    if walls:
        other = jnp.concatenate([other, jnp.zeros((len(q), 4, 3, 2))], axis=2)
    speed = own[:, :, None] - other
    sinking = (speed * normal).sum(-1)
    gliding = jnp.sqrt(jnp.maximum((speed**2).sum(-1) - sinking**2, 0) + SLOW**2)
    pressed = STIFFNESS * jnp.maximum(depth, 0)
    # Walls are smooth, so that they bear no weight.
    friction = FRICTION * jnp.where(jnp.arange(depth.shape[-1]) > len(q), 0.0, 1.0)
    return (friction * pressed * gliding + DAMPING / 2 * (depth > 0) * sinking**2).sum()


def simulate(q: Any, v: Any, sizes: Any, gravity: Any, frames: int, lossy: bool) -> tuple[Any, Any]:
    """Places and velocities of each frame, (frames, n, 3). Only what is `lossy` has walls and friction."""
    masses = inertia(sizes)
    steps = STEPS if lossy else LOSSLESS_STEPS
    h = FRAME / steps

    def step(state: Any, _: Any) -> Any:
        q, v, force = state
        v = v + h / 2 * force / masses
        q = q + h * v
        force = -phlox.grad(potential)(q, sizes, gravity, lossy)
        if lossy:
            force = force - phlox.grad(dissipation)(v, q, sizes, lossy)
        return (q, v + h / 2 * force / masses, force), None

    def chunk(state: Any, _: Any) -> Any:
        state, _ = phlox.lax.scan(step, state, length=steps)
        return state, state[:2]

    _, path = phlox.lax.scan(chunk, (q, v, jnp.zeros_like(q)), length=frames)
    return path


def conserved(q: Any, v: Any, sizes: Any) -> Any:
    """Energy, both components of the momentum, and the angular momentum of boxes in empty space."""
    masses = inertia(sizes)
    momentum = masses * v
    angular = (q[:, 0] * momentum[:, 1] - q[:, 1] * momentum[:, 0] + momentum[:, 2]).sum()
    energy = (momentum * v).sum() / 2 + potential(q, sizes, jnp.zeros(2), False)
    return jnp.stack([energy, *momentum[:, :2].sum(0), angular])


def meeting(key: Any) -> tuple[Any, Any, Any]:
    """Eight boxes on a circle that fly to its middle, and spin."""
    size_key, spin_key = phlox.random.split(key)
    around = 2 * jnp.pi * jnp.arange(8) / 8
    out = jnp.stack([jnp.cos(around), jnp.sin(around)], axis=1)
    spin = 2 * phlox.random.normal(spin_key, (8, 1))
    sizes = phlox.random.uniform(size_key, (8, 2), minval=0.25, maxval=0.6)
    return jnp.concatenate([3 * out, around[:, None]], 1), jnp.concatenate([-1.5 * out, spin], 1), sizes


def pile(key: Any, count: int) -> tuple[Any, Any, Any]:
    """Boxes that hang above each other in two columns, at angles."""
    size_key, angle_key = phlox.random.split(key)
    number = jnp.arange(count)
    x, y = jnp.where(number % 2 == 0, -0.9, 0.9), 0.9 + 1.5 * (number // 2)
    sizes = phlox.random.uniform(size_key, (count, 2), minval=0.3, maxval=0.6)
    q = jnp.stack([x, y, phlox.random.uniform(angle_key, (count,), maxval=3.0)], axis=1)
    return q, jnp.zeros_like(q), sizes


def slide(slope: Any) -> Any:
    """The acceleration of a flat box on a floor that is tilted, that is, with gravity that is not straight down."""
    sizes = jnp.array([[0.4, 0.15]])
    gravity = GRAVITY * jnp.stack([jnp.sin(slope), -jnp.cos(slope)])
    sunk = -gravity[1] * inertia(sizes)[0, 0] / (2 * STIFFNESS)
    q = jnp.zeros((1, 3)).at[0, 0].set(-2.2).at[0, 1].set(sizes[0, 1] - sunk)
    _, v = simulate(q, jnp.zeros((1, 3)), sizes, gravity, 12, True)
    return (v[-1, 0, 0] - v[3, 0, 0]) / (8 * FRAME)


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """The three experiments."""
    run = phlox.jit(simulate, static_argnums=(4, 5))
    with phlox.enable_x64(True), report.progress("Experiments", 3) as shown:
        meeting_key, pile_key = phlox.random.split(phlox.random.key(options.seed))
        q, v, sizes = meeting(meeting_key)
        path_q, path_v = run(q, v, sizes, jnp.zeros(2), options.frames, False)
        invariants = phlox.vmap(lambda q, v: conserved(q, v, sizes))(path_q, path_v)
        space = {"q": np.asarray(path_q), "sizes": np.asarray(sizes), "conserved": np.asarray(invariants)}
        next(shown.counted([None]))

        q, v, sizes = pile(pile_key, options.boxes)
        path_q, path_v = run(q, v, sizes, jnp.array([0.0, -GRAVITY]), options.frames * 2, True)
        depth, _, _ = contacts(path_q[-1], sizes, True)
        masses = inertia(sizes)
        floor = {
            "q": np.asarray(path_q),
            "sizes": np.asarray(sizes),
            "kinetic": np.asarray((masses * path_v**2).sum((1, 2)) / 2),
            "pressed": float(STIFFNESS * jnp.maximum(depth[:, :, len(q)], 0).sum()),
            "weight": float(GRAVITY * masses[:, 0].sum()),
        }
        next(shown.counted([None]))
        return {"space": space, "floor": floor, "slope": np.asarray(phlox.jit(phlox.vmap(slide))(jnp.asarray(SLOPES)))}


def known_slide(slope: Any) -> Any:
    """Coulomb's acceleration on a slope."""
    return np.maximum(GRAVITY * (np.sin(slope) - FRICTION * np.cos(slope)), 0)


def draw_boxes(axes: Any, q: Any, sizes: Any, alpha: float = 1.0) -> None:
    """Boxes as polygons."""
    for number, shape in enumerate(np.asarray(corners(jnp.asarray(q), jnp.asarray(sizes)))):
        color = (plots.BLUE, plots.ORANGE, plots.GREY)[number % 3]
        axes.add_patch(Polygon(shape, closed=True, facecolor=color, edgecolor="black", alpha=alpha, linewidth=0.8))
    axes.set(xticks=[], yticks=[], aspect="equal")


def draw(result: dict[str, Any], title: str) -> Figure:
    """The boxes of both experiments, what is conserved, and the slopes."""
    figure = plots.figure(title, (12, 7))
    panels = figure.subplot_mosaic([["begin", "end", "pile"], ["kept", "slope", "pile"]], height_ratios=(5, 4))
    space, floor = result["space"], result["floor"]
    last = len(space["q"]) - 1
    for name, number in (("begin", 0), ("end", last)):
        draw_boxes(panels[name], space["q"][number], space["sizes"])
        panels[name].set(xlim=(-4.2, 4.2), ylim=(-4.2, 4.2), title=f"{(number + 1) * FRAME:.2f} s")
    axes = panels["pile"]
    draw_boxes(axes, floor["q"][-1], floor["sizes"])
    axes.plot([-BIN, -BIN, BIN, BIN], [6, 0, 0, 6], color="black", linewidth=2)
    share = floor["pressed"] / floor["weight"]
    axes.set(xlim=(-2.8, 2.8), ylim=(-0.3, 6), title=f"A pile: the floor bears {share:.2%} of its weight")
    axes = panels["kept"]
    times = np.arange(1, last + 2) * FRAME
    start = space["conserved"][0]
    for columns, name, color in (
        ([0], "energy", plots.ORANGE), ([1, 2], "momentum", plots.BLUE), ([3], "angular momentum", plots.GREY)
    ):  # fmt: skip
        change = np.abs(space["conserved"] - start)[:, columns].max(1)
        axes.semilogy(times, np.maximum(change, 1e-17), color=color, linewidth=2, label=name)
    axes.set(title="Changes in empty space", xlabel="seconds", ylim=(1e-17, 1))
    axes.legend(frameon=False, loc="center right")
    plots.tidy(axes)
    axes = panels["slope"]
    line = np.linspace(0, SLOPES[-1], 200)
    axes.plot(np.rad2deg(line), known_slide(line), color=plots.GREY, linewidth=1.5, label="known")
    axes.plot(np.rad2deg(SLOPES), result["slope"], "o", color=plots.ORANGE, label="simulated")
    axes.set(title="A box on a slope", xlabel="degrees", ylabel="acceleration (m/s²)")
    axes.legend(frameon=False)
    plots.tidy(axes)
    return figure


def run(options: argparse.Namespace) -> None:
    """Lets boxes meet, pile up and slide, and draws."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    space, floor = result["space"]["conserved"], result["floor"]
    error = float(abs(space[-1, 0] / space[0, 0] - 1))
    momentum = float(np.abs(space[:, 1:] - space[0, 1:]).max())
    title = f"Contacts by the gradient of an energy: momentum is kept to {momentum:.0e}, energy to {error:.0e}"
    contents = {
        "settings": settings,
        "energy_error": error,
        "momentum_error": momentum,
        "floor": {"pressed": floor["pressed"], "weight": floor["weight"], "kinetic": float(floor["kinetic"][-1])},
        "slopes": {"degrees": np.rad2deg(SLOPES).tolist(), "acceleration": result["slope"].tolist()},
    }
    written = results.write(options, contents, draw(result, title))
    report.show(f"The floor bears {floor['pressed'] / floor['weight']:.2%} of the pile. Wrote {' and '.join(written)}.")
