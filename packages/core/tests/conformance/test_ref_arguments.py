"""References and views as arguments of functions that are recorded, mapped and differentiated, on eight devices."""

import functools

import jax
import jax.numpy
import numpy as np
import pytest

import phlox
import phlox.ref

X = np.array([0.5, 1.5, 2.5], np.float32)
ROWS = np.arange(16, dtype=np.float32).reshape(8, 2)


def agree(case, dtypes=True):
    mine, theirs = (jax.tree.leaves(case(m)) for m in (phlox, jax))
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert not dtypes or np.asarray(a).dtype == np.asarray(b).dtype
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


@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="jax 0.10.2 does not write views of another shape")
def test_views_of_another_shape():
    def case(m):
        @m.jit
        def run(x):
            r = m.new_ref(x)
            view = r.at[1:7].reshape(4, -1)
            view[1:3, 0] = view[0, :2]
            view.at[3].reshape((3, 1))[2, 0] += 5
            r.reshape(-1)[0] = 100.0
            return np.asarray(view.shape), view[...], m.jit(lambda v: v[...] * 2)(view), r[...]

        return run(ROWS)

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


# --- indices out of bounds ------------------------------------------------------------------------------

INDICES = {
    "large": (9,), "negative": (-9,), "from the end": (-1,), "column": (1, 5), "both": (9, -9),
    "array": (np.array([0, 9]),), "array and slice": (np.array([0, -9]), slice(0, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", INDICES)
def test_indices_out_of_bounds(name):
    def case(m):
        @m.jit
        def run(r, arrays):
            index = (*arrays, *[x for x in INDICES[name] if isinstance(x, slice)])
            before = r[index]
            r[index] = before * 0 - 1
            m.ref.addupdate(r, index, before * 0 + 100)
            return before, r[...], m.ref.swap(r, index, before * 0 + 7), r[...]

        return run(m.new_ref(ROWS), [np.asarray(x) for x in INDICES[name] if not isinstance(x, slice)])

    agree(case)


@pytest.mark.parametrize("start", [7, -1, -9])
def test_windows_out_of_bounds(start):
    def case(m):
        @m.jit
        def run(r, start):
            window = r[m.ds(start, 2)]
            r[m.ds(start, 2)] = window * 10
            view = r.at[m.ds(start, 2)]
            view[0] = view[1] + 0.5
            return window, r[...]

        return run(m.new_ref(ROWS), start)

    agree(case)


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
    with pytest.raises(phlox.errors.RefError, match="appeared at both a and b"):
        phlox.shard_map(lambda a, b: None, mesh=mesh, in_specs=phlox.P(), out_specs=None)(r, r)


# --- derivatives ----------------------------------------------------------------------------------------


def scaled(r, x):
    r[...] = r[...] * x
    return (r[...] ** 2).sum()


def read_only(m):
    return lambda x, r: m.numpy.sum(m.numpy.sin(r[...]) * x)


def forward(m):
    r, t, s, u = m.new_ref(X), m.new_ref(2 * X), m.new_ref(X), m.new_ref(X)
    out = m.jvp(scaled, (r, 2.0), (t, 1.0))
    aux = m.jvp(lambda x, r: (r["a"][0] * x, x + 1), (3.0, {"a": s}), (1.0, {"a": u}), has_aux=True)
    return out, r[...], t[...], aux, m.jit(lambda r, t: m.jvp(scaled, (r, 3.0), (t, 0.5)))(r, t), r[...], t[...]


def linear(m):
    r, t = m.new_ref(X), m.new_ref(2 * X)
    out, tangent = m.linearize(read_only(m), 3.0, r)
    return out, tangent(1.0, t), tangent(0.5, t), t[...]


def forward_only_in_jax_0_12(m):
    r, t = m.new_ref(X), m.new_ref(2 * X)
    out, tangent = m.linearize(scaled, r, 2.0)
    return out, r[...], tangent(t, 1.0), t[...]


def backward(m):
    r, collected, other = m.new_ref(X), m.new_ref(np.ones(3, np.float32)), m.new_ref(X * 0)
    out, pullback = m.vjp(scaled, r, 2.0)
    found = pullback.with_refs(collected, m.ad.GradValue())(1.0)
    assert found[0] == m.ad.GradRef()
    _, second = m.vjp(lambda t: read_only(m)(t["x"], t["r"]), {"x": 2.0, "r": r})
    (answer,) = second.with_refs({"x": m.ad.DontWant(), "r": other})(2.0)
    assert answer == {"x": m.ad.DidntWant(), "r": m.ad.GradRef()}
    (answer,) = second.with_refs({"x": m.ad.GradValue(), "r": other})(1.0)

    @m.jit
    def step(r, g):
        value, pullback = m.vjp(lambda r: m.numpy.sum(m.numpy.cos(r[...])), r)
        pullback.with_refs(g)(1.0)
        return value

    return out, found[1], collected[...], answer["x"], other[...], step(r, collected), collected[...], r[...]


def logged(m):
    square = m.custom_vjp(lambda x: x**2)
    square.defvjp_with_logs(lambda x: (x**2, x), lambda x, ct: ((2 * x * ct,), {"ct": ct}))
    _, pullback = m.vjp(lambda x, y: square(x) * y, 3.0, 2.0)
    (ct, other), logs = pullback.with_logs.with_refs(m.ad.GradValue(), m.ad.DontWant())(1.0)
    assert other == m.ad.DidntWant()
    return ct, logs, pullback.with_logs(1.0)


def nothing_returned(m):
    r, collected = m.new_ref(X), m.new_ref(np.ones(3, np.float32))
    out, pullback = m.vjp(lambda r, x: r.__setitem__(..., r[...] * x), r, 2.0)
    return out, pullback.with_refs(collected, m.ad.GradValue())(None)[1], collected[...], r[...]


@pytest.mark.parametrize(
    "case", [forward, linear, forward_only_in_jax_0_12, backward, logged, nothing_returned], ids=lambda f: f.__name__
)
def test_derivatives(case):
    if case in (forward_only_in_jax_0_12, backward, logged, nothing_returned) and jax.__version_info__ < (0, 12):
        pytest.skip("jax 0.10.2 has no derivatives of these")
    agree(case)


def test_derivatives_that_are_refused():
    r = phlox.new_ref(X)
    _, pullback = phlox.vjp(scaled, r, 2.0)
    with pytest.raises(
        phlox.errors.RefError, match="Ref-typed, so its gradient must be accumulated into a ref"
    ) as caught:
        pullback(1.0)
    assert "with_refs" in caught.value.instead
    with pytest.raises(phlox.errors.RefError, match="can't be returned as a value, got GradValue"):
        pullback.with_refs(phlox.ad.GradValue(), phlox.ad.GradValue())
    with pytest.raises(
        phlox.errors.TreeError, match="unexpected tree structure in the arguments to a VJP function's `with"
    ):
        pullback.with_refs(r)
    with pytest.raises(phlox.errors.RefError, match="unexpected JAX type for a gradient ref"):
        pullback.with_refs(r, phlox.new_ref(X))(1.0)
    with pytest.raises(phlox.errors.RefError, match="tangent of a reference"):
        phlox.jvp(scaled, (r, 2.0), (X, 1.0))
    with pytest.raises(TypeError):
        phlox.grad(scaled)(r, 2.0)


# --- functions with rules -------------------------------------------------------------------------------


def times(m):
    """(r, x) -> r[...] * x, whose rule reads the reference, and has gradients of both that are ten times too large."""
    f = m.custom_vjp(lambda r, x: r[...] * x)
    f.defvjp(lambda r, x: (r[...] * x, (r[...], x)), lambda kept, ct: (10 * ct * kept[1], 10 * ct * kept[0]))
    return f


def read_at_the_call(m, x, jit):
    r, f = m.new_ref(x), times(m)

    def run(r, x):
        r[...] = x * 0 + 5
        out = f(r, x)
        r[...] = x * 0 + 7
        return out

    return m.grad(jit(lambda x: run(r, m.lax.stop_gradient(x)) * x))(x), r[...]


def made_inside(m, x, jit):
    f = times(m)

    def run(x):
        r = m.new_ref(x * 3)
        out = f(r, x)
        r[...] = m.numpy.sin(x)
        return f(r, out) + r[...]

    return m.value_and_grad(jit(run))(x), m.vmap(m.grad(jit(run)))(X)


def not_differentiated(m, x, jit):
    f = times(m)
    return m.grad(jit(lambda x: x * f(m.new_ref(3.0), 4.0)))(x)


def in_loops(m, x, jit):
    f, r = times(m), m.new_ref(x)

    def turn(c, _):
        r[...] += 1
        return f(r, c), r[...]

    return m.grad(jit(lambda x: m.lax.scan(turn, x, None, length=3)[0]))(x), r[...]


def closed_over(m, x, jit):
    """The rule calls the function, reads one reference and writes another, which no argument names."""
    scale, largest = m.new_ref(np.float32(3)), m.new_ref(np.float32(0))
    f = m.custom_vjp(lambda x: scale[...] * x)

    def rule(x):
        largest[...] = m.numpy.maximum(largest[...], x)
        return f(x), scale[...]

    def backward(value, ct):
        largest[...] += ct
        return (10 * ct * value,)

    f.defvjp(rule, backward)
    return m.value_and_grad(jit(f))(x), scale[...], largest[...]


def written_by_the_function(m, x, jit):
    """A counter and a key, as layers have them, and a maximum that only the rule writes."""

    def draw(count, key, largest, x):
        count[...] += 1
        key[...], mine = m.random.split(key[...])
        return x * m.random.uniform(mine) * count[...]

    def rule(count, key, largest, x):
        largest[...] = m.numpy.maximum(largest[...], x)
        out = draw(count, key, largest, x)
        return out, (largest, largest[...])

    def backward(kept, ct):
        largest, value = kept
        largest[...] += ct
        return None, None, None, ct * value

    f = m.custom_vjp(draw)
    f.defvjp(rule, backward)
    refs = m.new_ref(np.int32(0)), m.new_ref(m.random.key(1)), m.new_ref(np.float32(0))
    step = jit(lambda *args: f(*args[:3], f(*args)))
    out, gradient = step(*refs, x), m.grad(step, 3)(*refs, x)
    return out, gradient, refs[0][...], m.random.key_data(refs[1][...]), refs[2][...]


def mapped_before_the_rule_runs(m, x, jit):
    """The rule adds to the example of the reference that it got, also in programs inside of the mapped function."""

    def backward(kept, ct):
        r, x = kept
        r[...] += ct * x
        return None, ct * m.numpy.cos(x)

    f = m.custom_vjp(lambda r, x: m.numpy.sin(x))
    f.defvjp(lambda r, x: (m.numpy.sin(x), (r, x)), backward)
    r, rows = m.new_ref(X * 0), m.new_ref(np.zeros((2, 3), np.float32))

    def turns(r, x):
        return m.lax.scan(lambda c, _: (m.checkpoint(f)(r, jit(f)(r, c)), None), x, None, length=2)[0]

    def both(x):
        return m.vmap(turns)(r, x).sum() + m.vmap(m.vmap(f), (0, None))(rows, x).sum()

    return m.grad(jit(both))(X * x), r[...], rows[...]


def trees_and_flags(m, x, jit):
    seen = []

    def rule(h, tree, x):
        seen.append((tree["r"].perturbed, tree["b"].perturbed))
        r, b, x = tree["r"].value, tree["b"].value, x.value
        return h(x) * r[...] * b, r[...] * b

    def backward(h, kept, ct):
        return None, 10 * ct * kept

    f = functools.partial(m.custom_vjp, nondiff_argnums=(0,))(lambda h, tree, x: h(x) * tree["r"][...] * tree["b"])
    f.defvjp(rule, backward, symbolic_zeros=True)
    r = m.new_ref(x)
    gradient = m.grad(jit(lambda x: f(m.numpy.sin, {"r": r, "b": 2.0}, x)))(x)
    return gradient, [flag for _, flag in seen][-1]


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(
    "case",
    [
        read_at_the_call,
        closed_over,
        made_inside,
        not_differentiated,
        in_loops,
        written_by_the_function,
        mapped_before_the_rule_runs,
        trees_and_flags,
    ],
    ids=lambda f: f.__name__,
)
def test_rules_use_references(case, jitted):
    agree(lambda m: case(m, np.float32(2), m.jit if jitted else lambda f: f), dtypes=False)


@pytest.mark.parametrize("loop", ["scan", "fori_loop", "jit", "checkpoint"])
def test_rules_read_what_programs_have_written(loop):
    """The values of the same program in Python; jax reads those of the start."""
    scale = phlox.new_ref(3.0)
    f = phlox.custom_vjp(lambda x: scale[...] * x)
    f.defvjp(lambda x: (f(x), scale[...]), lambda value, ct: (10 * ct * value,))

    def body(x):
        scale[...] += 1.0
        x = f(x)
        scale[...] *= 2.0
        return x

    def run(x):
        scale[...] = 3.0
        if loop == "scan":
            return phlox.lax.scan(lambda c, _: (body(c), None), x, None, length=2)[0]
        if loop == "fori_loop":
            return phlox.lax.fori_loop(0, 2, lambda i, c: body(c), x)
        transform = getattr(phlox, loop)
        return transform(lambda x: body(transform(body)(x)))(x)

    for transform in (lambda f: f, phlox.jit):
        assert transform(phlox.value_and_grad(run))(2.0) == (72, 3600)
        assert scale[...] == 18


def test_rules_use_views():
    """jax refuses views here."""
    r, f = phlox.new_ref(X), phlox.custom_vjp(lambda r, x: r[...] * x)
    f.defvjp(lambda r, x: (r[...] * x, r[...]), lambda value, ct: (None, 10 * ct * value))
    for transform in (lambda f: f, phlox.jit):
        assert phlox.grad(transform(lambda x: f(r.at[1], x)))(2.0) == 15


def test_rules_with_references_that_are_refused():
    calls = []

    def rule(r, x):
        if calls.append(None) or len(calls) > 1:
            r[...] = x
        return x, None

    f = phlox.custom_vjp(lambda r, x: x)
    f.defvjp(rule, lambda _, ct: (None, ct))
    with pytest.raises(phlox.errors.RefError, match="for some derivatives only"):
        phlox.grad(phlox.jit(f), 1)(phlox.new_ref(0.0), 1.0)

    def made_inside(x):
        r = phlox.new_ref(x)
        g = phlox.custom_vjp(lambda x: r[...] * x)
        g.defvjp(lambda x: (g(x), r[...]), lambda value, ct: (ct * value,))
        return g(x)

    with pytest.raises(phlox.errors.UnexpectedTracerError, match="closes over a value that is being differentiated"):
        phlox.grad(phlox.jit(made_inside))(1.0)
    with pytest.raises(phlox.errors.RefError, match="appeared at both"):
        phlox.grad(lambda x: (lambda r: times(phlox)(r, r))(phlox.new_ref(x)))(1.0)


# --- errors ---------------------------------------------------------------------------------------------


def refusals(m):
    """Uses of references that are refused, and words that the errors of both have."""
    r, rows = m.new_ref(np.float32(0)), m.new_ref(ROWS)
    primal = m.custom_vjp(lambda ref: ref)
    primal.defvjp(lambda ref: (ref, None), lambda _, g: (g,))

    def both(first, second):
        return None

    def write(v):
        r[...] += v

    return {
        "appeared at both first and second": lambda: m.jit(both)(r, r),
        "for cond.*at both first and second": lambda: m.lax.cond(True, both, both, r, r),
        "only one reference to a mutable array may be passed as an argument": lambda: m.vmap(both)(rows, rows),
        "closed over and passed as the argument other": lambda: m.jit(lambda other: r[...] + other[...])(r),
        "traced for jit returned a mutable array reference(?s:.*)passed in as the argument x": lambda: m.jit(
            lambda x: {"hi": x}
        )(r),
        "traced for jit returned a mutable array reference.*\n\n.*was created on line": lambda: m.jit(m.new_ref)(ROWS),
        r"tree path result\['hi'\]": lambda: m.jit(lambda: {"hi": r})(),
        "traced for scan returned a mutable array reference of type": lambda: m.lax.scan(
            lambda c, x: (m.new_ref(c), x), 0, ROWS
        ),
        "traced for cond returned a mutable array reference of type": lambda: m.lax.cond(
            True, lambda: m.new_ref(1.0), lambda: m.new_ref(2.0)
        ),
        "custom_vjp primal function": lambda: m.jit(primal)(r),
        "unbatched array reference": lambda: m.vmap(write)(X),
        "Move the array reference": lambda: m.jvp(write, (np.float32(1),), (np.float32(1),)),
    }


@pytest.mark.parametrize("words", refusals(phlox))
def test_refusals(words):
    for m in (phlox, jax):
        call = refusals(m)[words]
        if m is jax and jax.__version_info__ < (0, 12):  # which has some of these words
            with pytest.raises(Exception):  # noqa: B017
                call()
            continue
        with pytest.raises(Exception, match=words) as caught:
            call()
        assert m is jax or isinstance(caught.value, ValueError)
