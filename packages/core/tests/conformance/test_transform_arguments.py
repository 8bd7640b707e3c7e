"""What transformations take as arguments, what passes through jit, and what they refuse, in the words of jax."""

import types

import jax
import numpy as np
import pytest

import phlox
from conformance.harness import agree, outcome, row

NEAR = row("transform arguments")


def struct(m, shape=(3,), dtype="float32"):
    return m.ShapeDtypeStruct(shape, np.dtype(dtype))


def duck(shape=(3,), dtype="float32"):
    return types.SimpleNamespace(shape=shape, dtype=np.dtype(dtype))


def described(tree, m):
    return m.tree.map(lambda s: (tuple(s.shape), str(s.dtype)), tree)


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
    "numbers that come back as arrays": lambda m: [
        isinstance(x, m.Array)
        for fun in (m.numpy.asarray, m.numpy.ravel)
        for x in (m.jvp(fun, (1.0,), (2.0,))[0], m.vjp(fun, 1.0)[0], m.linearize(fun, 1.0)[0])
    ],
    "numbers that jvp returns as arrays": lambda m: [
        isinstance(m.jvp(fun, (1.0,), (2.0,))[0], m.Array)
        for fun in (m.numpy.real, m.numpy.positive, m.numpy.squeeze, m.numpy.conj)
    ],
    "a result that depends on no argument": lambda m: type(m.jvp(lambda x: 3.0, (1.0,), (2.0,))[0]).__name__,
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
