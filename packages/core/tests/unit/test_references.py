"""References beyond what jax does with them: in branches, under transformations, in jitted functions, after errors."""

import gc

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import P, errors, grad, jit, lax, new_ref, vmap

X = np.array([0.5, 1.5, 2.5], np.float32)


def with_branch(x):
    total = new_ref(jnp.zeros(()))

    def step(c, a):
        lax.cond(a > c, lambda: total.addupdate(a**2), lambda: total.addupdate(c * a))
        return c + 0.5, None

    lax.scan(step, 1.0, x)
    return total[...]


def without(x):
    c, total = 1.0, 0.0
    for a in x:
        total = total + jnp.where(a > c, a**2, c * a)
        c = c + 0.5
    return total


@pytest.mark.parametrize("shape", ["plain", "checkpoint", "jit", "twice"])
def test_references_in_branches_under_transformations(shape):
    """jax refuses vmap of a branch that writes, and fails in checkpoint."""
    f = {"checkpoint": phlox.checkpoint, "jit": jit}.get(shape, lambda f: f)(with_branch)
    g, h = (f, without) if shape != "twice" else (lambda x: grad(f)(x).sum(), lambda x: grad(without)(x).sum())
    np.testing.assert_allclose(g(X), h(X), rtol=1e-6)
    np.testing.assert_allclose(grad(g)(X), grad(h)(X), rtol=1e-6)
    batch = np.stack([X, X[::-1], X * 2])
    np.testing.assert_allclose(vmap(g)(batch), [h(x) for x in batch], rtol=1e-6)
    np.testing.assert_allclose(jit(vmap(grad(g)))(batch), [grad(h)(x) for x in batch], rtol=1e-6)


def test_a_function_with_references_is_traced_once():
    traced = []
    count = new_ref(0)

    @jit
    def step(r, x):
        traced.append(x)
        count[...] += 1
        r[...] += x
        return r[0]

    a, b = new_ref(X), new_ref(X * 2)
    step(a, 1.0)
    first = len(traced)
    for k in range(3):
        step(b, float(k))
        step(a, 2.0)
    assert len(traced) == first
    assert count[...] == 7
    np.testing.assert_allclose(a[...], X + 7)
    np.testing.assert_allclose(b[...], X * 2 + 3)
    step(new_ref(np.ones(2, np.float32)), 1.0)
    assert len(traced) == first + 1


def test_another_reference_found_later():
    r, s = new_ref(1.0), new_ref(10.0)

    @jit
    def step(x):
        r[...] += 1.0
        if x.shape:
            s[...] += x.sum()
        return r[...]

    step(1.0)
    step(X)
    step(2.0)
    step(X)
    assert (r[...], s[...]) == (5.0, 10 + 2 * X.sum())


def test_an_error_leaves_references_as_they_were():
    r = new_ref(X)

    @jit
    def step(x):
        r[0] = 5.0
        raise KeyError(x)

    with pytest.raises(KeyError):
        step(1.0)
    np.testing.assert_array_equal(r[...], X)


def test_references_without_jit():
    r = new_ref(X)
    f = jit(lambda s, x: s.__setitem__(0, x))
    with phlox.disable_jit():
        f(r, 7.0)
    assert r[0] == 7


def test_references_in_other_orders_of_transformations():
    r = new_ref(jnp.zeros(3))
    log = lambda x: r.__setitem__(..., r[...] + lax.stop_gradient(x)) or (x**2).sum()
    np.testing.assert_allclose(jit(grad(log))(X), 2 * X)
    np.testing.assert_allclose(grad(jit(log))(X), 2 * X)
    np.testing.assert_allclose(grad(lambda x: lax.scan(lambda c, _: (c, log(x)), 0, None, length=2)[1].sum())(X), 4 * X)
    np.testing.assert_allclose(r[...], 4 * X)


def test_where_references_are_refused():
    r = new_ref(X)
    custom = phlox.custom_vjp(lambda x: r[0] * x)
    custom.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
    with pytest.raises(errors.RefError, match=r"Ref\{float32\[3\]\}"):
        grad(jit(custom))(2.0)
    with pytest.raises(errors.RefError, match="from outside"):
        phlox.make_jaxpr(lambda: r[0])()
    mesh = phlox.make_mesh((2,), ("i",))
    with pytest.raises(errors.RefError):
        phlox.shard_map(lambda x: x + r[0], mesh=mesh, in_specs=P("i"), out_specs=P("i"))(np.ones(2, np.float32))
    with pytest.raises(errors.RefError, match="shardings"):
        jit(lambda x: x + r[0], out_shardings=phlox.NamedSharding(mesh, P()))(1.0)
    with pytest.raises(errors.RefError, match="passed twice"):
        vmap(lambda a, b: a[...] + b[...])(r, r)
    with pytest.raises(errors.RefError, match="new_ref"):
        phlox.ref.get(jnp.ones(2))


def test_references_let_go_of_their_values():
    big = jnp.ones((100, 7))
    r = new_ref(big)
    jit(lambda s: s.__setitem__(..., s[...] * 2))(r)
    count = lambda: sum(a.shape == (100, 7) for a in phlox.live_arrays())
    assert count() == 2
    del big
    gc.collect()
    assert count() == 1
