"""Meshes, shard_map and smap, resharding, and arrays made of parts: values and places as in jax, on eight devices."""

import jax
import jax.experimental.layout
import jax.numpy
import numpy as np
import pytest

import phlox
import phlox.experimental.layout

P = {phlox: phlox.P, jax: jax.P}
X = np.arange(16.0, dtype=np.float32).reshape(8, 2)
W = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def mesh(m, shape=(4, 2), names=("x", "y")):
    return m.make_mesh(shape, names, axis_types=(m.sharding.AxisType.Auto,) * len(shape))


def placed(x):
    """The elements, and which part of them lies on which device."""
    where = x.sharding.devices_indices_map(x.shape)
    return x, [(d.id, str(i)) for d, i in sorted(where.items(), key=lambda item: item[0].id)]


def mapped(m, f, in_specs, out_specs, **options):
    return m.shard_map(f, mesh=mesh(m), in_specs=in_specs, out_specs=out_specs, **options)


def parts(m):
    f = mapped(m, lambda a: a * 2 + m.lax.axis_index("x"), m.P("x"), m.P("x"))
    return placed(f(X)), m.jit(f)(X), f(m.numpy.asarray(X))


def sums(m):
    f = mapped(m, lambda a: (m.lax.psum(a, "y"), m.lax.psum(a.sum(0), ("x", "y"))), m.P("x", "y"), (m.P("x"), m.P()))
    g = mapped(m, lambda a: m.lax.psum(a.sum(0), "x"), m.P("x", "y"), m.P("y"))
    h = mapped(m, lambda a: m.lax.psum(a.sum(), ("x", "y")), m.P("x", "y"), m.P())
    return f(X), g(X), h(X)


def two_axes(m):
    both = m.P(("x", "y"))
    return placed(mapped(m, lambda a: a.sum(1) * m.lax.axis_index("y"), both, both)(X))


def trees(m):
    f = mapped(m, lambda t, b: {"o": t["a"] * b, "p": (t["c"] + 1,)}, (m.P("x"), m.P()), {"o": m.P("x"), "p": m.P("x")})
    return f({"a": X, "c": X[:, 0]}, np.float32(2))


def static(m):
    return mapped(m, lambda a, n: a * n, (m.P("x"), None), m.P("x"))(X, 3)


def decorated(m):
    @m.shard_map(mesh=mesh(m), in_specs=m.P("x"), out_specs=m.P("x"))
    def f(a):
        return a - m.lax.pmax(a, "x")

    return f(X), f(X + 1), f(X[:4])


def closed_over(m):
    w = m.numpy.asarray(W)
    return mapped(m, lambda a: a @ w, m.P("x"), m.P("x"))(X)


def derivatives(m):
    def loss(a, w):
        f = mapped(m, lambda a, w: m.lax.psum((m.numpy.sin(a) @ w).sum(), "x"), (m.P("x"), m.P()), m.P())
        return f(a, w)

    return (
        m.grad(loss, (0, 1))(X, W),
        m.jit(m.value_and_grad(loss, 1))(X, W),
        m.jvp(loss, (X, W), (X, W)),
        m.vmap(loss, (0, None))(np.stack([X, X * 2]), W),
    )


def some_axes(m):
    f = mapped(m, lambda a: a * m.lax.axis_index("x"), m.P("x"), m.P("x"), axis_names={"x"})
    return m.jit(f)(X), m.jit(m.grad(lambda a: (f(a) ** 2).sum()))(X)


def of_the_context(m):
    with m.set_mesh(mesh(m)):
        a = m.shard_map(lambda a: a + m.lax.axis_index("y"), in_specs=m.P("y"), out_specs=m.P("y"))(X)
        b = m.device_put(X, m.P("x"))
        c = m.device_put({"p": X, "q": X}, {"p": m.P("x"), "q": m.P(None, "y")})
        d = m.sharding.get_mesh().shape_tuple, m.sharding.get_abstract_mesh().axis_names
    return placed(a), placed(b), placed(c["p"]), placed(c["q"]), str(d), m.sharding.get_mesh().empty


def mapped_by_axes(m):
    with m.set_mesh(mesh(m)):
        f = m.smap(lambda a, b: (a * b, b + m.lax.axis_index("x")), in_axes=(0, None), out_axes=(0, 0), axis_name="x")
        g = m.smap(lambda a: a.sum(1), in_axes=1, out_axes=0, axis_name="y")
        return m.jit(f)(X, X[0]), m.jit(g)(X)


def inferred(m):
    explicit = m.make_mesh((4, 2), ("x", "y"))
    x = m.device_put(X, m.NamedSharding(explicit, m.P("x")))
    return placed(m.shard_map(lambda a: a + m.lax.axis_index("x"), mesh=explicit, out_specs=m.P("x"))(x))


def resharded(m):
    explicit = m.make_mesh((4, 2), ("x", "y"))
    by = lambda *spec: m.NamedSharding(explicit, m.P(*spec))
    x = m.device_put(X, by("x"))
    a = m.reshard(x, by(None, "y"))
    with m.set_mesh(explicit):
        b = m.jit(lambda x: m.reshard(m.reshard(x, m.P("y")) * 2, m.P(("x", "y"))))(x)
        c = m.grad(lambda x: (m.reshard(x, m.P("y")) ** 2).sum())(x)
    return placed(a), placed(b), c, placed(m.reshard({"a": x}, by("y"))["a"])


def from_callback(m):
    by = lambda *spec: m.NamedSharding(mesh(m), m.P(*spec))
    a = m.make_array_from_callback((8, 2), by("x", "y"), lambda index: X[index])
    b = m.make_array_from_callback((8, 2), by(), lambda index: X[index], dtype=np.float32)
    c = m.make_array_from_callback((4,), by("x"), lambda index: np.arange(4)[index].astype(np.int16))
    return placed(a), placed(b), placed(c), m.jit(lambda x: x * 2)(a)


def from_single_device_arrays(m):
    where = m.NamedSharding(mesh(m), m.P("x"))
    pieces = [m.device_put(X[index], d) for d, index in where.devices_indices_map((8, 2)).items()]
    return placed(m.make_array_from_single_device_arrays((8, 2), where, pieces[::-1], dtype=np.float32))


def from_process_local_data(m):
    where = m.NamedSharding(mesh(m), m.P("x"))
    a = m.make_array_from_process_local_data(where, X)
    b = m.make_array_from_process_local_data(where, {"a": X, "b": X[:, 0]})
    return placed(a), placed(b["a"]), placed(b["b"]), m.make_array_from_process_local_data(where, X, (8, 2))


def put(m):
    x = m.numpy.asarray(X)
    d = m.devices()[1]
    a = m.device_put(x, d, may_alias=False)
    b = m.device_put(x, src=m.devices()[0], donate=True)
    c = m.device_put({"a": x, "b": x}, d, donate={"a": True, "b": False})
    e = m.device_put(x, may_alias=False)
    same = e.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    return placed(a), b, c, e, same, x.is_deleted(), a.committed, e.committed, m.device_put(x, m.memory.Space.Device)


def put_by_formats(m):
    Format, Layout = m.experimental.layout.Format, m.experimental.layout.Layout
    where = m.NamedSharding(mesh(m), m.P("x"))
    a = m.device_put(X, Format(Layout((0, 1)), where))
    b = m.device_put({"p": X, "q": X[0], "r": 3.0}, {"p": Format(None, where), "q": m.devices()[1], "r": Format()})
    c = m.jit(lambda x: m.device_put(x, Format(None, where)) * 2)(X)  # in jax, its place is left to the compiler
    d = m.device_put(m.numpy.asarray(X), Format())
    flags = a.committed, b["p"].committed, b["r"].committed, d.committed
    return placed(a), placed(b["p"]), placed(b["q"]), b["r"], c, d, flags


def devices_of_this_process(m):
    by = lambda devices: m.NamedSharding(m.sharding.Mesh(np.array(devices), ("x",)), m.P("x"))
    shardings = by(m.devices()[::-1]), by(m.devices()[2:4]), m.sharding.SingleDeviceSharding(m.devices()[3])
    found = [s._addressable_device_assignment for s in shardings]
    return [type(f).__name__ for f in found], [d.id for f in found for d in f]


def dynamic_slices(m):
    x = m.numpy.asarray(X)
    y = m.numpy.arange(10)
    f = m.jit(lambda a, i: (a[m.ds(i, 3)], a.at[m.ds(i, 2), 0].add(10.0), a[m.ds(i, 2), ::-1], a[..., m.ds(0, 1)]))
    static = y[m.ds(2, 3)], y[m.ds(8, 4)], y[m.ds(1, 3, 2)], y[m.ds(-2, 2)], y[m.ds(3)], y[m.ds(None)]
    changed = (
        y.at[m.ds(1, 3)].set(0),
        y.at[m.ds(1, 3, 2)].multiply(5),
        y.at[m.ds(4, 2)].get(),
        y.at[m.ds(8, 4)].set(0),
        y.at[m.ds(8, 4)].set(0, mode="clip"),
    )
    return f(x, 1), f(x, 7), static, changed, repr(m.ds(1, 2)), m.jit(lambda s: y[s])(m.ds(m.numpy.asarray(2), 3))


def axes_of_types(m):
    explicit = m.make_mesh((4, 2), ("x", "y"))
    with m.set_mesh(explicit):
        x = m.device_put(X, m.P("x"))
        a = m.sharding.auto_axes(lambda x: m.numpy.sin(x) * 2, out_sharding=m.P("y"))(x)
        b = m.jit(lambda x: m.sharding.auto_axes(lambda x: x.T @ x)(x, out_sharding=m.P()))(x)
    with m.set_mesh(mesh(m)):
        c = m.sharding.explicit_axes(lambda x: x * 2, in_sharding=m.P("x"))(X)
    # Without a context the mesh is that of the result's sharding.
    y = m.device_put(X, m.NamedSharding(explicit, m.P("x", "y")))
    d = m.sharding.auto_axes(lambda y: y @ y.T, out_sharding=m.NamedSharding(explicit, m.P("x", None)))(y)
    return placed(a), placed(b), c, placed(d)


def shardings_of_jit(m):
    with m.set_mesh(mesh(m)):
        f = m.jit(lambda x, t: (x * 2, t["a"] + 1), in_shardings=(m.P("x"), None), out_shardings=(m.P("y"), m.P()))
        a, b = f(X, {"a": X})
    where = m.NamedSharding(mesh(m), m.P("x"))
    c = m.device_put(X, where.update(spec=m.P(None, "y")))
    return placed(a), placed(b), placed(c), where.has_addressable_devices, where.with_memory_kind("device") == where


PROGRAMS = [
    axes_of_types, shardings_of_jit, parts, sums, two_axes, trees, static, decorated, closed_over, derivatives, some_axes, of_the_context, mapped_by_axes, inferred,
    resharded, from_callback, from_single_device_arrays, from_process_local_data, put, put_by_formats,
    devices_of_this_process, dynamic_slices,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_like_jax(program):
    mine, theirs = phlox.tree.flatten(program(phlox)), jax.tree.flatten(program(jax))
    assert str(mine[1]) == str(theirs[1])
    for a, b in zip(mine[0], theirs[0], strict=True):
        if isinstance(b, str):
            assert a == b
            continue
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, err_msg=program.__name__)


def over(m, f=lambda a: a, in_specs=("x",), out_specs=("x",), shape=(8, 2), **options):
    return mapped(m, f, m.P(*in_specs), m.P(*out_specs), **options)(np.ones(shape, np.float32))


def single(m, *shapes, sizes=(8, 2)):
    where = m.NamedSharding(mesh(m), m.P("x"))
    pieces = [m.device_put(np.ones(shape), m.devices()[i]) for i, shape in enumerate(shapes)]
    return m.make_array_from_single_device_arrays(sizes, where, pieces)


def by_callback(m, part, **options):
    return m.make_array_from_callback((8,), m.NamedSharding(mesh(m), m.P("x")), lambda index: part, **options)


def formatted(m, order):
    layout = m.experimental.layout
    return layout.Format(layout.Layout(order), m.sharding.SingleDeviceSharding(m.devices()[0]))


def left_to_the_compiler(m, call):
    return call(m.experimental.layout.Format(m.experimental.layout.Layout.AUTO))


REFUSED = {
    "no such axis": lambda m: over(m, in_specs=("z",)),
    "no such axis of results": lambda m: over(m, out_specs=("z",)),
    "does not divide": lambda m: over(m, shape=(6, 2)),
    "spec too long": lambda m: over(m, in_specs=("x", "y", None)),
    "spec of results too long": lambda m: over(m, lambda a: a.sum(1), out_specs=("x", "y")),
    "axis that is not mapped": lambda m: over(m, axis_names={"y"}),
    "no axis to map": lambda m: over(m, axis_names={"z"}),
    "another structure": lambda m: mapped(m, lambda a: a, (m.P(), m.P()), m.P())(X),
    "another structure of results": lambda m: mapped(m, lambda a: a, m.P(), (m.P(), m.P()))(X),
    "no mesh": lambda m: m.shard_map(lambda a: a, in_specs=m.P(), out_specs=m.P())(X),
    "no function": lambda m: m.shard_map(3, mesh=mesh(m), in_specs=m.P(), out_specs=m.P())(X),
    "smap, several names": lambda m: m.smap(lambda a: a, in_axes=0, out_axes=0, axis_name=("x", "y")),
    "smap, in_axes": lambda m: m.smap(lambda a: a, in_axes="x", out_axes=0, axis_name="x"),
    "smap, out_axes": lambda m: m.smap(lambda a: a, in_axes=0, out_axes="x", axis_name="x"),
    "set_mesh of something": lambda m: m.set_mesh(3),
    "set_mesh in a program": lambda m: m.jit(lambda x: m.set_mesh(mesh(m)))(1.0),
    "too few devices": lambda m: m.make_mesh((16,), ("x",)),
    "a negative length": lambda m: m.make_mesh((2, -1), ("x", "y")),
    "too many names": lambda m: m.make_mesh((4,), ("x", "y")),
    "shape that is none": lambda m: m.make_mesh(4, "x"),
    "spec without a mesh": lambda m: m.device_put(X, m.P("x")),
    "reshard without a mesh": lambda m: m.reshard(X, m.P("x")),
    "donated and shared": lambda m: m.device_put(X, m.devices()[0], donate=True, may_alias=True),
    "layout without a sharding": lambda m: m.experimental.layout.Format(m.experimental.layout.Layout((0, 1))),
    "layout of another rank": lambda m: m.device_put(X, formatted(m, (0,))),
    "layout of another rank for one leaf": lambda m: m.device_put([X, X[0]], formatted(m, (0, 1))),
    "layout that the compiler is to choose": lambda m: left_to_the_compiler(m, lambda auto: m.device_put(X, auto)),
    "struct without a layout": lambda m: left_to_the_compiler(
        m, lambda a: m.ShapeDtypeStruct((2,), "int8", sharding=a)
    ),
    "layout of a jitted function of another rank": lambda m: m.jit(lambda x: x, in_shardings=formatted(m, (0,)))(X),
    "layout that is none": lambda m: m.experimental.layout.Format((0, 1)),
    "part of another shape": lambda m: by_callback(m, np.ones(3)),
    "part of another dtype": lambda m: by_callback(m, np.ones(2, np.int32), dtype=np.float32),
    "no sharding": lambda m: m.make_array_from_callback((8,), m.devices()[0], lambda index: np.ones(8)),
    "too few parts": lambda m: single(m, (2, 2)),
    "parts of another shape": lambda m: single(m, *[(1, 2)] * 8),
    "no list of parts": lambda m: m.make_array_from_single_device_arrays((8,), m.NamedSharding(mesh(m), m.P("x")), 3),
    "other global shape": lambda m: m.make_array_from_process_local_data(
        m.NamedSharding(mesh(m), m.P("x")), X, (16, 2)
    ),
    "result of auto_axes": lambda m: m.sharding.auto_axes(lambda x: x)(X),
    "arguments of explicit_axes": lambda m: m.sharding.explicit_axes(lambda x: x)(X),
    "explicit_axes without a mesh": lambda m: m.sharding.explicit_axes(lambda x: x, in_sharding=m.P())(X),
    "stride of ds": lambda m: m.ds(0, 1, 1.5),
}


def test_formats_of_jitted_functions():
    for m in (phlox, jax):
        split, in_order = m.NamedSharding(mesh(m), m.P("x")), formatted(m, (0, 1))
        layout = m.experimental.layout
        auto = layout.Format(layout.Layout.AUTO)
        compiled = m.jit(lambda x, y: (x * 2, y), in_shardings=auto, out_shardings=auto).lower(X, 3.0).compile()
        args, _ = compiled.input_formats
        assert args[0].layout.major_to_minor == (0, 1)
        np.testing.assert_array_equal(compiled(m.device_put(X, args[0]), 3.0)[0], X * 2)
        out = m.jit(lambda x: x + 1, out_shardings=layout.Format(layout.Layout.AUTO, split))(X)
        assert out.sharding == split
        out = m.jit(lambda x: x + 1, in_shardings=in_order, out_shardings=in_order)(X)
        assert out.format.layout.major_to_minor == (0, 1)
        part = m.make_array_from_callback(X.shape, layout.Format(layout.Layout((0, 1)), split), lambda index: X[index])
        assert part.sharding == split


@pytest.mark.parametrize("name", REFUSED)
def test_refused_like_jax(name):
    with pytest.raises(Exception) as theirs:
        REFUSED[name](jax)
    assert theirs.type.__module__ == "builtins"
    with pytest.raises(theirs.type):
        REFUSED[name](phlox)


def test_meshes_look_alike():
    for types in (None, "Auto", "Explicit"):
        built = []
        for m in (phlox, jax):
            kinds = None if types is None else (m.sharding.AxisType[types],) * 2
            a = m.sharding.Mesh(np.array(m.devices()).reshape(4, 2), ("x", "y"), kinds)
            b = m.make_mesh((4, 2), ("x", "y"), kinds)
            assert a.update(axis_names=("u", "v")).shape_tuple == (("u", 4), ("v", 2))
            built.append(
                [
                    (c.shape_tuple, dict(c.shape), c.size, c.axis_sizes, c.axis_names, c.empty, c.device_ids.tolist(), str(c.axis_types))
                    + (c.auto_axes, c.explicit_axes, c.manual_axes, c.are_all_axes_auto, c.are_all_axes_explicit, c.is_multi_process)
                    + (len(c.local_devices), c.abstract_mesh == b.abstract_mesh, c == a, c == b, hash(c) == hash(a))
                    for c in (a, b)
                ]
            )  # fmt: skip
        assert built[0] == built[1]
    for m in (phlox, jax):
        abstract = m.sharding.AbstractMesh((2, 4), ("x", "y"))
        changed = abstract.update_axis_types({"x": m.sharding.AxisType.Manual})
        assert changed.manual_axes == ("x",) and changed != abstract and abstract.size == 8
        with m.sharding.use_abstract_mesh(abstract):
            assert m.sharding.get_abstract_mesh() == abstract
        assert m.sharding.make_single_device_sharding(m.devices()[2]).device_set == {m.devices()[2]}
        assert m.sharding.SingleDeviceSharding(m.devices()[2]) == m.sharding.make_single_device_sharding(m.devices()[2])
        mesh = m.make_mesh((4, 2), ("x", "y"))
        assert m.sharding.PartitionSpec is m.P and isinstance(m.NamedSharding(mesh, m.P("x")), m.sharding.Sharding)


def test_kinds_of_axes_and_devices():
    for m in (phlox, jax):
        kind = m.sharding.ManualAxisType(varying={"x"})
        assert not kind.empty and m.sharding.ManualAxisType().empty
        assert kind.update(reduced={"y"}).reduced == {"y"} and kind == m.sharding.ManualAxisType(varying={"x"})
        with pytest.raises(ValueError):
            kind.update(unreduced={"x"})
        if hasattr(m.sharding, "UnreducedKind"):  # since JAX 0.12
            kinds, partial = m.sharding.UnreducedKind, m.sharding.ManualAxisType(unreduced={"x"})
            assert partial.unreduced_kind is kinds.sum and kind.unreduced_kind is None
            reductions = "unreduced=frozenset({'x'}), reduced=frozenset(), unreduced_kind=UnreducedKind.sum"
            assert repr(partial) == f"ManualAxisType(varying=frozenset(), {reductions})"
            assert partial.update(unreduced_kind=kinds.max).unreduced_kind is kinds.max
            with pytest.raises(ValueError):
                m.sharding.ManualAxisType(unreduced_kind=kinds.max)
    mine, theirs = phlox.sharding.AbstractDevice("cpu", None, "cpu"), jax.sharding.AbstractDevice("cpu", None, "cpu")
    assert repr(mine) == repr(theirs)


def test_the_devices_of_abstract_meshes():
    for of_mesh in (
        lambda m: m.abstract_mesh,
        lambda m: m.abstract_mesh.update(axis_names=("j",)),
        lambda m: m.abstract_mesh.abstract_device,
        lambda m: m.abstract_mesh.abstract_device.platform,
    ):
        mine, theirs = (of_mesh(m.make_mesh((1,), ("i",))) for m in (phlox, jax))
        assert repr(mine) == repr(theirs)
    mesh = phlox.make_mesh((1,), ("i",))
    assert mesh.abstract_mesh == phlox.sharding.AbstractMesh((1,), ("i",), mesh.axis_types)
    empty, theirs = (m.sharding.Mesh(np.empty((), object), ()) for m in (phlox, jax))
    assert empty.abstract_mesh.abstract_device is None and repr(empty) == repr(theirs)


def test_processes():
    for name in ("process_indices", "host_ids"):
        assert getattr(phlox, name)() == getattr(jax, name)() == [0]
    assert (phlox.host_id(), phlox.host_count()) == (jax.host_id(), jax.host_count()) == (0, 1)


def test_exchange_with_other_libraries():
    import ml_dtypes

    names = ["bool", "int8", "uint64", "float16", "float64", "complex128", "S3", "datetime64[s]", "object"]
    for dtype in [
        *names,
        np.float32,
        bool,
        *map(np.dtype, (ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.float8_e5m2)),
    ]:
        assert phlox.dlpack.is_supported_dtype(dtype) == jax.dlpack.is_supported_dtype(dtype), dtype
    for m in (phlox, jax):
        with pytest.raises(TypeError):
            m.dlpack.is_supported_dtype(None)
        there = m.dlpack.from_dlpack(X.copy(), m.devices()[1], True)
        np.testing.assert_array_equal(there, X)
        assert there.devices() == {m.devices()[1]}
        for x in (m.numpy.asarray(X), X.astype("float64"), X):
            assert m.numpy.from_dlpack(x, device=m.devices()[1]).devices() == {m.devices()[1]}
            with pytest.raises(ValueError, match="copy=False"):
                m.numpy.from_dlpack(x, device=m.devices()[1], copy=False)
        split = m.device_put(np.arange(4.0), m.NamedSharding(m.make_mesh((2,), ("x",)), m.P("x")))
        for read in (np.from_dlpack, lambda x: x.__dlpack__(), lambda x: x.__dlpack_device__()):
            with pytest.raises(BufferError):
                read(split)
    original = phlox.numpy.asarray(X)
    again = phlox.numpy.from_dlpack(original, copy=True)
    original.delete()
    np.testing.assert_array_equal(again, X)
    mine = X.copy()
    copied = phlox.dlpack.from_dlpack(mine, copy=True)
    mine[:] = 0  # which jax's copy shows where the memory happens to be aligned
    np.testing.assert_array_equal(copied, X)


def test_kinds_of_errors():
    for name in (
        "InconclusiveDimensionOperation",
        "JAXIndexError",
        "JAXTypeError",
        "JaxprTypeError",
        *jax.errors.__dict__,
    ):
        theirs = getattr(jax.errors, name, None)
        if isinstance(theirs, type):
            mine = getattr(phlox.errors, name)
            for base in theirs.__mro__:
                if base.__module__ == "builtins":
                    assert issubclass(mine, base), (name, base)
                elif hasattr(jax.errors, base.__name__):
                    assert issubclass(mine, getattr(phlox.errors, base.__name__)), (name, base)


# --- shardings without devices


def test_the_sharding_of_a_type():
    for m in (phlox, jax):
        for where in (m.typeof(m.numpy.ones((2, 3))).sharding, m.eval_shape(lambda: m.numpy.ones((2, 3))).sharding):
            if where is not None:
                assert where.mesh.empty
                assert not where.mesh.are_all_axes_explicit
                assert str(where) == "NamedSharding(mesh=AbstractMesh((), axis_types=()), spec=P(None, None))"
        assert m.jit(lambda x: x * m.typeof(x).sharding.mesh.empty)(3) == 3
    mesh = phlox.sharding.AbstractMesh((2,), ("d",))
    split = phlox.NamedSharding(mesh, phlox.P("d"))
    assert split.shard_shape((4, 3)) == (2, 3)
    for use in (
        lambda: phlox.device_put(np.ones(2), split),
        lambda: phlox.jit(lambda x: x, out_shardings=split)(np.ones(2)),
    ):
        with pytest.raises(phlox.errors.DeviceError, match="has no devices"):
            use()


def test_shardings_of_the_abstract_mesh_of_the_context():
    found = {}
    for m in (phlox, jax):
        auto = mesh(m)
        split = m.NamedSharding(auto.abstract_mesh, m.P("x"))
        explicit = m.make_mesh((4, 2), ("x", "y"))
        resharded = m.NamedSharding(explicit.abstract_mesh, m.P("x", "y"))
        with m.set_mesh(auto):
            inside = m.jit(lambda x, m=m, split=split: m.lax.with_sharding_constraint(x, split))(X)
            out = m.jit(lambda x: x * 2, out_shardings=split)(X)
        with m.set_mesh(explicit):
            moved = m.sharding.reshard(m.numpy.asarray(X), resharded)
        found[m] = [(str(x.sharding.spec), placed(x)[1]) for x in (inside, out, moved)]
        none = m.typeof(m.numpy.asarray(X)).sharding  # of a mesh without axes
        found[m].append(m.random.bernoulli(m.random.key(0), 0.5, (3,), out_sharding=none).tolist())
    assert found[phlox] == found[jax]
    kind = phlox.sharding.AxisType.Auto
    split = phlox.NamedSharding(phlox.sharding.AbstractMesh((8,), ("x",), kind), phlox.P("x"))
    with phlox.set_mesh(mesh(phlox, (4,), ("y",))), pytest.raises(phlox.errors.DeviceError, match="has no devices"):
        phlox.jit(lambda x: phlox.lax.with_sharding_constraint(x, split))(X)


def arrays_of(m, doubled, made):
    """Arrays made, and results of programs without committed arguments: where they lie, and whether committed."""
    np_x, key = np.ones(4, np.float32), m.random.key(0)
    made_here = [
        m.numpy.ones(4),
        m.numpy.asarray(X),
        m.numpy.arange(3),
        m.random.normal(key, (2,)),
        m.random.split(key),
    ]
    results = [
        doubled(np_x),
        doubled(np.float32(2)),
        made(),
        made_here[0] + 1,
        made_here[1].reshape(4, 4),
        m.jit(made)(),
    ]
    kept = [m.device_put(np_x), m.device_put(np_x, m.devices()[1])]
    loop = m.lax.scan(lambda c, x: (c + x, c), m.numpy.zeros(()), m.numpy.arange(3.0))
    gradient = m.grad(lambda w: (w**2).sum())(made_here[0])
    return [(placed(x)[1], x.committed, np.shape(x)) for x in (*made_here, *results, *kept, *loop, gradient)]


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_new_arrays_lie_on_the_mesh_of_the_context(kind):
    found = {}
    for m in (phlox, jax):
        before, doubled, made = m.numpy.ones(4), m.jit(lambda x: x * 2), m.jit(lambda m=m: m.numpy.zeros(3))
        found[m] = []

        def look(m=m, before=before, doubled=doubled, made=made):
            found[m].append([*arrays_of(m, doubled, made), placed(doubled(before))[1], placed(before + 1)[1]])

        look()
        for shape, names in (((4, 2), ("x", "y")), ((2,), ("z",)), ((1,), ("w",)), ((4, 2), ("x", "y"))):
            with m.set_mesh(m.make_mesh(shape, names, axis_types=(getattr(m.sharding.AxisType, kind),) * len(shape))):
                look()
            look()  # programs compiled inside are not those outside
    assert found[phlox] == found[jax]


def specs_of_results(m, count):
    """The specs of results over a mesh of `count` devices, as they are written."""
    over = mesh(m, (count,), ("w",))
    x = m.numpy.ones((8, 4), np.float32)
    put = lambda *entries: m.device_put(x, m.NamedSharding(over, m.P(*entries)))
    many = m.jit(lambda a: (a + 1, a.sum(), a[0], m.numpy.zeros(3)))
    part = m.shard_map(
        lambda a: (a, a.sum(0)), mesh=over, in_specs=m.P("w", None), out_specs=(m.P("w", None), m.P("w"))
    )
    whole = m.shard_map(lambda a: m.lax.psum(a, "w"), mesh=over, in_specs=m.P("w"), out_specs=m.P(None))
    results = [
        many(put("w")),
        many(put(None)),
        put("w") * 2,
        put(None) + x,
        part(x),
        whole(x),
        m.jit(part)(x),
        m.jit(whole)(x),
        m.jit(lambda a: m.lax.with_sharding_constraint(a, m.NamedSharding(over, m.P("w"))).sum(1))(x),
    ]
    with m.set_mesh(over):
        results += [m.numpy.ones(3), m.numpy.sin(np.ones(3)), m.jit(lambda a: a + 1)(x)]
    return [(tuple(x.sharding.spec), x.sharding.mesh.axis_names, x.committed) for x in m.tree.leaves(results)]


@pytest.mark.parametrize("count", [1, 2])
def test_results_have_the_mesh_of_the_program(count):
    """Also those of one device, where every sharding is the same."""
    assert specs_of_results(phlox, count) == specs_of_results(jax, count)


def test_a_mesh_entered_as_a_context_is_not_set():
    """Specs without a mesh mean it; `get_mesh` does not know it. flax splits arrays where it does."""
    for m in (phlox, jax):
        with mesh(m):
            assert (m.sharding.get_mesh() if hasattr(m.sharding, "get_mesh") else m.get_mesh()).empty
            assert m.sharding.get_abstract_mesh().empty
            y = m.jit(lambda x: m.lax.with_sharding_constraint(x, m.P("x")))(np.ones(8))
            assert len(y.sharding.device_set) == 8
        with pytest.raises(ValueError if m is phlox else (RuntimeError, ValueError)):
            m.jit(lambda x: m.lax.with_sharding_constraint(x, m.P("x")))(np.ones(8))


def test_a_mesh_entered_as_a_context_places_nothing():
    with mesh(phlox):
        assert phlox.numpy.ones(3).sharding == phlox.sharding.SingleDeviceSharding(phlox.devices()[0])


def test_specs_are_printed_as_in_jax():
    for entries in [(), ("d",), ("d", None), (("a", "b"), None), (None,)]:
        assert repr(phlox.P(*entries)) == str(phlox.P(*entries)) == repr(jax.P(*entries))


MADE = {
    "zeros": lambda n, over: n.zeros(8, device=over),
    "full": lambda n, over: n.full(8, 2.0, device=over),
    "arange": lambda n, over: n.arange(1, 9, device=over),
    "linspace": lambda n, over: n.linspace(0, 1, 8, device=over),
    "eye": lambda n, over: n.eye(8, device=over),
    "array": lambda n, over: n.array([1.0] * 8, device=over),
    "ones_like": lambda n, over: n.ones_like(X, device=over),
    "astype": lambda n, over: n.astype(n.arange(8), float, device=over),
}


@pytest.mark.parametrize("name", MADE)
def test_new_arrays_lie_where_asked_also_under_jit(name):
    over = {m: m.sharding.NamedSharding(mesh(m), m.P("x")) for m in (phlox, jax)}
    expected = MADE[name](jax.numpy, over[jax])
    make = lambda: MADE[name](phlox.numpy, over[phlox])
    for x in (make(), phlox.jit(make)()):
        assert x.dtype == expected.dtype
        np.testing.assert_array_equal(x, expected)
        assert placed(x)[1] == placed(expected)[1]


LIKE = {
    "zeros": lambda m, x: m.numpy.zeros_like(x),
    "ones": lambda m, x: m.numpy.ones_like(x),
    "empty": lambda m, x: m.numpy.empty_like(x),
    "full": lambda m, x: m.numpy.full_like(x, 2),
    "lax": lambda m, x: m.lax.full_like(x, 2.0),
    "dtype": lambda m, x: m.numpy.zeros_like(x, dtype="int32"),
    "shape": lambda m, x: m.numpy.zeros_like(x, shape=x.shape),
    "another shape": lambda m, x: m.numpy.zeros_like(x, shape=(2, 2)),
    "device": lambda m, x: m.numpy.zeros_like(x, device=m.devices()[2]),
    "tree": lambda m, x: m.tree.map(m.numpy.zeros_like, [x])[0],
}


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("name", LIKE)
def test_new_arrays_lie_where_the_one_lies_after_which_they_are_made(name, explicit):
    """So the state of an optimizer is split as the parameters are."""

    def lie(m):
        kind = m.sharding.AxisType.Explicit if explicit else m.sharding.AxisType.Auto
        mesh = m.make_mesh((2, 2), ("a", "b"), axis_types=(kind, kind), devices=m.devices()[:4])
        for shape in ((4, 4), (512, 512)):
            whole = np.ones(shape, np.float32)
            split = m.device_put(whole, m.NamedSharding(mesh, m.P("a", "b")))
            for x in (split, m.device_put(whole, m.devices()[1]), m.numpy.asarray(whole)):
                found = LIKE[name](m, x)
                yield str(found.sharding), found.committed, float(found.sum()) if name != "empty" else 0

    assert list(lie(phlox)) == list(lie(jax))


def test_closed_over_arrays_follow_the_arguments():
    outs = []
    for m in (phlox, jax):
        here, there = (m.sharding.Mesh(np.array(m.devices()[i : i + 4]), ("x",)) for i in (0, 4))
        split = [m.device_put(np.arange(8.0), m.NamedSharding(mesh, m.P("x"))) for mesh in (here, there)]
        one = m.device_put(np.ones(8), m.devices()[1])
        f = m.jit(lambda x, one=one, other=split[0]: x + one * other)
        outs.append([*map(f, split), m.jit(lambda x, m=m: x + m.device_put(1, m.devices()[0]))(split[1])])
    for ours, expected in zip(*outs, strict=True):
        np.testing.assert_array_equal(ours, expected)
        assert [s.device.id for s in ours.addressable_shards] == [s.device.id for s in expected.addressable_shards]
        assert str(ours.sharding.spec) == str(expected.sharding.spec)
