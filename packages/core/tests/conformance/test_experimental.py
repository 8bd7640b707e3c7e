"""Modules of jax.experimental: integration of differential equations, meshes, and former forms of functions."""

import jax
import jax.experimental.mesh_utils
import jax.experimental.ode
import numpy as np
import pytest

import phlox
import phlox.experimental.layout
import phlox.experimental.mesh_utils
import phlox.experimental.ode
import phlox.experimental.pjit
import phlox.experimental.shard_map

T = np.linspace(0.0, 2.0, 5, dtype=np.float32)
START = np.array([1.0, 0.0], np.float32)


def solve(m, y, a, t, **options):
    return m.experimental.ode.odeint(
        lambda y, t, a: m.numpy.stack([y[1], -a * m.numpy.sin(y[0]) + 0.1 * t]),
        y,
        t,
        a,
        rtol=1e-6,
        atol=1e-6,
        **options,
    )


PROGRAMS = {
    "solution": lambda m: solve(m, m.numpy.asarray(START), 2.0, m.numpy.asarray(T)),
    "tree": lambda m: m.experimental.ode.odeint(
        lambda y, t: {"a": -y["b"], "b": y["a"]}, {"a": m.numpy.float32(1), "b": m.numpy.float32(0)}, m.numpy.asarray(T)
    ),
    "gradient": lambda m: m.grad(lambda y, a, t: solve(m, y, a, t)[1:].sum(), (0, 1, 2))(
        m.numpy.asarray(START), 2.0, m.numpy.asarray(T)
    ),
    "batch": lambda m: m.vmap(lambda a: solve(m, m.numpy.asarray(START), a, m.numpy.asarray(T))[-1])(
        m.numpy.arange(3.0)
    ),
    "few steps": lambda m: solve(m, m.numpy.asarray(START), 2.0, m.numpy.asarray(T), hmax=0.5),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_odeint(name):
    mine, theirs = (PROGRAMS[name](m) for m in (phlox, jax))
    assert phlox.tree.leaves(phlox.tree.map(np.shape, mine)) == jax.tree.leaves(jax.tree.map(np.shape, theirs))
    for a, b in zip(phlox.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_odeint_refuses():
    with pytest.raises(TypeError, match="must be arrays or scalars"):
        phlox.experimental.ode.odeint(lambda y, t, s: y, 1.0, phlox.numpy.asarray(T), "a")
    with pytest.raises(TypeError, match="must be an array of floats"):
        phlox.experimental.ode.odeint(lambda y, t: y, 1.0, phlox.numpy.arange(3))


@pytest.mark.parametrize("shape", [(1,), (1, 1), (2,)])
def test_create_device_mesh(shape):
    def made(m):
        return m.experimental.mesh_utils.create_device_mesh(shape, m.devices()[:1])

    if shape == (2,):
        for m in (phlox, jax):
            with pytest.raises(ValueError, match="must equal the product"):
                made(m)
        return
    mine, theirs = made(phlox), made(jax)
    assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
    assert (
        phlox.sharding.Mesh(mine, tuple("ab"[: len(shape)])).shape
        == jax.sharding.Mesh(theirs, tuple("ab"[: len(shape)])).shape
    )


def test_create_hybrid_device_mesh():
    mesh = phlox.experimental.mesh_utils.create_hybrid_device_mesh(
        (1, 1), (1, 1), phlox.devices()[:1], process_is_granule=True
    )
    assert mesh.shape == (1, 1) and mesh[0, 0] is phlox.devices()[0]
    with pytest.raises(ValueError, match="slice_index"):
        phlox.experimental.mesh_utils.create_hybrid_device_mesh((1,), (1,))


def test_former_forms():
    mesh = phlox.make_mesh((1,), ("x",))
    mapped = phlox.experimental.shard_map.shard_map(lambda x: phlox.lax.psum(x, "x"), mesh, phlox.P("x"), phlox.P())
    assert mapped(phlox.numpy.ones(2)).tolist() == [1, 1]
    assert phlox.experimental.pjit.pjit(lambda x: x + 1)(1.0) == 2
    assert phlox.experimental.layout.Layout((0, 1)).major_to_minor == (0, 1)
    with phlox.experimental.enable_x64():
        assert phlox.numpy.ones(1).dtype == np.float64
        with phlox.experimental.disable_x64():
            assert phlox.numpy.ones(1).dtype == np.float32
