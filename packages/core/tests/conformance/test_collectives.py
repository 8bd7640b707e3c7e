"""Collectives over axes mapped by vmap and pmap, and pmap itself, on eight virtual devices."""

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import agree, outcome, row

NEAR = row("collectives")
AXES = {
    "psum": lambda m, x: m.lax.psum(x, "i"),
    "pmean": lambda m, x: m.lax.pmean(x, "i"),
    "pmax": lambda m, x: m.lax.pmax(x, "i"),
    "pmin": lambda m, x: m.lax.pmin(x, "i"),
    "axis_index": lambda m, x: m.lax.axis_index("i") + 0 * x,
    "axis_size": lambda m, x: m.lax.axis_size("i") * x,
    "psum of one": lambda m, x: x / m.lax.psum(1, "i"),
    "normalize": lambda m, x: x / m.lax.psum(x, "i"),
    "of a tree": lambda m, x: m.lax.psum({"a": x, "b": (x * 2, None)}, "i"),
    "by a list of names": lambda m, x: m.lax.pmean(x, ("i",)),
}
DTYPES = ["float32", "int32", "float16", "bfloat16", "complex64", "bool", "uint8", "int8"]


def both(case, *args, what="", **options):
    agree(outcome(case, phlox, args), outcome(case, jax, args), NEAR, what, **options)


def data(shape, dtype="float32", *seed):
    return judge.array(judge.rng("collectives", *seed), shape, dtype)


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n in AXES for d in DTYPES if (n, d) != ("normalize", "bool")])
def test_under_vmap(name, dtype):  # of bools jax makes 0 / 0 = 0
    f = AXES[name]
    both(lambda m, x: m.vmap(lambda x: f(m, x), axis_name="i")(x), data((3, 2), dtype))
    # Of bools, jax's sums are weak in one of the two calls and not in the other.
    staged = lambda m, x: m.jit(m.vmap(lambda x: f(m, x), in_axes=1, axis_name="i"))(x)
    both(staged, data((2, 3), dtype), what="jit", weak=dtype != "bool")


@pytest.mark.parametrize("name", AXES)
def test_under_pmap(name):
    f = AXES[name]
    for dtype in ("float32", judge.rng(name).choice(["int32", "float16"])):
        both(lambda m, x: m.pmap(lambda x: f(m, x), axis_name="i")(x), data((8, 2), str(dtype)), what=dtype)


@pytest.mark.parametrize("name", ["psum", "pmean", "normalize", "psum of one"])
def test_gradient(name):
    f = AXES[name]
    total = lambda m: (
        lambda x: (m.vmap(lambda x: f(m, x), axis_name="i")(x) * np.arange(1.0, 4.0, dtype=np.float32)).sum()
    )
    x = np.array([1.0, 2.5, -0.5], np.float32)
    both(lambda m, x: m.grad(total(m))(x), x, what="outside")
    both(lambda m, x: m.jit(m.grad(total(m)))(x), x, what="outside, jit")
    both(lambda m, x: m.jvp(total(m), (x,), (x,)), x, what="jvp")
    both(lambda m, x: m.vmap(m.grad(lambda x: f(m, x) ** 2), axis_name="i")(x), x, what="inside")


@pytest.mark.parametrize("name", ["psum", "pmean", "normalize"])
def test_gradient_under_pmap(name):
    f = AXES[name]
    x = data((4,), "float32", name)
    both(lambda m, x: m.pmap(m.grad(lambda x: f(m, x) ** 2), axis_name="i")(x), x)
    both(lambda m, x: m.grad(lambda x: m.pmap(lambda x: f(m, x), axis_name="i")(x).sum())(x), x, what="of pmap")


def test_nested_axes():
    x = data((2, 3, 4))
    nested = lambda m, f: m.vmap(m.vmap(f, axis_name="j"), axis_name="i")
    both(lambda m, x: nested(m, lambda x: m.lax.psum(x, ("i", "j")))(x), x)
    both(lambda m, x: nested(m, lambda x: m.lax.psum(x, "i") - m.lax.pmax(x, "j"))(x), x)
    both(lambda m, x: nested(m, lambda x: m.lax.axis_index("i") * 10 + m.lax.axis_index("j"))(x), x)
    both(lambda m, x: nested(m, lambda x: m.lax.axis_index(("i", "j")))(x), x)
    both(lambda m, x: nested(m, lambda x: m.lax.axis_size(("i", "j")))(x), x)
    both(lambda m, x: m.vmap(m.vmap(lambda x: m.lax.pmean(x, "j"), out_axes=1), axis_name="j")(x), x)
    both(lambda m, x: m.pmap(m.vmap(lambda x: m.lax.psum(x, ("i", "j")), axis_name="j"), axis_name="i")(x), x)


def test_of_what_is_not_mapped():
    both(lambda m, x: m.vmap(lambda x: m.lax.psum(2.0, "i") + x, axis_name="i")(x), data((3,)))
    both(lambda m, x: m.vmap(lambda x: m.lax.psum(np.float32(2), "i") + x, axis_name="i")(x), data((3,)))
    both(
        lambda m, x, y: m.vmap(lambda x, y: m.lax.pmean(y, "i"), (0, None), axis_name="i")(x, y), data((3,)), data((2,))
    )
    both(
        lambda m, x, y: m.vmap(lambda x, y: m.lax.pmax(y, "i"), (0, None), axis_name="i", out_axes=None)(x, y),
        data((3,)),
        data((2,)),
    )
    both(lambda m: m.vmap(lambda: m.lax.axis_index("i"), axis_name="i", axis_size=4)())


WRONG = [
    lambda m, x: m.lax.psum(x, "i"),
    lambda m, x: m.vmap(lambda x: m.lax.psum(x, "j"), axis_name="i")(x),
    lambda m, x: m.lax.axis_index("i"),
    lambda m, x: m.lax.axis_size("i"),
    lambda m, x: m.jit(lambda x: m.lax.pmean(x, "i"))(x),
    lambda m, x: m.vmap(lambda x: m.lax.psum("a", "i"), axis_name="i")(x),
    lambda m, x: m.pmap(lambda x: x)(np.zeros(9)),
    lambda m, x: m.pmap(lambda x, y: x)(np.zeros(2), np.zeros(3)),
    lambda m, x: m.pmap(lambda: 1)(),
    lambda m, x: m.pmap(lambda x: "a")(x),
    lambda m, x: m.pmap(lambda x: x, devices=[])(x),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_use(wrong):
    both(wrong, data((2,)))


@pytest.mark.parametrize("x", [np.float32(3), np.zeros(2), "a"], ids=["a number", "too few axes", "no array"])
def test_arguments_that_have_no_such_axis(x):
    with pytest.raises((ValueError, TypeError), match="argument x"):  # jax: "tuple index out of range"
        phlox.pmap(lambda x: x, in_axes=1)(x)


# --- pmap


def test_arguments_and_results_of_pmap():
    x, y = data((4, 3)), data((3, 4))
    both(lambda m, x: m.pmap(lambda x: {"a": x + 1, "b": [x.sum(), 2]})(x), x)
    both(lambda m, x, y: m.pmap(lambda x, y: x + y, in_axes=(0, 1))(x, y), x, y)
    both(lambda m, x, y: m.pmap(lambda x, y: x * y, in_axes=(0, None))(x, y), x, y[:, 0])
    both(lambda m, x: m.pmap(lambda x: x * 2, in_axes=-1, out_axes=1)(x), y)
    both(lambda m, x: m.pmap(lambda x: m.lax.psum(x, "i"), axis_name="i", out_axes=None)(x), x)
    both(lambda m, x: m.pmap(lambda d: d["x"] * d["y"], in_axes=({"x": 0, "y": None},))({"x": x, "y": 2.0}), x)
    both(lambda m, x: m.pmap(lambda x, n: x**n, static_broadcasted_argnums=1)(x, 3), x)
    both(lambda m, x: m.pmap(lambda x, k: x + k)(x, k=np.arange(4.0, dtype=np.float32)), x)
    both(lambda m, x: m.pmap(lambda x: x + 1, devices=m.devices()[4:])(x), x)
    both(lambda m, x: m.pmap(m.numpy.sin)(m.pmap(m.numpy.cos)(x)), x)
    both(lambda m, x: m.pmap(lambda x: x @ x.T)(x), data((8, 5, 4)))
    both(lambda m, x: m.jit(lambda x: m.pmap(lambda x: x + 1)(x) * 2)(x), x)
    both(lambda m, x: m.vmap(m.pmap(lambda x: x + 1))(x), data((2, 4)))
    both(lambda m, x: m.pmap(lambda x: m.random.normal(m.random.key(0), x.shape) + x)(x), x)
    both(lambda m, x: m.pmap(lambda k: m.random.normal(k, (2,)))(m.random.split(m.random.key(0), 8)), x)


def test_updates_that_every_device_computes_alike():
    """Data-parallel training: gradients averaged over devices equal those of the whole batch."""
    loss = lambda m: lambda w, x: m.numpy.mean((m.numpy.tanh(x @ w) - 1) ** 2)

    def step(m, w, x):
        gradient = m.pmap(lambda w, x: m.lax.pmean(m.grad(loss(m))(w, x), "i"), "i", in_axes=(None, 0))(w, x)
        return gradient[0], m.grad(loss(m))(w, x.reshape(-1, 3))

    w, x = data((3,)), data((8, 4, 3))
    both(step, w, x)
    shared, whole = step(phlox, w, x)
    np.testing.assert_allclose(shared, whole, rtol=1e-5, atol=1e-6)
