"""Operations whose padded form is no plain one: values, derivatives and batches are those of the unpadded operation, with
nan in the padding."""

import os

import numpy as np
import pytest

import phlox
import phlox.export
import phlox.numpy as jnp
import phlox.scipy.signal
from padding_poison import poison  # noqa: F401  (a fixture of all tests here)
from phlox import lax
from phlox.errors import SizesWarning

#: how many lengths are tried
LENGTHS = (5, 7, 8, 20, 33)[: max(2, round(2 * float(os.environ.get("PHLOX_TEST_CASES", "1"))))]


def square(n, rng):
    return rng.normal(size=(n, n)).astype(np.float32) + 3 * np.eye(n, dtype=np.float32)


def symmetric(n, rng):
    return np.diag(np.arange(n)).astype(np.float32) + rng.normal(size=(n, n)).astype(np.float32) / 9


def tall(n, rng):
    return rng.normal(size=(n, 4)).astype(np.float32)


def wide(n, rng):
    return rng.normal(size=(4, n)).astype(np.float32)


def vector(n, rng):
    return rng.normal(size=n).astype(np.float32)


def low_rank(n, rng):
    return (rng.normal(size=(n, 2)) @ rng.normal(size=(2, n))).astype(np.float32)


def eigen(x):
    w, v = jnp.linalg.eigh(x + x.T)
    return w, v**2, (v * jnp.exp(-w)) @ v.T


def singular(x):
    u, s, v = jnp.linalg.svd(x, full_matrices=False)
    return s, (u * s) @ v, (u * jnp.sqrt(s)) @ v


def bases(x):
    """Bases are orthonormal, whose vectors of singular values that are zero are arbitrary."""
    u, _, v = jnp.linalg.svd(x, full_matrices=False)
    return u.T @ u, v @ v.T


def window(x, size, stride, padding="SAME"):
    return lax.conv_general_dilated(x[None, None], jnp.arange(1.0, size + 1)[None, None], (stride,), padding)


def product(a, b):
    return jnp.einsum("nij,njk->nik", a, b)


#: (function, names of axes, argument of a length and a generator, whether it has a derivative)
OPERATIONS = {
    "eigh": (eigen, "n, n", symmetric, True),
    "eigh of equal values": (lambda x: jnp.linalg.eigvalsh(0 * x), "n, n", square, False),
    "svd": (singular, "n, n", square, True),
    "svd tall": (singular, "n", tall, True),
    "svd wide": (singular, "_, n", wide, True),
    "svd of low rank": (bases, "n, n", low_rank, False),
    "svd of zeros": (lambda x: bases(x * jnp.array([1.0, 0, 1, 0])), "n", tall, False),
    "singular values": (lambda x: jnp.linalg.svd(x, compute_uv=False), "n, n", square, True),
    "qr": (jnp.linalg.qr, "n, n", square, True),
    "qr wide": (jnp.linalg.qr, "_, n", wide, True),
    "qr complete": (lambda x: jnp.linalg.qr(x, mode="complete"), "n", tall, False),
    "lstsq": (lambda x: jnp.linalg.lstsq(x, x.sum(1) + 1)[0], "n", tall, True),
    "pinv": (jnp.linalg.pinv, "n", tall, True),
    "rank": (jnp.linalg.matrix_rank, "n, n", low_rank, False),
    "nuclear norm": (lambda x: jnp.linalg.norm(x, "nuc"), "n", tall, True),
    "associative_scan": (lambda x: lax.associative_scan(jnp.multiply, x), "n", tall, True),
    "associative_scan reversed": (lambda x: lax.associative_scan(jnp.add, x, reverse=True, axis=1), "_, n", wide, True),
    "associative_scan of matrices": (
        lambda x: lax.associative_scan(product, jnp.sin(x[:, :, None] * x[:, None])),
        "n",
        tall,
        True,
    ),
    "cummax": (lambda x: lax.cummax(x), "n", vector, True),
    "cumprod": (lambda x: jnp.cumprod(x, 0), "n", tall, True),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, reverse=True), "n", vector, True),
    "prod": (lambda x: (jnp.prod(x, 0), jnp.prod(x)), "n", tall, True),
    "set a slice": (lambda x: (x.at[1:].set(x[:-1]), x.at[:-2].set(0)), "n", vector, True),
    "set a part of rows": (lambda x: x.at[1, 1:].set(x[0, :-1]), "_, n", wide, True),
    "an index out of bounds": (lambda x: x[jnp.array([0, -1, 99])], "n", tall, True),
    "while of each": (
        lambda x: phlox.vmap(lambda y: lax.while_loop(lambda c: c < 3, jnp.exp, y))(x),
        "n",
        vector,
        False,
    ),
    "reduce": (lambda x: lax.reduce(x, np.float32(2), lambda a, b: a * b, (0,)), "n", tall, False),
    "reduce of pairs": (
        lambda x: lax.reduce(
            (x, jnp.arange(x.shape[0])),
            (np.float32(-np.inf), np.int32(0)),
            lambda a, b: (jnp.maximum(a[0], b[0]), jnp.where(a[0] > b[0], a[1], b[1])),
            (0,),
        ),
        "n",
        vector,
        False,
    ),
    "strided convolution": (lambda x: window(x, 3, 2), "n", vector, True),
    "convolution of long strides": (lambda x: window(x, 2, 3, "SAME_LOWER"), "n", vector, False),
    "strided maxima": (lambda x: lax.reduce_window(x, -np.inf, lax.max, (3,), (2,), "SAME"), "n", vector, False),
    "convolution by spectra": (lambda x: phlox.scipy.signal.fftconvolve(x, jnp.arange(3.0), "same"), "n", vector, True),
    "linspace": (lambda x: jnp.linspace(x[0], 1.0, x.shape[0]), "n", vector, True),
    "polynomial of any degree": (lambda x: jnp.polyval(x, 0.5), "n", vector, True),
    "polyfit": (lambda x: jnp.polyfit(jnp.arange(x.shape[0]) / 9, x, 1), "n", vector, True),
    "compress": (lambda x: jnp.compress(x > 0, x, size=3), "n", vector, False),
    "fft of rows": (lambda x: jnp.abs(jnp.fft.fft(x, axis=1)), "n", tall, True),
    "strided sums": (lambda x: lax.reduce_window(x, 0.0, lax.add, (4,), (3,), "SAME"), "n", vector, True),
}


def check(actual, expected, tolerance):
    for x, y in zip(phlox.tree.leaves(actual), phlox.tree.leaves(expected), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if x.dtype.kind in "iub":
            np.testing.assert_array_equal(x, y)
        else:
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(name):
    function, sizes, argument, has_derivative = OPERATIONS[name]

    def f(x):
        return function(x)

    def total(f):
        return lambda x: sum(jnp.sin(y).sum() for y in phlox.tree.leaves(f(x)))

    padded, exact, rng = phlox.pad_axes(f, {"x": sizes}), phlox.jit(f), np.random.default_rng(len(name))
    for n in LENGTHS:
        x = argument(n, rng)
        check(padded(x), exact(x), 2e-5)
        xs = np.stack([x, x[::-1]])
        check(phlox.vmap(padded)(xs), phlox.vmap(exact)(xs), 2e-5)
        if has_derivative:
            check(phlox.grad(total(padded))(x), phlox.grad(total(exact))(x), 2e-3)


def test_undecided_forms_are_refused():
    """For some lengths of the bucket the matrix is tall, for others wide."""
    padded = phlox.pad_axes(lambda x: jnp.linalg.svd(x, compute_uv=False), {"x": "n"}, buckets=[8])
    with pytest.warns(SizesWarning, match="more rows than columns for some lengths"):
        for n in (3, 7):
            x = tall(n, np.random.default_rng(n))
            check(padded(x), jnp.linalg.svd(x, compute_uv=False), 2e-5)


def test_exported_programs_take_every_size():
    def loss(w, x):
        return jnp.tanh(x @ w).mean(), phlox.nn.softmax(x, 0)

    exported = phlox.export.export(phlox.jit(loss, sizes={"x": "n"}))(
        np.ones(3, np.float32), np.ones((20, 3), np.float32)
    )
    again = phlox.export.deserialize(exported.serialize(vjp_order=1))
    w, rng = np.linspace(-1, 1, 3, dtype=np.float32), np.random.default_rng(0)
    for n in (1, 5, 32):
        x = rng.normal(size=(n, 3)).astype(np.float32)
        check(again.call(w, x), loss(w, x), 1e-6)
        gradient = phlox.grad(lambda w: again.call(w, x)[0])(w)
        check(gradient, phlox.grad(lambda w: loss(w, x)[0])(w), 1e-6)
    assert not again.polymorphic.concrete  # no program of its own for a size
    with pytest.raises(phlox.errors.ShapeError):
        again.call(w, np.ones((33, 3), np.float32))
