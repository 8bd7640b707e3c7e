"""Values that are compared with elements selected from them have the same bits on both sides."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax

at_least, largest = phlox.jit(lambda y, z: y >= z), phlox.jit(lambda y: y.max(0))

#: comparisons of `y` with elements of `y`
COMPARISONS = {
    "cummax": lambda y: (y >= lax.cummax(y)).sum(),
    "max of rows": lambda y: (y >= y.max(1, keepdims=True)).sum(),
    "sort": lambda y: (jnp.sort(y, 0)[0] == y).sum(),
    "top_k": lambda y: (y == lax.top_k(y.T, 1)[0][:, 0]).sum(),
    "median": lambda y: (y <= jnp.median(y, 0)).sum(),
    "argmax": lambda y: (jnp.take_along_axis(y, y.argmax(0)[None], 0) == y.max(0)).sum(),
    "gather": lambda y: (y == y[y[:, 0].argmax()]).sum(),
    "pairs": lambda y: (y[:, None] == y[None]).sum(),
    "difference": lambda y: jnp.isnan(jnp.sqrt(y.max(0) - y)).sum(),
    "maximum of a branch": lambda y: (
        lax.cond(y.shape[0] * y[0, 0] > 1e9, jnp.zeros_like, lambda y: y, y.max(0)).sum() - y.max(0).sum()
    ),
    "loop": lambda y: lax.fori_loop(0, 3, lambda i, n: n + (y >= y.max(0)).sum(), 0),
    "jit": lambda y: at_least(y, largest(y)).sum(),
}


def center(x, scale):
    return (x - x.mean(0)) * scale


def draw(seed, n):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 4)).astype(np.float32), rng.normal(size=4).astype(np.float32)


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name):
    compare = COMPARISONS[name]
    exact = phlox.jit(lambda x, scale: compare(center(x, scale)))
    padded = phlox.jit(lambda x, scale: compare(center(x, scale)), sizes={"x": "n"})
    for seed in range(8):
        x, scale = draw(seed, 57)
        # Each operation by itself: all readers of `y` read one array.
        expected = int(compare(phlox.jit(center)(x, scale)))
        assert (int(exact(x, scale)), int(padded(x, scale))) == (expected, expected)


def test_results_that_a_caller_compares():
    for f in (lambda x, scale: center(x, scale), lambda x, scale: center(x, scale) - 1):
        both = lambda x, scale: (y := f(x, scale), y.max(0))
        for function in (phlox.jit(both), phlox.jit(both, sizes={"x": "n"})):
            for seed in range(4):
                y, largest = function(*draw(seed, 57))
                assert (np.asarray(y).max(0) == largest).all()


@pytest.mark.parametrize("name", ["max", "min"])
def test_gradients_find_the_extremum(name):
    f = lambda x, scale: getattr(center(x, scale), name)(0).sum()
    for function in (phlox.jit(phlox.grad(f)), phlox.jit(phlox.grad(f), sizes={"x": "n"})):
        for seed in range(4):
            x, scale = draw(seed, 57)
            position = getattr(np, f"arg{name}")((x - x.mean(0)) * scale, 0)
            expected = (np.arange(57)[:, None] == position) * scale - scale / 57
            np.testing.assert_allclose(function(x, scale), expected, rtol=1e-5, atol=1e-6)


PLAIN = {
    "softmax": lambda y: phlox.nn.softmax(y * 2),
    "relu": lambda y: phlox.grad(lambda y: phlox.nn.relu(y * 2).sum())(y),
    "argmax": lambda y: (y * 2).argmax(0),
    "clip": lambda y: (z := y * 2, jnp.clip(z, 0, 1) == z),
    "nan": lambda y: jnp.isnan(y * 2),
    "mean": lambda y: (z := y * 2) > z.mean(),
    "argument": lambda y: y == y.max(),
    "derivative of a gather": lambda y: phlox.grad(lambda y: jnp.maximum((y * 2)[jnp.arange(3)], 0).sum())(y),
    "indices": lambda y: ((top := lax.top_k(y[:, 0] * 2, 2))[0], y[top[1]]),
}


@pytest.mark.parametrize("name", PLAIN)
def test_other_values_stay_in_loops(name):
    assert "stablehlo.while" not in phlox.jit(PLAIN[name]).lower(np.ones((5, 4), np.float32)).as_text()


def test_padded_barriers_stay_barriers():
    f = phlox.jit(lambda x: lax.optimization_barrier(x * 2), sizes={"x": "n"})
    text = f.lower(np.ones(5, np.float32)).as_text()
    assert "optimization_barrier" in text
    assert "stablehlo.case" not in text
