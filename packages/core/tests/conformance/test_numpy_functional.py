"""phlox.numpy, functions that apply other functions, and choices among arrays: piecewise, select, choose."""

import numpy as np

from conformance.harness import A, B, F, I, S, batches, call, gradients, row, values, wide

APPLIED = [
    row("numpy.apply_along_axis", call(F("v: v[::-1] * 2"), 1, A(2, 3, 4)), call(F("v: v[0]"), 0, A(3, 2)),
        call(F("v, k: v[:, None] * k"), -1, A(2, 3), 2), call(F("v: v"), 2, A(2, 2))),
    row("numpy.apply_over_axes", call(F("x, axis: x.max(axis)"), A(2, 3, 4), (0, 2)),
        call(F("x, axis: x.max(axis, keepdims=True)"), A(2, 3), [-1]), call(F("x, axis: x.max()"), A(2, 3, 2), [0])),
    row("numpy.fromfunction", call(F("i, j: i * 2 + j"), (2, 3)), call(F("i: i"), (4,), dtype=int), call(F("i: i"), (3,), dtype="float16")),
    row("numpy.piecewise", call(A(4), [B(4), B(4)], [F("v: v * 2"), 5]), call(A(2, 3), [B(2, 3)], [1, F("v: v + v")]),
        call(A(3), [B(3)], [1, 2, 3]), call(A(3), [B(3)], [F("v, k, m: v * k + m")], 2, m=1),
        call(A(3), [np.array([True, False, True])], [F("v: v")])),
    row("numpy.select", call([B(3), B(3)], [A(3), A(3)]), call([B(2, 3), B(3)], [A(3), A(2, 1, dtype="other")], 7),
        call([B(3)], [A(3), A(3)]), call([], []), call([B()], [S(2)], default=A())),
    row("numpy.choose", call(I(3, low=0, high=1), [A(3), A(3)], mode="clip"),
        call(I(3, low=-4, high=4), [A(3), A(2, 1), A()], mode="wrap"), call(A(2), [A(2), A(2)], mode="clip"),
        call(I(2, low=0, high=1), [A(2), A(2)], mode="no")),
    row("numpy.choose", call(np.array([0, 1]), [A(2), A(2)]), call(np.array([0, 2]), [A(2), A(2)]), grad=False),
]  # fmt: skip

TABLE = APPLIED

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)
