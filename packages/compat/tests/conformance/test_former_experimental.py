"""Modules of jax.experimental that ported programs use: arrays of devices, functions that write into memory, former forms."""

import jax
import jax.experimental.buffer_callback
import jax.experimental.mesh_utils
import numpy as np
import pytest

import phlox
import phlox.experimental.buffer_callback
import phlox.experimental.mesh_utils
import phlox.experimental.pjit
import phlox.experimental.shard_map
from conformance.harness import agree, outcome, row


def both(case, tolerance=2e-6):
    agree(outcome(case, phlox, ()), outcome(case, jax, ()), row("experimental", tolerance=tolerance), "")


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


def test_pjit_runs_on_the_mesh_that_is_entered():
    pjit, P = phlox.experimental.pjit.pjit, phlox.P
    mesh = phlox.sharding.Mesh(np.array(phlox.devices()[:1]), "x")
    x = np.ones((4, 2), np.float32)
    split = pjit(lambda x: x * 2, P("x"), P("x"))
    whole = pjit(in_shardings=P("x"), out_shardings=None)(lambda x: x * 2)
    with mesh:
        assert split(x).sharding == phlox.NamedSharding(mesh, P("x"))
        assert whole(x).sharding == phlox.NamedSharding(mesh, P())
        assert pjit(lambda: 1)().sharding == phlox.NamedSharding(mesh, P())
        assert split.lower(x).compile()(x).tolist() == phlox.vmap(pjit(lambda x: x * 2))(x).tolist() == [[2, 2]] * 4
    assert pjit(lambda x: x * 2)(x).sharding.num_devices == 1
    with pytest.raises(TypeError):
        pjit(3)


def scaled(context, out, x, *, by):
    assert context.stage.name == "EXECUTE"
    assert not x.writeable and out["y"].writeable and out["y"].shape == x.shape and out["y"].ndim == x.ndim
    np.multiply(np.asarray(x), np.asarray(by), out=np.asarray(out["y"]))
    np.asarray(out["n"])[...] = np.asarray(x).size


def filled(m, **options):
    types = {"y": m.ShapeDtypeStruct((2, 3), np.float32), "n": m.ShapeDtypeStruct((), np.int32)}
    return m.experimental.buffer_callback.buffer_callback(scaled, types, **options)


def added(context, out, x, y):
    np.asarray(out)[...] += np.asarray(y)


BUFFERS = {
    "eager": lambda m, x: filled(m)(x, by=m.numpy.float32(2)),
    "jit": lambda m, x: m.jit(lambda x: filled(m, has_side_effect=True)(x, by=m.numpy.float32(2)))(x),
    "vmap": lambda m, x: m.vmap(lambda x: filled(m, vmap_method="sequential")(x, by=m.numpy.float32(2)))(
        m.numpy.stack([x, x + 1])
    ),
    "alias": lambda m, x: m.jit(
        m.experimental.buffer_callback.buffer_callback(
            added, m.ShapeDtypeStruct((2, 3), np.float32), input_output_aliases={0: 0}
        )
    )(x, x),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_buffer_callback(name):
    both(lambda m: BUFFERS[name](m, m.numpy.arange(6.0).reshape(2, 3)))


def test_buffer_callback_of_a_batch():
    def square(context, out, x):
        np.square(np.asarray(x), out=np.asarray(out))

    call = phlox.experimental.buffer_callback.buffer_callback(
        square, phlox.ShapeDtypeStruct((), np.float32), vmap_method="broadcast_all"
    )
    assert phlox.vmap(phlox.vmap(call))(phlox.numpy.arange(6.0).reshape(2, 3)).tolist() == [[0, 1, 4], [9, 16, 25]]


@pytest.mark.parametrize("aliases", [{2: 0}, {0: 1}, {1: 0}])
def test_buffer_callback_refuses(aliases):
    def call(m):
        types = m.ShapeDtypeStruct((2, 3), np.float32)
        made = m.experimental.buffer_callback.buffer_callback(added, types, input_output_aliases=aliases)
        return made(m.numpy.zeros((2, 3)), m.numpy.zeros(3))

    for m in (phlox, jax):
        with pytest.raises(ValueError, match=r"input_output_aliases|aliases must have one type"):
            call(m)
