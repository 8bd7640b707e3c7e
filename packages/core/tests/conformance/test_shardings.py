"""Shardings of arguments and results of jitted functions, constraints that leave axes to the compiler, kinds of memory,
and programs compiled ahead of time: what lies where, and what is refused, as in jax on eight devices."""

import copy
import os
import pickle
import subprocess
import sys

import jax
import numpy as np
import pytest

import phlox

X = np.arange(128, dtype=np.float32).reshape(16, 8)


def mesh(m):
    return m.make_mesh((4, 2), ("x", "y"), axis_types=(m.sharding.AxisType.Auto,) * 2)


def over(m, *spec, **options):
    return m.NamedSharding(mesh(m), m.P(*spec), **options)


def put(m, *spec, **options):
    return m.device_put(X, over(m, *spec, **options))


def lies(x):
    """Elements, the part on each device, and the kind of memory."""
    parts = [(s.device.id, str(s.index), np.asarray(s.data)) for s in x.addressable_shards]
    return np.asarray(x), sorted(parts, key=lambda part: part[0]), x.sharding.memory_kind


def results_of_new_arrays(m):
    made = m.jit(lambda: m.numpy.ones((8, 2)), out_shardings=over(m, "x"))()
    both = m.jit(lambda x: (x * 2, x.sum()), out_shardings=(over(m, "y"), over(m)))
    return lies(made), [lies(x) for x in both(X)], [lies(x) for x in both(m.numpy.asarray(X))], lies(made + 1)


def moved_new_arrays(m):
    f = m.jit(lambda x: x * 2, in_shardings=over(m, "x"))
    return lies(f(X)), lies(f(m.numpy.asarray(X))), lies(f(put(m, "x"))), lies(f(put(m, ("x",), None)))


def functions_inside_of_functions(m):
    inner = m.jit(lambda a, b: {"sum": a + b}, in_shardings=(over(m, "y"), None), out_shardings=over(m, None, "x"))
    outer = m.jit(lambda a: inner(a, a * 2)["sum"])
    gradient = m.grad(lambda a: (inner(a, a * 2)["sum"] ** 2).sum())
    return lies(outer(X)), np.asarray(gradient(X)), lies(m.vmap(inner, (0, None))(X[None], X)["sum"])


def left_to_the_compiler(m):
    some = over(m, "y", m.P.UNCONSTRAINED)
    f = m.jit(lambda x: m.lax.with_sharding_constraint(x * 2, some))
    return np.asarray(f(put(m, None, "x"))), repr(m.P("x", m.P.UNCONSTRAINED)), f(put(m, "x")).sharding.spec[0]


def moved_to_other_devices(m):
    """Committed arguments that are split as `in_shardings` says are moved."""
    left, right = (m.sharding.Mesh(np.array(half), "x") for half in (m.devices()[:4], m.devices()[4:]))
    split, whole = m.NamedSharding(left, m.P("x")), m.NamedSharding(left, m.P())
    double = m.jit(lambda x: x * 2, in_shardings=split)(m.device_put(X, m.NamedSharding(right, m.P("x"))))
    return lies(double), lies(m.jit(lambda x: x * 2, in_shardings=whole)(m.device_put(X, m.devices()[1])))


def compiled_ahead(m):
    double = m.jit(lambda x, y: x * 2 + y.sum())
    here, there = double.lower(put(m, "x"), X).compile(), double.lower(X, X).compile()
    return lies(here(put(m, "x"), X)), lies(here(m.numpy.asarray(X), X)), lies(here(X, X)), np.asarray(there(X, X))


def memory(m):
    kinds = [x.kind for x in m.devices()[0].addressable_memories()]
    usual, host = over(m, "x"), over(m, "x", memory_kind="pinned_host")
    alike = usual == usual.with_memory_kind("device"), usual == host, usual.is_equivalent_to(host, 2)
    single = m.sharding.SingleDeviceSharding(m.devices()[1], memory_kind="unpinned_host")
    there = m.device_put(X, host)
    moved = m.device_put(there, usual), m.device_put(put(m, "x"), host), m.device_put(X, single)
    kept = m.jit(lambda x: x * 2, out_shardings=host)(X), m.jit(lambda x: x, in_shardings=host)(X)
    inside = m.jit(lambda x: m.device_put(x * 2, host))(put(m, "x"))
    spaces = m.device_put(m.numpy.ones(3), m.memory.Space.Host), m.device_put(there, m.memory.Space.Device)
    told = usual.memory_kind, host.memory_kind, host.update(spec=m.P("y")).memory_kind, kinds, alike
    arrays = (there, *moved, kept[0], inside, *spaces)
    return told, [lies(x) for x in arrays], there.addressable_shards[0].data.sharding.memory_kind, lies(kept[1])


def formats(m):
    x = put(m, "x")
    return x.format.layout.major_to_minor, x.format.sharding == x.sharding, x[0].format.layout.major_to_minor


def donated(m):
    x, y = put(m, "x"), m.device_put(X, over(m, "y"))
    sums = lies(m.jit(lambda x, y: x + y, donate_argnums=0)(x, y)), x.is_deleted(), y.is_deleted()
    gone = []
    for mine in (("x",), ("x", "y"), ()):
        for theirs in (("x",), ("y",), (None, "x"), ("y", "x")):
            x = put(m, *mine)
            m.jit(lambda x: x * 2, donate_argnums=0, out_shardings=over(m, *theirs))(x)
            gone.append(x.is_deleted())
    return sums, gone


def sizes_on_devices(m):
    x = put(m, "x")
    return x.on_device_size_in_bytes(), x[0].on_device_size_in_bytes(), x.addressable_shards[0].data.nbytes


def descriptions(m):
    struct = m.ShapeDtypeStruct
    with m.set_mesh(mesh(m)):
        compiled = m.jit(lambda x: 2 * x).lower(struct((16, 8), "float32", sharding=m.P("x"))).compile()
        spec = struct((16, 8), "float32", sharding=m.P(None, "y")).sharding.spec
    (first,), _ = compiled.input_shardings
    return (
        tuple(first.spec),
        tuple(spec),
        struct((16, 8), "float32", sharding=put(m, "x").format).sharding.spec == m.P("x"),
    )


def derivatives_of_moves_between_devices(m):
    one, two = (m.device_put(np.full((8, 4), value, np.float32), m.devices()[i]) for i, value in ((0, 0.1), (1, 0.2)))
    near, far = (m.NamedSharding(m.sharding.Mesh(np.array(m.devices()[i : i + 4]), "i"), m.P("i")) for i in (0, 4))

    def two_devices(w, v):
        return (m.device_put(m.numpy.tanh(X @ w), m.devices()[1]) @ v.T).sum()

    def two_meshes(x):
        return (m.device_put(m.numpy.sin(x), far) ** 3).sum()

    split = m.device_put(X, near)
    value, pull = m.vjp(lambda x: m.device_put(x, m.devices()[1]), one)
    second = m.grad(lambda x: m.grad(lambda x: (m.device_put(x, far) ** 3).sum())(x).sum())(split)
    rows = m.vmap(lambda row: m.device_put(row, m.devices()[2]))(one)
    outs = [*m.grad(two_devices, (0, 1))(one, two), m.grad(two_meshes)(split), value, *pull(two), second, rows]
    outs += [*m.jvp(two_meshes, (split,), (split,)), m.linearize(two_meshes, split)[1](split)]
    return [lies(x) for x in outs]


def examples_under_constraints(m):
    """A constraint on each example leaves the batch as it is split."""
    f = m.jit(m.vmap(lambda row: m.lax.with_sharding_constraint(row, over(m, "y"))))
    return lies(f(put(m, "x"))), lies(m.jit(m.vmap(lambda row: row, out_axes=1))(put(m, "x")))


def donated_and_moved(m):
    seen = []
    for spec in ((), ("x",)):
        x, y = m.numpy.asarray(X), m.numpy.asarray(X)
        out = m.jit(lambda x, y: (x * 2, y.sum()), in_shardings=over(m, *spec), donate_argnums=0)(x, y)
        seen += [lies(out[0]), x.is_deleted(), y.is_deleted()]
    return seen


def made_after_descriptions(m):
    struct = m.ShapeDtypeStruct((16, 8), "float32", sharding=over(m, "x", "y"))
    abstract = m.ShapeDtypeStruct((4,), "int8", sharding=m.NamedSharding(mesh(m).abstract_mesh, m.P("x")))
    outs = [m.numpy.zeros_like(struct), m.lax.full_like(struct, 2), m.numpy.ones_like(abstract)]
    shards = [m.numpy.ones(2), m.device_put(np.ones(2), m.devices()[1])]
    return [lies(x) for x in outs], [s.data.committed for x in shards for s in x.addressable_shards]


def specs_of_the_first_argument(m):
    f = m.jit(lambda x, y: (x, y, x + 1, x.T))
    specs = (None,), (None, None), ("x", None), ()
    return [tuple(x.sharding.spec) for a in specs for b in specs for x in f(put(m, *a), put(m, *b))]


def uncommitted_elsewhere(m):
    """Programs of uncommitted arrays run on the default device, also where none of the arrays is."""
    with m.default_device(m.devices()[4]):
        there = m.numpy.ones(2)
    here = m.numpy.ones(2)
    outs = [there, there + 1, there + here, m.jit(m.numpy.sin)(there), there[0], m.device_put(there)]
    with m.default_device(m.devices()[3]):
        outs += [there + 1, there + here, here * 2]
    return [lies(x) for x in outs]


PROGRAMS = [
    uncommitted_elsewhere,
    derivatives_of_moves_between_devices, examples_under_constraints, donated_and_moved, made_after_descriptions,
    specs_of_the_first_argument,
    results_of_new_arrays, moved_new_arrays, functions_inside_of_functions, left_to_the_compiler, compiled_ahead,
    moved_to_other_devices, memory,
    formats, donated, sizes_on_devices, descriptions,
]  # fmt: skip


def _same(mine, theirs):
    if isinstance(theirs, list | tuple):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            _same(a, b)
    elif isinstance(theirs, np.ndarray):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)
    else:
        assert mine == theirs


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_like_jax(program):
    _same(program(phlox), program(jax))


def ahead(m, given, called):
    return m.jit(lambda x: x * 2).lower(given).compile()(called)


REFUSED = {
    "committed elsewhere than in_shardings": lambda m: m.jit(lambda x: x, in_shardings=over(m, "x"))(put(m, "y")),
    "committed to one device": lambda m: m.jit(lambda x: x, in_shardings=over(m, "x"))(m.device_put(X, m.devices()[1])),
    "another memory than in_shardings": lambda m: m.jit(
        lambda x: x, in_shardings=over(m, "x", memory_kind="pinned_host")
    )(put(m, "x")),
    "results on other devices": lambda m: m.jit(lambda x: x, out_shardings=over(m, "x"))(
        m.device_put(X, m.devices()[1])
    ),
    "compiled for another sharding": lambda m: ahead(m, put(m, "x"), put(m, None, "y")),
    "compiled for one device": lambda m: ahead(m, X, put(m, "x")),
    "compiled for another device": lambda m: ahead(m, X, m.device_put(X, m.devices()[1])),
    "unknown memory": lambda m: over(m, "x", memory_kind="tape"),
    "too long a spec of an argument": lambda m: m.jit(lambda x: x, in_shardings=over(m, "x", "y", None))(X),
    "too long a spec of a result": lambda m: m.jit(lambda x: x.sum(), out_shardings=over(m, "x"))(X),
    "uneven parts of an argument": lambda m: m.jit(lambda x: x, in_shardings=over(m, "x")).lower(X[:3]),
    "uneven parts of a result": lambda m: m.jit(lambda x: x[:3], out_shardings=over(m, "x"))(X),
    "unconstrained argument": lambda m: m.jit(lambda x: x, in_shardings=over(m, m.P.UNCONSTRAINED))(X),
    "unconstrained result": lambda m: m.jit(lambda x: x, out_shardings=over(m, m.P.UNCONSTRAINED))(X),
    "device and in_shardings": lambda m: m.jit(lambda x: x, in_shardings=over(m, "x"), device=m.devices()[0]),
    "backend and out_shardings": lambda m: m.jit(lambda x: x, out_shardings=over(m, "x"), backend="cpu"),
    "device and backend": lambda m: m.jit(lambda x: x, device=m.devices()[0], backend="cpu"),
    "constraint over a mapped axis": lambda m: m.shard_map(
        lambda x: m.lax.with_sharding_constraint(x, over(m, "x")), mesh=mesh(m), in_specs=m.P("x"), out_specs=m.P("x")
    )(X),
    "unconstrained spec": lambda m: m.shard_map(
        lambda x: x, mesh=mesh(m), in_specs=m.P(m.P.UNCONSTRAINED), out_specs=m.P()
    )(X),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_like_jax(name):
    with pytest.raises(ValueError):
        REFUSED[name](jax)
    with pytest.raises(ValueError):
        REFUSED[name](phlox)


@pytest.mark.parametrize("option", ["in_shardings", "out_shardings"])
@pytest.mark.parametrize("wrong", [3, "x", "device"])
def test_what_is_no_sharding(option, wrong):
    for m in (phlox, jax):
        with pytest.raises(TypeError):
            m.jit(lambda x: x, **{option: m.devices()[0] if wrong == "device" else wrong})(X)


# --- pickles and copies

SENT = {
    "device": lambda: phlox.devices()[1],
    "mesh": lambda: phlox.make_mesh((2,), ("i",)),
    "explicit mesh": lambda: phlox.make_mesh((2,), ("i",), axis_types=(phlox.sharding.AxisType.Explicit,)),
    "abstract mesh": lambda: phlox.make_mesh((2,), ("i",)).abstract_mesh,
    "spec": lambda: phlox.P("i", None, ("j", "k"), phlox.P.UNCONSTRAINED),
    "named": lambda: phlox.NamedSharding(SENT["mesh"](), phlox.P("i")),
    "named, with memory": lambda: SENT["named"]().with_memory_kind("device"),
    "single": lambda: phlox.sharding.SingleDeviceSharding(phlox.devices()[1]),
    "of pmap": lambda: phlox.pmap(lambda x: x)(np.arange(2.0)).sharding,
    "format": lambda: phlox.device_put(np.ones((2, 3)), SENT["named"]()).format,
    "struct": lambda: phlox.ShapeDtypeStruct((2, 3), "bfloat16", sharding=SENT["named"]()),
    "typed keys": lambda: phlox.random.key_data(phlox.random.split(phlox.random.key(1), 3)),
    "key dtype": lambda: phlox.random.key(0).dtype,
    "treedef": lambda: phlox.tree.structure({"a": 1, "b": (2, None)}),
    "array": lambda: phlox.numpy.arange(3, dtype="bfloat16"),
}
COPIES = {
    **{f"protocol {n}": lambda x, n=n: pickle.loads(pickle.dumps(x, n)) for n in range(2, 6)},
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", SENT)
def test_pickles_and_copies(name, way):
    sent = SENT[name]()
    received = COPIES[way](sent)
    assert type(received) is type(sent)
    assert np.all(np.asarray(received == sent))
    if name in ("device", "mesh", "named", "single", "struct", "spec", "treedef"):
        assert hash(received) == hash(sent)
    if name in ("named", "single"):
        assert phlox.device_put(np.ones(2), received).sharding == sent


def test_pickles_in_another_process():
    """Devices are found by their numbers; a process that has fewer says what it lacks."""
    data = pickle.dumps([SENT[name]() for name in ("device", "named", "format", "struct")])
    program = (
        "import pickle, sys, phlox; phlox.config.update('num_cpu_devices', int(sys.argv[1])); "
        "print(pickle.loads(sys.stdin.buffer.read()))"
    )
    path = os.pathsep.join(map(str, filter(None, sys.path)))
    runs = [
        subprocess.run(
            [sys.executable, "-c", program, count],
            input=data,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        for count in "21"
    ]
    assert b"NamedSharding" in runs[0].stdout, runs[0].stderr
    assert b"no such device" in runs[1].stderr and b"num_cpu_devices" in runs[1].stderr


def test_devices_of_jax_are_not_pickled_as_those_of_phlox():
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(jax.devices()[0])
