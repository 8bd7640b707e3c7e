"""Rigid bodies, shallow water and the folding chain obey the laws of mechanics and of heat."""

import itertools

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox_examples import protein_folding, rigid_body, shallow_water
from phlox_examples.options import parse


@pytest.fixture(scope="module")
def bodies():
    return rigid_body.compute(parse(["rigid-body", "--quick"]))


def test_boxes_that_meet_keep_momentum_and_energy(bodies):
    kept = bodies["space"]["conserved"]
    moved = bodies["space"]["q"][-1, :, :2] - bodies["space"]["q"][0, :, :2]
    assert not np.allclose(moved, moved.mean(0), atol=1), "they have met"
    np.testing.assert_allclose(kept[:, 1:] - kept[0, 1:], 0, atol=1e-10)
    np.testing.assert_allclose(kept[:, 0], kept[0, 0], rtol=5e-3)


def test_a_pile_presses_on_the_floor_with_its_weight(bodies):
    floor = bodies["floor"]
    assert floor["pressed"] == pytest.approx(floor["weight"], rel=0.01)
    assert floor["kinetic"][-1] < 1e-3 * floor["kinetic"].max()
    assert np.abs(floor["q"][-1, :, 0]).max() < rigid_body.BIN


def test_a_box_slides_where_coulomb_says(bodies):
    np.testing.assert_allclose(bodies["slope"], rigid_body.known_slide(rigid_body.SLOPES), atol=0.05)
    assert (rigid_body.known_slide(np.deg2rad([26.0, 27.0])) > 0).tolist() == [False, True]


def test_the_depth_of_a_corner_and_its_torque():
    with phlox.enable_x64(True):
        sizes = jnp.array([[1.0, 1.0], [1.0, 1.0]])
        # A square on its tip, which stands 0.1 deep in the upper side of another, half a side off its middle.
        q = jnp.array([[0.0, 0.0, 0.0], [0.5, 1 + np.sqrt(2) - 0.1, np.pi / 4]])
        depth, normal, points = rigid_body.contacts(q, sizes, False)
        assert float(depth.max()) == pytest.approx(0.1) and int((depth > 0).sum()) == 1
        body, corner, other = np.unravel_index(int(depth.argmax()), depth.shape)
        np.testing.assert_allclose(points[body, corner], [0.5, 0.9], atol=1e-12)
        np.testing.assert_allclose(normal[body, corner, other], [0, 1], atol=1e-12)
        force = -phlox.grad(rigid_body.potential)(q, sizes, jnp.zeros(2), False)
        push = rigid_body.STIFFNESS * 0.1
        np.testing.assert_allclose(force, [[0, -push, -0.5 * push], [0, push, 0]], atol=1e-8)


def water(points):
    with phlox.enable_x64(True):
        state = phlox.tree.map(np.asarray, shallow_water.currents(phlox.random.key(0), points))
    return state, shallow_water.SIDE / points


def test_mass_and_energy_of_the_sea_do_not_change():
    state, cell = water(32)
    with phlox.enable_x64(True):
        # Any flow: with exact time the energy's rate of change is zero, by whatever velocities.
        random = np.random.default_rng(0)
        h, u, v = (
            jnp.asarray(x + scale * random.standard_normal(x.shape))
            for x, scale in zip(state, (9, 0.3, 0.3), strict=True)
        )
        slope = shallow_water.rates((h, u, v), cell, shallow_water.ROTATION)
        _, change = phlox.jvp(shallow_water.energy, ((h, u, v),), (slope,))
        kinetic = phlox.jvp(lambda u: shallow_water.energy((h, u, v)), (u,), (slope[1],))[1]
        assert abs(change) < 1e-11 * abs(kinetic)
        assert abs(slope[0].sum()) < 1e-12 * jnp.abs(slope[0]).sum()


def test_currents_begin_in_balance():
    state, cell = water(128)
    with phlox.enable_x64(True):
        calm = tuple(jnp.broadcast_to(x.mean(0), x.shape) for x in state)  # without the disturbance
        _, du, dv = shallow_water.rates(calm, cell, shallow_water.ROTATION)
        turning = shallow_water.ROTATION * shallow_water.SPEED
        assert float(jnp.abs(du).max()) < 1e-12 and float(jnp.abs(dv).max()) < 0.03 * turning


def test_waves_have_the_frequency_of_poincare():
    result = shallow_water.compute(parse(["shallow-water", "--points", "64", "--days", "1"]))
    k, speed = result["wave_numbers"], np.sqrt(shallow_water.GRAVITY * shallow_water.DEPTH)
    assert result["free"][0] / k[0] == pytest.approx(speed, rel=1e-3)
    # On the grid k is sin(k cell/2) / (cell/2), and f is averaged over two cells.
    cell = shallow_water.SIDE / 64
    k_grid, f_grid = np.sin(k * cell / 2) / (cell / 2), shallow_water.ROTATION * np.cos(k * cell / 2)
    np.testing.assert_allclose(result["free"], speed * k_grid, rtol=2e-3)
    np.testing.assert_allclose(result["rotating"], np.sqrt(f_grid**2 + (speed * k_grid) ** 2), rtol=3e-3)
    assert np.abs(result["masses"] / result["masses"][0] - 1).max() < 1e-13
    assert np.abs(result["energies"] / result["energies"][0] - 1).max() < 1e-6


def chain():
    random = np.random.default_rng(0)
    return protein_folding.FORM + 0.3 * random.standard_normal(protein_folding.FORM.shape)


def test_the_native_form_is_two_right_handed_helices():
    form = protein_folding.FORM
    length = protein_folding.HELIX
    bonds = np.linalg.norm(np.diff(form, axis=0), axis=1)
    assert (bonds > 3).all() and (bonds < 5).all()
    turns = np.rad2deg(np.asarray(protein_folding.dihedrals(jnp.asarray(form, "float32"))))
    np.testing.assert_allclose(turns[: length - 3], 50, atol=3)  # that of an alpha helix
    np.testing.assert_allclose(turns[-(length - 3) :], 50, atol=3)
    far = protein_folding.FIRST + protein_folding.LOOP + 4 < protein_folding.SECOND
    assert (protein_folding.TOUCHING & far).sum() > 20, "the helices touch each other"
    gaps = np.linalg.norm(form[:, None] - form, axis=-1)[np.triu_indices(len(form), 2)]
    assert gaps.min() > 3.5


def test_forces_of_the_chain():
    with phlox.enable_x64(True):
        x = jnp.asarray(chain())
        slope = np.asarray(phlox.grad(protein_folding.energy)(x))
        np.testing.assert_allclose(slope.sum(0), 0, atol=1e-9)
        np.testing.assert_allclose(np.cross(x, slope).sum(0), 0, atol=1e-8)  # no torque either
        for i, j in ((0, 0), (5, 1), (20, 2)):
            up, down = (float(protein_folding.energy(x.at[i, j].add(d))) for d in (1e-6, -1e-6))
            assert slope[i, j] == pytest.approx((up - down) / 2e-6, rel=1e-6, abs=1e-4)
        at_rest = phlox.grad(protein_folding.energy)(jnp.asarray(protein_folding.FORM))
        others = np.where(protein_folding.TOUCHING, 0, (4 / protein_folding.LENGTHS) ** 12)
        assert np.abs(at_rest).max() < 1 + 12 * others.max()


def test_the_distance_does_not_see_rotations_but_mirrors():
    form = protein_folding.FORM
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    turn *= np.linalg.det(turn)
    assert float(protein_folding.distance(jnp.asarray(form @ turn + 7))) == pytest.approx(0, abs=2e-2)
    assert float(protein_folding.distance(jnp.asarray(form * [-1, 1, 1]))) > 2
    assert float(protein_folding.folded(jnp.asarray(form))) == 1


def test_langevin_has_its_temperature():
    """T/2 for each direction; steps as long as these make the stiffest bonds 4 % colder."""
    x = jnp.broadcast_to(jnp.asarray(protein_folding.FORM, "float32"), (8, *protein_folding.FORM.shape))
    run = phlox.jit(phlox.vmap(lambda x, v, key: protein_folding.langevin(x, v, 0.5, key, 2500)))
    keys = phlox.random.split(phlox.random.key(0), (2, 8))
    # The first half warms the bonds up, which are at rest in the native form.
    x, v, _ = run(x, 0.7 * phlox.random.normal(phlox.random.key(1), x.shape), keys[0])
    x, _, heat = run(x, v, keys[1])
    assert float(heat.mean()) == pytest.approx(0.5, rel=0.05)
    share = np.asarray(phlox.vmap(protein_folding.folded)(x))
    assert share.mean() > 0.8, "the native form is stable where it is cold"


def test_pairs_of_the_chain_are_complete():
    pairs = set(zip(protein_folding.FIRST.tolist(), protein_folding.SECOND.tolist(), strict=True))
    everyone = itertools.combinations(range(len(protein_folding.FORM)), 2)
    assert pairs == {(i, j) for i, j in everyone if j - i >= 4}
