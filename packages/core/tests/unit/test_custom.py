"""custom_jvp and custom_vjp: their rules are used in every transformation, and wrong rules are named."""

import copy
import functools
import pickle

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import errors, grad, jit, jvp, lax, vmap

X = np.array([0.5, -1.5, 2.0], np.float32)


@phlox.custom_jvp
def doubled(x, y):
    return jnp.sin(x) * y


@doubled.defjvp
def doubled_jvp(primals, tangents):
    (x, y), (tx, ty) = primals, tangents
    return doubled(x, y), 2 * jnp.cos(x) * y * tx + jnp.sin(x) * ty


@phlox.custom_vjp
def tripled(x, y):
    return jnp.sin(x) * y


def tripled_fwd(x, y):
    return tripled(x, y), {"x": x, "y": y}


def tripled_bwd(res, ct):
    ct_y = jnp.sin(res["x"]) * ct
    return 3 * jnp.cos(res["x"]) * res["y"] * ct, ct_y.sum() if jnp.ndim(res["y"]) == 0 else ct_y


tripled.defvjp(tripled_fwd, tripled_bwd)

FACTORS = [(doubled, 2.0), (tripled, 3.0)]


@pytest.mark.parametrize("f, factor", FACTORS)
def test_the_rule_is_used_in_every_transformation(f, factor):
    expected = factor * np.cos(X) * 2.0
    np.testing.assert_allclose(f(X, 2.0), np.sin(X) * 2, rtol=1e-6)
    np.testing.assert_allclose(jit(f)(X, 2.0), np.sin(X) * 2, rtol=1e-6)
    total = lambda x: f(x, 2.0).sum()
    for g in (grad(total), jit(grad(total)), grad(jit(total)), vmap(grad(lambda x: f(x, 2.0)))):
        np.testing.assert_allclose(g(X), expected, rtol=1e-5)
    np.testing.assert_allclose(grad(lambda x: vmap(f, (0, None))(x, 2.0).sum())(X), expected, rtol=1e-5)
    np.testing.assert_allclose(grad(lambda y: vmap(f, (0, None))(X, y).sum())(2.0), np.sin(X).sum(), rtol=1e-5)
    np.testing.assert_allclose(jit(vmap(jit(grad(lambda x: f(x, 2.0)))))(X), expected, rtol=1e-5)
    np.testing.assert_allclose(grad(f, argnums=(0, 1))(0.5, 2.0)[0], factor * np.cos(0.5) * 2, rtol=1e-5)


@pytest.mark.parametrize("f, factor", FACTORS)
def test_rules_are_differentiated_in_turn(f, factor):
    second = grad(grad(f))(0.5, 2.0)
    np.testing.assert_allclose(second, -factor * np.sin(0.5) * 2, rtol=1e-5)


def test_forward_mode():
    _out, tangent = jvp(doubled, (X, X), (X, X))
    np.testing.assert_allclose(tangent, 2 * np.cos(X) * X * X + np.sin(X) * X, rtol=1e-5)
    with pytest.raises(errors.DerivativeError, match="custom_jvp"):
        jvp(tripled, (X, X), (X, X))
    with pytest.raises(errors.DerivativeError, match="custom_jvp"):
        grad(lambda x: phlox.jacfwd(tripled)(x, 2.0))(0.5)


def test_defjvps_and_symbolic_zeros_of_single_rules():
    @phlox.custom_jvp
    def f(x, y):
        return x * y

    f.defjvps(lambda t, out, x, y: 5 * t * y, None)
    assert [float(g) for g in grad(f, (0, 1))(2.0, 3.0)] == [15.0, 0.0]
    f.defjvps(None)
    with pytest.raises(errors.OptionError, match="defjvps: 1 rules for the 2 arguments of f"):
        grad(f)(2.0, 3.0)


def test_arguments_that_are_not_differentiated():
    power = phlox.custom_jvp(lambda x, n: x**n, nondiff_argnums=(1,))
    power.defjvp(lambda n, primals, tangents: (primals[0] ** n, 10 * tangents[0]))
    assert grad(power)(2.0, 3) == 10.0
    scaled = phlox.custom_vjp(lambda f, x: f(x), nondiff_argnums=(0,))
    scaled.defvjp(lambda f, x: (f(x), x), lambda f, x, ct: (7 * ct,))
    assert grad(lambda x: scaled(jnp.sin, x))(1.0) == 7.0


def test_arguments_that_are_not_differentiated_may_be_traced():
    @functools.partial(phlox.custom_jvp, nondiff_argnums=(0,))
    def affine(env, x):
        return env["f"](x) * env["scale"] + env["shift"]

    affine.defjvp(lambda env, primals, tangents: (affine(env, *primals), 10 * env["scale"] * tangents[0]))

    def twice(scale, x):
        step = lambda x, _: (affine({"f": jnp.sin, "scale": scale, "shift": 2}, x), None)
        return lax.scan(step, x, None, length=2)[0]

    # The rule runs after the loop has been traced.
    assert grad(twice, (0, 1))(2.0, 3.0) == jit(grad(twice, (0, 1)))(2.0, 3.0) == (0.0, 400.0)
    assert grad(phlox.checkpoint(twice), 1)(2.0, 3.0) == 400.0
    np.testing.assert_array_equal(vmap(grad(twice, 1), (0, None))(X, 3.0), 100 * X**2)
    np.testing.assert_array_equal(jit(vmap(lambda s: jvp(lambda x: twice(s, x), (3.0,), (1.0,))[1]))(X), 100 * X**2)


def test_rules_that_outlive_a_value_are_named():
    def forward(x, scale):
        f = phlox.custom_jvp(lambda x: x * scale)
        f.defjvp(lambda primals, tangents: (primals[0], 10 * scale * tangents[0]))
        return f(x)

    def reverse(x, scale, late=False):
        f = phlox.custom_vjp(lambda x: x * scale)
        f.defvjp(lambda x: (x * (1 if late else scale), None), lambda _, ct: (10 * scale * ct,))
        return f(x)

    late = functools.partial(reverse, late=True)
    for f, rule in ((forward, "JVP"), (reverse, "VJP fwd"), (late, "VJP bwd")):
        assert grad(f)(2.0, 3.0) == jit(grad(f))(2.0, 3.0) == 30.0
        with pytest.raises(
            errors.UnexpectedTracerError, match=f"{rule} rule <lambda> for function <lambda> uses a traced"
        ):
            grad(jit(f))(2.0, 3.0)


def test_rules_that_are_not_linear_are_refused():
    for rule, name in (
        (lambda t: t * t, "mul"),
        (lambda t: 1 / t, "div"),
        (lambda t: jnp.where(t > 0, t, 2 * t), "select"),
    ):
        f = phlox.custom_jvp(lambda x: x)
        f.defjvp(lambda primals, tangents, rule=rule: (f(*primals), rule(*tangents)))
        for gradient in (grad(f), jit(grad(f)), grad(jit(f))):
            with pytest.raises(errors.DerivativeError, match=f"{name}.* does not exist, as it is not linear"):
                gradient(2.0)


def test_functions_with_rules_are_copied_and_pickled_as_functions_are():
    assert copy.deepcopy(phlox.nn.relu) is phlox.nn.relu
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert pickle.loads(pickle.dumps(tripled)) is tripled
    local = phlox.custom_jvp(jnp.sin)
    local.defjvp(doubled)
    assert pickle.loads(pickle.dumps(local)).jvp is doubled


def test_trees_defaults_and_keyword_arguments():
    @phlox.custom_vjp
    def f(params, x, scale=2.0):
        return {"out": params["w"] * x * scale}

    f.defvjp(lambda p, x, s: (f(p, x, s), (p, x, s)), lambda res, ct: ({"w": 100 * ct["out"]}, None, None))
    gradient = grad(lambda p: f(p, 3.0)["out"])({"w": 1.0})
    assert gradient == {"w": 100.0}
    assert grad(lambda x: f({"w": 1.0}, x=x, scale=1.0)["out"])(3.0) == 0.0


def test_integers_among_the_arguments():
    @phlox.custom_vjp
    def pick(x, i):
        return x[i]

    pick.defvjp(lambda x, i: (pick(x, i), i), lambda i, ct: (jnp.zeros(3).at[i].set(ct), None))
    np.testing.assert_array_equal(grad(pick)(X, 1), [0, 1, 0])
    np.testing.assert_array_equal(jit(grad(pick))(X, 2), [0, 0, 1])


def test_wrong_rules_are_named():
    f = phlox.custom_jvp(lambda x: {"a": x})
    with pytest.raises(errors.UndefinedRuleError, match="No JVP defined for custom_jvp function <lambda> using defjvp"):
        grad(lambda x: f(x)["a"])(1.0)
    f.defjvp(lambda p, t: {"a": p[0]})
    with pytest.raises(errors.TreeError, match="pair"):
        grad(lambda x: f(x)["a"])(1.0)
    f.defjvp(lambda p, t: ({"b": p[0]}, {"b": t[0]}))
    with pytest.raises(errors.TreeError, match=r"expected a leaf, got no such key"):
        grad(jit(lambda x: f(x)["a"]))(1.0)
    f.defjvp(lambda p, t: ({"a": p[0]}, {"a": jnp.ones(3)}))
    with pytest.raises(
        errors.DerivativeError, match=r"Expected float32\[\] .* but got float32\[3\].* of result\['a'\]"
    ):
        grad(lambda x: f(x)["a"])(1.0)
    g = phlox.custom_vjp(lambda x, y: x * y)
    g.defvjp(lambda x, y: (x * y, None), lambda res, ct: (ct,))
    with pytest.raises(errors.TreeError, match="each of the 2 arguments"):
        grad(g)(1.0, 2.0)
    g.defvjp(lambda x, y: (x * y, None), lambda res, ct: (ct, jnp.ones((2, 2))))
    with pytest.raises(errors.DerivativeError, match=r"f32\[2,2\]"):
        grad(g, (0, 1))(1.0, 2.0)
    g.defvjp(lambda x, y: x * y, lambda res, ct: (ct, ct))
    with pytest.raises(errors.TreeError, match="pair"):
        grad(g)(1.0, 2.0)


def test_rules_may_ask_for_values_where_nothing_is_traced():
    def one(x):
        return jnp.sin(x) if x > 0 else jnp.cos(x)

    f = phlox.custom_jvp(one)
    f.defjvp(lambda p, t: (f(*p), (2 if p[0] > 0 else 3) * t[0]))
    g = phlox.custom_vjp(one)
    g.defvjp(lambda x: (g(x), x), lambda x, ct: ((2 if x > 0 else 3) * ct,))
    for h in (f, g):
        for x, slope in ((2.0, 2.0), (-2.0, 3.0)):
            assert h(x) == one(x)
            assert grad(h)(x) == grad(lambda x, h=h: h(x) + h(5.0))(x) == slope
            value, pull = phlox.vjp(h, x)
            assert (value, *pull(1.0)) == (one(x), slope)
    assert phlox.jvp(f, (2.0,), (1.0,)) == (one(2.0), 2.0)
    assert grad(grad(f))(2.0) == 0


def test_a_function_is_not_traced_where_its_rule_says_all():
    calls = []
    f = phlox.custom_vjp(lambda x: calls.append(1) or x)
    f.defvjp(lambda x: (2 * x, None), lambda _, ct: (ct,))
    assert phlox.value_and_grad(f)(3.0) == phlox.jit(phlox.value_and_grad(f))(3.0) == (6.0, 1.0)
    assert not calls


def test_closing_over_a_value_that_is_differentiated_is_refused():
    def outer(x):
        f = phlox.custom_jvp(lambda y: x * y)
        f.defjvp(lambda p, t: (f(*p), t[0]))
        return f(2.0)

    with pytest.raises(errors.UnexpectedTracerError, match="as an argument"):
        grad(outer)(1.0)

    def with_rule(x):
        f = phlox.custom_jvp(lambda y: y)
        f.defjvp(lambda p, t: (p[0], x * t[0]))
        return f(x * 2.0)

    for transform in (grad, lambda f: jit(grad(f))):
        with pytest.raises(errors.UnexpectedTracerError):
            transform(with_rule)(1.0)


def test_closing_over_other_values_is_fine():
    w = jnp.arange(3.0)

    def outer(x):
        f = phlox.custom_jvp(lambda y: (w * y).sum())
        f.defjvp(lambda p, t: (f(*p), 10 * t[0]))
        return f(x)

    assert grad(jit(outer))(1.0) == 10.0
    np.testing.assert_allclose(vmap(outer)(X), X * 3, rtol=1e-6)

    def scaled(c):
        f = phlox.custom_jvp(lambda y: c * y)
        f.defjvp(lambda p, t: (f(*p), 10 * t[0]))
        return grad(f)(2.0) + f(1.0)

    np.testing.assert_allclose(vmap(scaled)(X), 10 + X, rtol=1e-6)


def test_printed_form_names_function_and_rule():
    text = str(phlox.make_jaxpr(lambda x: doubled(x, 2.0))(1.0))
    assert "custom_jvp_call[" in text
    assert "name=doubled" in text
    assert "jvp=doubled_jvp" in text
    text = str(phlox.make_jaxpr(lambda x: tripled(x, 2.0))(1.0))
    assert "fwd=tripled_fwd" in text
    assert "bwd=tripled_bwd" in text


def _with_other_residuals():
    """x * y, whose forward rule saves residuals of one number and another meaning if only x is differentiated."""
    f = phlox.custom_vjp(lambda x, y: x * y)

    def fwd(x, y):
        residuals = {"both": (x.value, y.value)} if y.perturbed else {"one": (y.value * 10, x.value)}
        return x.value * y.value, residuals

    def bwd(residuals, ct):
        if "one" in residuals:
            return residuals["one"][0] * ct, None
        x, y = residuals["both"]
        return y * ct, x * ct

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return f


@pytest.mark.parametrize(
    "transformed",
    [
        jit,
        lambda f: jit(vmap(f)),
        lambda f: jit(lambda x, y: phlox.lax.scan(lambda c, _: (f(c, y), None), x, None, length=1)[0]),
    ],
)
def test_each_derivative_of_one_program_reads_its_own_residuals(transformed):
    f, x, y = transformed(_with_other_residuals()), jnp.array([1.0, 2.0]), jnp.array([3.0, 3.0])
    _, of_x = phlox.vjp(lambda x: f(x, y), x)
    _, of_both = phlox.vjp(f, x, y)
    np.testing.assert_array_equal(of_x(jnp.ones(2))[0], [30, 30])
    np.testing.assert_array_equal(of_both(jnp.ones(2))[0], [3, 3])
    np.testing.assert_array_equal(of_x(jnp.ones(2))[0], [30, 30])


@phlox.custom_jvp
def two_modes(x, y):
    return jnp.sin(x) * y


# The two rules differ, so that a test sees which mode is used.
two_modes.defjvp(lambda primals, tangents: (two_modes(*primals), 10 * tangents[0] + 100 * tangents[1]))
two_modes.defvjp(lambda x, y: (two_modes(x, y), x), lambda x, ct: (2 * ct * x, 3 * ct))


def in_a_loop(x, y):
    return phlox.lax.scan(lambda c, _: (two_modes(c, y), None), x, None, length=1)[0]


def in_a_branch(x, y):
    return phlox.lax.cond(x > 0, two_modes, lambda x, y: x, x, y)


@pytest.mark.parametrize(
    "f", [two_modes, phlox.jit(two_modes), in_a_loop, in_a_branch, phlox.checkpoint(two_modes)], ids=range(5)
)
def test_each_mode_has_its_rule(f):
    for way in (lambda f: f, phlox.jit):
        assert way(lambda x, y: phlox.jvp(f, (x, y), (1.0, 1.0))[1])(0.5, 2.0) == 110
        assert way(phlox.grad(f, (0, 1)))(0.5, 2.0) == (1, 3)
    x, y = jnp.array([0.5, 0.25]), jnp.array([2.0, 3.0])
    np.testing.assert_array_equal(phlox.jvp(phlox.vmap(f), (x, y), (x, y))[1], 10 * x + 100 * y)
    for gradients in (phlox.vmap(phlox.grad(f, (0, 1))), phlox.grad(lambda x, y: phlox.vmap(f)(x, y).sum(), (0, 1))):
        np.testing.assert_array_equal(gradients(x, y), [2 * x, [3, 3]])


def test_a_linearized_function_is_evaluated_by_one_rule_and_transposed_by_the_other():
    x, y = jnp.array([0.5, 0.25]), jnp.array([2.0, 3.0])
    for f in (two_modes, phlox.vmap(two_modes), phlox.jit(two_modes)):
        _, linear = phlox.linearize(f, x, y)
        for way in (lambda f: f, phlox.jit):
            np.testing.assert_array_equal(way(linear)(x, y), 10 * x + 100 * y)
        np.testing.assert_array_equal(phlox.vmap(linear, (0, None))(x[None], y), [10 * x + 100 * y])
        np.testing.assert_array_equal(phlox.jvp(linear, (x, y), (y, x))[1], 10 * y + 100 * x)
        np.testing.assert_array_equal(phlox.linear_transpose(linear, x, y)(x), [2 * x * x, 3 * x])


def test_rules_for_reverse_mode_are_refused_where_arguments_are_not_differentiated():
    f = phlox.custom_jvp(lambda n, x: n * x, nondiff_argnums=(0,))
    with pytest.raises(errors.DerivativeError, match="not with nondiff_argnums"):
        f.defvjp(lambda n, x: (n * x, None), lambda _, ct: (ct,))
