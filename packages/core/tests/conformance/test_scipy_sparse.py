"""phlox.scipy.sparse.linalg: cg, bicgstab and gmres beside jax and beside exact solutions."""

import jax
import jax.scipy.sparse.linalg
import numpy as np
import pytest

import judge
import phlox
import phlox.numpy as jnp
from phlox.scipy.sparse import linalg

NAMES = ["cg", "bicgstab", "gmres"]
N = 6
_random = judge.rng("sparse")
GENERAL = (_random.standard_normal((N, N)) + 6 * np.eye(N)).astype(np.float32)
COMPLEX = (GENERAL + 1j * _random.standard_normal((N, N))).astype(np.complex64)
B = _random.standard_normal(N).astype(np.float32)
JACOBI = np.diag(1 / np.diag(GENERAL))


def matrix(name, dtype="float32"):
    a = COMPLEX if dtype == "complex64" else GENERAL
    return a @ a.conj().T if name == "cg" else a


def run(name, *args, **kwargs):
    def case(m, *xs):
        return getattr(m.scipy.sparse.linalg, name)(*xs, *args, **kwargs)

    return case


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "options",
    [{}, {"M": JACOBI}, {"M": lambda x: x / 7, "tol": 1e-6}, {"maxiter": 30, "atol": 1e-3}, {"x0": B}],
    ids=["plain", "matrix M", "function M", "limits", "guess"],
)
def test_solutions(name, options):
    options = {"tol": 1e-6, **options}
    judge.agree(run(name, **options), matrix(name), B, tolerance=1e-3 if "atol" in options else 3e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
def test_dtypes(name, dtype):
    a = matrix(name, dtype).astype(dtype)
    x = run(name)(phlox, a, B.astype(dtype))[0]
    assert x.dtype == dtype
    tolerance = {"float16": 2e-2, "bfloat16": 1e-1, "complex64": 1e-4}[dtype]
    judge.same_values(np.asarray(a @ np.asarray(x)).astype("complex64"), B.astype("complex64"), tolerance=tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_64_bits_are_exact(name):
    with phlox.enable_x64(True):
        a = matrix(name).astype(float)
        x, _ = getattr(linalg, name)(a, B.astype(float), tol=1e-14)
        error = np.abs(np.asarray(x) - np.linalg.solve(a, B))
    assert error.max() < 1e-13, f"entry {error.argmax()}: {error.max()}"


@pytest.mark.parametrize("name", NAMES)
def test_trees_and_functions(name):
    case = lambda m, x, y: getattr(m.scipy.sparse.linalg, name)(
        lambda t: {"x": 3 * t["x"] + t["y"], "y": 2 * t["y"] + t["x"].sum()}, {"x": x, "y": y}, tol=1e-6
    )
    judge.agree(case, B[:2], B[2], weak=False, tolerance=3e-5)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name):
    """By both arguments; the derivative of the matrix is symmetric for cg only in what the equation asks for."""
    judge.agree_grad(lambda m, a, b: run(name, tol=1e-6)(m, a, b)[0], matrix(name), B, tolerance=1e-4)
    tangent = lambda m, a, b: m.jvp(lambda a, b: run(name, tol=1e-6)(m, a, b)[0], (a, b), (a * 0.1, b + 1))
    judge.agree(tangent, matrix(name), B, tolerance=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_solve_as_exactly_as_asked(name):
    """The tolerance of a derivative's equation belongs to its own right-hand side, however large that of the value."""
    gradient = phlox.grad(lambda b: (1e-3 * getattr(linalg, name)(matrix(name), b, tol=1e-6)[0]).sum())(1e4 * B)
    exact = 1e-3 * np.linalg.solve(matrix(name).T, np.ones(N))
    judge.same_values(np.asarray(gradient), exact.astype(np.float32), tolerance=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_vmap(name):
    judge.agree_vmap(lambda m, a, b: run(name, tol=1e-6)(m, a, b)[0], matrix(name), B, tolerance=1e-4)


@pytest.mark.parametrize("options", [{"restart": 3}, {"restart": 30}, {"restart": 4, "maxiter": 2}], ids=str)
@pytest.mark.parametrize("method", ["batched", "incremental"])
def test_gmres(method, options):
    exact = np.linalg.solve(GENERAL.astype(float), B)
    x, info = linalg.gmres(GENERAL, B, tol=1e-5, solve_method=method, **options)
    assert int(info) == 0
    rest = np.linalg.norm(GENERAL @ np.asarray(x) - B) / np.linalg.norm(B)
    assert rest <= (1.2e-5 if options.get("maxiter") is None else 0.05)
    if options["restart"] == 30:
        mine = np.abs(np.asarray(x) - exact).max()
        theirs = np.abs(np.asarray(jax.scipy.sparse.linalg.gmres(GENERAL, B, solve_method=method)[0]) - exact).max()
        assert mine <= max(theirs, 1e-6)


def test_gmres_finds_an_invariant_space():
    """The Krylov space of a projection has two dimensions: the process ends there, with the solution."""
    a = np.eye(N, dtype=np.float32)
    a[0, 0] = 3
    judge.agree(run("gmres"), a, B, tolerance=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_edges(name):
    judge.agree(run(name), matrix(name), 0 * B)
    judge.agree(run(name, maxiter=0), matrix(name), B)
    nothing, info = getattr(linalg, name)(matrix(name), B * np.nan)
    assert np.isnan(nothing).all(), "jax answers zeros, its first guess"
    assert name != "gmres" or int(info) == -1
    judge.same_values(
        np.asarray(getattr(linalg, name)(np.eye(2, dtype=np.float32), np.array([1, 2]))[0]), np.float32([1, 2])
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "args",
    [(np.ones((2, 3)), B), (3, B), (GENERAL, B, (B,)), (GENERAL, B, B[:2]), (GENERAL, [1.0, 2.0])],
    ids=["not square", "no operator", "another tree", "another shape", "list"],
)
def test_what_is_refused(name, args):
    judge.raises_alike(lambda m: getattr(m.scipy.sparse.linalg, name)(*args))


def test_method_of_gmres_is_refused():
    judge.raises_alike(lambda m: m.scipy.sparse.linalg.gmres(GENERAL, B, solve_method="exact"))


@pytest.mark.parametrize("name", NAMES)
def test_strict_flags(name):
    with phlox.numpy_rank_promotion("raise"), phlox.numpy_dtype_promotion("strict"):
        a, b = jnp.asarray(matrix(name)), jnp.asarray(B)
        x, _ = getattr(linalg, name)(lambda x: a @ x, b, M=lambda x: x)
        gradient = phlox.grad(lambda b: getattr(linalg, name)(a, b)[0].sum())(b)
    judge.same_values(np.asarray(a @ x), B, tolerance=1e-4)
    assert np.isfinite(gradient).all()


def test_poisson_equation():
    """A sparse system as people write it: the Laplacian as stencil, beside jax's solution and the exact one."""
    n = 16

    def case(m, f):
        def laplacian(u):
            p = m.numpy.pad(u, 1)
            return 4 * u - p[2:, 1:-1] - p[:-2, 1:-1] - p[1:-1, 2:] - p[1:-1, :-2]

        return m.scipy.sparse.linalg.cg(laplacian, f, tol=1e-6)[0]

    f = judge.rng("poisson").standard_normal((n, n)).astype(np.float32)
    judge.agree(case, f, tolerance=1e-4)
    line = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    exact = np.linalg.solve(np.kron(line, np.eye(n)) + np.kron(np.eye(n), line), f.ravel().astype(float))
    judge.same_values(np.asarray(case(phlox, f)).ravel(), exact.astype(np.float32), tolerance=1e-4)
