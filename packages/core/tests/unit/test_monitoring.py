"""Hearing of what happens: phlox.monitoring, the logs of compiling and of cache misses, and guards of transfers."""

import logging

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import errors, monitoring
from phlox._xla import transfer_guard as permission
from phlox._xla.transfer import buffer_to_numpy

STAGES = ["jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration"]
X = np.ones(3, np.float32)


@pytest.fixture(autouse=True)
def without_listeners():
    yield
    monitoring.clear_event_listeners()


# --- monitoring ---------------------------------------------------------------------------------------------


def test_listeners_of_each_kind():
    heard = []

    def listener(event, *values, **metadata):
        heard.append((event, values, metadata))

    kinds = ["event", "event_duration_secs", "event_time_span", "scalar"]
    for kind in kinds:
        getattr(monitoring, f"register_{kind}_listener")(listener)
    monitoring.record_event("/a", who="me")
    monitoring.record_event_duration_secs("/b", 0.5)
    monitoring.record_event_time_span("/c", 1.0, 2.0, n=3)
    monitoring.record_scalar("/d", 7)
    assert heard == [("/a", (), {"who": "me"}), ("/b", (0.5,), {}), ("/c", (1.0, 2.0), {"n": 3}), ("/d", (7,), {})]
    for kind in ["event", "event_duration", "event_time_span", "scalar"]:
        getattr(monitoring, f"unregister_{kind}_listener")(listener)
        with pytest.raises(AssertionError):
            getattr(monitoring, f"unregister_{kind}_listener")(listener)
    monitoring.record_event("/a")
    assert len(heard) == 4


def test_clearing():
    heard = []
    monitoring.register_scalar_listener(lambda *a, **k: heard.append(a))
    monitoring.register_event_listener(lambda *a, **k: heard.append(a))
    monitoring.clear_event_listeners()
    monitoring.record_scalar("/a", 1)
    monitoring.record_event("/a")
    assert not heard


def test_stages_of_a_program_are_recorded(tmp_path):
    durations, events = [], []
    monitoring.register_event_duration_secs_listener(lambda name, secs, **data: durations.append((name, secs, data)))
    monitoring.register_event_listener(lambda name, **data: events.append(name.removeprefix("/jax/compilation_cache/")))

    def my_function(x):
        return x * 3.25

    with phlox.config.scope(compilation_cache_dir=str(tmp_path)):
        phlox.jit(my_function)(X)
        mine = [(name, secs) for name, secs, data in durations if data.get("fun_name") == "my_function"]
        assert [name for name, _ in mine] == [f"/jax/core/compile/{stage}" for stage in STAGES]
        assert all(secs >= 0 for _, secs in mine)
        assert events[-2:] == ["compile_requests_use_cache", "cache_misses"]
        phlox.jit(lambda x: x * 1)  # nothing happens before the call
        phlox.jit(my_function).clear_cache()
        phlox.jit(my_function)(X)
        assert events[-2:] == ["compile_requests_use_cache", "cache_hits"]
        assert durations[-2][0] == "/jax/compilation_cache/cache_retrieval_time_sec"
    count = len(durations)
    phlox.jit(my_function)(X)
    assert len(durations) == count


# --- logs ---------------------------------------------------------------------------------------------------


def messages(caplog):
    found = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    caplog.clear()
    return found


def test_log_compiles(caplog):
    def scaled(x):
        return x * 2.5

    phlox.jit(lambda x: x - 1)(X)
    assert not messages(caplog)
    with phlox.log_compiles(True):
        f = phlox.jit(scaled)
        f(X)
        told = messages(caplog)
        assert "Compiling jit(scaled) with global shapes and types [f32[3]]" in told
        assert [text.split(" in ")[0] for text in told if text.startswith("Finished")] == [
            "Finished tracing scaled for jit",
            "Finished lowering of jit(scaled)",
            "Finished XLA compilation of jit(scaled)",
        ]
        f(X)
        assert not messages(caplog)
    assert {record.name for record in caplog.records} <= {"phlox"}


def test_explain_cache_misses(caplog):
    @phlox.jit
    def f(x, n=1):
        return jnp.sum(x["a"] if isinstance(x, dict) else x)

    g = phlox.jit(lambda x, n: x * n, static_argnames="n")
    x32 = jnp.asarray(X)
    i32, square = jnp.ones(3, jnp.int32), jnp.ones((2, 2))
    g(x32, n=2)
    cases = [
        (lambda: f(x32), ["f at", "test_monitoring.py", "it has not been traced before"]),
        (lambda: f(i32), ["different input types: at x, now i32[3] and before f32[3] (another dtype)"]),
        (lambda: f(square), ["at x, now f32[2,2] and before", "(another shape)"]),
        (lambda: f({"a": x32}), ["different input pytree: now", "'a'"]),
        (lambda: g(x32, n=3), ["different value of static arguments: now {n: 3} and before {n: 2}"]),
        (lambda: f(1.0), ["now f32[]{weak_type=True}"]),
    ]
    with phlox.explain_cache_misses(True):
        for run, words in cases:
            run()
            (text,) = (t for t in messages(caplog) if t.startswith(("Tracing f ", "Tracing <lambda> ")))
            for word in words:
                assert word in text
            run()
            assert not messages(caplog)
        with phlox.default_matmul_precision("highest"):
            f(x32)
        assert "tracing context: default_matmul_precision, now highest and before None" in messages(caplog)[0]
        phlox.vmap(lambda x: f(x), axis_name="i")(x32)
        assert "mapped axes: now (('i', 3),) and before ()" in messages(caplog)[0]
    f(jnp.ones(4))
    assert not messages(caplog)


# --- transfers ----------------------------------------------------------------------------------------------

double = phlox.jit(lambda x: x * 2)
IMPLICIT = {
    "a NumPy array for jit": lambda x: double(X),
    "a number for jit": lambda x: double(2.0),
    "a NumPy array meets an array": lambda x: x + X,
    "a number meets an array": lambda x: x + 1,
    "asarray": lambda x: jnp.asarray(X),
    "a seed": lambda x: phlox.random.key(7),
}
EXPLICIT = {"device_put": lambda x: phlox.device_put(X), "device_put of a number": lambda x: phlox.device_put(1.0)}
FREE = {
    "an array for jit": lambda x: double(x),
    "a function of jnp": lambda x: jnp.sin(x),
    "a slice": lambda x: x[1:],
    "arange": lambda x: jnp.arange(4),
    "device_put without a place": lambda x: phlox.device_put(x),
    # Arrays on CPU lie in the host's memory, in jax too:
    "device_get": lambda x: phlox.device_get(x),
    "float": lambda x: float(double(x[:1]).sum()),
    "asarray of NumPy": lambda x: np.asarray(double(x)),
    "repr": lambda x: repr(x),
}


@pytest.fixture
def array():
    x = jnp.asarray(X)
    for run in (IMPLICIT | EXPLICIT | FREE).values():
        run(x)
    return x


@pytest.mark.parametrize("name", IMPLICIT | EXPLICIT | FREE)
def test_host_to_device(name, array, caplog):
    run = (IMPLICIT | EXPLICIT | FREE)[name]
    refused = {
        "allow": {},
        "log": {},
        "disallow": IMPLICIT,
        "log_explicit": {},
        "disallow_explicit": IMPLICIT | EXPLICIT,
    }
    logged = {"log": IMPLICIT, "log_explicit": IMPLICIT | EXPLICIT}
    for level, names in refused.items():
        for guard in (phlox.transfer_guard, phlox.transfer_guard_host_to_device):
            caplog.clear()
            with guard(level):
                if name in names:
                    with pytest.raises(errors.TransferError, match="host-to-device") as info:
                        run(array)
                    assert info.value.direction == "host_to_device"
                    assert isinstance(info.value, errors.JaxRuntimeError)
                else:
                    run(array)
            assert bool(caplog.records) == (name in logged.get(level, {}))
            assert all("host-to-device transfer of" in record.getMessage() for record in caplog.records)


def test_guards_of_other_directions_let_these_pass(array):
    with phlox.transfer_guard_device_to_host("disallow_explicit"), phlox.transfer_guard_device_to_device("disallow"):
        for run in (IMPLICIT | EXPLICIT | FREE).values():
            run(array)


def test_each_use_is_logged(array, caplog):
    with phlox.transfer_guard("log"):
        double(2.0)
        double(2.0)
    assert len(caplog.records) == 2


def test_device_to_device(array):
    there = phlox.devices()[1]
    with phlox.transfer_guard_device_to_device("disallow"):
        moved = phlox.device_put(array, there)
    with phlox.transfer_guard_device_to_device("disallow_explicit"):
        with pytest.raises(errors.TransferError, match="explicit device-to-device"):
            phlox.device_put(array, there)
        mesh = phlox.sharding.Mesh(np.array(phlox.devices()[:1]), ("i",))
        phlox.device_put(array, phlox.NamedSharding(mesh, phlox.P("i")))  # the same parts, as in jax
        phlox.device_put(array, array.sharding)
    assert (np.asarray(moved) == array).all()


def test_device_to_host_where_it_is_a_transfer(array, monkeypatch):
    """A device that is not the host, as far as the guard can see."""

    buffer = jnp.ones(2, jnp.bfloat16)  # not read as memory of the host

    (cpu,) = buffer.sharding.devices
    gpu = type("Device", (), {"platform": "gpu", "process_index": 0, "client": cpu.client})()

    class Elsewhere:
        devices = (gpu,)
        is_fully_addressable = True
        is_unreduced = False
        devices_indices_map = staticmethod(lambda shape: {gpu: (slice(None),)})

    read = lambda: buffer_to_numpy(buffer._buf, buffer.aval, Elsewhere)
    with phlox.transfer_guard_device_to_host("disallow"):
        with pytest.raises(errors.TransferError, match=r"implicit device-to-host transfer of bf16\[2\]"):
            read()
        with permission.explicit():
            read()
    with phlox.transfer_guard("disallow_explicit"), permission.explicit(), pytest.raises(errors.TransferError):
        read()
    assert read().shape == (2,)
