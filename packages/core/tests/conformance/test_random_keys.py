"""phlox.random: keys and streams are jax's, bit for bit, for old keys and new, eagerly, under jit and under vmap."""

import functools

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import agree, outcome, rotate, row

EXACT = row("random", exact=True)
SEEDS = [0, 1, 42, -1, -7, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, -(2**31), -(2**63), 123456789012345]
KINDS = ["key", "PRNGKey"]
SHAPES = [(), (3,), (2, 3), (0,), (2, 0), (7, 1, 2), (1001,)]

kinds = pytest.mark.parametrize("kind", KINDS)


def both(case, *args, jit=True, row=EXACT, what=""):
    theirs = outcome(case, jax, args)
    agree(outcome(case, phlox, args), theirs, row, what)
    if jit:
        agree(
            outcome(lambda m, *xs: m.jit(functools.partial(case, m))(*xs), phlox, args),
            theirs,
            row,
            what + " under jit",
        )


def make(m, kind, seed=42):
    return getattr(m.random, kind)(seed)


@pytest.mark.parametrize("seed", SEEDS)
@kinds
def test_seeds(kind, seed):
    both(lambda m: make(m, kind, seed))
    both(lambda m: m.random.split(make(m, kind, seed)))
    both(lambda m: m.random.normal(make(m, kind, seed), (5,)))


@pytest.mark.parametrize("seed", [-1, 7, 2**31 - 1])
@kinds
def test_seeds_that_are_arguments(kind, seed):
    both(lambda m, s: make(m, kind, s), seed)
    for dtype in ("int8", "int32", "uint8", "uint32", "int64"):
        with np.errstate(all="ignore"):
            both(lambda m, s: make(m, kind, s), np.array(seed).astype(dtype), what=dtype)


@kinds
def test_seeds_in_64_bits(kind):
    with phlox.enable_x64(True), jax.enable_x64(True):
        for seed in SEEDS:
            both(lambda m, s: make(m, kind, s), seed, jit=False, what=str(seed))
            both(lambda m, seed=seed: m.random.uniform(make(m, kind, seed), (3,)), what=str(seed))


@pytest.mark.parametrize("seed", [2.5, None, "a", 2**63, 2**64, -(2**63) - 1, np.zeros(2, int), 1j, [1, 2], True])
@kinds
def test_wrong_seeds(kind, seed):
    both(lambda m: make(m, kind, seed), jit=False)


@pytest.mark.parametrize("count", [2, 1, 0, 5, (2, 3), (4,), (), (2, 0)])
@kinds
def test_split(kind, count):
    both(lambda m: m.random.split(make(m, kind), count))
    both(lambda m, k: m.random.split(m.random.wrap_key_data(k), count), np.array([1, 2], np.uint32))
    both(lambda m: [m.random.normal(k) for k in m.random.split(make(m, kind), count)][:2], jit=False)


@pytest.mark.parametrize("data", [0, 1, 7, 2**31 - 1, 2**32 - 1, -1, np.uint8(3), np.int64(5), 2.5, 2**40])
@kinds
def test_fold_in(kind, data):
    both(lambda m: m.random.fold_in(make(m, kind), data), jit=False)
    both(lambda m: m.random.normal(m.random.fold_in(m.random.fold_in(make(m, kind), 3), data), (2,)), jit=False)


@kinds
def test_fold_in_a_traced_number(kind):
    both(lambda m, i: m.random.fold_in(make(m, kind), i), 5)
    both(lambda m, i: m.vmap(lambda i: m.random.fold_in(make(m, kind), i))(i), np.arange(4))
    both(lambda m, i: m.vmap(m.random.fold_in)(m.random.split(make(m, kind), 4), i), np.arange(4))


# --- samplers

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
    both(lambda m: m.random.randint(key(m), (2, 3), np.arange(3), np.arange(3) + 5))
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


# --- keys as arrays


def test_keys_are_arrays():
    keys = lambda m: m.random.split(m.random.key(0), (2, 3))
    both(lambda m: keys(m)[0])
    both(lambda m: keys(m)[1, 2])
    both(lambda m: keys(m)[:, ::2])
    both(lambda m: keys(m)[np.array([1, 0])])
    both(lambda m: keys(m).reshape(6))
    both(lambda m: keys(m).T)
    both(lambda m: m.numpy.concatenate([keys(m), keys(m)[:1]]))
    both(lambda m: m.numpy.stack([m.random.key(0), m.random.key(1)]))
    both(lambda m: m.numpy.where(np.array([True, False, True]), keys(m)[0], keys(m)[1]))
    both(lambda m: m.numpy.broadcast_to(m.random.key(0), (2,)))
    both(lambda m: keys(m) == keys(m)[0])
    both(lambda m: [k for row in keys(m) for k in row], jit=False)
    both(lambda m: m.random.key_data(keys(m)))
    both(lambda m: m.random.clone(m.random.key(3)))
    both(lambda m: m.random.wrap_key_data(m.random.PRNGKey(5)))
    both(lambda m: m.random.wrap_key_data(np.arange(8, dtype=np.uint32).reshape(2, 2, 2)))
    both(lambda m: keys(m).at[0, 0].set(m.random.key(9)))
    both(lambda m: m.lax.stop_gradient(keys(m)))


def test_what_keys_say_of_themselves():
    for module in (phlox, jax):
        keys = module.random.split(module.random.key(0), (2, 3))
        assert (keys.shape, keys.ndim, keys.size, str(keys.dtype), len(keys)) == ((2, 3), 2, 6, "key<fry>", 2)
        assert module.numpy.issubdtype(keys.dtype, module.dtypes.prng_key)
        assert not module.numpy.issubdtype(keys.dtype, module.numpy.number)
        assert module.typeof(keys).str_short() == "key<fry>[2,3]"
        assert str(module.random.key_impl(keys)) == "fry" or "threefry2x32" in str(module.random.key_impl(keys))
    assert str(phlox.random.key_impl(phlox.random.key(0))) == str(jax.random.key_impl(jax.random.key(0)))
    assert repr(phlox.random.key(1)) == repr(jax.random.key(1))


def test_keys_pass_through_transformations():
    f = lambda m: lambda k, x: (m.random.normal(k, x.shape) * x).sum()
    x = np.arange(3.0, dtype=np.float32)
    near = row("random", tolerance=1e-6)
    both(lambda m, x: m.grad(f(m), 1)(m.random.key(0), x), x, row=near)
    both(lambda m, x: m.jit(m.value_and_grad(f(m), 1))(m.random.key(0), x), x, row=near)
    both(lambda m, x: m.vmap(m.grad(f(m), 1), (0, None))(m.random.split(m.random.key(0), 3), x), x, row=near)
    both(lambda m, x: m.vmap(f(m), (None, 0))(m.random.key(0), x), x, row=near)
    both(lambda m, x: m.vmap(f(m), (1, 0))(m.random.split(m.random.PRNGKey(0), 3).T, x), x, row=near)
    both(lambda m: m.eval_shape(lambda k: m.random.split(k, 3), m.random.key(0)).shape, jit=False)
    both(lambda m: m.vmap(lambda k: m.random.split(k, 2), out_axes=1)(m.random.split(m.random.key(0), 3)))


def test_default_dtypes_follow_x64():
    with phlox.enable_x64(True), jax.enable_x64(True):
        both(
            lambda m: [
                m.random.normal(m.random.key(0)),
                m.random.randint(m.random.key(0), (), 0, 9),
                m.random.permutation(m.random.key(0), 5),
            ]
        )
