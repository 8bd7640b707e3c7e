"""Control flow: what its errors say, what a derivative keeps, and how often a body is traced and compiled."""

import gc
import weakref

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import errors, grad, jit, lax, make_jaxpr, vmap

X = jnp.arange(3.0)


def refused(kind, run, *said):
    with pytest.raises(kind) as caught:
        run()
    text = str(caught.value)
    assert caught.value.where is not None and caught.value.where.file == __file__
    for part in said:
        assert part in text, text
    return caught.value


def test_a_carry_of_another_type_is_named():
    def step(carry, x):
        return {"h": carry["h"].astype("float16"), "n": carry["n"] + 1}, x

    start = {"h": jnp.zeros(3), "n": 0}
    error = refused(errors.DtypeError, lambda: lax.scan(step, start, X), "carry['h']", "f32[3]", "f16[3]", "step")
    assert (error.expected.short, error.got.short) == ("f32[3]", "f16[3]")
    refused(errors.ShapeError, lambda: lax.while_loop(lambda c: c[0].any(), lambda c: (c[0][:2],), (X,)), "carry[0]")
    refused(errors.TreeError, lambda: lax.fori_loop(0, 3, lambda i, c: (c, c), X), "another structure")


def test_a_weak_start_value_is_not_cut():
    for start, new in ((3.7, 1), (3.7 + 2j, 1.5), (3.7, True), (3, True), (3.7, np.int8(1))):
        refused(errors.DtypeError, lambda: lax.fori_loop(0, 0, lambda i, c: new, start), "dtypes do not match")
    total, seen = lax.scan(lambda c, _: (1.5, c), 3, None, length=2)
    assert (float(total), seen.tolist()) == (1.5, [3.0, 1.5])
    # One part of the carry widens the next, step by step.
    chain = lambda c: (c[0] + jnp.float16(1), c[1] + c[0], c[2] + c[1])
    for last in (
        lax.scan(lambda c, _: (chain(c), None), (0.0, 0.0, 0.0), None, length=3)[0],
        lax.while_loop(lambda c: c[0] < 3, chain, (0.0, 0.0, 0.0)),
        lax.fori_loop(0, 3, lambda i, c: chain(c), (0.0, 0.0, 0.0)),
    ):
        assert [(float(x), x.dtype.name) for x in last] == [(3, "float16"), (3, "float16"), (1, "float16")]
    with phlox.numpy_dtype_promotion("strict"):
        refused(errors.DtypeError, lambda: lax.scan(lambda c, _: (1, c), 1.5, None, length=2), "dtypes do not match")


def test_an_associative_scan_keeps_its_types():
    refused(errors.DtypeError, lambda: lax.associative_scan(lambda a, b: a > b, X), "bool", "f32", "associative_scan")
    refused(errors.ShapeError, lambda: lax.associative_scan(lambda a, b: jnp.float32(1), X), "f32[]", "f32[1]")


def test_branches_of_different_types_are_named():
    pick = lambda f, g: lax.cond(X.sum() > 0, f, g, X)
    refused(errors.TreeError, lambda: pick(lambda x: {"a": x}, lambda x: {"b": x}), "'a'", "'b'")
    refused(errors.ShapeError, lambda: pick(lambda x: (x, x), lambda x: (x, x[:2])), "result[1]", "f32[2]", "f32[3]")
    refused(errors.DtypeError, lambda: pick(lambda x: x, lambda x: x > 0), "bool[3]", "f32[3]")


def test_a_batched_choice_is_weakly_typed_if_all_branches_are():
    strong, weak = jnp.float32(1), jnp.asarray(2.0)
    of = lambda true, false: vmap(lambda p: lax.cond(p, lambda: true, lambda: false))(X > 1).weak_type
    assert (of(strong, weak), of(weak, strong), of(weak, 3.0)) == (False, False, True)
    # A choice for all rows has the weak type of the first branch, which is that of False.
    assert lax.cond(True, lambda: strong, lambda: weak).weak_type
    assert not lax.cond(True, lambda: weak, lambda: strong).weak_type
    assert jit(lambda p: lax.cond(p, lambda: strong, lambda: weak))(True).weak_type


def test_bodies_are_traced_once():
    count = []

    def step(carry, x):
        count.append(1)
        return carry + x, None

    for _ in range(3):
        lax.scan(step, 0.0, X)
    jit(lambda xs: lax.scan(step, 0.0, xs))(X)
    assert len(count) == 1


@pytest.mark.parametrize("call", [lambda f: f(3), lambda f: jit(f)(3)], ids=["known", "traced"])
def test_bodies_of_counting_loops_are_traced_once_and_die_with_their_functions(call):
    count = []

    def run():
        def body(i, x):
            count.append(1)
            return x * i + 1

        for c in (1, 2):
            assert call(lambda n, c=c: c * lax.fori_loop(0, n, body, 2.0)) == 5 * c
        return weakref.ref(body)

    known = run()
    assert len(count) == 1
    phlox.clear_caches()
    gc.collect()
    assert known() is None


def test_traced_bodies_die_with_their_functions():
    from phlox._api.jit.bodies import _programs

    def run():
        lax.scan(lambda carry, x: (carry + x, None), jnp.float32(0), X)

    gc.collect()
    before = len(_programs)
    for _ in range(5):
        run()
    gc.collect()
    assert len(_programs) <= before + 1


def test_one_compiled_loop_for_any_number_of_steps():
    text = lambda n: jit(lambda xs: lax.scan(lambda c, x: (jnp.sin(c) + x, c), 0.0, xs)).lower(jnp.zeros(n)).as_text()
    assert text(10).count("\n") == text(10_000).count("\n")
    assert text(10).count("stablehlo.while") == 1


def test_only_what_a_step_leaves_behind_is_kept():
    w = jnp.ones((7, 7))

    def loss(w, xs):
        return lax.scan(lambda c, x: (jnp.tanh(c @ w + x), None), jnp.zeros(7), xs)[0].sum()

    program = str(make_jaxpr(grad(loss))(w, jnp.zeros((50, 7))))
    assert "f32[50,7]" in program  # tanh of each step
    assert "f32[50,7,7]" not in program  # never the matrix once for each

    def scaled(w, xs):
        return lax.scan(lambda c, x: (c * jnp.exp(w).sum(1) + x, None), jnp.zeros(7), xs)[0].sum()

    assert "f32[50,7,7]" not in str(make_jaxpr(grad(scaled))(w, jnp.zeros((50, 7))))


def test_memory_grows_with_the_residuals_and_no_faster():
    def loss(x, n):
        return lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=n)[0].sum()

    def temporary(n):
        compiled = jit(grad(loss), static_argnums=1).lower(jnp.zeros(100), n).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    short, long = temporary(1000), temporary(10_000)
    one = 100 * 4
    assert (long - short) / 9000 <= 2.5 * one, (short, long)


def test_ten_thousand_steps():
    f = lambda x: lax.fori_loop(0, 10_000, lambda i, c: c * 0.9999 + x, x)
    slope = sum(0.9999**k for k in range(10_000)) + 0.9999**10_000
    np.testing.assert_allclose(grad(f)(1.0), slope, rtol=1e-4)


def test_a_batched_predicate_runs_both_branches():
    f = vmap(lambda p, x: lax.cond(p, lambda x: x + 1, lambda x: -x, x))
    np.testing.assert_array_equal(f(np.array([True, False]), np.array([1.0, 2.0])), [2.0, -2.0])
    program = str(make_jaxpr(f)(np.array([True, False]), np.array([1.0, 2.0], np.float32)))
    assert "select_n" in program and "cond" not in program
    shared = str(make_jaxpr(vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), (None, 0)))(True, np.zeros(2)))
    assert "cond" in shared


def test_closed_over_values_are_arguments():
    def f(scale):
        return lax.scan(lambda c, x: (c + scale * x, scale), 0.0, X)

    (total, scales), pull_back = phlox.vjp(f, 2.0)
    assert float(total) == 6.0 and scales.tolist() == [2.0] * 3
    assert pull_back((1.0, jnp.ones(3)))[0] == 6.0


def test_keys_go_through_loops():
    keys = phlox.random.split(phlox.random.key(0), 4)
    drawn = lax.map(phlox.random.uniform, keys)
    np.testing.assert_array_equal(drawn, vmap(phlox.random.uniform)(keys))
    last, stream = lax.scan(lambda k, _: tuple(phlox.random.split(k)), keys[0], None, length=3)
    assert (last.dtype, stream.shape, stream.dtype) == (keys.dtype, (3,), keys.dtype)


def test_collectives_inside_of_loops():
    f = lambda x: lax.fori_loop(0, 3, lambda i, c: c + lax.psum(x, "i"), x)
    np.testing.assert_array_equal(vmap(f, axis_name="i")(jnp.arange(3.0)), jnp.arange(3.0) + 9)
    np.testing.assert_array_equal(phlox.pmap(f, axis_name="i")(jnp.arange(3.0)), jnp.arange(3.0) + 9)


def test_what_a_scan_keeps_of_its_carry_is_not_stacked_for_the_derivative():
    def loss(w, xs):
        step = lambda c, x: ((jnp.tanh(c[0] @ c[1] + x), c[1]), None)
        return lax.scan(step, (xs[0], w), xs)[0][0].sum()

    text = jit(grad(loss)).lower(jnp.ones((7, 7)), jnp.ones((50, 7))).as_text()
    assert "tensor<50x7xf32>" in text
    assert "tensor<50x7x7xf32>" not in text


def test_a_loop_may_keep_what_is_differentiated():
    f = lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, x * x))[1]
    assert float(grad(f)(3.0)) == 6.0


def test_a_turn_of_an_unrolled_scan_reads_and_writes_its_rows_at_once():
    f = jit(lambda xs: lax.scan(lambda c, x: (jnp.sin(c) + x, c), 0.0, xs, unroll=4))
    text = f.lower(jnp.zeros(12)).as_text()
    assert [text.count(f"stablehlo.dynamic_{what}") for what in ("slice", "update_slice")] == [1, 1]


def test_programs_of_scans_do_not_grow_with_their_length():
    def step(weights, x):
        def loss(weights):
            return lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, weights)[0].sum()

        return grad(loss)(weights)

    def lengths(layers):
        lowered = jit(step).lower(jnp.ones((layers, 4, 4)), jnp.ones((2, 4)))
        return [text.count("\n") for text in (lowered.as_text(), lowered.compile().as_text())]

    assert lengths(3) == lengths(64)


def test_associative_scan_of_leaves_in_other_containers():
    """dynamax's parallel smoother takes named tuples and returns tuples."""
    elems = {"a": jnp.arange(1.0, 4), "b": jnp.arange(3.0)}
    out = phlox.lax.associative_scan(lambda x, y: (x["a"] * y["a"], x["b"] + y["b"]), elems)
    assert out["a"].tolist() == [1, 2, 6] and out["b"].tolist() == [0, 1, 3]


def test_python_runs_loops_and_branches_under_disable_jit():
    steps = []

    def add(total, x):
        steps.append((float(total), float(x)))
        return total + x, 2 * total

    with phlox.disable_jit():
        total, doubled = lax.scan(add, 0.0, X, reverse=True)
        assert steps == [(0.0, 2.0), (2.0, 1.0), (3.0, 0.0)]
        assert float(total) == 3.0 and doubled.tolist() == [6.0, 4.0, 0.0]
        steps.clear()
        assert float(lax.fori_loop(1, 3, lambda i, x: steps.append(int(i)) or x * i, 5.0)) == 10.0
        assert int(lax.while_loop(lambda n: n < 4, lambda n: steps.append(int(n)) or n + 3, 1)) == 4
        assert steps == [1, 2, 1]
        branches = [lambda x, i=i: steps.append(i) or x + i for i in range(3)]
        assert float(lax.switch(5, branches, 1.0)) == 3.0
        assert float(lax.cond(X[0] > 0, branches[1], branches[0], 1.0)) == 1.0
        assert steps == [1, 2, 1, 2, 0]


def test_conditions_on_unknown_values_are_compiled_under_disable_jit():
    grow = lambda x: lax.while_loop(lambda x: x < 50, lambda x: 3 * x, x)
    choose = lambda x: lax.cond(x > 1, lambda x: x * x, lambda x: -x, x)
    with phlox.disable_jit():
        assert float(grad(grow)(2.0)) == 27.0
        assert float(grad(choose)(3.0)) == 6.0
        assert vmap(grow)(jnp.array([1.0, 60.0])).tolist() == [81.0, 60.0]
        assert vmap(choose)(X).tolist() == [0.0, -1.0, 4.0]
        assert "while" in str(make_jaxpr(grow)(2.0))


def test_a_scan_of_no_steps_or_of_references_under_disable_jit():
    ref = phlox.new_ref(jnp.zeros(3))

    def write(carry, row):
        row[...] = carry
        return carry + 1, None

    with phlox.disable_jit():
        assert lax.scan(lambda c, x: (c + x, x), 1.0, X[:0])[1].shape == (0,)
        assert float(lax.scan(write, 5.0, ref)[0]) == 8.0
    assert ref[...].tolist() == [5.0, 6.0, 7.0]
