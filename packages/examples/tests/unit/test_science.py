"""The programs that compute obey the laws which they explain."""

import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import phlox
import phlox.numpy as jnp
from example_runs import results, run
from phlox_examples import (
    double_slit,
    fluid,
    gaussian_process,
    hmc,
    logistic_newton,
    mandelbrot,
    molecular_dynamics,
    n_body,
    neural_ode,
)
from phlox_examples.options import parse


@functools.cache
def small(program):
    """The numbers that a run with --quick writes."""
    with tempfile.TemporaryDirectory() as folder:
        run(program, "--quick", "--out", folder)
        return results(Path(folder), program, quick=True)


def test_newton_squares_the_error():
    found = small("logistic-newton")
    errors = found["errors"]
    assert errors["newton"][9] < 1e-5 < 1 < errors["gradient"][9]
    np.testing.assert_allclose(errors["cg"], errors["newton"], rtol=1e-6, atol=1e-10)
    full = logistic_newton.compute(parse(["logistic-newton", "--steps", "12"]))
    assert 1.9 < logistic_newton.order(full["errors"]["newton"])[2] < 2.1
    assert full["gradient_norm"] < 1e-14
    assert full["accuracy"] > 0.9


def test_conjugate_gradients_solve():
    with phlox.enable_x64(True):
        random = np.random.default_rng(0)
        root = random.standard_normal((6, 6))
        matrix, g = root @ root.T + np.eye(6), jnp.asarray(random.standard_normal(6))
        s = logistic_newton.conjugate_gradients(lambda v: matrix @ v, g)
        np.testing.assert_allclose(s, np.linalg.solve(matrix, g), rtol=1e-10)


def test_the_marginal_likelihood_is_that_of_scipy_and_has_its_gradient():
    with phlox.enable_x64(True):
        t, y = map(jnp.asarray, gaussian_process.measured(20, 0))
        h = {name: jnp.asarray(value) for name, value in gaussian_process.FIRST.items()}
        logs = phlox.tree.map(jnp.log, h)
        cov = np.asarray(gaussian_process.covariance(h, t, t)) + gaussian_process.FIRST["n"] ** 2 * np.eye(20)
        expected = multivariate_normal(np.zeros(20), cov).logpdf(np.asarray(y))
        assert float(gaussian_process.log_probability(logs, t, y)) == pytest.approx(expected, rel=1e-10)
        slope = phlox.grad(gaussian_process.log_probability)(logs, t, y)
        for name in logs:
            up, down = (
                float(gaussian_process.log_probability({**logs, name: logs[name] + d}, t, y)) for d in (1e-5, -1e-5)
            )
            assert float(slope[name]) == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-6), name
        # Far from all data only the prior is left.
        mean, deviation = gaussian_process.predict(h, t, y, jnp.array([1e4]))
        assert float(mean[0]) == pytest.approx(0) and float(deviation[0]) == pytest.approx(2**0.5)


def test_the_period_is_found():
    found = gaussian_process.compute(parse(["gaussian-process", "--points", "50", "--steps", "150"]))
    assert found["numbers"]["p"] == pytest.approx(gaussian_process.PERIOD, abs=0.01)
    assert gaussian_process.inside(found) > 0.9


def test_leapfrog_flies_back():
    q, m = jnp.array([0.5, -0.3]), jnp.array([1.0, 0.4])
    path_q, path_m = hmc.leapfrog(q, m, 0.05, 20)
    back_q, back_m = hmc.leapfrog(path_q[-1], -path_m[-1], 0.05, 20)
    np.testing.assert_allclose(back_q[-1], q, atol=1e-5)
    np.testing.assert_allclose(-back_m[-1], m, atol=1e-5)


def test_the_banana_has_its_moments():
    found = hmc.compute(parse(["hmc", "--chains", "32", "--draws", "500"]))
    # Four standard errors of the mean, and as many of the variance of what is nearly a normal distribution.
    error = 4 * np.sqrt(hmc.VARIANCE / found["effective"])
    assert (np.abs(found["mean"] - hmc.MEAN) < error).all()
    assert abs(found["variance"][0] / hmc.VARIANCE[0] - 1) < 4 * np.sqrt(2 / found["effective"][0])
    assert found["r_hat"].max() < 1.03
    assert 0.8 < found["accepted"] <= 1


def test_r_hat_and_effective_sample_size_know_independent_draws():
    random = np.random.default_rng(0)
    draws = random.standard_normal((1000, 8, 1)).astype("float32")
    assert float(hmc.r_hat(jnp.asarray(draws))[0]) == pytest.approx(1, abs=0.005)
    apart = jnp.asarray(draws + np.arange(8.0, dtype="float32")[None, :, None])
    assert float(hmc.r_hat(apart)[0]) > 1.5
    rho = np.asarray(hmc.autocorrelation(jnp.asarray(draws)))[:, 0]
    assert hmc.effective(rho, 8000) == pytest.approx(8000, rel=0.1)
    # With correlation a between neighbours, n draws are worth n (1 - a) / (1 + a).
    chain = np.zeros((4000, 8, 1), "float32")
    for i in range(1, len(chain)):
        chain[i] = 0.8 * chain[i - 1] + 0.6 * random.standard_normal((8, 1))
    rho = np.asarray(hmc.autocorrelation(jnp.asarray(chain)))[:, 0]
    assert hmc.effective(rho, 32000) == pytest.approx(32000 / 9, rel=0.15)


def test_the_solver_is_of_order_four():
    with phlox.enable_x64(True):
        turn = jnp.array([[0.0, 1.0], [-1.0, 0.0]])
        places = np.asarray(neural_ode.solve(lambda x: x @ turn.T, jnp.array([1.0, 0.0]), 41))
        times = neural_ode.INTERVAL * np.arange(41)
        exact = np.stack([np.cos(times), -np.sin(times)], 1)
        h = neural_ode.INTERVAL / neural_ode.SUBSTEPS
        assert np.abs(places - exact).max() < times[-1] * h**4 / 100


def test_the_gradient_through_the_solver():
    with phlox.enable_x64(True):
        keys = phlox.random.split(phlox.random.key(0), 3)
        params = neural_ode.network.init(keys[0])
        measured = neural_ode.solve(neural_ode.pendulum, neural_ode.starts(keys[1], 3), 14)
        slope = phlox.grad(neural_ode.loss)(params, measured)
        leaves, tree = phlox.tree.flatten(params)
        directions = [phlox.random.normal(keys[2], x.shape) for x in leaves]

        def moved(d):
            shifted = [x + d * v for x, v in zip(leaves, directions, strict=True)]
            return float(neural_ode.loss(phlox.tree.unflatten(tree, shifted), measured))

        along = sum(float((g * v).sum()) for g, v in zip(phlox.tree.leaves(slope), directions, strict=True))
        assert along == pytest.approx((moved(1e-5) - moved(-1e-5)) / 2e-5, rel=1e-6)


def test_stars_attract_each_other_as_newton_says():
    with phlox.enable_x64(True):
        x, v, masses = n_body.start(0, 10)
        found = np.asarray(n_body.accelerations(x, masses, n_body.SOFTENING))
        d = np.asarray(x)[None] - np.asarray(x)[:, None]
        pull = np.asarray(masses)[None, :, None] * d / ((d**2).sum(-1) + n_body.SOFTENING**2)[..., None] ** 1.5
        np.testing.assert_allclose(found, pull.sum(1), rtol=1e-10)
        # To every force there is an opposite one.
        np.testing.assert_allclose(np.asarray(masses) @ found, 0, atol=1e-14)
        kinetic = (np.asarray(masses) * (np.asarray(v) ** 2).sum(-1)).sum() / 2
        i, j = np.triu_indices(len(x), 1)
        distance = np.sqrt((d[i, j] ** 2).sum(-1) + n_body.SOFTENING**2)
        potential = -(np.asarray(masses)[i] * np.asarray(masses)[j] / distance).sum()
        assert float(n_body.energy(x, v, masses, n_body.SOFTENING)) == pytest.approx(kinetic + potential)


def test_leapfrog_keeps_the_energy_and_runge_kutta_does_not():
    errors = {name: np.array(values) for name, values in small("n-body")["planet_errors"].items()}
    assert errors["leapfrog"].max() < 1.01 * errors["leapfrog"][0]
    assert errors["runge_kutta"][0] < errors["leapfrog"][0]
    assert errors["runge_kutta"][-1] > 10 * errors["leapfrog"][-1]


def test_half_the_step_has_a_quarter_of_the_error():
    words = ["n-body", "--stars", "20", "--steps"]
    rough, fine = (n_body.compute(parse([*words, steps]))["energies"] for steps in ("30", "60"))
    errors = [np.abs(energies / energies[0] - 1).max() for energies in (rough, fine)]
    assert errors[1] < 2e-4
    assert 3 < errors[0] / errors[1] < 5


def test_the_energy_of_lennard_jones():
    with phlox.enable_x64(True):
        u = lambda r: float(molecular_dynamics.pair_energy(jnp.asarray(r) ** 2))
        du = lambda r: float(phlox.grad(lambda r: molecular_dynamics.pair_energy(r**2))(r))
        edge = molecular_dynamics.CUTOFF
        assert u(edge - 1e-9) == pytest.approx(0, abs=1e-12) and du(edge - 1e-9) == pytest.approx(0, abs=1e-8)
        assert u(edge + 0.1) == 0
        # Without the shift, which is the tangent at the cutoff, the minimum is at 2^(1/6) and has depth 1.
        tangent = 4 * (edge**-12 - edge**-6) + 4 * (6 * edge**-7 - 12 * edge**-13) * (2 ** (1 / 6) - edge)
        assert u(2 ** (1 / 6)) + tangent == pytest.approx(-1, abs=1e-12)
        for r in (0.95, 1.3, 2.0):
            assert du(r) == pytest.approx((u(r + 1e-6) - u(r - 1e-6)) / 2e-6, rel=1e-6)


def test_atoms_keep_energy_and_momentum():
    found = molecular_dynamics.compute(parse(["molecular-dynamics", "--quick"]))
    total = found["energies"][found["warm"] :].sum(1)
    assert np.abs(total - total[0]).max() < 2e-3
    np.testing.assert_allclose(found["velocities"].sum(0), 0, atol=1e-11)


def test_an_ideal_gas_has_no_shells():
    with phlox.enable_x64(True):
        places = np.random.default_rng(0).uniform(0, 6, (20, 200, 3))
        squared = jnp.stack([molecular_dynamics.distances(jnp.asarray(x), 6.0) for x in places])
        g = np.asarray(molecular_dynamics.radial_distribution(squared, 6.0))
        np.testing.assert_allclose(g[40:], 1, atol=0.2)
        assert g[40:].mean() == pytest.approx(1, abs=0.01)


def test_distances_from_the_mandelbrot_set():
    with phlox.enable_x64(True):
        look = phlox.jit(phlox.vmap(lambda c: mandelbrot.look(c, 200)))
        smooth, distance, slope = map(np.asarray, look(jnp.array([0j, -1 + 0j, -0.1 + 0.7j, -3 + 0j, -2.1 + 0j])))
        assert np.isinf(smooth[:3]).all() and (distance[:3] == 0).all()
        # The set ends at -2, where the estimate is known to be right up to a factor of 2.
        assert 0.5 < distance[3] < 2 and 0.05 < distance[4] < 0.2
        np.testing.assert_allclose(slope[3:], -1, atol=1e-12)


def test_the_area_of_the_mandelbrot_set():
    found = mandelbrot.compute(parse(["mandelbrot", "--height", "160", "--limit", "300"]))
    assert found["area"] == pytest.approx(mandelbrot.AREA, rel=0.02)


def test_a_wave_stays_whole_and_moves_with_its_number():
    x, y, k2, cell = double_slit.box(100)
    psi = double_slit.packet(x, y, cell)
    h = 0.02
    moved = jnp.asarray(psi, "complex64")
    for _ in range(50):
        moved = double_slit.split_step(moved, 1.0, jnp.asarray(np.exp(-0.5j * h * k2), "complex64"))
    density = np.abs(np.asarray(moved)) ** 2 * cell
    assert density.sum() == pytest.approx(1, abs=1e-5)
    before = (np.abs(psi) ** 2 * cell).sum(1) @ x
    assert density.sum(1) @ x - before == pytest.approx(50 * h * double_slit.NUMBER, rel=0.01)


def test_the_dark_stripes_are_where_paths_differ_by_half_a_wavelength():
    found = double_slit.compute(parse(["double-slit", "--points", "240", "--steps", "10"]))
    for order in (-0.5, 0.5):
        place = double_slit.expected(order)
        paths = [np.hypot(double_slit.SCREEN - double_slit.WALL, place - s * double_slit.APART / 2) for s in (1, -1)]
        assert paths[1] - paths[0] == pytest.approx(order * 2 * np.pi / double_slit.NUMBER)
    np.testing.assert_allclose(
        double_slit.dark(found["y"], found["hits"]), double_slit.expected(np.array([-0.5, 0.5])), rtol=0.04
    )
    assert (np.diff(found["norms"]) < 1e-5).all(), "nothing is added to the wave"


def test_a_velocity_without_sources():
    with phlox.enable_x64(True):
        velocity = phlox.random.normal(phlox.random.key(0), (2, 16, 16))
        free = fluid.without_sources(velocity)
        divergence = (fluid.waves(16) * np.fft.rfft2(np.asarray(free))).sum(0)
        np.testing.assert_allclose(divergence, 0, atol=1e-11)
        np.testing.assert_allclose(fluid.without_sources(free), free, atol=1e-12)


def test_smoke_is_carried():
    with phlox.enable_x64(True):
        smoke = jnp.asarray(fluid.square(16))
        # Two places down and one to the left in a step.
        wind = jnp.stack([jnp.full((16, 16), 2.0), jnp.full((16, 16), -1.0)]) / (16 * fluid.STEP)
        np.testing.assert_allclose(fluid.carried(smoke, wind), np.roll(smoke, (2, -1), (0, 1)), atol=1e-12)


def test_the_gradient_through_the_fluid():
    with phlox.enable_x64(True):
        smoke, wanted = jnp.asarray(fluid.square(16)), jnp.asarray(fluid.letter(16))
        control, direction = phlox.random.normal(phlox.random.key(0), (2, 2, 16, 16))
        value = lambda d: float(fluid.difference(0.1 * control + d * direction, (smoke, wanted)))
        slope = float((phlox.grad(fluid.difference)(0.1 * control, (smoke, wanted)) * direction).sum())
        assert slope == pytest.approx((value(1e-7) - value(-1e-7)) / 2e-7, rel=1e-4)
    losses = small("fluid")["losses"]
    assert losses[-1] < losses[0] / 3
