"""What custom rules may ask for beyond arrays: symbolic zeros, their own transposes, help with checkpoint; wrong ones are named."""

import functools

import jax
import jax.custom_derivatives
import numpy as np
import pytest

import phlox
import phlox.custom_derivatives
from conformance.harness import agree, outcome, row

NEAR = row("custom rules")
X = np.array([0.5, -1.0, 2.0], np.float32)
Y = X[::-1].copy()


def both(case, *args, jit=True, what=""):
    theirs = outcome(case, jax, args)
    agree(outcome(case, phlox, args), theirs, NEAR, what)
    if jit:
        agree(
            outcome(lambda m, *xs: m.jit(functools.partial(case, m))(*xs), phlox, args),
            theirs,
            NEAR,
            what + " under jit",
        )


def is_zero(m, x):
    return isinstance(x, m.custom_derivatives.SymbolicZero)


def with_jvp(m, seen=None):
    """Tells by its factor which tangents were zero."""

    @m.custom_jvp
    def f(x, y):
        return m.numpy.sin(x) * y, y

    def rule(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        out = f(x, y)
        if seen is not None:
            seen.append([(is_zero(m, t), t.shape, str(t.dtype)) for t in tangents])
        if is_zero(m, ty):
            return out, (2 * tx * y, m.custom_derivatives.SymbolicZero.from_primal_value(y))
        if is_zero(m, tx):
            return out, (3 * ty, ty)
        return out, (5 * tx * y + 7 * ty, ty)

    f.defjvp(rule, symbolic_zeros=True)
    return f


JVPS = {
    "both": lambda m, f, x, y: m.jvp(f, (x, y), (x, y)),
    "first": lambda m, f, x, y: m.jvp(lambda x: f(x, y), (x,), (x,)),
    "second": lambda m, f, x, y: m.jvp(lambda y: f(x, y), (y,), (x,)),
    "grad of first": lambda m, f, x, y: m.grad(lambda x: f(x, y)[0].sum())(x),
    "grad of second": lambda m, f, x, y: m.grad(lambda y: f(x, y)[0].sum())(y),
    "grad of both": lambda m, f, x, y: m.grad(lambda x, y: f(x, y)[0].sum(), (0, 1))(x, y),
    "linearize": lambda m, f, x, y: m.linearize(lambda x: f(x, y), x)[1](x),
    "vmap of grad": lambda m, f, x, y: m.vmap(m.grad(lambda x, y: f(x, y)[0]))(x, y),
    "vmap of grad over one": lambda m, f, x, y: m.vmap(m.grad(lambda x, y: f(x, y)[0]), (0, None))(x, y[0]),
    "grad of vmap": lambda m, f, x, y: m.grad(lambda x: m.vmap(f)(x, y)[0].sum())(x),
    "grad of vmap over one": lambda m, f, x, y: m.grad(lambda z: m.vmap(f, (0, None))(x, z)[0].sum())(y[0]),
    "jvp of vmap": lambda m, f, x, y: m.jvp(lambda x: m.vmap(f)(x, y), (x,), (x,)),
    "jacobian": lambda m, f, x, y: m.jacfwd(lambda x: f(x, y))(x),
    "grad of grad": lambda m, f, x, y: m.grad(lambda x: m.grad(lambda x: (f(x, y)[0] ** 2).sum())(x).sum())(x),
    "grad of jit": lambda m, f, x, y: m.grad(lambda x: m.jit(f)(x, y)[0].sum())(x),
    "value": lambda m, f, x, y: f(x, y),
}


@pytest.mark.parametrize("name", JVPS)
def test_jvp_rules_that_see_zeros(name):
    both(lambda m, x, y: JVPS[name](m, with_jvp(m), x, y), X, Y)


def test_what_a_jvp_rule_sees():
    seen = {}
    for m in (phlox, jax):
        seen[m] = []
        m.jvp(lambda x, m=m: with_jvp(m, seen[m])(x, Y), (X,), (X,))
        m.jvp(lambda x, m=m: with_jvp(m, seen[m])(x, 2), (X,), (X,))
    assert seen[phlox] == seen[jax]


def with_vjp(m, seen=None):
    """Tells by its factors which arguments and results took part."""
    d = m.custom_derivatives

    @m.custom_vjp
    def f(x, y):
        return m.numpy.sin(x["a"]) * y, y * 2

    def forward(x, y):
        assert type(x["a"]) is type(y) is d.CustomVJPPrimal
        if seen is not None:
            seen.append((x["a"].perturbed, y.perturbed))
        values = d.custom_vjp_primal_tree_values((x, y))
        return f(*values), (values[0]["a"], values[1], 10.0 * x["a"].perturbed + 100.0 * y.perturbed)

    def backward(saved, ct):
        x, y, factor = saved
        if seen is not None:
            seen.append([(is_zero(m, c), c.shape) for c in ct])
        first = m.numpy.zeros_like(y) if is_zero(m, ct[0]) else ct[0]
        return {"a": factor * y * first}, None if is_zero(m, ct[1]) else factor * ct[1] + m.numpy.cos(x)

    f.defvjp(forward, backward, symbolic_zeros=True)
    return lambda x, y: f({"a": x}, y)


@pytest.mark.parametrize("name", [n for n in JVPS if "jvp" not in n and n not in ("both", "first", "second")])
def test_vjp_rules_that_see_zeros(name):
    if name in ("linearize", "jacobian"):
        return  # forward mode, which test_custom finds refused
    both(lambda m, x, y: JVPS[name](m, with_vjp(m), x, y), X, Y)


def test_vjp_rules_and_the_second_result():
    both(lambda m, x, y: m.grad(lambda y: with_vjp(m)(x, y)[1].sum())(y), X, Y)
    both(lambda m, x, y: m.vmap(m.grad(lambda x, y: with_vjp(m)(x, y)[1], (0, 1)))(x, y), X, Y)
    both(lambda m, x, y: m.grad(lambda y: m.vmap(with_vjp(m))(x, y)[1].sum())(y), X, Y)


def test_what_vjp_rules_see():
    seen = {}
    for m in (phlox, jax):
        seen[m] = []
        f = with_vjp(m, seen[m])
        m.grad(lambda x, f=f: f(x, Y)[0].sum())(X)
        m.grad(lambda y, f=f: f(X, y)[1].sum())(Y)
        m.jit(m.grad(lambda x, y, f=f: sum(f(x, y)).sum(), (0, 1)))(X, Y)
    assert seen[phlox] == seen[jax]


def test_zero_from_primal():
    tree = {"a": X, "i": np.arange(2), "s": 1.0}
    for m in (phlox, jax):
        zeros = m.custom_derivatives.zero_from_primal(tree)
        assert {k: (np.shape(v), str(np.asarray(v).dtype)) for k, v in zeros.items()} == {
            "a": ((3,), "float32"),
            "i": ((2,), "[('float0', 'V')]"),
            "s": ((), "float32"),
        }
        symbolic = m.custom_derivatives.zero_from_primal(tree, symbolic_zeros=True)
        assert [is_zero(m, v) for v in symbolic.values()] == [True] * 3
        assert symbolic["i"].shape == (2,) and symbolic["a"].ndim == 1
        assert repr(symbolic["a"]) == "SymbolicZero"


def test_values_of_what_is_no_primal():
    both(lambda m: m.custom_derivatives.custom_vjp_primal_tree_values([1.0]), jit=False)


def test_parts_of_cotangents():
    def f(m, returned):
        made = m.custom_vjp(lambda t, y: t["a"] * t["b"][0] * y)
        made.defvjp(lambda t, y: (made(t, y), None), lambda _, ct: (returned, ct))
        return lambda x: m.grad(lambda t, y: made(t, y).sum(), (0, 1))({"a": x, "b": [x]}, x)

    for returned in (
        None,
        {"a": X, "b": None},
        {"a": None, "b": [Y]},
        {"a": X, "b": Y},
        {"a": X},
        {"a": X, "b": [X, X]},
    ):
        both(lambda m, x, returned=returned: f(m, returned)(x), X)


def test_the_options_that_do_not_go_together():
    for m in (phlox, jax):
        f = m.custom_vjp(lambda x: x)
        with pytest.raises(NotImplementedError):
            f.defvjp(lambda x: (x, None), lambda _, ct: (ct,), symbolic_zeros=True, optimize_remat=True)
        g = m.custom_jvp(lambda x, y: x, nondiff_argnums=(1,))
        with pytest.raises(TypeError):
            g.defjvps(lambda t, out, x: t)


def test_traced_arguments_that_are_not_differentiated():
    def f(m):
        made = functools.partial(m.custom_jvp, nondiff_argnums=(1,))(lambda x, n: x * n)
        made.defjvp(lambda n, primals, tangents: (made(*primals, n), 10 * n * tangents[0]))
        return made

    def g(m):
        made = functools.partial(m.custom_vjp, nondiff_argnums=(1,))(lambda x, n: x * n)
        made.defvjp(lambda x, n: (x * n, None), lambda n, _, ct: (10 * ct,))
        return made

    for made in (f, g):
        both(lambda m, x, n, made=made: m.grad(lambda x: made(m)(x, n).sum())(x), X, 2.0, jit=False)
        both(lambda m, x, n, made=made: m.grad(lambda n: made(m)(x, n).sum())(n), X, 2.0, jit=False)
        both(lambda m, x, n, made=made: m.jit(m.grad(lambda x, n: made(m)(x, n).sum()))(x, n), X, 2.0, jit=False)


def test_the_order_of_arguments_that_are_not_differentiated():
    def f(m):
        made = functools.partial(m.custom_jvp, nondiff_argnums=(2, 0))(lambda a, x, b: x * a - b)
        made.defjvp(lambda a, b, primals, tangents: (made(a, *primals, b), (10 * a + b) * tangents[0]))
        return made

    both(lambda m, x: m.grad(lambda x: f(m)(3, x, 5).sum())(x), X)


# --- linear_call ----------------------------------------------------------------------------------------


def scaled(m, factor=7.0):
    return lambda r, x: m.custom_derivatives.linear_call(
        lambda r, x: {"a": x["x"] / r, "b": x["x"]}, lambda r, ct: {"x": factor * (ct["a"] / r) + ct["b"]}, r, {"x": x}
    )


LINEAR = {
    "value": lambda m, r, x: scaled(m)(r, x),
    "jvp": lambda m, r, x: m.jvp(lambda x: scaled(m)(r, x), (x,), (x,)),
    "grad": lambda m, r, x: m.grad(lambda x: scaled(m)(r, x)["a"].sum())(x),
    "transpose": lambda m, r, x: m.linear_transpose(lambda x: scaled(m)(r, x), x)({"a": x, "b": x}),
    "grad of jit": lambda m, r, x: m.grad(lambda x: m.jit(scaled(m))(r, x)["a"].sum())(x),
    "twice transposed": lambda m, r, x: m.linear_transpose(
        lambda c: m.linear_transpose(lambda x: scaled(m)(r, x), x)(c)[0], {"a": x, "b": x}
    )(x),
    "closing over": lambda m, r, x: m.grad(
        lambda x: m.custom_derivatives.linear_call(lambda _, x: x * r, lambda _, ct: ct * r * 3, (), x).sum()
    )(x),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_call(name):
    both(lambda m, r, x: LINEAR[name](m, r, x), Y, X)


def test_linear_call_in_second_order():
    """jax fails on the part of the result whose cotangent is zero."""
    found = phlox.grad(lambda x: (phlox.grad(lambda x: (scaled(phlox)(Y, x)["a"] ** 2).sum())(x) ** 2).sum())(X)
    np.testing.assert_allclose(found, 8 * 7 * 7 * X / Y**4, rtol=1e-5)


def test_linear_call_in_batches():
    """jax has no batching rule here."""
    for in_axes in ((0, 0), (None, 0), (0, None)):
        r, x = (np.stack([a, a + 1]) if d == 0 else a for a, d in zip((Y, X), in_axes, strict=True))
        f = lambda r, x: phlox.grad(lambda x: (scaled(phlox)(r, x)["a"] ** 2).sum())(x)
        alone = [f(*(a if d is None else a[i] for a, d in zip((r, x), in_axes, strict=True))) for i in range(2)]
        np.testing.assert_allclose(phlox.vmap(f, in_axes)(r, x), np.stack(alone), rtol=1e-6)
        total = lambda r, x, axes=in_axes: sum(phlox.vmap(scaled(phlox), axes)(r, x)["a"] ** 2).sum()
        batch = phlox.grad(total, 1)(r, x)
        np.testing.assert_allclose(batch, np.sum(alone, 0) if in_axes[1] is None else np.stack(alone), rtol=1e-6)


def test_linear_call_wrong():
    wrong = {
        "structure": lambda r, ct: (ct,),
        "shape": lambda r, ct: ct.sum(),
        "dtype": lambda r, ct: ct.astype("int32"),
    }
    for back in wrong.values():
        call = lambda m, x, back=back: m.custom_derivatives.linear_call(lambda r, x: x * r, back, 2.0, x).sum()
        with pytest.raises((TypeError, ValueError), match="<lambda> returns something unlike the argument"):
            phlox.grad(functools.partial(call, phlox))(X)
    with pytest.raises(phlox.errors.DerivativeError, match="not linear in"):
        phlox.grad(lambda r: scaled(phlox)(r, X)["a"].sum())(Y)


# --- optimize_remat -------------------------------------------------------------------------------------


def opaque(m, optimize=True):
    f = m.custom_vjp(lambda x: m.numpy.sin(x))
    f.defvjp(lambda x: (m.numpy.tanh(x), m.numpy.cos(x)), lambda r, ct: (10 * r * ct,), optimize_remat=optimize)
    return f


REMAT = {
    "grad": lambda m, f, x: m.value_and_grad(lambda x: f(x).sum())(x),
    "checkpoint": lambda m, f, x: m.value_and_grad(lambda x: m.checkpoint(f)(x).sum())(x),
    "checkpoint, kept": lambda m, f, x: m.value_and_grad(
        lambda x: m.checkpoint(f, policy=m.checkpoint_policies.everything_saveable)(x).sum()
    )(x),
    "vmap": lambda m, f, x: m.vmap(m.value_and_grad(m.checkpoint(f)))(x),
    "of vmap": lambda m, f, x: m.value_and_grad(lambda x: m.checkpoint(m.vmap(f))(x).sum())(x),
    "of jit": lambda m, f, x: m.value_and_grad(lambda x: m.checkpoint(m.jit(f))(x).sum())(x),
}


@pytest.mark.parametrize("name", REMAT)
def test_optimize_remat(name):
    """The rule returns another value (tanh) than the function (sin), so that it is seen which of them ran."""
    both(lambda m, x: m.jit(lambda x: REMAT[name](m, opaque(m), x))(x), X)


def test_a_value_that_is_not_needed_runs_the_function():
    for m in (phlox, jax):
        run = m.jit(lambda x, m=m: m.vjp(opaque(m), x)[0])
        text = run.lower(X).as_text()
        assert "sine" in text and "tanh" not in text


def test_optimize_remat_in_second_order():
    """jax refuses this."""
    second = phlox.grad(lambda x: phlox.grad(lambda x: opaque(phlox)(x).sum())(x).sum())(X)
    np.testing.assert_allclose(second, -10 * np.sin(X), rtol=1e-6)


# --- wrong rules ----------------------------------------------------------------------------------------


def jvp_rule(rule):
    def make(m):
        f = m.custom_jvp(lambda x: {"a": x * 2, "b": (x, x)})
        f.defjvp(lambda p, t: (rule(m, *p), {"a": t[0], "b": (t[0], t[0])}))
        return lambda x: m.jvp(f, (x,), (x,))

    return make


def fwd_rule(rule):
    def make(m):
        f = m.custom_vjp(lambda x: {"a": x * 2, "b": (x, x)})
        f.defvjp(lambda x: (rule(m, x), None), lambda _, ct: (ct["a"],))
        return m.grad(lambda x: m.jit(f)(x)["a"].sum())  # without jit, jax has nothing to compare with

    return make


WRONG = {
    "structure": lambda m, x: {"a": x},
    "shape": lambda m, x: {"a": x, "b": (x, x.sum())},
    "dtype": lambda m, x: {"a": x, "b": (x, x.astype("int32"))},
    "no array": lambda m, x: {"a": x, "b": (x, "x")},
}


@pytest.mark.parametrize("kind", ["jvp", "fwd"])
@pytest.mark.parametrize("name", WRONG)
def test_values_that_are_not_those_of_the_function(kind, name):
    make = {"jvp": jvp_rule, "fwd": fwd_rule}[kind](WRONG[name])
    both(lambda m, x: make(m)(x), X, jit=False)
    if name in ("shape", "dtype"):
        with pytest.raises(
            phlox.errors.DerivativeError, match=rf"[Tt]he {kind} rule of <lambda> returned .*result\['b'\]\[1\]"
        ):
            make(phlox)(X)


def test_a_floating_cotangent_of_another_dtype_is_converted():
    """jax lets it pass, and fails where it meets a cotangent of the argument's dtype."""

    def slope(m, program):
        f = m.custom_vjp(lambda x: (2 * x).astype("float32"))
        f.defvjp(lambda x: (f(x), None), lambda _, ct: (2 * ct,))
        return m.grad(lambda x: program(m, f, x))(m.numpy.ones(3, "bfloat16"))

    alone = [slope(m, lambda m, f, x: f(x).sum()) for m in (jax, phlox)]
    np.testing.assert_array_equal(*[np.asarray(x, np.float32) for x in alone])
    assert alone[1].dtype == "bfloat16"
    for program in (
        lambda m, f, x: f(3 * x).sum(),
        lambda m, f, x: f(x).sum() + x.astype("float32").sum() * 4,
        lambda m, f, x: m.lax.cond(x[0] > 0, lambda x: f(3 * x), lambda x: x.astype("float32"), x).sum(),
        lambda m, f, x: m.vmap(m.jit(lambda x: f(3 * x)))(x).sum(),
    ):
        found = slope(phlox, program)
        assert found.dtype == "bfloat16" and (found == 6).all()


def test_a_number_is_a_cotangent():
    """A rule that returns 0 for an argument that it does not differentiate; jax has a gradient of int32."""

    def slopes(m, argnums):
        f = m.custom_vjp(lambda x, y: x * 2)
        f.defvjp(lambda x, y: (x * 2, None), lambda _, ct: (3 * ct, 0))
        return m.grad(f, argnums)(np.float32(2), np.float32(5))

    both(lambda m: slopes(m, 0))
    gradient = slopes(phlox, 1)
    assert gradient == 0 and gradient.dtype == "float32"


def test_a_cotangent_is_not_rounded_to_8_bits():
    f = phlox.custom_vjp(lambda x: x.astype("float32"))
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct,))
    with pytest.raises(phlox.errors.DerivativeError, match="type f32"):
        phlox.grad(lambda x: f(x).sum())(phlox.numpy.ones(3, "float8_e4m3fn"))


def test_a_symbolic_zero_of_another_shape_is_named():
    f = phlox.custom_vjp(lambda x, y: (x, y))
    f.defvjp(lambda x, y: ((x.value, y.value), None), lambda _, cts: (cts[1], cts[0]), symbolic_zeros=True)
    with pytest.raises(ValueError, match="Consider just returning a None here"):
        phlox.grad(lambda x, y: f(x, y)[0].sum())(X, X[:2])


@pytest.mark.parametrize("dtype", ["int32", "complex64"])
def test_a_cotangent_of_another_kind_is_named(dtype):
    """jax lets it pass, and fails later or not at all."""
    f = phlox.custom_vjp(lambda x, y: x)
    f.defvjp(lambda x, y: (x, None), lambda _, ct: (ct, [ct.astype(dtype)]))
    short = {"int32": "i32", "complex64": "c64"}[dtype]
    with pytest.raises(
        phlox.errors.DerivativeError,
        match=rf"output\[1\]\[0\] the bwd rule produced an output of type {short}\[3\].*argument of <lambda> of type f32\[3\]",
    ):
        phlox.grad(lambda x, y: f(x, y).sum(), (0, 1))(X, [Y])


# Rules that compute primals and tangents in one compiled function, loop or branch: the primals are known all the same.
JOINT = {
    "jvp of jit": lambda m, f, p, t: m.jvp(m.jit(f), (p,), (t,)),
    "jit": lambda m, f, p, t: m.jit(lambda p, t: m.jvp(m.jit(f), (p,), (t,)))(p, t),
    "vmap": lambda m, f, p, t: m.vmap(lambda p, t: m.jvp(m.jit(f), (p,), (t,)))(p, t),
    "scan": lambda m, f, p, t: m.lax.scan(lambda c, x: (c + 1, m.jvp(f, x[:1], x[1:])), 0.0, (p, t))[1],
    "cond": lambda m, f, p, t: m.lax.cond(p[0] > 0, lambda p, t: m.jvp(f, (p,), (t,)), lambda p, t: (p, t), p, t),
    "carried": lambda m, f, p, t: m.lax.fori_loop(0, 2, lambda i, c: m.jvp(f, (c[0],), (c[1],)), (p, t)),
    "remat": lambda m, f, p, t: m.checkpoint(lambda p, t: m.jvp(f, (p,), (t,)))(p, t),
}


@pytest.mark.parametrize("name", JOINT)
def test_a_rule_may_compute_primals_and_tangents_together(name):
    def case(m, x):
        f = m.custom_jvp(lambda x: m.numpy.sin(x) * x)
        f.defjvp(lambda p, t: JOINT[name](m, lambda x: m.numpy.sin(x) * x, *p, *t))
        loss = lambda a: f(a * x).sum()
        in_loop = lambda a: m.lax.scan(lambda c, y: (c + f(c * y).sum(), None), a, m.numpy.stack([x, x]))[0]
        return m.value_and_grad(loss)(1.5), m.value_and_grad(in_loop)(X[0]), m.hessian(loss)(1.5)

    both(case, X)


def test_a_rule_may_choose_by_the_value_of_a_compiled_function():
    total = phlox.jit(lambda x: x.sum())
    f = phlox.custom_jvp(lambda x: x.sum())

    @f.defjvp
    def rule(primals, tangents):
        out, tangent = phlox.jvp(total, primals, tangents)
        return out, tangent if out > 1 else 0 * tangent

    assert phlox.grad(f)(phlox.numpy.ones(2)).tolist() == [1, 1]
    assert phlox.grad(f)(phlox.numpy.zeros(2)).tolist() == [0, 0]


@pytest.mark.parametrize("operand", ["primal", "tangent"])
def test_callbacks_of_a_compiled_rule_are_called_once(operand):
    def case(m, x):
        calls = []

        def count(run):
            calls.clear()
            run()
            m.effects_barrier()
            return len(calls)

        f = m.custom_jvp(m.numpy.sin)

        @f.defjvp
        @m.jit
        def rule(primals, tangents):
            m.debug.callback(calls.append, (primals if operand == "primal" else tangents)[0])
            return m.numpy.sin(primals[0]), m.numpy.cos(primals[0]) * tangents[0] * np.arange(3.0)

        loss = lambda x: f(x).sum()
        return [
            count(lambda: m.grad(loss)(x)),
            count(lambda: m.jit(m.grad(loss))(x)),
            count(lambda: m.linearize(loss, x)[1](x)),
            count(lambda: m.jvp(loss, (x,), (x,))),
            count(lambda: m.hessian(loss)(x)),
            count(lambda: m.vmap(m.grad(loss))(x)),
        ]

    both(case, X)
