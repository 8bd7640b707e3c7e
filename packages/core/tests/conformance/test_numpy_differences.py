"""phlox.numpy, what is made of neighbouring samples: differences, gradients, integrals, interpolation."""

import numpy as np

import judge
import phlox
from conformance.harness import A, S, batches, call, gradients, row, values, wide

SAMPLES = [
    row("numpy.diff", call(A(4)), call(A(), n=0), call(A(2, 5), 2, 0), call(A(2, 3), n=2), call(A(3), prepend=A(), append=A(2)),
        call(A(2, 3), axis=0, append=A(1, 3)), call(A()), call(A(3), -1), call(A(3), 0), call(A(2), 3), call(A(0))),
    row("numpy.ediff1d", call(A(4)), call(A(2, 2), to_begin=A(2)), call(A(3), A(), A(2, 2)), call(A(1)),
        dtypes=[d for d in judge.ALL if d != "bool"]),
    row("numpy.trapezoid", call(A(4)), call(A(2, 3), axis=0), call(A(3), A(3)), call(A(2, 3), A(3), axis=1),
        call(A(3), dx=A()), call(A(2, 3), A(2, 3)), call(A(4), None, S(2)), call(A(4), dx=A(3))),
    row("numpy.gradient", call(A(4)), call(A(3, 3)), call(A(4), S(2.0)), call(A(2, 3), A(low=1), A(low=1)),
        call(A(2, 4), np.array([0.0, 1.0, 3.0, 4.0], "float32"), axis=1), call(A(3, 2), axis=(0,)), call(A(1)),
        call(A(3), edge_order=2), call(A(3, 3), 1.0, 2.0, 3.0), call(A(3), np.arange(2.0))),
    row("numpy.interp", *[call(A(5, low=-1, high=4), np.array([0.0, 1.0, 3.0], "float32"), A(3, dtype="float32"), **options)
        for options in ({}, {"left": 7.0, "right": S(8.0)}, {"left": "extrapolate", "right": "extrapolate"},
        {"period": 2.5}, {"left": "no"})], call(S(0.5), np.arange(3), np.arange(3)), call(A(), A(2), A(3)),
        dtypes=["int8", "uint8", "int32", "bfloat16", "float32", "complex64"]),
]  # fmt: skip

TABLE = SAMPLES

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)


def test_interpolation_between_close_points():
    """jax takes points that are closer than 1e-14 for one, 1e-31 in float64."""
    for size in (1e-15, 1e-25, 1e-36):
        x = np.float32([0, size, size, 2 * size])
        result = phlox.numpy.interp(np.float32([0.25, 1, 1.5]) * np.float32(size), x, np.float32([1, 2, 3, 4]))
        np.testing.assert_allclose(result, [1.25, 3, 3.5], rtol=1e-6)


def test_interpolation_beside_infinite_and_unknown_values():
    """NumPy has the value of the table at each of its points, jax nan."""
    x, places = np.float32([0, 1, 2]), np.float32([-1, 0, 0.5, 1, 2, 3])
    for y in ([0, 10, np.nan], [-np.inf, 5, np.inf], [np.inf, 5, 1], [1, np.nan, 2]):
        result = phlox.numpy.interp(places, x, np.float32(y))
        np.testing.assert_allclose(result, np.interp(places, x, y), rtol=1e-6)
