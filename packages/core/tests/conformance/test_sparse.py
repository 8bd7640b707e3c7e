"""Sparse arrays beside jax's: conversions, products, derivatives, batches."""

import jax
import jax.experimental.sparse
import numpy as np
import pytest
import scipy.sparse

import phlox
import phlox.experimental.sparse

DENSE = np.array([[0, 2, 0], [3, 0, 1], [0, 0, 0], [0, 4, 5]], np.float32)
X = np.arange(6, dtype=np.float32).reshape(3, 2)


def both(program):
    mine, theirs = (program(m, m.experimental.sparse) for m in (phlox, jax))
    for a, b in zip(phlox.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("kind", ["BCOO", "BCSR"])
@pytest.mark.parametrize(
    "program",
    [
        lambda m, s, of: of(DENSE),
        lambda m, s, of: of(DENSE).todense(),
        lambda m, s, of: of(DENSE) @ m.numpy.asarray(X[:, 0]),
        lambda m, s, of: of(DENSE) @ m.numpy.asarray(X),
        lambda m, s, of: m.numpy.asarray(X.T) @ s.BCOO.fromdense(m.numpy.asarray(DENSE.T)),
        lambda m, s, of: m.jit(lambda a, x: a @ x)(of(DENSE), m.numpy.asarray(X)),
        lambda m, s, of: m.grad(lambda x: ((of(DENSE) @ x) ** 2).sum())(m.numpy.asarray(X)),
        lambda m, s, of: m.vmap(lambda x: of(DENSE) @ x)(m.numpy.asarray(X.T)),
        lambda m, s, of: (2 * s.BCOO.fromdense(m.numpy.asarray(DENSE))).todense(),
    ],
)
def test_conversions_and_products(kind, program):
    both(lambda m, s: program(m, s, lambda dense: getattr(s, kind).fromdense(m.numpy.asarray(dense))))


@pytest.mark.parametrize("kind", ["BCOO", "BCSR"])
def test_from_scipy(kind):
    both(lambda m, s: getattr(s, kind).from_scipy_sparse(scipy.sparse.csr_matrix(DENSE)))


def test_gradients_of_elements():
    def program(m, s):
        a = s.BCOO.fromdense(m.numpy.asarray(DENSE))
        loss = lambda data: ((s.BCOO((data, a.indices), shape=a.shape) @ m.numpy.asarray(X)) ** 2).sum()
        return m.grad(loss)(a.data)

    both(program)


def test_of_fixed_size_under_jit():
    both(lambda m, s: m.jit(lambda x: s.BCOO.fromdense(x, nse=7).todense())(m.numpy.asarray(DENSE)))
    both(lambda m, s: m.jit(lambda x: s.BCOO.fromdense(x, nse=7) @ m.numpy.asarray(X))(m.numpy.asarray(DENSE)))


def test_the_rest():
    both(
        lambda m, s: [s.eye(3).todense(), s.eye(2, 3).todense(), s.empty((2, 2)).todense(), s.todense(m.numpy.ones(2))]
    )
    both(lambda m, s: s.BCOO.fromdense(m.numpy.asarray(DENSE)).T.todense())
    both(lambda m, s: (s.eye(3) + s.eye(3)).todense())
    with pytest.raises(ValueError, match="sparse product"):
        phlox.experimental.sparse.eye(3) @ phlox.numpy.ones(2)
    assert isinstance(phlox.experimental.sparse.eye(1), phlox.experimental.sparse.JAXSparse)
