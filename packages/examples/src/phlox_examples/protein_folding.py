"""``./train protein-folding``: a chain of beads folds to two helices, and unfolds where it is hot.

Each amino acid is one bead. The energy of the chain (Clementi, Nymeyer, Onuchic 2000) is least at a native form, here
two helices side by side: what nature has found by evolution is put in, and how it comes about is watched. With bonds r,
angles t and dihedral angles f of the native form marked by 0, in units of the strength e of a contact and of angstroms,

    E = sum of 100 (r - r0)^2  +  sum of 20 (t - t0)^2
      + sum of (1 - cos(f - f0)) + (1 - cos 3(f - f0)) / 2
      + sum over native contacts of 5 (r0/r)^12 - 6 (r0/r)^10  +  sum over other pairs of (4/r)^12.

One `grad` has all forces. Water is not there, but it pushes and brakes: Langevin's equation,

    dv = F dt - c v dt + sqrt(2 c T) dW,

in the splitting BAOAB (Leimkuhler and Matthews 2013). Many chains at several temperatures T run side by side by `vmap`.
All of them begin stretched out. How far one is folded is told by Q, the share of native contacts that it has, and by
the distance of its beads from the native ones, once turned upon them as well as possible (Kabsch 1976).

Beads have the same mean energy in all directions, T/2 each: this must come out, whatever the forces are.
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

NAME = "protein-folding"
HELIX, LOOP = 14, 4  # beads of each helix, and between them
STEP, FRICTION = 0.02, 0.1
FRAMES = 60
TEMPERATURES = (0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5)
CONTACT, CLOSE = 9.0, 1.2  # beads as near as this touch; a contact counts while it is no longer than 1.2 of its length


def native() -> Any:
    """The native form (n, 3): a helix upwards, a loop, and a helix downwards."""
    turn, rise, radius, apart = np.deg2rad(100.0), 1.5, 2.3, 9.0
    number = np.arange(HELIX)
    helix = np.stack([radius * np.cos(turn * number), radius * np.sin(turn * number), rise * number], 1)
    # Turned by half a circle around x, the second helix runs down, and winds in the same sense as the first.
    second = helix * np.array([1, -1, -1]) + np.array([apart, 0.0, rise * (HELIX - 1)])
    # A bow over both ends, on which the beads of the loop have equal distances.
    share = np.linspace(0, 1, 1000)[:, None]
    bow = helix[-1] + share * (second[0] - helix[-1]) + np.sin(np.pi * share) * np.array([0.0, 0.0, 7.0])
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(bow, axis=0), axis=1))])
    stops = np.linspace(0, along[-1], LOOP + 2)[1:-1]
    loop = np.stack([np.interp(stops, along, column) for column in bow.T], axis=1)
    return np.concatenate([helix, loop, second])


def bonds(x: Any) -> Any:
    """Lengths between neighbours."""
    return jnp.linalg.norm(x[1:] - x[:-1], axis=-1)


def angles(x: Any) -> Any:
    """Angles of three beads."""
    a, b = x[:-2] - x[1:-1], x[2:] - x[1:-1]
    return jnp.arctan2(jnp.linalg.norm(jnp.cross(a, b), axis=-1), (a * b).sum(-1))


def dihedrals(x: Any) -> Any:
    """Angles between the planes of three beads and of the next three."""
    a, b, c = (x[i + 1 : len(x) - 2 + i] - x[i : len(x) - 3 + i] for i in range(3))
    first, second = jnp.cross(a, b), jnp.cross(b, c)
    return jnp.arctan2((jnp.linalg.norm(b, axis=-1) * (a * second).sum(-1)), (first * second).sum(-1))


#: The native form, and which pairs at least four apart touch in it.
FORM = native()
FIRST, SECOND = np.triu_indices(len(FORM), 4)
LENGTHS = np.linalg.norm(FORM[FIRST] - FORM[SECOND], axis=1)
TOUCHING = LENGTHS < CONTACT


def pairs(x: Any) -> Any:
    """Lengths of all pairs that are at least four apart in the chain."""
    return jnp.sqrt(((x[FIRST] - x[SECOND]) ** 2).sum(-1))


def energy(x: Any) -> Any:
    """E of a chain (n, 3)."""
    form = jnp.asarray(FORM, x.dtype)
    turn = dihedrals(x) - dihedrals(form)
    length = pairs(x)
    short = jnp.asarray(LENGTHS, x.dtype) / length
    contact = jnp.where(TOUCHING, 5 * short**12 - 6 * short**10, (4 / length) ** 12)
    return (
        100 * ((bonds(x) - bonds(form)) ** 2).sum()
        + 20 * ((angles(x) - angles(form)) ** 2).sum()
        + (1 - jnp.cos(turn) + (1 - jnp.cos(3 * turn)) / 2).sum()
        + contact.sum()
    )


def folded(x: Any) -> Any:
    """Q."""
    near = pairs(x) < CLOSE * LENGTHS
    return (near & TOUCHING).sum() / TOUCHING.sum()


def distance(x: Any) -> Any:
    """The root mean square distance from the native form, turned upon it."""
    a, b = x - x.mean(0), jnp.asarray(FORM - FORM.mean(0), x.dtype)
    u, s, v = jnp.linalg.svd(a.T @ b)
    # A mirror image is no rotation.
    flip = jnp.sign(jnp.linalg.det(u) * jnp.linalg.det(v))
    overlap = s[0] + s[1] + flip * s[2]
    return jnp.sqrt(jnp.maximum((a**2).sum() + (b**2).sum() - 2 * overlap, 0) / len(x))


def langevin(x: Any, v: Any, temperature: Any, key: Any, steps: int) -> tuple[Any, Any, Any]:
    """Place and velocity after so many steps of BAOAB, and the mean of v^2."""
    keep = np.exp(-FRICTION * STEP)

    def step(state: Any, key: Any) -> Any:
        x, v, force = state
        v = v + STEP / 2 * force
        x = x + STEP / 2 * v
        v = keep * v + jnp.sqrt((1 - keep**2) * temperature) * phlox.random.normal(key, v.shape, v.dtype)
        x = x + STEP / 2 * v
        force = -phlox.grad(energy)(x)
        v = v + STEP / 2 * force
        return (x, v, force), (v**2).mean()

    (x, v, _), heat = phlox.lax.scan(step, (x, v, -phlox.grad(energy)(x)), phlox.random.split(key, steps))
    return x, v, heat.mean()


def stretched() -> Any:
    """A nearly straight chain, from which all begin."""
    number = np.arange(len(FORM))
    return np.stack([3.3 * number, 1.8 * (number % 2), 0.3 * ((number // 2) % 2)], 1)


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """Q, distances and heat (frame, temperature, chain), and the path of one chain."""
    # In 32 bits rounding would decide after some hundred steps where a chain is.
    with phlox.enable_x64(True):
        temperatures = jnp.repeat(jnp.asarray(TEMPERATURES), options.chains)
        count = len(temperatures)
        x = jnp.broadcast_to(jnp.asarray(stretched()), (count, *FORM.shape))
        several = phlox.jit(phlox.vmap(lambda x, v, t, key: langevin(x, v, t, key, options.steps)))
        look = phlox.jit(phlox.vmap(lambda x: (folded(x), distance(x))))
        velocity_key, key = phlox.random.split(phlox.random.key(options.seed))
        v = jnp.sqrt(temperatures)[:, None, None] * phlox.random.normal(velocity_key, x.shape)
        watched = options.chains  # the first chain of the second temperature
        path, shares, far, heat = [np.asarray(x[watched])], [], [], []
        with report.progress("Folding", FRAMES) as shown:
            shown.row("      time", *(f"Q at {t}" for t in TEMPERATURES))
            for frame in shown.counted(range(FRAMES)):
                x, v, hot = several(x, v, temperatures, phlox.random.split(phlox.random.fold_in(key, frame), count))
                q, d = look(x)
                shape = (len(TEMPERATURES), options.chains)
                shares.append(np.asarray(q).reshape(shape))
                far.append(np.asarray(d).reshape(shape))
                heat.append(np.asarray(hot).reshape(shape))
                path.append(np.asarray(x[watched]))
                if frame % 10 == 9:
                    time = (frame + 1) * options.steps * STEP
                    shown.row(f"{time:.0f}", *(f"{value:.2f}" for value in shares[-1].mean(1)))
        return {"folded": np.stack(shares), "distance": np.stack(far), "heat": np.stack(heat), "path": np.stack(path)}


def draw(result: dict[str, Any], options: argparse.Namespace, title: str) -> Figure:
    """A chain at several times, Q over time, and Q over the temperature."""
    figure = plots.figure(title, (12, 7))
    grid = figure.add_gridspec(2, 4, height_ratios=(5, 4))
    path, time = result["path"], options.steps * STEP
    for column, frame in enumerate((0, FRAMES // 20, FRAMES // 4, FRAMES)):
        axes = figure.add_subplot(grid[0, column], projection="3d")
        x = path[frame] - path[frame].mean(0)
        axes.plot(*x.T, color=plots.GREY, linewidth=2)
        axes.scatter(*x.T, c=np.arange(len(x)), cmap="viridis", s=40, edgecolors="black", linewidths=0.3)
        reach = np.abs(x).max()
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(-reach, reach))
        axes.set_box_aspect((1, 1, 1), zoom=1.15)
        axes.set_axis_off()
        q = result["folded"][frame - 1, 1, 0] if frame else 0.0
        axes.set_title(f"time {frame * time:.0f}: Q = {q:.2f}", fontsize=10)
    left, right = figure.add_subplot(grid[1, :2]), figure.add_subplot(grid[1, 2:])
    times = np.arange(1, FRAMES + 1) * time
    for number, color in ((1, plots.BLUE), (4, plots.GREY), (6, plots.ORANGE)):
        left.plot(times, result["folded"][:, number], color=color, alpha=0.5, linewidth=1)
        left.plot([], [], color=color, label=f"T = {TEMPERATURES[number]}")
    left.set(title="Q of chains", xlabel="time", ylim=(0, 1.05))
    left.legend(frameon=False, loc="lower right")
    plots.tidy(left)
    settled = result["folded"][FRAMES // 2 :].mean(0)
    right.plot(TEMPERATURES, settled, "o", color=plots.GREY, markersize=4, alpha=0.6)
    right.plot(TEMPERATURES, settled.mean(1), color=plots.BLUE, linewidth=2)
    right.set(title="Q in the second half: chains, and their mean", xlabel="temperature", ylim=(0, 1.05))
    right.grid(alpha=0.25)
    right.spines[["top", "right"]].set_visible(False)
    return figure


def run(options: argparse.Namespace) -> None:
    """Folds and unfolds the chains, and draws."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    settled = slice(FRAMES // 2, None)
    share = result["folded"][settled].mean((0, 2))
    near = float(result["distance"][settled, 1].mean())
    heat = result["heat"][settled].mean((0, 2)) / np.array(TEMPERATURES)
    cold, hot = share[1], share[-1]
    title = f"A chain folds to {cold:.0%} of its contacts, {near:.1f} angstroms from its form; hot, {hot:.0%} remain"
    contents = {
        "settings": settings,
        "temperatures": list(TEMPERATURES),
        "folded": share.tolist(),
        "distance": result["distance"][settled].mean((0, 2)).tolist(),
        "heat": heat.tolist(),
    }
    written = results.write(options, contents, draw(result, options, title))
    report.show(f"Mean energy of a direction: {heat.mean():.3f} of T/2. Wrote {' and '.join(written)}.")
