"""Derivatives where eigenvalues or singular values are equal, or zero, beside differences of values.

All functions here do not depend on the choice of vectors. See `phlox._transform.spectra`.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox.scipy import linalg

RNG = np.random.default_rng(7)


def orthogonal(n, is_complex=False):
    x = RNG.normal(size=(n, n)) + (1j * RNG.normal(size=(n, n)) if is_complex else 0)
    return np.linalg.qr(x)[0]


def symmetric(values, is_complex=False):
    q = orthogonal(len(values), is_complex)
    return (q * values) @ q.conj().T


def adjoint(x):
    return jnp.swapaxes(x, -1, -2).conj()


def of_eigh(f):
    return lambda a: f(*jnp.linalg.eigh(a))


def of_svd(f):
    return lambda a: f(*jnp.linalg.svd(a, full_matrices=False))


def direction(a, is_hermitian):
    t = RNG.normal(size=a.shape) + (1j * RNG.normal(size=a.shape) if np.iscomplexobj(a) else 0)
    return (t + t.conj().T) / 2 if is_hermitian else t


def check(f, a, is_hermitian=False, second=True, forward_twice=True):
    """First derivatives in both modes, second ones in reverse over reverse, forward over reverse, and forward twice."""
    with phlox.enable_x64(True):
        a = jnp.asarray(a)
        t = direction(a, is_hermitian)
        step = lambda h: np.asarray(f(a + h * t))
        first = (step(1e-5) - step(-1e-5)) / 2e-5
        scale = 1e-6 * max(1, np.abs(first).max())
        np.testing.assert_allclose(phlox.jvp(f, (a,), (jnp.asarray(t),))[1], first, atol=scale)
        out, vjp = phlox.vjp(f, a)
        weights = jnp.asarray(direction(np.asarray(out), False)) if out.ndim else jnp.ones_like(out)
        weighted = lambda x, w: float(np.real(np.sum(np.asarray(x) * np.asarray(w))))
        assert weighted(vjp(weights)[0], t) == pytest.approx(weighted(first, weights), abs=20 * scale)
        if not second:
            return
        curvature = (step(1e-3) - 2 * step(0) + step(-1e-3)) / 1e-6
        scale = 2e-4 * max(1, np.abs(curvature).max())
        along = lambda x: jnp.sum(phlox.vjp(f, x)[1](weights)[0] * t).real
        expected = weighted(curvature, weights)
        assert weighted(phlox.grad(along)(a), t) == pytest.approx(expected, abs=20 * scale)
        assert weighted(phlox.jvp(along, (a,), (jnp.asarray(t),))[1], 1) == pytest.approx(expected, abs=20 * scale)
        if forward_twice:
            tangent = lambda x: phlox.jvp(f, (x,), (jnp.asarray(t),))[1]
            np.testing.assert_allclose(phlox.jvp(tangent, (a,), (jnp.asarray(t),))[1], curvature, atol=scale)


#: which share of the pairs of function and point runs: each takes 0.5 s
SHARE = min(1.0, float(os.environ.get("PHLOX_TEST_CASES", "1")) / 3)


def pairs(names, points):
    """Pairs of a function and a point, of which a share runs."""
    both = [(name, point) for name in names for point in points]
    return [pair for i, pair in enumerate(both) if int(i * SHARE) != int((i + 1) * SHARE)]


HERMITIAN = {
    "identity": np.eye(3),
    "pair": symmetric([1.0, 1.0, 2.0, 3.0]),
    "complex": symmetric([1.0, 1.0, 2.0], is_complex=True),
}

#: functions of (eigenvalues, eigenvectors) that are matrices
MATRICES = {
    "exp": lambda w, v: (v * jnp.exp(w)) @ adjoint(v),
    "rows": lambda w, v: v @ (jnp.sqrt(w)[:, None] * adjoint(v)),
    "quotient": lambda w, v: (v / w) @ adjoint(v),
    "einsum": lambda w, v: jnp.einsum("ij,j,kj->ik", v, w**3 - w, v.conj()),
    "solution": lambda w, v: v @ ((adjoint(v) @ jnp.ones((v.shape[0], 2))) / (w + 1)[:, None]),
    "condition": lambda w, v: (v * jnp.where(w > 0.5, jnp.log(w), 0.0)) @ adjoint(v),
    "call": phlox.jit(lambda w, v: (v * phlox.jit(jnp.cos)(w)) @ adjoint(v)),
    "projection": lambda w, v: v @ adjoint(v),
}


@pytest.mark.parametrize(("name", "point"), pairs(MATRICES, HERMITIAN))
def test_functions_of_hermitian_matrices(name, point):
    check(of_eigh(MATRICES[name]), HERMITIAN[point], is_hermitian=True)


@pytest.mark.parametrize("point", HERMITIAN)
def test_functions_of_eigenvalues(point):
    for f in (lambda w, v: jnp.sum(jnp.log(w)), lambda w, v: jnp.log(jnp.sum(jnp.exp(w)))):
        check(of_eigh(f), HERMITIAN[point], is_hermitian=True, forward_twice=False)
    check(of_eigh(lambda w, v: v @ jnp.diag(w) @ adjoint(v)), HERMITIAN[point], is_hermitian=True, second=False)


@pytest.mark.parametrize("transformed", [phlox.jit, lambda f: lambda a: phlox.vmap(f)(jnp.stack([a, 2 * a]))])
def test_transformed(transformed):
    check(transformed(of_eigh(MATRICES["exp"])), HERMITIAN["pair"], is_hermitian=True)


POINTS = {
    "identity": 2 * np.eye(3),
    "diagonal": np.diag([1.0, 1.0, 2.0, 3.0]),
    "complex": (orthogonal(3, True) * [2.0, 2.0, 3.0]) @ orthogonal(3, True),
    "tall": np.eye(4)[:, :2],
    "wide": 2 * np.eye(4)[:2],
}

PRODUCTS = {
    "reconstruction": lambda u, s, vh: (u * s) @ vh,
    "diagonal": lambda u, s, vh: u @ jnp.diag(s) @ vh,
    "cube": lambda u, s, vh: u @ (s[:, None] ** 3 * vh),
    "inverse": lambda u, s, vh: (adjoint(vh) / s) @ adjoint(u),
    "polar": lambda u, s, vh: u @ vh,
    "norm": lambda u, s, vh: jnp.linalg.norm((u * s) @ vh),
}


@pytest.mark.parametrize(("name", "point"), pairs(PRODUCTS, POINTS))
def test_singular_values(name, point):
    check(of_svd(PRODUCTS[name]), POINTS[point])


def test_the_gradient_of_a_norm_is_the_normed_matrix():
    a = jnp.diag(jnp.array([1.0, 1.0, 2.0, 3.0]))
    loss = lambda a: jnp.linalg.norm(PRODUCTS["reconstruction"](*jnp.linalg.svd(a)))
    size = np.sqrt(15)
    np.testing.assert_allclose(phlox.grad(loss)(a), np.asarray(a) / size, atol=1e-6)
    normed = np.asarray(a) / size
    expected = (np.eye(16) - np.outer(normed, normed)) / size
    np.testing.assert_allclose(phlox.hessian(loss)(a).reshape(16, 16), expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (3, 3)])
def test_zero_singular_values(shape):
    a = jnp.ones(shape)
    loss = of_svd(lambda u, s, vh: jnp.linalg.norm((u * s) @ vh))
    expected = np.ones(shape) / np.sqrt(np.prod(shape))
    np.testing.assert_allclose(phlox.grad(loss)(a), expected, rtol=1e-5)
    for f in (jnp.linalg.svdvals, lambda a: jnp.linalg.norm(a, "nuc"), lambda a: jnp.linalg.norm(a, 2)):
        np.testing.assert_allclose(phlox.grad(lambda a, f=f: jnp.sum(f(a)))(a), expected, rtol=1e-5)
    if shape[0] == shape[1]:
        check(of_svd(PRODUCTS["reconstruction"]), np.ones(shape), second=False)


def test_distinct_values_are_told_apart():
    """Values that differ by more than rounding errors have the derivatives of distinct ones."""
    with phlox.enable_x64(True):
        a = jnp.diag(jnp.array([1.0, 1.0 + 1e-9, 2.0]))
        t = jnp.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        _, (dw, dv) = phlox.jvp(jnp.linalg.eigh, (a,), (t,))
        np.testing.assert_allclose(np.abs(dv[:2, :2]), np.array([[0, 1], [1, 0]]) / 1e-9, rtol=1e-6, atol=1)
        np.testing.assert_allclose(dw, 0, atol=1e-9)


#: functions with rules of their own, which do not pass through vectors
OWN = {
    "nuclear": lambda a: jnp.linalg.norm(a, "nuc"),
    "pinv": jnp.linalg.pinv,
    "lstsq": lambda a: jnp.linalg.lstsq(a, jnp.ones((a.shape[0], 2)))[0],
    "unitary": lambda a: linalg.polar(a, method="svd")[0],
    "qdwh": lambda a: linalg.polar(a, side="right" if a.shape[0] >= a.shape[1] else "left")[0],
    "positive": lambda a: linalg.polar(a, method="svd")[1],
}


@pytest.mark.parametrize(("name", "point"), pairs(OWN, POINTS))
def test_own_rules(name, point):
    if (name, point) != ("positive", "wide"):  # singular: like the root of zero
        check(OWN[name], POINTS[point])


SQUARE = {
    "sqrtm": linalg.sqrtm,
    "expm": linalg.expm,
    "sylvester": lambda a: linalg.solve_sylvester(a, a @ a + 2 * jnp.eye(a.shape[0]), jnp.ones(a.shape)),
    "det": jnp.linalg.det,
    "logdet": lambda a: jnp.linalg.slogdet(a)[1],
}


@pytest.mark.parametrize("name", SQUARE)
def test_square_matrices(name):
    for point in ("identity", "diagonal"):
        check(SQUARE[name], POINTS[point])


def test_eigenvalues_of_general_matrices():
    check(lambda a: jnp.sum(jnp.exp(jnp.linalg.eigvals(a))), np.diag([1.0, 1.0, 2.0]), second=False)


# Below rank 3 second derivatives are nan where rounding leaves a pivot at exactly zero.
@pytest.mark.parametrize("rank", [3])
def test_determinants_of_singular_matrices(rank):
    values = np.r_[np.zeros(4 - rank), np.arange(1.0, rank + 1)]
    check(jnp.linalg.det, symmetric(values))


def test_rank_deficient_least_squares():
    a = np.ones((3, 2))
    with phlox.enable_x64(True):
        _, t = phlox.jvp(jnp.linalg.pinv, (jnp.asarray(a),), (jnp.asarray(a),))
        np.testing.assert_allclose(t, -np.linalg.pinv(a), atol=1e-12)
        solution = lambda a: jnp.linalg.lstsq(a, jnp.arange(3.0))[0]
        _, t = phlox.jvp(solution, (jnp.asarray(a),), (jnp.asarray(a),))
        np.testing.assert_allclose(t, [-0.5, -0.5], atol=1e-12)


@pytest.mark.parametrize("order", [None, 2, 3, "fro", "nuc"])
def test_norms_of_zero(order):
    x = jnp.zeros((2, 2)) if isinstance(order, str) else jnp.zeros(3)
    np.testing.assert_array_equal(phlox.grad(lambda x: jnp.linalg.norm(x, order))(x), np.zeros(x.shape))


@pytest.mark.parametrize("diagonal", [(2.0, 0.0), (0.0, 0.0, 0.0), (1.0, -3.0, 0.0, 2.0)], ids=str)
def test_svd_of_singular_hermitian_matrices_is_unitary(diagonal):
    u, s, vh = jnp.linalg.svd(np.diag(diagonal), hermitian=True)
    np.testing.assert_array_equal(vh @ vh.T, np.eye(len(diagonal)))
    np.testing.assert_array_equal(u @ jnp.diag(s) @ vh, np.diag(diagonal))


@pytest.mark.parametrize("factor", [1e-30, 1e-15, 1.0, 1e15, 1e30])
@pytest.mark.parametrize("kind", [np.float32, np.complex64])
def test_logarithms_of_determinants_out_of_range(factor, kind):
    """The determinant itself, a product of two elements, is 0 or infinite in single precision."""
    a = (np.array([[1, 2], [3, 4]]) * factor).astype(kind)
    wide = np.linalg.slogdet(a.astype(np.complex128 if kind is np.complex64 else np.float64))
    sign, logs = phlox.jit(jnp.linalg.slogdet)(a)
    np.testing.assert_allclose(sign, wide.sign, rtol=1e-6)
    np.testing.assert_allclose(logs, wide.logabsdet, rtol=1e-6)
    if kind is np.float32:
        inverse = np.linalg.inv(a.astype(np.float64)).T
        np.testing.assert_allclose(phlox.grad(lambda a: jnp.linalg.slogdet(a)[1])(a), inverse, rtol=1e-5)
