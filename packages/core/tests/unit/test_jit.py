"""jit: caching, static and donated arguments, placement, closures, methods, and what stays in Python."""

import collections
import dataclasses
import functools
import gc
import inspect
import itertools
import pickle
import warnings
import weakref

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp


@pytest.fixture(autouse=True, params=[True, False], ids=["generated", "general"])
def way_of_calls(request):
    """Every test runs with code that is generated for the function's parameters, and without."""
    phlox.config.update("generated_calls", request.param)
    return request.param


class Counted:
    """A function that counts how often Python runs it."""

    def __init__(self, fun):
        self.fun, self.runs = fun, 0

    def __call__(self, *args, **kwargs):
        self.runs += 1
        return self.fun(*args, **kwargs)


def test_traces_once_for_each_type():
    f = Counted(lambda x: x * 2)
    g = phlox.jit(f)
    for x in (jnp.ones(3), jnp.zeros(3), np.ones(3, np.float32), jnp.ones(4), jnp.ones(3, "int32"), jnp.ones(3)):
        np.testing.assert_array_equal(g(x), np.asarray(x) * 2)
    assert f.runs == 3  # f32[3], f32[4], i32[3]


def test_python_numbers_share_a_program_by_their_class():
    f = Counted(lambda x, y: x + y)
    g = phlox.jit(f)
    assert [float(g(1.0, y)) for y in (1.0, 2.0, -0.0, 0.0)] == [2.0, 3.0, 1.0, 1.0]
    assert f.runs == 1
    assert g(1.0, 2).dtype == np.float32
    assert f.runs == 2
    assert np.signbit(phlox.jit(lambda x: x)(-0.0))
    assert not np.signbit(phlox.jit(lambda x: x)(0.0))
    assert phlox.jit(lambda x: x)(True).dtype == bool
    assert phlox.jit(lambda x: x)(1).dtype == np.int32


def test_weak_types_are_types_of_their_own():
    g = phlox.jit(lambda x: x * jnp.ones((), "bfloat16"))
    assert g(2.0).dtype == jnp.bfloat16
    assert g(jnp.float32(2.0)).dtype == np.float32


def test_jit_of_one_function_written_twice_shares_what_it_compiled():
    f = Counted(lambda x: x + 1)
    assert float(phlox.jit(f)(1.0)) == float(phlox.jit(f)(1.0)) == 2.0
    assert f.runs == 1
    phlox.jit(f, keep_unused=True)(1.0)
    assert f.runs == 2
    phlox.jit(f).clear_cache()
    phlox.jit(f)(1.0)
    assert f.runs == 3


def test_caches_die_with_their_function():
    import gc
    import weakref

    def make():
        big = jnp.ones(1000)

        def f(x):
            return x + big

        phlox.jit(f)(1.0)
        return weakref.ref(f)

    gone = make()
    gc.collect()
    assert gone() is None


def test_settings_are_part_of_the_key():
    f = Counted(lambda x: x * 1.5)
    g = phlox.jit(f)
    assert g(np.float64(2.0)).dtype == np.float32
    with phlox.enable_x64(True):
        assert g(np.float64(2.0)).dtype == np.float64
    assert g(np.float64(2.0)).dtype == np.float32
    assert f.runs == 2
    h, x = phlox.jit(lambda x: x + jnp.ones(3, float)), jnp.ones(3)
    for wide in (False, True, True, False, False, True):
        phlox.config.update("enable_x64", wide)
        assert h(x).dtype == (np.float64 if wide else np.float32)
        with phlox.enable_x64(not wide):
            assert h(x).dtype == (np.float32 if wide else np.float64)
    assert h.stats().entries == 2


def test_numpy_constants_keep_the_type_of_a_block_of_another_mode():
    table, words = np.arange(3.0), np.arange(2, dtype=np.uint64)

    def mixed(x):
        narrow = phlox.lax.neg(table)
        with phlox.enable_x64(True):
            last, _ = phlox.lax.scan(lambda c, s: (c + s, None), np.float64(1e300), table)
            drawn = phlox.lax.rng_bit_generator(words, (2,), np.uint32)[0]
            return narrow, phlox.lax.add(table, table), phlox.lax.concatenate([table, table], 0), last + x, drawn

    for run in (mixed, phlox.jit(mixed), phlox.jit(phlox.jit(mixed))):
        outs = run(np.float32(1))
        assert [x.dtype.name for x in outs] == ["float32", "float64", "float64", "float64", "uint64"]
        np.testing.assert_array_equal(outs[1], 2 * table)
        assert outs[3] == 1e300
    with phlox.enable_x64(True):
        narrowed = phlox.jit(lambda: phlox.enable_x64(False)(lambda: phlox.lax.neg(table))())
        assert narrowed().dtype == np.float32


def test_static_arguments():
    f = Counted(lambda x, n, flag=False: x * n if flag else x + n)
    g = phlox.jit(f, static_argnums=(1,), static_argnames="flag")
    assert [int(g(1, 2)), int(g(1, 3)), int(g(5, 2)), int(g(3, 4, flag=True)), int(g(3, n=4))] == [3, 4, 7, 12, 7]
    assert f.runs == 4  # n = 2, n = 3, with the flag, and n by name
    assert phlox.jit(lambda x, n: x + n, static_argnums=-1)(1, 2) == 3
    assert phlox.jit(lambda *xs: xs[0] + xs[1], static_argnums=1)(1, 2) == 3
    # Equal, but not the same kind of number: 1 == 1.0 == True.
    h = phlox.jit(lambda x, n: x + type(n)(1), static_argnums=1)
    for _ in range(2):
        assert h(1, 1).dtype == np.int32
        assert h(1, 1.0).dtype == np.float32


def test_partial_application_as_decorator():
    @functools.partial(phlox.jit, static_argnums=0)
    def f(n, x):
        return x**n

    @phlox.jit(static_argnames=("order",))
    def distance(x, y, order=2):
        return jnp.sum(jnp.abs(x - y) ** order) ** (1.0 / order)

    assert f(3, 2.0) == 8.0
    assert distance(jnp.zeros(2), jnp.array([3.0, 4.0])) == 5.0
    assert distance(jnp.zeros(2), jnp.array([3.0, 4.0]), order=1) == 7.0


def test_trees_keywords_defaults_and_none():
    @phlox.jit
    def f(params, x, *, scale=2.0, bias=None):
        out = params["w"] * x * scale
        return {"out": out if bias is None else out + bias, "none": None, "pair": (x, [x])}

    first = f({"w": jnp.ones(2)}, jnp.arange(2.0))
    np.testing.assert_array_equal(first["out"], [0.0, 2.0])
    assert first["none"] is None
    assert isinstance(first["pair"][1], list)
    np.testing.assert_array_equal(f({"w": jnp.ones(2)}, jnp.arange(2.0), bias=1.0, scale=3)["out"], [1.0, 4.0])


def test_closed_over_arrays_become_hidden_arguments():
    big = jnp.arange(1000.0)
    f = phlox.jit(lambda x: x + big.sum() + 2.0)
    text = f.lower(1.0).as_text()
    assert "tensor<1000xf32>" in text.split("main(")[1].split("->")[0], "the array is an argument"
    assert "dense<2.0>" in text, "the number is a literal"
    assert float(f(1.0)) == big.sum() + 3.0


def test_closed_over_arrays_without_axes_become_numbers():
    half, count, flag = jnp.float32(0.5), jnp.asarray(3), jnp.array(True)
    f = phlox.jit(lambda x: jnp.where(flag, x * half, count))
    text = f.lower(1.0).as_text()
    assert text.split("main(")[1].split("->")[0].count("tensor") == 1, "x alone"
    assert "dense<0.5>" in text
    assert float(f(4.0)) == 2.0
    # Those that lie on a certain device decide where the program runs; keys are no numbers.
    there = phlox.device_put(2.0, phlox.devices()[1])
    assert phlox.jit(lambda x: x * there)(3.0).devices() == {phlox.devices()[1]}
    key = phlox.random.key(3)
    assert float(phlox.jit(lambda x: x + phlox.random.uniform(key))(0.0)) == float(phlox.random.uniform(key))
    gone = jnp.float32(1.5)
    late = phlox.jit(lambda x: x + gone)
    gone.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        late(1.0)
    with phlox.transfer_guard_device_to_host("disallow"):
        guarded = phlox.jit(lambda x: x + half)
        assert float(guarded(jnp.float32(1.0))) == 1.5
        assert guarded.lower(1.0).as_text().split("main(")[1].split("->")[0].count("tensor") == 2, "it is not read"


def test_the_value_at_trace_time_is_kept():
    bias = jnp.array(0)
    impure = phlox.jit(lambda x: x + bias)
    assert impure(1) == 1
    bias = jnp.array(10)
    assert impure(1) == 1
    assert impure(1.0) == 11.0, "another type is traced again"


def test_unused_arguments_are_not_compiled_in():
    f = phlox.jit(lambda x, y: x)
    assert "tensor<7xf32>" not in f.lower(1.0, jnp.ones(7)).as_text()
    assert "tensor<7xf32>" in phlox.jit(lambda x, y: x, keep_unused=True).lower(1.0, jnp.ones(7)).as_text()
    assert float(f(2.0, jnp.ones(7))) == 2.0
    assert float(phlox.jit(lambda x, y: x, keep_unused=True)(2.0, jnp.ones(7))) == 2.0


def test_donation_reuses_memory():
    x = jnp.arange(4096.0)
    address = x.unsafe_buffer_pointer()
    y = phlox.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    assert y.unsafe_buffer_pointer() == address
    step = phlox.jit(lambda i, state: {"a": state["a"] + i}, donate_argnames="state")
    state = {"a": jnp.ones(3)}
    for i in range(3):
        old, state = state, step(i, state)
        assert old["a"].is_deleted()
    np.testing.assert_array_equal(state["a"], [4.0, 4.0, 4.0])
    # Memory fits if it has as many bytes.
    for same_size in (lambda x: x.reshape(64, 64).T, lambda x: x.astype(jnp.int32), lambda x: x[:2048] + 1j):
        x = jnp.arange(4096.0)
        address = x.unsafe_buffer_pointer()
        assert phlox.jit(same_size, donate_argnums=0)(x).unsafe_buffer_pointer() == address and x.is_deleted()
    # Numbers live in a shared store and must survive being given away.
    f = phlox.jit(lambda x: x * 2, donate_argnums=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [float(f(3.0)), float(f(3.0))] == [6.0, 6.0]
    assert float(jnp.add(3.0, 0.0)) == 3.0
    # Arguments that NumPy still looks at are copied, not overwritten.
    x = jnp.arange(3.0)
    view = np.asarray(x)
    f(x)
    np.testing.assert_array_equal(view, [0.0, 1.0, 2.0])


def test_placement():
    cpu = phlox.devices("cpu")
    out = phlox.jit(lambda x: x + 1, backend="cpu")(1.0)
    assert out.device == cpu[0]
    out = phlox.jit(lambda x: x + 1, device=cpu[2])(jnp.ones(2))
    assert out.devices() == {cpu[2]}
    assert out.committed
    x = phlox.device_put(jnp.ones(2), cpu[3])
    assert (x + 1).device == cpu[3]
    assert phlox.jit(lambda a, b: a + b)(x, jnp.ones(2)).device == cpu[3], "what is not committed follows"
    with phlox.default_device(cpu[4]):
        y = jnp.ones(2)
        assert y.device == cpu[4]
        assert not y.committed
        assert phlox.jit(lambda x: x + 1)(np.ones(2)).device == cpu[4]
        assert phlox.random.key(0).device == cpu[4]
    assert (y + x).device == cpu[3]
    assert jnp.ones(2).device == cpu[0]


def test_inline_leaves_no_trace():
    inner = phlox.jit(lambda x: jnp.sin(x), inline=True)
    outer = phlox.make_jaxpr(lambda x: inner(x) + phlox.jit(jnp.cos)(x))(1.0)
    assert [eqn.primitive.name for eqn in outer.eqns] == ["sin", "jit", "add"]


def test_nested_functions_are_lowered_once():
    inner = phlox.jit(lambda x: jnp.sin(x) * 2)
    text = phlox.jit(lambda x: inner(inner(inner(x)))).lower(1.0).as_text()
    assert text.count("stablehlo.sine") == 1
    assert text.count("func.call") == 3


def test_methods_and_wrapping():
    class Model:
        def __init__(self, w):
            self.w = w

        @functools.partial(phlox.jit, static_argnums=0)
        def __call__(self, x):
            """Applies the model."""
            return self.w * x

        @phlox.jit
        def plain(x):
            return x + 1

    assert Model(3.0)(2.0) == 6.0
    assert Model.plain(1.0) == 2.0
    assert Model.__call__.__name__ == "__call__"
    assert Model.__call__.__doc__ == "Applies the model."


def test_disable_jit_runs_python_each_time():
    f = Counted(lambda x: x + 1)
    g = phlox.jit(f)
    with phlox.disable_jit():
        assert float(g(1.0)) == float(g(1.0)) == 2.0
        assert phlox.grad(g)(1.0) == 1.0
        assert phlox.jit(lambda x: (x, "text", None))(1) == (1, "text", None)  # as it is, no array
    assert f.runs == 3


def test_functions_without_arguments_or_results():
    assert phlox.jit(lambda: jnp.ones(2))().shape == (2,)
    assert phlox.jit(lambda x: ())(1.0) == ()
    assert phlox.jit(lambda: None)() is None
    assert phlox.jit(lambda x: 3)(1.0).dtype == np.int32
    np.testing.assert_array_equal(phlox.jit(lambda x: np.ones(2, np.float32))(1.0), [1.0, 1.0])


def test_stages():
    f = phlox.jit(lambda x, n: {"y": jnp.sin(x) * n}, static_argnums=1)
    x = phlox.ShapeDtypeStruct((3,), "float32")
    traced = f.trace(x, 2)
    assert [e.primitive.name for e in traced.jaxpr.eqns] == ["sin", "mul"]
    lowered = f.lower(x, 2)
    assert "stablehlo.sine" in lowered.as_text()
    assert "result['y']" in lowered.as_text()
    assert traced.lower().as_text() == lowered.as_text()
    compiled = lowered.compile()
    np.testing.assert_allclose(compiled(jnp.ones(3))["y"], 2 * np.sin(np.ones(3)), rtol=1e-6)
    assert compiled.cost_analysis()["flops"] > 0
    assert "HloModule" in compiled.as_text()
    with pytest.raises(phlox.errors.ShapeError):
        compiled(jnp.ones(4))
    assert f.eval_shape(x, 2) == {"y": x}


def test_the_first_and_later_calls_agree_on_all_kinds_of_leaves():
    f = phlox.jit(lambda *xs: [x + 1 for x in xs])
    leaves = (1, 1.0, True, 1j, np.float64(1), np.int8(1), np.ones(2), np.ones(2, np.int64), jnp.ones(2, "bfloat16"))
    first, second = f(*leaves), f(*leaves)
    for x, a, b in zip(leaves, first, second, strict=True):
        assert a.aval is b.aval, x
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_trees_with_the_same_leaves_are_told_apart():
    f = phlox.jit(lambda *args, **kwargs: (args, kwargs))
    a, b, host = jnp.ones(2), jnp.zeros(2), np.zeros(2, np.float32)
    calls = [(a, b), ((a, b),), ((a,), b), (a, (b,)), ([a], b), (a, None, b), (a, host), ({"x": a}, 1), ({"y": a}, 1)]
    named = [((a,), {"x": b}), ((a, b), {"x": b}), ((), {"x": a, "y": b}), ((), {"x": {"y": a}}), ((a, {"x": b}), {})]
    for _ in range(2):
        for args, kwargs in [(args, {}) for args in calls] + named:
            assert phlox.tree.structure(f(*args, **kwargs)) == phlox.tree.structure((args, kwargs)), (args, kwargs)


@phlox.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    parameters: object
    step: object = 0
    rule: object = dataclasses.field(default="sgd", metadata={"static": True})


def test_named_tuples_and_dataclasses_are_told_apart():
    Pair, Other = (collections.namedtuple(name, "left right") for name in ("Pair", "Other"))
    a, b, n = jnp.ones(2), jnp.zeros(2), jnp.ones(3)
    trees = [(a, b), [a, b], Pair(a, b), Other(a, b), Pair(Pair(a, b), ()), Pair((), Pair(a, b)), Pair(a, None)]
    trees += [State(a, b), State(b, n), State(Pair(a, b)), State(Pair(a, b), rule="adam"), State({"a": a, "b": b}, a)]
    trees += [State({"b": b, "a": a}, a), State(a, b, rule=["not", "hashable"]), State(a, b, rule=["another"])]
    f = phlox.jit(lambda tree: tree)
    for _ in range(3):
        for tree in trees:
            out = f(tree)
            assert phlox.tree.structure(out) == phlox.tree.structure(tree), tree
            for mine, given in zip(phlox.tree.leaves(out), phlox.tree.leaves(tree), strict=True):
                np.testing.assert_array_equal(mine, given)
    assert f.stats().entries == len(trees) - 1  # two dicts differ in their order alone
    f = phlox.jit(lambda tree: tree)
    f(State(a, b, rule=np.ones(2)))
    with pytest.raises(
        phlox.errors.StaticArgumentError, match="the static data of an argument of <lambda> cannot be compared"
    ):
        f(State(a, b, rule=np.ones(2)))
    for _ in range(2):
        phlox.jit(lambda tree: tree)(State(a, b, rule=np.ones(2)))  # each function has a cache of its own


def test_named_tuples_that_are_registered_later():
    class Pair(collections.namedtuple("Pair", "left right")):
        pass

    f = phlox.jit(lambda pair: pair.left + 1)
    pair = Pair(jnp.ones(2), "no array")
    with pytest.raises(phlox.errors.PhloxError):
        f(pair)
    numbers = Pair(jnp.ones(2), jnp.ones(2))
    f(numbers), f(numbers)
    phlox.tree_util.register_pytree_node(Pair, lambda x: ((x.left,), x.right), lambda right, left: Pair(*left, right))
    for _ in range(2):
        np.testing.assert_array_equal(f(pair), [2, 2])


def test_named_tuples_that_iterate_in_their_own_way():
    class Backwards(collections.namedtuple("Backwards", "left right")):
        def __iter__(self):
            return reversed([self.left, self.right])

    f = phlox.jit(lambda pair: pair.left - pair.right)
    for _ in range(3):
        np.testing.assert_array_equal(f(Backwards(jnp.full(2, 3.0), jnp.ones(2))), [2, 2])


def test_names_may_come_in_any_order():
    """Dicts are equal in whatever order their items were put in, and later calls look at them in that order."""
    hidden, unused = jnp.arange(2.0), jnp.ones(7)
    Pair = collections.namedtuple("Pair", "left right")
    traced = Counted(lambda state, *, scale, shift: {k: v[1] * scale + shift + hidden for k, v in state.items()})
    f = phlox.jit(traced)
    values = {"b": jnp.ones(2), "a": np.full(2, 2, np.float32), "c": 3.0}
    inner = {"z": unused, "y": None}
    for rounds in range(1, 4):
        for names in itertools.permutations(values):
            state = {k: [inner, values[k], Pair({"q": unused, "p": unused}, ())] for k in names}
            for out in f(state, scale=5.0, shift=-1.0), f(state, shift=-1.0, scale=5.0):
                assert list(out) == ["a", "b", "c"]
                for k in names:
                    np.testing.assert_array_equal(out[k], np.asarray(values[k]) * 5 - 1 + [0, 1])
            inner = dict(reversed(inner.items()))
        assert f.stats().calls == 12 * rounds
    assert traced.runs == 1
    assert f.stats().entries == 1


def test_what_is_kept_of_orders_is_bounded(monkeypatch):
    monkeypatch.setattr("phlox._api.jit.entry.LIMIT", 3)
    f = phlox.jit(lambda tree: tree["a"] + tree["b"] - tree["c"] * tree["d"])
    values = {k: jnp.full(2, float(n)) for n, k in enumerate("abcd")}
    for names in itertools.permutations(values):
        np.testing.assert_array_equal(f({k: values[k] for k in names}), [-5, -5])
    (entry,) = f._jit._store.entries.values()
    assert len(entry.variants) <= 3
    assert f.stats().calls == 24


def test_donated_names_in_any_order():
    f = phlox.jit(lambda old, new: {k: old[k] + new[k] for k in old}, donate_argnums=0)
    for _ in range(2):
        for names in ("ab", "ba"):
            old, new = {k: jnp.full(3, ord(k)) for k in names}, {k: jnp.ones(3, "int32") for k in "ba"}
            out = f(old, new)
            assert all(old[k].is_deleted() and not new[k].is_deleted() for k in names)
            assert {k: int(v[0]) for k, v in out.items()} == {"a": ord("a") + 1, "b": ord("b") + 1}


def test_later_calls_move_arguments_as_the_first_does():
    devices = phlox.devices()
    assert len(devices) > 1
    mesh = phlox.make_mesh((len(devices),), ("d",))
    x = phlox.device_put(jnp.arange(8.0), phlox.NamedSharding(mesh, phlox.P("d")))
    f = phlox.jit(lambda x, y, z: (x * y + z, y))
    for _ in range(3):
        out, y = f(x, 2.0, np.ones(8, np.float32))
        assert out.sharding.device_set == y.sharding.device_set == set(devices)
        np.testing.assert_array_equal(out, np.arange(8) * 2 + 1)


def test_later_calls_ask_for_permission_as_the_first_does():
    f = phlox.jit(lambda x: x + 1)
    host = np.ones(2, np.float32)
    f(host)
    compiled = f.lower(host).compile()
    for g in (f, f, compiled, compiled):
        np.testing.assert_array_equal(g(host), [2, 2])
        with phlox.transfer_guard("disallow"), pytest.raises(phlox.errors.TransferError):
            g(host)


def test_small_new_arrays_wait_for_no_compiler():
    def make():
        return [jnp.zeros((3, 17)), jnp.ones(17, "bfloat16"), jnp.arange(17), jnp.eye(17, 3), jnp.full(17, 1)]

    compiled = []
    listen = lambda event, seconds, **_: compiled.append(event)
    phlox.monitoring.register_event_duration_secs_listener(listen)
    try:
        copied = make()
        assert not compiled
        computed = phlox.jit(make)()
        assert compiled
    finally:
        phlox.monitoring.unregister_event_duration_listener(listen)
    for x, y in zip(copied, computed, strict=True):
        assert x.aval is y.aval
        np.testing.assert_array_equal(np.asarray(x, np.float32), np.asarray(y, np.float32))


def test_arrays_in_big_endian_and_strided_memory():
    f = phlox.jit(lambda x: x * 2)
    np.testing.assert_array_equal(f(np.arange(3, dtype=">f4")), [0, 2, 4])
    np.testing.assert_array_equal(f(np.arange(10.0)[::3]), [0, 6, 12, 18])
    np.testing.assert_array_equal(f(np.asfortranarray(np.arange(6.0).reshape(2, 3))), np.arange(6).reshape(2, 3) * 2)


def test_a_jitted_function_is_a_function():
    def f(x, *, scale=2.0):
        """Scaled."""
        return x * scale

    f.note = "the user's"
    jitted = phlox.jit(f)
    assert inspect.isfunction(jitted)
    assert (jitted.__name__, jitted.__doc__, jitted.note) == ("f", "Scaled.", "the user's")
    assert inspect.signature(jitted) == inspect.signature(f)
    assert inspect.signature(jitted, follow_wrapped=False) == inspect.signature(f)
    assert inspect.getfullargspec(jitted).kwonlyargs == ["scale"]
    assert inspect.signature(phlox.jit(lambda x, y: x)).bind(1, y=2).args == (1, 2)
    assert pickle.loads(pickle.dumps(inspect.signature(jitted))) == inspect.signature(f)
    assert str(inspect.signature(phlox.vmap(jitted), follow_wrapped=False)).startswith("(*args")
    assert jitted.__wrapped__ is f
    assert isinstance(jitted, phlox.stages.Wrapped)
    assert phlox.jit(functools.partial(f, scale=3.0)).__name__ == "f"
    assert pickle.loads(pickle.dumps(jnp.sin)) is jnp.sin

    class Model:
        scale = 3.0

        @functools.partial(phlox.jit, static_argnums=0)
        def __call__(self, x):
            return self.scale * x

        apply = phlox.jit(lambda self, x: x + 1, static_argnums=0)

    assert (Model()(2.0), Model().apply(2.0)) == (6, 3)


def test_what_is_made_of_a_jitted_function_is_not_jitted():
    f = phlox.jit(lambda x: x * x)
    f.note = "the user's"
    again = phlox.jit(f)
    assert again.lower.__self__ is again._jit is not f._jit
    for make in (phlox.grad, phlox.value_and_grad, phlox.vmap, phlox.checkpoint, phlox.custom_jvp, phlox.named_call):
        made = make(f)
        assert made.note == "the user's"
        assert not any(hasattr(made, name) for name in ("lower", "trace", "eval_shape", "stats", "clear_cache"))


def test_jitted_functions_are_freed_at_once():
    gc.disable()
    try:
        f = phlox.jit(lambda x: {"a": x + 1})
        f(1.0)
        f(jnp.ones(2))
        (one, two) = f._jit._store.entries.values()
        gone = [weakref.ref(x) for x in (f, f._jit, f._jit._store)]
        del f, one, two
        assert [x() for x in gone] == [None] * 3
    finally:
        gc.enable()


def test_threads_share_a_jitted_function():
    from concurrent.futures import ThreadPoolExecutor

    f = phlox.jit(lambda x: jnp.sin(x).sum())
    sizes = list(range(1, 9)) * 4
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda n: float(f(jnp.ones(n))), sizes))
    np.testing.assert_allclose(got, [n * np.sin(1.0) for n in sizes], rtol=1e-5)


def test_stats_tell_what_a_function_has_cost(tmp_path):
    with phlox.config.scope(compilation_cache_dir=tmp_path, enable_compilation_cache=True):
        f = phlox.jit(lambda x: jnp.sin(x) @ x)
        for n in (2, 3, 3, 3):
            f(jnp.ones((n, n)))
        first = f.stats()
        f.clear_cache()
        f(jnp.ones((2, 2)))
        again = f.stats()
    assert (first.entries, first.traces, first.calls, first.loaded) == (2, 2, 4, 0)
    assert min(first.trace, first.lower, first.compile) > 0 == first.load
    assert (again.entries, again.calls, again.loaded) == (1, 1, 1)
    assert again.load > 0
    assert "1 programs (1 from disk), 1 calls" in str(again)


def test_derivatives_of_integers_leave_compiled_functions_as_arrays_of_numpy():
    zero = np.zeros((), phlox.dtypes.float0)
    _, pullback = phlox.vjp(lambda x, y: x + y, 2, 1)
    for got in phlox.jit(pullback)(zero):
        assert type(got) is np.ndarray
        assert got == zero
    of_x, of_i = phlox.jit(phlox.grad(lambda x, i: x[i], argnums=(0, 1), allow_int=True))(np.ones(2, np.float32), 1)
    assert of_x.tolist() == [0, 1]
    assert of_i == zero


def test_types_stand_for_arrays_where_programs_are_only_looked_at():
    inner = phlox.jit(lambda x: x + 1)
    struct = phlox.ShapeDtypeStruct((2,), "float32")
    assert phlox.eval_shape(lambda: inner(struct)) == struct
    assert phlox.make_jaxpr(lambda: inner(struct))().out_avals[0] is struct.aval
    for refused in (lambda: inner(struct), phlox.jit(lambda: inner(struct))):
        with pytest.raises(phlox.errors.ArgumentError, match="ShapeDtypeStruct"):
            refused()


def test_types_stand_for_arrays_that_a_program_does_not_read():
    """As netket passes the structure of its parameters."""
    struct = phlox.ShapeDtypeStruct((2,), "float32")
    f = phlox.jit(lambda x, like: x * like.shape[0])
    assert f(1.0, struct) == 2
    assert f(1.0, np.ones(2, np.float32)) == 2
    assert phlox.jit(lambda x: f(x, like=struct))(1.0) == 2
    assert phlox.grad(f)(1.0, struct) == 2
    assert phlox.vmap(f, (0, None))(np.ones(3), struct).tolist() == [2, 2, 2]
    for read in (phlox.jit(lambda x, like: x + like), phlox.jit(lambda x, like: x, keep_unused=True)):
        with pytest.raises(phlox.errors.ArgumentError, match="like"):
            read(1.0, struct)


def test_the_shape_of_a_result_says_where_it_will_lie():
    x = np.ones(3, np.float32)
    place = phlox.sharding.SingleDeviceSharding(phlox.devices()[1])
    f = phlox.jit(lambda y, n: {"a": y * n, "b": y}, static_argnums=1, out_shardings={"a": place, "b": None})
    for got in (f.eval_shape(x, 2), phlox.eval_shape(f, x, 2), f.trace(x, 2).out_info, f.lower(x, 2).out_info):
        assert (got["a"].sharding, got["b"].sharding) == (place, None)
        assert got["a"].shape == x.shape


def test_errors_name_the_dynamic_argument_beside_static_ones():
    f = phlox.jit(lambda n, x, y: x if y > n else -x, static_argnums=0)
    with pytest.raises(phlox.errors.TracerBoolConversionError, match="it depends on argument y"):
        f(1, 2.0, 3.0)
    g = phlox.jit(lambda n, x: x * n, static_argnames="n")
    with pytest.raises(phlox.errors.ArgumentError, match="at path x"):
        g(2, "text")
    gone = jnp.ones(3)
    gone.delete()
    for _ in range(3):
        with pytest.raises(phlox.errors.DeletedArrayError, match="argument x"):
            g(2, gone)


def test_names_of_arguments_do_not_keep_them():
    x = jnp.ones(5)
    compiled = phlox.jit(lambda x: x + 1).lower(x).compile()
    seen = weakref.ref(x)
    del x
    gc.collect()
    assert seen() is None
    with pytest.raises(TypeError, match="Argument 'x' compiled with"):
        compiled(jnp.ones(4))


def test_a_hundred_functions_inside_of_one_another():
    f, derivative = jnp.sin, jnp.cos
    for n in range(100):
        f = phlox.jit(lambda x, f=f: f(x) + 1)
        if n == 49:
            np.testing.assert_allclose(phlox.grad(f)(0.5), derivative(0.5), rtol=1e-6)
    assert float(f(0.5)) == pytest.approx(np.sin(0.5) + 100)


def test_functions_may_change_the_objects_of_their_arguments():
    class Growing:
        def __init__(self):
            self.arrays = []

    # The children are read at each call; the static data is the object itself, which the function gets.
    phlox.tree_util.register_pytree_node(Growing, lambda x: (list(x.arrays), x), lambda same, _: same)
    growing, row = Growing(), jnp.ones(2)

    @phlox.jit
    def grow(x, y):
        x.arrays.append(row)
        return y + 1

    assert [float(grow(growing, 1.0)) for _ in range(2)] == [2, 2] and len(growing.arrays) == 2
