"""Meshes, shard_map, smap and reshard: what is compiled once, and which mesh is that of the context."""

import numpy as np
import pytest

import phlox
from phlox import P, errors, jit, lax, vmap
from phlox.experimental.layout import Format, Layout


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
        with b:  # the mesh that is set comes first
            assert phlox.sharding.get_mesh() == a
            np.testing.assert_array_equal(first(x), np.tile(np.arange(4), 2))
    assert phlox.sharding.get_mesh().empty
    with b:
        np.testing.assert_array_equal(first(x), np.tile(np.arange(2), 4))
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


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda mesh: phlox.NamedSharding(mesh, "xy"), "'xy' is no PartitionSpec"),
        (lambda mesh: phlox.NamedSharding(mesh, None), "None is no PartitionSpec"),
        (lambda mesh: phlox.NamedSharding([3], P()), r"\[3\] is no mesh"),
        (lambda mesh: phlox.sharding.SingleDeviceSharding("cpu"), "'cpu' is no device"),
        (lambda mesh: phlox.sharding.Mesh(np.arange(2), "x"), "0 is no device"),
        (lambda mesh: phlox.sharding.Mesh(mesh.devices[0], (None,)), "None is no name"),
        (lambda mesh: phlox.shard_map(abs, mesh=[3], in_specs=P(), out_specs=P())(1), r"mesh=\[3\] is no mesh"),
        (lambda mesh: phlox.device_put(phlox.ShapeDtypeStruct((2,), "f4")), "does not have a value"),
        (lambda mesh: phlox.device_put(2**40), "too large"),
        (lambda mesh: phlox.ShapeDtypeStruct((7 / 2, 3), "f4"), r"shape \(3.5, 3\): lengths are integers"),
        (lambda mesh: phlox.core.ShapedArray((None,), "float32"), "lengths are integers"),
    ],
)
def test_what_is_no_mesh_or_device_is_refused(make, says):
    mesh = phlox.make_mesh((4, 2), ("x", "y"))
    with pytest.raises(phlox.errors.PhloxError, match=says):
        make(mesh)


def test_the_devices_of_a_mesh_do_not_change():
    devices = np.array(phlox.devices()[:2])
    mesh = phlox.sharding.Mesh(devices, "x")
    devices[:] = devices[::-1].copy()
    assert list(mesh.devices) == phlox.devices()[:2]
    with pytest.raises(ValueError):
        mesh.devices[0] = phlox.devices()[1]


def test_device_put_refuses_another_order_of_axes():
    where = phlox.sharding.SingleDeviceSharding(phlox.devices()[0])
    with pytest.raises(errors.OptionError, match=r"instead: Layout\(\(0, 1\)\), or the transposed array"):
        phlox.device_put(np.ones((2, 3)), Format(Layout((1, 0)), where))
    with pytest.raises(errors.OptionError, match="jit: arrays have their axes in order"):
        phlox.jit(lambda x: x, out_shardings=Format(Layout((1, 0)), where))(np.ones((2, 3)))
    with pytest.raises(errors.ShapeError, match=r"has 1 axes, the array 2"):
        phlox.device_put(np.ones((2, 3)), Format(Layout((0,)), where))
    with pytest.raises(errors.OptionError, match="a layout without a sharding"):
        Format(Layout((0, 1)))


X = np.arange(128, dtype=np.float32).reshape(16, 8)


def _mesh(*sizes):
    return phlox.make_mesh(sizes, tuple("abc"[: len(sizes)]), axis_types=(phlox.sharding.AxisType.Auto,) * len(sizes))


@pytest.mark.parametrize(
    "spec", [P("a", "b"), P(("a", "c"), "b"), P("b", None), P(None, ("c", "b")), P("c", ("a", "b"))]
)
def test_the_compilers_choice_is_told_by_axes_of_the_mesh(spec):
    x = phlox.device_put(X, phlox.NamedSharding(_mesh(2, 2, 2), spec))
    turned = phlox.jit(lambda x: x.T)(x).sharding.spec
    both = [None if s is None else s for s in (*turned, None, None)][:2]
    assert both == [*(*spec, None)[1:2], spec[0]]


def test_arrays_over_another_mesh_of_the_same_devices():
    over = _mesh(4, 2)
    double = phlox.shard_map(lambda x: x * 2, mesh=over, in_specs=P("a", "b"), out_specs=P("a", "b"))
    for mesh, spec in ((_mesh(8), P("a")), (_mesh(2, 2, 2), P("c", "a")), (_mesh(2, 4), P("b", "a"))):
        x = phlox.device_put(X, phlox.NamedSharding(mesh, spec))
        for f in (double, phlox.jit(lambda x: double(x) + 0)):
            found = f(x)
            np.testing.assert_array_equal(found, X * 2)
            assert found.sharding == phlox.NamedSharding(over, P("a", "b"))


def test_abstract_meshes_get_the_devices_of_the_arguments():
    meshes = [_mesh(4, 2), phlox.sharding.Mesh(_mesh(4, 2).devices[::-1], ("a", "b"))]
    abstract = meshes[0].abstract_mesh
    by_columns = phlox.NamedSharding(abstract, P(None, "b"))
    programs = [
        jit(lambda x: lax.with_sharding_constraint(x * 2, by_columns)),
        jit(lambda x: x * 2, out_shardings=by_columns),
        jit(lambda x: phlox.sharding.reshard(x * 2, by_columns)),
    ]
    doubled = phlox.shard_map(lambda x: x * 2, mesh=abstract, in_specs=P("a"), out_specs=P("a"))
    for mesh in meshes:
        x = phlox.device_put(X, phlox.NamedSharding(mesh, P("a")))
        for f in programs:
            np.testing.assert_array_equal(f(x), X * 2)
            assert f(x).sharding == phlox.NamedSharding(mesh, P(None, "b"))
        for f in (doubled, jit(doubled)):
            np.testing.assert_array_equal(f(x), X * 2)
            assert f(x).sharding == x.sharding
        assert phlox.sharding.reshard(x, by_columns).sharding == phlox.NamedSharding(mesh, P(None, "b"))
    with pytest.raises(errors.DeviceError, match="has no devices of its own, and the arguments are on 1"):
        doubled(X)


def test_the_abstract_mesh_of_the_context():
    x = phlox.device_put(X, phlox.NamedSharding(_mesh(4, 2), P("a")))
    split = jit(lambda x: lax.with_sharding_constraint(x, P("a", "b")))
    for shape in ((4, 2), (2, 4)):
        with phlox.sharding.use_abstract_mesh(_mesh(*shape).abstract_mesh):
            assert phlox.sharding.get_mesh().empty
            assert split(x).sharding.shard_shape(X.shape) == (X.shape[0] // shape[0], X.shape[1] // shape[1])
    with phlox.set_mesh(_mesh(4, 2)), phlox.sharding.use_abstract_mesh(_mesh(4, 2).abstract_mesh):
        assert phlox.sharding.get_mesh() == _mesh(4, 2)


def test_second_derivatives_over_two_axes():
    over = _mesh(4, 2)
    total = phlox.shard_map(lambda x: lax.psum(x, "a") ** 2, mesh=over, in_specs=P("a", "b"), out_specs=P(None, "b"))
    gradient = phlox.grad(lambda x: (phlox.grad(lambda x: total(x).sum())(x) ** 2).sum())(X)
    alone = phlox.grad(lambda x: (phlox.grad(lambda x: (x.reshape(4, 4, 8).sum(0) ** 2).sum())(x) ** 2).sum())(X)
    np.testing.assert_allclose(gradient, alone, rtol=1e-5)
