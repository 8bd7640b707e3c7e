"""phlox.numpy, elements by their places: take, take_along_axis; and places as numbers and as masks."""

import numpy as np

from conformance.harness import A, I, S, batches, both, call, gradients, row, values, wide

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

#: Only values are compared.
PLACES = [
    row(
        "numpy.unravel_index",
        call(A(5, low=0, high=30), (2, 3, 4)),
        call(A(2, 3, low=-40, high=40), (4, 5)),
        call(A(5, low=0, high=9), 7),
        dtypes=["int32", "int8"],
    ),
]

TABLE = TAKEN + PLACES

test_value = values(TABLE)
test_gradient = gradients(TAKEN)
test_vmap = batches(TAKEN)
test_64_bits = wide(TAKEN)


def test_mask_indices():
    both(lambda m: m.numpy.mask_indices(4, m.numpy.triu))
    both(lambda m: m.numpy.mask_indices(4, m.numpy.tril, 1))
    both(lambda m: m.jit(lambda: m.numpy.mask_indices(4, m.numpy.triu, size=12))())
