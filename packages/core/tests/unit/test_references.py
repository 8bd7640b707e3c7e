"""The top module: references beyond what jax does with them, what mapped functions keep, and what is said of the machine."""

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


def test_live_arrays_are_the_arrays_of_the_program():
    x = jnp.full((3, 11), 2.5)
    (found,) = [a for a in phlox.live_arrays() if a.shape == (3, 11)]
    np.testing.assert_array_equal(found, x)
    found.delete()
    assert x.is_deleted()
    mesh = phlox.make_mesh((4,), ("i",))
    y = phlox.device_put(np.ones((4, 13), np.float32), phlox.NamedSharding(mesh, P("i")))
    (found,) = [a for a in phlox.live_arrays() if a.shape == (4, 13)]
    assert found.sharding == y.sharding


def test_environment_is_described(capsys):
    text = phlox.print_environment_info(return_string=True)
    for word in ("phlox", "jaxlib", np.__version__, "python", "device info", "platform"):
        assert word in text
    assert phlox.print_environment_info() is None
    assert capsys.readouterr().out.strip() == text.strip()


def test_mapped_functions_are_compiled_once():
    traced = []
    mesh = phlox.make_mesh((4,), ("i",))

    def f(x, n):
        traced.append(n)
        return x * n + lax.axis_index("i")

    mapped = phlox.shard_map(f, mesh=mesh, in_specs=(P("i"), None), out_specs=P("i"))
    x = np.arange(8.0, dtype=np.float32)
    for n in (2, 3, 2, 3):
        np.testing.assert_allclose(mapped(x, n), x * n + np.arange(8) // 2)
    assert traced == [2, 3]
    assert mapped(x.astype(np.int32), 2).dtype == np.int32
    assert len(traced) == 3


def test_smap_inside_of_smap():
    with phlox.set_mesh(phlox.make_mesh((2, 4), ("x", "y"))):
        inner = phlox.smap(lambda a: a + 10 * lax.axis_index("y"), in_axes=1, out_axes=1, axis_name="y")
        outer = phlox.smap(lambda a: inner(a) + 100 * lax.axis_index("x"), in_axes=0, out_axes=0, axis_name="x")
        out = jit(outer)(np.zeros((2, 4), np.int32))
    np.testing.assert_array_equal(out, np.arange(4) * 10 + 100 * np.arange(2)[:, None])


def test_the_mesh_of_the_context():
    a, b = phlox.make_mesh((2,), ("i",)), phlox.make_mesh((4,), ("i",))
    x = np.arange(8.0, dtype=np.float32)
    first = jit(phlox.shard_map(lambda x: x - x[0], in_specs=P("i"), out_specs=P("i")))
    with phlox.set_mesh(a):
        np.testing.assert_array_equal(first(x), np.tile(np.arange(4), 2))
        with b:
            assert phlox.sharding.get_mesh() == b
            np.testing.assert_array_equal(first(x), np.tile(np.arange(2), 4))
        assert phlox.sharding.get_mesh() == a
    assert phlox.sharding.get_mesh().empty
    before = phlox.set_mesh(b)
    try:
        assert before.prev_mesh is None and before.prev_abstract_mesh.empty
        np.testing.assert_array_equal(first(x), np.tile(np.arange(2), 4))
    finally:
        phlox.set_mesh(None)
    assert phlox.sharding.get_mesh().empty
    with pytest.raises(errors.DeviceError, match="not the mesh of the context"), phlox.set_mesh(a):
        phlox.shard_map(lambda x: x, mesh=b.abstract_mesh, in_specs=P("i"), out_specs=P("i"))(x)


def test_reshard_in_a_program_places_its_result():
    mesh = phlox.make_mesh((4,), ("i",))
    where = phlox.NamedSharding(mesh, P("i"))
    x = phlox.device_put(np.arange(8.0, dtype=np.float32), phlox.NamedSharding(mesh, P()))
    assert jit(lambda x: phlox.reshard(x * 2, where))(x).sharding == where
    assert jit(lambda x: phlox.device_put(x, where))(x).sharding == where
    assert vmap(lambda x: phlox.reshard(x, where))(np.ones((2, 8), np.float32)).shape == (2, 8)
    with pytest.raises(errors.ShapeError, match="more entries"):
        phlox.reshard(1.0, where)
    with pytest.raises(errors.OptionError):
        phlox.reshard(x, phlox.devices()[0])


def test_an_index_before_the_array():
    x = jnp.arange(3.0)
    assert x[-4] == x[-9] == 0
    np.testing.assert_array_equal(x.at[-4].set(9.0), x)
    np.testing.assert_array_equal(jit(lambda x, i: x.at[i].add(9.0))(x, -5), x)


def test_errors_that_programs_catch():
    with pytest.raises(errors.JAXTypeError):
        jit(lambda x: bool(x))(1.0)
    with pytest.raises(errors.JAXIndexError):
        jit(lambda x: x[x > 1])(X)
    assert issubclass(errors.KeyReuseError, errors.JAXTypeError)


def test_device_put_sharded_and_replicated_feed_pmap():
    devices = phlox.devices()[:4]
    shards = phlox.device_put_sharded([{"x": np.full(2, i)} for i in range(4)], devices)
    assert [int(v) for v in phlox.pmap(lambda t: t["x"].sum())(shards)] == [0, 2, 4, 6]
    copies = phlox.device_put_replicated(np.arange(3.0), devices)
    assert copies.shape == (4, 3)
    assert copies.sharding.shard_shape(copies.shape) == (1, 3)
    with pytest.raises(phlox.errors.ArgumentError, match="3 shards for 4 devices"):
        phlox.device_put_sharded([1, 2, 3], devices)
