"""phlox.random, samplers that draw until they accept, or that use linear algebra: jax's numbers."""

import functools

import jax
import numpy as np
import pytest

import phlox
from conformance.harness import agree, outcome, row

#: Each number is a chain of logarithms and roots, whose last bit may differ from compilation to compilation.
NEAR = row("random", tolerance=2e-6)
#: Sums of products, and what a factorization leaves of them.
LINEAR = row("random", tolerance=2e-5)
F = np.float32
MEAN = np.array([1.0, -2.0, 0.5], F)
COV = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]], F)

#: name: how to call the sampler with a key, a shape and more options
SAMPLERS = {
    "gamma": lambda m, k, s, **o: m.random.gamma(k, 2.5, s, **o),
    "gamma(small)": lambda m, k, s, **o: m.random.gamma(k, 0.3, s, **o),
    "gamma(bfloat16)": lambda m, k, s, **o: m.random.gamma(k, 0.7, s, "bfloat16", **o),
    "gamma(float16)": lambda m, k, s, **o: m.random.gamma(k, 3.0, s, "float16", **o),
    "loggamma": lambda m, k, s, **o: m.random.loggamma(k, F(0.01), s, **o),
    "beta": lambda m, k, s, **o: m.random.beta(k, 0.5, 2.0, s, **o),
    "chisquare": lambda m, k, s, **o: m.random.chisquare(k, 3, s, **o),
    "f": lambda m, k, s, **o: m.random.f(k, 3.0, F(4.5), s, **o),
    "t": lambda m, k, s, **o: m.random.t(k, 3.0, s, **o),
    "dirichlet": lambda m, k, s, **o: m.random.dirichlet(k, np.array([0.5, 1, 3], F), s, **o),
    "generalized_normal": lambda m, k, s, **o: m.random.generalized_normal(k, 3.0, s, **o),
    "ball": lambda m, k, s, **o: m.random.ball(k, 3, shape=s, **o),
    "ball(p)": lambda m, k, s, **o: m.random.ball(k, 2, 1.5, s, **o),
    "poisson": lambda m, k, s, **o: m.random.poisson(k, 3.0, s, **o),
    "poisson(large)": lambda m, k, s, **o: m.random.poisson(k, 300, s, **o),
    "poisson(int16)": lambda m, k, s, **o: m.random.poisson(k, F(12), s, "int16", **o),
    "multivariate_normal": lambda m, k, s, **o: m.random.multivariate_normal(k, MEAN, COV, s, **o),
    "orthogonal": lambda m, k, s, **o: m.random.orthogonal(k, 3, s, **o),
    "orthogonal(wide)": lambda m, k, s, **o: m.random.orthogonal(k, 2, s, m=4, **o),
    "orthogonal(complex)": lambda m, k, s, **o: m.random.orthogonal(k, 3, s, "complex64", 2, **o),
}
#: Without the option out_sharding.
COUNTS = {
    "binomial": lambda m, k, s: m.random.binomial(k, 12, 0.3, s),
    "binomial(large)": lambda m, k, s: m.random.binomial(k, F(1000), 0.8, s),
    "binomial(float16)": lambda m, k, s: m.random.binomial(k, 5, 0.5, s, "float16"),
    "multinomial": lambda m, k, s: m.random.multinomial(k, 10, np.array([0.2, 0.3, 0.5], F), shape=s),
    "multinomial(int32)": lambda m, k, s: m.random.multinomial(
        k, 10, np.array([0.2, 0.3, 0.5], F), shape=s, dtype="int32", unroll=3
    ),
}
ALL = {**SAMPLERS, **COUNTS}


def both(case, what="", jit=True, near=LINEAR):
    theirs = outcome(case, jax, ())
    agree(outcome(case, phlox, ()), theirs, near, what)
    if jit:
        agree(outcome(lambda m: m.jit(functools.partial(case, m))(), phlox, ()), theirs, near, what + " under jit")


def near(name):
    return LINEAR if name.startswith(("multivariate", "orthogonal", "ball", "dirichlet")) else NEAR


@pytest.mark.parametrize("name", ALL)
def test_sampler(name):
    for shape in [(7,), (2, 3)]:
        both(lambda m, shape=shape: ALL[name](m, m.random.key(11), shape), str(shape), near=near(name))
    both(lambda m: ALL[name](m, m.random.PRNGKey(3), ()), "old key", jit=False, near=near(name))
    both(lambda m: ALL[name](m, m.random.key(3), (0,)), "nothing", jit=False, near=near(name))


@pytest.mark.parametrize("name", ALL)
def test_sampler_of_many_keys(name):
    many = lambda m: m.vmap(lambda k: ALL[name](m, k, (3,)))(m.random.split(m.random.key(5), 4))
    both(many, jit=False, near=near(name))


PARAMETERS = {
    "gamma": lambda m, k: m.random.gamma(k, np.array([[0.1], [2.0]], F)),
    "gamma(shape)": lambda m, k: m.random.gamma(k, np.array([[0.1], [2.0]], F), (2, 3)),
    "gamma(int)": lambda m, k: m.random.gamma(k, np.arange(1, 4)),
    "beta": lambda m, k: m.random.beta(k, np.array([[0.1], [2.0]], F), np.array([1.0, 2.0], F)),
    "f": lambda m, k: m.random.f(k, np.array([[1.0], [2.0]], F), np.array([[1, 2]])),
    "t": lambda m, k: m.random.t(k, np.array([1.0, 2.0], F), (3, 2)),
    "dirichlet": lambda m, k: m.random.dirichlet(k, np.array([[1.0, 2.0, 3.0], [0.1, 0.2, 9.0]], F)),
    "poisson": lambda m, k: m.random.poisson(k, np.array([0, 0.5, 9.9, 10, 50, 1e6, np.nan], F)),
    "binomial": lambda m, k: m.random.binomial(
        k, np.array([10, 100, 1e5, np.inf, -1, 5, 5, 5], F), np.array([0.3, 0.9, 0.01, 0.5, 0.5, np.nan, 1.0, 0.0], F)
    ),
    "multinomial": lambda m, k: m.random.multinomial(k, np.array([5, 500]), np.array([[0.2, 0.8], [0.5, 0.5]], F)),
    "multivariate_normal": lambda m, k: m.random.multivariate_normal(k, np.stack([MEAN, -MEAN]), COV),
    "multivariate_normal(eigh)": lambda m, k: m.random.multivariate_normal(k, MEAN, COV, (4,), method="eigh"),
    "multivariate_normal(svd)": lambda m, k: m.random.multivariate_normal(k, MEAN, COV, (4,), method="svd"),
    "multivariate_normal(int)": lambda m, k: m.random.multivariate_normal(k, np.arange(3), np.eye(3), None, "float16"),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(name):
    both(lambda m: PARAMETERS[name](m, m.random.key(8)), near=near(name))


def test_one_key_for_many_parameters():
    a = np.array([0.2, 1.0, 5.0], F)
    for name in ("gamma", "loggamma", "t", "chisquare", "poisson"):
        mapped = lambda m, name=name: m.vmap(lambda x: getattr(m.random, name)(m.random.key(2), x, (2,)))(a)
        both(mapped, name, jit=False, near=NEAR)
    nested = lambda m: m.vmap(lambda k: m.vmap(lambda x: m.random.gamma(k, x, (2,)))(a))(
        m.random.split(m.random.key(0))
    )
    both(nested, jit=False, near=NEAR)


GRADIENTS = {
    "gamma": (lambda m, k, a: m.random.gamma(k, a, (5,)), 1.5),
    "gamma(small)": (lambda m, k, a: m.random.gamma(k, a, (5,)), 0.2),
    "gamma(many)": (lambda m, k, a: m.random.gamma(k, a), np.array([[0.5], [1.0], [9.0]], F)),
    "loggamma": (lambda m, k, a: m.random.loggamma(k, a, (5,)), 0.1),
    "beta": (lambda m, k, a: m.random.beta(k, a, 2.0, (5,)), 0.7),
    "chisquare": (lambda m, k, a: m.random.chisquare(k, a, (5,)), 3.0),
    "t": (lambda m, k, a: m.random.t(k, a, (5,)), 4.0),
    "f": (lambda m, k, a: m.random.f(k, a, 2 * a, (5,)), 4.0),
    "dirichlet": (lambda m, k, a: m.random.dirichlet(k, a)[..., 0], np.array([1.0, 2.0, 0.5], F)),
    "generalized_normal": (lambda m, k, a: m.random.generalized_normal(k, a, (5,)), 2.5),
    "multivariate_normal": (lambda m, k, a: m.random.multivariate_normal(k, MEAN, a) ** 2, COV),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    draw, at = GRADIENTS[name]
    both(lambda m: m.grad(lambda a: draw(m, m.random.key(4), a).sum())(at), near=row("random", tolerance=1e-4))
    per_key = lambda m: m.vmap(lambda k: m.grad(lambda a: draw(m, k, a).sum())(at))(m.random.split(m.random.key(4), 3))
    both(per_key, "vmap", jit=False, near=row("random", tolerance=1e-4))


def test_in_double_precision():
    with phlox.enable_x64(True), jax.enable_x64(True):
        for name in ("gamma", "loggamma", "beta", "poisson", "binomial", "t"):
            both(lambda m, name=name: ALL[name](m, m.random.key(1), (6,)), name, jit=False, near=row("random"))


WRONG = [
    lambda m, k: m.random.gamma(k, 2.0, (2,), "int32"),
    lambda m, k: m.random.gamma(k, np.ones(3, F), (2,)),
    lambda m, k: m.random.beta(k, np.ones(3, F), 1.0, dtype="float16"),
    lambda m, k: m.random.t(k, 1j),
    lambda m, k: m.random.dirichlet(k, 1.0),
    lambda m, k: m.random.dirichlet(k, np.ones((3, 2), F), (2,)),
    lambda m, k: m.random.poisson(k, np.ones(3, F), (2,)),
    lambda m, k: m.random.binomial(k, 3, 0.5, (2,), "int32"),
    lambda m, k: m.random.binomial(k, "3", 0.5),
    lambda m, k: m.random.multivariate_normal(k, MEAN, COV, method="qr"),
    lambda m, k: m.random.multivariate_normal(k, MEAN, COV[:2]),
    lambda m, k: m.random.multivariate_normal(k, F(1), COV),
    lambda m, k: m.random.multivariate_normal(k, np.stack([MEAN, MEAN]), COV, (3,)),
    lambda m, k: m.random.multivariate_normal(k, MEAN, COV, dtype="int32"),
    lambda m, k: m.random.orthogonal(k, 2.5),
    lambda m, k: m.random.key(0, impl="threefry2x32", dtype="threefry2x32"),
    lambda m, k: m.random.key_dtype("dice"),
]  # fmt: skip


@pytest.mark.parametrize("position", range(len(WRONG)))
def test_wrong_arguments(position):
    both(lambda m: WRONG[position](m, m.random.key(0)), jit=False)


def test_t_with_many_degrees_of_freedom():
    df = np.array([1.5, 3.0, 8.0], F)
    for options in ({}, {"shape": (2, 3)}, {"dtype": "float16"}):
        both(lambda m, o=options: m.random.t(m.random.key(2), df, **o), repr(options))
    both(lambda m: m.random.t(m.random.key(2), df, (2,)), jit=False)


@pytest.mark.parametrize("seed", range(3))
def test_truncated_normal_has_derivatives_by_its_bounds(seed):
    bounds = np.sort(np.random.default_rng(seed).normal(size=2)).astype(F)

    def total(m, low, high):
        return m.random.truncated_normal(m.random.key(seed), low, high, (50,)).sum()

    both(lambda m: m.grad(functools.partial(total, m), (0, 1))(*bounds))
    both(lambda m: m.jvp(functools.partial(total, m), tuple(bounds), (F(1), F(-2))))


@pytest.mark.parametrize("name", ["gamma", "loggamma"])
@pytest.mark.parametrize("a", [1.0, 2.5, 7.3])
def test_many_samples_have_the_bits_of_jax(name, a):
    """XLA folds what depends on a constant: it is not the program for an argument, in jax as well."""
    constant = lambda m: m.jit(lambda key: getattr(m.random, name)(key, a, (20_000,)))(m.random.key(3))
    argument = lambda m: getattr(m.random, name)(m.random.key(3), F(a), (20_000,))
    for draw in (constant, argument):
        np.testing.assert_array_equal(draw(phlox), draw(jax))
