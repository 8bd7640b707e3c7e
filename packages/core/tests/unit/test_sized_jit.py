"""`jit` with sizes: programs by bucket together with the other options of `jit`."""

import functools
import os
import warnings

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox._api.sizes.buckets import WIDE_CALLS, Buckets
from phlox.errors import OptionError, ShapeError, SizesWarning, UnexpectedTracerError
from phlox.sharding import Mesh, NamedSharding, PartitionSpec

FACTOR = float(os.environ.get("PHLOX_TEST_CASES", "1"))


@pytest.fixture(autouse=True)
def no_refusals():
    with warnings.catch_warnings():
        warnings.simplefilter("error", SizesWarning)
        yield


def rows(n, width=3):
    return np.arange(n * width, dtype=np.float32).reshape(n, width)


def programs(function):
    return function._cache_size()


# --- buckets


def test_thirteen_default_buckets_up_to_4096():
    ranges = {Buckets(None).ranges({"n": n}, {}) for n in range(1, 4097)}
    assert len(ranges) == 13
    elements = sum(Buckets(None).ranges({"n": n}, {})[0][2] for n in range(1, 4097))
    assert elements < 1.12 * sum(range(1, 4097))


def test_wide_buckets_are_the_powers_of_two():
    ranges = {Buckets(None, wide=True).ranges({"n": n}, {}) for n in range(1, 4097)}
    assert sorted(high for ((_, _, high),) in ranges) == [1, 32, 64, 128, 256, 512, 1024, 2048, 4096]


def test_a_bucket_gets_its_own_program_after_some_calls():
    f = phlox.jit(lambda x: (x.sum(0), x * x.shape[0]), sizes={"x": "n"})

    def check(n):
        x = rows(n)
        total, product = f(x)
        np.testing.assert_allclose(total, x.sum(0), rtol=1e-5)
        np.testing.assert_array_equal(product, x * np.float32(n))

    for i in range(WIDE_CALLS):
        check(1100 + i)
    assert [row[0] for row in f.explain().rows] == ["n 2–2048"]
    check(1100)
    assert [row[0] for row in f.explain().rows] == ["n 2–2048", "n 1025–1536"]
    check(2000)  # both programs would pad it to 2048
    check(1101)
    assert programs(f) == 2
    assert [row[1] for row in f.explain().rows] == ["33", "2"]


def test_first_calls_share_a_program():
    f = phlox.jit(lambda x: x.sum() / x.shape[0], sizes={"x": "n"})
    lengths = [2000, *range(2, WIDE_CALLS + 1), 3000, 700, 40]
    for n in lengths:
        np.testing.assert_allclose(f(rows(n)), rows(n).sum() / n, rtol=1e-5)
    assert [row[:2] for row in f.explain().rows] == [("n 2–2048", str(WIDE_CALLS + 2)), ("n 2–4096", "1")]
    # The bucket of lengths up to 32 had one call less than those after which it has its own program.
    for n in (31, 32, 33):
        assert f(rows(n)).shape == ()
    assert [row[:2] for row in f.explain().rows] == [
        ("n 2–2048", str(WIDE_CALLS + 4)),
        ("n 2–4096", "1"),
        ("n 2–32", "1"),
    ]


def test_programs_for_all_lengths_are_not_what_decisions_allow():
    f = phlox.jit(lambda x: x.sum() if x.shape[0] > 40 else x.prod(), sizes={"x": "n"})
    for n in (300, 100, 20):
        x = 1 + np.arange(n, dtype=np.float32) / n
        np.testing.assert_allclose(f(x), x.sum() if n > 40 else x.prod(), rtol=1e-4)
    assert [row[0] for row in f.explain().rows] == ["n 257–512", "n 65–128", "n 2–32"]


def test_a_bucket_of_costly_work_gets_its_own_program_after_few_calls():
    """Attention over 2100 tokens takes 0.1 s longer in a program for 4096 tokens, which is the time of a compilation."""
    f = phlox.jit(lambda x: (phlox.nn.softmax(x @ x.T) @ x).sum(0), sizes={"x": "n"})
    x = np.random.default_rng(0).normal(size=(2100, 4)).astype(np.float32)
    weights = np.exp(x.astype(float) @ x.T)
    for _ in range(3):
        np.testing.assert_allclose(f(x), (weights / weights.sum(1, keepdims=True) @ x).sum(0), rtol=1e-3)
    assert f.explain().rows[-1][0] == "n 2049–2560"


def test_listed_buckets_have_programs_at_once():
    f = phlox.jit(lambda x: x.sum(), sizes={"x": "n"}, buckets=[1536, 2048])
    assert f(jnp.ones(1100)) == 1100
    assert f.explain().rows[0][0] == "n 2–1536"


def test_proportional_names_share_buckets():
    own, wide = (
        {b.ranges({"n": n, "e": 3 * n}, {}) for n in range(1, 4097)} for b in (Buckets(None), Buckets(None, wide=True))
    )
    assert len(own) == 13
    # Programs for wide buckets are those of some buckets, so that there are thirteen programs in all.
    assert {tuple(high for *_, high in ranges) for ranges in wide} <= {
        tuple(high for *_, high in ranges) for ranges in own
    }


@pytest.mark.parametrize("buckets", [None, [5, 10, 100, 5000], {"n": [64, 4096]}])
@pytest.mark.parametrize("multiple", [1, 3, 6, 64, 1000])
def test_ranges_are_disjoint_and_divisible(buckets, multiple):
    lows = {}
    for n in range(1, 4097):
        ((_, low, high),) = Buckets(buckets).ranges({"n": n}, {"n": multiple})
        assert low <= n <= high
        assert high % multiple == 0
        assert lows.setdefault(high, low) == low


# --- options of jit


def test_static_arguments_and_keywords():
    traces = []

    @functools.partial(phlox.jit, sizes={"x": "n"}, static_argnames="power")
    def f(scale, x, *, power=2):
        traces.append(power)
        return scale * (x**power).mean(0)

    for power in (2, 3):
        for n in (5, 6, 7):
            np.testing.assert_allclose(f(2.0, rows(n), power=power), 2 * (rows(n) ** power).mean(0), rtol=1e-5)
            np.testing.assert_allclose(f(scale=2.0, x=rows(n), power=power), f(2.0, rows(n), power=power))
    assert set(traces) == {2, 3}
    assert programs(f) == 2


def test_methods_and_static_objects():
    class Model:
        def __init__(self, power):
            self.power = power

        @functools.partial(phlox.jit, sizes={"x": "n"}, static_argnums=0)
        def total(self, x):
            return (x**self.power).sum()

    assert [float(Model(p).total(np.arange(n, dtype=np.float32))) for p, n in ((1, 5), (2, 3))] == [10.0, 5.0]


def test_donated_arguments_are_deleted():
    step = phlox.jit(lambda state, x: state + x.sum(0), sizes={"x": "n"}, donate_argnums=0)
    state = jnp.zeros(3)
    for n in (3, 5, 40):
        before, state = state, step(state, rows(n))
        assert before.is_deleted()
    np.testing.assert_allclose(state, sum(rows(n).sum(0) for n in (3, 5, 40)))

    shift = phlox.jit(lambda x: x + 1, sizes={"x": "n"}, donate_argnames="x")
    for n in (5, 8):  # padded, and the length of a bucket
        x = jnp.arange(float(n))
        y = shift(x)
        assert x.is_deleted()
        np.testing.assert_array_equal(y, np.arange(n) + 1)
        np.testing.assert_array_equal(shift(y), np.arange(n) + 2)


def test_results_do_not_change_after_donation():
    """Results share memory with the padded arrays that they are cut from."""
    shift = phlox.jit(lambda x: x + 1, sizes={"x": "n"}, donate_argnums=0)
    first = shift(jnp.arange(5.0))
    copies = np.array(first)
    for _ in range(3):
        shift(jnp.arange(8.0))
        shift(jnp.arange(5.0))
    np.testing.assert_array_equal(first, copies)


@pytest.mark.parametrize("count", [2, 3, 8])
def test_a_bucket_divides_the_mesh(count):
    mesh = Mesh(np.array(phlox.devices()[:count]), ("d",))
    split, whole = NamedSharding(mesh, PartitionSpec("d")), NamedSharding(mesh, PartitionSpec())
    f = phlox.jit(lambda w, x: (x @ w, x.mean(0)), sizes={"x": "n"}, in_shardings=(whole, split))
    g = phlox.jit(lambda x: x * 2, sizes={"x": "n"}, in_shardings=split, out_shardings=split)
    h = phlox.jit(lambda x: x[::-1] - x.mean(0), sizes={"x": "n"})
    w = np.ones((3, 2), np.float32)
    for n in (count, 5, 3 * count, 40):
        products, mean = f(w, rows(n))
        np.testing.assert_allclose(products, rows(n) @ w)
        np.testing.assert_allclose(mean, rows(n).mean(0), rtol=1e-6)
        assert products.sharding.device_set == set(mesh.devices.flat)
        doubled = g(rows(n))
        np.testing.assert_array_equal(doubled, rows(n) * 2)
        assert doubled.sharding.spec == (PartitionSpec("d") if n % count == 0 else PartitionSpec(None))
        if n % count == 0:  # an array that lies on the mesh already
            x = phlox.device_put(rows(n), split)
            np.testing.assert_allclose(h(x), rows(n)[::-1] - rows(n).mean(0), rtol=1e-5)
            gradient = phlox.grad(lambda x: (h(x) ** 2).sum())(x)
            np.testing.assert_allclose(
                gradient, phlox.grad(lambda x: ((x[::-1] - x.mean(0)) ** 2).sum())(rows(n)), rtol=1e-4, atol=1e-2
            )
    assert programs(f) <= 3


def test_stages():
    f = phlox.jit(lambda w, x: (x @ w, x.sum()), sizes={"x": "n"})
    w = np.ones((3, 2), np.float32)
    lowered = f.lower(w, phlox.ShapeDtypeStruct((40, 3), np.float32))
    assert lowered.in_avals[0][1].shape == (40, 3)
    assert lowered.out_info[0].shape == (40, 2)
    assert "64x3" in lowered.as_text()
    compiled = lowered.compile()
    for n in (2, 33, 40, 64):
        products, total = compiled(w, rows(n))
        np.testing.assert_allclose(products, rows(n) @ w)
        np.testing.assert_allclose(total, rows(n).sum())
    with pytest.raises(ShapeError, match=r"argument x is f32\[65,3\].*n 2–64"):
        compiled(w, rows(65))
    with pytest.raises(UnexpectedTracerError):
        phlox.grad(lambda w: compiled(w, rows(9))[1])(w)
    assert f.trace(w, rows(40)).lower().as_text() == lowered.as_text()
    assert f.eval_shape(w, rows(9))[0].shape == (9, 2)


def test_explanation():
    f = phlox.jit(lambda x: x * 2, sizes={"x": "n"})
    for n in (4, 4, 64):
        f(np.ones(n, np.float32))
    assert f.explain().rows[0][:3] == ("n 2–32", "2", "88%")
    assert f.explain().rows[1][:3] == ("n 2–64", "1", "0%")
    assert f.explain().title == "<lambda> has 2 programs for 3 calls; 44% of their elements are padding"
    assert f.stats().calls == 3
    f.clear_cache()
    assert programs(f) == 0
    assert f(np.ones(3, np.float32)).shape == (3,)


def test_refusals_are_explained():
    f = phlox.jit(lambda x: jnp.fft.fft(x).real, sizes={"x": "n"})
    with pytest.warns(SizesWarning, match=r"jit: <lambda>.*fft of c64\[n\].*test_sized_jit") as caught:
        for n in (5, 6, 40):
            np.testing.assert_allclose(f(np.ones(n, np.float32)), np.fft.fft(np.ones(n)).real, atol=1e-5)
    assert len(caught) == 1
    assert f.explain().rows[0][0] == "3 sizes of their own"
    assert "fft" in f.explain().title


def test_refusals_name_the_line_of_any_error():
    for function, match in (
        (lambda x: x.sum() / len(x), r"len\(\) of f32\[n\].*test_sized_jit"),
        (lambda x: x * x.shape[0].bit_length(), "AttributeError.*test_sized_jit"),
    ):
        f = phlox.jit(function, sizes={"x": "n"})
        with pytest.warns(SizesWarning, match=match):
            np.testing.assert_allclose(f(np.arange(5, dtype=np.float32)), function(np.arange(5, dtype=np.float32)))


# --- lengths that follow others


def test_lengths_that_follow_a_name():
    def advantage(rewards, values):
        return rewards + values[1:] - values[:-1]

    f = phlox.jit(advantage, sizes={"rewards": "n", "values": "n + 1"})
    pairs = phlox.jit(lambda x, y: (x.reshape(-1, 2) * y[:, None]).sum(1), sizes={"x": "2*n", "y": "n"})
    for n in (1, 2, 7, 40):
        rewards, values = rows(n, 1)[:, 0], rows(n + 1, 1)[:, 0] ** 2
        np.testing.assert_allclose(f(rewards, values), advantage(rewards, values))
        x, y = rows(2 * n, 1)[:, 0], rewards
        np.testing.assert_allclose(pairs(x, y), (x.reshape(-1, 2) * y[:, None]).sum(1))
        gradient = phlox.grad(lambda v: (f(rewards, v) ** 2).sum())(values)
        np.testing.assert_allclose(gradient, phlox.grad(lambda v: (advantage(rewards, v) ** 2).sum())(values))
    assert programs(f) == programs(pairs) == 3
    with pytest.raises(ShapeError, match=r"2\*n cannot be 5, as in x"):
        pairs(rows(5, 1)[:, 0], np.ones(2, np.float32))
    with pytest.raises(ShapeError, match="n is 3 in rewards and 2 in values"):
        f(np.ones(3, np.float32), np.ones(3, np.float32))


# --- transformations around and inside


def test_transformations():
    def loss(w, x):
        def turn(total, row):
            return total + jnp.tanh(row @ w), row.sum()

        total, sums = phlox.lax.scan(turn, 0.0, x)
        return total / x.shape[0] + phlox.grad(lambda w: jnp.sin(x @ w).mean())(w).sum() + sums.max()

    sized = phlox.jit(loss, sizes={"x": "n"})
    w = np.linspace(-1, 1, 3, dtype=np.float32)
    for n in (5, 7):
        x = rows(n) / 10
        xs = np.stack([x, -x])
        for transform in (
            lambda f: f(w, x),
            lambda f: phlox.grad(f)(w, x),
            lambda f: phlox.jit(phlox.grad(f))(w, x),
            lambda f: phlox.vmap(f, (None, 0))(w, xs),
            lambda f: phlox.vmap(phlox.grad(f), (None, 0))(w, xs),
            lambda f: phlox.lax.scan(lambda c, x: (c, f(w, x)), 0, xs)[1],
            lambda f: phlox.jit(phlox.value_and_grad(f), sizes={"x": "n"})(w, x),
        ):
            for a, b in zip(phlox.tree.leaves(transform(sized)), phlox.tree.leaves(transform(loss)), strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


def test_thirteen_programs_for_random_lengths():
    f = phlox.jit(lambda w, x: (jnp.tanh(x @ w).mean(), x[::-1].cumsum(0)[-1], x.max()), sizes={"x": "n"})
    w, rng = np.linspace(-1, 1, 3, dtype=np.float32), np.random.default_rng(0)
    for n in rng.integers(1, 4097, round(100 * FACTOR)):
        x = rng.normal(size=(n, 3)).astype(np.float32)
        mean, total, most = f(w, x)
        np.testing.assert_allclose(mean, np.tanh(x @ w).mean(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(total, x.sum(0), rtol=1e-3, atol=1e-3)
        assert most == x.max()
    assert programs(f) <= 13


def test_a_gradient_has_one_program_for_each_bucket():
    f = phlox.jit(phlox.value_and_grad(lambda w, x: jnp.tanh(x @ w).mean()), sizes={"x": "n"})
    for n in range(3, 40):
        value, gradient = f(np.ones(3, np.float32), rows(n) / 100)
        assert np.isfinite(value) and np.isfinite(np.asarray(gradient)).all()
    assert programs(f) == 2


def test_disabled_jit():
    f = phlox.jit(lambda x: x.sum(), sizes={"x": "n"})
    with phlox.disable_jit():
        assert float(f(np.arange(5, dtype=np.float32))) == 10.0
    assert programs(f) == 0


def test_decisions_of_python_narrow_the_bucket():
    """Lengths from 5 to 8 have one answer, those from 1 to 8 do not."""
    f = phlox.jit(lambda x: phlox.lax.top_k(x, 3 if x.shape[0] > 4 else 1)[0], sizes={"x": "n"})
    for n in (2, 3, 4, 5, 6, 8):
        assert f(np.arange(n, dtype=np.float32)).tolist() == list(range(n - 1, -1, -1))[: 3 if n > 4 else 1]
    assert programs(f) == 3  # 2; 3 and 4; 5 to 8


# --- sizes by example


def test_marked_leading_axes():
    f = phlox.jit(lambda w, x, y: ((x @ w - y["a"]) ** 2).mean(), sizes={"x": "auto", "y": "auto"})
    w = np.ones(3, np.float32)
    for n in (3, 5, 6, 40):
        y = np.ones(n, np.float32)
        np.testing.assert_allclose(f(w, rows(n), {"a": y}), ((rows(n) @ w - y) ** 2).mean(), rtol=1e-6)
    assert programs(f) == 2


def test_axes_by_example():
    """What differs between two calls varies. The first call has a program of its own."""
    f = phlox.jit(lambda w, x: (x @ w).sum(), sizes="auto")
    for n in (3, 5, 6, 7, 40):
        np.testing.assert_allclose(f(np.ones(3, np.float32), rows(n)), rows(n).sum(), rtol=1e-6)
    assert programs(f) == 3


@pytest.mark.parametrize(
    "options",
    [
        {"sizes": {"z": "n"}},
        {"sizes": {}},
        {"sizes": {"x": "n + m"}},
        {"sizes": {"x": "n"}, "buckets": [3, 2]},
        {"sizes": {"x": "n"}, "buckets": {"n": []}},
        {"sizes": {"x": "n"}, "static_argnames": "x"},
        {"buckets": [3]},
        {"sizes": "n"},
    ],
)
def test_bad_options(options):
    with pytest.raises(OptionError):
        phlox.jit(lambda x: x, **options)
