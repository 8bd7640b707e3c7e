"""References and views of them as arguments of functions that jax records or maps: as in jax, on eight devices."""

import jax
import jax.numpy
import numpy as np
import pytest

import phlox
import phlox.ref

X = np.array([0.5, 1.5, 2.5], np.float32)
ROWS = np.arange(16, dtype=np.float32).reshape(8, 2)


def agree(case):
    mine, theirs = (jax.tree.leaves(case(m)) for m in (phlox, jax))
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


# --- Jaxprs ---------------------------------------------------------------------------------------------


def recorded(m):
    """The Jaxpr of a function of references runs with other references."""

    def f(tree, x, n):
        tree["a"][...] += x
        n[...] += 1
        return tree["a"][0] + x

    unused = m.new_ref(ROWS)
    description = m.ShapeDtypeStruct((), "int32", is_ref=True)
    closed = m.make_jaxpr(f)({"a": m.new_ref(X), "b": unused}, 2.0, description)
    a, n = m.new_ref(2 * X), m.new_ref(np.int32(5))

    def run(a, n, x):
        return m.core.eval_jaxpr(closed.jaxpr, closed.consts, a, unused, x, n)

    eager = run(a, n, 3.0), a[...], n[...]
    assert [str(aval).lstrip("~") for aval in closed.in_avals] == [
        "Ref{float32[3]}", "Ref{float32[8,2]}", "float32[]", "Ref{int32[]}",
    ]  # fmt: skip
    assert closed.effects
    assert "a:Ref{f32[3]} b:Ref{f32[8,2]} c:f32[] d:Ref{i32[]}" in str(closed)
    return eager, m.jit(run)(a, n, 4.0), a[...], n[...]


def recorded_calls(m):
    """Compiled functions and loops in the recorded one take its references."""

    def f(r):
        m.jit(lambda s: m.ref.addupdate(s, 0, 1.0))(r)
        return m.lax.scan(lambda c, _: (c + r[1], r.__setitem__(2, c)), 0.0, length=3)[0]

    r = m.new_ref(X)
    closed = m.make_jaxpr(f)(m.new_ref(X))
    return m.core.eval_jaxpr(closed.jaxpr, closed.consts, r), r[...]


@pytest.mark.parametrize("case", [recorded, recorded_calls], ids=lambda f: f.__name__)
def test_jaxprs(case):
    agree(case)


# --- views ----------------------------------------------------------------------------------------------


def once(m, f):
    mesh = m.make_mesh((1,), ("x",), axis_types=(m.sharding.AxisType.Explicit,))
    return m.shard_map(f, mesh=mesh, out_specs=m.P())


PASSED = {
    "jit": lambda m, f: m.jit(f),
    "remat": lambda m, f: m.checkpoint(f),
    "cond": lambda m, f: lambda *args: m.lax.cond(m.numpy.array(True), f, f, *args),
    "shard_map": once,
    "closed over": lambda m, f: lambda *args: m.lax.scan(lambda c, _: (f(*args), None), X[0], length=1)[0],
}


@pytest.mark.parametrize("transform", PASSED)
def test_views(transform):
    def case(m):
        @m.jit
        def run(x, i):
            r = m.new_ref(x)

            def f(part):
                part[...] = part[...] * 10 + m.numpy.ones_like(part)
                return part[0]

            out = [PASSED[transform](m, f)(v) for v in (r.at[1:7:2].at[1:, 0], r.at[i], r.at[m.ds(i, 2)].at[:, 1])]
            return out, r[...]

        return run(ROWS, 3)

    agree(case)


def test_a_view_is_compiled_once_for_an_index():
    calls = []

    @phlox.jit
    def double(view):
        calls.append(view.shape)
        view[...] *= 2

    r = phlox.new_ref(ROWS)
    for index in (slice(1, 3), slice(1, 3), slice(3, 5), np.array([0, 7]), np.array([1, 2])):
        double(r.at[index])
    assert calls == [(2, 2)] * 3
    expected = ROWS * np.array([2, 8, 8, 2, 2, 1, 1, 2], np.float32)[:, None]
    np.testing.assert_array_equal(r[...], expected)


def test_views_are_not_mapped():
    for m in (phlox, jax):
        with pytest.raises(TypeError, match="TransformedRefs are not allowed"):
            m.jit(lambda m=m: m.vmap(lambda v: v[...])(m.new_ref(ROWS).at[1:5]))()
    with pytest.raises(phlox.errors.ArgumentError, match="TransformedRefs are not allowed"):
        phlox.lax.scan(lambda c, v: (c, v[...]), 0.0, phlox.new_ref(ROWS).at[1:5])


# --- shard_map ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_shard_map(kind):
    def case(m):
        mesh = m.make_mesh((8,), ("x",), axis_types=(getattr(m.sharding.AxisType, kind),))
        split, whole = (m.sharding.NamedSharding(mesh, spec) for spec in (m.P("x"), m.P()))
        rows, same = m.new_ref(m.device_put(ROWS, split)), m.new_ref(m.device_put(X, whole))

        def f(refs, x):
            refs["rows"][...] = refs["rows"][...] * 2 + m.lax.axis_index("x") + x
            refs["same"][0] += m.lax.psum(x[0], "x")
            return refs["rows"][...].sum(1)

        specs = ({"rows": m.P("x"), "same": m.P()}, m.P("x"))
        run = m.jit(m.shard_map(f, mesh=mesh, in_specs=specs, out_specs=m.P("x")))
        args = {"rows": rows, "same": same}, m.device_put(ROWS[:, 0], split)
        out = run(*args), run(*args), rows[...], same[...]
        assert rows.sharding.is_equivalent_to(split, 2)
        return out

    agree(case)


def test_shard_map_of_references_that_differ_between_devices():
    mesh = phlox.make_mesh((8,), ("x",))
    r = phlox.new_ref(X)
    with pytest.raises(phlox.errors.PhloxError, match=r"P\(\)"):
        phlox.shard_map(
            lambda r: r.__setitem__(0, phlox.lax.axis_index("x") * 1.0), mesh=mesh, in_specs=phlox.P(), out_specs=None
        )(r)
    with pytest.raises(phlox.errors.RefError, match="passed twice"):
        phlox.shard_map(lambda a, b: None, mesh=mesh, in_specs=phlox.P(), out_specs=None)(r, r)
