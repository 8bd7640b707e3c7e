"""What checkpoint keeps, as print_saved_residuals tells it, and what that means for memory."""

import logging

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import ad_checkpoint, checkpoint, checkpoint_policies, extend, grad, jit, lax

X = np.arange(3.0, dtype=np.float32)


def saved(capsys, f, *args):
    ad_checkpoint.print_saved_residuals(f, *args)
    return [line.split(" from /")[0] for line in capsys.readouterr().out.splitlines()]


def wave(x):
    return jnp.sin(jnp.sin(x)).sum()


def test_what_is_kept_is_printed(capsys):
    assert saved(capsys, wave, X) == ["f32[3] output of cos", "f32[3] output of cos"]
    assert saved(capsys, checkpoint(wave), X) == ["f32[3] from the argument x"]
    everything = checkpoint(wave, policy=checkpoint_policies.everything_saveable)
    assert saved(capsys, everything, X) == ["f32[3] output of cos", "f32[3] output of cos"]
    ad_checkpoint.print_saved_residuals(wave, X)
    assert f"{__file__}:" in capsys.readouterr().out


def test_names_are_kept(capsys):
    def f(x):
        return jnp.exp(ad_checkpoint.checkpoint_name(jnp.sin(x), "inner")).sum()

    only = checkpoint(f, policy=checkpoint_policies.save_only_these_names("inner"))
    assert saved(capsys, only, X) == ["f32[3] from the argument x", "f32[3] named 'inner'"]


def test_in_a_jitted_function_only_what_is_read_again_is_kept(capsys):
    def f(x):
        inner = ad_checkpoint.checkpoint_name(jnp.exp(3 * x), "inner")
        return jnp.sin(inner * jnp.cos(inner))

    policy = checkpoint_policies.save_anything_except_these_names("inner")
    kept = saved(capsys, checkpoint(lambda x: f(x).sum(), policy=policy), X)
    assert kept == [f"f32[3] output of {name}" for name in ("exp", "cos", "sin", "cos")]
    assert saved(capsys, checkpoint(lambda x: jit(f)(x).sum(), policy=policy), X) == kept
    rows = checkpoint(lambda x: lax.scan(lambda c, y: (c, jit(f)(y)), 0.0, x)[1].sum(), policy=policy)
    assert saved(capsys, rows, X) == ["f32[3] output of scan"] * len(kept)


def test_branches_share_what_is_kept(capsys):
    """A value that its branch does not read again takes no place that another branch needs."""

    def exponential(x):
        y = jnp.exp(jnp.sin(x))
        return jnp.tanh(y @ y) * y

    def cubic(x):
        y = jnp.sin(x @ x) @ x
        return (y @ y) @ x

    f = checkpoint(
        lambda x: lax.cond(x[0, 0] > 0, exponential, cubic, x), policy=checkpoint_policies.everything_saveable
    )
    assert saved(capsys, f, jnp.ones((3, 3))).count("f32[3,3] output of cond") == 4


def test_a_deep_network_takes_less_memory():
    weights = np.stack([np.eye(64, dtype=np.float32)] * 40)

    def temporary(layer):
        f = lambda x: lax.scan(layer, x, weights)[0].sum()
        return jit(grad(f)).lower(jnp.zeros((256, 64))).compile().memory_analysis().temp_size_in_bytes

    def layer(x, w):
        for _ in range(4):
            x = jnp.tanh(x @ w)
        return x, None

    kept, again = temporary(layer), temporary(checkpoint(layer, prevent_cse=False))
    assert again < 0.5 * kept, (again, kept)


def test_the_function_is_traced_once():
    count = []

    def f(x):
        count.append(1)
        return jnp.sin(x)

    g = checkpoint(f)
    for _ in range(3):
        phlox.vjp(g, 1.0)
    assert len(count) == 1


def test_a_checkpointed_function_is_given_arrays():
    """Indices out of bounds are clamped, which NumPy would refuse."""
    index = np.array([0, 4])
    assert phlox.checkpoint(lambda x: x[x])(index).tolist() == [0, 4]


def test_what_is_kept_is_logged(caplog):
    caplog.set_level(logging.DEBUG, "phlox")
    grad(checkpoint(wave))(X)
    (told,) = [r.getMessage() for r in caplog.records if "remat" in r.getMessage()]
    assert told == "remat-decorated function saving inputs with shapes:\n  f32[3]"
    caplog.clear()
    caplog.set_level(logging.WARNING, "phlox")
    grad(checkpoint(wave))(X)
    assert not caplog.records
    phlox.config.update("jax_log_checkpoint_residuals", True)
    try:
        grad(checkpoint(wave, policy=lambda prim, *_, **__: str(prim) == "cos"))(X)
        grad(checkpoint(wave, policy=checkpoint_policies.dots_saveable))(X)
        grad(checkpoint(jnp.sum))(X)
    finally:
        phlox.config.update("jax_log_checkpoint_residuals", False)
    kept, inputs, nothing = [r.getMessage() for r in caplog.records if "remat" in r.getMessage()]
    assert [line.split(" from ")[0] for line in kept.split("\n")] == [
        "remat-decorated function saving these intermediates:",
        *["  f32[3] output of cos"] * 2,
    ]
    assert inputs == told
    assert nothing == "remat-decorated function saving nothing"


def test_static_arguments_and_names_do_not_make_it_trace_again():
    count = []

    def f(x, n, *, scale):
        count.append(n)
        return x * n * scale

    g = checkpoint(f, static_argnums=-1, static_argnames="scale")
    for n, scale in [(2, 1.0), (2, 1.0), (2.0, 1.0), (2, True), (2, 1.0)]:
        assert g(3.0, n, scale=scale) == 6
    assert count == [2, 2.0, 2]
    assert checkpoint(lambda x, n: x * len(n), static_argnums=1)(2.0, [1, 2]) == 4


def test_operations_of_its_own_implementation_run_where_nothing_is_compiled():
    ran = []
    sine, cosine = extend.primitive("sin"), extend.primitive("cos")
    _, linear = phlox.linearize(checkpoint(lambda x: lax.sin(lax.sin(x))), 2.0)
    before = sine.impl, cosine.impl
    for prim, impl in zip((sine, cosine), before, strict=True):
        prim.def_impl(lambda x, prim=prim, impl=impl, **params: ran.append(prim.name) or impl(x, **params))
    try:
        found = linear(3.0)
    finally:
        sine.def_impl(before[0])
        cosine.def_impl(before[1])
    assert sorted(ran) == ["cos", "cos", "sin"]
    assert jnp.allclose(found, jnp.cos(jnp.sin(2.0)) * jnp.cos(2.0) * 3)
    assert sine.eager is None
    assert float(lax.sin(0.0)) == 0


def test_primitives_that_only_run_at_once():
    ran = []
    prim = extend.core.Primitive("test_add_one")
    prim.def_impl(lambda x: ran.append(1) or x + 1)
    prim.def_abstract_eval(lambda x: x)
    prim.jvp = lambda primals, tangents: (out := prim.bind(*primals), out * tangents[0])
    inner = checkpoint(prim.bind)
    _, pullback = phlox.vjp(checkpoint(lambda x: prim.bind(inner(x))), jnp.zeros(1))
    assert len(ran) == 2
    pullback(jnp.zeros(1))
    assert len(ran) == 5


def test_what_is_computed_again_stands_in_a_name_of_its_own():
    @checkpoint
    def f(x, w):
        with phlox.named_scope("layer"):
            return jnp.sin(jnp.sin(x) @ w).sum()

    text = phlox.make_jaxpr(grad(f))(X, np.eye(3, dtype=np.float32)).pretty_print(name_stack=True)
    again = [line for line in text.split("\n") if "rematted_computation" in line]
    assert all("[rematted_computation/layer]" in line for line in again)
    assert sum("sin" in line for line in again) == 1
    assert sum("cos" in line for line in again) == 2


def test_what_only_a_part_of_a_program_needs_is_not_computed():
    """Branches, loops and calls without the results that nobody reads."""

    def loop(x):
        return lax.scan(lambda c, y: ((c[0] * 2, jnp.sin(c[1])), (jnp.cos(y), y * c[0])), (x, x), jnp.ones(3) * x)

    def branch(x):
        return lax.cond(x > 0, lambda x: (jnp.sin(x), x), lambda x: (x, jnp.cos(x)), x)

    for f, gone, left in (
        (lambda x: loop(x)[1][1], ("sine", "cosine"), "multiply"),
        (lambda x: loop(x)[0][1], ("cosine", "multiply"), "sine"),
        (lambda x: branch(x)[1], ("sine",), "cosine"),
        (lambda x: jit(branch)(x)[0], ("cosine",), "sine"),
    ):
        text = jit(f).lower(0.5).as_text()
        assert f"stablehlo.{left}" in text
        assert not any(f"stablehlo.{name} " in text for name in gone)
        assert jnp.allclose(jit(f)(0.5), f(jnp.float32(0.5)))


def test_errors_name_the_argument():
    def f(n, x, y, *, z):
        return x if z > n else y

    g = checkpoint(f, static_argnums=0)
    with pytest.raises(phlox.errors.TracerBoolConversionError, match="traced in f; it depends on argument z"):
        g(1, 2.0, 3.0, z=4.0)
    with pytest.raises(phlox.errors.ArgumentError, match=r"argument to <lambda>.* at path y"):
        checkpoint(lambda x, y: x)(1.0, "text")
