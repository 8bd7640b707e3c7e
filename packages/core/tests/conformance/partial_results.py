"""What tests of partial results share: a mesh, arrays over it, and JAX as judge if it knows partial results."""

import jax
import jax.numpy
import numpy as np

import phlox

JAX_HAS_THEM = tuple(map(int, jax.__version__.split(".")[:2])) >= (0, 12)
A, B = np.arange(16, dtype=np.float32).reshape(4, 4) - 6, np.array(np.eye(4)[::-1] + 2, np.float32)


def mesh(m, kinds="EE"):
    kind = {"E": m.sharding.AxisType.Explicit, "A": m.sharding.AxisType.Auto}
    return m.make_mesh((2, 2), ("x", "y"), tuple(kind[k] for k in kinds), devices=m.devices()[:4])


def split(m):
    """Two matrices that are split over their common axis; on the mesh of the context."""
    return m.device_put(A, m.P("x", "y")), m.device_put(B, m.P("y", None))


def product(m, a, b):
    """A product of which each device holds the sum over its part of the common axis: ``f32[4@x,4]{U:y}``."""
    return m.numpy.matmul(a, b, out_sharding=m.P("x", None, unreduced={"y"}))


def reduced(m, value, axis):
    """A whole array whose cotangent consists of partial results: ``f32[4,4]{R:y}``."""
    return m.reshard(m.numpy.asarray(value), m.P(*[None] * np.ndim(value), reduced={axis}))


def value(m, x):
    return np.asarray(m.reshard(x, m.P(*m.typeof(x).sharding.spec.partitions)))


def in_judges(run, jax_too=True):
    """What `run` returns for phlox, and for JAX if it knows partial results and takes the program; else for phlox."""
    results = {}
    for m in (phlox, jax) if JAX_HAS_THEM and jax_too else (phlox,):
        with m.set_mesh(mesh(m)):
            try:
                results[m] = run(m)
            except Exception:
                if m is phlox:
                    raise
    return list(results.values())
