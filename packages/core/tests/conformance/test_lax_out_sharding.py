"""phlox.lax, where results lie: the option out_sharding, and with_sharding_constraint."""

import jax
import numpy as np
import pytest

import phlox
from conformance.harness import both, data


def test_with_sharding_constraint():
    def laid_out(m, x, inside):
        mesh = m.make_mesh((4, 2), ("a", "b"), axis_types=(m.sharding.AxisType.Auto,) * 2)
        where = m.NamedSharding(mesh, m.P("a", "b"))
        f = lambda x: m.lax.with_sharding_constraint(
            {"x": x, "y": [x + 1]}, {"x": where, "y": m.NamedSharding(mesh, m.P("a"))}
        )
        y = (m.jit(f) if inside else f)(x)
        return y, [v.addressable_shards[0].data.shape for v in m.tree.leaves(y)]

    x = data((8, 4))
    both(lambda m, x: laid_out(m, x, True), x)
    both(lambda m, x: laid_out(m, x, False), x)
    both(lambda m, x: m.lax.with_sharding_constraint(x, m.P("a")), x, what="no mesh")
    both(lambda m, x: m.lax.with_sharding_constraint(x, None), x, what="None")
    one = lambda m: m.sharding.SingleDeviceSharding(m.devices()[1])
    both(lambda m, x: m.lax.with_sharding_constraint(x, one(m)).device.id, x)

    def by_context(m, x):
        mesh = m.make_mesh((4, 2), ("a", "b"), axis_types=(m.sharding.AxisType.Auto,) * 2)
        with m.set_mesh(mesh):
            return m.jit(m.grad(lambda x: m.lax.with_sharding_constraint(x**2, m.P("a")).sum()))(x)

    both(by_context, x)


OUT = {
    "lax.broadcast": lambda f, m, where: f(np.ones(4, np.float32), (8,), out_sharding=where),
    "lax.broadcast_in_dim": lambda f, m, where: f(np.arange(8), (8, 4), (0,), out_sharding=where),
    "lax.broadcasted_iota": lambda f, m, where: f("int32", (8, 4), 1, out_sharding=where),
    "lax.conv_general_dilated": lambda f, m, where: f(
        np.ones((8, 4, 5), np.float32), np.ones((4, 4, 2), np.float32), (1,), "SAME", out_sharding=where
    ),
    "lax.dot": lambda f, m, where: f(np.ones((8, 3)), np.ones((3, 4)), out_sharding=where),
    "lax.dot_general": lambda f, m, where: f(
        np.ones((8, 3)), np.ones((3, 4)), (((1,), (0,)), ((), ())), out_sharding=where
    ),
    "lax.empty": lambda f, m, where: f((8, 4), "int32", out_sharding=where),
    "lax.ragged_dot": lambda f, m, where: f(
        np.ones((8, 3), np.float32), np.ones((2, 3, 4), np.float32), np.array([3, 5]), out_sharding=where
    ),
    "lax.reduce": lambda f, m, where: f(np.ones((8, 4, 3)), 0.0, lambda x, y: x + y, (2,), out_sharding=where),
    "lax.reduce_sum": lambda f, m, where: f(np.ones((8, 4, 3)), (2,), out_sharding=where),
    "lax.reshape": lambda f, m, where: f(np.arange(32), (8, 4), out_sharding=where),
    "lax.rng_bit_generator": lambda f, m, where: f(
        np.uint32([1, 2, 3, 4]), (8, 4), algorithm=m.lax.RandomAlgorithm.RNG_THREE_FRY, out_sharding=where
    )[1],
}


@pytest.mark.parametrize("name", OUT)
def test_out_sharding(name):
    module, function = name.split(".")
    explicit = lambda m: m.make_mesh((4, 2), ("a", "b"))
    call_it = lambda m, where: OUT[name](getattr(getattr(m, module), function), m, where)
    expected = np.asarray(call_it(phlox, None))
    with phlox.set_mesh(explicit(phlox)):
        got = call_it(phlox, phlox.P("a", "b"))
        assert tuple(got.sharding.spec)[:2] == ("a", "b")
        np.testing.assert_array_equal(got, expected)
        inside = phlox.jit(lambda: call_it(phlox, phlox.P("a")))()
        assert inside.sharding.spec[0] == "a"
        np.testing.assert_array_equal(inside, expected)
        with pytest.raises((ValueError, TypeError)):
            call_it(phlox, "a")
    with jax.set_mesh(explicit(jax)):
        theirs = call_it(jax, jax.P("a", "b"))
        assert theirs.dtype == got.dtype
        if name != "lax.reduce":  # where jax forgets it for sums
            assert theirs.addressable_shards[0].data.shape == got.addressable_shards[0].data.shape
