"""phlox.numpy and phlox.ops, the option out_sharding: the same results, laid out over devices as asked for."""

import numpy as np
import pytest

import phlox

OUT = {
    "array": lambda f, where: f(np.ones(8), out_sharding=where),
    "asarray": lambda f, where: f(phlox.numpy.ones(8), out_sharding=where),
    "empty": lambda f, where: f((8, 2), out_sharding=where),
    "full": lambda f, where: f((8, 2), 3, out_sharding=where),
    "full_like": lambda f, where: f(np.ones(8), 3, out_sharding=where),
    "ones": lambda f, where: f(8, out_sharding=where),
    "ones_like": lambda f, where: f(np.ones(8), out_sharding=where),
    "zeros": lambda f, where: f(8, "int32", out_sharding=where),
    "zeros_like": lambda f, where: f(np.ones(8), out_sharding=where),
    "arange": lambda f, where: f(8, out_sharding=where),
    "bincount": lambda f, where: f(np.array([1, 2, 7]), length=8, out_sharding=where),
    "broadcast_to": lambda f, where: f(np.float32(1), (8,), out_sharding=where),
    "percentile": lambda f, where: f(np.ones((5, 8), np.float32), 50.0, 0, out_sharding=where),
    "ravel": lambda f, where: f(np.ones((2, 4)), out_sharding=where),
    "repeat": lambda f, where: f(np.ones(4), 2, out_sharding=where),
    "reshape": lambda f, where: f(np.ones((2, 4)), (8,), out_sharding=where),
}


@pytest.mark.parametrize("name", OUT)
def test_out_sharding(name):
    f = getattr(phlox.numpy, name)
    expected = np.asarray(OUT[name](f, None))
    with phlox.set_mesh(phlox.make_mesh((8,), ("a",))):
        got = OUT[name](f, phlox.P("a"))
        assert got.sharding.spec == phlox.P("a", *[None] * (got.ndim - 1))
        np.testing.assert_array_equal(got, expected)
        with pytest.raises((ValueError, TypeError)):
            OUT[name](f, "a")


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_out_sharding_of_segments(name):
    f = getattr(phlox.ops, f"segment_{name}")
    args = np.arange(16.0, dtype=np.float32), np.arange(16) // 2, 8
    with phlox.set_mesh(phlox.make_mesh((8,), ("a",))):
        for bucket in (None, 4):
            found = f(*args, bucket_size=bucket, out_sharding=phlox.P("a"))
            assert found.sharding.spec == phlox.P("a")
            np.testing.assert_array_equal(found, f(*args, bucket_size=bucket))
        with pytest.raises((ValueError, TypeError)):
            f(*args, out_sharding=phlox.P("b"))
