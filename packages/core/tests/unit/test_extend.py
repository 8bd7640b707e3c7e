"""Primitives stated from outside: what JAX's way cannot say, or refuses."""

import pytest

import phlox
import phlox.numpy as jnp
from phlox import extend


@pytest.fixture(scope="module")
def two():
    made = extend.Primitive(
        "test_sin_and_cos",
        multiple_results=True,
        types=lambda x: [x, x],
        lower=extend.lowered_as(lambda x: [jnp.sin(x), jnp.cos(x)], many=True),
        jvp=lambda primals, tangents: (
            found := made(*primals),
            [extend.instantiate(tangents[0]) * found[1], -extend.instantiate(tangents[0]) * found[0]],
        ),
        batch=lambda axis, args, dims: (made(*args), [dims[0]] * 2),
    )
    return made


def test_several_results(two):
    s, c = phlox.jit(phlox.vmap(two.bind))(jnp.arange(3.0))
    assert jnp.allclose(s, jnp.sin(jnp.arange(3.0)))
    assert jnp.allclose(c, jnp.cos(jnp.arange(3.0)))
    assert jnp.allclose(phlox.grad(lambda x: two(x)[0] * two(x)[1])(0.3), jnp.cos(0.6))


def test_a_name_may_be_used_again():
    """As when a cell of a notebook is run twice; the operations of the library stay what they are."""
    for factor in (2, 3):
        sin = extend.Primitive("sin", types=lambda x: x, eager=lambda x, factor=factor: factor * x)
        assert sin.bind(2) == 2 * factor
    assert phlox.vmap(phlox.grad(jnp.sin))(jnp.zeros(2)).tolist() == [1, 1]


def test_names_of_primitives():
    names = dir(extend.core.primitives)
    assert {"sin_p", "remat_p", "scan_p"} <= set(names)
    assert all(getattr(extend.core.primitives, name) for name in names)
    with pytest.raises(AttributeError, match="nothing_p"):
        _ = extend.core.primitives.nothing_p


def test_programs_made_by_hand_are_checked():
    from phlox.extend import core

    program = phlox.make_jaxpr(lambda x: phlox.lax.switch(0, [jnp.sin, jnp.cos], x))(1.0)
    core.check_jaxpr(program.jaxpr)
    program.jaxpr.eqns[0].params["accuracy"] = 4
    with pytest.raises(core.JaxprTypeError, match="malformed program"):
        core.check_jaxpr(program.jaxpr)
    x, y = core.Var(phlox.typeof(1.0)), core.Var(phlox.typeof(1.0))
    with pytest.raises(core.JaxprTypeError, match="without a value"):
        core.check_jaxpr(core.Jaxpr([], [x], [y], []))


def test_values_are_known_where_python_can_branch_on_them():
    known = []

    def f(x):
        known.append(phlox.core.is_concrete(x))
        return x * 2

    for call in (
        phlox.grad(f),
        phlox.jit(f),
        phlox.jit(phlox.grad(f)),
        phlox.grad(phlox.grad(f)),
        lambda x: phlox.vmap(f)(x[None]),
    ):
        call(phlox.numpy.ones(()))
    assert known == [True, False, False, True, False]


def test_all_primitives_are_instances_of_one_class():
    from phlox.extend.core import Primitive, primitives

    program = phlox.make_jaxpr(phlox.jit(lambda x: phlox.lax.cond(x > 0, phlox.numpy.sin, phlox.numpy.cos, x)))(1.0)
    assert isinstance(program.eqns[0].primitive, Primitive) and isinstance(phlox.lax.tile_p, Primitive)
    assert isinstance(primitives.add_p, Primitive) and isinstance(Primitive("test_of_one_class"), Primitive)
    assert not isinstance(phlox.numpy.add, Primitive) and not isinstance(phlox.lax, Primitive)


def test_tokens_are_public():
    from phlox.extend.core import Token

    assert isinstance(phlox.jit(phlox.lax.create_token)(1.0), Token)
    token = phlox.lax.create_token()
    assert isinstance(phlox.jit(lambda x: (x + 2, token))(7)[1], Token)


def parts_of_a_loop(x):
    return phlox.lax.while_loop(lambda c: c[1] < 3, lambda b: (b[0] * 2, b[1] + 1), (x, 0))[0]


class Model:
    def loss(self, params, *, scale):
        return {"loss": scale * params["w"]}


def test_programs_know_the_function_that_was_traced():
    def f(x, n, *more):
        return x * n, [more]

    def described(program):
        info = program.debug_info
        return info.traced_for, info.func_name, info.arg_names, info.result_paths

    closed = phlox.make_jaxpr(f, static_argnums=1)({"a": 1.0}["a"], 3, 2.0)
    expected = "jit", "f", ("x", "more[0]"), ("result[0]", "result[1][0][0]")
    assert described(closed) == described(closed.jaxpr) == expected
    assert closed.debug_info.func_filename == __file__
    assert closed.debug_info.func_lineno == f.__code__.co_firstlineno
    loss = phlox.jit(Model().loss)
    expected = "jit", "loss", ("params['w']", "scale"), ("result['loss']",)
    assert described(loss.trace({"w": 1.0}, scale=2.0).jaxpr) == expected
    (call,) = phlox.make_jaxpr(loss)({"w": 1.0}, scale=2.0).eqns
    assert described(call.params["jaxpr"]) == expected
    constant = jnp.arange(3.0)
    closing_over = phlox.jit(lambda y: y + constant).trace(1.0).jaxpr
    assert described(closing_over)[2:] == (("y",), ("result",))  # the function has died
    (loop,) = phlox.make_jaxpr(parts_of_a_loop)(1.0).eqns
    assert [described(loop.params[name])[::2] for name in ("cond_jaxpr", "body_jaxpr")] == [
        ("while_cond", ("c[0]", "c[1]")),
        ("while_body", ("b[0]", "b[1]")),
    ]
    (tangent, *_) = phlox.make_jaxpr(phlox.grad(phlox.jit(phlox.numpy.cos)))(1.0).eqns
    assert described(tangent.params["jaxpr"]) == ("jit", "cos", None, None)
    assert tangent.params["jaxpr"].debug_info.safe_arg_names(2) == ("", "")
