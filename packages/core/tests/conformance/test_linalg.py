"""phlox.lax.linalg, phlox.numpy.linalg and phlox.scipy.linalg."""

import dataclasses

import jax.scipy.linalg  # (so that it is an attribute of jax)
import numpy as np
import pytest
import scipy.linalg

import judge
import phlox
from conformance.harness import A, batches, call, gradients, row, second_derivatives, values, wide

INEXACT = ["float32", "complex64"]
FLOAT = ["float32"]


@dataclasses.dataclass(frozen=True, init=False, repr=False)
class M(A):
    """Random square matrices with distinct eigenvalues, well conditioned; Hermitian positive definite where `positive`."""

    positive: bool = False

    def __init__(self, *shape, dtype=None, positive=False):
        super().__init__(*shape, dtype=dtype)
        object.__setattr__(self, "positive", positive)

    def make(self, dtype, other, *seed):
        x = super().make(dtype, other, *seed)
        n = x.shape[-1]
        if self.positive:
            x = x @ x.swapaxes(-1, -2).conj() / max(n, 1)
        return (x + np.diag(np.arange(1, n + 1) * (1.0 if self.positive else 2.0))).astype(x.dtype)

    def __repr__(self):
        return ("P" if self.positive else "M") + super().__repr__()[1:]


def P(*shape, **options):
    return M(*shape, positive=True, **options)


def lax_row(name, *calls, dtypes=INEXACT, **options):
    return row(f"lax.linalg.{name}", *calls, dtypes=dtypes, **options)


SINGULAR = [[1.0, 2.0], [2.0, 4.0]]
NOT_POSITIVE = [[1.0, 2.0], [2.0, 1.0]]


def given(numbers):
    """An array of these numbers, in the dtype of the call."""
    return Given(tuple(map(tuple, numbers)))


@dataclasses.dataclass(frozen=True, init=False, repr=False)
class Given(A):
    numbers: tuple = ()

    def __init__(self, numbers):
        super().__init__(*np.shape(numbers))
        object.__setattr__(self, "numbers", numbers)

    def make(self, dtype, other, *seed):
        return np.array(self.numbers).astype(dtype)

    def __repr__(self):
        return f"G{list(self.shape)}".replace(" ", "")


FACTORS = [
    lax_row("cholesky", call(P(3, 3)), call(P(2, 3, 3)), call(A(3, 3)), call(P(3, 3), symmetrize_input=False),
        call(given(NOT_POSITIVE)), call(A(0, 0)), call(P(1, 1)), call(A(2, 3)), call(A(3)), call(P(2, 2, dtype="int32")),
        twice=True),
    lax_row("cholesky_update", call(P(3, 3), A(3)), call(P(3, 3), A(2)), call(A(3, 2), A(2)), dtypes=FLOAT, vmap=False),
    lax_row("symmetric_product", call(A(3, 2), A(3, 3)), call(A(3, 2), A(3, 3), alpha=2.0, beta=0.5),
        call(A(2, 3, 2), A(2, 3, 3), symmetrize_output=True), call(A(2, 3), A(3, 3)), dtypes=FLOAT),
    lax_row("lu", call(M(3, 3)), call(M(2, 3, 3)), call(A(4, 3)), call(A(2, 3, 5)), call(given(SINGULAR)), call(A(0, 0)),
        call(A(0, 2)), call(A(2, 0)), call(A(1, 1)), call(A(2))),
    lax_row("lu_pivots_to_permutation", call(A(3, dtype="int32", low=3, high=4), 5), call(A(2, 3, dtype="int32", low=0), 4),
        call(A(3, dtype="int32", low=0), 2), call(A(0, dtype="int32"), 2), call(A(3), 3)),
    lax_row("qr", call(M(3, 3)), call(A(5, 3), full_matrices=False), call(A(2, 4, 3)), call(A(3, 5)),
        call(A(3, 5), full_matrices=False), call(A(4, 3), pivoting=True),
        call(A(0, 3)), call(A(3, 0), full_matrices=False), call(A(0, 3), pivoting=True), call(A(1, 1)), call(A(2)),
        twice=True),
    # jax forgets to exchange the columns of x in this derivative; that of phlox is compared with differences elsewhere.
    lax_row("qr", call(A(3, 4), pivoting=True, full_matrices=False), grad=False),
    lax_row("householder_product", call(A(4, 3), A(3)), call(A(2, 3, 3), A(2, 3)), call(A(3, 4), A(3)), call(A(3, 2), A(3)),
        call(A(3, 3), A(0))),
    lax_row("ormqr", call(A(3, 3), A(3), A(3, 2)), call(A(3, 3), A(3), A(2, 3), left=False, transpose=True),
        call(A(2, 4, 3), A(2, 3), A(2, 4, 2), transpose=True), call(A(3, 3), A(3), A(2, 3))),
    lax_row("hessenberg", call(A(4, 4)), call(A(2, 3, 3)), call(A(1, 1)), call(A(2, 3))),
    lax_row("schur", call(A(3, 3)), call(A(2, 3, 3), compute_schur_vectors=False), call(A(3, 3), sort_eig_vals=True),
        call(A(0, 0)), call(A(2, 3))),
    lax_row("tridiagonal", call(A(4, 4)), call(A(2, 3, 3), lower=False), call(A(1, 1)), call(A(0, 0)), call(A(2, 3))),
]  # fmt: skip

SPECTRA = [
    lax_row("eigh", call(P(3, 3)), call(A(3, 3)), call(M(2, 3, 3)), call(A(3, 3), lower=False, symmetrize_input=False),
        call(A(0, 0)), call(A(1, 1)), call(A(3, 3), subset_by_index=(0, 3)), call(A(3, 3), subset_by_index=(0, 2)),
        call(A(2, 3)), call(A(3)), call(given([[1.0, 0.0], [0.0, 1.0]])), call(A(3, 3), sort_eigenvalues=False),
        call(P(2, 2, dtype="int32")), twice=True),
    lax_row("eig", call(M(3, 3), enable_eigvec_derivs=True),
        call(M(3, 3), compute_left_eigenvectors=False, compute_right_eigenvectors=False), call(M(2, 3, 3)),
        call(M(3, 3), compute_left_eigenvectors=False, enable_eigvec_derivs=True),
        call(M(2, 3, 3), compute_right_eigenvectors=False, enable_eigvec_derivs=True), call(A(0, 0)), call(A(1, 1)),
        call(A(2, 3)), twice=True),
    lax_row("svd", call(M(3, 3)), call(A(2, 4, 3), full_matrices=False), call(A(3, 5), full_matrices=False),
        call(A(3, 4)), call(A(3, 4), compute_uv=False), call(A(2, 0, 3)), call(A(3, 0), compute_uv=False),
        call(A(2, 0), full_matrices=False), call(A(1, 1)), call(A(3, 2), subset_by_index=(0, 1)),
        call(A(3, 2), subset_by_index=(0, 1), full_matrices=False), call(A(3)), twice=True),
]  # fmt: skip

SYSTEMS = [
    lax_row("triangular_solve", call(M(3, 3), A(2, 3)), call(M(3, 3), A(3, 5), left_side=True),
        call(M(3, 3), A(3, 2), left_side=True, lower=True, unit_diagonal=True), call(M(3, 3), A(4, 3), lower=True),
        call(M(3, 3), A(4, 3), transpose_a=True, conjugate_a=True), call(M(3, 3), A(3, 2), left_side=True, conjugate_a=True),
        call(M(2, 3, 3), A(2, 3, 2), left_side=True, transpose_a=True), call(M(3, 3), A(3)),
        call(M(3, 3), A(3), left_side=True), call(M(2, 3, 3), A(2, 3), left_side=True), call(A(0, 0), A(2, 0)),
        call(M(3, 3), A(2, 3), left_side=True), call(A(2, 3), A(2, 3)), call(M(3, 3), A(2, 3, 3)),
        call(given([[1.0, 2.0], [0.0, 0.0]]), A(2, 2)), call(M(3, 3), A(2, 3, dtype="int32")), twice=True),
    lax_row("tridiagonal_solve", *[call(A(*s, low=0.1, high=1.0), A(*s, low=4.0, high=5.0), A(*s, low=0.1, high=1.0),
        A(*s, 2), perturb_singular=p) for s in [(4,), (2, 3), (1,)] for p in (False, True)],
        call(A(3), A(3), A(3), A(2, 2)), call(A(3), A(2), A(3), A(3, 2)), call(A(3), A(3), A(3), A(3)), twice=True),
]  # fmt: skip

DECOMPOSITIONS = [
    row("numpy.linalg.cholesky", call(P(3, 3)), call(P(2, 3, 3), upper=True), call(P(3, 3), symmetrize_input=False),
        call(given(NOT_POSITIVE)), call(A(0, 0)), call(A(2, 3)), call(A(3)), call(P(2, 2, dtype="int32")), dtypes=INEXACT,
        twice=True),
    row("numpy.linalg.qr", call(A(4, 3)), call(A(2, 3, 3), "complete"), call(A(3, 4), mode="r"), call(A(3, 2), "raw"),
        call(A(3, 3), "economic"), call(A(3)), call(A(2, 2, dtype="int32")), dtypes=INEXACT, twice=True),
    row("numpy.linalg.svd", call(M(3, 3)), call(A(2, 4, 3), False), call(A(3, 4), compute_uv=False), call(A(2, 4)),
        call(M(3, 3), hermitian=True), call(M(2, 3, 3), compute_uv=False, hermitian=True), call(A(0, 2)), call(A(3)),
        call(A(2, 2), full_matrices=False, subset_by_index=(0, 1)), dtypes=INEXACT, twice=True),
    row("numpy.linalg.svdvals", call(A(2, 4, 3)), call(A(2, 2, dtype="int32")), dtypes=INEXACT),
    row("numpy.linalg.eigh", call(P(3, 3)), call(M(2, 3, 3), "U", symmetrize_input=False), call(A(3, 3), UPLO="X"),
        call(A(2, 3)), call(A(1, 1)), dtypes=INEXACT, twice=True),
    row("numpy.linalg.eigvalsh", call(P(3, 3)), call(M(2, 3, 3), "U"), dtypes=INEXACT),
    row("numpy.linalg.eig", call(M(3, 3)), call(A(2, 3)), call(A(2, 2, dtype="int32")), dtypes=INEXACT),
    row("numpy.linalg.eigvals", call(M(3, 3)), call(M(2, 2, 2)), call(A(0, 0)), dtypes=INEXACT, twice=True),
]  # fmt: skip

SOLUTIONS = [
    row("numpy.linalg.solve", call(M(3, 3), A(3)), call(M(3, 3), A(3, 2)), call(M(2, 3, 3), A(2, 3, 2)),
        call(M(2, 3, 3), A(3)), call(M(3, 3), A(2, 3, 2)), call(M(4, 1, 3, 3), A(2, 3, 1)), call(M(3, 3), A(2, 0, 3, 2)),
        call(given(SINGULAR), A(2)), call(M(3, 3), A(2)), call(M(2, 3, 3), A(2, 3)), call(A(2, 3), A(3)), call(A(3), A(3)),
        call(M(3, 3), A()), call(A(0, 0), A(0)), call(M(2, 2), A(2, dtype="int32")), call(M(2, 2), A(2, dtype="other")),
        dtypes=INEXACT, twice=True),
    row("numpy.linalg.inv", call(M(3, 3)), call(M(2, 3, 3)), call(given(SINGULAR)), call(M(2, 2, dtype="int32")),
        call(A(0, 0)), call(A(2, 3)), call(A(2)), dtypes=INEXACT, twice=True),
    row("numpy.linalg.pinv", call(A(4, 3)), call(A(2, 3), np.array([0.1, 0.9, 0.2], np.float32)), call(A(2, 3, 4)), call(given(SINGULAR)), call(M(3, 3), hermitian=True),
        call(A(3, 3), rtol=0.5), call(A(2, 3, 3), rcond=0.1), call(A(3, 3), 0.1, rcond=0.1), call(A(0, 3)), call(A(3)),
        call(A(2, 2, dtype="int32")), dtypes=INEXACT, twice=True),
    row("numpy.linalg.lstsq", call(A(4, 3), A(4)), call(A(3, 4), A(3, 2)), call(A(4, 3), A(4), rcond=0.5),
        call(A(4, 3), A(4), rcond=-1.0), call(given(SINGULAR), A(2)), call(A(4, 3), A(3)), call(A(2, 4, 3), A(2, 4)),
        call(A(0, 2), A(0)), call(A(3, 0), A(3, 1)), call(A(3, 2, dtype="int32"), A(3)), dtypes=INEXACT),
    row("numpy.linalg.lstsq", call(A(4, 3), A(4), numpy_resid=True), call(A(3, 4), A(3), numpy_resid=True), dtypes=INEXACT,
        jit=False, grad=False, vmap=False),
    row("numpy.linalg.matrix_rank", call(A(4, 3)), call(given(SINGULAR)), call(A(2, 3, 3), 1.0), call(A(2, 3, 3), tol=0.1),
        call(A(3, 3), hermitian=True), call(A(3)), call(A(3, 3), 0.1, tol=0.1), call(A(2, 3, 3), A(2, low=0.0)),
        dtypes=INEXACT, grad=False),
    *[row("numpy.linalg.matrix_power", *[call(M(3, 3), n) for n in (0, 1, 2, 3, 5, -1, -4)], call(A(2, 2, 2), 3),
        call(A(2, 3), 2), call(A(3), 2), call(A(2, 2), 1.5), dtypes=INEXACT, twice=True)],
    row("numpy.linalg.matrix_power", call(A(2, 2), 3), call(A(2, 2), 0), dtypes=["int32", "float16", "uint8"]),
    row("numpy.linalg.tensorinv", call(M(4, 2, 2), 1), call(A(2, 2, 4)), call(A(2, 3), 1), call(A(2, 2), 0), dtypes=INEXACT),
    row("numpy.linalg.tensorsolve", call(A(2, 2, 4), A(2, 2)), call(A(2, 4, 2), A(2, 2), axes=(1,)),
        call(A(2, 2, 4), A(2, 3)), call(A(2, 2, 3), A(2, 2)), dtypes=INEXACT),
    row("numpy.linalg.det", *[call(M(n, n)) for n in range(1, 5)], call(M(2, 4, 4)), call(M(2, 2, 2)), call(A(2, 3)), call(A(3)),
        call(given(SINGULAR)), call(given(np.diag([0.0, 0.0, 2.0, 3.0]))), call(M(4, 4, dtype="int32")), dtypes=INEXACT, twice=True),
    # Gradients are judged below: jax's fails or is 0, and cofactors of (5, 5) are small differences of large numbers.
    row("numpy.linalg.det", call(A(0, 0)), call(A(2, 0, 0)), call(given(np.diag([0.0, 1.0, 2.0, 3.0]))), call(M(5, 5)),
        dtypes=INEXACT, grad=False),
    row("numpy.linalg.slogdet", *[call(M(n, n)) for n in range(5)], call(M(2, 4, 4)), call(M(4, 4), method="qr"),
        call(M(4, 4), method="eig"), call(A(2, 3)), call(given(SINGULAR)), call(given(np.zeros((3, 3)))), dtypes=INEXACT,
        twice=True),
]  # fmt: skip

NORMS = [
    row("numpy.linalg.norm", *[call(M(3, 3), ord=o) for o in ("nuc", 2, -2, 1, "f", "x", 3)], call(A(0)), call(A(0, 2), 1),
        call(A(2, 3, 4), 2, axis=(2, 0), keepdims=True), call(A(2, 3, 4), "nuc", axis=(0, 1)), call(A(2, 3, 4), axis=(0, 1, 2)),
        call(A(3), "x"), dtypes=INEXACT, twice=True),
    row("numpy.linalg.norm", call(given([[0.0, 0.0]])), dtypes=INEXACT, grad=False),  # jax's gradient is nan
    row("numpy.linalg.vector_norm", call(A(2, 3)), call(A(2, 3), axis=0, ord=1), call(A(2, 3), axis=(0, 1), keepdims=True),
        *[call(A(4), ord=o) for o in (0, 1, 3, 0.5, float("inf"), -float("inf"), "inf")], call(A(3, dtype="int32")),
        call(A(3, dtype="int32"), ord=0), call(A(3, dtype="int32"), ord=1), dtypes=INEXACT),
    row("numpy.linalg.matrix_norm", call(A(2, 3)), call(A(2, 3, 4), keepdims=True), call(M(2, 3, 3), ord="nuc"), call(A(3)),
        dtypes=INEXACT),
    row("numpy.linalg.cond", call(given(SINGULAR), 1), dtypes=INEXACT, grad=False),  # infinite
    row("numpy.linalg.cond", call(M(3, 3)), *[call(M(3, 3), p) for p in (2, -2, 1, "fro", "nuc", float("inf"))],
        call(A(2, 3)), call(A(2, 3), 1), call(A(0, 2)), call(A(2)), call(M(2, 3, 3)), dtypes=INEXACT),
]  # fmt: skip

PRODUCTS = [
    row("numpy.linalg.cross", call(A(3), A(3)), call(A(2, 3), A(2, 3)), call(A(3, 2), A(3, 2), axis=0), call(A(2), A(2))),
    row("numpy.linalg.outer", call(A(2), A(3)), call(A(2, 2), A(3)), call(A(2), A(3, dtype="other"))),
    row("numpy.linalg.vecdot", call(A(2, 3), A(3)), call(A(3, 2), A(3, 2), axis=0), call(A(2), A(3))),
    row("numpy.linalg.matmul", call(A(2, 3), A(3, 2)), call(A(2, 3), A(3), precision="high")),
    row("numpy.linalg.tensordot", call(A(2, 3), A(2, 3)), call(A(2, 3), A(3, 2), axes=1)),
    row("numpy.linalg.diagonal", call(A(2, 3)), call(A(2, 3, 3), offset=1), call(A(3))),
    row("numpy.linalg.trace", call(A(2, 3)), call(A(2, 3, 3), offset=1), call(A(3)), call(A(2, 2), dtype="float32")),
    row("numpy.linalg.matrix_transpose", call(A(2, 3)), call(A(4, 2, 3)), call(A(3))),
    row("numpy.linalg.multi_dot", call([A(2, 3), A(3, 4)]), call([A(3), A(3, 4), A(4, 2), A(2)]),
        call([A(2, 5), A(5, 1), A(1, 4), A(4, 3)], precision="high"), call([A(2, 3), A(2, 3)]),
        call([A(2, 2), A(2), A(2, 2)]), call([A(2, 2), A(2, 2, dtype="other")])),
]  # fmt: skip


def sci_row(name, *calls, dtypes=INEXACT, **options):
    return row(f"scipy.linalg.{name}", *calls, dtypes=dtypes, **options)


SCIPY = [
    sci_row("cholesky", call(P(3, 3)), call(P(2, 3, 3), lower=True), call(given(NOT_POSITIVE)), call(A(2, 3)), call(A(2))),
    sci_row("cho_factor", call(P(3, 3)), call(P(3, 3), True), jit=False, vmap=False, grad=False),
    sci_row("cho_solve", call((M(3, 3), True), A(3)), call((M(3, 3), False), A(3, 2)), call((M(2, 3, 3), True), A(3, 1)),
        call((M(3, 3), False), A(2)), twice=True),
    sci_row("svd", call(A(3, 3)), call(A(3, 4), full_matrices=False), call(A(3, 4), compute_uv=False)),
    sci_row("eigh", call(P(3, 3)), call(P(3, 3), eigvals_only=True), call(A(3, 3), lower=False), call(A(2, 2), eigvals=(0, 1))),
    sci_row("schur", call(A(3, 3)), call(A(3, 3), output="complex"), call(A(3, 3), "triangular"), call(A(2, 3))),
    sci_row("det", call(M(4, 4)), call(A(2, 3))),
    sci_row("inv", call(M(3, 3)), call(A(2, 3))),
    sci_row("lu_factor", call(M(3, 3)), call(A(3, 4)), call(A(2, 3, 3))),
    sci_row("lu_solve", *[call((M(3, 3), A(3, dtype="int32", low=2, high=2)), A(3), t) for t in (0, 1, 2, 3)],
        call((M(3, 3), A(3, dtype="int32", low=0, high=2)), A(3, 2)), call((M(3, 3), A(3, dtype="int32", low=2, high=2)), A(2)),
        call((M(2, 3, 3), A(2, 3, dtype="int32", low=2, high=2)), A(2, 3, 1))),
    sci_row("lu", call(M(3, 3)), call(A(3, 4), permute_l=True), call(A(4, 3)), call(A(2, 2, dtype="int32"))),
    sci_row("qr", call(A(4, 3)), call(A(3, 3), mode="economic"), call(A(3, 3), mode="r", pivoting=True), call(A(3, 2), mode="r"),
        call(A(3, 4), pivoting=True), call(A(2, 2), mode="raw"), grad=False),
    sci_row("qr", call(A(4, 3), mode="economic"), call(A(3, 3))),
    sci_row("qr_multiply", call(A(3, 3), A(2, 3)), call(A(4, 3), A(3, 2), "left"), call(A(4, 3), A(4)),
        call(A(3, 4), A(3), mode="left", pivoting=True), call(A(4, 3), A(2, 4), conjugate=True),
        call(A(4, 3), A(3, 2), mode="left", conjugate=True), call(A(2, 3, 3), A(3, 3)), call(A(3, 3), A(2, 2)),
        call(A(3, 3), A(3, 3), "up"), grad=False),
    sci_row("solve", call(M(3, 3), A(3)), call(P(3, 3), A(3, 2), assume_a="pos"), call(P(3, 3), A(3), assume_a="pos", lower=True),
        call(P(2, 3, 3), A(2, 3), assume_a="pos"), call(M(3, 3), A(3), assume_a="sym"), call(M(3, 3), A(3), assume_a="x"),
        call(P(3, 3), A(2), assume_a="pos"), call(given(NOT_POSITIVE), A(2), assume_a="pos")),
    sci_row("solve_triangular", call(M(3, 3), A(3)), call(M(3, 3), A(3, 2), lower=True), call(M(3, 3), A(3), 1),
        call(M(3, 3), A(3), "C", unit_diagonal=True), call(M(2, 3, 3), A(3, 2)), call(M(3, 3), A(3), 5), call(M(3, 3), A(2)),
        twice=True),
    sci_row("hessenberg", call(A(4, 4)), call(A(2, 3, 3), calc_q=True), call(A(0, 0)), call(A(1, 1), calc_q=True), call(A(2, 3))),
    sci_row("expm", call(A(3, 3)), call(A(2, 3, 3, low=-0.1, high=0.1)), call(M(3, 3), max_squarings=0), call(A(2, 3)),
        call(A(1, 1)), call(A(2, 2, dtype="int32")), call(A(3))),
    # Too few squarings for numbers of this size: the approximation loses a digit.
    sci_row("expm", call(A(3, 3, low=-20, high=20), max_squarings=2), tolerance=1e-4),
    sci_row("expm", call(given(np.triu([[0.5, 1.0], [3.0, 0.2]])), upper_triangular=True)),
    sci_row("expm_frechet", call(A(3, 3), A(3, 3)), call(A(2, 2), A(2, 2), compute_expm=False), call(A(2, 2), A(3, 3)),
        call(A(3), A(3))),
    sci_row("sqrtm", call(P(3, 3)), call(M(3, 3)), call(A(2, 2), blocksize=2), call(A(2, 3)), grad=False),
    sci_row("rsf2csf", call(A(3, 3), A(3, 3)), call(A(1, 1), A(1, 1)), call(A(2, 3, 3), A(2, 3, 3)), call(A(2, 3), A(3, 3)),
        call(A(3, 3), A(2, 2)), dtypes=FLOAT, grad=False),
    sci_row("polar", call(M(3, 3)), call(A(4, 3)), call(A(3, 4), side="left"), call(A(3, 4), method="svd"),
        call(A(3, 4), "left", method="svd"), call(A(3, 4)), call(A(2, 4, 3), method="svd"), call(M(3, 3), method="x"),
        call(M(3, 3), "up"), call(A(3)), grad=False),
    sci_row("solve_sylvester", call(M(3, 3), M(2, 2), A(3, 2)), call(M(3, 3), M(2, 2), A(3, 2), method="eigen"),
        call(M(2, 3, 3), M(2, 2), A(2, 3, 2)), call(M(3, 3), M(2, 2), A(2, 3)), call(M(2, 2), M(2, 2), A(2, 2), method="x"),
        call(given(SINGULAR), given([[-5.0, 0.0], [0.0, 1.0]]), A(2, 2), tol=1e-3), grad=False),
    sci_row("eigh_tridiagonal", call(A(6), A(5), eigvals_only=True), call(A(4), A(3), eigvals_only=True, select="i", select_range=(1, 2)),
        call(A(6), A(5)), call(A(1), A(0)), call(A(2), A(1), select="v", select_range=(0.0, 1.0)), call(A(2), A(1), select="x"),
        call(A(4), A(3), eigvals_only=True, tol=0.1), call(A(3, dtype="int32"), A(2, dtype="int32")), grad=False, vmap=False),
]  # fmt: skip

SPECIAL = [
    sci_row("block_diag", call(A(2, 3), A(1, 2)), call(A(2), A(), A(2, 2)), call(), dtypes=judge.ALL),
    sci_row("toeplitz", call(A(3)), call(A(3), A(4)), call(A(2, 3), A(2)), call(A(), A(2)), call(A(0)), call(A(3), A(2, dtype="other"))),
    sci_row("hankel", call(A(3)), call(A(3), A(4)), call(A(2, 3), A(2)), call(A())),
    sci_row("circulant", call(A(3)), call(A(2, 3)), call(A()), dtypes=judge.ALL),
    sci_row("leslie", call(A(3), A(2)), call(A(2, 3), A(2)), call(A(3), A(3)), call(A(1), A(0))),
    sci_row("companion", call(A(4)), call(A(2, 3)), call(A(1)), call(A(3, dtype="int32"))),
    sci_row("fiedler", call(A(3)), call(A(2, 3)), call(A())),
    sci_row("fiedler_companion", *[call(A(n)) for n in range(8)], call(A(2, 5))),
    sci_row("convolution_matrix", *[call(A(n), m, mode) for n, m in [(3, 2), (2, 4)] for mode in ("full", "same", "valid")],
        call(A(2, 3), 2), call(A(3), 0), call(A(), 2), call(A(3), 2, "x"), dtypes=judge.ALL),
    *[sci_row(name, call(1), call(4), call(0)) for name in ("hilbert", "invhilbert", "pascal", "invpascal")],
    *[sci_row(name, call(4, "lower"), call(4, kind="upper"), call(3, "x")) for name in ("pascal", "invpascal")],
    sci_row("helmert", call(1), call(4), call(4, full=True), call(0)),
    sci_row("hadamard", call(1), call(8), call(4, dtype="float32"), call(3), call(0)),
    sci_row("dft", call(1), call(5), call(4, "sqrtn"), call(3, scale="n"), call(3, dtype="float32"), call(3, "x")),
]  # fmt: skip

TABLE = [*FACTORS, *SPECTRA, *SYSTEMS, *DECOMPOSITIONS, *SOLUTIONS, *NORMS, *PRODUCTS, *SCIPY, *SPECIAL]

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_second_derivative = second_derivatives(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)


def test_a_function_of_a_matrix():
    x = A(3, 3).make("float32", None, "funm") + 2 * np.eye(3, dtype="float32")
    for disp in (True, False):
        judge.agree(lambda m, x, disp=disp: m.scipy.linalg.funm(x, lambda v: m.numpy.sin(v) + v, disp), x)
    judge.raises_alike(lambda m, x: m.scipy.linalg.funm(x, m.numpy.exp), np.ones((2, 3), "float32"))


def test_polar_by_iteration():
    for shape in [(3, 3), (5, 3)]:
        x = A(*shape).make("float32", None, "qdwh")
        judge.agree(lambda m, x: m.lax.linalg.qdwh(x), x)
        wide = np.zeros((7, 4), "float32")
        wide[: shape[0], : shape[1]] = x
        judge.agree(lambda m, x, shape=shape: m.lax.linalg.qdwh(x, dynamic_shape=shape), wide)
    judge.raises_alike(lambda m, x: m.lax.linalg.qdwh(x), np.ones((2, 3), "float32"))
    judge.agree(lambda m, x: m.lax.linalg.qdwh(x), np.ones((3, 0), "float32"))


IMPLEMENTATIONS = {
    "svd": lambda m, x, kind: m.lax.linalg.svd(x, algorithm=m.lax.linalg.SvdAlgorithm[kind]),
    "eigh": lambda m, x, kind: m.lax.linalg.eigh(x, implementation=m.lax.linalg.EighImplementation[kind]),
    "eig": lambda m, x, kind: m.lax.linalg.eig(x, implementation=m.lax.linalg.EigImplementation[kind]),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [("svd", k) for k in jax.lax.linalg.SvdAlgorithm.__members__]
    + [("eigh", k) for k in jax.lax.linalg.EighImplementation.__members__]
    + [("eig", k) for k in jax.lax.linalg.EigImplementation.__members__],
)
def test_implementations(name, kind):
    x = A(3, 3).make("float32", None, name)
    case = lambda m, x: IMPLEMENTATIONS[name](m, x, kind)
    if (name, kind) in [
        ("svd", "DEFAULT"),
        ("svd", "QR"),
        ("svd", "DIVIDE_AND_CONQUER"),
        ("eigh", "QR"),
        ("eig", "LAPACK"),
    ]:
        judge.agree(case, x)
    else:
        judge.raises_alike(case, x)
    if name == "svd":
        judge.agree(case, x[:, :0])


def test_selected_eigenvalues_are_refused():
    with pytest.raises(NotImplementedError, match="eigvals"):
        phlox.scipy.linalg.eigh(np.eye(2), eigvals=(0, 1))


#: functions of scipy.linalg that take stacks of matrices in SciPy 1.18, with the shapes of their arguments
STACKS = {
    "lu": [(3, 2)],
    "lu_factor": [(3, 3)],
    "solve_sylvester": [(3, 3), (2, 2), (3, 2)],
    "sqrtm": [(3, 3)],
    "expm": [(3, 3)],
    "polar": [(3, 3)],
    "schur": [(3, 3)],
    "hessenberg": [(3, 3)],
    "solve": [(3, 3), (3, 2)],
    "solve_triangular": [(3, 3), (3, 2)],
    "block_diag": [(2, 3), (1, 2)],
    "svd": [(3, 3)],
    "qr": [(3, 2)],
    "inv": [(3, 3)],
    "det": [(3, 3)],
    "expm_frechet": [(3, 3), (3, 3)],
    "funm": [(3, 3)],
    "eigh_tridiagonal": [(4,), (3,)],
    "toeplitz": [(3,)],
    "companion": [(3,)],
}


@pytest.mark.parametrize("name", STACKS)
def test_stacks_of_matrices(name):
    """Each matrix of a stack gives what SciPy makes of it alone."""
    rng = np.random.default_rng(5)
    args = [rng.normal(size=(2, *shape)).astype("float32") for shape in STACKS[name]]
    if name in ("sqrtm", "solve", "inv", "schur"):
        args[0] = args[0] @ args[0].mT + np.eye(3, dtype="float32")
    more = {"funm": [(np.exp,), (phlox.numpy.exp,)]}.get(name, [(), ()])
    stack = getattr(phlox.scipy.linalg, name)(*args, *more[1])
    for i in range(2):
        expected = getattr(scipy.linalg, name)(*[x[i].astype("float64") for x in args], *more[0])
        single = isinstance(expected, np.ndarray | np.generic | float)
        for got, value in zip([stack] if single else stack, [expected] if single else expected, strict=True):
            if name in ("eigh_tridiagonal", "schur"):  # vectors are determined up to their signs
                got, value = abs(got), abs(value)
            np.testing.assert_allclose(got[i], value, rtol=2e-4, atol=2e-4)


def pairs(dtype):
    """Hermitian matrices, and positive definite ones for two batches of them."""
    a = judge.array(judge.rng("pairs"), (2, 1, 4, 4), dtype)
    b = judge.array(judge.rng("pairs b"), (3, 4, 4), dtype)
    dagger = lambda x: np.conj(np.swapaxes(x, -1, -2))
    return a + dagger(a), b @ dagger(b) + np.eye(4, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("kind", [1, 2, 3])
def test_generalized_eigh(kind, dtype):
    a, b = pairs(dtype)
    w, v = phlox.scipy.linalg.eigh(a, b, type=kind)
    assert (w.dtype, v.dtype, w.shape, v.shape) == ("float32", dtype, (2, 3, 4), (2, 3, 4, 4))
    np.testing.assert_array_equal(phlox.scipy.linalg.eigh(a, b, eigvals_only=True, type=kind).shape, w.shape)
    for i, j in np.ndindex(2, 3):
        left, right = (x.astype("complex128") for x in (a[i, 0], b[j]))
        np.testing.assert_allclose(w[i, j], scipy.linalg.eigh(left, right, type=kind)[0], rtol=2e-4, atol=2e-4)
        vectors, values = np.asarray(v[i, j], "complex128"), np.asarray(w[i, j], float)
        problem = {1: left @ vectors, 2: left @ right @ vectors, 3: right @ left @ vectors}[kind]
        expected = (right @ vectors if kind == 1 else vectors) * values
        np.testing.assert_allclose(problem, expected, rtol=1e-3, atol=2e-3 * abs(problem).max())
        norm = vectors.conj().T @ (np.linalg.inv(right) if kind == 3 else right) @ vectors
        np.testing.assert_allclose(norm, np.eye(4), atol=2e-4)


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_derivatives_of_generalized_eigh(kind):
    with phlox.enable_x64(True):
        a, b = (x[0, 0] if x.ndim == 4 else x[0] for x in pairs("float64"))
        eigenvalues = lambda a, b: phlox.scipy.linalg.eigh(a, b, eigvals_only=True, type=kind)[1]
        slope = phlox.grad(eigenvalues, (0, 1))(a, b)
        step = judge.array(judge.rng("step"), (4, 4), "float64")
        step = (step + step.T) * 1e-6
        for i, towards in enumerate([(step, 0 * step), (0 * step, step)]):
            ends = [scipy.linalg.eigvalsh(a + s * towards[0], b + s * towards[1], type=kind)[1] for s in (1, -1)]
            np.testing.assert_allclose((slope[i] * step).sum(), (ends[0] - ends[1]) / 2, rtol=1e-5)


def test_generalized_eigh_of_other_matrices():
    a = np.eye(2, dtype=np.float32)
    assert np.isnan(phlox.scipy.linalg.eigh(a, -a, eigvals_only=True)).all()
    with pytest.raises(phlox.errors.OptionError, match="type=4"):
        phlox.scipy.linalg.eigh(a, a, type=4)
    with pytest.raises(phlox.errors.ShapeError, match="differ"):
        phlox.scipy.linalg.eigh(a, np.eye(3, dtype=np.float32))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 3, 3)])
def test_polar_of_empty_matrices(shape):
    for side in ("right", "left"):
        for method in ("svd", "qdwh") if 0 in shape[-2:] else ("svd",):  # qdwh takes no square ones from the left
            u, p = phlox.scipy.linalg.polar(np.zeros(shape, "float32"), side, method=method)
            n = shape[-1] if side == "right" else shape[-2]
            assert u.shape == shape
            np.testing.assert_array_equal(p, np.zeros((*shape[:-2], n, n)))


@pytest.mark.parametrize(
    "path", [[(0, 1, 2, 3)], [(0, 1, 2), (0, 1)], [(1, 2, 3), (0, 1)], ["einsum_path", (0, 1), (0, 1, 2)]]
)
@pytest.mark.parametrize(
    "subscripts", ["ij,jk,kl,lm->im", "ij,jk,kl,lm->mi", "ij,jk,kl,lm->", "ij,jk,ij,ij->i", "...j,jk,kl,lm"]
)
def test_einsum_paths_of_several_operands(subscripts, path):
    arrays = [A(3, 3).make("float32", None, f"einsum {i}") for i in range(4)]
    got = phlox.numpy.einsum(subscripts, *arrays, optimize=path)
    np.testing.assert_allclose(got, np.einsum(subscripts, *arrays), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("select_range", [(0, 7), (-1, 1), (2, 1)])
def test_indices_of_eigenvalues_out_of_range(select_range):
    """jax takes them."""
    with pytest.raises(phlox.errors.OptionError, match="select_range"):
        phlox.scipy.linalg.eigh_tridiagonal(np.ones(3), np.ones(2), select="i", select_range=select_range)


def test_solve_of_many_positive_matrices_and_one_vector():
    """jax refuses the vector."""
    a, b = np.float32([[[2, 1], [1, 3]], [[4, 0], [0, 5]], [[1, 0], [0, 1]]]), np.float32([1, 2])
    np.testing.assert_allclose(phlox.scipy.linalg.solve(a, b, assume_a="pos"), np.linalg.inv(a) @ b, rtol=1e-6)


def test_eigenvalues_of_a_tridiagonal_matrix_that_is_two_blocks():
    """The bisection meets the first element of the diagonal, which is an eigenvalue; jax finds 0 twice."""
    values = phlox.scipy.linalg.eigh_tridiagonal(np.float32([0, -1, 1]), np.float32([0, 1]), eigvals_only=True)
    np.testing.assert_allclose(values, [-(2**0.5), 0, 2**0.5], atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"select": "i", "select_range": (1, 2)}])
def test_derivatives_of_tridiagonal_eigenvalues(options):
    """Those of eigh of the whole matrix; jax's are of the ends of the bisection: 1.24 in place of 0.83 for the first."""
    whole = lambda d, e: phlox.numpy.diag(d) + phlox.numpy.diag(e, 1) + phlox.numpy.diag(e, -1)
    first, last = options.get("select_range", (0, 3))
    with phlox.enable_x64(True):
        d, e = np.array([1.0, 2.0, 5.0, 3.0]), np.array([0.5, 0.3, -1.0])
        vectors = phlox.numpy.array([1.0, -2.0, 0.5, 3.0])

        def of_solver(d, e):
            w, v = phlox.scipy.linalg.eigh_tridiagonal(d, e, **options)
            alone = phlox.scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True, **options)
            return (w**3).sum() + phlox.numpy.sin(alone).sum() + ((v.T @ vectors) ** 2 * w).sum()

        def of_matrix(d, e):
            w, v = phlox.numpy.linalg.eigh(whole(d, e))
            w, v = w[first : last + 1], v[:, first : last + 1]
            return (w**3).sum() + phlox.numpy.sin(w).sum() + ((v.T @ vectors) ** 2 * w).sum()

        for transform in (lambda f: phlox.grad(f, (0, 1)), lambda f: phlox.hessian(f, (0, 1))):
            for mine, right in zip(
                phlox.tree.leaves(transform(of_solver)(d, e)),
                phlox.tree.leaves(transform(of_matrix)(d, e)),
                strict=True,
            ):
                np.testing.assert_allclose(mine, right, rtol=1e-7, atol=1e-9)


def test_functions_of_matrices_without_rows():
    """jax raises an IndexError; the shapes are SciPy's."""
    a, functions = np.zeros((0, 0), np.float32), phlox.scipy.linalg
    assert [functions.sqrtm(x).shape for x in (a, np.zeros((2, 0, 0), np.float32))] == [(0, 0), (2, 0, 0)]
    assert functions.solve_sylvester(a, a, a).shape == (0, 0)
    assert functions.solve_sylvester(np.eye(2, dtype=np.float32), a, np.zeros((2, 0), np.float32)).shape == (2, 0)
    assert [x.shape for x in functions.rsf2csf(a, a)] == [(0, 0), (0, 0)]


def test_derivatives_of_determinants_of_singular_matrices():
    """Cofactors, wherever LU has its zero; jax has 0 for all, as it looks for the zero in the last place."""
    draw = judge.rng("cofactors").normal(size=(5, 5))
    q = np.linalg.qr(draw)[0]
    upper = np.triu(draw)
    upper[1, 1] = 0
    minor = lambda a, i, j: np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))
    with phlox.enable_x64(True):
        gradient = phlox.grad(phlox.numpy.linalg.det)
        for a in (np.diag([0.0, 1, 1, 1]), upper, q @ np.diag([1.0, 2, 0, 3, 4]) @ q.T, draw, np.diag([0.0, 1, 2, 0])):
            n = len(a)
            cofactors = [[(-1) ** (i + j) * minor(a, i, j) for j in range(n)] for i in range(n)]
            np.testing.assert_allclose(gradient(a), cofactors, rtol=1e-10, atol=1e-12)
        large = judge.rng("large cofactors").normal(size=(12, 12)) * 1e5
        np.testing.assert_allclose(gradient(large), np.linalg.det(large) * np.linalg.inv(large).T, rtol=1e-8)
    small = judge.rng("small cofactors").normal(size=(5, 5)) + np.diag(np.arange(2.0, 12, 2))
    cofactors = np.linalg.det(small) * np.linalg.inv(small).T
    single = phlox.grad(phlox.numpy.linalg.det)(np.float32(small))
    np.testing.assert_allclose(single, cofactors, rtol=0, atol=1e-6 * abs(cofactors).max())
