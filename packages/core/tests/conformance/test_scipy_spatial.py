"""phlox.scipy.spatial.transform, Rotation and Slerp, beside jax's and SciPy's."""

import itertools

import jax
import jax.scipy.spatial.transform
import numpy as np
import pytest
import scipy.spatial.transform

import judge
import phlox
from conformance.harness import both
from phlox.scipy.spatial.transform import Rotation, Slerp


def drawn(*shape, dtype="float32", low=-2.0, high=2.0):
    return judge.array(judge.rng("rotations", shape, dtype), shape, dtype, low, high)


def quats(*shape, dtype="float32"):
    x = drawn(*shape, 4, dtype=dtype)
    return x / np.linalg.norm(x, axis=-1, keepdims=True).astype(x.dtype)


def rotations(m):
    return m.scipy.spatial.transform.Rotation


def matrices(*shape, dtype="float32"):
    x = scipy.spatial.transform.Rotation.from_quat(quats(*shape).reshape(-1, 4)).as_matrix()
    return x.reshape(*shape, 3, 3).astype(dtype)


EULER = ["xyz", "zxz", "XYZ", "ZYZ", "YXZ", "yxy"]
#: What is made of arrays by one method, and what one method gives.
MAKERS = {
    "from_quat": ([(4,), (2, 3, 4)], {}),
    "from_rotvec": ([(3,), (2, 3)], {"degrees": [False, True]}),
    "from_mrp": ([(3,), (2, 2, 3)], {}),
}
METHODS = {
    "as_quat": {"canonical": [False, True], "scalar_first": [False, True]},
    "as_matrix": {},
    "as_mrp": {},
    "as_rotvec": {"degrees": [False, True]},
    "as_euler": {"seq": EULER, "degrees": [False, True]},
    "magnitude": {},
    "inv": {},
}


def options(of):
    return [dict(zip(of, chosen, strict=True)) for chosen in itertools.product(*of.values())]


MADE = [(name, shape, kw) for name, (shapes, of) in MAKERS.items() for shape in shapes for kw in options(of)]
ASKED = [(name, kw) for name, of in METHODS.items() for kw in options(of)]


def everywhere(run, *args, tolerance=1e-5, grad=True, **more):
    """Under jit, in a batch, and its gradient."""
    leaf = lambda m, *xs: m.tree_util.tree_leaves(run(m, *xs))[0]
    both(lambda m, *xs: m.jit(lambda *ys: run(m, *ys))(*xs), *args, tolerance=tolerance, what="jit", **more)
    stacked = [np.stack([x, x[::-1]]) if np.ndim(x) else x for x in args]
    axes = [0 if np.ndim(x) else None for x in args]
    batched = lambda m, *xs: m.jit(m.vmap(lambda *ys: leaf(m, *ys), axes))(*xs)
    both(batched, *stacked, tolerance=tolerance, what="vmap", **more)
    if grad:
        weighted = lambda m, *xs: (leaf(m, *xs) * judge.weights(np.shape(leaf(phlox, *args)))).sum()
        slope = lambda m, *xs: m.jit(m.grad(lambda *ys: weighted(m, *ys), tuple(range(len(args)))))(*xs)
        both(slope, *args, tolerance=20 * tolerance, what="grad", weak=False)


@pytest.mark.parametrize(("name", "shape", "kw"), MADE)
def test_made_of_arrays(name, shape, kw):
    everywhere(lambda m, x: getattr(rotations(m), name)(x, **kw).quat, drawn(*shape))


@pytest.mark.parametrize("shape", [(), (2, 2)])
def test_made_of_matrices(shape):
    everywhere(lambda m, x: rotations(m).from_matrix(x).quat, matrices(*shape))


@pytest.mark.parametrize("seq", ["x", "Z", "yz", "XY", *EULER])
@pytest.mark.parametrize("degrees", [False, True])
def test_made_of_angles(seq, degrees):
    everywhere(lambda m, x: rotations(m).from_euler(seq, x, degrees).quat, drawn(2, len(seq)))
    if len(seq) == 1:
        both(lambda m: rotations(m).from_euler(seq, 0.5, degrees).quat, tolerance=1e-5)


@pytest.mark.parametrize(("name", "kw"), ASKED)
@pytest.mark.parametrize("shape", [(), (2, 2)])
def test_given_by_rotations(name, kw, shape):
    run = lambda m, q: getattr(rotations(m)(q), name)(**kw)
    everywhere(run, quats(*shape), tolerance=1e-3 if kw.get("degrees") else 1e-5)


@pytest.mark.parametrize("inverse", [False, True])
def test_applied(inverse):
    run = lambda m, q, x: rotations(m)(q).apply(x, inverse)
    for first, second in [((), (3,)), ((4, 1), (2, 3))]:
        everywhere(run, quats(*first), drawn(*second))
    both(run, quats(), np.array([1, 2, 3]), tolerance=1e-5)


def test_products_and_parts():
    everywhere(lambda m, p, q: (rotations(m)(p) * rotations(m)(q)).quat, quats(2), quats(1, 2))
    both(lambda m, q: rotations(m)(q)[1:].quat, quats(3))
    both(lambda m, q: rotations(m)(q)[0].quat, quats(3))
    both(lambda m, q: [len(rotations(m)(q)), rotations(m)(q).single], quats(3))
    both(lambda m, q: rotations(m)(q).single, quats())
    both(lambda m, p, q: rotations(m).concatenate([rotations(m)(p), rotations(m)(q)]).quat, quats(2), quats(3))
    both(lambda m: rotations(m).identity().quat)
    both(lambda m: rotations(m).identity(dtype="float16").quat)
    assert Rotation.identity(2).quat.shape == (2, 4)


def test_single_rotations_together():
    """jax joins the numbers of their quaternions."""
    p, q = Rotation.identity(), Rotation.from_quat(quats(2))
    np.testing.assert_array_equal(Rotation.concatenate([p, q, p]).quat, np.stack([p.quat, *q.quat, p.quat]))


def test_mean():
    """The sign of a quaternion says nothing."""
    run = lambda m, q, w: rotations(m)(q).mean(w).as_matrix()
    both(lambda m, q: rotations(m)(q).mean().as_matrix(), quats(5), tolerance=1e-5)
    both(run, quats(5), np.abs(drawn(5)), tolerance=1e-5)
    slope = lambda m, q, w: m.grad(lambda q, w: (run(m, q, w) * judge.weights((3, 3))).sum(), (0, 1))(q, w)
    both(slope, quats(5), np.abs(drawn(5)), tolerance=1e-3)


@pytest.mark.parametrize("times", [0.4, [0.1, 1.7, 2.2]])
def test_interpolation(times):
    at = np.array([0, 1, 2.5], "float32")
    slerp = lambda m, at, q, t: m.scipy.spatial.transform.Slerp.init(at, rotations(m)(q))(t).quat
    both(slerp, at, quats(3), np.float32(times), tolerance=1e-5)
    both(lambda m, *xs: m.jit(lambda *ys: slerp(m, *ys))(*xs), at, quats(3), np.float32(times), tolerance=1e-5)
    slope = lambda m, *xs: m.grad(lambda *ys: (slerp(m, *ys) ** 2 * judge.weights((4,))).sum(), (0, 1, 2))(*xs)
    both(slope, at, quats(3), np.float32(times), tolerance=1e-3, weak=False)


def test_interpolation_at_and_beyond_the_given_times():
    """There jax has nan as derivatives, and after the last time other rotations."""
    at, q = np.array([0, 1, 2.5], "float32"), quats(3)
    turn = Slerp.init(at, Rotation(q))
    np.testing.assert_allclose(
        turn(at).as_matrix(), scipy.spatial.transform.Rotation.from_quat(q).as_matrix(), atol=1e-6
    )
    turned = lambda t: turn(t).as_matrix()
    for t in (0.0, 1.0, 2.5):
        slope = (turned(t) - turned(t - 1e-2)) / 1e-2
        np.testing.assert_allclose(phlox.jacfwd(turned)(t), slope, atol=0.05)
        assert np.isfinite(phlox.jacrev(lambda q, t=t: Slerp.init(at, Rotation(q))(t).quat)(q)).all()
    for t in (-1.0, 9.0):
        i = 0 if t < 0 else 1
        whole = Rotation(q[i]).inv() * Rotation(q[i + 1])
        share = (t - at[i]) / (at[i + 1] - at[i])
        expected = Rotation(q[i]) * Rotation.from_rotvec(whole.as_rotvec() * share)
        np.testing.assert_allclose(turned(t), expected.as_matrix(), atol=1e-5)


def test_trees():
    """Rotations and interpolations are arguments and results of transformed functions."""
    q = quats(2)
    turned = phlox.jit(lambda r: r.inv())(Rotation(q))
    assert isinstance(turned, Rotation)
    slerp = Slerp.init(np.float32([0, 1]), Rotation(q))
    assert isinstance(phlox.tree.map(lambda x: 2 * x, slerp), Slerp)
    both(lambda m, q: str(m.tree_util.tree_structure(rotations(m)(q))).count("*"), q)
    judge.same_values(np.asarray(phlox.jit(lambda s, t: s(t).quat)(slerp, 0.3)), np.asarray(slerp(0.3).quat))


REFUSED = {
    "letters": lambda m: rotations(m).from_euler("xw", np.zeros(2)),
    "mixed": lambda m: rotations(m).from_euler("xY", np.zeros(2)),
    "none": lambda m: rotations(m).from_euler("", np.zeros(0)),
    "twice": lambda m: rotations(m).from_euler("xxy", np.zeros(3)),
    "four": lambda m: rotations(m).from_euler("xyxy", np.zeros(4)),
    "angles": lambda m: rotations(m).from_euler("xyz", np.zeros(2, "float32")),
    "two axes": lambda m: rotations(m)(quats()).as_euler("xy"),
    "one of them": lambda m: rotations(m)(quats())[0],
    "how many": lambda m: len(rotations(m)(quats())),
    "weights": lambda m: rotations(m)(quats(3)).mean(np.ones(2)),
    "weights, a matrix": lambda m: rotations(m)(quats(3)).mean(np.ones((3, 1))),
    "single": lambda m: m.scipy.spatial.transform.Slerp.init([0], rotations(m)(quats())),
    "one": lambda m: m.scipy.spatial.transform.Slerp.init([0], rotations(m)(quats(1))),
    "times": lambda m: m.scipy.spatial.transform.Slerp.init([0, 1, 2], rotations(m)(quats(2))),
    "quaternions": lambda m: m.scipy.spatial.transform.Slerp.init([0, 1], quats(2)),
    "a matrix of times": lambda m: m.scipy.spatial.transform.Slerp.init([0, 1], rotations(m)(quats(2)))(
        np.ones((2, 2))
    ),
    "long quaternions": lambda m: rotations(m)(quats()).apply(np.ones(4, "float32")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    judge.raises_alike(REFUSED[name])


# --- beside SciPy in 64 bits ----------------------------------------------------------------------------


def test_beside_scipy():
    theirs = scipy.spatial.transform.Rotation
    with phlox.enable_x64(True):
        q = quats(50).astype(float)
        mine, wanted = Rotation.from_quat(q), theirs.from_quat(q)
        pairs = [
            (mine.as_matrix(), wanted.as_matrix()),
            (mine.as_rotvec(), wanted.as_rotvec()),
            (mine.as_mrp(), wanted.as_mrp()),
            (mine.magnitude(), wanted.magnitude()),
            (mine.inv().as_matrix(), wanted.inv().as_matrix()),
            (mine.as_quat(canonical=True), wanted.as_quat(canonical=True)),
            (mine.mean().as_matrix(), wanted.mean().as_matrix()),
            (mine.apply(np.arange(3.0)), wanted.apply(np.arange(3.0))),
            (Rotation.from_matrix(wanted.as_matrix()).as_matrix(), wanted.as_matrix()),
            *[(mine.as_euler(seq), wanted.as_euler(seq)) for seq in EULER],
        ]
        for x, y in pairs:
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)
        times = np.sort(np.linspace(0, 5, 50) ** 2)
        at = np.linspace(0, 25, 99)
        x = Slerp.init(times, mine)(at).as_matrix()
        np.testing.assert_allclose(x, scipy.spatial.transform.Slerp(times, wanted)(at).as_matrix(), atol=1e-13)


def test_small_angles_have_derivatives():
    """jax's are nan at the identity, where it divides by the angle (0 / 0)."""
    with phlox.enable_x64(True):
        for size in (0.0, 1e-200, 1e-9, 9e-4, 1.1e-3):
            x = np.array([0.6, 0.0, 0.8]) * size
            forth = phlox.jacobian(lambda x: Rotation.from_rotvec(x).as_rotvec())(x)
            np.testing.assert_allclose(forth, np.eye(3), atol=1e-12)
        assert np.isfinite(phlox.grad(lambda q: Rotation(q).magnitude())(np.array([0, 0, 0, 1.0]))).all()
        assert np.isnan(np.asarray(jax.grad(lambda x: rotations(jax).from_rotvec(x).quat.sum())(np.zeros(3)))).any()


def test_random_rotations():
    """Uniform: the mean of each element of the matrices is 0, of its square 1/3."""
    found = Rotation.random(phlox.random.key(1), 20000).as_matrix()
    np.testing.assert_allclose(found.mean(0), np.zeros((3, 3)), atol=0.02)
    np.testing.assert_allclose((found**2).mean(0), np.full((3, 3), 1 / 3), atol=0.02)
    assert Rotation.random(phlox.random.key(1)).single
