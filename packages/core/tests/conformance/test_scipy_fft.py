"""phlox.scipy.fft beside jax's, and its accuracy beside SciPy in 64 bits."""

import jax
import jax.scipy.fft
import numpy as np
import pytest
import scipy.fft

import judge
import phlox
from conformance.harness import A, batches, call, gradients, row, rows, second_derivatives, values, wide
from phlox.errors import ShapeError

ONE = [
    call(A(2, 5)), call(A(6)), call(A(1)), call(A(2, 5), n=3), call(A(3, 4), 2, 5, 0, "ortho"), call(A(2, 4), norm="ortho"),
    call(A(2, 3, 4), axis=1, norm="backward"),
]  # fmt: skip
MANY = [
    call(A(2, 3, 4)), call(A(3, 4), norm="ortho"), call(A(2, 3, 4), axes=(0, -1)), call(A(2, 3), s=3), call(A(2, 3), axes=1),
    call(A(2, 3, 4), 2, (4, 2), (2, 0)), call(A(4, 3), s=(2,)), call(A(2, 3), s=(3, 5), norm="ortho"),
]  # fmt: skip
WRONG = [
    call(A(3), norm="forward"), call(A(3), type=3), call(A(3), axis=2), call(A(3), n=0), call(A(3), n=-1), call(A(0)),
    call(A()), call([1.0, 2.0]),
]  # fmt: skip
WRONG_MANY = [
    call(A(2, 3), s=(2, 2, 2)),
    call(A(2, 3), axes=(0, 0)),
    call(A(2, 3), norm="forward"),
    call(A(2, 3), type=1),
]

#: jax scales the spectrum in 16 bits before it inverts the transform, so that narrow floats are compared below.
NOT_NARROW = ["float32", "complex64", "int32", "bool", "uint8"]

TABLE = [
    row("scipy.fft.dct", *ONE, twice=True, tolerance=1e-4),
    row("scipy.fft.idct", *ONE, dtypes=NOT_NARROW, twice=True, tolerance=1e-4),
    row("scipy.fft.dctn", *MANY, tolerance=1e-4),
    row("scipy.fft.idctn", *MANY, dtypes=NOT_NARROW, tolerance=1e-4),
    *rows("scipy.fft", "dct idct", *WRONG, dtypes=["float32"], grad=False),
    *rows("scipy.fft", "dctn idctn", *WRONG_MANY, dtypes=["float32"], grad=False),
]  # fmt: skip

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_second_derivative = second_derivatives(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide([r for r in TABLE if r.tolerance])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["idct", "idctn"])
def test_inverses_of_narrow_floats_are_computed_in_32_bits(name, dtype):
    x = judge.array(judge.rng(name, dtype), (2, 5), dtype)
    mine, theirs = (getattr(m.scipy.fft, name) for m in (phlox, jax))
    judge.compare(mine(x, norm="ortho"), theirs(x.astype("float32"), norm="ortho"), tolerance=1e-5)


@pytest.mark.parametrize("name", ["dctn", "idctn"])
def test_lengths_for_other_axes(name):
    with pytest.raises(ShapeError, match="1 lengths"):
        getattr(phlox.scipy.fft, name)(np.ones((2, 3)), s=(4,), axes=(0, 1))


def worst(found, exact):
    """The largest error in units of the largest entry, and its place."""
    errors = np.abs(np.asarray(found, np.float64) - exact) / np.abs(exact).max()
    return float(errors.max()), int(errors.argmax())


@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize("name", ["dct", "idct"])
@pytest.mark.parametrize("length", [1, 2, 7, 64, 1000, 4099])
def test_as_accurate_as_jax(name, norm, length):
    """A transform mixes all entries, so that its errors are relative to the largest."""
    x = judge.rng("accuracy", length).standard_normal(length).astype(np.float32)
    exact = getattr(scipy.fft, name)(x.astype(np.float64), norm=norm)
    mine, place = worst(getattr(phlox.scipy.fft, name)(x, norm=norm), exact)
    theirs, _ = worst(getattr(jax.scipy.fft, name)(x, norm=norm), exact)
    assert mine <= max(4 * np.finfo(np.float32).eps, theirs), f"entry {place} of {length}: {mine}, jax {theirs}"
    with phlox.enable_x64(True):
        wide_error, place = worst(getattr(phlox.scipy.fft, name)(x.astype(np.float64), norm=norm), exact)
    assert wide_error <= 16 * np.finfo(np.float64).eps, f"entry {place} of {length}: {wide_error}"
