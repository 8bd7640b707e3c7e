"""phlox.numpy, polynomials: their arithmetic, derivatives, values, roots, and fits."""

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import A, S, batches, both, call, gradients, row, rows, values, wide

POLYNOMIALS = [
    row("numpy.polyval", call(A(3), A(2)), call(A(3), S(2)), call(A(3, 2), A(2)), call(A(3), A(2, dtype="other")),
        call(A(0), A(2)), call(A(2), A(2), unroll=1)),
    *rows("numpy", "polyadd polysub", call(A(3), A(2)), call(A(2), A(2, dtype="other")), call(A(1), A(3)),
        dtypes=[d for d in judge.ALL if d != "bool"]),
    row("numpy.polymul", call(A(3), A(2)), call(A(2), A(2, dtype="other")), call(A(0), A(2)),
        call(np.array([0.0, 1.0, 2.0]), np.array([0.0, 3.0]), trim_leading_zeros=True), jit=False),
    # Not bool: XLA takes a product with a bool for a choice, so that a remainder after division by False is another.
    row("numpy.polydiv", call(A(4), A(2, low=1)), call(A(2), A(3, low=1)), call(A(3), A(1, low=1)), tolerance=1e-2,
        dtypes=[*judge.INTS, *judge.FLOATS, *judge.COMPLEX]),
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


@pytest.mark.parametrize(
    "p", [[1.0, -3.0, 2.0], [0.0, 0.0, 2.0, 1.0, 5.0], [1, 0, 0], [3.0], [0.0, 0.0], [], [2j, 1, 1]], ids=str
)
def test_roots(p):
    """As sets: the order of eigenvalues is no promise."""
    p = np.array(p, np.complex64 if any(isinstance(x, complex) for x in p) else np.float32)
    for strip in (True, False):
        mine, theirs = (np.asarray(m.numpy.roots(p, strip_zeros=strip)) for m in (phlox, jax))
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        assert (np.isnan(mine) == np.isnan(theirs)).all()
        known = [np.sort_complex(np.round(x[~np.isnan(x)], 4)) for x in (mine, theirs)]
        np.testing.assert_allclose(*known, atol=2e-4)
    both(lambda m, p: m.numpy.roots(p[None]), p)
    staged = phlox.jit(lambda p: phlox.numpy.roots(p, strip_zeros=False))(p)
    np.testing.assert_array_equal(np.isnan(staged), np.isnan(mine))


POINTS = np.linspace(-2, 3, 9, dtype=np.float32)

VALUES = POINTS**3 - 2 * POINTS + np.cos(7 * POINTS)

FITS = {
    "line": lambda n: n.polyfit(POINTS, VALUES, 1),
    "constant": lambda n: n.polyfit(POINTS, VALUES, 0),
    "cubic": lambda n: n.polyfit(POINTS, VALUES, 3),
    "columns": lambda n: n.polyfit(POINTS, np.stack([VALUES, POINTS], 1), 2),
    "weights": lambda n: n.polyfit(POINTS, VALUES, 2, w=np.abs(VALUES)),
    "weights of columns": lambda n: n.polyfit(POINTS, np.stack([VALUES, POINTS], 1), 2, w=np.abs(VALUES)),
    "full": lambda n: n.polyfit(POINTS, VALUES, 2, full=True),
    "rcond": lambda n: n.polyfit(POINTS, VALUES, 3, 0.1, full=True),
    "cov": lambda n: n.polyfit(POINTS, VALUES, 2, cov=True),
    "cov of columns": lambda n: n.polyfit(POINTS, np.stack([VALUES, POINTS**2], 1), 2, cov=True),
    "unscaled": lambda n: n.polyfit(POINTS, VALUES, 2, cov="unscaled"),
    "too few for cov": lambda n: n.polyfit(POINTS[:3], VALUES[:3], 2, cov=True),
    "negative degree": lambda n: n.polyfit(POINTS, VALUES, -1),
    "matrix of x": lambda n: n.polyfit(POINTS[None], VALUES, 1),
    "no points": lambda n: n.polyfit(POINTS[:0], VALUES[:0], 1),
    "different lengths": lambda n: n.polyfit(POINTS[:3], VALUES, 1),
    "rank 3 of y": lambda n: n.polyfit(POINTS, VALUES[:, None, None], 1),
    "matrix of weights": lambda n: n.polyfit(POINTS, VALUES, 1, w=np.ones((9, 1))),
    "too few weights": lambda n: n.polyfit(POINTS, VALUES, 1, w=np.ones(3)),
}


@pytest.mark.parametrize("name", FITS)
def test_polyfit(name):
    both(lambda m: FITS[name](m.numpy), tolerance=2e-4)
    both(lambda m: m.jit(lambda: FITS[name](m.numpy))(), tolerance=2e-4)


def test_polyfit_is_differentiated_and_mapped():
    loss = lambda m: lambda x, y: (m.numpy.polyfit(x, y, 2) ** 2).sum()
    both(lambda m: m.grad(loss(m), (0, 1))(POINTS, VALUES), tolerance=2e-3, weak=False)
    both(lambda m: m.vmap(lambda y: m.numpy.polyfit(POINTS, y, 2))(np.stack([VALUES, POINTS])), tolerance=2e-4)


#: Zeros in front that are cut off, and polynomials that matrices stand for.
CUT = {
    "polydiv, trimmed": lambda n: n.polydiv(np.array([1.0, 0, -4]), np.array([1.0, 2]), trim_leading_zeros=True),
    "polydiv, trimmed to 5": lambda n: n.polydiv(np.array([1.0, 0, -4]), np.array([1.0, 3]), trim_leading_zeros=True),
    "poly of a matrix": lambda n: n.poly(np.array([[2.0, 1.0], [0.0, -3.0]], np.float32)),
    "poly of an empty matrix": lambda n: n.poly(np.zeros((0, 0))),
}


@pytest.mark.parametrize("name", CUT)
def test_cut_and_characteristic_polynomials(name):
    both(lambda m: CUT[name](m.numpy))
