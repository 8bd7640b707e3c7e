"""phlox.lax, what is said to the compiler: barriers, choices by platform, composites, values that must be kept."""

import jax
import numpy as np
import pytest

import phlox
from conformance.harness import A, S, batches, both, call, data, gradients, row, values

ROWS = [
    row("lax.stage", call(A(3)), call(S(2.0))),
    row("lax.optimization_barrier", call(A(3)), call((A(2), [A(3)]))),
]

test_values = values(ROWS)
test_gradients = gradients(ROWS)
test_batches = batches(ROWS)


CHOICES = {
    "this one": lambda m: {"cpu": m.numpy.sin, "default": m.numpy.cos},
    "the default": lambda m: {"cuda": m.numpy.sin, "default": m.numpy.cos},
    "only this": lambda m: {"cpu": m.numpy.sin},
    "only others": lambda m: {"cuda": m.numpy.sin, "tpu": m.numpy.cos},
    "one for two": lambda m: {"cuda": m.numpy.sin, "cpu": m.numpy.sin, "default": m.numpy.cos},
    "only a default": lambda m: {"default": m.numpy.cos},
    "gpu": lambda m: {"gpu": m.numpy.cos},
    "no function": lambda m: {"cpu": 3},
}


@pytest.mark.parametrize("name", CHOICES)
def test_platform_dependent(name):
    f = lambda m: lambda x: m.lax.platform_dependent(x, **CHOICES[name](m))
    x = data((3,))
    both(lambda m, x: m.numpy.asarray(f(m)(x)), x)
    if name == "no function":
        return
    both(lambda m, x: m.jit(f(m))(x), x, what="jit")
    both(lambda m, x: m.jit(m.grad(lambda x: f(m)(x).sum()))(x), x, what="grad")
    both(lambda m, x: m.jit(m.vmap(f(m)))(x), x, what="vmap")


def test_what_cannot_be_compiled_here_is_left_out():
    text = phlox.jit(lambda x: phlox.lax.platform_dependent(x, cpu=phlox.numpy.sin, default=phlox.numpy.cos)).lower(1.0)
    assert "stablehlo.sine" in text.as_text()
    assert "stablehlo.cosine" not in text.as_text()


@pytest.mark.parametrize("name", ["", "wave", "my.", ".wave", "my wave.n", "1.n"])
def test_names_of_composites_have_a_namespace(name):
    with pytest.raises(phlox.errors.ArgumentError, match="has no namespace"):
        phlox.jit(phlox.lax.composite(lambda x: x + 1, name)).lower(1.0)
    with pytest.raises(ValueError, match="valid namespaced op name"):
        jax.jit(jax.lax.composite(lambda x: x + 1, name)).lower(1.0)
    both(lambda m, x: m.lax.composite(lambda x: x + 1, name)(x), data((3,)))


@pytest.mark.parametrize("name", ["my.wave", "A_1.2.$b", "a.b.c"])
def test_other_names_of_composites(name):
    both(lambda m, x: m.jit(m.lax.composite(lambda x: x + 1, name))(x), data((3,)))


def test_composite():
    def tangent(m, scale=None):
        f = lambda x, y, *, scale=None, word="a": m.lax.sin(x) / m.lax.cos(x) * (1 if scale is None else scale) + y
        return lambda x, y: m.lax.composite(f, name="my.tangent", version=2)(x, y, scale=scale, word="b")

    x, y = data((3,)), data((3,), "float32", 1)
    both(lambda m, x, y: tangent(m)(x, y), x, y)
    both(lambda m, x, y: m.jit(tangent(m, 3.0))(x, y), x, y, what="jit")
    both(
        lambda m, x, y: m.jit(lambda x: m.lax.composite(lambda v: (v, {"a": v + y}), "my.n")(x))(x),
        x,
        y,
        what="closure",
    )
    text = phlox.jit(tangent(phlox, 3.0)).lower(x, y).as_text()
    assert 'composite_attributes = {scale = 3.0 : f64, word = "b"}' in text
    values = {"a": np.float32(0.5), "b": np.bool_(True), "c": np.int8(3), "d": 1.5, "e": 2, "f": np.arange(2)}
    text = phlox.jit(lambda x: phlox.lax.composite(lambda x, **_: x, "my.same")(x, **values)).lower(x).as_text()
    assert "{a = 0.5 : f32, b = true, c = 3 : i8, d = 1.5 : f64, e = 2 : i64, f = dense<" in text
    text = phlox.jit(tangent(phlox, 3.0)).lower(x, y).as_text()
    assert "version = 2 : i32" in text
    assert 'stablehlo.composite "my.tangent" %arg0, %arg1 {composite_attributes' in text
    assert "func.func private @my.tangent(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> tensor<3xf32> {" in text
    nothing = phlox.jit(lambda: phlox.lax.composite(lambda: phlox.numpy.float32(1), "my.one")())
    assert 'stablehlo.composite "my.one" {decomposition = @my.one} : () -> tensor<f32>' in nothing.lower().as_text()
    assert float(nothing()) == 1
    # Derivatives and batches are those of the decomposition; jax refuses them.
    plain = lambda x, y: phlox.lax.sin(x) / phlox.lax.cos(x) + y
    total = lambda f: lambda x, y: f(x, y).sum()
    for change in (lambda f: phlox.grad(total(f), (0, 1)), lambda f: phlox.vmap(f), lambda f: phlox.jit(phlox.vmap(f))):
        for a, b in zip(
            phlox.tree.leaves(change(tangent(phlox))(x, y)), phlox.tree.leaves(change(plain)(x, y)), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    both(
        lambda m, x: m.jit(lambda x: m.lax.composite(lambda x, *, k: x + k, "my.n")(x, k=x))(x),
        x,
        what="traced attribute",
    )


def test_sinks_keep_what_they_read():
    both(lambda m: m.lax.dce_sink({"a": 1.0}))
    for m in (jax, phlox):  # the foreign function is looked for when the program runs
        kept = m.jit(lambda x, m=m: (m.lax.dce_sink(x + 1, prevent_mlir_dce=True), x)[1]).lower(1.0).compile()
        assert "dce_sink" in kept.as_text() and "add" in kept.as_text()
    both(lambda m, x: m.jit(lambda x: (m.lax.dce_sink(x * 2), x)[1])(x), data((3,)))
    both(lambda m, x: m.grad(lambda x: (m.lax.dce_sink(x * 2), x.sum())[1])(x), data((3,)))
    both(lambda m, x: m.vmap(lambda x: (m.lax.dce_sink(x * 2), x)[1])(x), data((3,)))
    count = lambda m: len(
        m.make_jaxpr(m.jit(lambda x: (m.lax.dce_sink(x * 2), x)[1]))(1.0).eqns[0].params["jaxpr"].eqns
    )
    assert count(phlox) == count(jax) == 2


def test_barriers_have_derivatives_and_batches():
    x = data((3,))
    f = lambda m: lambda x: m.lax.optimization_barrier({"a": x * 2, "b": (3, x)})
    total = lambda m: lambda x: (f(m)(x)["a"] * f(m)(x)["b"][1]).sum()
    both(lambda m, x: m.grad(total(m))(x), x)
    both(lambda m, x: m.jvp(f(m), (x,), (x,)), x)
    both(lambda m, x: m.jit(m.vmap(f(m)))(x), x)
    assert "optimization_barrier" in phlox.jit(f(phlox)).lower(x).as_text()


# --- out_sharding: the same results, laid out as asked for
