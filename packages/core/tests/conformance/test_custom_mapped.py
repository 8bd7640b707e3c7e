"""custom_jvp and custom_vjp under vmap: rules that close over mapped values, and results that all examples share."""

import functools

import jax
import numpy as np
import pytest

import phlox
from conformance.harness import agree, outcome, row

NEAR = row("custom derivatives")
X = np.array([0.5, -1.0, 2.0], np.float32)
ONE = np.float32(1.5)


def both(case, *args, jit=True):
    theirs = outcome(case, jax, args)
    agree(outcome(case, phlox, args), theirs, NEAR, "")
    if jit:
        agree(outcome(lambda m, *xs: m.jit(functools.partial(case, m))(*xs), phlox, args), theirs, NEAR, "under jit")


# --- rules that close over mapped values ----------------------------------------------------------------


def jvp_over(m, x):
    """The function and its rule close over `x`."""
    g = m.custom_jvp(lambda y: x * y)
    g.defjvp(lambda p, t: (x * p[0], 3 * x * t[0]))
    return g


def vjp_over(m, x):
    g = m.custom_vjp(lambda y: x * y)
    g.defvjp(lambda y: (x * y, (x, y)), lambda saved, ct: (3 * saved[0] * ct,))
    return g


def scaled_jvp(m, x):
    """The rule alone closes over `x`."""
    g = m.custom_jvp(lambda y: y + 1)
    g.defjvp(lambda p, t: (g(*p), x * t[0]))
    return g


def scaled_vjp(m, x):
    g = m.custom_vjp(lambda y: y + 1)
    g.defvjp(lambda y: (g(y), x), lambda x, ct: (x * ct,))
    return g


OVER = {f.__name__: f for f in (jvp_over, vjp_over, scaled_jvp, scaled_vjp)}


@pytest.mark.parametrize("name", OVER)
def test_rules_close_over_mapped_values(name):
    f = OVER[name]
    at_once = name.startswith("scaled")  # in a program that is differentiated later, the rule comes too late
    total = lambda m, z, x: m.vmap(lambda x: f(m, x)(z))(x).sum()
    both(lambda m, z, x: m.vmap(lambda x: f(m, x)(z))(x), ONE, X)
    if name != "scaled_vjp":  # all examples share its result, see `test_a_shared_result_has_one_cotangent`
        both(lambda m, z, x: m.grad(functools.partial(total, m))(z, x), ONE, X, jit=not at_once)
    both(lambda m, z, x: m.vmap(lambda x, z: m.grad(f(m, x))(z), (0, None))(x, z), ONE, X)
    both(lambda m, z, x: m.grad(lambda z: m.vmap(lambda x, z: f(m, x)(z))(x, z).sum())(z), X, X)
    inner = lambda m, z, x: m.vmap(lambda a: m.vmap(lambda b: f(m, a)(b))(z))(x).sum()
    if not at_once:  # the rule of vmap does not know of a function that uses nothing that it maps
        both(lambda m, z, x: m.grad(functools.partial(inner, m))(z, x), X, X)
    if name.endswith("jvp"):
        both(lambda m, z, x: m.jvp(lambda z: m.vmap(lambda x: f(m, x)(z))(x), (z,), (z,)), ONE, X)


def test_a_rule_that_comes_too_late_is_refused():
    later = phlox.jit(lambda z: phlox.vmap(lambda x: scaled_jvp(phlox, x)(z))(X).sum())
    with pytest.raises(phlox.errors.UnexpectedTracerError, match="can't close over a value that vmap maps"):
        phlox.grad(later)(ONE)


def test_mapped_arguments_that_are_not_differentiated():
    def f(m):
        made = functools.partial(m.custom_jvp, nondiff_argnums=(0,))(lambda x, y: x * y)
        made.defjvp(lambda x, p, t: (made(x, *p), 5 * x * t[0]))
        return made

    both(lambda m, x, y: m.jvp(lambda y: m.vmap(f(m))(x, y), (y,), (x,)), X, X + 1)
    both(lambda m, x, y: m.jvp(lambda y: m.vmap(f(m), (0, None))(x, y), (y,), (y,)), X, ONE)
    both(lambda m, x, y: m.grad(lambda y: m.vmap(f(m), (0, None))(x, y).sum())(y), X, ONE)


# --- results that are the same for all examples ---------------------------------------------------------


def shared_vjp(m):
    f = m.custom_vjp(lambda x, y: (y, x * y))
    f.defvjp(lambda x, y: (f(x, y), y), lambda y, ct: (ct[0] + ct[1] * y, None))
    return f


def shared_jvp(m):
    f = m.custom_jvp(lambda x, y: (y, x * y))
    f.defjvp(lambda p, t: (f(*p), (10 * t[1], t[0])))
    return f


def sum_vjp(m):
    f = m.custom_vjp(lambda x, y: (m.lax.psum(x, "i"), x * y))
    f.defvjp(lambda x, y: (f(x, y), None), lambda _, ct: (ct[0] + 2 * ct[1], None))
    return f


SHARED = {f.__name__: f for f in (shared_vjp, shared_jvp, sum_vjp)}


@pytest.mark.parametrize("name", SHARED)
def test_results_that_all_examples_share(name):
    def mapped(m, jitted, axes):
        f = SHARED[name](m)
        return m.vmap(m.jit(f) if jitted else f, (0, None), axes, axis_name="i")

    for jitted in (False, True):
        both(lambda m, x, y: mapped(m, jitted, (None, 0))(x, y), X, ONE)
        for axes in ((None, 0), 0):
            if name == "shared_jvp" and axes != 0:
                continue  # where x and y have tangents, so has the first result
            total = lambda m, axes=axes: lambda x, y: sum(a.sum() for a in mapped(m, jitted, axes)(x, y))
            both(lambda m, x, y: m.grad(total(m), (0, 1))(x, y), X, ONE)
    agree(
        outcome(
            lambda m: m.vmap(lambda _, y: SHARED[name](m)(y, y), (0, None), None, axis_name="i")(X, ONE), phlox, ()
        ),
        outcome(lambda m: m.vmap(lambda _, y: SHARED[name](m)(y, y), (0, None), None, axis_name="i")(X, ONE), jax, ()),
        NEAR,
        "one for all",
    )


def one_shared(m, **options):
    """The first result is the same for all examples of x, and its rule is right."""
    f = m.custom_vjp(lambda y, x: (y + 1, x * y))
    f.defvjp(lambda y, x: (f(y, x), (y, x)), lambda s, ct: (ct[0] + s[1] * ct[1], s[0] * ct[1]), **options)
    return f


@pytest.mark.parametrize("axes", [(None, 0), 0])
@pytest.mark.parametrize("how", ["at once", "jit outside", "jit inside"])
def test_a_shared_result_has_one_cotangent(how, axes):
    """jax 0.10 counts it once for each example; jax 0.12 refuses too, and has the same option."""

    def gradient(part, **options):
        f = one_shared(phlox, **options)
        f = phlox.jit(f) if how == "jit inside" else f
        total = lambda y, x: sum(a.sum() for a in phlox.vmap(f, (None, 0), axes)(y, x)[part])
        return phlox.grad(phlox.jit(total) if how == "jit outside" else total, (0, 1))(ONE, X)

    with pytest.raises(
        phlox.errors.DerivativeError, match=r"(?s)share a result of the custom_vjp.* generic_batching=True"
    ):
        gradient(slice(2))
    shared = len(X) if axes == 0 else 1
    for part, expected in ((slice(2), shared + X.sum()), (slice(1, 2), X.sum()), (slice(1), shared)):
        by_y, by_x = gradient(part, generic_batching=True)
        np.testing.assert_allclose(by_y, expected)
        np.testing.assert_allclose(by_x, [ONE] * 3 if part.stop == 2 else [0] * 3)
    np.testing.assert_allclose(gradient(slice(1, 2))[0], X.sum())  # its cotangent is zero


def test_a_result_that_the_forward_rule_maps_and_the_function_shares():
    f = phlox.custom_vjp(lambda y, x: y)
    f.defvjp(lambda y, x: (y * x, None), lambda _, ct: (ct, None), generic_batching=True)
    value, gradient = phlox.value_and_grad(lambda y: phlox.vmap(f, (None, 0), None)(y, X))(ONE)
    assert (value, gradient) == (ONE * X[0], 1)


@pytest.mark.parametrize("how", ["at once", "jit outside", "jit inside"])
def test_a_tangent_of_each_example_for_a_result_that_all_share(how):
    """With jit outside jax fails, and with jit inside it counts each example three times."""
    f = phlox.custom_jvp(lambda x, y: y)
    f.defjvp(lambda p, t: (p[1], 2 * t[0]))
    mapped = phlox.vmap(phlox.jit(f) if how == "jit inside" else f, (0, None))
    mapped = phlox.jit(mapped) if how == "jit outside" else mapped
    np.testing.assert_array_equal(mapped(X, ONE), [ONE] * 3)
    np.testing.assert_array_equal(phlox.jvp(mapped, (X, ONE), (X, ONE))[1], 2 * X)
    np.testing.assert_array_equal(phlox.grad(lambda x: mapped(x, ONE).sum())(X), [2, 2, 2])
    if how != "at once":
        return
    assert phlox.vmap(f, (0, None), None)(X, ONE) == ONE
    with pytest.raises(ValueError, match="at vmap out_axes"):
        phlox.grad(lambda x: phlox.vmap(f, (0, None), None)(x, ONE))(X)


def test_a_rule_that_refuses_is_not_in_the_way_of_values():
    def f(m):
        made = m.custom_jvp(lambda x, y: (y, x))

        @made.defjvp
        def rule(primals, tangents):
            raise NotImplementedError("no derivative")

        return m.vmap(made, (0, None), (None, 0))

    both(lambda m, x, y: f(m)(x, y), X, ONE)
    both(lambda m, x, y: m.grad(lambda x: f(m)(x, y)[1].sum())(x), X, ONE)


def test_collectives_in_staged_functions():
    def f(m):
        made = m.custom_jvp(lambda x: m.lax.psum(x, "i"))
        made.defjvp(lambda p, t: (m.lax.psum(p[0], "i"), t[0]))
        return made

    both(lambda m, x: m.vmap(lambda _, y: m.jit(f(m))(y), (0, None), None, axis_name="i")(x, ONE), X)
    both(lambda m, x: m.vmap(lambda x: f(m)(x), out_axes=None, axis_name="i")(x), X, jit=False)
    both(lambda m, x: m.jvp(m.vmap(f(m), axis_name="i"), (x,), (x,)), X)
