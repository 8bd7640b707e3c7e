"""phlox.numpy, polynomials: their arithmetic, derivatives and values."""

import numpy as np

import judge
from conformance.harness import (
    A,
    S,
    batches,
    call,
    gradients,
    row,
    rows,
    values,
    wide,
)

POLYNOMIALS = [
    row("numpy.polyval", call(A(3), A(2)), call(A(3), S(2)), call(A(3, 2), A(2)), call(A(3), A(2, dtype="other")),
        call(A(0), A(2)), call(A(2), A(2), unroll=1)),
    *rows("numpy", "polyadd polysub", call(A(3), A(2)), call(A(2), A(2, dtype="other")), call(A(1), A(3)),
        dtypes=[d for d in judge.ALL if d != "bool"]),
    row("numpy.polymul", call(A(3), A(2)), call(A(2), A(2, dtype="other")), call(A(0), A(2)),
        call(np.array([0.0, 1.0, 2.0]), np.array([0.0, 3.0]), trim_leading_zeros=True), jit=False),
    row("numpy.polydiv", call(A(4), A(2, low=1)), call(A(2), A(3, low=1)), call(A(3), A(1, low=1)), tolerance=1e-2),
    row("numpy.polyder", call(A(4)), call(A(4), 2), call(A(3), m=0), call(A(3), -1), call(A(2), 3)),
    row("numpy.polyint", call(A(3)), call(A(3), 2), call(A(3), m=0), call(A(3), -1), call(A(2), 2, A(2)),
        call(A(2), 3, S(1)), call(A(2), 2, A(3))),
    row("numpy.poly", call(A(3)), call(A(1)), call(A()), call(A(0)), call(A(2, 3)), tolerance=3e-2),
]  # fmt: skip

TABLE = POLYNOMIALS

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)
