"""The hydrogen molecule and the quantum circuit, beside numbers of the literature and exact diagonalization."""

import numpy as np
import pytest
from scipy.special import erf

import phlox
import phlox.numpy as jnp
from phlox_examples import hydrogen_molecule, quantum_circuit
from phlox_examples.options import parse


@pytest.fixture(scope="module")
def molecule():
    return hydrogen_molecule.compute(parse(["hydrogen-molecule", "--quick"]))


def test_the_energies_of_szabo_and_ostlund(molecule):
    """Modern Quantum Chemistry, section 3.5.2 and chapter 4: STO-3G at 1.4 bohr."""
    assert molecule["hartree-fock"]["at_1.4"] == pytest.approx(-1.1167, abs=1e-4)
    assert molecule["full-ci"]["at_1.4"] == pytest.approx(-1.1373, abs=1e-4)
    with phlox.enable_x64(True):
        overlap, h, repulsion = map(np.asarray, hydrogen_molecule.integrals(jnp.asarray(1.4)))
    assert overlap[0, 0] == pytest.approx(1, abs=1e-5) and overlap[0, 1] == pytest.approx(0.6593, abs=1e-4)
    assert h[0, 0] == pytest.approx(-1.1204, abs=1e-4) and h[0, 1] == pytest.approx(-0.9584, abs=1e-4)
    assert repulsion[0, 0, 0, 0] == pytest.approx(0.7746, abs=1e-4)
    assert repulsion[0, 0, 1, 1] == pytest.approx(0.5697, abs=1e-4)
    assert repulsion[1, 0, 0, 0] == pytest.approx(0.4441, abs=1e-4)
    assert repulsion[1, 0, 1, 0] == pytest.approx(0.2970, abs=1e-4)


def test_the_bonds_of_the_literature(molecule):
    mean_field, exact = molecule["hartree-fock"], molecule["full-ci"]
    assert mean_field["length"] == pytest.approx(1.346, abs=1e-3) and mean_field["energy"] == pytest.approx(
        -1.1175, abs=1e-4
    )
    assert exact["length"] == pytest.approx(1.389, abs=1e-3) and exact["energy"] == pytest.approx(-1.1373, abs=1e-4)
    assert mean_field["frequency"] == pytest.approx(5481, abs=5)


def test_far_from_each_other_there_are_two_atoms(molecule):
    """Each with -0.46658 hartree in this basis; the mean field cannot say so."""
    assert molecule["full-ci"]["energies"][-1] == pytest.approx(2 * -0.46658, abs=1e-4)
    assert molecule["hartree-fock"]["energies"][-1] > -0.7
    assert (molecule["full-ci"]["energies"] < molecule["hartree-fock"]["energies"]).all(), "the variational principle"


def test_forces_are_slopes(molecule):
    r = molecule["distances"]
    for name in hydrogen_molecule.METHODS:
        energies = molecule[name]["energies"]
        slopes = (energies[2:] - energies[:-2]) / (r[2:] - r[:-2])
        smooth = slice(15, None)  # where the curve is nearly straight between two points
        np.testing.assert_allclose(-molecule[name]["forces"][1:-1][smooth], slopes[smooth], atol=1e-2)


def test_the_integral_of_boys():
    with phlox.enable_x64(True):
        t = np.array([0.0, 1e-9, 9.9e-4, 1.01e-3, 0.3, 5.0, 80.0])
        exact = np.where(t > 0, np.sqrt(np.pi / np.maximum(t, 1e-300)) * erf(np.sqrt(t)) / 2, 1)
        np.testing.assert_allclose(hydrogen_molecule.boys(jnp.asarray(t)), exact, rtol=1e-12)
        assert float(phlox.grad(hydrogen_molecule.boys)(0.0)) == pytest.approx(-1 / 3)


def test_a_circuit_with_half_as_many_layers_as_qubits_is_exact():
    result = quantum_circuit.compute(parse(["quantum-circuit", "--quick", "--steps", "400"]))
    assert result["exact"] == pytest.approx(-(2 * np.sqrt(2 + np.sqrt(2)) + 2 * np.sqrt(2 - np.sqrt(2))))
    assert result["energies"][-1] == pytest.approx(result["exact"], abs=1e-6)
    assert result["energies"][0] > result["exact"] + 0.1, "one layer is too few"
    assert result["fidelities"][-1] == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(result["correlations"], result["known_correlations"], atol=1e-4)


def dense(qubits, field):
    """H by Kronecker products."""
    x, z = np.array([[0, 1], [1, 0]]), np.diag([1, -1])
    on = lambda gate, q: np.kron(np.kron(np.eye(2**q), gate), np.eye(2 ** (qubits - q - 1)))
    h = -field * sum(on(x, q) for q in range(qubits))
    return h - sum(on(z, q) @ on(z, (q + 1) % qubits) for q in range(qubits))


@pytest.mark.parametrize("field", [0.5, 1.0, 2.0])
def test_the_known_energy_is_that_of_the_matrix(field):
    h = dense(6, field)
    energies, states = np.linalg.eigh(h)
    assert quantum_circuit.known_energy(6, field) == pytest.approx(energies[0])
    ground = quantum_circuit.ground_state(6, field)
    assert abs(ground @ states[:, 0]) == pytest.approx(1)
    with phlox.enable_x64(True):
        angles = phlox.random.normal(phlox.random.key(0), (2, 2, 6))
        state = np.asarray(quantum_circuit.circuit(angles))
        energy = float(quantum_circuit.energy_of(jnp.asarray(state), field))
    assert np.linalg.norm(state) == pytest.approx(1)
    assert energy == pytest.approx((state.conj() @ h @ state).real)


def test_gates_are_those_of_their_matrices():
    x, z = np.array([[0, 1], [1, 0]]), np.diag([1, -1])
    with phlox.enable_x64(True):
        random = np.random.default_rng(0)
        state = random.standard_normal(8) + 1j * random.standard_normal(8)
        angles = random.standard_normal(3)
        rotations = [np.cos(a / 2) * np.eye(2) - 1j * np.sin(a / 2) * x for a in angles]
        matrix = np.kron(np.kron(*rotations[:2]), rotations[2])
        np.testing.assert_allclose(
            quantum_circuit.rx(jnp.asarray(state), jnp.asarray(angles)), matrix @ state, rtol=1e-12
        )
        on = [np.kron(np.kron(np.eye(2**q), z), np.eye(2 ** (2 - q))) for q in range(3)]
        phase = sum(a * np.diag(on[q] @ on[(q + 1) % 3]) for q, a in enumerate(angles))
        np.testing.assert_allclose(
            quantum_circuit.rzz(jnp.asarray(state), jnp.asarray(angles)), np.exp(-0.5j * phase) * state, rtol=1e-12
        )


def test_the_gradient_is_that_of_two_measurements():
    """The rule of parameter shift, by which quantum computers get gradients."""
    with phlox.enable_x64(True):
        energy = phlox.jit(lambda angles: quantum_circuit.energy_of(quantum_circuit.circuit(angles), 0.7))
        angles = phlox.random.normal(phlox.random.key(1), (2, 2, 4))
        slope = np.asarray(phlox.grad(energy)(angles))
        for place in ((0, 0, 1), (0, 1, 3), (1, 0, 2), (1, 1, 0)):
            up, down = (float(energy(angles.at[place].add(d))) for d in (np.pi / 2, -np.pi / 2))
            assert slope[place] == pytest.approx((up - down) / 2)
