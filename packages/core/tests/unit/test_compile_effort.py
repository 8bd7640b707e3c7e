"""`compile_effort`: which programs are compiled with which options, and how a quick program is replaced by a full one."""

import contextvars
import gc
import threading
import time
import weakref

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import jit, lax, pmap
from phlox._base import config
from phlox._xla import background, compile_effort, program

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def compiled(monkeypatch):
    """The optimization level, or None, of each program that is compiled; all are compiled anew."""
    levels = []

    def watched(text, devices, *, default_options=(), overrides=(), **rest):
        found = original(text, devices, default_options=default_options, overrides=overrides, **rest)
        if found is not None:
            levels.append(dict([*default_options, *overrides]).get("xla_backend_optimization_level"))
        return found

    original = program.compile_text
    monkeypatch.setattr(program, "compile_text", watched)
    with phlox.config.scope(enable_compilation_cache=False):
        yield levels
    background.wait()


@pytest.fixture
def held(monkeypatch):
    """Holds the thread back until it is called."""
    monkeypatch.setattr(background, "_PATIENCE", 60.0)
    hold = background.foreground()
    hold.__enter__()
    freed = []

    def free():
        if not freed:
            freed.append(hold.__exit__(None, None, None))
            background.wait()

    yield free
    free()


def function():
    return jit(lambda x: jnp.sin(x) * 2 + jnp.cos(x))


def expected(x=X):
    return np.sin(x) * 2 + np.cos(x)


def test_fast_is_a_flag_a_block_and_an_option(compiled):
    f = function()
    f(X)
    with phlox.config.scope(compile_effort="fast"):
        np.testing.assert_allclose(f(X), expected(), rtol=1e-6)
        f(X)
    f(X)
    assert compiled == [None, 1]
    jit(lambda x: x + 1, compile_effort="fast")(X)
    phlox.config.update("compile_effort", "fast")
    jit(lambda x: x + 2)(X)
    jit(lambda x: x + 3, compile_effort="default")(X)
    assert compiled == [None, 1, 1, 1, None]


def test_users_options_come_before_the_effort(compiled):
    jit(lambda x: x + 1, compile_effort="fast", compiler_options={"xla_backend_optimization_level": 2})(X)
    assert compiled == [2]


def test_other_values_are_refused():
    with pytest.raises(phlox.errors.OptionError, match=r"(?s)compile_effort='slow'.*'default', 'fast', 'tiered'"):
        jit(lambda x: x, compile_effort="slow")
    with pytest.raises(phlox.errors.ConfigError, match="compile_effort"):
        phlox.config.update("compile_effort", 1)
    assert config.FLAGS["compile_effort"].default == compile_effort.CHOICES[0]


def test_ahead_of_time_only_the_option_counts(compiled):
    with phlox.config.scope(compile_effort="fast"):
        function().lower(X).compile()
    jit(lambda x: x + 1, compile_effort="tiered").lower(X).compile()
    jit(lambda x: x + 2, compile_effort="fast").lower(X).compile()
    assert compiled == [None, None, 1]


def test_a_tiered_program_is_replaced(compiled, held):
    f = jit(lambda x, y=0: jnp.sin(x) * 2 + jnp.cos(x) + y, compile_effort="tiered")
    for _ in range(3):  # by code of its own
        np.testing.assert_allclose(f(X), expected(), rtol=1e-6)
    f(x=X, y=1), f(X, 1)
    quick = list(f._jit._store.entries.values())
    assert compiled == [0, 0]
    held()
    assert compiled == [0, 0, None, None]
    full = list(f._jit._store.entries.values())
    assert not set(map(id, quick)) & set(map(id, full))
    assert not {id(path[-1]) for path in f._jit.calls.values()} - set(map(id, full))
    for _ in range(2):
        np.testing.assert_allclose(f(X), expected(), rtol=1e-6)
    assert {id(path[-1].program) for path in f._jit.calls.values()} <= {id(entry.program) for entry in full}
    assert compiled == [0, 0, None, None]
    assert f.stats().calls == 7
    assert f.stats().traces == 2


def test_operations_and_derivatives_are_replaced(compiled, held):
    f = function()
    with phlox.config.scope(compile_effort="tiered"):
        first = phlox.grad(lambda x: f(x).sum())(X), lax.tan(X)
        count = len(compiled)
        assert set(compiled) == {0}
        held()
        assert len(compiled) == 2 * count
        second = phlox.grad(lambda x: f(x).sum())(X), lax.tan(X)
    assert len(compiled) == 2 * count
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_what_is_on_disk_is_loaded_in_full(tmp_path, monkeypatch):
    def run():
        phlox.clear_caches()
        f = function()
        np.testing.assert_allclose(f(X), expected(), rtol=1e-6)
        later = next(iter(f._jit._store.entries.values())).program
        background.wait()
        return later is next(iter(f._jit._store.entries.values())).program, len(list(tmp_path.glob("*.xla")))

    with phlox.config.scope(compile_effort="tiered", compilation_cache_dir=str(tmp_path)):
        assert run() == (False, 2)  # the quick program and the full one
        assert run() == (True, 2)
    with phlox.config.scope(compilation_cache_dir=str(tmp_path)):
        assert run() == (True, 2)


def test_the_thread_has_the_settings_of_the_call(tmp_path, held):
    with phlox.config.scope(compile_effort="tiered", compilation_cache_dir=str(tmp_path)):
        f = function()
        f(X)
    held()
    assert len(list(tmp_path.glob("*.xla"))) == 2


def test_donation(compiled, held):
    f = jit(lambda x, y: (x + y, y * 2), donate_argnums=0, compile_effort="tiered")
    for _ in range(2):
        x = jnp.asarray(X)
        for _ in range(3):
            given = x
            x, _ = f(given, X)
            assert given.is_deleted()
            with pytest.raises(phlox.errors.DeletedArrayError, match="argument x"):
                f(given, X)
        np.testing.assert_allclose(x, 4 * X, rtol=1e-6)
        held()
    assert compiled == [0, None]


def test_threads_call_while_it_is_replaced(compiled):
    f = jit(lambda x: jnp.tanh(x) @ x.T, compile_effort="tiered")
    x = jnp.asarray(X)
    want, wrong, done = np.tanh(X) @ X.T, [], threading.Event()

    def call():
        while not done.is_set():
            if not np.allclose(f(x), want, rtol=1e-5):
                wrong.append(1)

    threads = [threading.Thread(target=contextvars.copy_context().run, args=(call,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    while None not in compiled:
        time.sleep(0.01)
    background.wait()
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong
    (entry,) = f._jit._store.entries.values()
    f(x)
    assert {id(path[-1]) for path in f._jit.calls.values()} == {id(entry)}
    assert set(compiled) == {0, None}


def test_clear_caches_in_the_middle(compiled, held):
    number = 1.0
    f = jit(lambda x: x + number, compile_effort="tiered")
    assert float(f(1.0)) == 2.0
    number = 10.0
    phlox.clear_caches()
    held()
    assert not f._jit._store.entries
    assert float(f(1.0)) == 11.0
    background.wait()
    assert float(f(1.0)) == 11.0


def test_it_is_not_put_back_when_caches_are_cleared_while_it_compiles(compiled, monkeypatch):
    f = jit(lambda x: x + 1, compile_effort="tiered")
    original = program.Lowering.compile

    def compile_and_clear(self, *args):
        made = original(self, *args)
        f.clear_cache()
        return made

    monkeypatch.setattr(program.Lowering, "compile", compile_and_clear)
    f(X)
    background.wait()
    assert compiled == [0, None]
    assert not f._jit._store.entries
    assert not f._jit.calls


def test_a_function_that_dies_is_not_compiled_again(compiled, held):
    def made(x):
        return x + 1

    f = jit(made, compile_effort="tiered")
    f(X)
    known = weakref.ref(made)
    del f, made
    gc.collect()
    assert known() is None
    held()
    assert compiled == [0]


def test_an_error_on_the_thread_is_reported_once(compiled, held, monkeypatch, caplog):
    f = jit(lambda x: x * 3 + 1, compile_effort="tiered")
    f(X)

    def fail(*_, **__):
        raise phlox.errors.CompilationError("no memory left")

    with monkeypatch.context() as patch:
        patch.setattr(program, "compile_text", fail)
        held()
    for _ in range(3):
        np.testing.assert_allclose(f(X), 3 * X + 1, rtol=1e-6)
    background.wait()
    (record,) = caplog.records
    message = "compiling jit(<lambda>) in full failed, the program compiled at low effort stays: no memory left"
    assert record.getMessage().startswith(message)
    assert compiled == [0]


def test_errors_of_the_quick_program_reach_the_caller():
    wrong = {"xla_cpu_another_option": True}
    with pytest.raises(phlox.errors.CompilerOptionError, match="another_option"):
        jit(lambda x: x + 43.0, compiler_options=wrong, compile_effort="tiered")(1.0)


def test_over_devices(compiled, held):
    mesh = phlox.sharding.Mesh(np.array(phlox.devices()[:4]), ("a",))
    x = np.arange(32.0, dtype=np.float32).reshape(4, 8)
    placed = phlox.device_put(x, phlox.sharding.NamedSharding(mesh, phlox.sharding.PartitionSpec("a")))
    with phlox.config.scope(compile_effort="tiered"):
        f = jit(lambda x: jnp.sin(x) - x.sum(0))
        g = pmap(lambda x: x - lax.psum(x, "i"), axis_name="i")
        for _ in range(2):
            out = f(placed)
            assert out.sharding.device_set == placed.sharding.device_set
            np.testing.assert_allclose(out, np.sin(x) - x.sum(0), rtol=1e-5)
            np.testing.assert_allclose(g(x), x - x.sum(0), rtol=1e-5)
            held()
        assert compiled.count(0) == compiled.count(None) > 1


def test_programs_with_callbacks_are_compiled_in_full(compiled):
    seen = []

    def f(x):
        phlox.debug.callback(lambda v: seen.append(float(v)), x.sum(), ordered=True)
        return phlox.pure_callback(lambda v: v + 1, phlox.ShapeDtypeStruct(x.shape, x.dtype), x)

    call = jit(f, compile_effort="tiered")
    for k in range(3):
        np.testing.assert_allclose(call(X + k), X + k + 1)
    phlox.effects_barrier()
    np.testing.assert_allclose(seen, [X.sum(), X.sum() + 12, X.sum() + 24], atol=1e-5)
    assert set(compiled) == {None}


def test_references(compiled, held):
    total = phlox.new_ref(jnp.zeros(4))

    @phlox.jit(compile_effort="tiered")
    def add(x):
        total[...] += x.sum(0)

    for _ in range(2):
        add(X)
        held()
    np.testing.assert_allclose(total[...], 2 * X.sum(0), rtol=1e-6)
    assert compiled[:1] == [0]


def test_long_programs_are_compiled_in_full(compiled):
    def long(x, steps):
        return lax.scan(lambda x, _: (jnp.sin(x), None), x, None, length=steps)[0]

    f = jit(long, static_argnums=1, compile_effort="tiered")
    f(np.ones(1000, np.float32), 10)
    assert compiled == [0]
    large = jit(lambda x: long(x, compile_effort.MOST_ELEMENTS // 1000), compile_effort="tiered")
    assert not large.lower(np.ones(1000, np.float32))._lowering._can_be_quick()


def test_debugging_flags_hold(compiled, held):
    f = jit(lambda x: jnp.log(x), compile_effort="tiered")
    with phlox.config.scope(debug_nans=True):
        for _ in range(2):
            f(np.float32(1))
            with pytest.raises(phlox.errors.InvalidValueError, match="log"):
                f(np.float32(-1))
            held()
