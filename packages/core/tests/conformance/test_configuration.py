"""Flags: names and defaults, and what programs do under them, as in jax."""

import contextlib
import gc
import logging
import os
import subprocess
import sys
import warnings

import jax
import jax.numpy
import numpy as np
import pytest

import phlox
import phlox.numpy
from phlox._ir.primitive import primitive

LIBRARIES = (jax, phlox)
STATES = [
    "allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast", "check_tracer_leaks", "debug_infs",
    "debug_key_reuse", "debug_nans", "default_device", "default_matmul_precision", "default_prng_impl", "enable_checks",
    "enable_custom_prng", "enable_x64", "explain_cache_misses", "jax2tf_associative_scan_reductions", "legacy_prng_key",
    "log_compiles", "no_execution", "no_tracing", "numpy_dtype_promotion", "numpy_rank_promotion",
    "remove_size_one_mesh_axis_from_type", "softmax_custom_jvp", "thread_guard", "threefry_partitionable",
    "transfer_guard_device_to_device", "transfer_guard_device_to_host", "transfer_guard_host_to_device",
]  # fmt: skip


@pytest.mark.parametrize("name", STATES)
def test_defaults_and_use(name):
    theirs, mine = getattr(jax, name), getattr(phlox, name)
    assert mine.value == theirs.value
    for state in (theirs, mine):
        with state(state.value):
            assert state.value == theirs.value


def test_every_option_is_known():
    """Where its value is no word of jax's own, its default is the same, but for the cache on disk."""
    for name, default in jax.config.values.items():
        mine = phlox.config.read(name)
        default = getattr(default, "value", default)
        if isinstance(default, (bool, float, str, type(None))) and "cache" not in name and "platform" not in name:
            assert mine == default or not (mine or default), name
        if name not in ("jax_num_cpu_devices", "jax_platforms", "jax_cpu_enable_async_dispatch"):  # too late
            phlox.config.update(name, mine)
    missing = set(jax.config.values) - set(phlox.config.values) - {"jax_platform_name"}
    assert not missing


def refusal(run, *errors):
    """The kind of error that a program ends with, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run()
    except errors as error:
        return next(kind.__name__ for kind in errors if isinstance(error, kind))
    return None


# --- debug_nans, debug_infs ---------------------------------------------------------------------------------

NUMERIC = {
    "log": lambda lib, x: lib.numpy.log(x),
    "jit": lambda lib, x: lib.jit(lambda y: lib.numpy.log(y) + 1)(x),
    "hidden": lambda lib, x: lib.jit(lambda y: lib.numpy.where(y > 0, lib.numpy.log(y), 0))(x),
    "hidden, eagerly": lambda lib, x: lib.numpy.where(x > 0, lib.numpy.log(x), 0),
    "division": lambda lib, x: x / x,
    "reciprocal": lambda lib, x: 1 / x,
    "grad": lambda lib, x: lib.grad(lambda y: lib.numpy.sum(lib.numpy.sqrt(y)))(x),
    "grad of hidden": lambda lib, x: lib.grad(lambda y: lib.numpy.sum(lib.numpy.where(y > 0, lib.numpy.sqrt(y), 0)))(x),
    "scan": lambda lib, x: lib.lax.scan(lambda c, y: (lib.numpy.log(c + y), c), lib.numpy.float32(1), x),
    "while": lambda lib, x: lib.lax.while_loop(lambda s: s[1] < 2, lambda s: (lib.numpy.log(s[0]), s[1] + 1), (x, 0)),
    "vmap": lambda lib, x: lib.vmap(lambda y: lib.numpy.sqrt(y) * 0)(x),
    "integers": lambda lib, x: lib.numpy.sum(x.astype("int32")),
    "indexing": lambda lib, x: x[lib.numpy.array([1, 7])],
    "nanmean": lambda lib, x: lib.numpy.nanmean(x),
    "softmax": lambda lib, x: lib.nn.softmax(x * 1e30),
    "isnan": lambda lib, x: lib.numpy.isnan(x / x),
    "random": lambda lib, x: lib.random.normal(lib.random.key(0), (3,)),
}
VALUES = {"fine": [1.0, 2.0, 3.0], "negative": [-1.0, -2.0, 0.5], "zero": [0.0, 1.0, 0.0], "huge": [1e38, 3e38, 1.0]}
#: jax turns an index out of bounds into nan as one operation and sees it; so does phlox.
FLAGS = {"debug_nans": "nan", "debug_infs": "inf"}


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("name", NUMERIC)
def test_bad_values_are_found_where_jax_finds_them(flag, name):
    for values in VALUES.values():
        found = []
        for lib in LIBRARIES:
            x = lib.numpy.asarray(np.array(values, np.float32))
            with getattr(lib, flag)(True):
                found.append(refusal(lambda lib=lib, x=x: NUMERIC[name](lib, x), FloatingPointError))
        assert found[0] == found[1], f"{name} of {values}: {found[1]}, in jax {found[0]}"


# --- numpy_rank_promotion -----------------------------------------------------------------------------------

SHAPES = [
    ((2, 3), (3,)),
    ((3,), (2, 3)),
    ((2, 3), ()),
    ((2, 3), (1, 3)),
    ((3,), (1,)),
    ((1, 2, 3), (2, 3)),
    ((3,), (3,)),
]
BROADCASTING = {
    "add": lambda lib, x, y: x + y,
    "jit": lambda lib, x, y: lib.jit(lambda a, b: a * b)(x, y),
    "maximum": lambda lib, x, y: lib.numpy.maximum(x, y),
    "arctan2": lambda lib, x, y: lib.numpy.arctan2(x, y),
    "logaddexp": lambda lib, x, y: lib.numpy.logaddexp(x, y),
    "where": lambda lib, x, y: lib.numpy.where(x > 0, x, y),
    "clip": lambda lib, x, y: lib.numpy.clip(x, y, 2.0),
    "less": lambda lib, x, y: x < y,
    "power": lambda lib, x, y: x**y,
    "floor_divide": lambda lib, x, y: x // y,
    "number": lambda lib, x, y: (x + 1) * 2.0,
    "broadcast_arrays": lambda lib, x, y: lib.numpy.broadcast_arrays(x, y),
    "matmul": lambda lib, x, y: lib.numpy.dot(x.reshape(-1), x.reshape(-1)),
    "vmap": lambda lib, x, y: lib.vmap(lambda a: a + lib.numpy.sum(y))(x),
}


@pytest.mark.parametrize("name", BROADCASTING)
def test_rank_promotion(name):
    for left, right in SHAPES:
        outcomes = []
        for lib in LIBRARIES:
            lib.clear_caches()  # jax does not warn of what it has traced before
            x, y = lib.numpy.ones(left), lib.numpy.ones(right)
            mine = []
            with lib.numpy_rank_promotion("raise"):
                mine.append(refusal(lambda lib=lib, x=x, y=y: BROADCASTING[name](lib, x, y), ValueError))
            with lib.numpy_rank_promotion("warn"), warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                BROADCASTING[name](lib, x, y)
            mine.append({w.category for w in told})
            with lib.numpy_rank_promotion("allow"):
                BROADCASTING[name](lib, x, y)
            outcomes.append(mine)
        if name == "clip":  # jax does not warn of it
            outcomes = [mine[:1] for mine in outcomes]
        assert outcomes[0] == outcomes[1], f"{name} of {left} and {right}"


# --- numpy_dtype_promotion (all pairs of types are in test_dtypes) ------------------------------------------

MIXING = {
    "add": lambda lib, x, y: x + y,
    "number": lambda lib, x, y: (x + 1) * y.astype(x.dtype),
    "where": lambda lib, x, y: lib.numpy.where(x > 0, x, y),
    "concatenate": lambda lib, x, y: lib.numpy.concatenate([x, y]),
    "dot": lambda lib, x, y: lib.numpy.dot(x, y),
    "einsum": lambda lib, x, y: lib.numpy.einsum("i,i->", x, y),
    "jit": lambda lib, x, y: lib.jit(lambda a, b: a - b)(x, y),
    "mean": lambda lib, x, y: lib.numpy.mean(x) + lib.numpy.sum(y, dtype=x.dtype),
    "set": lambda lib, x, y: x.at[0].set(y[0].astype(x.dtype)),
    "comparison": lambda lib, x, y: x < y,
    "append": lambda lib, x, y: lib.numpy.append(x, y),
    "array": lambda lib, x, y: lib.numpy.stack([x, y]),
}


@pytest.mark.parametrize("name", MIXING)
def test_strict_promotion(name):
    for left, right in [("float32", "float32"), ("float32", "int32"), ("int8", "int32"), ("bfloat16", "float16")]:
        found = []
        for lib in LIBRARIES:
            x, y = lib.numpy.ones(3, left), lib.numpy.ones(3, right)
            with lib.numpy_dtype_promotion("strict"):
                found.append(refusal(lambda lib=lib, x=x, y=y: MIXING[name](lib, x, y), TypeError, ValueError) is None)
        assert found[0] == found[1], f"{name} of {left} and {right}: passes {found[1]}, in jax {found[0]}"


# --- others -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", [None, "default", "high", "highest", "float32", "tensorfloat32", "bfloat16"])
def test_default_matmul_precision(precision):
    words = []
    for lib in LIBRARIES:
        with lib.default_matmul_precision(precision):
            f = lib.jit(lambda x, lib=lib: lib.numpy.dot(x, x) + x @ x)
            text = f.lower(lib.numpy.ones((2, 2))).as_text()
        words.append([word for word in ("DEFAULT", "HIGHEST", "HIGH,") if word in text])
    # jax leaves the default out.
    assert [w for w in words[1] if w != "DEFAULT"] == [w for w in words[0] if w != "DEFAULT"]


def test_default_device():
    for lib in LIBRARIES:
        device = lib.devices()[-1]
        with lib.default_device(device):
            assert lib.numpy.ones(2).devices() == {device}
            assert lib.jit(lambda: lib.numpy.ones(2), inline=False)().devices() == {device}


def test_disable_jit():
    for lib in LIBRARIES:
        calls = []
        f = lib.jit(lambda x, calls=calls: calls.append(float(x)) or x)
        with lib.disable_jit():
            f(1.0)
            f(1.0)
        assert calls == [1.0, 1.0]


def test_no_tracing_and_no_execution():
    for lib in LIBRARIES:
        f = lib.jit(lambda x: x * 2)
        x, y = lib.numpy.ones(2), lib.numpy.ones(3)
        f(x)
        with lib.no_tracing(True):
            f(x)
            with pytest.raises(RuntimeError, match="no_tracing"):
                f(y)
        with lib.no_execution(True), pytest.raises(RuntimeError, match="no_execution"):
            f(x)
        f(x)


def test_half_precision_sums():
    for dtype, axes, wanted in [
        ("float16", (0,), ValueError),
        ("bfloat16", (0, 1), ValueError),
        ("float32", (0,), None),
    ]:
        for lib in LIBRARIES:
            x = lib.numpy.ones((2, 1), dtype)
            with lib.allow_f16_reductions(False):
                context = pytest.raises(wanted) if wanted else contextlib.nullcontext()
                reduce = jax.lax.reduce_sum if lib is jax else primitive("reduce_sum")
                with context:
                    reduce(x, axes=axes)
                reduce(x, axes=(1,))
                lib.numpy.sum(x)


def test_old_keys():
    for lib in LIBRARIES:
        raw, new = lib.random.PRNGKey(0), lib.random.key(0)
        with lib.legacy_prng_key("error"):
            lib.random.normal(new)
            with pytest.raises(ValueError):
                lib.random.normal(raw)
        with lib.legacy_prng_key("warn"), pytest.warns(UserWarning):
            lib.random.normal(raw)
        with lib.enable_custom_prng(True):
            assert lib.random.PRNGKey(0).dtype == new.dtype


@pytest.fixture
def small_heap():
    """jax looks for what refers to a leaked tracer among all objects that the collector knows."""
    gc.freeze()
    yield
    gc.unfreeze()


def test_leaks(small_heap):
    for lib in LIBRARIES:
        kept = []

        def leaking(x, kept=kept):
            kept.append(x * 2)
            return x

        def tidy(x, lib=lib):
            return lib.lax.scan(lambda c, y: (c + y, c), 0.0, x)[0]

        for check in (lib.checking_leaks, lambda lib=lib: lib.check_tracer_leaks(True)):
            for transform in (lib.jit, lib.vmap):  # that of grad jax overlooks
                with check(), pytest.raises(Exception, match="Leaked"):
                    transform(leaking)(np.ones(3, np.float32))
                kept.clear()
            with check():
                lib.jit(lib.grad(tidy))(lib.numpy.ones(3))


def test_user_contexts():
    counts = []
    for lib in LIBRARIES:
        context, traced = lib.make_user_context(default_value=None), []
        f = lib.jit(lambda x, context=context, traced=traced: traced.append(context.value) or x)
        for value in (1, 2, 1):
            with context(value):
                f(1.0)
                f(1.0)
        f(1.0)
        context.set_global(7)
        f(1.0)
        counts.append((traced, context.value, context.get_global()))
    assert counts[0] == counts[1]


def test_logs(caplog):
    for lib in LIBRARIES:
        for flag, word in (
            ("log_compiles", "Compiling"),
            ("explain_cache_misses", "MISS" if lib is jax else "because"),
        ):
            f = lib.jit(lambda x: x * 3)
            f(np.float32(1))
            caplog.clear()
            with getattr(lib, flag)(True):
                f(np.ones(2, np.float32))
                told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
                assert any(word in text for text in told), f"{flag} of {lib.__name__}: {told}"
                caplog.clear()
                f(np.ones(2, np.float32))
                assert not caplog.records


def test_monitoring():
    """The stages of a program have the same names, and are told to the same kinds of listeners."""
    found = []
    for lib in LIBRARIES:
        monitoring, events = lib.monitoring, []

        def listener(name, *values, events=events, **data):
            if "a_function_of_mine" in data.get("fun_name", ""):
                events.append((name, len(values)))

        def a_function_of_mine(x):
            return x * 5.5

        monitoring.register_event_duration_secs_listener(listener)
        monitoring.register_event_time_span_listener(listener)
        lib.jit(a_function_of_mine)(np.ones(2, np.float32))
        monitoring.unregister_event_duration_listener(listener)
        monitoring.unregister_event_time_span_listener(listener)
        count = len(events)
        assert count
        monitoring.record_event_duration_secs("/a", 1.0, fun_name="a_function_of_mine")
        monitoring.record_event_time_span("/a", 1.0, 2.0, fun_name="a_function_of_mine")
        monitoring.register_event_listener(listener)
        monitoring.register_scalar_listener(listener)
        monitoring.record_event("/b", fun_name="a_function_of_mine")
        monitoring.record_scalar("/c", 1, fun_name="a_function_of_mine")
        monitoring.unregister_event_listener(listener)
        monitoring.unregister_scalar_listener(listener)
        monitoring.record_event("/b", fun_name="a_function_of_mine")
        assert events[count:] == [("/b", 0), ("/c", 1)]
        found.append(set(events))
    phlox.monitoring.clear_event_listeners()
    assert found[1] == found[0]


#: What moves something from the host to a device without being asked to. Not here: functions of jnp with constants
#: in them (jnp.zeros, indexing), which are programs in one library and transfers in the other.
TRANSFERS = {
    "NumPy to jit": lambda lib, f, x, n: f(n),
    "number to jit": lambda lib, f, x, n: f(2.0),
    "array to jit": lambda lib, f, x, n: f(x),
    "array and NumPy": lambda lib, f, x, n: x + n,
    "array and number": lambda lib, f, x, n: x + 1,
    "asarray": lambda lib, f, x, n: lib.numpy.asarray(n),
    "array of a list": lambda lib, f, x, n: lib.numpy.array([1.0, 2.0]),
    "sin": lambda lib, f, x, n: lib.numpy.sin(x),
    "device_put": lambda lib, f, x, n: lib.device_put(n),
    "device_put of a number": lambda lib, f, x, n: lib.device_put(1.0),
    "device_put there": lambda lib, f, x, n: lib.device_put(n, lib.devices()[0]),
    "device_get": lambda lib, f, x, n: lib.device_get(x),
    "asarray of NumPy": lambda lib, f, x, n: np.asarray(f(x)),
    "tolist": lambda lib, f, x, n: x.tolist(),
    "key": lambda lib, f, x, n: lib.random.key(3),
}


@pytest.mark.parametrize("name", TRANSFERS)
@pytest.mark.parametrize("guard", ["transfer_guard", "transfer_guard_host_to_device", "transfer_guard_device_to_host"])
def test_transfer_guards(guard, name):
    for level in ("allow", "log", "disallow", "log_explicit", "disallow_explicit"):
        found = []
        for lib in LIBRARIES:
            n = np.ones(3, np.float32)
            f, x = lib.jit(lambda y: y * 2), lib.numpy.asarray(n)
            TRANSFERS[name](lib, f, x, n)
            f(x)
            with getattr(lib, guard)(level):
                found.append(refusal(lambda: TRANSFERS[name](lib, f, x, n), RuntimeError))
        assert found[0] == found[1], f"{level}: {found[1]}, in jax {found[0]}"


# --- the command line ---------------------------------------------------------------------------------------

COMMAND = """
import sys
from absl import app
import {library} as lib, {library}.numpy
now = sys.argv.pop(1) == "now"
def main(argv):
    print(argv[1:], lib.numpy.ones(1).dtype, lib.config.jax_numpy_rank_promotion)
if now:
    lib.config.parse_flags_with_absl()
    lib.config.parse_flags_with_absl()
    main([])
else:
    lib.config.config_with_absl()
    app.run(main)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--jax_enable_x64", "--jax_numpy_rank_promotion=warn", "a"],
        ["run", "--nojax_enable_x64", "--", "--jax_enable_x64"],
        ["now", "--jax_enable_x64=true", "--other=3", "a"],
        ["now", "--", "--jax_enable_x64"],
        ["run", "--jax_numpy_rank_promotion=wrong"],
    ],
)
def test_flags_of_absl(arguments):
    pytest.importorskip("absl", reason="flags on the command line are absl's")
    done = []
    for lib in LIBRARIES:
        program = COMMAND.format(library=lib.__name__)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
        done.append(subprocess.run(command, env=environment, capture_output=True, text=True))
    assert done[0].stdout == done[1].stdout
    assert (done[0].returncode == 0) == (done[1].returncode == 0)


# --- arrays of 64 bits, outside of the block that made them

WIDE = {
    "dynamic_update_slice": lambda m, x, i: m.lax.dynamic_update_slice(x, x[:1], (1, 0)),
    "at": lambda m, x, i: (x.at[i[:2]].add(x), x.at[0].set(x[1]), x.at[i[0]].multiply(x[1])),
    "indexing": lambda m, x, i: (x[i[0]], x[:, i], m.numpy.take(x, i, axis=1), m.numpy.take_along_axis(x, i[None], 1)),
    "elementwise": lambda m, x, i: (m.numpy.exp(x), x * x, x * 2.5, x / 3, m.numpy.where(x > 1, x, 0), i << 1, -i),
    "reductions": lambda m, x, i: (x.max(), m.numpy.sort(i), m.numpy.argsort(x), m.lax.top_k(x, 2)),
    "products": lambda m, x, i: (x @ x.T, m.numpy.einsum("ij,kj", x, x), m.numpy.linalg.det(x @ x.T)),
    "derivatives": lambda m, x, i: (m.grad(lambda a: (a**3).sum())(x), m.hessian(lambda a: (a**3).sum())(x[0])),
    "loops": lambda m, x, i: (
        m.lax.scan(lambda c, a: (c + a, c), x[0], x),
        m.lax.map(m.numpy.sin, x),
        m.lax.associative_scan(m.numpy.add, x),
        m.lax.fori_loop(i[0], i[2], lambda k, c: c + k, m.numpy.arange(3)),
        m.lax.cond(True, lambda a: a, lambda a: -a, x),
    ),
    "structure": lambda m, x, i: (m.numpy.concatenate([x, x]), m.numpy.pad(x, 1), m.numpy.tril(x), m.numpy.roll(x, 1)),
    "jit": lambda m, x, i: m.jit(lambda a, b: (a + 1, a[0] * 3, b + b))(x, i),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", WIDE)
def test_arrays_of_64_bits_outside_of_their_block(name):
    def results(m, x64):
        with m.enable_x64(True):
            x, i = m.numpy.arange(6.0).reshape(2, 3) + 1 / 3, m.numpy.arange(3)
        assert (x.dtype, i.dtype) == (np.float64, np.int64)
        with m.enable_x64(x64):
            return m.tree.leaves(WIDE[name](m, x, i))

    for mine, theirs, exact in zip(results(phlox, False), results(jax, False), results(jax, True), strict=True):
        assert mine.dtype in (theirs.dtype, exact.dtype)  # jax makes some results narrower, as of `max` and `det`
        np.testing.assert_allclose(mine, exact, rtol=1e-12 if mine.dtype == np.float64 else 1e-6)


def test_dynamic_update_slice_of_two_widths():
    """The KeyError of a cache was all that it said."""
    with phlox.enable_x64(True):
        x = phlox.numpy.ones((2, 3))
    with pytest.raises(TypeError, match=r"same dtypes, got f32\[2,3\], f64\[1,3\]"):
        phlox.lax.dynamic_update_slice(phlox.numpy.ones((2, 3)), x[:1], (0, 0))
