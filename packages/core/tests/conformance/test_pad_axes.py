"""`pad_axes`: results for several lengths of one bucket are those of the function itself, also if the padding holds nan
and the largest integers."""

import functools
import inspect
import re
import warnings

import numpy as np
import pytest

import phlox
import phlox.export
import phlox.numpy as jnp
from everyday_programs import EVERYDAY
from field_programs import FIELDS
from judge import FACTOR
from padding_poison import poison  # noqa: F401  (a fixture of all tests here)
from phlox.errors import OptionError, ShapeError, SizesWarning, TreeError
from sized_programs import FURTHER, SIZED
from symbolic_programs import PROGRAMS, arrays

ALL = SIZED | FURTHER | EVERYDAY | FIELDS
#: Programs that have no types for symbolic shapes, or raise for other reasons.
REFUSED = {"split", "range"}
RAISE = {"bad reshape", "bad product", "bad sum"}


def with_parameters(f, count):
    """`f` as a function of as many parameters, which have names."""
    parameters = [inspect.Parameter(f"x{i}", inspect.Parameter.POSITIONAL_OR_KEYWORD) for i in range(count)]

    def function(*args):
        return f(phlox, *args)

    function.__signature__ = inspect.Signature(parameters)
    return function


def names_of(text):
    """Names of the axes of a type such as ``f32[b, 2*t, 4]``; each polynomial has a name of its own."""
    lengths = text.removesuffix("]").partition("[")[2].split(",")
    return tuple(None if n.strip().isdigit() else "n" + re.sub(r"\W+", "_", n.strip()) for n in lengths)


def check_equal(actual, expected, rtol=1e-5, atol=2e-5):
    for x, y in zip(phlox.tree.leaves(actual), phlox.tree.leaves(expected), strict=True):
        assert (x.shape, x.dtype, x.weak_type) == (y.shape, y.dtype, y.weak_type)
        if x.dtype.kind in "fcV":
            np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in RAISE])
def test_programs(name):
    f, *types = PROGRAMS[name]
    function = with_parameters(f, len(types))
    padded = phlox.pad_axes(function, {f"x{i}": names_of(text) for i, text in enumerate(types)})
    exact = phlox.jit(function)
    refused = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for b, t in ((5, 2), (6, 3), (7, 5)):
            args = list(arrays(types, b, t))
            check_equal(padded(*args), exact(*args))
        refused = [w for w in caught if w.category is SizesWarning]
    assert len(refused) == (name in REFUSED), [str(w.message) for w in refused]


# --- whole programs


@pytest.mark.whole
@pytest.mark.parametrize("name", ALL)
def test_sized_programs(name):
    """Values and gradients, for lengths of three buckets; no operation is refused."""
    program, rng = ALL[name], np.random.default_rng(len(name))

    def function(*args):
        return program.function(phlox, *args)

    parameters = [*inspect.signature(program.function).parameters.values()][1:]
    function.__signature__ = inspect.Signature(parameters)
    padded, exact = phlox.pad_axes(function, program.sizes), phlox.jit(function)

    def total(*args, of=function):
        return sum(x.sum() for x in phlox.tree.leaves(of(*args)))

    with warnings.catch_warnings():
        warnings.simplefilter("error", SizesWarning)
        for n in [1, 64, *rng.integers(2, 40, max(1, round(2 * FACTOR)))]:
            args = program.arguments(int(n), rng)
            check_equal(padded(*args), exact(*args), rtol=1e-5, atol=1e-5)
            if program.by is not None:
                gradient = phlox.grad(lambda *args: total(*args, of=padded), program.by)(*args)
                check_equal(gradient, phlox.grad(total, program.by)(*args), rtol=2e-4, atol=2e-4)


# --- values and lengths where padding could show


def order(x):
    k = 3 if x.shape[0] >= 3 else 1
    some = [jnp.sort(x), jnp.argsort(x), jnp.argsort(x, descending=True), jnp.argmax(x), jnp.argmin(x), jnp.median(x)]
    return [*some, x.max(), x.min(), phlox.lax.top_k(x, k), phlox.lax.cummax(x), phlox.lax.cummin(x, reverse=True)]


def totals(x):
    return [x.sum(), x.prod(), (x > 0).any(), (x > 0).all(), phlox.lax.cumsum(x, reverse=True), x[::-1], x @ x]


def probabilities(x):
    return [phlox.nn.softmax(x), phlox.nn.logsumexp(x), x.var(), jnp.nanmean(x), jnp.nanmax(x), jnp.linalg.norm(x)]


VALUES = {
    "least": np.full(7, -np.inf, np.float32),
    "largest": np.full(7, np.inf, np.float32),
    "nan": np.full(7, np.nan, np.float32),
    "signs of nan": np.array([1, -np.nan, np.nan, -np.inf, 0, -0.0, np.inf], np.float32),
    "zeros": np.array([-0.0, 0.0, -0.0, 0.0, -0.0, 0.0, -0.0], np.float32),
    "least integers": np.full(7, -(2**31), np.int32),
    "largest integers": np.full(7, 2**31 - 1, np.int32),
    "bytes": np.array([255, 0, 255, 1, 0, 254, 255], np.uint8),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", VALUES)
def test_extreme_values(name):
    functions = [order, totals, probabilities] if VALUES[name].dtype.kind == "f" else [order, totals]
    for function in functions:
        padded = phlox.pad_axes(function, {"x": "n"})
        for n in (5, 7):
            x = jnp.asarray(VALUES[name][:n])
            check_equal(padded(x), function(x))


DECISIONS = {
    "equal": lambda x: x * 2 if x.shape[0] == 5 else x * 3,
    "unequal": lambda x: x * 2 if x.shape[0] != 6 else x * 3,
    "empty": lambda x: x[5:].sum() if x[5:].shape[0] else x.sum() + 100,
    "one of": lambda x: x * 2 if x.shape[0] in (5, 7) else x * 3,
    "shapes": lambda x: x * 2 if x.shape == (5,) else x * 3,
    "larger": lambda x: x[:6].sum(),
    "a large power": lambda x: x.sum() / x.shape[0] ** 12,
}


@pytest.mark.whole
@pytest.mark.parametrize("name", DECISIONS)
def test_decisions_of_python(name):
    """A branch is taken for all lengths of a bucket, or the call is compiled for its size."""
    padded = phlox.pad_axes(DECISIONS[name], {"x": "n"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SizesWarning)
        for n in (5, 6, 7):
            x = np.arange(1, n + 1, dtype=np.float32)
            check_equal(padded(x), phlox.jit(DECISIONS[name])(x))


# --- calls


def center(x):
    return x - x.mean(0)


def test_one_program_for_each_bucket():
    traces = []

    def function(x, y):
        traces.append(x.shape)
        return (x * y.sum()).sum(0), x.shape[0]

    padded = phlox.pad_axes(function, {"x": "n", "y": "m"}, buckets={"n": [10, 100]})
    for n in (1, 7, 10, 11, 99):
        for m in (3, 4):
            x, y = np.ones((n, 2), np.float32), np.ones(m, np.float32)
            total, length = padded(x, y=y)
            assert (total.tolist(), int(length)) == ([n * m] * 2, n)
    assert len(traces) == 3  # 1, 2-10 and 11-100
    padded(np.ones((101, 2), np.float32), np.ones(3, np.float32))
    assert len(traces) == 4


def test_trees_and_keywords():
    def loss(params, batch, *, scale):
        return ((batch["x"] @ params - batch["y"]) ** 2).mean() * scale

    padded = phlox.pad_axes(loss, {"batch": {"x": "n", "y": ("n",)}})
    params = np.ones(3, np.float32)
    for n in (5, 6):
        batch = {"x": np.ones((n, 3), np.float32), "y": np.arange(n, dtype=np.float32)}
        np.testing.assert_allclose(padded(params, batch, scale=2.0), loss(params, batch, scale=2.0), rtol=1e-6)


def test_derivatives_and_batches():
    def f(w, x):
        return jnp.log(jnp.tanh(x @ w).var(0)).sum()

    padded = phlox.pad_axes(f, {"x": "n"})
    w = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    for n in (5, 7):
        x = np.random.default_rng(n).normal(size=(n, 4)).astype(np.float32)
        for transform in (
            lambda g: phlox.grad(g, (0, 1)),
            lambda g: phlox.jacfwd(g, 1),
            lambda g: phlox.hessian(g),
            lambda g: phlox.jit(phlox.grad(g)),
            lambda g: phlox.grad(lambda w, x: phlox.jit(g)(w, x)),
            lambda g: phlox.checkpoint(phlox.grad(g)),
        ):
            check_equal(transform(padded)(w, x), transform(f)(w, x), rtol=1e-4, atol=1e-4)
        xs = np.stack([x, 2 * x, -x])
        check_equal(phlox.vmap(padded, (None, 0))(w, xs), phlox.vmap(f, (None, 0))(w, xs))
        check_equal(
            phlox.vmap(phlox.grad(padded), (None, 0))(w, xs),
            phlox.vmap(phlox.grad(f), (None, 0))(w, xs),
            rtol=1e-4,
            atol=1e-4,
        )


def test_derivatives_where_padding_has_none():
    """The derivative of sqrt at padding is not finite; multiplied by zero it would be nan."""

    def f(scale, x):
        return jnp.sqrt(x * scale).sum()

    x = np.arange(1, 6, dtype=np.float32)
    padded = phlox.pad_axes(f, {"x": "n"})
    check_equal(phlox.grad(padded)(2.0, x), phlox.grad(f)(2.0, x))


def test_extrema_find_their_elements():
    """XLA computes the elements again for a comparison with their maximum, and may round them differently."""

    def f(scale, x):
        return ((x - x.mean(0)) * scale).max(0).sum()

    padded = phlox.pad_axes(f, {"x": "n"}, buckets=[4])
    for seed in range(6):
        rng = np.random.default_rng(seed)
        scale, x = rng.normal(size=4).astype(np.float32), rng.normal(size=(3, 4)).astype(np.float32)
        centered = x - x.mean(0)
        expected = np.take_along_axis(centered, (centered * scale).argmax(0)[None], 0)[0]
        np.testing.assert_allclose(phlox.grad(padded)(scale, x), expected, rtol=1e-5, atol=1e-6)


def test_rows_that_are_reduced_before_their_padding_is_filled():
    def f(x, y):
        bits = x > 0
        values = [x.sum(), x.max(), x.min((0, 2)), x.var((0, 1)), jnp.prod(1 + 0.01 * x), (y * y).sum((0, 2))]
        return [*values, (x * 10).astype(int).sum((1, 2)), (x * 10).astype(int).max(), bits.any(), bits.all((0, 1))]

    padded, exact = phlox.pad_axes(f, {"x": "n", "y": "n, _, m"}, buckets=[8]), phlox.jit(f)
    rng = np.random.default_rng(0)
    for n in (3, 8):
        x, y = (rng.normal(size=shape).astype(np.float32) for shape in ((n, 4, 5), (n, 20, 3)))
        check_equal(padded(x, y), exact(x, y))
        total = lambda x, of: sum(v.sum() for v in of(x, y)[:6])
        gradients = (phlox.grad(functools.partial(total, of=g))(x) for g in (padded, exact))
        check_equal(*gradients, rtol=1e-4)


def test_a_refusal_in_numpy_names_the_line_that_calls_it():
    padded = phlox.pad_axes(lambda x: x[np.triu_indices(x.shape[0])[0]], {"x": "n"})
    with pytest.warns(SizesWarning, match=r"at .*test_pad_axes\.py:\d+"):
        assert padded(np.arange(3.0)).tolist() == [0, 0, 0, 1, 1, 2]


def test_a_refused_operation_warns_once():
    def spectrum(x):
        return jnp.sort(jnp.linalg.eigvals(x).real)

    padded = phlox.pad_axes(spectrum, {"x": "n, n"})
    with pytest.warns(SizesWarning, match=r"eig of f32\[n,n\].*test_pad_axes") as caught:
        for n in (5, 6, 9):
            x = np.diag(np.arange(n, dtype=np.float32))
            np.testing.assert_allclose(padded(x), np.arange(n), rtol=1e-5, atol=1e-5)
    assert len(caught) == 1


def test_closures():
    scale = jnp.float32(3)
    check_equal(phlox.pad_axes(lambda x: x * scale, {"x": "n"})(np.ones(5, np.float32)), jnp.full(5, scale))

    def outer(s, x):
        return phlox.pad_axes(lambda x: (x * s).sum(), {"x": "n"})(x)

    check_equal(phlox.grad(outer)(2.0, np.arange(5.0, dtype=np.float32)), phlox.grad(lambda s: s * 10)(2.0))


def test_no_elements():
    padded = phlox.pad_axes(lambda x: x.sum(0), {"x": "n"})
    assert padded(np.ones((0, 2), np.float32)).tolist() == [0, 0]


def test_numbers_are_drawn_as_without_padding():
    def draw(key, x):
        return x + phlox.random.normal(key, x.shape), phlox.random.permutation(key, x.shape[0])

    padded = phlox.pad_axes(draw, {"x": "n, m"})
    key = phlox.random.key(1)
    for shape in ((5, 3), (7, 4)):
        x = np.zeros(shape, np.float32)
        check_equal(padded(key, x)[0], draw(key, x)[0])


@pytest.mark.parametrize(
    ("sizes", "buckets"),
    [({}, None), ({"z": "n"}, None), ({"x": 3}, None), ({"x": "2n"}, None), ({"x": "n"}, [4, 4]), ({"x": "n"}, [0, 4])],
)
def test_bad_options(sizes, buckets):
    with pytest.raises(OptionError):
        phlox.pad_axes(center, sizes, buckets=buckets)


def test_bad_arguments():
    padded = phlox.pad_axes(lambda x, y: x + y, {"x": "n", "y": "n"})
    with pytest.raises(ShapeError, match="n is 3 in x and 4 in y"):
        padded(np.ones(3), np.ones(4))
    with pytest.raises(ShapeError, match="needs the axes"):
        phlox.pad_axes(center, {"x": "n"})(1.0)
    with pytest.raises(TreeError, match=r"^sizes of x specification must be a tree prefix"):
        phlox.pad_axes(center, {"x": {"a": "n"}})(np.ones(3))
