"""phlox.random, samplers of bits, uniform and normal numbers, integers, permutations: jax's, bit for bit."""

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import rotate
from conformance.test_random_keys import SHAPES, both, kinds, make

SAMPLERS = {
    "bits": lambda m, k, s: m.random.bits(k, s),
    "bits8": lambda m, k, s: m.random.bits(k, s, "uint8"),
    "bits16": lambda m, k, s: m.random.bits(k, shape=s, dtype="uint16"),
    "bits32": lambda m, k, s: m.random.bits(k, s, "uint32"),
    "uniform": lambda m, k, s: m.random.uniform(k, s),
    "uniform16": lambda m, k, s: m.random.uniform(k, s, "float16"),
    "uniformb16": lambda m, k, s: m.random.uniform(k, s, "bfloat16", -2, 3),
    "uniform, bounds": lambda m, k, s: m.random.uniform(k, s, minval=-1.5, maxval=2.5),
    "uniform, ints": lambda m, k, s: m.random.uniform(k, s, "float32", 1, 7),
    "normal": lambda m, k, s: m.random.normal(k, s),
    "normal16": lambda m, k, s: m.random.normal(k, s, "float16"),
    "normalb16": lambda m, k, s: m.random.normal(k, s, "bfloat16"),
    "normal, complex": lambda m, k, s: m.random.normal(k, s, "complex64"),
    "randint": lambda m, k, s: m.random.randint(k, s, 0, 10),
    "randint, negative": lambda m, k, s: m.random.randint(k, s, -5, 7),
    "randint8": lambda m, k, s: m.random.randint(k, s, -128, 127, "int8"),
    "randint, int8 past its end": lambda m, k, s: m.random.randint(k, s, -128, 128, "int8"),
    "randint, uint8": lambda m, k, s: m.random.randint(k, s, 3, 256, "uint8"),
    "randint16": lambda m, k, s: m.random.randint(k, s, -1000, 1000, "int16"),
    "randint, uint16": lambda m, k, s: m.random.randint(k, s, 0, 65536, "uint16"),
    "randint, uint32": lambda m, k, s: m.random.randint(k, s, 0, 2**31, "uint32"),
    "randint, empty range": lambda m, k, s: m.random.randint(k, s, 5, 2),
    "randint, all": lambda m, k, s: m.random.randint(k, s, -(2**31), 2**31 - 1),
    "randint, beyond": lambda m, k, s: m.random.randint(k, s, 0, 2**31),
    "bernoulli": lambda m, k, s: m.random.bernoulli(k, shape=s),
    "bernoulli, p": lambda m, k, s: m.random.bernoulli(k, 0.2, s),
    "truncated_normal": lambda m, k, s: m.random.truncated_normal(k, -1, 2, s),
    "truncated_normal, half": lambda m, k, s: m.random.truncated_normal(k, 0.0, 0.5, s, "float16"),
}

WIDE = {
    "bits64": lambda m, k, s: m.random.bits(k, s, "uint64"),
    "bits": SAMPLERS["bits"],
    "uniform": SAMPLERS["uniform"],
    "uniform, bounds": SAMPLERS["uniform, bounds"],
    "uniform, float32": lambda m, k, s: m.random.uniform(k, s, "float32"),
    "normal": SAMPLERS["normal"],
    "normal, complex128": lambda m, k, s: m.random.normal(k, s, "complex128"),
    "randint": SAMPLERS["randint"],
    "randint, int32": lambda m, k, s: m.random.randint(k, s, -9, 9, "int32"),
    "randint64": lambda m, k, s: m.random.randint(k, s, -(2**40), 2**62, "int64"),
    "randint, uint64": lambda m, k, s: m.random.randint(k, s, 0, 2**63, "uint64"),
    "bernoulli": SAMPLERS["bernoulli"],
    "truncated_normal": SAMPLERS["truncated_normal"],
}


@pytest.mark.parametrize("name", SAMPLERS)
@kinds
def test_sampler(kind, name):
    for shape in dict.fromkeys([(2, 3), *rotate(SHAPES, 2 * judge.CASES, kind, name)]):
        sample = lambda m, shape=shape: SAMPLERS[name](m, make(m, kind), shape)
        both(sample, what=str(shape))


@pytest.mark.parametrize("name", SAMPLERS)
def test_sampler_of_many_keys(name):
    """A batch of keys gives what each of them gives; keys may be arguments of jit."""
    run = lambda m, seeds: m.vmap(lambda s: SAMPLERS[name](m, m.random.key(s), (3,)))(seeds)
    both(run, np.arange(4))
    keys = lambda m: m.vmap(lambda k: SAMPLERS[name](m, k, (2,)))(m.random.split(m.random.PRNGKey(3), 5))
    both(keys)


@pytest.mark.parametrize("name", WIDE)
def test_sampler_in_64_bits(name):
    with phlox.enable_x64(True), jax.enable_x64(True):
        for shape in ((3,), (2, 2)):
            both(lambda m, shape=shape: WIDE[name](m, m.random.key(7), shape))


def test_shapes_of_bounds_and_probabilities():
    key = lambda m: m.random.key(1)
    both(
        lambda m: m.random.uniform(
            key(m), (2, 3), minval=np.zeros(3, np.float32), maxval=np.arange(1.0, 4.0, dtype=np.float32)
        )
    )
    both(lambda m: m.random.uniform(key(m), (2,), minval=np.zeros(3, np.float32)), jit=False)
    both(lambda m: m.random.uniform(key(m), (), minval=np.zeros(1, np.float32), maxval=np.full(1, 3, np.float32)))
    both(lambda m: m.random.uniform(key(m), np.array([2, 3])))
    both(lambda m: m.random.uniform(key(m), [], minval=np.zeros(1, np.float32)))
    both(lambda m: m.random.randint(key(m), (2, 3), np.arange(3), np.arange(3) + 5))
    # Floats out of range are clipped, as arrays of them are.
    for low, high in ((1e30, 10), (-5.0, 1e30), (np.float32(3e9), 4)):
        both(lambda m, low=low, high=high: m.random.randint(key(m), (3,), low, high, "uint8"))
    both(lambda m: m.random.randint(key(m), (2, 3), np.array([[0], [9]]), 10))
    both(lambda m, p: m.random.bernoulli(key(m), p), np.array([0.1, 0.9, 0.0, 1.0], np.float32))
    both(lambda m, p: m.random.bernoulli(key(m), p, (2, 4)), np.array([0.1, 0.9, 0.0, 1.0], np.float32))
    both(lambda m: m.random.bernoulli(key(m), np.float16(0.5), (9,)))
    both(lambda m: m.random.bernoulli(key(m), 1, (9,)), jit=False)
    both(lambda m: m.random.bernoulli(key(m), np.zeros(3), (2,)), jit=False)
    both(lambda m, lo: m.random.truncated_normal(key(m), lo, 3.0), np.array([-1.0, 0.0, 2.0], np.float32))
    both(lambda m: m.random.truncated_normal(key(m), np.array([-1.0]), np.array([1.0, 2.0])))


@pytest.mark.parametrize(
    "x",
    [5, 1, 0, np.arange(6), np.arange(6.0).reshape(3, 2), np.arange(24).reshape(2, 3, 4) % 7, np.arange(1000)],
    ids=str,
)
@kinds
def test_permutation(kind, x):
    both(lambda m: m.random.permutation(make(m, kind), x))
    if isinstance(x, np.ndarray) and x.ndim > 1:
        both(lambda m: m.random.permutation(make(m, kind), x, axis=-1))
        both(lambda m: m.random.permutation(make(m, kind), x, 1, independent=True))
        both(lambda m, x: m.vmap(m.random.permutation)(m.random.split(make(m, kind), len(x)), x), x)


def test_permutation_of_a_list_and_of_nothing():
    both(lambda m: m.random.permutation(m.random.key(0), [1, 2, 3]), jit=False)
    both(lambda m: m.random.permutation(m.random.key(0), np.float32(3)), jit=False)
    both(lambda m: m.random.permutation(m.random.key(0), np.zeros((0, 2))), jit=False)
    both(lambda m: m.random.permutation(m.random.key(0), np.arange(4), axis=1), jit=False)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m, k: m.random.bits(k, (2,), "int32"),
        lambda m, k: m.random.uniform(k, (2,), "int32"),
        lambda m, k: m.random.uniform(k, (2,), "complex64"),
        lambda m, k: m.random.normal(k, (2,), "int32"),
        lambda m, k: m.random.randint(k, (2,), 0, 3, "float32"),
        lambda m, k: m.random.randint(k, (2,), 0.5, 3),
        lambda m, k: m.random.randint(k, (2,), 0, 2.5),
        lambda m, k: m.random.truncated_normal(k, -1, 1, (2,), "int32"),
        lambda m, k: m.random.normal(k, (-1,)),
        lambda m, k: m.random.normal(k, 2.5),
        lambda m, k: m.random.normal(k, 3),
        lambda m, k: m.random.bernoulli(k, "p"),
        lambda m, k: m.random.normal(3),
        lambda m, k: m.random.normal(np.zeros(2)),
        lambda m, k: m.random.normal(np.zeros(3, np.uint32)),
        lambda m, k: m.random.normal(m.random.split(k)),
        lambda m, k: m.random.split(m.random.split(k)),
        lambda m, k: m.random.fold_in(m.random.split(k), 1),
        lambda m, k: m.random.fold_in(k, np.arange(2)),
        lambda m, k: m.random.wrap_key_data(np.zeros(3, np.uint32)),
        lambda m, k: m.random.wrap_key_data(np.zeros(2, np.float32)),
        lambda m, k: m.random.key(0, impl="nonsense"),
        lambda m, k: k + 1,
        lambda m, k: m.numpy.sin(k),
    ],
)
@kinds
def test_wrong_arguments(kind, wrong):
    both(lambda m: wrong(m, make(m, kind)), jit=False)


def test_default_dtypes_follow_x64():
    with phlox.enable_x64(True), jax.enable_x64(True):
        both(
            lambda m: [
                m.random.normal(m.random.key(0)),
                m.random.randint(m.random.key(0), (), 0, 9),
                m.random.permutation(m.random.key(0), 5),
            ]
        )


@pytest.mark.parametrize("dtype", ["float4_e2m1fn", "float6_e2m3fn", "float8_e8m0fnu"])
@pytest.mark.parametrize("name", ["uniform", "normal", "gumbel", "exponential", "cauchy"])
def test_floats_that_hold_no_random_numbers(name, dtype):
    with pytest.raises(phlox.errors.DtypeError, match=f"{name}: {dtype} cannot hold"):
        getattr(phlox.random, name)(phlox.random.key(0), (2,), dtype)


def test_signs_in_the_least_integers():
    signs = phlox.random.rademacher(phlox.random.key(0), (50,), "int2")
    np.testing.assert_array_equal(signs.astype("int32"), phlox.random.rademacher(phlox.random.key(0), (50,)))
