"""Distributions and statistics of phlox.scipy.stats: types, values, derivatives and batches beside jax."""

import numpy as np
import pytest
import scipy.stats

import judge
import phlox
from conformance.harness import A, B, S, Special, batches, call, gradients, row, rows, values

ALL = "pdf logpdf cdf logcdf sf logsf"
LOC, SCALE = A(2, 1, low=-0.3, high=0.0, dtype="float32"), A(3, low=0.4, high=2.0, dtype="float32")
X = A(3)
Q = A(3, low=0.05, high=0.95, dtype="float32")


def above(low, high):
    """Parameters between these numbers."""
    return A(3, low=low, high=high, dtype="float32")


def distribution(name, functions, *shape, x=X, dtypes=None, **options):
    """Functions of a distribution: with location and scale, and of Python numbers without."""
    numbers = [S((p.low + p.high) / 2) for p in (x, *shape)]
    calls = [call(x, *shape, LOC, SCALE), call(*numbers)]
    return rows(f"scipy.stats.{name}", functions, *calls, dtypes=dtypes or ["float32", "int32"], **options)


def counts(name, functions, *shape, high=6):
    """Functions of a distribution of whole numbers."""
    numbers = [S((p.low + p.high) / 2) for p in shape]
    k = A(3, low=0, high=high, dtype="int32")
    options = {"dtypes": ["float32"], "tolerance": 5e-5}
    with_loc = call(A(2, 3, low=-2, high=high, whole=True), *shape, S(1))
    return [
        *rows(f"scipy.stats.{name}", functions, call(k, *shape), call(S(2), *numbers), **options),
        *rows(f"scipy.stats.{name}", functions, with_loc, grad=False, **options),
    ]


# fmt: off
CONTINUOUS = [
    *distribution("norm", ALL),
    *distribution("norm", "pdf logpdf", dtypes=["float16", "bfloat16"]),
    *distribution("norm", "ppf isf", x=Q),
    *distribution("cauchy", ALL, tolerance=5e-5),
    *distribution("cauchy", "ppf isf", x=Q, tolerance=2e-4),
    *distribution("expon", ALL, x=above(0.1, 3.0)),
    *distribution("expon", "ppf", x=Q),
    *distribution("laplace", "pdf logpdf cdf"),
    *distribution("logistic", "pdf logpdf cdf sf"),
    *distribution("logistic", "ppf isf", x=Q),
    *distribution("uniform", "pdf logpdf cdf", x=above(0.05, 0.35)),
    *distribution("uniform", "ppf", x=Q),
    *distribution("gumbel_l", ALL),
    *distribution("gumbel_r", ALL),
    *distribution("gumbel_l", "ppf", x=Q, grad=False),
    *distribution("gumbel_r", "ppf", x=Q, grad=False),
    *distribution("beta", "pdf logpdf", above(0.5, 4), above(0.5, 4), x=above(0.05, 0.35), tolerance=5e-5),
    *distribution("beta", "cdf logcdf sf logsf", above(0.5, 4), above(0.5, 4), x=above(0.05, 0.35), grad=False, tolerance=5e-5),
    *distribution("gamma", ALL, above(0.5, 4), x=above(0.5, 4), tolerance=1e-4),
    *distribution("chi2", ALL, above(0.5, 4), x=above(0.5, 4), tolerance=1e-4),
    *distribution("pareto", ALL, above(0.5, 4), x=above(3, 6)),
    *distribution("pareto", "ppf", above(0.5, 4), x=Q),
    *distribution("t", "pdf logpdf", above(0.5, 4), tolerance=5e-5),
    *distribution("truncnorm", ALL, above(-3, -2), above(2, 3), x=above(-0.5, 0.5), tolerance=5e-5),
]
# fmt: on

CONTINUOUS += [
    *rows("scipy.stats.gennorm", "pdf logpdf cdf", call(X, above(0.5, 4)), call(S(0.5), S(2.0)), dtypes=["float32"]),
    *rows("scipy.stats.vonmises", "pdf logpdf", call(X, above(0.1, 4)), call(S(0.5), S(2.0)), dtypes=["float32"]),
    *rows(
        "scipy.stats.wrapcauchy",
        "pdf logpdf",
        call(above(0, 6), above(0.1, 0.9)),
        call(S(0.5), S(0.3)),
        dtypes=["float32"],
    ),
]

#: Where the density is 0, and at its edges.
OUTSIDE = [
    row(f"scipy.stats.{name}.{function}", call(np.float32([-1, 0, 0.5, 1, 2, np.inf, -np.inf]), *shape), jit=False)
    for name, shape in {
        "expon": (),
        "uniform": (),
        "beta": (2.0, 3.0),
        "pareto": (2.0,),
        "truncnorm": (-0.5, 1.5),
    }.items()
    for function in ("pdf", "logpdf", "cdf")
]

DISCRETE = [
    *counts("bernoulli", "pmf logpmf", above(0.1, 0.9), high=2),
    *rows("scipy.stats.bernoulli", "cdf", call(A(4, low=-1, high=2), S(0.3)), call(S(0.5), Q), dtypes=["float32"]),
    *rows("scipy.stats.bernoulli", "ppf", call(A(4, low=-0.1, high=1.1), S(0.3)), call(S(0.5), Q), dtypes=["float32"]),
    *counts("binom", "pmf logpmf", A(3, low=6, high=9, dtype="int32"), above(0.1, 0.9)),
    *counts("betabinom", "pmf logpmf", A(3, low=6, high=9, dtype="int32"), above(0.5, 4), above(0.5, 4)),
    *counts("geom", "pmf logpmf", above(0.1, 0.9)),
    *counts("nbinom", "pmf logpmf", above(0.5, 4), above(0.1, 0.9)),
    *counts("poisson", "pmf logpmf cdf", above(0.5, 4)),
    row(
        "scipy.stats.poisson.entropy",
        call(above(0.5, 9)),
        call(above(20, 90), A(2, 1)),
        call(S(2.0)),
        dtypes=["float32"],
    ),
]

SHARES, CENTER, MATRIX = (
    np.float32([0.2, 0.3, 0.5]),
    A(3, dtype="float32"),
    np.float32([[2, 1, 0], [1, 3, 1], [0, 1, 2]]),
)
VECTORS = [
    *rows(
        "scipy.stats.dirichlet",
        "pdf logpdf",
        call(SHARES, above(0.5, 3)),
        call(SHARES[:2], above(0.5, 3)),
        call(np.float32([[0.2, 0.3], [0.3, 0.3], [0.5, 0.4]]), above(0.5, 3)),
        call(A(4), above(0.5, 3)),
        call(SHARES, A(1, 3)),
        dtypes=["float32"],
        tolerance=5e-5,
    ),
    *rows(
        "scipy.stats.multinomial",
        "pmf logpmf",
        call(np.int32([1, 2, 3]), 6, SHARES),
        call(np.int32([1, 2, 3]), np.int32([6, 7]), Q),
        call(SHARES, 6, SHARES),
        dtypes=["float32"],
        tolerance=5e-5,
    ),
    *rows(
        "scipy.stats.multivariate_normal",
        "pdf logpdf",
        call(A(2, 4, 3), CENTER, MATRIX),
        call(A(4, 3), A(4, 3), S(2.0)),
        call(A(3), S(0.5), S(2.0)),
        call(A(3), CENTER, np.stack([MATRIX, 2 * MATRIX])),
        call(A(3), CENTER, A(2, 2)),
        call(S(1.0), S(0.5), S(2.0)),
        dtypes=["float32"],
        tolerance=5e-5,
    ),
    row("scipy.stats.multivariate_normal.logpdf", call(A(3), CENTER, MATRIX, True), dtypes=["float32"]),
]

TIES = A(3, 7, low=0, high=4, whole=True)
SAMPLES = [
    row("scipy.stats.mode", call(TIES), call(TIES, axis=1, keepdims=True), call(TIES, axis=None), call(A(0, 2)), call(B(5)),
        call(TIES, axis=None, keepdims=True), call(Special()), call(S(2)), call(TIES, axis=2), call(TIES, nan_policy="omit"),
        call(TIES, nan_policy="none"), dtypes=["float32", "int32", "uint8", "bfloat16"], grad=False),
    row("scipy.stats.rankdata", *[call(TIES, method) for method in ("average", "min", "max", "dense", "ordinal", "none")],
        call(TIES, axis=1), call(TIES, "dense", axis=0), call(Special()), call(A(3), nan_policy="raise"), call(S(2)),
        dtypes=["float32", "int32"], grad=False),
    row("scipy.stats.sem", call(TIES), call(A(3, 4), axis=1, ddof=0, keepdims=True), call(A(3, 4), axis=None),
        call(A(3, 4), nan_policy="omit"), call(A(3), nan_policy="raise"), call(A(3), axis=1), dtypes=["float32", "int32"]),
]  # fmt: skip

TABLE = CONTINUOUS + OUTSIDE + DISCRETE + VECTORS + SAMPLES

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_vmap = batches(TABLE)


def _data(*shape):
    return judge.array(judge.rng("kde", shape), shape, "float32")


KDE = {
    "evaluate": lambda m, kde: (kde(_data(5)), kde.pdf(_data(1, 4)), kde.evaluate(_data(1))),
    "logpdf": lambda m, kde: kde.logpdf(_data(5)),
    "fields": lambda m, kde: (kde.dataset, kde.weights, kde.neff, kde.covariance, kde.inv_cov, kde.d, kde.n),
    "integrate_box_1d": lambda m, kde: kde.integrate_box_1d(-1.0, 2.0),
    "integrate_gaussian": lambda m, kde: kde.integrate_gaussian(0.5, 2.0),
    "integrate_kde": lambda m, kde: kde.integrate_kde(m.scipy.stats.gaussian_kde(_data(3))),
    "resample": lambda m, kde: (kde.resample(m.random.key(3), (4,)), kde.resample(m.random.key(3))),
    "a pytree": lambda m, kde: m.jit(lambda k: m.tree.map(lambda x: x * 2, k).neff)(kde),
}


@pytest.mark.parametrize("name", KDE)
@pytest.mark.parametrize("options", [{}, {"bw_method": "silverman"}, {"bw_method": 0.4}], ids=repr)
def test_gaussian_kde(name, options):
    judge.agree(
        lambda m, x: KDE[name](m, m.scipy.stats.gaussian_kde(x, **options)), _data(8), jit=False, tolerance=5e-5
    )


def test_gaussian_kde_in_two_dimensions():
    def case(m, x, weights):
        kde = m.scipy.stats.gaussian_kde(x, lambda kde: kde.neff**-0.2, weights)
        gaussian = kde.integrate_gaussian(_data(2), np.eye(2, dtype="float32"))
        return kde(_data(2, 5)), kde.logpdf(_data(2)), kde.covariance, gaussian, kde.integrate_kde(kde)

    judge.agree(case, _data(2, 8), np.abs(_data(8)), tolerance=5e-5)
    judge.agree(
        lambda m, x: m.grad(lambda x: m.scipy.stats.gaussian_kde(x).logpdf(_data(5)).sum())(x), _data(8), tolerance=1e-4
    )


REFUSED = {
    "one sample": lambda m: m.scipy.stats.gaussian_kde(_data(1)),
    "complex samples": lambda m: m.scipy.stats.gaussian_kde(_data(3) + 0j),
    "method": lambda m: m.scipy.stats.gaussian_kde(_data(3), "none"),
    "weights": lambda m: m.scipy.stats.gaussian_kde(_data(3), weights=_data(2)),
    "points": lambda m: m.scipy.stats.gaussian_kde(_data(3))(_data(2, 3)),
    "integrate_box": lambda m: m.scipy.stats.gaussian_kde(_data(3)).integrate_box(0, 1),
    "set_bandwidth": lambda m: m.scipy.stats.gaussian_kde(_data(3)).set_bandwidth(),
    "box of vectors": lambda m: m.scipy.stats.gaussian_kde(_data(3)).integrate_box_1d(_data(2), 1.0),
    "box in two dimensions": lambda m: m.scipy.stats.gaussian_kde(_data(2, 5)).integrate_box_1d(0.0, 1.0),
    "other dimensions": lambda m: m.scipy.stats.gaussian_kde(_data(3)).integrate_kde(
        m.scipy.stats.gaussian_kde(_data(2, 5))
    ),
    "mean": lambda m: m.scipy.stats.gaussian_kde(_data(3)).integrate_gaussian(_data(2), 1.0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_gaussian_kde_refuses(name):
    judge.raises_alike(REFUSED[name])


def test_strict_flags_concern_only_the_expressions_of_users():
    x, scale = _data(3), np.abs(_data(3)) + 0.5
    with phlox.numpy_rank_promotion("raise"), phlox.numpy_dtype_promotion("strict"):
        for name in ("norm", "cauchy", "expon", "gumbel_r", "laplace", "logistic", "uniform"):
            getattr(phlox.scipy.stats, name).logpdf(x, x, scale)
        phlox.scipy.stats.truncnorm.logcdf(x, -scale, scale, x, scale)
        phlox.scipy.stats.poisson.entropy(scale)
        phlox.scipy.stats.gaussian_kde(_data(2, 8))(_data(2, 5))
        phlox.scipy.stats.multivariate_normal.logpdf(_data(4, 3), _data(4, 3), np.eye(3, dtype="float32"))
        phlox.scipy.stats.sem(_data(3, 4)), phlox.scipy.stats.rankdata(x), phlox.scipy.stats.mode(_data(2, 3))


def test_policies_of_nan():
    with pytest.raises(phlox.errors.UnsupportedError, match="sem: nan_policy='raise' depends on values"):
        phlox.scipy.stats.sem(_data(3), nan_policy="raise")
    for policy in ("propagate", "omit"):
        with pytest.raises(phlox.errors.AxisError, match="sem: axis 2"):
            phlox.scipy.stats.sem(_data(3), axis=2, nan_policy=policy)


def test_derivatives_of_vonmises_by_its_concentration():
    """At 0, the uniform distribution, by log(I0): there exp(-kappa) I0(kappa) has a kink in jax's formula."""
    logpdf = phlox.scipy.stats.vonmises.logpdf
    for x in (0.0, 0.5, 3.0):
        by_kappa = phlox.grad(logpdf, 1)
        assert float(by_kappa(x, 0.0)) == pytest.approx(np.cos(x), rel=1e-5)
        assert float(phlox.grad(by_kappa, 1)(x, 0.0)) == pytest.approx(-0.5, rel=1e-5)
        assert float(phlox.grad(phlox.scipy.stats.vonmises.pdf, 1)(x, 0.0)) == pytest.approx(
            np.cos(x) / (2 * np.pi), rel=1e-5
        )


def test_probabilities_of_python_numbers_inside_of_transformed_functions():
    bernoulli = phlox.scipy.stats.bernoulli
    assert phlox.jit(lambda: (bernoulli.cdf(1, 0.3), bernoulli.ppf(0.8, 0.3)))() == (1, 1)


NARROW = {
    "cauchy.logpdf": (300, 0, 1), "cauchy.pdf": (300, 0, 3), "t.logpdf": (3e4, 3, 0, 10), "t.pdf": (300, 2),
    "logistic.cdf": (-12, 0, 1), "poisson.logpmf": (300, 290), "binom.logpmf": (150, 300, 0.5),
    "nbinom.logpmf": (150, 300, 0.6), "chi2.logpdf": (3000, 2900), "norm.logcdf": (-200,), "norm.ppf": (0.3, 1, 3e4),
}  # fmt: skip


@pytest.mark.parametrize("name", NARROW)
def test_distributions_of_float16_are_computed_in_float32(name):
    """jax has -inf and 0 by overflow, loses all digits of the logarithms, or refuses the dtype."""
    family, function = name.split(".")
    args = [np.float16(x) for x in NARROW[name]]
    mine = getattr(getattr(phlox.scipy.stats, family), function)(*args)
    exact = getattr(getattr(scipy.stats, family), function)(*map(float, args))
    assert mine.dtype == np.float16
    np.testing.assert_allclose(float(mine), exact, rtol=1e-3, atol=1e-7)
