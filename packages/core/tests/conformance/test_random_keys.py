"""phlox.random: keys and streams are jax's, bit for bit, for old keys and new, eagerly, under jit and under vmap."""

import functools

import jax
import numpy as np
import pytest

import phlox
from conformance.harness import agree, outcome, row

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
    both(lambda m: keys(m) != keys(m)[0])
    both(lambda m: [k for row in keys(m) for k in row], jit=False)
    both(lambda m: m.random.key_data(keys(m)))
    both(lambda m: m.random.clone(m.random.key(3)))
    both(lambda m: m.random.wrap_key_data(m.random.PRNGKey(5)))
    both(lambda m: m.random.wrap_key_data(np.arange(8, dtype=np.uint32).reshape(2, 2, 2)))
    both(lambda m: keys(m).at[0, 0].set(m.random.key(9)))
    both(lambda m: m.lax.stop_gradient(keys(m)))


def test_equal_keys():
    keys = lambda m: m.random.split(m.random.key(0), (2, 3))
    for name in ("lax.eq", "lax.ne", "numpy.equal", "numpy.not_equal", "numpy.isclose"):
        function = lambda m, name=name: getattr(getattr(m, name.partition(".")[0]), name.partition(".")[2])
        both(lambda m, function=function: function(m)(keys(m), keys(m)), what=name)
        both(lambda m, function=function: function(m)(keys(m), keys(m)[0, 1]), what=name)
        both(lambda m, function=function: function(m)(keys(m), keys(m)[:, :1]), what=name)
        both(lambda m, function=function: m.vmap(function(m), (0, None))(keys(m), keys(m)[0]), what=name)
    both(lambda m: m.numpy.isnan(keys(m)))
    both(lambda m: m.numpy.array_equal(keys(m), keys(m)[::-1], equal_nan=True))
    both(lambda m: m.numpy.array_equal(keys(m), keys(m), equal_nan=True))
    both(lambda m: m.lax.eq(keys(m), keys(m)[0]))
    both(lambda m: keys(m) != 1)


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


def test_keys_by_their_dtype():
    both(lambda m: m.random.key_data(m.random.key(7, dtype=m.random.key_dtype())), jit=False)
    both(lambda m: m.random.key_data(m.random.key(7, dtype="threefry2x32")), jit=False)
    both(lambda m: str(m.random.key_dtype("threefry2x32")), jit=False)
    wrap = lambda m, **o: m.random.key_data(m.random.wrap_key_data(m.random.key_data(m.random.key(7)), **o))
    both(lambda m: wrap(m, dtype=m.random.key(0).dtype), jit=False)
    both(lambda m: wrap(m, dtype="threefry2x32", impl="threefry2x32"), jit=False)
