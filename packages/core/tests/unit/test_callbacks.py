"""What jax does not show about callbacks: errors with their causes, breakpoints, shardings, what may not be repeated."""

import collections
import io
import threading

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax
from phlox.errors import CallbackError, EffectError, JaxRuntimeError
from phlox.experimental import io_callback

FLOAT = phlox.ShapeDtypeStruct((), "float32")


def boom(*_):
    raise ZeroDivisionError("in the callback")


@pytest.mark.parametrize("big", [False, True])
def test_what_a_callback_raises_is_the_cause(big):
    x = jnp.ones((700, 700)) if big else jnp.float32(1)

    def f(x):
        y = x @ x @ x if big else x
        return phlox.pure_callback(boom, FLOAT, y)

    with pytest.raises(JaxRuntimeError, match="in the callback") as caught:
        phlox.jit(f)(x).block_until_ready()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.__cause__.__traceback__.tb_next is not None


@pytest.mark.parametrize("call", [phlox.pure_callback, io_callback])
def test_what_a_callback_raises_outside_of_a_program_is_the_cause(call):
    with pytest.raises(JaxRuntimeError, match="ZeroDivisionError: in the callback") as caught:
        call(boom, FLOAT, 1.0)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_debug_callback_that_raises_is_seen_at_the_barrier():
    with pytest.raises(JaxRuntimeError, match="in the callback"):
        phlox.jit(lambda x: phlox.debug.callback(boom, x))(1.0)
        phlox.effects_barrier()
    phlox.effects_barrier()


def test_tokens_of_many_runs_are_not_kept(monkeypatch):
    """A program that prints in each step of a long loop, and that nobody waits for; also from inside of a callback."""
    monkeypatch.setattr(phlox._xla.callbacks, "_MOST_TOKENS", 16)
    seen = []
    inner = phlox.jit(lambda x: phlox.debug.callback(lambda v: seen.append(float(v)), x))
    outer = phlox.jit(lambda x: phlox.debug.callback(lambda v: [inner(v) for _ in range(20)], x))
    for i in range(40):
        inner(i)
        outer(-1.0) if i == 20 else None
    assert len(phlox._xla.callbacks._tokens) <= 40
    phlox.effects_barrier()
    assert sorted(seen) == [-1.0] * 20 + list(range(40))


def test_a_cause_belongs_to_its_own_error():
    def other(*_):
        raise KeyError("another callback")

    f = phlox.jit(lambda x: phlox.pure_callback(other, FLOAT, x @ x))
    g = phlox.jit(lambda x: phlox.pure_callback(boom, FLOAT, x))
    waiting = [KeyError("nobody asked for this one")]
    phlox._xla.callbacks._raised.extend(waiting)  # as a program leaves it whose results nobody looked at
    for run, x, kind in ((g, jnp.float32(1), ZeroDivisionError), (f, jnp.ones(2), KeyError)):
        with pytest.raises(JaxRuntimeError) as caught:
            run(x).block_until_ready()
        assert type(caught.value.__cause__) is kind
        assert caught.value.__cause__ not in waiting
    phlox._xla.callbacks._raised.clear()


def test_a_callback_without_results_may_return_anything():
    seen = []
    for result in (0, np.zeros(3), "text", (1, 2)):
        phlox.jit(lambda x, r=result: io_callback(lambda v: (seen.append(r), r)[1], None, x))(1.0)
        io_callback(lambda v, r=result: r, None, 1.0)
    phlox.effects_barrier()
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("result", "told"),
    [(np.zeros(3, np.float32), r"f32\[3\]"), (np.int32(1), r"i32\[\]"), ((1.0, 2.0), "2 arrays")],
)
def test_wrong_results_are_refused_with_both_types(result, told):
    f = lambda x: phlox.pure_callback(lambda _: result, FLOAT, x)
    with pytest.raises(CallbackError, match=told) as caught:
        f(1.0)
    assert isinstance(caught.value, JaxRuntimeError)
    with pytest.raises(JaxRuntimeError, match=told) as caught:
        phlox.jit(f)(1.0)
    assert isinstance(caught.value.__cause__, CallbackError)


def test_callbacks_get_arrays_that_outlive_the_program():
    seen = []
    f = phlox.jit(lambda x: phlox.debug.callback(seen.append, x * 2))
    for i in range(20):
        f(jnp.full((100,), i))
    phlox.effects_barrier()
    assert [int(v[0]) for v in seen] == [2 * i for i in range(20)]
    assert all(isinstance(v, phlox.Array) and bool((v == v[0]).all()) for v in seen)


def test_callbacks_may_compute():
    f = phlox.jit(lambda x: phlox.pure_callback(lambda v: jnp.tanh(v) + phlox.jit(jnp.sin)(v), FLOAT, x))
    np.testing.assert_allclose(f(0.5), np.tanh(0.5) + np.sin(0.5), rtol=1e-6)


def test_keys_arrive_as_keys():
    seen = []
    phlox.jit(lambda k: phlox.debug.callback(seen.append, k))(phlox.random.key(3))
    phlox.effects_barrier()
    assert jnp.array_equal(phlox.random.bits(seen[0]), phlox.random.bits(phlox.random.key(3)))


def test_keys_are_not_returned():
    key = phlox.random.key(1)
    with pytest.raises(phlox.errors.DtypeError, match="wrap_key_data"):
        phlox.jit(lambda k: phlox.pure_callback(lambda k: k, phlox.typeof(k), k))(key)
    with pytest.raises(phlox.errors.DtypeError, match="wrap_key_data"):
        phlox.ffi.ffi_call("some_function", phlox.typeof(key))


def test_ordered_effects_keep_their_order_between_programs():
    seen = []
    f = phlox.jit(lambda x: io_callback(lambda v: seen.append(int(v)), None, x, ordered=True))
    g = phlox.jit(lambda x: io_callback(lambda v: seen.append(-int(v)), None, x, ordered=True))
    for i in range(50):
        (f if i % 2 else g)(i)
    phlox.effects_barrier()
    assert seen == [i if i % 2 else -i for i in range(50)]


def test_calls_without_results_are_kept_and_pure_ones_are_not():
    seen = []
    phlox.jit(lambda x: io_callback(lambda v: seen.append("io"), None, x))(1.0)
    phlox.jit(lambda x: (phlox.pure_callback(lambda v: seen.append("pure") or v, FLOAT, x), 2)[1])(1.0)
    phlox.effects_barrier()
    assert seen == ["io"]


@pytest.mark.parametrize(
    "repeats",
    [
        lambda act: phlox.vmap(lambda x: lax.cond(x > 0, act, lambda v: v, x)),
        lambda act: phlox.vmap(lambda x: lax.while_loop(lambda v: v < 3, act, x)),
        lambda act: lambda x: phlox.grad(phlox.checkpoint(lambda v: (act(v) * v).sum()))(x),
    ],
    ids=["cond", "while", "checkpoint"],
)
def test_what_acts_is_not_repeated(repeats):
    def act(v):
        io_callback(lambda _: None, None, lax.stop_gradient(v))
        return v + 1

    with pytest.raises(EffectError, match="io_callback inside of"):
        repeats(act)(jnp.arange(3.0))


def test_callbacks_on_several_devices():
    parts, whole = [], []
    lock = threading.Lock()

    def note(v, where):
        with lock:
            where.append(np.asarray(v).tolist())

    phlox.pmap(lambda x: phlox.debug.callback(lambda v: note(v, parts), x))(jnp.arange(8.0))
    mesh = phlox.sharding.Mesh(np.array(phlox.devices()), ("i",))
    split = phlox.device_put(jnp.arange(8.0), phlox.NamedSharding(mesh, phlox.P("i")))
    phlox.jit(lambda x: phlox.debug.callback(lambda v: note(v, whole), x))(split)
    doubled = phlox.jit(lambda x: phlox.pure_callback(lambda v: 2 * np.asarray(v), x, x))(split)
    phlox.effects_barrier()
    assert sorted(parts) == list(range(8))
    assert whole == [list(range(8))]
    np.testing.assert_array_equal(doubled, 2 * np.arange(8))
    with pytest.raises(EffectError, match="8 devices"):
        phlox.pmap(lambda x: phlox.debug.callback(note, x, ordered=True))(jnp.arange(8.0))


@pytest.mark.parametrize("devices", [1, 4])
@pytest.mark.parametrize("ordered", [False, True])
def test_every_device_of_a_mapped_function_calls(devices, ordered):
    """Calls of one device are in order, where that is asked for."""
    calls = {i: [] for i in range(devices)}

    def note(i, v):
        calls[int(i)].append(float(v))
        return np.float32(2 * v)

    def step(c, v):
        return c, io_callback(note, FLOAT, lax.axis_index("i"), v, ordered=ordered)

    x = jnp.arange(3.0 * devices)
    mesh = phlox.sharding.Mesh(np.array(phlox.devices()[:devices]), ("i",))
    spec = {"in_specs": phlox.P("i"), "out_specs": phlox.P("i"), "mesh": mesh}
    by_shards = phlox.shard_map(lambda x: lax.scan(step, 0.0, x)[1], **spec)
    by_rows = phlox.pmap(lambda x: lax.scan(step, 0.0, x)[1], axis_name="i", devices=phlox.devices()[:devices])
    for f in (by_shards, phlox.jit(by_shards), lambda x: by_rows(x.reshape(devices, 3)).reshape(-1)):
        np.testing.assert_array_equal(f(x), 2 * np.arange(3.0 * devices))
        phlox.effects_barrier()
        for i in range(devices):
            assert (calls[i] if ordered else sorted(calls[i])) == [3 * i, 3 * i + 1, 3 * i + 2]
            calls[i].clear()


@pytest.mark.parametrize("kind", ["pure", "io", "ordered"])
def test_the_device_of_a_sharding_calls(kind):
    """jax has zeros in a program of several devices."""
    devices = phlox.devices()
    x = np.arange(8.0, dtype=np.float32)

    def call(device, x):
        sharding = phlox.sharding.SingleDeviceSharding(device)
        double = lambda v: 2 * np.asarray(v)
        if kind == "pure":
            return phlox.pure_callback(double, phlox.ShapeDtypeStruct(x.shape, x.dtype), x, sharding=sharding)
        struct = phlox.ShapeDtypeStruct(x.shape, x.dtype)
        return io_callback(double, struct, x, sharding=sharding, ordered=kind == "ordered")

    mesh = phlox.sharding.Mesh(np.array(devices), ("i",))
    split = phlox.device_put(x, phlox.NamedSharding(mesh, phlox.P("i")))
    for device in (devices[0], devices[3]):
        program = phlox.jit(lambda x, device=device: call(device, x))
        np.testing.assert_array_equal(program(split), 2 * x)
        assert ("device_ids=[3]" in program.lower(split).as_text()) == (device is devices[3])
    np.testing.assert_array_equal(phlox.jit(lambda x: call(devices[0], x))(x), 2 * x)
    with pytest.raises(ValueError, match="cpu:3"):
        phlox.jit(lambda x: call(devices[3], x))(x)
    with pytest.raises(NotImplementedError, match="shard_map"):
        phlox.pmap(lambda x: call(devices[0], x))(x)
    with pytest.raises(NotImplementedError, match="SingleDeviceSharding"):
        phlox.pure_callback(np.sin, FLOAT, 1.0, sharding=phlox.NamedSharding(mesh, phlox.P()))


def test_inspect_sharding_inside_of_a_program():
    mesh = phlox.sharding.Mesh(np.array(phlox.devices()), ("i",))
    split = phlox.device_put(jnp.arange(16.0).reshape(8, 2), phlox.NamedSharding(mesh, phlox.P("i")))
    seen = []

    @phlox.jit
    def f(x):
        phlox.debug.inspect_array_sharding(x * 2, callback=seen.append)
        return x.sum()

    f(split)
    f(split)
    assert len(seen) == 1
    assert seen[0].is_equivalent_to(split.sharding, 2)


def test_pictures_of_shardings(capsys):
    mesh = phlox.sharding.Mesh(np.array(phlox.devices()).reshape(2, 4), ("i", "j"))
    sharding = phlox.NamedSharding(mesh, phlox.P("j", "i"))
    phlox.debug.visualize_sharding((8, 8), sharding, use_color=False)
    shown = capsys.readouterr().out
    rows = [line for line in shown.splitlines() if "CPU" in line]
    assert ["CPU 0" in r and "CPU 4" in r for r in rows] == [True, False, False, False]
    assert len(rows) == 4


@pytest.mark.parametrize("shape", [(), (0, 4), (4, 0), (0,), (2, 2, 2)])
def test_arrays_without_a_picture(shape):
    with pytest.raises(phlox.errors.ShapeError, match="arrays with elements and one or two axes"):
        phlox.debug.visualize_array_sharding(jnp.zeros(shape))


def test_pictures_have_the_sizes_of_jax(capsys):
    """Rows and widths as jax draws them; how many lines are drawn for a part, and how wide it is, in characters."""
    mesh = phlox.make_mesh((4, 2), ("x", "y"))
    expected = {
        ((8, 8), ("x", "y")): (4, 23),
        ((8, 8), ("x", None)): (4, 25),
        ((8, 8), (None, "y")): (9, 25),
        ((128, 10000), ("x", None)): (4, 80),
        ((64,), ("x",)): (1, 33),
    }
    for (shape, spec), (lines, width) in expected.items():
        phlox.debug.visualize_sharding(shape, phlox.NamedSharding(mesh, phlox.P(*spec)), use_color=False)
        shown = capsys.readouterr().out
        drawn = shown.splitlines()
        assert (sum("│" in line for line in drawn), len(drawn[0])) == (lines, width), (shape, spec)
        assert shown.endswith("┘\n")


def test_the_picture_of_an_array_in_a_shard_map(capsys):
    mesh = phlox.make_mesh((2,), ("x",))

    def f():
        a = jnp.zeros(1000)
        phlox.debug.visualize_array_sharding(a, use_color=False)
        return a

    phlox.shard_map(f, mesh=mesh, in_specs=phlox.P(), out_specs=phlox.P("x"))()
    assert "CPU 0,1" in capsys.readouterr().out


def talk(text, f, *args):
    out = io.StringIO()
    result = f(io.StringIO(text), out)(*args)
    phlox.effects_barrier()
    return result, out.getvalue()


def stops(stdin, stdout, **options):
    def f(x, w):
        hidden = {"h": x @ w, "name": "layer"}
        phlox.debug.breakpoint(stdin=stdin, stdout=stdout, **options)
        return hidden["h"].sum()

    return phlox.jit(f)


def test_breakpoint_shows_values_where_the_program_stops():
    x, w = jnp.ones((2, 3)), jnp.full((3, 1), 2.0)
    result, shown = talk("p hidden['h'] * 10\nhidden['name']\nnothing\nlist\nwhere\nup\nc\n", stops, x, w)
    assert float(result) == 12
    assert "60." in shown
    assert "'layer'" in shown
    assert "NameError" in shown
    assert "debug.breakpoint(stdin" in shown
    assert "talk" in shown


class Strange:
    """An object that fails when one asks it for anything."""

    def __getattr__(self, name):
        raise KeyError(name)


def test_breakpoint_passes_over_what_it_cannot_look_at():
    def f(x):
        strange, unsortable, cyclic, deep = Strange(), {1: x, "a": x}, [], []  # noqa: F841
        cyclic.append({"a": cyclic})
        for _ in range(10000):
            deep = [deep]
        phlox.debug.breakpoint(stdin=io.StringIO("x\nc\n"), stdout=out, num_frames=1)
        return x

    out = io.StringIO()
    phlox.jit(f)(2.0)
    phlox.effects_barrier()
    assert "Array(2." in out.getvalue()


def test_breakpoint_leaves_room_to_recurse():
    """jaxlib's flatten of a variable that holds itself leaves Python 3.12 unable to call anything."""

    def f(x):
        cyclic = collections.OrderedDict()
        cyclic["a"] = cyclic
        phlox.debug.breakpoint(stdin=io.StringIO("c\n"), stdout=io.StringIO(), num_frames=1)
        return x

    for _ in range(20):
        phlox.jit(lambda x: f(x))(2.0)
    phlox.effects_barrier()
    assert eval("(" * 50 + "1" + ")" * 50) == 1


def test_breakpoint_quits():
    with pytest.raises(JaxRuntimeError, match="quit at a breakpoint"):
        talk("q\n", stops, jnp.ones((2, 3)), jnp.ones((3, 1)))


def test_breakpoint_with_a_token():
    out = io.StringIO()

    @phlox.jit
    def f(x):
        y = 3 * x
        return phlox.debug.breakpoint(token=y, stdin=io.StringIO("y\nc\n"), stdout=out)

    assert float(f(2.0)) == 6
    assert "Array(6." in out.getvalue()


def test_log_names_the_users_line(caplog):
    with caplog.at_level("INFO", logger="phlox.debug"):
        phlox.jit(lambda x: phlox.debug.log("x is {}", x))(2.0)
        phlox.effects_barrier()
    (record,) = caplog.records
    assert record.getMessage() == "x is 2.0"
    assert record.pathname == __file__
