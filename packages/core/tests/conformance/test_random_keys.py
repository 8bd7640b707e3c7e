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


@pytest.mark.parametrize("data", [0, 1, 7, 2**31 - 1, 2**32 - 1, -1, np.uint8(3), np.int64(5), 2.5, 2**40, -5.0, 1e30])
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


FILLED = {
    "full": lambda m, k: (m.numpy.full((2,), k), m.numpy.full((2, 2), k, k.dtype), m.lax.full((2,), 3, k.dtype)),
    "full_like": lambda m, k: (m.numpy.full_like(k[None], m.random.key(5)), m.lax.full_like(k, 3)),
    "zeros": lambda m, k: (m.numpy.zeros(3, k.dtype), m.numpy.zeros_like(k), m.numpy.empty_like(k, shape=(2,))),
    "ones": lambda m, k: (m.numpy.ones((), k.dtype), m.jit(m.numpy.ones_like)(m.random.split(k))),
    "vmap": lambda m, k: m.vmap(m.numpy.zeros_like)(m.random.split(k)),
    "device_get": lambda m, k: m.device_get({"key": k})["key"],
}


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("name", FILLED)
def test_arrays_filled_with_keys(name, impl):
    case = lambda m: m.tree.map(m.random.key_data, FILLED[name](m, m.random.key(7, impl=impl)))
    agree(outcome(case, phlox, ()), outcome(case, jax, ()), EXACT, name)


def test_keys_have_no_order_and_are_not_filled_with_fractions():
    keys = phlox.random.split(phlox.random.key(0), (2, 2))
    for wrong in (
        phlox.numpy.sort,
        phlox.numpy.argsort,
        phlox.lax.sort,
        lambda k: phlox.numpy.full_like(k, 0.5),
        lambda k: phlox.numpy.dot(k, k),
        lambda k: k.at[0].add(k[1]),
        lambda k: k.at[np.array([0])].multiply(k[:1]),
        lambda k: k.at[0].min(k[1]),
        lambda k: k.at[0].max(k[1]),
        phlox.numpy.abs,
        phlox.numpy.max,
        phlox.numpy.any,
        phlox.numpy.nonzero,
        phlox.numpy.trace,
        lambda k: phlox.ops.segment_sum(k, np.array([0, 1])),
    ):
        with pytest.raises(phlox.errors.DtypeError):
            wrong(keys)
    with pytest.raises(phlox.errors.DtypeError):
        phlox.lax.sort((np.arange(2), keys[0]), num_keys=1)


def test_keys_by_their_dtype():
    both(lambda m: m.random.key_data(m.random.key(7, dtype=m.random.key_dtype())), jit=False)
    both(lambda m: m.random.key_data(m.random.key(7, dtype="threefry2x32")), jit=False)
    both(lambda m: str(m.random.key_dtype("threefry2x32")), jit=False)
    wrap = lambda m, **o: m.random.key_data(m.random.wrap_key_data(m.random.key_data(m.random.key(7)), **o))
    both(lambda m: wrap(m, dtype=m.random.key(0).dtype), jit=False)
    both(lambda m: wrap(m, dtype="threefry2x32", impl="threefry2x32"), jit=False)


# --- keys used twice, which the flag debug_key_reuse refuses --------------------------------------------

draw = lambda m, k: m.random.normal(k)


def chain(m, k):
    """A new key for the next turn of a loop, and a number."""
    k, now = m.random.split(k)
    return k, draw(m, now)


#: programs of one key, which are traced under `jit`
TRACED = {
    "once": lambda m, k: draw(m, k),
    "twice": lambda m, k: draw(m, k) + m.random.bits(k),
    "after split": lambda m, k: (m.random.split(k), draw(m, k)),
    "before split": lambda m, k: (draw(m, k), m.random.split(k)),
    "folded": lambda m, k: draw(m, m.random.fold_in(k, 1)) + draw(m, m.random.fold_in(k, 2)) + draw(m, k),
    "cloned": lambda m, k: draw(m, k) + draw(m, m.random.clone(k)),
    "a clone twice": lambda m, k: [draw(m, c) + draw(m, c) for c in [m.random.clone(k)]],
    "parts": lambda m, k: [draw(m, part) for part in m.random.split(k, 3)],
    "a part twice": lambda m, k: [draw(m, keys[0]) + draw(m, keys[0]) for keys in [m.random.split(k)]],
    "a part, then the rest": lambda m, k: [
        (draw(m, keys[0]), m.vmap(m.random.normal)(keys[1:])) for keys in [m.random.split(k, 3)]
    ],
    "a part, then all": lambda m, k: [
        (draw(m, keys[0]), m.vmap(m.random.normal)(keys)) for keys in [m.random.split(k, 3)]
    ],
    "reshaped": lambda m, k: [
        draw(m, keys[0, 0]) + draw(m, keys[1, 1]) for keys in [m.random.split(k, 4).reshape(2, 2)]
    ],
    "reshaped, a part twice": lambda m, k: [
        draw(m, keys[0, 1]) + draw(m, keys[0, 1]) for keys in [m.random.split(k, 4).reshape(2, 2)]
    ],
    "broadcast": lambda m, k: (m.vmap(m.random.normal)(m.numpy.broadcast_to(k, (3,))), draw(m, k)),
    "stored": lambda m, k: (m.random.split(m.random.key(1)).at[0].set(k), draw(m, k)),
    "words": lambda m, k: (m.random.key_data(k), draw(m, k), draw(m, m.random.wrap_key_data(m.random.key_data(k)))),
    "compared": lambda m, k: (k == k, draw(m, k)),
    "a call": lambda m, k: m.jit(lambda k: draw(m, k))(k) + draw(m, k),
    "a call that returns it": lambda m, k: draw(m, m.jit(lambda k: k)(k)) + draw(m, k),
    "keys made inside": lambda m, k: [draw(m, made) + draw(m, made) for made in [m.random.key(3)]],
    "not read": lambda m, k: (draw(m, k), draw(m, k), 1)[2],
    "one of two branches": lambda m, k: m.lax.cond(True, lambda: draw(m, k), lambda: m.random.uniform(k)),
    "a branch, then again": lambda m, k: m.lax.cond(True, lambda: draw(m, k), lambda: 0.0) + draw(m, k),
    "branches without draws": lambda m, k: m.lax.cond(True, lambda k: 1.0, lambda k: 0.0, k) + draw(m, k),
    "a branch returns it": lambda m, k: draw(m, m.lax.cond(True, lambda k: k, lambda k: k, k)) + draw(m, k),
    "branches return parts": lambda m, k: draw(
        m, m.lax.cond(True, lambda k: m.random.split(k)[0], lambda k: m.random.split(k)[1], k)
    ),
    "scan, chained": lambda m, k: m.lax.scan(lambda k, _: chain(m, k), k, None, length=3),
    "scan, not chained": lambda m, k: m.lax.scan(lambda k, _: (k, draw(m, k)), k, None, length=3),
    "scan, closed over": lambda m, k: m.lax.scan(lambda c, _: (c, draw(m, k)), 0, None, length=3),
    "scan, folded": lambda m, k: m.lax.scan(lambda i, _: (i + 1, draw(m, m.random.fold_in(k, i))), 0, None, length=3),
    "scan, rows": lambda m, k: m.lax.scan(lambda c, k: (c, draw(m, k)), 0, m.random.split(k, 3)),
    "scan, rows again": lambda m, k: [
        (m.lax.scan(lambda c, k: (c, draw(m, k)), 0, keys), draw(m, keys[0])) for keys in [m.random.split(k, 3)]
    ],
    "while, chained": lambda m, k: draw(m, m.lax.fori_loop(0, 3, lambda i, k: chain(m, k)[0], k)),
    "while, then again": lambda m, k: (m.lax.fori_loop(0, 3, lambda i, k: chain(m, k)[0], k), draw(m, k)),
    "while, in the condition": lambda m, k: m.lax.while_loop(lambda k: draw(m, k) < 0, lambda k: k, k),
    "while, in both": lambda m, k: m.lax.while_loop(lambda k: draw(m, k) < 0, lambda k: chain(m, k)[0], k),
    "vmap, closed over": lambda m, k: m.vmap(lambda x: x + draw(m, k) + draw(m, k))(np.ones(3)),
    "gradients": lambda m, k: m.value_and_grad(lambda x: m.numpy.sin(x * draw(m, k)))(2.0),
    "checkpoint": lambda m, k: m.grad(m.checkpoint(lambda x, k: m.numpy.sin(m.numpy.sin(x * draw(m, k)))))(2.0, k),
    "checkpoint, twice": lambda m, k: m.grad(m.checkpoint(lambda x, k: m.numpy.sin(x * draw(m, k)) * draw(m, k)))(2.0, k),
    "samplers": lambda m, k: [
        sample(key)
        for sample, key in zip(
            (
                lambda k: m.random.ball(k, 2),
                lambda k: m.random.binomial(k, 5, 0.3),
                lambda k: m.random.choice(k, 5, (2,), replace=False),
                lambda k: m.random.generalized_normal(k, 2.0),
                lambda k: m.random.multinomial(k, 5, np.ones(3) / 3),
                lambda k: m.random.normal(k, dtype="complex64"),
                lambda k: m.random.poisson(k, 3.0),
                lambda k: m.random.t(k, 2.0),
                lambda k: m.random.wald(k, 1.0),
            ),
            m.random.split(k, 9),
            strict=True,
        )
    ],
}  # fmt: skip

#: programs that are run operation by operation
RUN = {
    "once": lambda m, k: draw(m, k),
    "twice": lambda m, k: draw(m, k) + draw(m, k),
    "old keys": lambda m, k: [draw(m, old) + draw(m, old) for old in [m.random.PRNGKey(0)]],
    "cloned": lambda m, k: draw(m, k) + draw(m, m.random.clone(k)),
    "folded": lambda m, k: draw(m, k) + draw(m, m.random.fold_in(k, 1)),
    "split twice": lambda m, k: (m.random.split(k), m.random.split(k)),
    "parts": lambda m, k: [draw(m, keys[0]) + draw(m, keys[-1]) for keys in [m.random.split(k)]],
    "a part twice": lambda m, k: [draw(m, keys[0]) + draw(m, keys[0]) for keys in [m.random.split(k)]],
    "unpacked": lambda m, k: [draw(m, part) for part in m.random.split(k)],
    "a part, then all": lambda m, k: [
        (draw(m, keys[0]), m.vmap(m.random.normal)(keys)) for keys in [m.random.split(k)]
    ],
    "jit, twice": lambda m, k: [f(k) + f(k) for f in [m.jit(lambda k: draw(m, k))]],
    "jit, not drawn": lambda m, k: [f(k) + f(k) for f in [m.jit(lambda k: 1)]],
    "jit, drawn and not read": lambda m, k: [f(k) + f(k) for f in [m.jit(lambda k: (draw(m, k), 1)[1])]],
    "jit, closed over": lambda m, k: [f(1.0) + f(2.0) for f in [m.jit(lambda x: x + draw(m, k))]],
    "jit returns it": lambda m, k: draw(m, m.jit(lambda k: (k, draw(m, k)))(k)[0]),
    "jit returns parts": lambda m, k: [draw(m, part) for part in m.jit(m.random.split)(k)],
    "differentiated": lambda m, k: (m.grad(lambda x: x * draw(m, k))(2.0), draw(m, k)),
}  # fmt: skip


def refused(m, program, trace):
    with m.debug_key_reuse(True):
        key = m.random.key(0)
        try:
            m.jit(functools.partial(program, m)).trace(key) if trace else program(m, key)
        except m.errors.KeyReuseError:
            return True
    return False


@pytest.mark.whole
@pytest.mark.parametrize("trace", [True, False], ids=["traced", "run"])
def test_keys_used_twice(trace):
    programs = TRACED if trace else RUN
    ours, theirs = ({name: refused(m, f, trace) for name, f in programs.items()} for m in (phlox, jax))
    assert ours == theirs
    assert set(ours.values()) == {True, False}


def test_what_keys_used_twice_are_told():
    f = phlox.jit(lambda k: draw(phlox, k))
    with phlox.debug_key_reuse(True):
        key = phlox.random.key(0)
        f(key)
        with pytest.raises(
            phlox.errors.KeyReuseError, match=r"Previously-consumed key .* jit-compiled function at index 0"
        ):
            f(key)
        try:
            f(key)
        except phlox.errors.KeyReuseError as error:
            assert "first used at" in error.what and "test_random_keys.py" in error.what
    f(key)  # without the flag


#: what jax refuses although no key is used twice; what it does not notice
BETTER = {
    "select": (False, lambda m, k: draw(m, m.numpy.where(True, k, m.random.key(1)))),
    "transposed": (False, lambda m, k: m.vmap(m.vmap(m.random.normal))(m.random.split(k, (2, 3)).T)),
    "stacked": (False, lambda m, k: m.vmap(m.random.normal)(m.numpy.stack([k, m.random.key(1)]))),
    "mapped branches": (
        False,
        lambda m, k: m.vmap(
            lambda p, k: m.lax.cond(p, m.random.normal, lambda k: m.random.uniform(m.random.split(k)[0]), k)
        )(np.array([True, False]), m.random.split(k)),
    ),
    "custom rule": (True, lambda m, k: _custom(m)(1.0, k) + draw(m, k)),
    "custom rule once": (False, lambda m, k: _custom(m)(1.0, k)),
}


def _custom(m):
    f = m.custom_jvp(lambda x, k: x * draw(m, k))
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    return f


def test_keys_used_twice_beyond_jax():
    assert {name: refused(phlox, f, True) for name, (_, f) in BETTER.items()} == {
        name: wanted for name, (wanted, _) in BETTER.items()
    }
    with phlox.debug_key_reuse(True):
        key, x = phlox.random.key(0), 2.0
        phlox.grad(phlox.checkpoint(lambda x: x * draw(phlox, key)))(x)  # jax refuses the second half
        with pytest.raises(phlox.errors.KeyReuseError):
            draw(phlox, phlox.device_put(key))
