"""``./train quantum-circuit``: a variational quantum circuit finds the ground state of a chain of magnets.

n qubits stand in a ring. Neighbours like to point in the same direction, and a field across wants to turn them:

    H = - sum of Z_q Z_(q+1) - g sum of X_q.

The state of n qubits is 2^n complex numbers, one for each row of their values. A gate changes it by rotating one qubit
or two by an angle,

    RX(a) = exp(-i a X / 2),      RZZ(a) = exp(-i a Z Z / 2).

The circuit begins with all qubits along the field, and has p layers: RZZ on all neighbours, RX on all qubits. It is
built for quantum computers, which measure the energy <H>; its angles are searched such that <H> is least, as no state
has less energy than the ground state. There, gradients cost two measurements for each angle. Here they are one `grad`,
and `vmap` searches from several starts at once.

For a chain of this kind the ground state is known (Pfeuty 1970): its energy is minus the sum of
sqrt(1 + g^2 - 2 g cos k) over k = (2 j + 1) pi / n. With p = n/2 layers, and no fewer, the circuit reaches it exactly
(Ho and Hsieh 2019): so long does it take until the two ends of the ring have heard of each other.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import phlox
import phlox.numpy as jnp
import phlox_optim as optim

from . import plots, report, results
from .options import settings_of

NAME = "quantum-circuit"
RATE = 0.05  # of Adam


def values(qubits: int) -> Any:
    """Z of each qubit in each state (qubits, 2^qubits), 1 or -1."""
    return 1 - 2 * (np.arange(2**qubits) >> np.arange(qubits - 1, -1, -1)[:, None] & 1)


def neighbours(qubits: int) -> Any:
    """Z Z of each qubit and the next (qubits, 2^qubits): 1 where both have the same value, and -1 elsewhere."""
    return values(qubits) * np.roll(values(qubits), -1, axis=0)


def flips(qubits: int) -> Any:
    """The number of the state that X of each qubit makes of each state (qubits, 2^qubits)."""
    return np.arange(2**qubits) ^ (1 << np.arange(qubits - 1, -1, -1)[:, None])


def rzz(state: Any, angles: Any) -> Any:
    """Rotates all neighbours around Z Z by angles (qubits,). These gates only change phases, and so are one factor."""
    return state * jnp.exp(-0.5j * (angles @ neighbours(len(angles))))


def rx(state: Any, angles: Any) -> Any:
    """Rotates all qubits around X by angles (qubits,)."""

    def gate(state: Any, angle: Any) -> Any:
        cos, sin = jnp.cos(angle / 2), -1j * jnp.sin(angle / 2)
        first, second = state.reshape(2, -1)
        # The qubit that was first becomes the last, so that after all of them the order is as before.
        return jnp.stack([cos * first + sin * second, sin * first + cos * second], axis=1).reshape(-1), None

    return phlox.lax.scan(gate, state, angles)[0]


def circuit(angles: Any) -> Any:
    """The state (2^qubits,) after all gates, whose angles are of shape (layers, 2, qubits)."""
    qubits = angles.shape[-1]
    along_field = jnp.full(2**qubits, 2 ** (-qubits / 2), complex)
    return phlox.lax.scan(lambda state, layer: (rx(rzz(state, layer[0]), layer[1]), None), along_field, angles)[0]


def energy_of(state: Any, field: float) -> Any:
    """<H> of a state."""
    qubits = len(state).bit_length() - 1
    aligned = (jnp.abs(state) ** 2) @ neighbours(qubits).sum(0)
    return -aligned - field * (state.conj() * state[flips(qubits)]).real.sum()


def shared(angles: Any, qubits: int) -> Any:
    """Angles (layers, 2), the same for all qubits, as angles of all gates."""
    return jnp.broadcast_to(angles[..., None], (*angles.shape, qubits))


def known_energy(qubits: int, field: float) -> float:
    """The energy of the ground state by Pfeuty's formula."""
    k = (2 * np.arange(qubits) + 1) * np.pi / qubits
    return float(-np.sqrt(1 + field**2 - 2 * field * np.cos(k)).sum())


def ground_state(qubits: int, field: float) -> Any:
    """The ground state, by diagonalization of the whole matrix H."""
    matrix = -np.diag(neighbours(qubits).sum(0).astype(float))
    for flipped in flips(qubits):
        matrix[np.arange(2**qubits), flipped] -= field
    return np.linalg.eigh(matrix)[1][:, 0]


def correlations(state: Any, qubits: int) -> Any:
    """<Z_0 Z_r> for each distance r up to half of the ring."""
    z = values(qubits)
    return np.array([(np.abs(np.asarray(state)) ** 2) @ (z[0] * z[r]) for r in range(1, qubits // 2 + 1)])


def search(layers: int, options: argparse.Namespace) -> tuple[Any, Any]:
    """The best angles (layers, 2) from several starts, and the energies of that search."""
    tx = optim.adam(optim.cosine_decay_schedule(RATE, options.steps))
    slope = phlox.value_and_grad(lambda angles: energy_of(circuit(shared(angles, options.qubits)), options.field))

    def step(carry: Any, _: Any) -> Any:
        angles, state = carry
        energy, gradient = slope(angles)
        updates, state = tx.update(gradient, state)
        return (optim.apply_updates(angles, updates), state), energy

    def from_start(angles: Any) -> Any:
        (angles, _), energies = phlox.lax.scan(step, (angles, tx.init(angles)), length=options.steps)
        return angles, energies

    key = phlox.random.fold_in(phlox.random.key(options.seed), layers)
    starts = phlox.random.uniform(key, (options.starts, layers, 2))
    angles, energies = phlox.jit(phlox.vmap(from_start))(starts)
    best = int(energies[:, -1].argmin())
    return angles[best], np.asarray(energies[best])


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """The searches of all depths, and the states that they end with."""
    with phlox.enable_x64(True):
        exact, ground = known_energy(options.qubits, options.field), ground_state(options.qubits, options.field)
        depths = range(1, options.qubits // 2 + 1)
        curves, energies, fidelities = [], [], []
        with report.progress("Circuits", len(depths)) as shown:
            shown.row("layers", "     energy", "above ground", "overlap with it")
            for layers in shown.counted(depths):
                angles, curve = search(layers, options)
                state = circuit(shared(angles, options.qubits))
                curves.append(curve)
                energies.append(float(energy_of(state, options.field)))
                fidelities.append(float(abs(np.vdot(ground, np.asarray(state))) ** 2))
                shown.row(str(layers), f"{energies[-1]:.7f}", f"{energies[-1] - exact:.1e}", f"{fidelities[-1]:.7f}")
        return {
            "exact": exact,
            "energies": np.array(energies),
            "fidelities": np.array(fidelities),
            "curves": np.array(curves),
            "correlations": correlations(state, options.qubits),
            "known_correlations": correlations(ground, options.qubits),
        }


def draw(result: dict[str, Any], title: str) -> Figure:
    """How the energies sink, and how far the qubits of the state know of each other."""
    figure = plots.figure(title, (12, 5))
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    count = len(result["curves"])
    for number, curve in enumerate(result["curves"]):
        color = plots.ORANGE if number == count - 1 else plots.BLUE
        above = np.maximum(curve - result["exact"], 1e-14)
        name = f"{number + 1} layer{'s' if number else ''}"
        left.semilogy(above, color=color, alpha=0.4 + 0.6 * (number + 1) / count, linewidth=2, label=name)
    left.set(title="Energy above that of the ground state", xlabel="step of Adam", ylabel="energy")
    left.legend(frameon=False)
    plots.tidy(left)
    distances = np.arange(1, count + 1)
    right.plot(distances, result["known_correlations"], color=plots.GREY, linewidth=6, alpha=0.35, label="ground state")
    right.plot(distances, result["correlations"], "o-", color=plots.ORANGE, linewidth=1.5, label="circuit")
    right.set(title="<Z Z> of two qubits", xlabel="distance on the ring", ylim=(0, 1))
    right.legend(frameon=False)
    plots.tidy(right)
    return figure


def run(options: argparse.Namespace) -> None:
    """Searches with circuits of all depths, and compares them with the ground state."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    error = max(abs(float(result["energies"][-1] - result["exact"])), 1e-14)  # less is rounding
    layers = len(result["energies"])
    title = f"{layers} layers of gates find the ground state of {options.qubits} qubits: energy right to {error:.0e}"
    contents = {
        "settings": settings,
        "exact": result["exact"],
        "energies": result["energies"].tolist(),
        "fidelities": result["fidelities"].tolist(),
    }
    written = results.write(options, contents, draw(result, title))
    report.show(f"The ground state has energy {result['exact']:.7f}. Wrote {' and '.join(written)}.")
