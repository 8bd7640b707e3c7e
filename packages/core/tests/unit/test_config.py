"""Configuration: updates, scopes, environment, names with JAX's prefix, and independence of threads."""

import logging
import os
import re
import subprocess
import sys
import threading

import pytest

import phlox
import phlox.numpy as jnp
from phlox import config, errors
from phlox._base import config as settings, inert_flags


def test_update_scope_and_read():
    assert config.enable_x64 is False
    config.update("jax_enable_x64", True)
    assert config.jax_enable_x64 is True
    assert jnp.ones(1).dtype == "float64"
    with config.scope(enable_x64=False):
        assert jnp.ones(1).dtype == "float32"
        with phlox.enable_x64(True):
            assert jnp.ones(1).dtype == "float64"
        config.update("numpy_rank_promotion", "raise")
        assert config.numpy_rank_promotion == "raise", "an update is seen inside of a scope of another flag"
        assert config.enable_x64 is False
    assert config.enable_x64 is True


def test_a_scope_begins_where_its_block_does():
    made_before = phlox.numpy_rank_promotion("raise")
    with phlox.enable_x64(True):
        with made_before:
            assert config.numpy_rank_promotion == "raise" and jnp.ones(1).dtype == "float64"
        assert config.enable_x64 is True


def test_scopes_belong_to_one_thread():
    seen = []
    with phlox.enable_x64(True):
        thread = threading.Thread(target=lambda: seen.append(jnp.ones(1).dtype.name))
        thread.start()
        thread.join()
    assert seen == ["float32"]


def test_wrong_flags_and_values():
    with pytest.raises(errors.ConfigError, match="enable_x64"):
        config.update("enable_x65", True)
    with pytest.raises(errors.ConfigError):
        config.update("enable_x64", "maybe")
    with pytest.raises(errors.ConfigError):
        config.update("numpy_rank_promotion", "shout")
    with pytest.raises(errors.ConfigError, match="default_device"):
        phlox.default_device(3).__enter__()
    with pytest.raises(AttributeError):
        config.no_such_flag
    with pytest.raises(errors.ConfigError, match=r"instead: config.update\('jax_enable_x64', ...\)"):
        config.jax_enable_x64 = True
    jnp.ones(1)
    with pytest.raises(errors.ConfigError, match="before the first device"):
        config.update("num_cpu_devices", 3)
    assert set(config.flags()) >= {"enable_x64", "num_cpu_devices"}
    assert "enable_x64=False" in repr(config)


def started(**environment):
    """A process that says what it found, with these variables and none of ours or jax's beside them."""
    program = "import phlox, phlox.numpy as jnp; print(jnp.ones(1).dtype, phlox.device_count(), phlox.config.platforms)"
    rest = {name: value for name, value in os.environ.items() if not name.startswith(("PHLOX_", "JAX_", "XLA_"))}
    source = os.path.dirname(os.path.dirname(phlox.__file__))
    environment = {**rest, "PYTHONPATH": source, **environment}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)


def test_environment_gives_first_values():
    out = started(PHLOX_ENABLE_X64="1", PHLOX_NUM_CPU_DEVICES="3", PHLOX_PLATFORMS="cpu")
    assert out.stdout.split() == ["float64", "3", "cpu"]
    assert not out.stderr
    out = started(PHLOX_ENABLE_X64="perhaps")
    assert out.returncode != 0
    assert "enable_x64" in out.stderr


def test_jaxs_variables_stand_in_for_ours():
    out = started(JAX_ENABLE_X64="true", JAX_NUM_CPU_DEVICES="-1", JAX_PLATFORMS="cpu", JAX_COMPILATION_CACHE_DIR="/no")
    assert out.stdout.split() == ["float64", "1", "cpu"]
    assert not out.stderr
    assert started(JAX_ENABLE_X64="1", PHLOX_ENABLE_X64="0").stdout.split()[0] == "float32"
    out = started(JAX_NUMPY_RANK_PROMOTION="shout")
    assert "JAX_NUMPY_RANK_PROMOTION=shout is not followed" in out.stderr
    assert out.returncode == 0


def test_the_first_platform_that_is_there():
    assert started(PHLOX_PLATFORMS="no_such, cpu").stdout.split()[1] == "1"
    assert "none of the platforms 'no_such'" in started(JAX_PLATFORMS="no_such").stderr


def test_misspelt_variables_are_told_once():
    err = started(PHLOX_ENABL_X64="1", PHLOX_COLOUR="red", PHLOX_TEST_CASES="3").stderr
    assert err.count("PHLOX_ENABL_X64 has no effect; did you mean PHLOX_ENABLE_X64?") == 1
    assert err.count("PHLOX_COLOUR has no effect, as there is no such flag") == 1
    assert "PHLOX_TEST_CASES" not in err


def test_rank_promotion():
    with phlox.numpy_rank_promotion("raise"), pytest.raises(errors.ShapeError):
        jnp.ones((2, 3)) + jnp.ones(3)
    with phlox.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="automatic rank promotion"):
        jnp.ones((2, 3)) + jnp.ones((3,))
    assert (jnp.ones((2, 3)) + jnp.ones(3)).shape == (2, 3)


def test_matmul_precision_reaches_the_program():
    f = phlox.jit(lambda x: x @ x)
    with phlox.default_matmul_precision("highest"):
        assert "precision = [HIGHEST, HIGHEST]" in f.lower(jnp.ones((2, 2))).as_text()
    assert "precision = [DEFAULT, DEFAULT]" in f.lower(jnp.ones((2, 2))).as_text()


BOOLEANS = ["debug_nans", "debug_infs", "check_tracer_leaks", "enable_checks", "log_compiles", "explain_cache_misses"]


@pytest.mark.parametrize("name", [*BOOLEANS, "no_tracing", "no_execution", "enable_custom_prng", "enable_x64"])
def test_states(name):
    """What JAX calls a State: a context manager of one flag, with its value."""
    state = getattr(phlox, name)
    assert state.value is False
    with state(True):
        assert state.value is True
        assert getattr(config, f"jax_{name}") is True
        with state(False):
            assert state.value is False
    assert state.value is False
    assert name in repr(state)
    with pytest.raises(errors.ConfigError, match=name):
        state("maybe")


#: Options of JAX that have no effect: (default, another value).
INERT = {
    "softmax_custom_jvp": (False, True),
    "auto_pcast": (True, False),
    "jax2tf_associative_scan_reductions": (False, True),
    "array_garbage_collection_guard": (None, "fatal"),
}


@pytest.mark.parametrize("name", INERT)
def test_options_without_effect_are_scoped_as_others(name):
    default, other = INERT[name]
    state = getattr(phlox, name)
    assert state.value == default
    with state(other):
        assert state.value == other
        with phlox.enable_x64(True), phlox.config.scope(**{name: default}):
            assert config.read(name) == default
        assert state.value == other
    assert state.value == default


def test_options_without_effect_have_the_values_of_jax():
    wrong = {
        "jax_array_garbage_collection_guard": "never",
        "jax_error_checking_behavior_nan": None,
        "jax_optimization_level": 1,
        "jax_persistent_cache_min_compile_time_secs": "long",
        "jax_traceback_in_locations_limit": "1.5",
    }
    for name, value in wrong.items():
        before = config.read(name)
        with pytest.raises(errors.ConfigError, match=name.removeprefix("jax_")):
            config.update(name, value)
        assert config.read(name) == before


def test_options_without_effect_are_told_once(caplog):
    inert_flags.note.cache_clear()  # other tests of this process may have set the option
    with caplog.at_level("DEBUG", logger="phlox"):
        for value in (0.5, 0.25, 1.0):
            config.update("jax_persistent_cache_min_compile_time_secs", value)
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
    assert "jax_persistent_cache_min_compile_time_secs is accepted, and has no effect" in caplog.text
    assert config.jax_persistent_cache_min_compile_time_secs == 1.0
    config.update("jax_pjrt_client_create_options", {"a": 1})
    assert config.read("pjrt_client_create_options") == "{'a': 1}"


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [("logging_level", "DEBUG", 10), ("logging_level", "ERROR", 40), ("debug_log_modules", "jax._src.dispatch,x", 10)],
)
def test_levels_of_logs(name, value, level, caplog):
    logger = logging.getLogger("phlox")
    before = logger.level, list(logger.handlers)
    config.update(name, value)
    phlox.jit(lambda x: x + 1)(1)
    assert logger.level == level and len(logger.handlers) == len(before[1]) + 1
    assert ("Finished tracing" in caplog.text) == (level == 10)
    config.update(name, None)
    assert (logger.level, logger.handlers) == before
    with pytest.raises(errors.ConfigError):
        config.update("logging_level", "loud")


@pytest.mark.parametrize(
    ("modes", "has_locations", "expected"),
    [
        ("stablehlo", True, {"sin_compile.mlir": 'loc("jit(sin)/sin"'}),
        ("stablehlo", False, {"sin_compile.mlir": "stablehlo.sine"}),
        ("jaxpr,stablehlo", False, {"sin_compile.mlir": "stablehlo.sine", "sin.jaxpr.txt": "= sin a"}),
    ],
)
def test_programs_are_dumped(modes, has_locations, expected, tmp_path):
    def sin(x):
        return phlox.numpy.sin(x)

    folder = tmp_path / "dumps"
    config.update("jax_dump_ir_to", str(folder))
    try:
        with config.scope(dump_ir_modes=modes, include_debug_info_in_dumps=has_locations):
            f = phlox.jit(sin)
            f(1.0), f(2.0)
    finally:
        config.update("jax_dump_ir_to", "")
    texts = {re.sub(r".*\d_(jit_)?", "", file.name): file.read_text() for file in folder.iterdir()}
    assert texts.keys() == expected.keys()
    for name, part in expected.items():
        assert part in texts[name] and (("loc(" in texts[name]) == (has_locations and name.endswith("mlir")))


def test_names_that_jax_has_twice():
    assert config.x64_enabled is False
    with phlox.enable_x64(True):
        assert config.x64_enabled is True
    with config.scope(jax_platform_name="cpu"):
        assert config.platforms == config.jax_platform_name == "cpu"


def test_explicit_64_bit_types():
    with config.scope(explicit_x64_dtypes="error"):
        with pytest.raises(errors.DtypeError, match="zeros: Explicitly requested dtype float64 is not available"):
            jnp.zeros(3, "float64")
        with pytest.raises(errors.DtypeError, match="int64"):
            jnp.ones(3).astype("int64")
        assert jnp.zeros(3, float).dtype == "float32", "Python's types name no width"
    with config.scope(explicit_x64_dtypes="allow"):
        x = jnp.full(3, 1 / 3, "float64")
        assert x[0] == 1 / 3
        assert {(x + 1).dtype, (x * jnp.ones(3)).dtype, jnp.sin(x).dtype, (x @ x).dtype} == {x.dtype}
        assert jnp.ones(3).dtype == "float32"


def test_seeds_have_an_offset_and_gumbel_numbers_a_range():
    key = phlox.random.key(5)
    with config.scope(random_seed_offset=3):
        assert (phlox.random.key_data(phlox.random.key(2)) == phlox.random.key_data(key)).all()
    with config.scope(high_dynamic_range_gumbel=True):
        found = phlox.random.gumbel(key, (4,))
    assert (found == phlox.random.gumbel(key, (4,), mode="high")).all()
    assert (found != phlox.random.gumbel(key, (4,))).any()


def test_one_guard_sets_three():
    names = [f"transfer_guard_{way}" for way in ("host_to_device", "device_to_device", "device_to_host")]
    with phlox.transfer_guard("disallow"):
        assert [config.read(name) for name in names] == ["disallow"] * 3
        with phlox.transfer_guard_host_to_device("log"):
            assert [config.read(name) for name in names] == ["log", "disallow", "disallow"]
    config.update("jax_transfer_guard", "log")
    assert [config.read(name) for name in names] == ["log"] * 3
    config.update("transfer_guard", None)
    assert [config.read(name) for name in names] == [None] * 3
    with pytest.raises(errors.ConfigError, match="disallow_explicit"):
        phlox.transfer_guard("forbid")


def test_fingerprints_change_with_their_flags_only():
    here = settings.current()
    fingerprints = {
        "enable_x64": (True, {"trace", "call"}),
        "debug_nans": (True, {"execution", "call"}),
        "default_device": (phlox.devices()[0], {"trace", "execution", "call"}),
        "log_compiles": (True, set()),
        "transfer_guard": ("disallow", {"execution", "call"}),
    }
    for name, (value, changed) in fingerprints.items():
        with config.scope(**{name: value}):
            there = settings.current()
        differ = {
            kind
            for kind in ("trace", "execution", "call")
            if getattr(here, f"{kind}_fingerprint") is not getattr(there, f"{kind}_fingerprint")
        }
        assert differ == changed


def test_user_contexts():
    context, other = phlox.make_user_context(1.0), phlox.make_user_context()
    traced = []

    @phlox.jit
    def f(x):
        traced.append((context.value, other.value))
        return x * context.value

    assert f(2.0) == 2
    with context(3.0):
        assert f(2.0) == 6
        with other("b"), context(4.0):
            assert (f(2.0), context.value, other.value) == (8, 4.0, "b")
        assert f(2.0) == 6
    assert f(2.0) == 2
    assert traced == [(1.0, None), (3.0, None), (4.0, "b")]
    context.set_global(5.0)
    assert (f(2.0), context.value, context.get_global()) == (10, 5.0, 5.0)
    with context(1.0):
        assert f(2.0) == 2
    assert (other.value, context.value) == (None, 5.0)


DEBUGGING = """
import phlox, phlox.numpy as jnp
try:
    phlox.jit(lambda x: jnp.log(x))(-1.0)
except FloatingPointError as error:
    print(error.primitive)
print(phlox.config.transfer_guard_host_to_device, phlox.config.transfer_guard_device_to_host, phlox.config.log_compiles)
"""


def test_user_contexts_with_equal_values():
    context = phlox.make_user_context(0)
    for value in (1, True, 1.0, 1):
        with context(value):
            assert type(context.value) is type(value)


def test_settings_of_scopes_are_remembered():
    def inside(**changes):
        with settings.scope(**changes):
            return settings.current()

    once = inside(default_matmul_precision="high")
    assert inside(default_matmul_precision="high") is once
    config.update("jax_enable_x64", True)
    try:
        again = inside(default_matmul_precision="high")
        assert again is not once
        assert (again.enable_x64, again.default_matmul_precision) == (True, "high")
    finally:
        config.update("jax_enable_x64", False)
    for n in range(300):
        assert inside(compilation_cache_max_size=n).compilation_cache_max_size == n
    assert 0 < len(settings.global_settings._replaced) <= 64


def test_environment_for_debugging():
    source = os.path.dirname(os.path.dirname(phlox.__file__))
    given = {
        "DEBUG_NANS": "true",
        "TRANSFER_GUARD": "log",
        "TRANSFER_GUARD_DEVICE_TO_HOST": "allow",
        "LOG_COMPILES": "1",
    }
    environment = {**os.environ, "PYTHONPATH": source, **{f"PHLOX_{name}": value for name, value in given.items()}}
    run = [sys.executable, "-c", DEBUGGING]
    out = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["log", "log", "allow", "True"]
    assert "Compiling jit(<lambda>) with global shapes and types [f32[]]" in out.stderr
    environment["PHLOX_TRANSFER_GUARD"] = "shout"
    out = subprocess.run(run, env=environment, capture_output=True, text=True)
    assert out.returncode != 0
    assert "transfer_guard" in out.stderr
