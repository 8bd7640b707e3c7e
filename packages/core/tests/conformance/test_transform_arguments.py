"""What programs written for jax rely on beside numbers: what is accepted, what passes through jit, what errors say."""

import types

import jax
import numpy as np
import pytest

import phlox
from conformance.harness import agree, outcome, row

NEAR = row("relied on")


def struct(m, shape=(3,), dtype="float32"):
    return m.ShapeDtypeStruct(shape, np.dtype(dtype))


def duck(shape=(3,), dtype="float32"):
    return types.SimpleNamespace(shape=shape, dtype=np.dtype(dtype))


def described(tree, m):
    return m.tree.map(lambda s: (tuple(s.shape), str(s.dtype)), tree)


@pytest.fixture
def twice():
    def make(m):
        @m.custom_jvp
        def f(x):
            return 2.0 * x

        f.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
        return f

    return make


SAME = {
    "eval_shape of what has a shape and a dtype": lambda m: described(
        m.eval_shape(lambda a, x: a @ x, duck((2, 3)), duck()), m
    ),
    "eval_shape that returns a type": lambda m: described(m.eval_shape(lambda: {"a": struct(m)}), m),
    "make_jaxpr of what has a shape and a dtype": lambda m: [
        a.shape for a in m.make_jaxpr(lambda x: x + 2.0)(duck(())).in_avals
    ],
    "linear_transpose for a type": lambda m: m.linear_transpose(lambda x: 2 * x, duck())(np.arange(3, dtype="f4")),
    "linear_transpose through jit": lambda m: m.jit(lambda f, x: f(x))(
        m.jit(lambda x: m.linear_transpose(lambda y: 2.0 * y, x))(1.0), 3.0
    ),
    "linearize through jit": lambda m: m.jit(lambda f, x: f(x))(
        m.jit(lambda x: m.linearize(m.numpy.sin, x)[1])(1.0), 3.0
    ),
    "vmap with an object that is not mapped": lambda m: m.vmap(lambda f, x: f(x), (None, 0))(
        lambda x: x + 1, m.numpy.arange(3)
    ),
    "a switch without a value": lambda m: _switched(m),
    "len of a type": lambda m: len(struct(m, (4, 2))),
    "_cache_size": lambda m: _sizes(m),
    "name of make_jaxpr": lambda m: m.make_jaxpr(_sizes).__name__,
}


def _switched(m):
    with m.enable_x64(), m.numpy_rank_promotion("allow"):
        return str(m.numpy.ones(1).dtype)


def _sizes(m):
    f = m.jit(lambda x: x + 1)
    sizes = [f._cache_size()]
    for x in (1.0, 2.0, np.ones(2, np.float32)):
        f(x)
        sizes.append(f._cache_size())
    return sizes


@pytest.mark.whole
@pytest.mark.parametrize("name", SAME)
def test_like_jax(name):
    run = SAME[name]
    agree(outcome(run, phlox, ()), outcome(run, jax, ()), NEAR, name)
    assert outcome(run, phlox, ())[1] is None


@pytest.mark.whole
def test_custom_jvp_functions_are_transposed(twice):
    for m in (phlox, jax):
        f = twice(m)
        (ct,) = m.linear_transpose(f, 1.0)(3.0)
        assert float(ct) == 6.0
        grads = m.grad(lambda x, m=m, f=f: m.linear_transpose(f, x)(x)[0] * x)(3.0)
        assert float(grads) == 12.0
    solve = lambda m: m.grad(
        lambda b: m.lax.custom_linear_solve(twice(m), b, lambda mv, y: y / 2, transpose_solve=lambda mv, y: y / 2).sum()
    )(m.numpy.ones(3))
    agree(outcome(solve, phlox, ()), outcome(solve, jax, ()), NEAR, "a solve with a custom_jvp function")


REFUSED = {
    "in_axes of bools": (TypeError, "must be an int", lambda m: m.vmap(lambda x: x, in_axes=(True,))),
    "in_axes as a dict": (TypeError, "tuple of entries", lambda m: m.vmap(lambda x: x, in_axes={"a": 0})),
    "too few in_axes": (
        ValueError,
        "len\\(in_axes\\)=1, len\\(args\\)=2",
        lambda m: m.vmap(lambda x, y: x, in_axes=(0,))(np.ones(2), np.ones(2)),
    ),
    "nothing to map": (ValueError, "at least one argument", lambda m: m.vmap(lambda x: x)({})),
    "other lengths": (
        ValueError,
        "inconsistent sizes for array axes to be mapped",
        lambda m: m.vmap(lambda x, y: x)(np.ones(2), np.ones(3)),
    ),
    "another axis_size": (
        ValueError,
        "`axis_size` argument was 2",
        lambda m: m.vmap(lambda x: x, axis_size=2)(np.ones(3)),
    ),
    "grad of a vector": (TypeError, "only defined for scalar-output", lambda m: m.grad(lambda x: x)(np.ones(3))),
    "jit of a generator": (TypeError, "got a generator function", lambda m: m.jit(_generator)),
    "jit of a staticmethod": (TypeError, "staticmethod", lambda m: m.jit(staticmethod(_generator))),
    "static and donated": (
        ValueError,
        "cannot intersect",
        lambda m: m.jit(lambda x: x, static_argnames="x", donate_argnames="x"),
    ),
    "len of the type of a number": (TypeError, "unsized object", lambda m: len(struct(m, ()))),
}


def _generator(x):
    yield x


@pytest.mark.whole
@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_words_of_jax(name):
    kind, words, run = REFUSED[name]
    for m in (jax, phlox):
        with pytest.raises(kind, match=words):
            run(m)


# --- 64-bit numbers inside of a program without them


def test_derivatives_across_a_block_of_64_bit_numbers():
    def program(x):
        with phlox.enable_x64(True):
            y = phlox.numpy.sin(x.astype("float64") * 2) + 1
            y = y / 3.0 + phlox.numpy.cumsum(y) ** 2.5
        return (y * y).astype("float32").sum() * 2

    x = phlox.numpy.arange(3.0)
    with phlox.enable_x64(True):
        exact = phlox.grad(lambda x: program(x.astype("float32").astype("float64")))(
            phlox.numpy.arange(3.0, dtype="float64")
        )
    for how in (
        phlox.grad(program),
        phlox.jit(phlox.grad(program)),
        phlox.grad(phlox.jit(program)),
        phlox.jacfwd(program),
    ):
        np.testing.assert_allclose(how(x), exact, rtol=1e-5)
    (batched,) = phlox.vmap(phlox.grad(program))(x[None])
    np.testing.assert_allclose(batched, exact, rtol=1e-5)
    closed = phlox.make_jaxpr(program)(x)
    assert phlox.extend.core.jaxpr_as_fun(closed)(x)[0] == program(x)
