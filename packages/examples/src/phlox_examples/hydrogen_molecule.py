"""``./train hydrogen-molecule``: two protons and two electrons, and everything about them by derivatives of the energy.

Each electron is in a combination of two functions, one around each proton: the minimal basis STO-3G (Hehre, Stewart,
Pople 1969), in which a function is a sum of three Gaussians. All integrals over Gaussians are known in closed form.
In atomic units (bohr, hartree), for a matrix D of the density of both electrons, their energy is

    E(D) = sum of D h + 1/2 sum of D_pq D_rs ((pq|rs) - (ps|rq)/2),

where h has the kinetic energy and the attraction of the protons, and (pq|rs) is the repulsion of two clouds of charge.
Hartree and Fock let each electron feel the mean of the other: the matrix F of that problem is the derivative of E by D,
one `grad`, and its lowest eigenvector gives the next D. Repeated, D no longer changes.

In truth electrons avoid each other. In this basis a pair of them has only 2 x 2 states, so that its energy is the
lowest eigenvalue of a matrix of 4 x 4: full configuration interaction. It is exact up to the basis.

All is a function of the distance R of the protons. The force is minus its derivative, the bond has the length where the
force is 0, which Newton's method finds by the second derivative, and that also gives the frequency of the vibration.
Known for STO-3G: at R = 1.4 the energies -1.1167 and -1.1373; bonds of 1.346 and 1.389 bohr.
"""

from __future__ import annotations

import argparse
import functools
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import phlox
import phlox.numpy as jnp

from . import plots, report, results
from .options import settings_of

NAME = "hydrogen-molecule"
EXPONENTS = np.array([3.42525091, 0.62391373, 0.16885540])
COEFFICIENTS = np.array([0.15432897, 0.53532814, 0.44463454]) * (2 * EXPONENTS / np.pi) ** 0.75
ROUNDS = 8  # of Hartree and Fock; with two functions symmetry decides, and one is enough
#: of a hydrogen molecule: half the mass of a proton in masses of the electron, and waves to a centimetre
REDUCED_MASS, WAVENUMBER = 1836.15267 / 2, 219474.63
LABELS = {"hartree-fock": "Hartree-Fock: each in the mean field of the other", "full-ci": "exact in this basis"}
METHODS = tuple(LABELS)


def boys(t: Any) -> Any:
    """The integral of exp(-t s^2) over s from 0 to 1."""
    # Its closed form is 0/0 at t = 0, where the series stands in. Both branches must be finite, or gradients are nan.
    safe = jnp.where(t > 1e-3, t, 1.0)
    closed = jnp.sqrt(jnp.pi / safe) * phlox.scipy.special.erf(jnp.sqrt(safe)) / 2
    series = 1 - t / 3 + t**2 / 10 - t**3 / 42 + t**4 / 216
    return jnp.where(t > 1e-3, closed, series)


def integrals(distance: Any) -> tuple[Any, Any, Any]:
    """Overlaps (2, 2), the one-electron part h (2, 2), and the repulsions (pq|rs) (2, 2, 2, 2)."""
    protons = jnp.stack([jnp.zeros_like(distance), distance])
    # Six Gaussians, three on each proton; a pair of them is one Gaussian again, around a point between.
    place, a = jnp.repeat(protons, 3), jnp.tile(jnp.asarray(EXPONENTS), 2)
    total = a[:, None] + a
    middle = (a[:, None] * place[:, None] + a * place) / total
    reduced = a[:, None] * a / total
    squared = (place[:, None] - place) ** 2
    overlap = (jnp.pi / total) ** 1.5 * jnp.exp(-reduced * squared)
    kinetic = reduced * (3 - 2 * reduced * squared) * overlap
    near = boys(total[..., None] * (middle[..., None] - protons) ** 2).sum(-1)
    attraction = -2 * jnp.sqrt(total / jnp.pi) * overlap * near
    # (36, 36): each pair with each pair
    p, clouds, centre = total.reshape(-1, 1), overlap.reshape(-1, 1), middle.reshape(-1, 1)
    together = p * p.T / (p + p.T)
    repulsion = 2 * jnp.sqrt(together / jnp.pi) * clouds * clouds.T * boys(together * (centre - centre.T) ** 2)

    mix = np.kron(np.eye(2), COEFFICIENTS)  # (2, 6)
    return mix @ overlap @ mix.T, mix @ (kinetic + attraction) @ mix.T, changed(repulsion, mix.T)


def changed(repulsion: Any, x: Any) -> Any:
    """The repulsions (pq|rs) between the functions that are the columns of `x`."""
    pairs = jnp.kron(x, x)
    return (pairs.T @ repulsion.reshape(len(pairs), -1) @ pairs).reshape((x.shape[1],) * 4)


def orthonormal(distance: Any) -> tuple[Any, Any]:
    """h and the repulsions between orthonormal combinations of the two functions: their sum, and their difference."""
    overlap, h, repulsion = integrals(distance)
    s = overlap[0, 1]
    x = jnp.array([[1.0, 1.0], [1.0, -1.0]]) / jnp.sqrt(2 * jnp.stack([1 + s, 1 - s]))
    return x.T @ h @ x, changed(repulsion, x)


def electronic(density: Any, h: Any, repulsion: Any) -> Any:
    """E(D) of a density in orthonormal functions."""
    coulomb = jnp.einsum("pq,rs,pqrs", density, density, repulsion)
    exchange = jnp.einsum("pq,rs,psrq", density, density, repulsion)
    return (density * h).sum() + (coulomb - exchange / 2) / 2


def hartree_fock(distance: Any) -> Any:
    """The energy of the molecule in the mean field."""
    h, repulsion = orthonormal(distance)

    def again(density: Any, _: Any) -> Any:
        fock = phlox.grad(electronic)(density, h, repulsion)
        orbital = jnp.linalg.eigh((fock + fock.T) / 2)[1][:, 0]
        return 2 * jnp.outer(orbital, orbital), None

    # Without a density F is h.
    density, _ = phlox.lax.scan(again, jnp.zeros((2, 2)), length=ROUNDS)
    return electronic(density, h, repulsion) + 1 / distance


def full_ci(distance: Any) -> Any:
    """The energy of the molecule with all that the basis allows."""
    h, repulsion = orthonormal(distance)
    one = jnp.eye(2)
    pairs = jnp.einsum("pr,qs->pqrs", h, one) + jnp.einsum("pr,qs->pqrs", one, h) + repulsion.transpose(0, 2, 1, 3)
    return jnp.linalg.eigvalsh(pairs.reshape(4, 4))[0] + 1 / distance


ENERGIES = {"hartree-fock": hartree_fock, "full-ci": full_ci}


def with_derivatives(energy: Any, distance: Any) -> tuple[Any, Any, Any]:
    """An energy, its slope and its curvature."""
    (value, slope), (_, curvature) = phlox.jvp(phlox.value_and_grad(energy), (distance,), (jnp.ones_like(distance),))
    return value, slope, curvature


def bond(derivatives: Any) -> dict[str, float]:
    """Length, energy and frequency (waves to a centimetre) of the bond, by Newton's method."""
    distance = jnp.asarray(1.4)
    for _ in range(6):
        _, slope, curvature = derivatives(distance)
        distance = distance - slope / curvature
    energy, _, curvature = derivatives(distance)
    frequency = np.sqrt(float(curvature) / REDUCED_MASS) * WAVENUMBER
    return {"length": float(distance), "energy": float(energy), "frequency": float(frequency)}


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """Energies and forces over the distance, and the bonds."""
    with phlox.enable_x64(True):
        distances = jnp.linspace(0.5, 8.0, options.points)
        curves: dict[str, Any] = {}
        with report.progress("Molecules", len(METHODS)) as shown:
            shown.row("      method", "E(1.4)  ", "bond, bohr", "energy, hartree", "vibration, 1/cm")
            for name in shown.counted(METHODS):
                energy = ENERGIES[name]
                values, slopes = phlox.jit(phlox.vmap(phlox.value_and_grad(energy)))(distances)
                derivatives = phlox.jit(functools.partial(with_derivatives, energy))
                minimum = bond(derivatives)
                minimum["at_1.4"] = float(derivatives(jnp.asarray(1.4))[0])
                curves[name] = {"energies": np.asarray(values), "forces": -np.asarray(slopes), **minimum}
                numbers = (f"{minimum['length']:.4f}", f"{minimum['energy']:.6f}", f"{minimum['frequency']:.0f}")
                shown.row(name, f"{minimum['at_1.4']:.5f}", *numbers)
        return {"distances": np.asarray(distances), **curves}


def cloud(distance: float, x: Any, y: Any) -> Any:
    """The density of both electrons of the mean field in a plane that has the protons, by symmetry."""

    def gaussians(centre: Any) -> Any:
        return (COEFFICIENTS[:, None, None] * np.exp(-EXPONENTS[:, None, None] * ((x - centre) ** 2 + y**2))).sum(0)

    overlap = float(integrals(jnp.asarray(distance))[0][0, 1])
    return (gaussians(-distance / 2) + gaussians(distance / 2)) ** 2 / (1 + overlap)


def draw(result: dict[str, Any], title: str) -> Figure:
    """The energies over the distance, the forces, and the cloud of the electrons."""
    figure = plots.figure(title, (12, 5))
    panels = figure.subplot_mosaic([["energy", "force"], ["energy", "cloud"]], width_ratios=(6, 5))
    distances = result["distances"]
    for name, color in zip(METHODS, (plots.ORANGE, plots.BLUE), strict=True):
        curve = result[name]
        for panel, values in (("energy", curve["energies"]), ("force", curve["forces"])):
            panels[panel].plot(distances, values, color=color, linewidth=2, label=LABELS[name])
        panels["energy"].plot(curve["length"], curve["energy"], "o", color=color)
    axes = panels["energy"]
    atom = 2 * -0.46658185
    axes.axhline(atom, color=plots.GREY, linewidth=1, linestyle="--")
    axes.annotate("two atoms far from each other", (8, atom), (0, -12), textcoords="offset points", ha="right")
    axes.set(title="Energy (points: the bond)", xlabel="distance (bohr)", ylabel="hartree", ylim=(-1.2, -0.5))
    axes.legend(frameon=False)
    axes = panels["force"]
    axes.axhline(0, color=plots.GREY, linewidth=1)
    axes.set(title="Force between the protons", xlabel="distance (bohr)", ylabel="hartree / bohr", ylim=(-0.2, 0.3))
    for name in ("energy", "force"):
        plots.tidy(panels[name])
    x, y = np.meshgrid(np.linspace(-3, 3, 240), np.linspace(-1.8, 1.8, 144))
    length = result["hartree-fock"]["length"]
    with phlox.enable_x64(True):
        image = cloud(length, x, y)
    axes = panels["cloud"]
    axes.contourf(x, y, np.sqrt(image), levels=24, cmap="Blues")
    axes.plot([-length / 2, length / 2], [0, 0], "+", color=plots.ORANGE, markersize=9)
    axes.set(title="Electrons around the protons (+)", xticks=[], yticks=[], aspect="equal")
    return figure


def run(options: argparse.Namespace) -> None:
    """Computes the curves, finds the bonds, and draws."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    exact = result["full-ci"]
    title = f"The bond of hydrogen by derivatives: {exact['length']:.3f} bohr, {exact['energy']:.4f} hartree"
    numbers = ("length", "energy", "frequency", "at_1.4")
    contents = {"settings": settings, **{name: {key: result[name][key] for key in numbers} for name in METHODS}}
    written = results.write(options, contents, draw(result, title))
    gained = result["hartree-fock"]["energy"] - exact["energy"]
    report.show(f"Electrons that avoid each other gain {gained:.4f} hartree. Wrote {' and '.join(written)}.")
