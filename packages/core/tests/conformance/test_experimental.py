"""Modules of jax.experimental: integration of differential equations, layouts, generators that count."""

import jax
import jax.experimental.layout
import jax.experimental.ode
import jax.experimental.random
import numpy as np
import pytest

import judge
import phlox
import phlox.experimental.layout
import phlox.experimental.ode
import phlox.experimental.random
from conformance.harness import agree, outcome, row

T = np.linspace(0.0, 2.0, 5, dtype=np.float32)
START = np.array([1.0, 0.0], np.float32)


def solve(m, y, a, t, **options):
    return m.experimental.ode.odeint(
        lambda y, t, a: m.numpy.stack([y[1], -a * m.numpy.sin(y[0]) + 0.1 * t]),
        y,
        t,
        a,
        rtol=1e-6,
        atol=1e-6,
        **options,
    )


def rotated(m, y, w):
    """The real part of y exp(iwt)."""
    return m.experimental.ode.odeint(lambda y, t, w: 1j * w * y, y, m.numpy.asarray(T), w).real


PROGRAMS = {
    "solution": lambda m: solve(m, m.numpy.asarray(START), 2.0, m.numpy.asarray(T)),
    "tree": lambda m: m.experimental.ode.odeint(
        lambda y, t: {"a": -y["b"], "b": y["a"]}, {"a": m.numpy.float32(1), "b": m.numpy.float32(0)}, m.numpy.asarray(T)
    ),
    "gradient": lambda m: m.grad(lambda y, a, t: solve(m, y, a, t)[1:].sum(), (0, 1, 2))(
        m.numpy.asarray(START), 2.0, m.numpy.asarray(T)
    ),
    "gradient of complex numbers": lambda m: m.grad(lambda y, w: rotated(m, y, w).sum(), (0, 1))(
        m.numpy.asarray(1 + 0.5j), 2.0
    ),
    "batch": lambda m: m.vmap(lambda a: solve(m, m.numpy.asarray(START), a, m.numpy.asarray(T))[-1])(
        m.numpy.arange(3.0)
    ),
    "few steps": lambda m: solve(m, m.numpy.asarray(START), 2.0, m.numpy.asarray(T), hmax=0.5),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_odeint(name):
    mine, theirs = (PROGRAMS[name](m) for m in (phlox, jax))
    assert phlox.tree.leaves(phlox.tree.map(np.shape, mine)) == jax.tree.leaves(jax.tree.map(np.shape, theirs))
    for a, b in zip(phlox.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_odeint_refuses():
    for y0 in (1, {"a": np.arange(2)}):  # whole numbers would stay as they are
        with pytest.raises(TypeError, match="odeint: y0 has an array i32"):
            phlox.experimental.ode.odeint(lambda y, t: y, y0, phlox.numpy.asarray(T))
    with pytest.raises(TypeError, match="odeint requires ndarray or scalar"):
        phlox.experimental.ode.odeint(lambda y, t: y, 1.0, [0.0, 1.0])
    with pytest.raises(TypeError, match="must be arrays or scalars"):
        phlox.experimental.ode.odeint(lambda y, t, s: y, 1.0, phlox.numpy.asarray(T), "a")
    with pytest.raises(TypeError, match="must be an array of floats"):
        phlox.experimental.ode.odeint(lambda y, t: y, 1.0, phlox.numpy.arange(3))


def test_former_names():
    assert phlox.experimental.layout.Layout((0, 1)).major_to_minor == (0, 1)
    with phlox.experimental.enable_x64():
        assert phlox.numpy.ones(1).dtype == np.float64
        with phlox.experimental.disable_x64():
            assert phlox.numpy.ones(1).dtype == np.float32


def both(case, tolerance=2e-6):
    agree(outcome(case, phlox, ()), outcome(case, jax, ()), row("experimental", tolerance=tolerance), "")


def children(m):
    """Of a generator: a list of others, and one object over which vmap maps."""
    rng = m.experimental.random.stateful_rng(7)
    listed = [child.integers(0, 10, 2) for child in rng.spawn(2)]
    mapped = m.vmap(lambda r, x: x + r.uniform() + r.uniform())(rng.split(3), m.numpy.zeros(3))
    return listed, mapped, rng.random(dtype="float32")


def under_jit(m):
    rng = m.experimental.random.stateful_rng(42)
    draw = m.jit(lambda: rng.uniform())
    passed = m.jit(lambda rng, x: rng.normal(x, 2.0))
    return draw(), draw(), passed(rng, m.numpy.arange(3.0)), rng.uniform()


DRAWS = {
    "uniform": lambda m, rng: (rng.uniform(), rng.uniform(-1, np.float32([1, 2])), rng.uniform(size=3)),
    "normal": lambda m, rng: (
        rng.normal(),
        rng.normal(np.zeros((2, 1), np.float32), np.float32([1, 2]), dtype="float32"),
    ),
    "integers": lambda m, rng: (rng.integers(5), rng.integers(2, 9, (2, 3)), rng.integers(0, 100, dtype="uint8")),
    "random": lambda m, rng: (rng.random(), rng.random((2, 2)), rng.random(3, "float16")),
    "key": lambda m, rng: (m.random.key_data(rng.key()), m.random.key_data(rng.key((2, 3)))),
}


@pytest.mark.parametrize("impl", [None, "rbg"])
@pytest.mark.parametrize("name", DRAWS)
def test_stateful_rng(name, impl):
    both(lambda m: DRAWS[name](m, m.experimental.random.stateful_rng(3, impl=impl)))


@pytest.mark.parametrize("program", [children, under_jit])
def test_stateful_rng_in_programs(program):
    both(program)


def test_stateful_rng_refuses():
    rng = phlox.experimental.random.stateful_rng(0)
    assert isinstance(rng, phlox.experimental.random.StatefulPRNG)
    with pytest.raises(ValueError, match="split generator"):
        rng.split(2).uniform()
    with pytest.raises(TypeError, match="seed"):
        phlox.jit(lambda: phlox.experimental.random.stateful_rng().uniform())()
    assert phlox.experimental.random.stateful_rng().uniform() != phlox.experimental.random.stateful_rng().uniform()


def test_layouts_inside_of_programs():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)

    def f(m, x):
        layout = m.experimental.layout
        y = layout.with_layout_constraint({"a": x, "b": x.T}, layout.Layout((1, 0)))
        return (m.numpy.sin(y["a"]) * 2).sum() + y["b"].sum()

    judge.agree(lambda m, x: m.jit(lambda x: m.value_and_grad(lambda x: f(m, x))(x))(x), x)
    judge.agree(lambda m, x: m.jit(m.vmap(lambda x: f(m, x)))(x), x[None])
    judge.raises_alike(lambda m: m.experimental.layout.with_layout_constraint(x, (1, 0)))
    judge.raises_alike(lambda m: m.experimental.layout.with_layout_constraint(x, m.experimental.layout.Layout((0,))))
    text = phlox.jit(lambda x: f(phlox, x)).lower(x).compile().as_text()
    assert "f32[2,3]{0,1}" in text
