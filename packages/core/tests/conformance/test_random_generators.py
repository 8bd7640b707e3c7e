"""Other generators of random numbers than the default one: keys, bits and samples equal jax's, also mapped and compiled.

The streams of "rbg" are those of XLA on the same platform.
"""

import jax
import jax.extend.random
import numpy as np
import pytest
import scipy.stats

import phlox
import phlox.extend.random

IMPLS = ("rbg", "unsafe_rbg", "threefry2x32")

SAMPLERS = {
    "uniform": lambda m, k: m.random.uniform(k, (4, 3)),
    "normal": lambda m, k: m.random.normal(k, (5,)),
    "randint": lambda m, k: m.random.randint(k, (6,), 0, 100),
    "permutation": lambda m, k: m.random.permutation(k, 10),
    "choice": lambda m, k: m.random.choice(k, 5, (3,)),
    "gumbel": lambda m, k: m.random.gumbel(k, (3,)),
    "gamma": lambda m, k: m.random.gamma(k, 2.0, (3,)),
    "t": lambda m, k: m.random.t(k, m.numpy.array([2.0, 3.0])),
    "categorical": lambda m, k: m.random.categorical(k, m.numpy.zeros(5), shape=(4,)),
    "truncated_normal": lambda m, k: m.random.truncated_normal(k, -1.0, 2.0, (4,)),
    "dirichlet": lambda m, k: m.random.dirichlet(k, m.numpy.ones(3)),
    "bernoulli": lambda m, k: m.random.bernoulli(k, 0.3, (5,)),
    "beta": lambda m, k: m.random.beta(k, 0.5, np.float32([2.0, 0.7]), (3, 2)),
    "ball": lambda m, k: m.random.ball(k, 3, 1.5, (2,)),
    "binomial": lambda m, k: m.random.binomial(k, np.float32([5, 40]), 0.3, (3, 2)),
    "cauchy": lambda m, k: m.random.cauchy(k, (4,)),
    "chisquare": lambda m, k: m.random.chisquare(k, 2.5, (4,)),
    "complex normal": lambda m, k: m.random.normal(k, (3,), "complex64"),
    "double_sided_maxwell": lambda m, k: m.random.double_sided_maxwell(k, 0.5, 2.0, (4,)),
    "exponential": lambda m, k: m.random.exponential(k, (4,)),
    "f": lambda m, k: m.random.f(k, 3.0, 4.0, (4,)),
    "generalized_normal": lambda m, k: m.random.generalized_normal(k, 1.5, (3,)),
    "geometric": lambda m, k: m.random.geometric(k, 0.3, (4,)),
    "laplace": lambda m, k: m.random.laplace(k, (4,)),
    "loggamma": lambda m, k: m.random.loggamma(k, np.float32([0.3, 2.0])),
    "logistic": lambda m, k: m.random.logistic(k, (4,)),
    "lognormal": lambda m, k: m.random.lognormal(k, 0.5, (4,)),
    "maxwell": lambda m, k: m.random.maxwell(k, (4,)),
    "multinomial": lambda m, k: m.random.multinomial(k, 9.0, np.float32([0.2, 0.3, 0.5])),
    "multivariate_normal": lambda m, k: m.random.multivariate_normal(k, np.zeros(2, np.float32), np.eye(2) * 2, (3,)),
    "orthogonal": lambda m, k: m.random.orthogonal(k, 3, (2,)),
    "pareto": lambda m, k: m.random.pareto(k, 2.0, (4,)),
    "permutation, independent": lambda m, k: m.random.permutation(k, np.arange(12).reshape(3, 4), 1, True),
    "rademacher": lambda m, k: m.random.rademacher(k, (5,)),
    "rayleigh": lambda m, k: m.random.rayleigh(k, 2.0, (4,)),
    "triangular": lambda m, k: m.random.triangular(k, -1.0, 0.5, 2.0, (4,)),
    "wald": lambda m, k: m.random.wald(k, 2.0, (4,)),
    "weibull_min": lambda m, k: m.random.weibull_min(k, 2.0, 1.5, (4,)),
    "uniform of 16 bits": lambda m, k: m.random.uniform(k, (129,), "float16"),
    "many": lambda m, k: m.random.normal(k, (3, 4, 43)),
}
#: A batch of these generators draws from the first of its keys. Once that example is done its key stays, and the others
#: get the same bits again and again: a loop that refuses them does not end, in jax either.
ENDLESS = {("rbg", "multinomial"), ("unsafe_rbg", "multinomial")}
#: draws of no element, by rejection for each element
EMPTY = {
    "gamma": lambda m, k: m.random.gamma(k, 2.0, (0, 3)),
    "loggamma": lambda m, k: m.random.loggamma(k, 2.0, (0,)),
    "beta": lambda m, k: m.random.beta(k, 2.0, 1.0, (2, 0)),
    "dirichlet": lambda m, k: m.random.dirichlet(k, np.ones(3, np.float32), (0,)),
    "t": lambda m, k: m.random.t(k, 2.0, (0,)),
}


def same(f):
    mine, theirs = (np.asarray(f(m)) for m in (phlox, jax))
    assert mine.dtype == theirs.dtype
    if mine.dtype.kind in "iub":
        np.testing.assert_array_equal(mine, theirs)
    else:
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def words(m, key):
    return m.random.key_data(key)


@pytest.mark.parametrize("impl", IMPLS)
def test_keys_and_bits(impl):
    def key(m, seed=7):
        return m.random.key(seed, impl=impl)

    for seed in (0, 7, 2**31 - 1, -3):
        same(lambda m, seed=seed: words(m, key(m, seed)))
    same(lambda m: m.random.PRNGKey(3, impl=impl))
    for count in (2, (2, 3)):
        same(lambda m, count=count: words(m, m.random.split(key(m), count)))
    for data in (0, 5, 2**31):
        same(lambda m, data=data: words(m, m.random.fold_in(key(m), data)))
    for dtype in ("uint8", "uint16", "uint32"):
        same(lambda m, dtype=dtype: m.random.bits(key(m), (3, 5), dtype))
    with jax.enable_x64(True), phlox.enable_x64(True):
        same(lambda m: m.random.bits(key(m), (3,), "uint64"))
    same(lambda m: words(m, m.vmap(lambda k: m.random.split(k, 3))(m.random.split(key(m), 4))))
    same(lambda m: words(m, m.vmap(m.random.fold_in, (None, 0))(key(m), m.numpy.arange(4))))
    same(lambda m: words(m, m.vmap(m.random.fold_in)(m.random.split(key(m), 4), m.numpy.arange(4))))
    same(lambda m: words(m, m.vmap(lambda s: m.random.key(s, impl=impl))(m.numpy.arange(3))))
    same(lambda m: m.vmap(m.vmap(lambda k: m.random.uniform(k, (2,))))(m.random.split(key(m), (2, 3))))
    same(lambda m: m.random.normal(m.random.split(key(m), 5)[2], (2,)))
    same(lambda m: m.random.normal(m.random.wrap_key_data(words(m, key(m)), impl=impl), (2,)))
    same(
        lambda m: m.lax.scan(lambda k, _: (m.random.split(k)[0], m.random.normal(k)), key(m), None, length=3)[1],
    )
    assert str(key(phlox).dtype) == str(key(jax).dtype)
    assert str(phlox.random.key_impl(key(phlox))) == str(jax.random.key_impl(key(jax)))
    for m in (phlox, jax):
        with m.default_prng_impl(impl):
            assert m.random.key(0).dtype == key(m).dtype
    with phlox.default_prng_impl(impl), jax.default_prng_impl(impl):
        same(lambda m: m.random.normal(m.random.PRNGKey(0), (3,)))


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("name", SAMPLERS)
def test_samples(impl, name):
    sample = SAMPLERS[name]
    same(lambda m: m.jit(lambda k: sample(m, k))(m.random.key(7, impl=impl)))
    if (impl, name) not in ENDLESS:
        same(lambda m: m.vmap(lambda k: sample(m, k))(m.random.split(m.random.key(7, impl=impl), 3)))


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("name", EMPTY)
def test_no_samples(impl, name):
    same(lambda m: EMPTY[name](m, m.random.key(7, impl=impl)))


@pytest.mark.parametrize("impl", IMPLS)
def test_samples_of_no_keys(impl):
    """jax refuses them for generators that take one key."""
    keys = phlox.random.split(phlox.random.key(7, impl=impl), 0)
    assert phlox.vmap(lambda k: phlox.random.normal(k, (2,)))(keys).shape == (0, 2)
    assert phlox.vmap(lambda k: phlox.random.gamma(k, 2.0, (2,)))(keys).shape == (0, 2)


def test_a_generator_of_ones_own():
    def defined(m):
        threefry = m.extend.random.threefry_prng_impl
        jnp = m.numpy
        return m.extend.random.define_prng_impl(
            key_shape=(2, 2),
            seed=lambda seed: jnp.tile(threefry.seed(seed), (2, 1)),
            split=lambda key, shape: jnp.moveaxis(m.vmap(lambda k: threefry.split(k, shape))(key), 0, -2),
            random_bits=lambda key, width, shape: threefry.random_bits(key[0], width, shape),
            fold_in=lambda key, data: m.vmap(lambda k: threefry.fold_in(k, data))(key),
            name="double",
            tag="2x",
        )

    same(lambda m: m.random.normal(m.random.key(0, impl=defined(m)), (3,)))
    same(lambda m: words(m, m.random.split(m.random.key(0, impl=defined(m)), 3)))
    same(lambda m: words(m, m.random.fold_in(m.random.key(0, impl=defined(m)), 3)))
    assert str(phlox.random.key(0, impl=defined(phlox)).dtype) == "key<2x>"


def test_words_of_another_length_are_refused():
    for m in (phlox, jax):
        with pytest.raises((TypeError, ValueError)):
            m.random.wrap_key_data(np.zeros(2, np.uint32), impl="rbg")
        with pytest.raises((TypeError, ValueError)):
            m.random.key(0, impl="no such generator")


def test_truncated_normal_is_differentiable_in_its_bounds():
    def slope(m, at):
        f = lambda low, high: m.random.truncated_normal(m.random.key(0), low, high, (20,)).sum()
        return m.numpy.array(m.grad(f, (0, 1))(*at))

    for at in [(-1.0, 2.0), (0.5, 0.75), (-4.0, 0.0)]:
        same(lambda m, at=at: slope(m, at))


def test_the_lowering_of_jax_gives_the_same_bits():
    """As a loop, which `phlox.as_jax` asks for, so that XLA rounds what follows as in JAX."""

    def draws(key):
        many = phlox.random.split(key, 5)
        samples = phlox.vmap(lambda k: phlox.random.normal(k, (6,)))(many)
        return (
            phlox.random.bits(key, (7, 5)),
            phlox.random.bits(key),
            samples,
            phlox.random.key_data(phlox.random.fold_in(many[1], 3)),
        )

    usual = phlox.jit(draws)(phlox.random.key(3))
    with phlox.config.scope(jaxlike_lowering_size=100):
        loops = phlox.jit(lambda key: draws(key))
        assert "stablehlo.while" in loops.lower(phlox.random.key(3)).as_text()
        for a, b in zip(usual, loops(phlox.random.key(3)), strict=True):
            np.testing.assert_array_equal(a, b)


# --- the streams without jax_threefry_partitionable

OLD_SHAPES = [(), (3,), (2, 3), (2, 0), (1001,)]


def without_partitioning(draws):
    """Compares ``draws(library)`` with the flag off, and again with it on: compiled programs are not mixed up."""
    with jax.threefry_partitionable(False), phlox.threefry_partitionable(False):
        theirs, mine = (m.jit(lambda m=m: draws(m))() for m in (jax, phlox))
        again = draws(phlox)
    for x, y, z in zip(theirs, mine, again, strict=True):
        assert x.dtype == y.dtype == z.dtype
        for each in (y, z):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(each))
    assert all(np.array_equal(x, y) for x, y in zip(jax.jit(lambda: draws(jax))(), draws(phlox), strict=True))


@pytest.mark.parametrize("width", ["uint8", "uint16", "uint32", "uint64"])
def test_bits_without_partitioning(width):
    def draws(m):
        keys = m.random.split(m.random.key(3), 4)
        mapped = m.vmap(lambda k: m.random.bits(k, (3, 5), width))(keys)
        return [*(m.random.bits(m.random.key(3), shape, width) for shape in OLD_SHAPES), mapped]

    with phlox.enable_x64(True), jax.enable_x64(True):
        without_partitioning(draws)


@pytest.mark.parametrize("impl", IMPLS)
def test_keys_without_partitioning(impl):
    def draws(m):
        key = m.random.key(7, impl=impl)
        keys = [m.random.split(key, count) for count in (1, 2, 5, 0, (2, 3), ())]
        mapped = [m.vmap(lambda k, n=n: m.random.split(k, n))(keys[2]) for n in (3, (2, 1))]
        return [m.random.key_data(each) for each in (*keys, *mapped, m.random.fold_in(key, 11))]

    without_partitioning(draws)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_samples_without_partitioning(dtype):
    def draws(m):
        key = m.random.PRNGKey(2)
        return [
            m.random.uniform(key, (7,), dtype),
            m.random.randint(key, (5,), 0, 1000, "int64"),
            m.random.permutation(key, 10),
            m.random.categorical(key, m.numpy.zeros(5), shape=(4,)),
        ]

    with phlox.enable_x64(True), jax.enable_x64(True):
        without_partitioning(draws)
        with phlox.threefry_partitionable(False), jax.threefry_partitionable(False):
            for name in ("normal", "gamma", "truncated_normal"):
                same(lambda m, name=name: m.jit(lambda: SAMPLERS[name](m, m.random.key(5)))())
            same(lambda m: m.vmap(lambda k: m.random.normal(k, (3,)))(m.random.split(m.random.key(5), 3)))


def test_too_many_words_without_partitioning():
    draw = phlox.jit(lambda key: phlox.random.bits(key, (2**32,)))
    with phlox.threefry_partitionable(False), pytest.raises(phlox.errors.OptionError, match="4294967296 random words"):
        draw.lower(phlox.random.key(0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "bounds", [(5.4, 6.6), (-6.6, -5.4), (2.1, np.inf), (-np.inf, -9.0), (3.0, 3.001), (30.0, 31.0)], ids=str
)
def test_truncated_normal_in_a_tail(bounds, dtype):
    """Many different samples, of the right distribution; jax has ten different ones, or all are the upper bound."""
    count = 4000
    low, high = bounds if bounds[0] > 0 else (-bounds[1], -bounds[0])
    with phlox.enable_x64(dtype == "float64"):
        x = np.asarray(phlox.random.truncated_normal(phlox.random.key(1), *bounds, (count,), dtype), float)
        mapped = phlox.vmap(lambda a, b: phlox.random.truncated_normal(phlox.random.key(1), a, b, (count,), dtype))
        rtol = 8 * np.finfo(dtype).eps
        np.testing.assert_allclose(mapped(*(np.array([b, 0.5], dtype) for b in bounds))[0], x, rtol=rtol)
    assert (x > bounds[0]).all() and (x < bounds[1]).all()
    x = x if bounds[0] > 0 else -x
    ulp = np.spacing(np.dtype(dtype).type(low))
    assert len(np.unique(x)) > min(0.9 * count, 0.5 * (min(high, low + 4 / low) - low) / ulp)
    log = scipy.stats.norm.logsf
    share = np.expm1(log(x) - log(low)) / np.expm1(log(high) - log(low))
    assert scipy.stats.kstest(share, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("dtype", ["float8_e4m3", "bfloat16"])
def test_short_floats_in_a_tail(dtype):
    draw = lambda dtype: phlox.random.truncated_normal(phlox.random.key(1), 3.0, 5.0, (2000,), dtype)
    x = np.asarray(draw(dtype), float)
    spacing = float(phlox.numpy.finfo(dtype).eps) * 2
    assert (x > 3).all() and (x < 5).all() and abs(x.mean() - np.asarray(draw("float32")).mean()) < spacing


def test_truncated_normal_in_a_tail_has_derivatives_by_its_bounds():
    with phlox.enable_x64(True):
        sample = lambda low, high: phlox.random.truncated_normal(phlox.random.key(3), low, high, (3,))
        slopes = phlox.jacobian(sample, (0, 1))(5.4, 6.6)
        for slope, step in zip(slopes, [(1e-4, 0), (0, 1e-4)], strict=True):
            up, down = (sample(5.4 + s * step[0], 6.6 + s * step[1]) for s in (1, -1))
            np.testing.assert_allclose(slope, (up - down) / 2e-4, rtol=1e-6)


def test_truncated_normal_around_zero_has_the_bits_of_jax():
    for bounds in [(-2.0, 2.0), (-2, 2), (-1.0, 1.9), (np.float32([-2, -1]), np.float32([2, 1]))]:
        same(lambda m, b=bounds: m.random.truncated_normal(m.random.key(5), *b, (300, 2)))
