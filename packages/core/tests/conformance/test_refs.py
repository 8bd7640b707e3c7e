"""References do what jax's do: written eagerly, in compiled functions, loops and branches, and under transformations."""

import functools

import jax
import jax.numpy
import numpy as np
import pytest

import judge
import phlox
import phlox.ref

X = np.array([0.5, 1.5, 2.5], np.float32)
N = np.arange(6, dtype=np.int32)
BATCH = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def writes(m):
    """Every way to write and read."""
    r = m.new_ref(X)
    r[0] = 7.0
    r[1] += 1
    r[-1] *= 2.0
    before = m.ref.swap(r, 0, 3.0)
    m.ref.set(r, slice(0, 2), X[:2])
    m.ref.addupdate(r, 2, 1.0)
    r.addupdate(X)
    r.addupdate(1.0, 1)
    r[m.numpy.array([0, 2])] = X[:2]
    r[m.ds(1, 2)] = X[1:] * 3
    return before, r[...], r[1], r[-4], r[::2], r[m.numpy.array([2, 0])], m.ref.get(r, 0), m.ref.get(r), m.freeze(r)


def types_of_references(m):
    """Functions of shapes and dtypes take a reference for the array in it."""
    r = m.new_ref(BATCH)

    def shapes_and_dtypes(r):
        dtypes = m.numpy.result_type(r), m.numpy.result_type(r, "int8"), m.dtypes.result_type(r), m.lax.dtype(r)
        return (m.numpy.shape(r), m.numpy.ndim(r), m.lax.full_like(r, 2), m.numpy.ones_like(r)), dtypes

    arrays, dtypes = shapes_and_dtypes(r)
    assert all(dtype == np.float32 for dtype in dtypes)
    return arrays, m.jit(lambda r: shapes_and_dtypes(r)[0])(r)


def first_value_stays(m):
    x = m.numpy.asarray(X)
    r = m.new_ref(x)
    r[0] = 9.0
    return x, r[...]


def numbers(m):
    r, i, b = m.new_ref(1.5), m.new_ref(3), m.new_ref(True)
    out = r[...], i[()], b[...]
    r[...] = 2.5
    i[...] += 4
    b[...] = False
    return out, (r[...] * 2, i[...], b[...])


def passed(m):
    @m.jit
    def step(r, x):
        r[...] += x
        r[0] *= 2.0
        return r[0] + x

    r = m.new_ref(X)
    return [step(r, k) for k in (1.0, 2.0, 3.0)], r[...]


def passed_in_trees(m):
    @m.jit
    def step(state, scale=2.0):
        state["a"][...] = state["a"][...] * scale + state["x"]
        state["b"][0] += 1
        return {"sum": state["a"][...].sum()}

    a, b = m.new_ref(X), m.new_ref(N)
    outs = [step({"a": a, "b": b, "x": X}), step({"a": a, "b": b, "x": X}, scale=3.0)]
    other = m.new_ref(X * 5)
    outs.append(step({"a": other, "b": b, "x": X}))
    return outs, a[...], b[...], other[...]


def closed_over(m):
    r, count = m.new_ref(X), m.new_ref(0)

    @m.jit
    def step(x):
        count[...] += 1
        r[...] = r[...] * x
        return r[1]

    outs = [step(2.0), step(3.0)]
    r[0] = 100.0
    return outs, step(0.5), r[...], count[...]


def closed_over_and_passed(m):
    r = m.new_ref(X)

    @m.jit
    def step(other):
        r[0] += other[0]
        other[1] = r[1]

    s, t = m.new_ref(X * 2), m.new_ref(X * 3)
    step(s), step(t), step(s)
    return r[...], s[...], t[...]


def static_arguments(m):
    step = m.jit(lambda r, n: r.__setitem__(n, r[n] * n), static_argnums=1)
    r = m.new_ref(X)
    step(r, 1), step(r, 2), step(r, 2)
    return r[...]


def jit_in_jit(m):
    r = m.new_ref(X)

    @m.jit
    def inner(s, x):
        s[0] += x
        r[1] += s[0]
        return s[1]

    @m.jit
    def outer(x):
        s = m.new_ref(x)
        a = inner(s, 1.0)
        b = inner(s, a)
        return m.freeze(s), b, r[...]

    return outer(X), outer(X * 2), r[...]


def made_inside(m):
    def f(x):
        r = m.new_ref(m.numpy.zeros_like(x))
        for k in range(3):
            r[k] = x[k] * k
        return m.freeze(r)

    return f(X), m.jit(f)(X)


def loops(m):
    r, s = m.new_ref(X), m.new_ref(N)

    def turn(i, c):
        r[0] += c
        s[i] += i
        return c * 1.5

    def step(c, x):
        r[1] += x * c
        s[m.numpy.int32(c) % 2] += 10
        return c + 1, r[1]

    a = m.lax.fori_loop(0, 4, turn, 1.0)
    b = m.lax.scan(step, 0.0, X)
    c = m.lax.fori_loop(0, m.numpy.asarray(3), turn, 2.0)
    d = m.jit(lambda x: m.lax.scan(step, 0.0, x, reverse=True))(X)
    return a, b, c, d, r[...], s[...]


def while_loops(m):
    r = m.new_ref(X)

    def turn(c):
        r[0] = r[0] * 2
        return c + 1

    f = lambda n: m.lax.while_loop(lambda c: c < n, turn, 0)
    return f(3), r[...], m.jit(f)(4), r[...]


def scanned(m):
    rows, sums = m.new_ref(m.numpy.asarray(BATCH)), m.new_ref(m.numpy.zeros(2))

    def step(c, xs):
        row, total, k = xs
        row[0] = row[0] + c
        total[...] = row[...].sum() * k
        return c + 1, row[1]

    return m.lax.scan(step, 1.0, (rows, sums, np.arange(2.0, dtype=np.float32))), rows[...], sums[...]


def branches(m):
    r, s = m.new_ref(X), m.new_ref(X * 2)

    def yes(x):
        r[0] = x
        return 1

    def no(x):
        s[1] += x
        return 2

    outs = [m.lax.cond(p, yes, no, 5.0) for p in (True, False)]
    outs += [m.jit(lambda p: m.lax.cond(p, yes, no, 7.0))(p) for p in (True, False)]
    outs.append(m.lax.switch(1, [lambda a: a[0], lambda a: a[1] * 2], r))
    outs.append(m.jit(lambda i, a: m.lax.switch(i, [lambda b: b[0], lambda b: b[1] * 2], a))(0, s))
    return outs, r[...], s[...]


def nested(m):
    total = m.new_ref(m.numpy.zeros(3))

    def step(i, _):
        def inner(c, x):
            total[i % 3] += m.lax.cond(x > 1, lambda: x + total[0], lambda: c)
            return c + x, None

        m.lax.scan(inner, 0.0, X)

    m.jit(lambda: m.lax.fori_loop(0, 5, step, None))()
    return total[...]


def summed(m, x, branch=False):
    """The loss of a program that uses references inside alone."""
    total, row = m.new_ref(m.numpy.zeros(())), m.new_ref(x * 2)

    def step(c, a):
        total[...] += a * c * row[0]
        row[1] = row[1] * a
        return c * 1.5, None

    m.lax.scan(step, 1.0, x)
    if branch:
        m.lax.cond(x[0] > 0, lambda: total.addupdate(x[2] ** 2), lambda: None)
    return total[...] + (m.freeze(row) ** 2).sum()


def derivatives(m):
    f = lambda x: summed(m, x, branch=True)
    return (
        f(X),
        m.grad(f)(X),
        m.jit(m.grad(f))(X),
        m.grad(m.jit(f))(X),
        m.jvp(f, (X,), (X,)),
        m.linearize(f, X)[1](X),
    )


def batches(m):
    f = lambda x: summed(m, x)
    return (
        m.vmap(f)(BATCH),
        m.vmap(m.grad(f))(BATCH),
        m.jit(m.vmap(f))(BATCH),
        m.grad(lambda x: m.vmap(f)(x).sum())(BATCH),
    )


def batches_of_references(m):
    rows, shared = m.new_ref(BATCH), m.new_ref(X)

    def f(row, x):
        row[0] += x
        row[...] = row[...] * shared[1]
        return row[1] + x

    a = m.vmap(f)(rows, X[:2])
    b = m.jit(m.vmap(f))(rows, X[:2])
    columns = m.new_ref(BATCH.T)
    c = m.vmap(f, in_axes=(1, None), out_axes=0)(columns, 2.0)
    d = m.vmap(lambda r, x: r[0] + x, in_axes=(None, 0))(shared, X)
    return a, b, c, d, rows[...], columns[...]


def beside_derivatives(m):
    log = m.new_ref(m.numpy.zeros(3))

    def loss(x, r):
        log[...] = m.lax.stop_gradient(x) * 2
        return (r[...] * x**2).sum()

    r = m.new_ref(X)
    return m.grad(loss)(X, r), m.jit(m.value_and_grad(loss))(X + 1, r), log[...]


def read_in_vmap(m):
    r = m.new_ref(X)
    return m.vmap(lambda x: r[0] + x)(X), m.vmap(lambda x: r[m.numpy.int32(x)])(X)


def rematerialized(m):
    r = m.new_ref(X)
    return m.checkpoint(lambda x: r[1] * x)(2.0), m.grad(m.checkpoint(lambda x: m.numpy.sin(r[1] * x)))(2.0)


def written_in_checkpoint(m):
    r, passed = m.new_ref(np.float32(0)), m.new_ref(np.float32(0))
    m.checkpoint(lambda: r.__setitem__(..., 1.0))()
    m.grad(m.checkpoint(lambda x: (passed.__setitem__(..., 2.0), x)[1]))(1.0)
    assert [repr(x) for x in (r, passed)] == ["Ref(1., dtype=float32)", "Ref(2., dtype=float32)"]
    return [(x[...], isinstance(x[...], m.Array)) for x in (r, passed)]


def integers_of_other_dtypes(m):
    def write(small, flags, x):
        old = m.ref.swap(small, 0, x[1])
        small[1:] = x[1:]
        flags[...] = (x > 0) | flags[...]
        return old

    refs = m.new_ref(np.arange(3, dtype=np.int8)), m.new_ref(np.zeros(3, bool))
    out = [way(write)(*refs, np.array([3, 300, 200], dtype)) for way in (lambda f: f, m.jit) for dtype in "iIh"]
    return out, refs[0][...], refs[1][...]


def added_at_repeated_indices(m):
    def add(r, i):
        m.ref.addupdate(r, i, np.array([1, 2, 4], np.float32))
        m.ref.addupdate(r, np.array([[0], [0]]), np.array([[1], [3]], np.float32))

    out = []
    for way in (lambda f: f, m.jit):
        r, rows = m.new_ref(X), m.new_ref(np.ones((3, 2), np.float32))
        way(add)(r, np.array([1, 1, -1]))
        way(lambda r: m.ref.addupdate(r, (np.array([0, 0]), slice(0, 1)), np.array([[1], [3]], np.float32)))(rows)
        out += [r[...], rows[...]]
    batch = m.new_ref(np.ones((2, 3), np.float32))
    m.vmap(lambda r, i: m.ref.addupdate(r, i, np.ones(2, np.float32)))(batch, np.array([[0, 0], [1, 2]]))
    return [*out, batch[...]]


def whole_values_written_under_vmap(m):
    r = m.new_ref(np.ones((2, 3), np.float32))
    m.vmap(lambda r, x: r.set(x))(r, np.zeros((2, 3), np.float32))
    return r[...], isinstance(r[...], m.Array)


def keys(m):
    r = m.new_ref(m.random.key(3))

    @m.jit
    def draw():
        r[...], sub = m.random.split(r[...])
        return m.random.normal(sub, (2,))

    return draw(), draw(), m.random.key_data(r[...])


def of_shapes(m):
    r = m.new_ref(X)
    return [
        np.zeros(a.shape, a.dtype)
        for a in (m.eval_shape(lambda s: s[1:], r), m.eval_shape(lambda: r[...] * 2), m.ref.freeze(r))
    ]


def emptied(m):
    f = m.jit(lambda: m.empty_ref(m.ShapeDtypeStruct((2,), "float32"))[...].shape)
    r = m.new_ref(X)
    return f(), m.free_ref(r), r[...]


def many_dtypes(m):
    found = []
    for dtype in judge.ALL:
        r = m.new_ref(judge.array(judge.rng(dtype), (4,), dtype))
        r[1] = r[0]
        m.jit(lambda s: s.__setitem__(2, s[3]))(r)
        found.append(r[...])
    return found


def gradients_in_references(m):
    f = lambda x, t: (m.numpy.sin(x) * t["a"] + t["b"]).sum()
    total = m.new_ref(m.numpy.zeros(3))

    @m.jit
    def step(x, total):
        out, pullback = m.vjp(f, x, {"a": x * 2, "b": x})
        found = pullback.with_refs(total, {"a": m.ad.GradValue(), "b": m.ad.DontWant()})(1.0)
        return out, found[1]["a"], found[0] == m.ad.GradRef(), found[1]["b"] == m.ad.DidntWant()

    return step(X, total), step(X * 2, total), total[...]


def views(m):
    """Parts of references; in 0.10.2 jax has them in functions that are traced."""

    @m.jit
    def step(r, i):
        part = r.at[1:]
        before = part[...], m.ref.get(r.at[0]), m.ref.swap(r.at[i], (), 7.0)
        part.set(before[0] * 10)
        r.at[0][...] = r.at[i][...] + 1
        m.ref.addupdate(r.at[2], (), 0.5)
        own = m.new_ref(r[...] * 3)
        own.at[m.numpy.array([0, 2]) + 0].set(before[0])
        own.at[::2].swap(part.get())
        alike = m.numpy.zeros_like(part), m.lax.full_like(r.at[0], 2), m.numpy.shape(own.at[::2])
        return before, part.get(), part.shape, alike, own[...], m.freeze(own)

    r = m.new_ref(X)
    return step(r, 1), step(r, 2), r[...]


PROGRAMS = [
    integers_of_other_dtypes, added_at_repeated_indices, whole_values_written_under_vmap,
    writes, types_of_references, first_value_stays, numbers, passed, passed_in_trees, closed_over, closed_over_and_passed, static_arguments,
    jit_in_jit, made_inside, loops, while_loops, scanned, branches, nested, derivatives, batches, batches_of_references,
    beside_derivatives, read_in_vmap, rematerialized, written_in_checkpoint, keys, of_shapes, emptied, many_dtypes, gradients_in_references, views,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_like_jax(program):
    mine, theirs = phlox.tree.flatten(program(phlox)), jax.tree.flatten(program(jax))
    assert str(mine[1]) == str(theirs[1])
    for a, b in zip(mine[0], theirs[0], strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(
            np.asarray(a).astype(complex), np.asarray(b).astype(complex), rtol=2e-5, atol=1e-6, err_msg=program.__name__
        )


def written(index, value):
    return lambda m: m.new_ref(X).__setitem__(index, value)


def twice(m):
    r = m.new_ref(X)
    return m.jit(lambda a, b: a[0] + b[0])(r, r)


def both(m):
    r = m.new_ref(X)
    return m.jit(lambda a: a[0] + r[0])(r)


def leaked(m):
    kept = []
    m.jit(lambda x: kept.append(m.new_ref(x)))(X)
    return kept[0][...]


def differentiated(m):
    r = m.new_ref(X)
    return m.grad(lambda x: (r.__setitem__(0, x), x)[1])(2.0)


def batched(m):
    r = m.new_ref(X)
    return m.vmap(lambda x: r.__setitem__(0, x))(X)


def with_rules(m, fun, fwd=lambda *args: (None, None)):
    f = m.custom_vjp(fun)
    f.defvjp(fwd, lambda res, ct: (ct, None))
    return f


REFUSED = {
    "returned by a function with rules": lambda m: with_rules(m, lambda r: r)(m.new_ref(X)),
    "passed twice to a function with rules": lambda m: (lambda r: with_rules(m, lambda a, b: a[0])(r, r))(m.new_ref(X)),
    "made by a forward rule": lambda m: m.vjp(
        with_rules(m, lambda x, r: x, lambda x, r: (x, m.new_ref(x))), 2.0, m.new_ref(X)
    ),
    "another shape": written(..., X[:2]),
    "no broadcasting": written(slice(None), 1.0),
    "another dtype": written(0, np.int32(1)),
    "an integer for a float": written(0, 1),
    "added in another dtype": lambda m: m.new_ref(np.int32(0)).addupdate(np.int8(1)),
    "outside": written(3, 1.0),
    "read outside": lambda m: m.new_ref(X)[3],
    "no array": lambda m: m.new_ref([1.0]),
    "passed twice": twice,
    "passed and closed over": both,
    "returned": lambda m: m.jit(lambda: m.new_ref(X))(),
    "returned argument": lambda m: m.jit(lambda r: r)(m.new_ref(X)),
    "carried": lambda m: m.lax.scan(lambda c, _: (c, None), m.new_ref(X), None, length=2),
    "added to": lambda m: m.new_ref(X) + 1,
    "leaked": leaked,
    "differentiated value": differentiated,
    "batched value": batched,
    "get of an array": lambda m: m.ref.get(m.numpy.asarray(X)),
    "len": lambda m: len(m.new_ref(1.0)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_like_jax(name):
    with pytest.raises(Exception) as theirs:
        REFUSED[name](jax)
    kind = theirs.type if theirs.type.__module__ == "builtins" else getattr(phlox.errors, theirs.type.__name__)
    with pytest.raises(kind):
        REFUSED[name](phlox)


def test_sums_at_repeated_elements_of_views():
    r = phlox.new_ref(np.zeros((2, 3), np.float32))
    phlox.ref.addupdate(r.at[:, np.array([0, 0, 1])], 1, np.array([1, 2, 4], np.float32))
    r.reshape(6).addupdate(np.array([5, 6], np.float32), np.array([0, 0]))
    phlox.ref.addupdate(r.at[np.array([0, 0])], (), np.ones((2, 3), np.float32))
    assert r[...].tolist() == [[13, 2, 2], [3, 4, 0]]


def test_views_of_views():
    r = phlox.new_ref(jax.numpy.arange(8.0).__array__())
    part = r.at[2:].at[1:4]
    assert (part.shape, part.dtype, part.ndim, part.size, len(part)) == ((3,), np.float32, 1, 3, 3)
    part[0] += 10.0
    part.at[1].set(-1.0)
    part.addupdate(100.0, 2)
    assert part.swap(0.5, 2) == 105.0
    assert r[...].tolist() == [0, 1, 2, 13, -1, 0.5, 6, 7]
    assert str(part).startswith("RefView(Ref{float32[3]}")
    for refused in (lambda: r.at[8], lambda: part.set(1.0), lambda: phlox.freeze(part), lambda: r.at[1.5]):
        with pytest.raises(phlox.errors.PhloxError):
            refused()


def used_after(free):
    def f(x):
        r = phlox.new_ref(x)
        free(r)
        return r[0]

    return f


@pytest.mark.parametrize("free", [phlox.freeze, phlox.ref.free_ref])
def test_references_that_were_given_up_are_not_used_in_traced_functions(free):
    with pytest.raises(phlox.errors.RefError, match=f"used after {free.__name__}"):
        phlox.jit(used_after(free))(X)
    assert used_after(free)(X) == X[0]
    assert phlox.vmap(used_after(free))(BATCH).tolist() == BATCH[:, 0].tolist()
    assert phlox.jit(lambda x: (phlox.freeze(r := phlox.new_ref(x)), phlox.freeze(r)))(X)[1].tolist() == X.tolist()


def test_what_a_reference_is():
    for m in (phlox, jax):
        r = m.new_ref(X)
        assert isinstance(r, m.Ref) and not isinstance(r, m.Array)
        assert (r.shape, r.dtype, r.ndim, r.size, len(r), r.committed) == ((3,), np.float32, 1, 3, 3, True)
        assert m.tree.leaves({"a": r}) == [r]
    for value, first in (X, X), (N, N), (np.float32(1), 1.0), (np.bool_(True), True):
        # A reference to a number has no weak type, as in 0.12.
        mine, theirs = phlox.new_ref(first), jax.new_ref(value)
        assert not mine[...].weak_type
        assert not mine.aval.weak_type
        assert repr(mine) == repr(theirs)
        assert str(mine.aval) == str(theirs.aval) == str(phlox.typeof(mine)) == str(jax.typeof(theirs))
    assert str(phlox.ref.AbstractRef(phlox.typeof(X))) == str(jax.ref.AbstractRef(jax.typeof(X)))


def test_stages_of_functions_with_references():
    outside = {m: m.new_ref(X) for m in (phlox, jax)}

    def results(m):
        def f(r, x, n=2.0):
            r[...] += x["a"] * n
            outside[m][0] += 1.0
            return r[0], {"x": x["a"]}

        step = m.jit(f)
        struct = m.ShapeDtypeStruct((3,), "float32", is_ref=True)
        x, found = {"a": X}, []
        for like in (m.new_ref(X), struct):
            r = m.new_ref(X)
            traced, lowered = step.trace(like, x), step.lower(like, x, n=3.0)
            assert [s.shape for s in m.tree.leaves(traced.out_info)] == [(), (3,)]
            found += [traced.lower().compile()(r, x), lowered.compile()(r, x, n=3.0), r[...]]
            if m is phlox:
                assert str(lowered.in_avals[0][0]) == "Ref{float32[3]}"
                with pytest.raises(phlox.errors.ShapeError, match="Ref"):
                    lowered.compile()(X, x, n=3.0)
                (place, *_), _ = lowered.compile().input_shardings
                assert place == r.sharding
                assert [s.sharding for s in m.tree.leaves(lowered.compile().out_info)] == [place, place]
        shape = m.eval_shape(f, struct, x)
        assert (shape[0].shape, shape[1]["x"].shape) == ((), (3,))
        return found, outside[m][...]

    mine, theirs = (jax.tree.leaves(results(m)) for m in (phlox, jax))
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b))


def test_shardings_that_are_not_given():
    for m in (phlox, jax):
        r = m.new_ref(X)

        def double(r):
            r[...] = r[...] * 2

        m.jit(double, in_shardings=(None,), out_shardings=None)(r)
        np.testing.assert_array_equal(r[...], 2 * X)
    assert str(phlox.core.get_aval(phlox.new_ref(X))) == "Ref{float32[3]}"


def test_types_that_mean_references():
    mine, theirs = (m.ShapeDtypeStruct((2,), "float32", is_ref=True) for m in (phlox, jax))
    assert repr(mine) == repr(theirs)
    assert mine != phlox.ShapeDtypeStruct((2,), "float32")
    assert hash(mine) == hash(phlox.ShapeDtypeStruct((2,), "float32", is_ref=True))
    assert mine.update(shape=(3,)) == phlox.ShapeDtypeStruct((3,), "float32", is_ref=True)


def backward_rules(m):
    """References as arguments of custom_vjp functions, which carry data out of a backward pass."""

    @m.custom_vjp
    def stash(store, x):
        return x * 2

    def backward(saved, ct):
        number, store, x = saved
        store["ref"][...] += ct * x
        return {"ref": None, "factor": ct * number}, ct * 2

    stash.defvjp(lambda store, x: (x * 2, (3, store, x)), backward)

    @functools.partial(m.custom_vjp, nondiff_argnums=(0,))
    def through(f, ref, x):
        return f(x)

    def through_backward(f, ref, ct):
        ref[...] = ct
        return None, ct * f(1.0)

    through.defvjp(lambda f, ref, x: (f(x), ref), through_backward)

    def f(x, factor, ref):
        return m.numpy.sin(stash({"ref": ref, "factor": factor}, x)).sum()

    found = []
    for transformed in (m.grad(f, (0, 1)), m.jit(m.grad(f, (0, 1)))):
        ref = m.new_ref(X)
        found.append((transformed(X * 2, X, ref), ref[...]))
    ref, value = m.new_ref(X), m.numpy.asarray(X)
    found += [(stash({"ref": ref, "factor": X}, value), ref[...])]
    found += [(m.grad(lambda x: through(m.numpy.cos, ref, x * x).sum())(X), ref[...])]
    found += [(m.jit(m.grad(lambda x: through(m.numpy.cos, ref, x * x).sum()))(X), ref[...])]
    return found


def test_backward_rules():
    mine, theirs = (jax.tree.leaves(backward_rules(m)) for m in (phlox, jax))
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)
