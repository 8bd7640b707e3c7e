"""phlox.scipy.optimize.minimize beside jax where jax finds the minimum, and beside SciPy where it does not."""

import jax
import jax.scipy.optimize
import numpy as np
import pytest
import scipy.optimize

import judge
import phlox
from phlox.scipy.optimize import OptimizeResults, minimize

LBFGS = "l-bfgs-experimental-do-not-rely-on-this"
METHODS = ["BFGS", LBFGS]


def rosenbrock(np, x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(np, p):
    return (p[0] ** 2 + p[1] - 11) ** 2 + (p[0] + p[1] ** 2 - 7) ** 2


def matyas(np, p):
    return 0.26 * (p[0] ** 2 + p[1] ** 2) - 0.48 * p[0] * p[1]


def eggholder(np, p):
    near, far = np.sqrt(np.abs(p[0] / 2 + p[1] + 47)), np.sqrt(np.abs(p[0] - p[1] - 47))
    return -(p[1] + 47) * np.sin(near) - p[0] * np.sin(far)


def barrier(np, x):
    return np.sum(x - np.log(x))


def steep(np, x):
    return 1e6 * np.sum((x - 3) ** 2 * np.arange(1, 4))


CASES = {
    "himmelblau": (himmelblau, [1, 1]),
    "matyas": (matyas, [1, 1]),
    "eggholder": (eggholder, [100, 100]),
    "barrier": (barrier, [0.3, 0.01, 2]),
}
#: jax's line search gives up where the bracket's far end is the nearer one, and in steps that are small in numbers.
HARD = {
    "rosenbrock": (rosenbrock, [0, 0]),
    "rosenbrock 4": (rosenbrock, [-1.2, 1, 0.5, 2]),
    "himmelblau": (himmelblau, [0, 0]),
    "steep": (steep, [0, 0, 0]),
}


def solve(m, fun, x0, method, **kwargs):
    return m.scipy.optimize.minimize(lambda x: fun(m.numpy, x), x0, method=method, **kwargs)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CASES)
def test_the_way_is_that_of_jax(name, method):
    """The same points, and as many evaluations, in 64 bits, where rounding does not decide."""
    fun, x0 = CASES[name]
    with phlox.enable_x64(True), jax.enable_x64(True):
        x0 = np.asarray(x0, float)
        mine, theirs = (solve(m, fun, x0, method) for m in (phlox, jax))
        assert theirs.success
        judge.compare(mine, theirs, tolerance=1e-6)
    for count in ("nit", "nfev", "njev"):
        assert int(getattr(mine, count)) == int(getattr(theirs, count)), count


@pytest.mark.whole
@pytest.mark.parametrize("wide", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", HARD)
def test_minima_are_those_of_scipy(name, method, wide):
    fun, x0 = HARD[name]
    exact = scipy.optimize.minimize(lambda x: fun(np, x), x0, method="BFGS", options={"gtol": 1e-9})
    with phlox.enable_x64(wide):
        found = solve(phlox, fun, np.asarray(x0, float if wide else "float32"), method)
    scale = max(1.0, abs(exact.fun))
    assert abs(float(found.fun) - exact.fun) <= (1e-9 if wide else 1e-6) * scale, found
    assert method != "BFGS" or found.success, found


@pytest.mark.parametrize("method", METHODS)
def test_value_and_gradient_belong_to_the_point(method):
    """Also where the search ends without success: the point is then the best one found."""
    for options in ({}, {"maxiter": 2}, {"line_search_maxiter": 1} if method == "BFGS" else {"maxls": 1}):
        r = solve(phlox, rosenbrock, np.float32([-1.2, 1, 0.5, 2]), method, options=options)
        value, gradient = phlox.value_and_grad(lambda x: rosenbrock(phlox.numpy, x))(r.x)
        judge.same_values(np.asarray(r.fun), np.asarray(value), tolerance=1e-6)
        judge.same_values(np.asarray(r.jac), np.asarray(gradient), tolerance=1e-4)
        assert float(r.fun) <= rosenbrock(np, np.array([-1.2, 1, 0.5, 2]))
        assert bool(r.success) == (int(r.status) == 0)


@pytest.mark.parametrize("method", METHODS)
def test_results(method):
    f = lambda m: m.scipy.optimize.minimize(
        lambda x, c: m.numpy.sum((x - c) ** 2),
        m.numpy.zeros(3),
        (2.0,),
        method=method,
        options={"norm": 2, "gtol": 1e-4},
    )
    mine, theirs = f(phlox), f(jax)
    judge.compare(mine, theirs, tolerance=1e-5)
    assert isinstance(mine, OptimizeResults) and mine._fields == theirs._fields


def test_iterations_are_counted():
    for method in METHODS:
        r = solve(phlox, rosenbrock, np.zeros(2, "float32"), method, options={"maxiter": 3})
        assert (int(r.nit), int(r.status), bool(r.success)) == (3, 1, False)
        r = solve(phlox, rosenbrock, np.zeros(2, "float32"), method, options={"maxiter": 0})
        assert (int(r.nit), int(r.status), int(r.nfev)) == (0, 1, 1)
        r = solve(phlox, rosenbrock, np.ones(2, "float32"), method)
        assert (int(r.nit), int(r.status), bool(r.success)) == (0, 0, True)
    ends = {"maxfun": 2, "maxgrad": 3, "ftol": 4}
    for option, status in ends.items():
        options = {option: 1e9 if option == "ftol" else 4}
        assert int(solve(phlox, rosenbrock, np.zeros(2, "float32"), LBFGS, options=options).status) == status


@pytest.mark.parametrize("method", METHODS)
def test_tolerance(method):
    """jax does not look at `tol`."""
    rough, fine = (solve(phlox, rosenbrock, np.zeros(2, "float32"), method, tol=tol) for tol in (1.0, 1e-5))
    assert np.abs(rough.jac).max() < 1 and rough.nit < fine.nit
    both = solve(phlox, rosenbrock, np.zeros(2, "float32"), method, tol=1.0, options={"gtol": 1e-5})
    assert both.nit == fine.nit


def test_undefined_values_are_too_high():
    """A first step into the undefined is shortened."""
    for method in METHODS:
        r = minimize(lambda x: (20 * x - phlox.numpy.log(x)).sum(), np.float32([2.0, 1.0]), method=method)
        judge.same_values(np.asarray(r.x), np.float32([0.05, 0.05]), tolerance=1e-4)


def test_complex_numbers():
    target = np.array([1 + 2j, -3j, 0.5], np.complex64)
    case = lambda m: m.scipy.optimize.minimize(
        lambda z: m.numpy.sum(m.numpy.abs(z - target) ** 4 + m.numpy.abs(z - target) ** 2),
        m.numpy.zeros(3, "complex64"),
        method=LBFGS,
    )
    mine = case(phlox)
    judge.same_values(np.asarray(mine.x), target, tolerance=1e-4)
    assert mine.success and mine.fun.dtype == "float32" and mine.x.dtype == case(jax).x.dtype


def test_complex_minima_have_derivatives():
    """The minimum is solve(a, b), of which jax has no derivative in reverse mode."""
    jnp = phlox.numpy
    a = np.array([[3, 1j], [-1j, 2]], np.complex64)
    b = np.array([1 + 2j, -1j], np.complex64)
    # Half of the quadratic form, less the linear one
    form = lambda z, b: jnp.real(jnp.vdot(z, a @ z) / 2 - jnp.vdot(b, z))
    minimum = lambda b: minimize(form, jnp.zeros(2, "complex64"), (b,), method=LBFGS).x
    for transform in (
        lambda f: phlox.jacrev(f, holomorphic=True),
        lambda f: phlox.jacfwd(f, holomorphic=True),
        lambda f: phlox.jit(phlox.grad(lambda b: jnp.sum(jnp.abs(f(b)) ** 2))),
    ):
        mine, exact = transform(minimum)(b), transform(lambda b: jnp.linalg.solve(a, b))(b)
        judge.same_values(np.asarray(mine), np.asarray(exact), tolerance=1e-4)


def test_under_jit_and_vmap():
    fun = lambda x, c: phlox.numpy.sum((x - c) ** 4 + (x - c) ** 2)
    solved = lambda c: minimize(fun, phlox.numpy.zeros(2), (c,), method="BFGS").x
    centers = np.float32([0.0, 1.0, -7.0])
    for method in (phlox.vmap(solved), phlox.jit(phlox.vmap(solved))):
        judge.same_values(np.asarray(method(centers)), np.stack([centers, centers], 1), tolerance=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_most_of_the_last_digits_are_found(method):
    """In 32 bits values differ by rounding long before the gradient is small; slopes then decide."""
    r = solve(
        phlox,
        rosenbrock,
        np.float32([-1.2, 1, 0.5, 2]),
        method,
        options={"gtol": 2e-5, "ftol": -1} if method == LBFGS else {},
    )
    assert r.success, r


def test_dtypes():
    for dtype in ("float16", "bfloat16"):
        r = minimize(lambda x: ((x - 1) ** 2).sum(), phlox.numpy.zeros(2, dtype), method="BFGS")
        assert r.x.dtype == r.fun.dtype == r.jac.dtype == r.hess_inv.dtype == dtype
        judge.same_values(np.asarray(r.x).astype("float32"), np.ones(2, "float32"), tolerance=2e-2)


def test_minima_have_derivatives_in_both_modes():
    """By the implicit function theorem; jax refuses reverse mode, and its forward mode follows the iterations."""
    weights = np.array([1.0, 3.0], np.float32)

    def minimum(center, method):
        f = lambda x, center: phlox.numpy.sum(weights * (x - center) ** 2) + 0.1 * phlox.numpy.sum(x**4)
        return minimize(f, phlox.numpy.zeros(2), (center,), method=method)

    center = np.array([1.0, 2.0], np.float32)
    for method in METHODS:
        x = np.asarray(minimum(center, method).x)
        truth = np.diag(2 * weights / (2 * weights + 1.2 * x**2))
        for jacobian in (phlox.jacfwd, phlox.jacrev):
            np.testing.assert_allclose(jacobian(lambda c: minimum(c, method).x)(center), truth, atol=1e-5)
        slope = phlox.grad(lambda c: minimum(c, method).fun)(center)
        np.testing.assert_allclose(slope, -2 * weights * (x - center), atol=1e-4)


def test_strict_flags():
    with phlox.numpy_rank_promotion("raise"), phlox.numpy_dtype_promotion("strict"):
        for method in METHODS:
            assert solve(phlox, himmelblau, phlox.numpy.ones(2), method).success
            with pytest.raises(phlox.errors.TypePromotionError):  # the user's own function still obeys them
                minimize(lambda x: (x * np.int32([1, 2])).sum(), phlox.numpy.ones(2), method=method)


@pytest.mark.parametrize(
    ("x0", "kwargs"),
    [
        (np.zeros((2, 2), "float32"), {"method": "BFGS"}),
        (np.zeros(2, int), {"method": "BFGS"}),
        (np.zeros(2, "float32"), {"method": "Newton"}),
        (np.zeros(2, "float32"), {}),
        (np.zeros(2, "float32"), {"method": "BFGS", "options": {"maxcor": 3}}),
        (np.zeros(2, "float32"), {"method": "BFGS", "args": [1]}),
    ],
    ids=["matrix", "integers", "method", "no method", "option", "list of args"],
)
def test_what_is_refused(x0, kwargs):
    judge.raises_alike(lambda m: m.scipy.optimize.minimize(lambda x, *args: (x**2).sum(), x0, **kwargs))


# --- SciPy's own methods, with bounds, which jax has not -------------------------------------------------

BOUNDS = np.array([-2.0, -2.0, -2.0]), np.array([0.5, 2.0, np.inf])


@pytest.mark.whole
@pytest.mark.parametrize("method", ["L-BFGS-B", "Nelder-Mead"])
def test_bounded_minima_are_those_of_scipy(method):
    x0 = np.array([-1.2, 1.0, 0.5])
    exact = scipy.optimize.minimize(
        lambda x: rosenbrock(np, x), x0, method=method, bounds=list(zip(*BOUNDS, strict=True)), tol=1e-10
    )
    with phlox.enable_x64(True):
        found = solve(phlox, rosenbrock, x0, method, bounds=BOUNDS, tol=1e-10)
    assert found.success and found.x[0] <= 0.5
    np.testing.assert_allclose(found.x, exact.x, atol=1e-6)
    np.testing.assert_allclose(found.fun, exact.fun, rtol=1e-9)


def test_bounded_minima_have_derivatives():
    """Of ½ (x - c)ᵀ A (x - c) in a box; the variable at a bound moves with it, the others follow."""
    matrix = np.array([[3.0, 1.0, 0.5], [1.0, 2.0, 0.2], [0.5, 0.2, 1.0]], np.float32)

    def nearest(center, high):
        f = lambda x, c: (x - c) @ matrix @ (x - c) / 2
        options = {"gtol": 1e-7, "ftol": 0.0}
        return minimize(
            f, np.zeros(3, np.float32), (center,), method="l-bfgs-b", options=options, bounds=(-5.0, high)
        ).x

    centers = np.array([[2.0, 1.0, -1.0], [1.0, 1.0, 1.0]], np.float32)
    high = np.array([1.0, 9.0, 9.0], np.float32)
    by_center, by_bound = phlox.jit(phlox.vmap(phlox.jacrev(nearest, (0, 1)), (0, None)))(centers, high)
    inner = np.linalg.solve(matrix[1:, 1:], matrix[1:, :1])[:, 0]
    expected = np.eye(3)
    expected[:, 0] = 0, *inner
    np.testing.assert_allclose(by_center[0], expected, atol=1e-5)
    expected = np.zeros((3, 3))
    expected[:, 0] = 1, *-inner
    np.testing.assert_allclose(by_bound[0], expected, atol=1e-5)


def test_bounds_that_are_refused():
    f = lambda x: (x**2).sum()
    x0 = np.ones(2, np.float32)
    with pytest.raises(phlox.errors.OptionError, match="takes no bounds"):
        minimize(f, x0, method="BFGS", bounds=(0, 1))
    with pytest.raises(phlox.errors.ShapeError, match=r"bounds of .*\[3\]"):
        minimize(f, x0, method="L-BFGS-B", bounds=(np.zeros(3), 1))
    with pytest.raises(phlox.errors.ArgumentError, match="must be a pair"):
        minimize(f, x0, method="L-BFGS-B", bounds=[(0, 1), (0, 1), (0, 1)])
    with pytest.raises(phlox.errors.OptionError, match="L-BFGS-B"):
        minimize(f, x0, method="trust-constr")
