"""The small modules of phlox.scipy beside jax's: ndimage, integrate and cluster."""

import jax
import jax.scipy.cluster.vq
import jax.scipy.integrate
import jax.scipy.ndimage
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import A, batches, call, gradients, row, second_derivatives, values, wide
from phlox.experimental import checkify
from phlox.scipy import ndimage

MODES = ("constant", "nearest", "wrap", "mirror", "reflect")
#: places within three elements of the first and the last of four
AT = A(6, dtype="float32", low=-3.0, high=6.0)
MAPS = [
    *[call(A(4), [AT], order, mode) for mode in MODES for order in (0, 1)],
    call(A(3, 4), [AT, AT], 1), call(A(3, 4), [AT, AT], order=1, mode="mirror", cval=2), call(A(3, 4), A(2, 2, 3), 0),
    call(A(2, 3, 2), [AT, AT, AT], 1, "constant", 1.5), call(A(4), [A(5, dtype="int32")], 1), call(A(4), [A(5, dtype="int32")], 0),
    call(A(4), [A(5, dtype="float16")], 1, "reflect"), call(A(3, 4), [A(2, 1), A(1, 3)], 1, "nearest"),
    call(A(4), [[0.5, 2.5]], 1), call(A(4), [1.25], 1), call(A(1), [AT], 1, "reflect"), call(A(4), [A(0)], 1, "wrap"),
]  # fmt: skip
WRONG_MAPS = [
    call(A(3, 4), [AT], 1), call(A(4), [AT, AT], 1), call(A(4), [AT], 2), call(A(4), [AT], 1, "grid-wrap"),
    call(A(4), AT, 1), call(A(4), A(), 1), call(A(), [], 1), call(A(4), [A(3, dtype="complex64")], 1),
]  # fmt: skip
INTEGRALS = [
    call(A(5)), call(A(2, 5), A(5)), call(A(3, 2), dx=0.5, axis=0), call(A(2, 4), A(2, 4)), call(A(4), None, A(3)), call(A(3), axis=1),
    call([1.0, 2.0]), call(A(3), A(4)),
]  # fmt: skip
CODES = [
    call(A(5, 3), A(4, 3)), call(A(5), A(3)), call(A(6, 2), A(2, 2, dtype="other")), call(A(2, 3), A(1, 3), check_finite=False),
    call(A(0, 3), A(2, 3)),
]  # fmt: skip
WRONG_CODES = [
    call(A(3), A(3, 1)), call(A(2, 2, 2), A(2, 2, 2)), call(A(), A()), call(A(3, 3), A(2, 2)), call(A(3, 2), A(0, 2)),
    call([1.0, 2.0], A(2)), call(A(3), "x"),
]  # fmt: skip

TABLE = [
    row("scipy.ndimage.map_coordinates", *MAPS, twice=True, tolerance=1e-5),
    row("scipy.ndimage.map_coordinates", *WRONG_MAPS, dtypes=["float32"], grad=False, vmap=False),
    row("scipy.integrate.trapezoid", *INTEGRALS),
    row("scipy.cluster.vq.vq", *CODES),
    # Distances of 0, whose gradients are nan in jax.
    row("scipy.cluster.vq.vq", call(A(7, 1, whole=True), A(4, 1, whole=True)), grad=False),
    row("scipy.cluster.vq.vq", *WRONG_CODES, dtypes=["float32", "int32"], grad=False, vmap=False),
]

test_values = values(TABLE)
test_gradients = gradients(TABLE)
test_second_derivatives = second_derivatives(TABLE)
test_batches = batches(TABLE)
test_wide = wide(TABLE)


def test_codes_of_other_width():
    """jax broadcasts them."""
    with pytest.raises(phlox.errors.ShapeError, match="equally many columns"):
        phlox.scipy.cluster.vq.vq(np.ones((3, 3)), np.ones((2, 1)))


@pytest.mark.parametrize("mode", MODES)
def test_drawn_maps(mode):
    """Many places, also far away from the array, and exactly at and halfway between elements."""
    random = judge.rng("map_coordinates", mode)
    for shape in [(5,), (3, 4), (2, 5, 3)]:
        x = judge.array(random, shape, "float32")
        far = judge.array(random, (len(shape), 100), "float32", -20.0, 20.0)
        for at in (far, np.round(2 * far) / 2):
            for order in (0, 1):
                judge.same_values(
                    np.asarray(ndimage.map_coordinates(x, at, order, mode, 3.0)),
                    np.asarray(jax.scipy.ndimage.map_coordinates(x, at, order, mode, 3.0)),
                    tolerance=1e-5,
                )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
def test_maps_of_a_single_element(mode, order):
    """No remainder by the period 0, which `checkify` would report."""
    x, at = np.ones((1, 3), "float32"), np.array([[-3.2, -0.4, 0, 0.6, 2.5], [1, 1.5, 2, 0, 1]], "float32")
    error, out = checkify.checkify(phlox.jit(lambda at: ndimage.map_coordinates(x, at, order, mode, 1.0)))(at)
    error.throw()
    np.testing.assert_allclose(out, 1, rtol=1e-6)


def test_maps_of_an_array_without_elements():
    """jax raises a TypeError about gather for all modes."""
    x, at = np.ones((0, 3), "float32"), np.zeros((2, 1, 4), "float32")
    np.testing.assert_array_equal(ndimage.map_coordinates(x, at, 1, cval=3.0), np.full((1, 4), 3.0, "float32"))
    with pytest.raises(phlox.errors.ShapeError, match="mode='nearest' reads elements"):
        ndimage.map_coordinates(x, at, 1, mode="nearest")


def test_a_traced_number_outside():
    """For jax, `cval` must be a Python number."""
    x, at = np.ones(3, "float32"), [np.array([-1.0, 2.5, 1.0], "float32")]
    run = lambda cval: ndimage.map_coordinates(x, at, 1, cval=cval).sum()
    value, slope = phlox.jit(phlox.value_and_grad(run))(3.0)
    judge.same_values(np.asarray([value, slope]), np.array([6.0, 1.5], "float32"))
