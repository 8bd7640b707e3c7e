"""pmap over eight virtual devices: results, collectives, derivatives, placement, and what it shares with vmap."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import grad, jit, lax, pmap, vmap
from phlox._xla.mesh import Mesh

N = 8
X = np.arange(24.0, dtype=np.float32).reshape(N, 3)


def test_each_device_gets_its_slice():
    out = pmap(lambda x: x * 2 + 1)(X)
    np.testing.assert_array_equal(out, X * 2 + 1)
    assert len(out.devices()) == N
    assert out.committed
    for k, shard in enumerate(out.addressable_shards):
        assert shard.device == phlox.devices()[k]
        np.testing.assert_array_equal(shard.data, X[k : k + 1] * 2 + 1)


def test_results_are_ordinary_arrays():
    out = pmap(lambda x: x + 1)(X)
    np.testing.assert_array_equal(out[3], X[3] + 1)
    np.testing.assert_array_equal(out + 1, X + 2)
    np.testing.assert_allclose(out.mean(0), (X + 1).mean(0))
    np.testing.assert_array_equal(jit(lambda a: a.sum(1))(out), (X + 1).sum(1))
    np.testing.assert_array_equal(pmap(lambda a: a - 1)(out), X)
    assert next(iter(out)).tolist() == (X[0] + 1).tolist()


def test_results_stay_where_they_are():
    step = pmap(lambda x: x + 1, axis_name="i", donate_argnums=0)
    state = step(X)
    for _k in range(3):
        before = state
        state = step(state)
        assert before.is_deleted()
    np.testing.assert_array_equal(state, X + 4)


@pytest.mark.parametrize("op", ["psum", "pmean", "pmax", "pmin"])
def test_collectives(op):
    reduce = {"psum": np.sum, "pmean": np.mean, "pmax": np.max, "pmin": np.min}[op]
    collective = getattr(lax, op)
    f = lambda x: {"a": collective(x, "i"), "b": x - collective(x, axis_name="i")}
    out = pmap(f, axis_name="i")(X)
    np.testing.assert_allclose(out["a"], np.broadcast_to(reduce(X, 0), X.shape), rtol=1e-6)
    np.testing.assert_allclose(out["b"], X - reduce(X, 0), rtol=1e-6)
    same = vmap(f, axis_name="i")(X)
    np.testing.assert_allclose(out["b"], same["b"], rtol=1e-6)
    # Inside of a jitted function, and with a batch within each device.
    np.testing.assert_allclose(pmap(jit(f), axis_name="i")(X)["a"], out["a"], rtol=1e-6)
    inner = pmap(vmap(lambda x: collective(x, "i")), axis_name="i")(X)
    np.testing.assert_allclose(inner, out["a"], rtol=1e-6)
    both = pmap(vmap(lambda x: collective(x, ("i", "j")), axis_name="j"), axis_name="i")(X)
    np.testing.assert_allclose(both, np.full(X.shape, reduce(X)), rtol=1e-5)


def test_axis_index_and_size():
    np.testing.assert_array_equal(pmap(lambda x: lax.axis_index("i"), axis_name="i")(X), np.arange(N))
    np.testing.assert_array_equal(pmap(lambda x: x * lax.psum(1, "i"), axis_name="i")(X), X * N)


def test_axes_of_arguments_and_results():
    w = np.array([1.0, 2.0, 3.0], np.float32)
    np.testing.assert_allclose(pmap(lambda x, w: x @ w, in_axes=(0, None))(X, w), X @ w)
    np.testing.assert_array_equal(pmap(lambda x: x, in_axes=1)(X.T), X)
    np.testing.assert_array_equal(pmap(lambda x: x, out_axes=1)(X), X.T)
    np.testing.assert_array_equal(pmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(X), X.sum(0))
    tree = {"p": X, "q": (w, 2.0)}
    out = pmap(lambda t: t["p"] * t["q"][0] + t["q"][1], in_axes=({"p": 0, "q": None},))(tree)
    np.testing.assert_allclose(out, X * w + 2)
    _a, b = pmap(lambda x, *, k: (x, x + k))(X, k=X)
    np.testing.assert_array_equal(b, X * 2)


def test_static_arguments_devices_and_fewer_slices():
    out = pmap(lambda x, n, f: f(x) * n, static_broadcasted_argnums=(1, 2))(X, 3, jnp.negative)
    np.testing.assert_array_equal(out, -3 * X)
    chosen = phlox.devices()[5:7]
    out = pmap(lambda x: x, devices=chosen)(X[:2])
    assert out.devices() == set(chosen)
    assert [s.device for s in out.addressable_shards] == chosen
    for n in (1, 2, 4):
        np.testing.assert_array_equal(pmap(lambda x: x + 1)(X[:n]), X[:n] + 1)
    np.testing.assert_array_equal(pmap(lambda x: 1.0, axis_size=2, in_axes=None)(3.0), [1.0, 1.0])


def test_random_keys():
    keys = phlox.random.split(phlox.random.PRNGKey(0), N)
    drawn = pmap(lambda k: phlox.random.normal(k, (5, 6)))(keys)
    np.testing.assert_array_equal(drawn, vmap(lambda k: phlox.random.normal(k, (5, 6)))(keys))
    typed = phlox.random.split(phlox.random.key(0), N)
    np.testing.assert_array_equal(pmap(lambda k: phlox.random.normal(k, (5, 6)))(typed), drawn)
    again = pmap(lambda k: phlox.random.fold_in(k, 1))(typed)
    assert again.dtype == typed.dtype
    np.testing.assert_array_equal(
        phlox.random.key_data(again[2]), phlox.random.key_data(phlox.random.fold_in(typed[2], 1))
    )


def test_gradients_inside_and_outside():
    w = np.array([0.5, -1.0, 2.0], np.float32)

    def loss(w, x):
        return (jnp.sin(x * w) ** 2).sum()

    inside = pmap(lambda w, x: lax.pmean(grad(loss)(w, x), "i"), axis_name="i", in_axes=(None, 0), out_axes=None)(w, X)
    expected = grad(lambda w: vmap(loss, (None, 0))(w, X).mean())(w)
    np.testing.assert_allclose(inside, expected, rtol=2e-4, atol=1e-5)
    total = lambda w: (pmap(lambda w, x: x * lax.psum(x * w, "i"), axis_name="i", in_axes=(None, 0))(w, X) ** 2).mean()
    same = lambda w: (vmap(lambda w, x: x * lax.psum(x * w, "i"), axis_name="i", in_axes=(None, 0))(w, X) ** 2).mean()
    for make in (grad, lambda f: grad(jit(f)), lambda f: jit(grad(f)), phlox.jacfwd):
        np.testing.assert_allclose(make(total)(w), make(same)(w), rtol=1e-4)
    summed = lambda x: pmap(lambda x: lax.psum(x**2, "i"), axis_name="i", out_axes=None)(x).sum()
    np.testing.assert_allclose(grad(summed)(X), 2 * X, rtol=1e-5)


def test_mapped_again():
    batch = np.stack([X, 2 * X])
    out = vmap(pmap(lambda x: x - lax.pmean(x, "i"), axis_name="i"))(batch)
    np.testing.assert_allclose(out, batch - batch.mean(1, keepdims=True), rtol=1e-5, atol=1e-5)
    out = vmap(pmap(lambda x, y: x * y, in_axes=(0, None)), in_axes=(1, None), out_axes=1)(batch.swapaxes(0, 1), 2.0)
    np.testing.assert_allclose(out, 2 * batch.swapaxes(0, 1))


def test_the_program_is_one_manual_computation():
    f = pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")
    jaxpr = phlox.make_jaxpr(f)(np.arange(4.0, dtype=np.float32))
    (call,) = jaxpr.eqns
    (mapped,) = call.params["jaxpr"].eqns
    assert mapped.primitive.name == "shard_map"
    text = jit(f).lower(np.arange(4.0, dtype=np.float32)).as_text()
    assert text.count("sdy.manual_computation") == 1
    assert 'sdy.mesh @mesh = <["i"=4]>' in text
    np.testing.assert_allclose(f(np.arange(4.0)), [0, 1 / 6, 1 / 3, 1 / 2], rtol=1e-6)


def test_one_program_for_many_calls():
    runs = []
    f = pmap(lambda x: runs.append(1) or x + 1)
    for _ in range(3):
        f(X)
        f(jnp.asarray(X))
    assert len(runs) == 1


def test_a_batch_that_is_laid_out_over_an_axis_of_the_mesh():
    mesh = Mesh(np.array(phlox.devices()[:4]).reshape(2, 2), ("b", "i"))
    f = phlox.shard_map(lambda x: jnp.sin(x) * 2, mesh=mesh, in_specs=phlox.P("i"), out_specs=phlox.P("i"))
    x = X.reshape(6, 4)
    batched = vmap(f, spmd_axis_name="b")
    np.testing.assert_allclose(batched(x), 2 * np.sin(x), rtol=1e-6)
    np.testing.assert_allclose(vmap(f, 1, 1, spmd_axis_name=("b",))(x.T), 2 * np.sin(x.T), rtol=1e-6)
    (eqn,) = phlox.make_jaxpr(batched)(x).eqns
    assert eqn.params["in_specs"] == eqn.params["out_specs"] == (phlox.P("b", "i"),)
    with pytest.raises(phlox.errors.ShapeError, match="evenly over 2 devices"):
        batched(x[:5])


def test_an_axis_name_may_be_that_of_an_outer_axis():
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(vmap(pmap(lambda x: 2 * x, axis_name="i"), axis_name="i")(x), 2 * x)
    with pytest.raises(ValueError, match="axis name 'i', which is already in use"):
        vmap(pmap(lambda x: lax.psum(x, "i"), axis_name="i"), axis_name="i")(x)


def test_inside_of_a_shard_map():
    mesh = phlox.make_mesh((1,), ("outer",), devices=phlox.devices()[:1])
    inner = pmap(lambda x: lax.psum(x, "i"), axis_name="i", devices=phlox.devices()[:1])
    f = phlox.shard_map(inner, mesh=mesh, in_specs=phlox.P(), out_specs=phlox.P())
    np.testing.assert_array_equal(phlox.jit(f)(jnp.ones((1, 3))), np.ones((1, 3)))


def test_inside_of_another_mesh_it_is_refused():
    """XLA ends the process for two meshes in one program."""
    devices = np.array(phlox.devices()[:4])
    meshes = [phlox.sharding.Mesh(devices, ("a",)), phlox.sharding.Mesh(devices.reshape(2, 2), ("b", "c"))]
    over = lambda f, mesh: phlox.shard_map(f, mesh=mesh, in_specs=phlox.P(), out_specs=phlox.P(), check_vma=False)
    inner = {"pmap": pmap(lambda x: x + 1), "shard_map": over(lambda x: x + 1, meshes[1])}
    for name, f in inner.items():
        for outer in (over(f, meshes[0]), over(f, meshes[0].update(axis_names=("d",))), pmap(f)):
            with pytest.raises(phlox.errors.DeviceError, match=rf"^{name}: maps over .* of Mesh.* over .* of Mesh"):
                jit(outer)(jnp.ones((4, 4)))
    with pytest.raises(phlox.errors.DeviceError, match=r"shard_map: maps over \('a',\)"):
        over(over(lambda x: x, meshes[0]), meshes[0])(jnp.ones(4))


def test_words_of_devices_and_axes():
    with pytest.raises(ValueError, match="has a device twice"):
        pmap(lambda x: x, devices=phlox.devices()[:1] * 2)
    with pytest.raises(ValueError, match="'devices' argument to pmap must be non-empty, or None"):
        pmap(lambda x: x, devices=[])
    with pytest.raises(ValueError, match="each argument passed by keyword is mapped"):
        pmap(lambda x, y: x, in_axes=((0, 0), 0))(x=(jnp.ones(1),) * 2, y=jnp.ones(1))


def test_copies_lie_as_the_original_in_the_same_words():
    mesh = phlox.make_mesh((1, 4), ("x", "y"))
    for spec in (phlox.P("x", "y"), phlox.P(None, "y"), phlox.P("x", None)):
        x = phlox.device_put(jnp.ones((1, 4)), phlox.NamedSharding(mesh, spec))
        assert jnp.copy(x).sharding == x.sharding


def test_device_put_sharded_and_replicated_feed_pmap():
    devices = phlox.devices()[:4]
    shards = phlox.device_put_sharded([{"x": np.full(2, i)} for i in range(4)], devices)
    assert [int(v) for v in phlox.pmap(lambda t: t["x"].sum())(shards)] == [0, 2, 4, 6]
    copies = phlox.device_put_replicated(np.arange(3.0), devices)
    assert copies.shape == (4, 3)
    assert copies.sharding.shard_shape(copies.shape) == (1, 3)
    keys = phlox.random.split(phlox.random.key(0), 4)
    sharded = phlox.device_put_sharded(list(keys), devices)
    assert len(sharded.devices()) == 4
    np.testing.assert_array_equal(phlox.pmap(phlox.random.uniform)(sharded), phlox.vmap(phlox.random.uniform)(keys))
    assert (phlox.device_put_replicated(keys[0], devices) == keys[0]).all()
    with pytest.raises(phlox.errors.ArgumentError, match="3 shards for 4 devices"):
        phlox.device_put_sharded([1, 2, 3], devices)
