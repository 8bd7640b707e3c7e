"""``./train n-body``: two galaxies pass each other, followed by a rule that keeps the energy.

N stars attract each other. Their energy is the sum of kinetic and potential energy,

    E = sum m |v|^2/2  -  sum over pairs m m' / sqrt(|x - x'|^2 + s^2),

where the softening s keeps a close encounter of two from deciding everything (a star here stands for many). The
acceleration of a star is minus the gradient of its potential; `grad` derives it, and `vmap` takes it to all stars.

A rule for small steps in time errs in each. What matters over many steps is how these errors add. The leapfrog rule

    v <- v + h/2 a(x),      x <- x + h v,      v <- v + h/2 a(x)

is symplectic: it is exact for an energy that is a little different from E, so that the error in E swings but does not
grow. The classical rule of Runge and Kutta with four accelerations a step is more precise in one step, and yet drifts.
A planet on an ellipse, 100 times around with as many accelerations for both, shows it; then the galaxies fly.
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

NAME = "n-body"
SOFTENING = 0.1
DURATION = 7.2  # of the encounter; stars at radius 1 take 6.3 around
FRAMES = 45
TURNS, PER_TURN = 100, 320  # of the planet, and accelerations in each turn


def attraction(x: Any, others: Any, masses: Any, softening: float) -> Any:
    """The potential at `x` in the field of stars at `others`."""
    return -(masses / jnp.sqrt(((x - others) ** 2).sum(-1) + softening**2)).sum()


def accelerations(x: Any, masses: Any, softening: float) -> Any:
    """The acceleration of each star. Softened, a star does not attract itself: there the potential has its minimum."""
    return -phlox.vmap(phlox.grad(attraction), (0, None, None, None))(x, x, masses, softening)


def energy(x: Any, v: Any, masses: Any, softening: float) -> Any:
    """E. The potential of a star in its own field is a constant, and is taken away."""
    potentials = phlox.vmap(attraction, (0, None, None, None))(x, x, masses, softening) + masses / softening
    return (masses * (v**2).sum(-1)).sum() / 2 + (masses * potentials).sum() / 2


def leapfrog(a: Any, x: Any, v: Any, last: Any, h: float) -> Any:
    """One step with one new acceleration; `last` is that at `x`, which the step before has computed."""
    v = v + h / 2 * last
    x = x + h * v
    last = a(x)
    return x, v + h / 2 * last, last


def runge_kutta(a: Any, x: Any, v: Any, last: Any, h: float) -> Any:
    """One step with four new accelerations."""
    x1, v1 = v, last
    x2, v2 = v + h / 2 * v1, a(x + h / 2 * x1)
    x3, v3 = v + h / 2 * v2, a(x + h / 2 * x2)
    x4, v4 = v + h * v3, a(x + h * x3)
    x, v = x + h / 6 * (x1 + 2 * x2 + 2 * x3 + x4), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
    return x, v, a(x)


def planet(rule: Any, steps: int) -> Any:
    """The largest relative error of the energy in each turn of a planet on an ellipse with axes 1 and 0.8."""

    def a(x: Any) -> Any:
        return -x / (x @ x) ** 1.5

    def step(state: Any, _: Any) -> Any:
        x, v, last = rule(a, *state, 2 * jnp.pi / steps)
        return (x, v, last), v @ v / 2 - 1 / jnp.sqrt(x @ x)

    def turn(state: Any, _: Any) -> Any:
        state, energies = phlox.lax.scan(step, state, length=steps)
        return state, jnp.abs(energies / -0.5 - 1).max()

    # At its nearest point, 1 - e, the speed is sqrt((1 + e) / (1 - e)).
    x, v = jnp.array([0.4, 0.0]), jnp.array([0.0, 2.0])
    return phlox.lax.scan(turn, (x, v, a(x)), length=TURNS)[1]


def galaxy(key: Any, stars: int, middle: Any, velocity: Any, tilt: float) -> tuple[Any, Any]:
    """A heavy middle, the first star, and a disc of light stars on circles around it."""
    radius_key, angle_key = phlox.random.split(key)
    radius = jnp.sqrt(phlox.random.uniform(radius_key, (stars,), minval=0.04, maxval=1.0))
    angle = phlox.random.uniform(angle_key, (stars,), maxval=2 * jnp.pi)
    around = jnp.stack([jnp.cos(angle), jnp.sin(angle), 0 * angle], 1)
    along = jnp.stack([-jnp.sin(angle), jnp.cos(angle), 0 * angle], 1)
    speed = radius / (radius**2 + SOFTENING**2) ** 0.75
    turn = jnp.array([[1, 0, 0], [0, jnp.cos(tilt), -jnp.sin(tilt)], [0, jnp.sin(tilt), jnp.cos(tilt)]])
    x = jnp.concatenate([jnp.zeros((1, 3)), radius[:, None] * around]) @ turn.T + middle
    v = jnp.concatenate([jnp.zeros((1, 3)), speed[:, None] * along]) @ turn.T + velocity
    return x, v


def start(seed: int, stars: int) -> tuple[Any, Any, Any]:
    """Places, velocities and masses of two galaxies of mass 1 that will pass at a small distance."""
    keys = phlox.random.split(phlox.random.key(seed))
    middle, velocity = jnp.array([1.7, 1.0, 0.0]), jnp.array([-0.38, 0.05, 0.0])
    x, v = zip(
        galaxy(keys[0], stars, -middle, -velocity, 0.2), galaxy(keys[1], stars, middle, velocity, -0.9), strict=True
    )
    one = jnp.concatenate([jnp.array([0.95]), jnp.full(stars, 0.05 / stars)])
    return jnp.concatenate(x), jnp.concatenate(v), jnp.concatenate([one, one])


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """The errors of both rules with the planet, and the flight of the galaxies with its energies."""
    # The errors in the energy are to be seen, not those of rounding.
    with phlox.enable_x64(True):
        errors = {
            "leapfrog": phlox.jit(lambda: planet(leapfrog, PER_TURN))(),
            "runge_kutta": phlox.jit(lambda: planet(runge_kutta, PER_TURN // 4))(),
        }
        x, v, masses = start(options.seed, options.stars)
        h = DURATION / FRAMES / options.steps

        def a(x: Any) -> Any:
            return accelerations(x, masses, SOFTENING)

        def step(state: Any, _: Any) -> Any:
            x, v, last = state
            return leapfrog(a, x, v, last, h), None

        def frame(x: Any, v: Any) -> Any:
            (x, v, _), _ = phlox.lax.scan(step, (x, v, a(x)), length=options.steps)
            return x, v, energy(x, v, masses, SOFTENING)

        frame = phlox.jit(frame)
        compiled_energy = phlox.jit(energy, static_argnums=3)
        positions, energies = [np.asarray(x)], [float(compiled_energy(x, v, masses, SOFTENING))]
        with report.progress("Flying", FRAMES) as shown:
            for _ in shown.counted(range(FRAMES)):
                x, v, e = frame(x, v)
                positions.append(np.asarray(x))
                energies.append(float(e))
        return {
            "planet": {name: np.asarray(error) for name, error in errors.items()},
            "positions": np.stack(positions),
            "velocities": np.asarray(v),
            "energies": np.asarray(energies),
            "momentum": np.asarray(masses @ v),
        }


def draw(result: dict[str, Any], title: str) -> Figure:
    """Four moments of the encounter, and the errors of the energy."""
    figure = plots.figure(title, (12, 6.6))
    panels = figure.subplot_mosaic("aabbccdd\neeeeffff", height_ratios=(3, 2))
    positions = result["positions"]
    half = positions.shape[1] // 2
    for name, number in zip("abcd", (0, FRAMES * 25 // 45, FRAMES * 35 // 45, FRAMES), strict=True):
        axes = panels[name]
        for stars, color in ((positions[number, :half], "#8ecbff"), (positions[number, half:], "#ffb877")):
            axes.plot(*stars[1:, :2].T, ".", color=color, markersize=2.2, alpha=0.8, markeredgewidth=0)
            axes.plot(*stars[:1, :2].T, "o", color="white", markersize=4)
        axes.set(xlim=(-3.2, 3.2), ylim=(-3.2, 3.2), xticks=[], yticks=[], aspect="equal", facecolor="#0b1020")
        axes.set_title(f"time {DURATION * number / FRAMES:.1f}", fontsize=10)

    left, right = panels["e"], panels["f"]
    turns = np.arange(1, TURNS + 1)
    for name, text, color in (
        ("leapfrog", "leapfrog", plots.BLUE),
        ("runge_kutta", "Runge-Kutta,\nas many accelerations", plots.ORANGE),
    ):
        left.semilogy(turns, result["planet"][name], color=color, linewidth=2, label=text)
    left.legend(frameon=False)
    left.set(title="A planet: error of the energy in each turn", xlabel="turn", ylabel="relative error")
    error = result["energies"] / result["energies"][0] - 1
    right.plot(np.linspace(0, DURATION, FRAMES + 1), error, color=plots.BLUE, linewidth=2)
    right.ticklabel_format(axis="y", scilimits=(0, 0))
    right.set(title="The galaxies by leapfrog: error of the energy", xlabel="time", ylabel="relative error")
    for axes in (left, right):
        plots.tidy(axes)
    return figure


def run(options: argparse.Namespace) -> None:
    """Follows planet and galaxies, and draws both."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    error = float(np.abs(result["energies"] / result["energies"][0] - 1).max())
    stars = result["positions"].shape[1]
    title = f"Two galaxies of {stars // 2} stars pass each other; their energy is kept to {error:.0e}"
    contents = {
        "settings": settings,
        "largest_energy_error": error,
        "energies": result["energies"].tolist(),
        "planet_errors": {name: values.tolist() for name, values in result["planet"].items()},
    }
    written = results.write(options, contents, draw(result, title))
    ends = {name: values[-1] for name, values in result["planet"].items()}
    report.show(
        f"The planet's energy is off by {ends['leapfrog']:.1e} with leapfrog after {TURNS} turns, and by "
        f"{ends['runge_kutta']:.1e} with Runge-Kutta. Wrote {' and '.join(written)}."
    )
