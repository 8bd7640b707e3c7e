"""Configuration: updates, scopes, environment, names with JAX's prefix, and independence of threads."""

import os
import subprocess
import sys
import threading

import pytest

import phlox
import phlox.numpy as jnp
from phlox import config, errors


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
    with pytest.raises(AttributeError):
        config.no_such_flag
    jnp.ones(1)
    with pytest.raises(errors.ConfigError, match="before the first device"):
        config.update("num_cpu_devices", 3)
    assert set(config.flags()) >= {"enable_x64", "num_cpu_devices"}
    assert "enable_x64=False" in repr(config)


def test_environment_gives_first_values():
    program = "import phlox, phlox.numpy as jnp; print(jnp.ones(1).dtype, phlox.device_count(), phlox.config.platforms)"
    environment = {**os.environ, "PHLOX_ENABLE_X64": "1", "PHLOX_NUM_CPU_DEVICES": "3", "PHLOX_PLATFORMS": "cpu"}
    source = os.path.dirname(os.path.dirname(phlox.__file__))
    environment["PYTHONPATH"] = source
    out = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["float64", "3", "cpu"]
    environment["PHLOX_ENABLE_X64"] = "perhaps"
    out = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert out.returncode != 0
    assert "enable_x64" in out.stderr


def test_rank_promotion():
    with phlox.numpy_rank_promotion("raise"), pytest.raises(errors.ShapeError):
        jnp.ones((2, 3)) + jnp.ones(3)
    with phlox.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="different rank"):
        jnp.ones((2, 3)) + jnp.ones((3,))
    assert (jnp.ones((2, 3)) + jnp.ones(3)).shape == (2, 3)


def test_matmul_precision_reaches_the_program():
    f = phlox.jit(lambda x: x @ x)
    with phlox.default_matmul_precision("highest"):
        assert "precision = [HIGHEST, HIGHEST]" in f.lower(jnp.ones((2, 2))).as_text()
    assert "precision = [DEFAULT, DEFAULT]" in f.lower(jnp.ones((2, 2))).as_text()
