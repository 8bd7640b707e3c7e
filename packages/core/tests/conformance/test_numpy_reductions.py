"""phlox.numpy, functions that reduce, scan or order along axes."""

import numpy as np
import pytest

import judge
import phlox
from conformance.harness import (
    A,
    B,
    I,
    S,
    Special,
    batches,
    call,
    gradients,
    row,
    rows,
    second_derivatives,
    values,
    wide,
)

AXES = [
    call(A(2, 3, 4)),
    call(A(2, 3, 4), axis=1),
    call(A(2, 3, 4), (0, -1)),
    call(A(2, 3, 4), axis=(-1, 0), keepdims=True),
    call(A(2, 1, 3, 2), axis=-2, keepdims=True),
    call(A()),
    call(A(3, 4), axis=()),
    call(S(2.5)),
    call(S(3)),
    call(A(3), axis=1),
]  # fmt: skip
EMPTY = [
    call(A(0, 3)),
    call(A(0, 3), axis=0),
    call(A(0, 3), axis=1),
]  # fmt: skip

REDUCTIONS = [
    *rows("numpy", "sum", *AXES, *EMPTY, call(A(3, 4), 0, "float16"), call(A(3, 4), where=B(3, 4)),
        call(A(3, 4), axis=1, where=B(3, 1), initial=2), call(A(3, 4), promote_integers=False), call(Special())),
    *rows("numpy", "prod", *AXES, *EMPTY, call(A(3, 4, whole=True), 0), call(A(3, 4), dtype="float32", axis=1),
        call(A(3, 4), where=B(3, 4), initial=2.0), call(A(2, 2), promote_integers=False), twice=True),
    *rows("numpy", "mean", *AXES, *EMPTY, call(A(3, 4), 0, "float16"), call(A(3, 4), where=B(3, 4)),
        call(A(3, 4), axis=1, dtype="int32"), twice=True),
    *rows("numpy", "max min amax amin", *AXES, *EMPTY, call(A(3, 4, whole=True)), call(A(3, 4), axis=0, initial=1),
        call(A(3, 4), where=B(3, 4), initial=0), call(A(0, 2), axis=0, initial=2)),
    *rows("numpy", "max min amax amin", call(Special()), grad=False),
    *rows("numpy", "all any", *AXES, *EMPTY, call(A(3, 4, whole=True, low=-1, high=1), axis=0),
        call(A(3, 4), where=B(3, 4)), call(B(2, 3), axis=1, keepdims=True), call(Special())),
    *rows("numpy", "std var", *AXES, *EMPTY, call(A(3, 4), ddof=1), call(A(3, 4), axis=0, correction=1),
        call(A(3, 4), where=B(3, 4)), call(A(3, 4), 1, "float32"), call(A(3, 4), ddof=2, axis=-1, keepdims=True),
        twice=True),
    row("numpy.ptp", *AXES, call(A(3, 4, whole=True), axis=0)),
    row("numpy.count_nonzero", *AXES, call(A(3, 4, whole=True), axis=0, keepdims=True), call(Special()), grad=False),
    row("numpy.average", call(A(2, 3)), call(A(2, 3), axis=1), call(A(2, 3), 0, A(2, low=0.5)),
        call(A(2, 3), weights=A(2, 3, low=0.5)), call(A(2, 3), axis=(0, 1), weights=A(2, 3, low=0.5), returned=True),
        call(A(2, 3), axis=-1, weights=A(3, dtype="other", low=1), keepdims=True), call(A(2, 3), weights=A(2)),
        call(A(3), returned=True), twice=True),
]  # fmt: skip

POSITIONS = [
    call(A(2, 3)),
    call(A(2, 3), 0),
    call(A(2, 3), axis=-1),
    call(A(2, 3), axis=1, keepdims=True),
    call(A(3, 4, whole=True), axis=0),
    call(A(2, 3), keepdims=True),
    call(A()),
    call(S(2)),
    call(A(0)),
    call(Special()),
    call(A(3), axis=2),
]  # fmt: skip
SCANS = [
    call(A(2, 3)),
    call(A(2, 3), 0),
    call(A(2, 3, 2), axis=-2),
    call(A(5, whole=True)),
    call(A(4), dtype="float32"),
    call(A(4), 0, "int32"),
    call(A()),
    call(A(0)),
    call(A(2, 3), axis=2),
    call(S(2)),
]  # fmt: skip
ORDERS = [
    call(A(7)),
    call(A(3, 4)),
    call(A(3, 4), 0),
    call(A(3, 4, whole=True), axis=-2),
    call(A(2, 3), axis=None),
    call(A(8, whole=True), descending=True),
    call(A(4, 3), axis=0, descending=True),
    call(A(4), stable=False),
    call(Special()),
    call(Special(), descending=True),
    call(A()),
    call(A(0, 2)),
    call(A(2), axis=3),
]  # fmt: skip

SEARCHES = [
    # jax takes no complex numbers, see `test_positions_of_complex_numbers`.
    *rows("numpy", "argmax argmin", *POSITIONS, grad=False, dtypes=judge.REAL),
    *rows("numpy", "cumsum cumprod", *SCANS, twice=True),
    row("numpy.sort", *ORDERS, exact=True),
    row("numpy.argsort", *ORDERS, grad=False),
]

METHODS = [
    *rows("method", "sum prod mean max min all any std var ptp", call(A(2, 3, 4)),
        call(A(2, 3, 4), axis=(0, -1), keepdims=True), call(S(2))),
    row("method.max", call(A(2, 3), 0, where=B(2, 3), initial=1)),
    row("method.sum", call(A(2, 3), 0, where=B(2, 3))),
    *rows("method", "argmax argmin", call(A(2, 3)), call(A(2, 3), axis=-1, keepdims=True), grad=False,
        dtypes=judge.REAL),
    *rows("method", "cumsum cumprod", call(A(2, 3)), call(A(2, 3), 1)),
    row("method.sort", call(A(2, 3)), call(A(2, 3), axis=0, descending=True)),
    row("method.argsort", call(A(2, 3)), call(A(2, 3), axis=0, descending=True), grad=False),
    row("method.round", call(A(2, 3)), call(A(2), 1)),
    row("method.clip", call(A(2, 3), 0, 1), call(A(2, 3), max=A(3))),
]  # fmt: skip

LINALG = [
    row("numpy.linalg.norm", call(A(2, 3)), call(A(4)), call(A(4), 1), call(A(4), 2), call(A(4), 3),
        call(A(4), ord=0.5), call(A(4), float("inf")), call(A(4), -float("inf")), call(A(4), 0), call(A(3, 4), "fro"),
        call(A(3, 4), 1), call(A(3, 4), -1), call(A(3, 4), float("inf"), keepdims=True), call(A(3, 4), axis=0),
        call(A(2, 3, 4), axis=(0, 2)), call(A(2, 3, 4), axis=(2, 0), ord=1), call(A(2, 3, 4)),
        call(A(2, 3), ord=3, axis=-1, keepdims=True), call(A(2, 3, 4), ord=1), call(A(3), "fro"), call(I(3)),
        twice=True),
]  # fmt: skip

TABLE = REDUCTIONS + SEARCHES + METHODS + LINALG

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_second_derivative = second_derivatives(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)


@pytest.mark.parametrize("name", ["argmax", "argmin", "nanargmax", "nanargmin"])
def test_positions_of_complex_numbers(name):
    """NumPy's, by real and then by imaginary parts; jax has a type for them and compiles no program."""
    random = judge.rng(name)
    x = (random.integers(-2, 3, (3, 40)) + 1j * random.integers(-2, 3, (3, 40))).astype(np.complex64)
    x[0, 7], x[1, 9] = complex(1, np.nan), complex(np.nan, 1)
    for axis in (None, 0, 1):
        np.testing.assert_array_equal(getattr(phlox.numpy, name)(x, axis), getattr(np, name)(x, axis))
    least = np.array([complex(-np.inf, -2), complex(-np.inf, -1)], np.complex64)
    if name == "argmax":
        assert phlox.numpy.argmax(least) == 1 and phlox.numpy.argmin(-least) == 1
    assert phlox.eval_shape(getattr(phlox.numpy, name), x).shape == ()
