"""What the kernels return has the bits of jax: nan payloads, signed zeros, ties, positions."""

import threading

import jax
import ml_dtypes
import numpy as np
import pytest

import judge
import phlox
import phlox.numpy as jnp
from phlox import lax
from sorted_bits import bits, derivatives, drawn, same

NARROW = [
    np.bool_,
    np.int8,
    np.int16,
    np.int32,
    np.uint8,
    np.uint16,
    np.uint32,
    np.float16,
    ml_dtypes.bfloat16,
    np.float32,
]
WIDE = [np.int64, np.uint64, np.float64]
#: with nans as they are in jax 0.10
BFLOAT16 = pytest.mark.skipif(
    not jax.__version__.startswith("0.10."), reason="later versions of jax keep the payloads of bfloat16's nans"
)
SHAPES = [
    ((2,), 0),
    ((40,), 0),
    ((600,), 0),
    ((3, 33), 1),
    ((70, 33), 0),
    ((2, 17, 3), 1),
    ((33, 5, 40), 1),
    ((20, 600), 1),
]
#: on both sides of where another algorithm begins: comparisons, the network, digits, parts of a row on threads
LENGTHS = [2, 3, 15, 16, 17, 255, 257, 511, 512, 513, 2048, 4095, 4096, 4097, 70_000, 140_001]


def kinds(*them):
    """The parameter `kind` of a test."""
    cases = [pytest.param(k, id=np.dtype(k).name, marks=BFLOAT16 if k is ml_dtypes.bfloat16 else ()) for k in them]
    return pytest.mark.parametrize("kind", cases)


def uses(f, *args):
    """Whether the program of `f` calls a kernel."""
    return "phlox_kernels" in phlox.jit(f).lower(*args).as_text()


@kinds(*NARROW, *WIDE)
def test_sorts_have_the_bits_of_jax(kind):
    random = np.random.default_rng(0)
    with phlox.enable_x64(True), jax.enable_x64(True):
        for shape, axis in SHAPES:
            x = drawn(random, kind, shape)
            assert uses(lambda x, axis=axis: jnp.sort(x, axis), x)
            same(jnp.sort(x, axis), jax.numpy.sort(x, axis))
            same(jnp.argsort(x, axis), jax.numpy.argsort(x, axis))
        same(jnp.sort(x, descending=True), jax.numpy.sort(x, descending=True))
        same(jnp.argsort(x, descending=True), jax.numpy.argsort(x, descending=True))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("rows", [1, 3, 21])
def test_every_length_is_sorted(length, rows):
    random = np.random.default_rng(length)
    x = drawn(random, np.float32, (rows, length))
    if length * rows > 300_000:
        x = x[:3]
    same(jnp.sort(x), jax.numpy.sort(x))
    same(jnp.argsort(x), jax.numpy.argsort(x))
    across = np.ascontiguousarray(x.T)
    same(jnp.sort(across, 0), np.asarray(jnp.sort(x)).T)
    same(jnp.argsort(across, 0), np.asarray(jnp.argsort(x)).T)


@kinds(*(kind for kind in NARROW + WIDE if np.dtype(kind).kind in "iuf"))
@pytest.mark.parametrize("count", [1, 2, 4095, 4096, 4097])
def test_keys_close_to_each_other_are_counted(kind, count):
    random = np.random.default_rng(count)
    # Neighbours in order, around zero: of floats, the smallest numbers of both signs, which are zero to jax.
    integer = np.dtype(f"i{np.dtype(kind).itemsize}")
    low = -min(count // 2, 100) if np.dtype(kind).kind != "u" else 0
    numbers = random.integers(low, min(low + count, np.iinfo(integer).max), (2, 9000), endpoint=count == 1)
    x = numbers.astype(integer).view(kind) if np.dtype(kind).kind == "f" else numbers.astype(kind)
    with phlox.enable_x64(True), jax.enable_x64(True):
        same(jnp.sort(x), jax.numpy.sort(x))
        same(jnp.sort(x.T, 0), jax.numpy.sort(x.T, 0))
        long = np.tile(x.ravel(), 9)
        same(jnp.sort(long), jax.numpy.sort(long))


@kinds(np.uint8, np.int16, np.int32, np.uint64, np.float64, np.float16)
def test_random_lengths_are_sorted(kind):
    random = np.random.default_rng(5)
    with phlox.enable_x64(True):
        for length in random.integers(2, 9000, 6 * judge.CASES):
            x = drawn(random, kind, (random.integers(1, 40), length))
            order = np.asarray(jnp.argsort(x))
            values = np.asarray(jnp.sort(x))
            # In stable order, the sorted elements are those at the positions.
            assert np.array_equal(np.sort(order), np.broadcast_to(np.arange(length), x.shape))
            taken = np.take_along_axis(x, order, -1)
            assert np.array_equal(bits(values), bits(taken))
            if np.dtype(kind).kind in "iu":
                assert np.array_equal(order, np.argsort(x, kind="stable"))


@pytest.mark.parametrize("num_keys", [1, 2, 3])
def test_sorts_of_several_operands_have_the_bits_of_jax(num_keys):
    random = np.random.default_rng(1)
    with phlox.enable_x64(True), jax.enable_x64(True):
        for shape, axis in SHAPES:
            drawn_kinds = random.choice([*map(np.dtype, NARROW + WIDE), np.dtype(np.complex64)], 4)
            xs = [
                drawn(random, kind, shape) if kind.kind != "c" else random.integers(0, 3, shape).astype(kind) * (1 + 1j)
                for kind in drawn_kinds
            ]
            options = {"dimension": axis, "num_keys": num_keys}
            same(lax.sort(xs, **options), jax.lax.sort(xs, **options))
            assert uses(lambda xs, options=options: lax.sort(xs, **options), xs)


def test_what_is_left_to_the_compiler():
    x, pair = np.ones(4, np.float32), [np.ones(4, np.float32)] * 2
    assert not uses(lambda x: lax.sort(x, is_stable=False), x)
    assert not uses(lambda xs: lax.sort(xs, is_stable=False), pair)
    assert uses(lambda x: lax.sort(x, is_stable=False), x.astype(np.int32))
    assert not uses(jnp.sort, np.ones(4, ml_dtypes.float8_e5m2))
    with phlox.enable_x64(True):
        assert not uses(lambda x: lax.top_k(x, 2), x.astype(np.float64))
    for shape in ((0,), (1,), (0, 3), (3, 0)):
        x = np.ones(shape, np.float32)
        assert not uses(jnp.sort, x)
        same(jnp.sort(x), jax.numpy.sort(x))
        same(jnp.argsort(x), jax.numpy.argsort(x))


@kinds(*NARROW[1:])
def test_top_k_has_the_bits_of_jax(kind):
    random = np.random.default_rng(2)
    for shape, axis in [((40,), 0), ((3, 700), 1), ((50, 4), 0), ((2, 100, 3), 1)]:
        x = drawn(random, kind, shape)
        for k in (1, 2, 9, 20, 40):
            assert uses(lambda x, k=k, axis=axis: lax.top_k(x, k, axis=axis), x)
            same(lax.top_k(x, k, axis=axis), jax.lax.top_k(x, k, axis=axis))
    x = drawn(random, kind, (300, 3))
    same(lax.top_k(x, 0), jax.lax.top_k(x, 0))
    for x in (np.sort(drawn(random, kind, (2, 5000))), np.zeros((2, 5000), kind)):
        for k in (1, 100, 4000, 5000):
            same(lax.top_k(x, k), jax.lax.top_k(x, k))


def test_functions_that_sort():
    random = np.random.default_rng(3)
    x = random.normal(size=(30, 200)).astype(np.float32)
    few = random.integers(0, 9, 500).astype(np.int32)
    for f in (
        lambda m: m.numpy.median(x, axis=1),
        lambda m: m.numpy.quantile(x, 0.3, axis=0),
        lambda m: m.numpy.unique(few, return_index=True, return_inverse=True, return_counts=True),
        lambda m: m.numpy.lexsort((few, few[::-1])),
        lambda m: m.random.permutation(m.random.key(0), 1000),
        lambda m: m.random.choice(m.random.key(1), 1000, (50,), replace=False),
        lambda m: m.numpy.sort(x[:5] + 1j * x[5:10]),
    ):
        same(jax.tree.leaves(f(phlox)), jax.tree.leaves(f(jax)))


def test_transformed_sorts_have_the_bits_of_jax():
    same(*(derivatives(m, np.random.default_rng(4)) for m in (phlox, jax)))
    x = drawn(np.random.default_rng(5), np.float32, (5, 30))
    same(*(m.vmap(lambda x, m=m: (m.numpy.sort(x), *m.lax.top_k(x, 3)), in_axes=1)(x) for m in (phlox, jax)))


def test_programs_on_several_threads():
    random = np.random.default_rng(6)
    arrays = [
        random.normal(size=shape).astype(np.float32) for shape in ((200_000,), (300, 1000), (1000, 300), (50, 9000))
    ]
    sort, argsort, wrong = phlox.jit(jnp.sort), phlox.jit(jnp.argsort), []
    expected = [(np.sort(x), np.argsort(x, kind="stable")) for x in arrays]

    def work(offset):
        for turn in range(6):
            i = (turn + offset) % len(arrays)
            if not all(map(np.array_equal, (sort(arrays[i]), argsort(arrays[i])), expected[i])):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
