"""phlox.numpy, functions that take elements by their places: take, take_along_axis."""

import numpy as np

from conformance.harness import A, I, S, batches, call, gradients, row, values, wide

TAKEN = [
    row("numpy.take", call(A(5), I(3)), call(A(2, 3), I(2, 2), 1), call(A(2, 3), I(4), axis=0, mode="clip"),
        call(A(5), I(3, low=-9, high=9)), call(A(5), I(3, low=-9, high=9), mode="fill"),
        call(A(5), I(3, low=-9, high=9), mode="fill", fill_value=7), call(A(5), I(3, low=-9, high=9), mode="wrap"),
        call(A(2, 3), I(3)), call(A(5), 2), call(A(5), S(-1)), call(A(2, 3), axis=-1, indices=np.array([[0, 2]])),
        call(A(5), A(2, dtype="float32")), call(A(5), I(2), mode="raise"), call(A(5), [1, 2]),
        call(A(5), np.int8(3))),
    row("numpy.take_along_axis", call(A(3, 4), I(3, 2), 1), call(A(3, 4), I(2, 4), axis=0), call(A(5), I(3)),
        call(A(3, 4), I(1, 2), 1), call(A(3, 4), I(6), axis=None),
        call(A(3, 4), I(3, 2, low=-9, high=9), -1, mode="clip"),
        call(A(3, 4), I(3, 2, low=-9, high=9), -1, mode="fill", fill_value=0),
        call(A(3, 4), I(3, 2, low=-9, high=9), -1), call(A(3, 4), I(2), 1),
        call(A(3, 4), A(3, 2, dtype="float32"), 1), call(A(2, 3, 4), I(2, 1, 4), -2)),
    row("method.take", call(A(5), I(3)), call(A(2, 3), I(2), axis=1), call(A(5), 2)),
]  # fmt: skip

TABLE = TAKEN

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)
