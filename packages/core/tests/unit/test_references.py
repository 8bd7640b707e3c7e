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


def adds_to(ref):
    """x -> 2 x, whose backward rule adds cotangent * x to the reference."""

    @phlox.custom_vjp
    def double(x):
        return x * 2

    double.defvjp(lambda x: (x * 2, x), lambda x, ct: (ref.addupdate(ct * x) or ct * 2,))
    return double


BACKWARD = {
    "scan": lambda f, x: lax.scan(lambda c, a: (jnp.sin(f(c) * a), None), x, X)[0],
    "reversed scan": lambda f, x: lax.scan(lambda c, a: (c, jnp.sin(f(x) * a)), 0, X, reverse=True)[1].sum(),
    "scan with checkpoints": lambda f, x: lax.scan(lambda c, a: (jnp.sin(f(c) * a), None), x, X, checkpoints=2)[0],
    "while_loop": lambda f, x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(f(c[1]))), (0, x))[1],
    "fori_loop": lambda f, x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(f(c)), x),
    "cond": lambda f, x: lax.cond(x > 0, lambda x: jnp.sin(f(x)), lambda x: x, x),
    "switch": lambda f, x: lax.switch(1, [lambda x: x, lambda x: jnp.sin(f(x)), lambda x: f(f(x))], x),
    "checkpoint": lambda f, x: phlox.checkpoint(lambda x: jnp.sin(f(jnp.cos(x))))(x),
    "jit": lambda f, x: jit(lambda x: jnp.sin(f(x)))(x),
    "jit of scan": lambda f, x: jit(lambda x: lax.scan(lambda c, a: (jnp.sin(f(c) * a), None), x, X)[0])(x),
    "scan of checkpoint": lambda f, x: lax.scan(
        phlox.checkpoint(lambda c, a: (jnp.sin(f(c) * a), None)), x, X
    )[0],
}  # fmt: skip


@pytest.mark.parametrize("name", BACKWARD)
def test_backward_rules_write_inside_of_programs(name):
    """Each run of the rule adds to the reference, as in the same computation in Python."""
    ref = new_ref(jnp.zeros(()))
    f = adds_to(ref)
    program = BACKWARD[name]
    with phlox.disable_jit():
        expected = grad(lambda x: _in_python(name, f, x))(0.7), ref[...]
    ref[...] = jnp.zeros(())
    for transformed in (grad(lambda x: program(f, x)), jit(grad(lambda x: program(f, x)))):
        np.testing.assert_allclose((transformed(0.7), ref[...]), expected, rtol=1e-5)
        ref[...] = jnp.zeros(())


def _in_python(name, f, x):
    if "reversed" in name:
        return sum(jnp.sin(f(x) * a) for a in X)
    if "scan" in name:
        for a in X:
            x = jnp.sin(f(x) * a)
        return x
    if name == "checkpoint":
        return jnp.sin(f(jnp.cos(x)))
    for _ in range(3 if "loop" in name else 1):
        x = jnp.sin(f(x))
    return x


def test_a_backward_rule_writes_to_the_argument_of_an_inner_jit():
    @phlox.custom_vjp
    def double(ref, x):
        return x * 2

    double.defvjp(lambda ref, x: (x * 2, (ref, x)), lambda kept, ct: (kept[0].addupdate(ct * kept[1]), ct * 2))
    traces = []
    inner = jit(lambda ref, x: traces.append(ref) or double(ref, x).sum())
    r, s = new_ref(jnp.zeros(3)), new_ref(jnp.zeros(3))
    np.testing.assert_array_equal(grad(lambda x: inner(r, x) + inner(s, x * 2))(X), np.full(3, 6))
    np.testing.assert_array_equal((r[...], s[...]), (X, 2 * X))
    assert len(traces) == 2  # one for each reference: the rule that it holds writes to that
    np.testing.assert_array_equal(jit(lambda r, x: grad(inner, 1)(r, x))(s, X), np.full(3, 2))
    np.testing.assert_array_equal(s[...], 3 * X)
    outer = jit(lambda ref, x: inner(ref, x) + ref[0])
    assert outer(r, X) == outer(r, X) == inner(r, X) + r[0]
    np.testing.assert_array_equal(grad(outer, 1)(r, X), np.full(3, 2))
    np.testing.assert_array_equal(r[...], 2 * X)


def test_references_and_shardings():
    mesh = phlox.make_mesh((2,), ("i",))
    whole, split = (phlox.NamedSharding(mesh, spec) for spec in (P(), P("i")))
    r = new_ref(X)
    f = jit(lambda x: r.addupdate(x, 0) or x + r[0], out_shardings=whole)
    assert [float(f(1.0)) for _ in range(3)] == [2.5, 3.5, 4.5]
    g = jit(lambda q, x: q.addupdate(x.sum(), 0) or x * q[1], in_shardings=(None, split), out_shardings=split)
    for _ in range(2):
        assert g(r, jnp.ones(4)).sharding == split
    np.testing.assert_array_equal(r[...], [11.5, 1.5, 2.5])
    h = jit(lambda q, x: q.addupdate(x, 0), donate_argnums=0)
    assert h(r, 1.0) is None and r[0] == 12.5


def test_references_in_shard_map():
    mesh = phlox.make_mesh((2,), ("i",))
    r = new_ref(X)

    def on_devices(f):
        return phlox.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))

    x = np.arange(1.0, 5.0, dtype=np.float32)
    f = on_devices(lambda x: r.addupdate(lax.psum(x.sum(), "i"), 0) or x * r[1])
    for g in (f, jit(f)):
        np.testing.assert_array_equal(g(x), x * 1.5)
    assert r[0] == 20.5
    with pytest.raises(errors.RefError, match="psum"):
        on_devices(lambda x: r.addupdate(x.sum(), 0) or x)(x)

    def sums(x):
        """Made on each device, and written in loops and branches that differ between devices."""
        total, count = new_ref(jnp.zeros(())), new_ref(0)
        lax.scan(lambda c, a: (total.addupdate(a), None), None, x)
        lax.cond(x[0] > 2, lambda: total.addupdate(r[1]), lambda: count.set(5))
        lax.while_loop(lambda n: n < x[0], lambda n: count.addupdate(1) or n + 1, 0.0)
        return jnp.stack([total[...], count[...].astype(float)])

    for g in (on_devices(sums), jit(on_devices(sums))):
        np.testing.assert_array_equal(g(x), [3, 6, 8.5, 3])
    derivative = jit(grad(lambda x: on_devices(sums)(x).sum()))
    np.testing.assert_array_equal(derivative(x), np.ones(4))


def test_references_in_jaxprs():
    r = new_ref(X)
    closed = phlox.make_jaxpr(lambda x: r.addupdate(x, 0) or r[1])(1.0)
    assert "ref_read[ref=Ref{float32[3]}]" in str(closed) and "ref_write[ref=Ref{float32[3]}]" in str(closed)
    for run in (phlox.core.eval_jaxpr, jit(lambda *args: phlox.core.eval_jaxpr(closed.jaxpr, *args))):
        args = (closed.consts, 1.0)
        assert (run(closed.jaxpr, *args) if run is phlox.core.eval_jaxpr else run(*args)) == [1.5]
    assert r[0] == 2.5


def test_references_of_loop_conditions():
    r, s = new_ref(0), new_ref(3)
    f = lambda n: lax.while_loop(lambda c: (c < n) & (r[...] < s[...]), lambda c: r.addupdate(1) or c + 1, 0)
    assert (f(10), jit(f)(10), r[...]) == (3, 0, 3)
    s[...] = 100
    assert (jit(f)(10), r[...]) == (10, 13)


def test_loop_conditions_that_write():
    """Each evaluation of the condition writes, also the last one, as in a loop of Python."""

    def run(n, r, s):
        def goes_on(c):
            r[...] += 1
            s[c] = r[...] * 1.0
            return c < n

        def body(c):
            r[...] += 10
            return c + 1

        return lax.while_loop(goes_on, body, 0)

    for call in (run, jit(run)):
        r, s = new_ref(0), new_ref(jnp.zeros(5))
        assert (int(call(3, r, s)), int(r[...])) == (3, 34)
        np.testing.assert_array_equal(s[...], [1, 12, 23, 34, 0])

    def cubed(x):
        r = new_ref(x)
        return lax.while_loop(lambda c: r.__setitem__(..., r[...] * x) or c < 1, lambda c: c + 1, 0) * 1.0 + r[...]

    np.testing.assert_allclose(phlox.jvp(cubed, (2.0,), (1.0,)), (9.0, 12.0))


def test_values_on_other_devices():
    """A program is compiled for where the values are; the function is traced once."""
    devices, traced = phlox.devices()[:2], []
    r = new_ref(X)

    @jit
    def step(x):
        traced.append(0)
        r.addupdate(x, 0)

    for place in (*devices, *devices):
        r[...] = phlox.device_put(X, place)
        step(1.0)
        assert r[0] == 1.5 and r.sharding.device_set == {place}
    assert len(traced) == 1


def test_keys_in_references():
    r = new_ref(phlox.random.key(0))

    @jit
    def draw():
        r[...], key = phlox.random.split(r[...])
        return phlox.random.normal(key)

    again = jit(lambda: phlox.random.normal(r[...]) + phlox.random.uniform(r[...]))
    with phlox.debug_key_reuse(True):
        assert draw() != draw()
        with pytest.raises(errors.KeyReuseError):
            again()


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (jnp.sum, r"sum got a Ref of type Ref\{float32\[3\]\} at position 0"),
        (lambda ref: jnp.add(1, ref), r"add got a Ref of type Ref\{float32\[3\]\} at position 1"),
        (lambda ref: jnp.sum(ref.at[1:]), r"sum got a RefView of type Ref\{float32\[2\]\} at position 0"),
        (
            lambda ref: lax.scan(lambda c, _: (c, None), (1, ref), None, 2),
            r"argument c\[1\] of <lambda>, given to scan,",
        ),
    ],
    ids=["first", "second", "view", "carry"],
)
def test_functions_of_arrays_name_references(function, text):
    with pytest.raises(errors.ArgumentError, match=text) as caught:
        function(phlox.new_ref(jnp.ones(3)))
    assert "ref[...], which reads its value" in str(caught.value)


def test_where_references_are_refused():
    r = new_ref(X)
    for function in (jnp.asarray, jnp.sum, lax.sin, jnp.stack):
        with pytest.raises(errors.ArgumentError, match=r"ref\[\.\.\.\], which reads its value"):
            function([r] if function is jnp.stack else r)
    custom = phlox.custom_jvp(lambda x: r[0] * x)
    custom.defjvp(lambda primals, tangents: (custom(*primals), tangents[0] * r[0]))
    with pytest.raises(errors.RefError, match=r"Ref\{float32\[3\]\}"):
        grad(jit(custom))(2.0)
    writes = phlox.custom_jvp(lambda x: r.addupdate(x, 0) or x)
    writes.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    with pytest.raises(errors.RefError, match="custom_jvp_call writes"):
        jit(writes)(2.0)
    with pytest.raises(errors.RefError, match="from outside"):
        lax.reduce(X, np.float32(0), lambda a, b: a + b + r[0], (0,))
    with pytest.raises(errors.RefError, match="from outside"):
        lax.custom_linear_solve(lambda x: x * r[0], X, lambda _, b: b / 2, symmetric=True)
    with pytest.raises(errors.ExportError, match="Ref"):
        phlox.export.export(jit(lambda x: x + r[0]))(1.0)
    with pytest.raises(errors.RefError, match="closed over and passed as the argument"):
        lax.scan(lambda c, row: (c + row[...] + r[0], None), 0.0, r)
    with pytest.raises(errors.RefError, match="closed over and passed as the argument"):
        jit(lambda x: jit(lambda a: a[0] + r[0] + x)(r))(1.0)
    with pytest.raises(errors.RefError, match="appeared at both"):
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


@pytest.mark.parametrize("transform", [phlox.grad, phlox.value_and_grad, phlox.jacfwd, phlox.jacrev, phlox.hessian])
def test_what_cannot_be_differentiated_is_named_by_its_own_argument(transform):
    def scaled(x, y):
        return x * y["k"][0]

    ref = phlox.new_ref(jnp.ones(3))
    with pytest.raises(TypeError, match=r"respect to a Ref-typed argument, y\['k'\]\[0\] of type Ref\{float32\[3\]\}"):
        transform(scaled, argnums=1)(1.0, {"k": [ref]})
    with pytest.raises(TypeError, match=r"at path y\['k'\]\[0\]: 'text'"):
        transform(scaled, argnums=1)(1.0, {"k": ["text"]})
