"""Inside of shard_map: along which mesh axes values vary, and derivatives there, as in jax, on eight devices.

A gradient with respect to a value that all devices share is the sum over them; see `_transform/manual_axes.py`.
"""

import itertools
import re

import jax
import jax.numpy
import numpy as np
import pytest

import phlox

X = np.linspace(-1.0, 2.0, 16, dtype=np.float32).reshape(8, 2)
W = np.array([0.5, -1.5], np.float32)
B = np.float32(0.7)


def mesh(m):
    return m.make_mesh((4, 2), ("x", "y"), axis_types=(m.sharding.AxisType.Auto,) * 2)


def tanh(m, w, b, x):
    return m.numpy.tanh(x * w + b)


def summed(m, w, b, x):
    return tanh(m, w, b, x).sum()


def over_devices(m, w, b, x):
    return m.lax.psum(summed(m, w, b, x), "x") ** 2


def mean_over_devices(m, w, b, x):
    return m.lax.pmean(tanh(m, w, b, x).mean(), "x") + (w**2).sum()


def gathered(m, w, b, x):
    return (m.lax.all_gather(x * w, "x", tiled=True) * m.numpy.arange(8.0)[:, None]).sum() * b


def permuted(m, w, b, x):
    return (m.lax.ppermute(x * w, "x", [(0, 1), (1, 2), (2, 3), (3, 0)]) * x).sum() * b


def scattered(m, w, b, x):
    return (m.lax.psum_scatter(m.numpy.ones((4, 2)) * w * x[:1], "x", tiled=True) ** 2).sum() + b


def exchanged(m, w, b, x):
    return (m.lax.all_to_all(m.numpy.ones((4, 2)) * w * x[:1], "x", 0, 0, tiled=True) * x[:1]).sum() * b


def largest(m, w, b, x):
    return m.lax.pmax(m.lax.stop_gradient((x * w).sum()), "x") * b + (x * w).sum()


def jitted(m, w, b, x):
    return m.jit(lambda w, b: m.numpy.sin(w * b).sum())(w, b) + m.jit(summed, static_argnums=0)(m, w, b, x)


def scanned(m, w, b, x):
    def step(c, row):
        c = m.numpy.sin(c * b) + row * w
        return c, c.sum()

    last, rows = m.lax.scan(step, x[0], x)
    return last.sum() + (rows**2).sum()


def scanned_alone(m, w, b, x):
    c, _ = m.lax.scan(lambda c, _: (m.numpy.sin(c * b), None), w, None, length=3)
    return (c * x).sum()


def chosen(m, w, b, x):
    return m.lax.cond(b > 0, lambda w: (w * x).sum(), lambda w: (w * x * x).sum(), w)


def chosen_by_device(m, w, b, x):
    at = m.lax.axis_index("x")
    if m is jax:  # whose sum over devices in one branch waits for those that took the other one, for ever
        return m.numpy.where(at % 2 == 0, (w * x).sum(), (w * x).prod() * b)
    return m.lax.switch(at % 2, [lambda w: (w * x).sum(), lambda w: (w * x).prod() * b], w)


def recomputed(m, w, b, x):
    return m.checkpoint(lambda w: m.numpy.sin(m.numpy.cos(w * x) * b).sum())(w)


def mapped_rows(m, w, b, x):
    return m.vmap(lambda row: m.numpy.dot(row, w) ** 2 * b)(x).sum()


def mapped_weights(m, w, b, x):
    return m.vmap(lambda one: m.numpy.sin(x * one).sum() * b)(w).sum()


def by_own_rule(m, w, b, x):
    @m.custom_jvp
    def f(w):
        return w**2

    f.defjvp(lambda primals, tangents: (f(*primals), 3 * primals[0] * tangents[0]))
    return (f(w) * x).sum() * b


def repeated(m, w, b, x):
    def body(c):
        i, total = c
        return i + 1, total + m.numpy.cos(total * b)

    return m.lax.while_loop(lambda c: c[0] < 3, body, (0, (x * w).sum()))[1]


def declared(m, w, b, x):
    own = m.lax.pcast(w, "x", to="varying")
    return (own**3).sum() * b + (own * x).sum()


def reshaped(m, w, b, x):
    table = m.numpy.concatenate([w, w[::-1] * b]).reshape(2, 2)
    return m.numpy.einsum("ij,jk->", x, table) + x[m.numpy.array([1, 0])].sum() * table[0, 1]


BODIES = [
    summed,
    over_devices,
    mean_over_devices,
    gathered,
    permuted,
    scattered,
    exchanged,
    largest,
    jitted,
    scanned,
    scanned_alone,
    chosen,
    chosen_by_device,
    recomputed,
    mapped_rows,
    mapped_weights,
    by_own_rule,
    declared,
    reshaped,
]


def gradient(m, body):
    """Of shared and of own arguments, inside."""
    f = lambda w, b, x: m.grad(lambda *args: body(m, *args), (0, 1, 2))(w, b, x)
    specs = (m.P(), m.P(), m.P("x"))
    return m.jit(m.shard_map(f, mesh=mesh(m), in_specs=specs, out_specs=specs))(W, B, X)


def gradient_outside(m, body):
    """Of the whole function; each device returns its own value."""
    f = m.shard_map(
        lambda w, b, x: m.numpy.ones(1) * body(m, w, b, x),
        mesh=mesh(m),
        in_specs=(m.P(), m.P(), m.P("x")),
        out_specs=m.P("x"),
    )
    return m.jit(m.grad(lambda *args: (f(*args) * m.numpy.arange(1.0, 5)).sum(), (0, 1, 2)))(W, B, X)


def derivative_of_derivative(m, body):
    loss = lambda w, b, x: m.lax.pmean(body(m, w, b, x), "x")
    inner = lambda w, b, x: m.grad(lambda w: (m.grad(loss)(w, b, x) ** 2).sum())(w)
    f = m.shard_map(inner, mesh=mesh(m), in_specs=(m.P(), m.P(), m.P("x")), out_specs=m.P())
    return m.jit(f)(W, B, X)


def batched(m, body):
    f = lambda w, b, x: m.grad(lambda w: body(m, w, b, x))(w)
    mapped = m.shard_map(f, mesh=mesh(m), in_specs=(m.P(), m.P(), m.P("x")), out_specs=m.P())
    return m.jit(m.vmap(mapped, (0, None, None)))(np.stack([W, 2 * W]), B, X)


def forward(m, body):
    f = lambda w, b, x: m.numpy.ones(1) * m.jvp(lambda w, b: body(m, w, b, x), (w, b), (w, b))[1]
    specs = (m.P(), m.P(), m.P("x"))
    return m.jit(m.shard_map(f, mesh=mesh(m), in_specs=specs, out_specs=m.P("x")))(W, B, X)


@pytest.mark.parametrize("way", [gradient, gradient_outside, derivative_of_derivative, batched, forward])
@pytest.mark.parametrize("body", BODIES)
def test_derivatives(way, body):
    def found(m):
        return [np.asarray(x) for x in m.tree.leaves(way(m, body))]

    for ours, theirs in itertools.zip_longest(found(phlox), found(jax)):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-5)


def test_forward_mode_through_while_loop():
    ours, theirs = (forward(m, repeated) for m in (phlox, jax))
    np.testing.assert_allclose(ours, theirs, rtol=2e-5)


def test_tangents_that_vary_where_their_primal_value_does_not():
    jnp, lax = phlox.numpy, phlox.lax
    bodies = [
        lambda x: (x**2).mean(),
        lambda x: lax.scan(lambda c, _: (c * c, None), x, None, length=1)[0].sum(),
        lambda x: (jnp.floor(x) * x**2).sum(),
        lambda x: phlox.nn.relu(x * x).sum(),
        lambda x: phlox.checkpoint(lambda x: x @ x)(x),
        lambda x: lax.cond(x[0] > 0, lambda: x @ x, lambda: 3.0),
        lambda x: (jnp.sort(x) * x).sum(),
    ]
    for body in bodies:
        along = lambda t, body=body: phlox.jvp(body, (jnp.ones(1),), (t,))[1]
        # Its derivative is the same on all devices, and not the sum over them.
        derivative = lambda t, along=along: phlox.grad(along)(t)[0]
        for f, expected in ((along, 2 * np.arange(4.0)), (phlox.jit(along), 2 * np.arange(4.0)), (derivative, 2)):
            on_each = lambda t, f=f: f(t)[None]
            mapped = phlox.shard_map(on_each, mesh=mesh(phlox), in_specs=phlox.P("x"), out_specs=phlox.P("x"))
            np.testing.assert_allclose(mapped(jnp.arange(4.0)), np.broadcast_to(expected, 4), rtol=1e-6)


def test_types_say_along_which_axes_values_vary():
    def seen(m):
        types = []

        def f(w, x):
            lax, jnp = m.lax, m.numpy
            values = [
                w,
                x,
                w * x,
                jnp.where(x > 0, w, 0.0),
                lax.psum(x, "x"),
                lax.pmax(x, "x"),
                lax.axis_index("y"),
                lax.all_gather(x, ("x", "y")),
                lax.pcast(w, "y", to="varying") * x,
                jnp.ones(2),
                m.jit(lambda x: lax.psum(x, "x"))(x),
                m.vmap(lambda row: row + w)(x),
                lax.scan(lambda c, row: (c + row, c), x[0], x)[1],
                lax.cond(w.sum() > 0, lambda: x, lambda: -x),
            ]
            types.extend(str(m.typeof(value)) for value in values)
            return x

        m.shard_map(f, mesh=mesh(m), in_specs=(m.P(), m.P("x")), out_specs=m.P("x"))(W, X)
        return types

    ours = seen(phlox)
    assert ours == seen(jax)
    assert ours[2] == "float32[2,2]{V:x}" and ours[7] == "float32[8,2,2]{V:(x,y)}"


@pytest.mark.parametrize(
    ("f", "spec"),
    [
        (lambda m, w, x: x * w, ()),  # which device's result?
        (lambda m, w, x: m.lax.all_gather(x, "x"), ()),
        (lambda m, w, x: m.lax.psum(x, ("x", "y")), ()),  # varies along one of the two
        (lambda m, w, x: m.lax.pcast(x, "x", to="varying"), ("x",)),
    ],
)
def test_mistakes_are_refused(f, spec):
    for m in (phlox, jax):
        mapped = m.shard_map(lambda w, x: f(m, w, x), mesh=mesh(m), in_specs=(m.P(), m.P("x")), out_specs=m.P(*spec))
        with pytest.raises(ValueError):
            mapped(W, X)


def test_loops_and_branches_need_no_pcast():
    """Where jax asks for a pcast of the start value, phlox makes the carry vary by itself."""

    def ours(w, x):
        total = phlox.lax.fori_loop(0, 3, lambda i, c: c + x * w, phlox.numpy.zeros_like(W))
        return total.sum() + phlox.lax.cond(w[0] > 0, lambda: x.sum(), lambda: 0.0 * w.sum())

    def theirs(w, x):
        zero = jax.lax.pcast(jax.numpy.zeros_like(W), "x", to="varying")
        total = jax.lax.fori_loop(0, 3, lambda i, c: c + x * w, zero)
        other = lambda: jax.lax.pcast(0.0 * w.sum(), "x", to="varying")
        return total.sum() + jax.lax.cond(w[0] > 0, lambda: x.sum(), other)

    def run(m, f):
        inner = lambda w, x: m.grad(lambda w: f(w, x[0]))(w)
        return m.shard_map(inner, mesh=mesh(m), in_specs=(m.P(), m.P("x")), out_specs=m.P())(W, X)

    np.testing.assert_allclose(run(phlox, ours), run(jax, theirs), rtol=1e-5)


def test_branches_that_devices_choose_give_results_that_vary():
    """jax calls such a result equal on all devices, which it is not."""
    seen = []

    def f(w, x):
        out = phlox.lax.cond(x[0, 0] > 0, lambda: w, lambda: 2 * w)
        seen.append(phlox.typeof(out).vma)
        return out

    mapped = phlox.shard_map(f, mesh=mesh(phlox), in_specs=(phlox.P(), phlox.P("x")), out_specs=phlox.P("x"))
    np.testing.assert_array_equal(mapped(W, X).reshape(4, 2)[::3], [2 * W, W])
    assert seen[0] == frozenset("x")


def test_without_check_vma_gradients_are_those_of_each_device():
    def of(m):
        f = lambda w, b, x: m.grad(lambda w: summed(m, w, b, x))(w)
        specs = (m.P(), m.P(), m.P("x"))
        return m.shard_map(f, mesh=mesh(m), in_specs=specs, out_specs=m.P("x"), check_vma=False)(W, B, X)

    np.testing.assert_allclose(of(phlox), of(jax), rtol=1e-5)


@pytest.mark.parametrize(
    ("inner", "specs", "outer"),
    [("y", ("y", "y"), "x"), ("y", ("y",), "x"), ("y", ((), ()), "x"), ("xy", ("y",), None)],
)
def test_an_inner_shard_map_takes_the_axes_that_are_left(inner, specs, outer):
    """Without `axis_names`, the inner function is mapped over the axes over which the outer one is not."""

    def run(m):
        def body(x):
            return m.lax.psum(x, tuple(inner)) if len(specs) == 1 else 2 * x

        out = m.P() if len(specs) == 1 else m.P(*specs[1])
        inside = lambda x: m.shard_map(body, in_specs=m.P(*specs[0]), out_specs=out)(x)
        mapped = m.shard_map(inside, mesh=mesh(m), in_specs=m.P("x"), out_specs=m.P(outer), axis_names={"x"})
        return m.jit(mapped)(X)

    np.testing.assert_allclose(run(phlox), run(jax), rtol=1e-6)


def test_axes_that_are_not_mapped_stay_split():
    for m in (phlox, jax):
        x = m.device_put(X, m.NamedSharding(mesh(m), m.P("x", "y")))
        for spec, names in (("x", {"x"}), (None, {"y"})):
            f = m.shard_map(lambda x: x * x, mesh=mesh(m), in_specs=m.P(spec), out_specs=m.P(spec), axis_names=names)
            out = m.jit(f)(x if spec else m.device_put(X, m.NamedSharding(mesh(m), m.P("x"))))
            assert [s.data.shape for s in out.addressable_shards] == [(2, 1) if spec else (2, 2)] * 8
            np.testing.assert_array_equal(out, X * X)


@pytest.mark.parametrize("spmd", ["x", None])
def test_a_batch_that_is_split_over_another_axis(spmd):
    results = []
    for m in (phlox, jax):
        kinds = (m.sharding.AxisType.Auto if spmd else m.sharding.AxisType.Explicit,) * 2
        devices = m.make_mesh((4, 2), ("x", "y"), axis_types=kinds)
        x = m.device_put(X, m.NamedSharding(devices, m.P("x", "y")))
        f = m.shard_map(
            lambda x, m=m: m.numpy.sin(x.sum()), mesh=devices, in_specs=m.P("y"), out_specs=m.P(), check_vma=False
        )
        # The residuals of the gradient are split over both axes.
        grad = m.vmap(m.grad(f), spmd_axis_name=spmd) if spmd else m.vmap(lambda row, f=f: f(row))
        results.append(grad(x))
    np.testing.assert_allclose(*results, rtol=1e-6)


def test_a_batch_is_not_split_over_a_mapped_axis():
    for m in (phlox, jax):
        devices = m.make_mesh((4, 2), ("x", "y"), axis_types=(m.sharding.AxisType.Explicit,) * 2)
        x = m.device_put(np.ones((8, 8), np.float32), m.NamedSharding(devices, m.P("x", "y")))
        with pytest.raises(ValueError):
            m.jit(m.vmap(m.shard_map(lambda x: x, mesh=devices, in_specs=m.P("x"), out_specs=m.P("x"))))(x)


@pytest.mark.parametrize("tiled", [False, True])
def test_what_all_devices_have_gathered_does_not_vary(tiled):
    results = []
    for m in (phlox, jax):
        spec = m.P("x")

        @m.jit
        @m.shard_map(mesh=mesh(m), in_specs=spec, out_specs=m.P())
        def gather(x, m=m):
            out = m.lax.all_gather(x, ("x",), axis=1, tiled=tiled, to="invarying")
            assert m.typeof(out).mat.varying == frozenset()
            return out

        weights = np.arange(16, dtype=np.float32).reshape((2, 8) if tiled else (2, 4, 2))
        grad = m.grad(lambda x, w=weights, f=gather: (f(x) ** 2 * w).sum())
        results.append([gather(X), grad(X), m.jvp(grad, (X,), (X,))[1]])
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_descriptions_say_along_which_axes_values_vary():
    for m in (phlox, jax):
        seen = []

        def look(x, m=m, seen=seen):
            structs = m.eval_shape(lambda x: x.sum(), x), m.ShapeDtypeStruct.like(x).update(shape=(3, 2))
            seen.extend(m.typeof(s).mat.varying for s in structs)
            return x

        m.shard_map(look, mesh=mesh(m), in_specs=m.P("x"), out_specs=m.P("x"))(X)
        assert seen == [{"x"}] * 2


@pytest.mark.parametrize("spec", [("x",), None])
def test_references(spec):
    """What devices write to their parts of a reference is in the whole one; without specs its type says the split."""
    results = []
    for m in (phlox, jax):
        kinds = (m.sharding.AxisType.Explicit,)
        devices = m.sharding.Mesh(np.array(m.devices()[:2]), ("x",), axis_types=kinds)
        with m.set_mesh(devices):
            ref = m.new_ref(m.device_put(np.zeros(4, np.float32), m.P("x")))

            def add(ref, m=m):
                ref[...] += m.lax.axis_index("x").astype("float32") + 1
                return ref[...] * 2

            options = {"in_specs": m.P(*spec)} if spec else {}
            f = m.jit(m.shard_map(add, out_specs=m.P("x"), **options))
            results.append([f(ref), f(ref), ref[...]])
            assert results[-1][-1].sharding.spec == m.P("x")
    np.testing.assert_array_equal(*results)


def test_references_eagerly_and_with_derivatives():
    """Not in jax, where eager functions that are mapped take no references."""

    def write(tree, x):
        tree["ref"][...] = np.float32(2) * phlox.numpy.sin(x)
        tree["sum"][...] += phlox.lax.psum(x.sum(), "x")

    def f(x):
        refs = {"ref": phlox.new_ref(phlox.numpy.zeros_like(x)), "sum": phlox.new_ref(np.float32(0.0))}
        specs = {"ref": phlox.P("x"), "sum": phlox.P()}
        phlox.shard_map(write, mesh=mesh(phlox), in_specs=(specs, phlox.P("x")), out_specs=None)(refs, x)
        return (refs["ref"][...] * X).sum() + refs["sum"][...]

    for way in (lambda f: f, phlox.jit):
        np.testing.assert_allclose(way(f)(X), (2 * np.sin(X) * X).sum() + X.sum(), rtol=1e-5)
        np.testing.assert_allclose(way(phlox.grad(f))(X), 2 * np.cos(X) * X + 1, rtol=1e-5)
    ref = phlox.new_ref(X)
    with pytest.raises(ValueError, match="at both a and b"):
        phlox.shard_map(lambda a, b: None, mesh=mesh(phlox), in_specs=phlox.P("x"), out_specs=None)(ref, ref)


def test_axes_along_which_a_value_is_the_same():
    for m in (phlox, jax):
        seen = []

        def look(x, y, m=m, seen=seen):
            seen.extend(m.typeof(a).mat.invarying(m.sharding.get_abstract_mesh()) for a in (x, y, x.sum()))
            return x

        m.shard_map(look, mesh=mesh(m), in_specs=(m.P("x"), m.P()), out_specs=m.P("x"))(X, X)
        assert seen == [{"y"}, {"x", "y"}, {"y"}]
        assert m.typeof(m.numpy.ones(2)).mat.invarying(mesh(m)) == frozenset()


def test_arrays_like_one_that_varies():
    for m in (phlox, jax):
        seen = []

        def look(x, m=m, seen=seen):
            struct = m.eval_shape(lambda x: x, x)
            likes = [m.lax.full_like, m.numpy.full_like, lambda x, _, **options: m.numpy.zeros_like(x, **options)]
            made = [like(a, 1, **options) for like in likes for a in (x, struct) for options in ({}, {"shape": (3,)})]
            seen.extend(m.typeof(a).mat.varying for a in (*made, m.numpy.zeros(3)))
            return x

        f = m.shard_map(look, mesh=mesh(m), in_specs=m.P("x"), out_specs=m.P("x"))
        f(X)
        m.jit(f)(X)
        assert seen == 2 * ([{"x"}] * 12 + [frozenset()])


@pytest.mark.parametrize("collective", ["all_gather", "psum", "ppermute", "psum_scatter", "all_to_all"])
def test_equal_collectives_are_merged_by_the_compiler(collective):
    """A backward pass that gathers again what the forward pass gathered needs one transfer, unless there is a barrier."""

    def exchanged(m, x):
        operations = {
            "all_gather": lambda: m.lax.all_gather(x, "x", tiled=True),
            "psum": lambda: m.lax.psum(x, "x"),
            "ppermute": lambda: m.lax.ppermute(x, "x", [(0, 1), (1, 0)]),
            "psum_scatter": lambda: m.lax.psum_scatter(x, "x", tiled=True),
            "all_to_all": lambda: m.lax.all_to_all(x, "x", 0, 0, tiled=True),
        }
        return operations[collective]()

    counts = []
    for m in (phlox, jax):
        mesh = m.make_mesh((2,), ("x",), axis_types=(m.sharding.AxisType.Auto,))
        spec = m.sharding.PartitionSpec("x")
        twice = lambda x, m=m: (exchanged(m, x) ** 2).sum(0, keepdims=True) + exchanged(m, x).sum(0, keepdims=True)
        f = m.jit(m.shard_map(twice, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
        text = f.lower(m.numpy.ones((8, 3))).compile().as_text()
        counts.append(len(re.findall(r" (?:all|collective|reduce)-[a-z-]+\(", text)))
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize("devices", [1, 2])
def test_constants_are_results(devices):
    results = []
    for m in (phlox, jax):
        mesh = m.make_mesh((devices,), ("x",), axis_types=(m.sharding.AxisType.Auto,))
        spec = m.sharding.PartitionSpec()
        constants = lambda x, m=m: (1, 2.5, m.numpy.arange(3), x, m.lax.psum(1, "x"))
        f = m.shard_map(constants, mesh=mesh, in_specs=spec, out_specs=spec)
        results.append([np.asarray(x).tolist() for x in m.jit(f)(m.numpy.ones(2))])
    assert results[0] == results[1]


def test_an_argument_over_another_mesh_than_the_abstract_one_is_refused():
    for m in (phlox, jax):
        x = m.device_put(X, m.NamedSharding(m.make_mesh((8,), ("z",)), m.P("z")))
        f = m.shard_map(lambda x: x, mesh=mesh(m).abstract_mesh, in_specs=m.P("x"), out_specs=m.P("x"))
        with pytest.raises(ValueError, match="does not match the mesh shape passed to"):
            f(x)
        assert f(m.device_put(X, m.NamedSharding(mesh(m), m.P()))).sharding == m.NamedSharding(mesh(m), m.P("x"))


def test_results_that_are_not_used_are_not_computed():
    def results(x, y):
        return phlox.numpy.sin(x), phlox.lax.psum(y, "x")

    f = phlox.shard_map(results, mesh=mesh(phlox), in_specs=phlox.P("x"), out_specs=(phlox.P("x"), phlox.P()))
    text = phlox.jit(lambda x, y: f(x, y)[0]).lower(X, X).as_text()
    assert "sine" in text and "all_reduce" not in text
    np.testing.assert_allclose(phlox.jit(lambda x, y: f(x, y)[1])(X, X), X.reshape(4, 2, 2).sum(0), rtol=1e-6)
