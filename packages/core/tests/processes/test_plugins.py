"""Plugins of other platforms: how they are found and started, with stand-ins, as there is no accelerator here.

A stand-in is a package whose client is jaxlib's own for the CPU, with three devices.
"""

import json

import pytest
from jaxlib.version import __version__ as JAXLIB

from core_processes import BLOCK_JAX, SOURCE, run

#: registers itself as packages do that are written for jax
PLUGIN = """
import jax._src.xla_bridge as xb
from jax._src.lib import xla_client

def make():
    return xla_client.make_cpu_client(num_devices=3)

def initialize():
    xb.register_backend_factory("mock", make, priority=PRIORITY, fail_quietly=False)
"""


@pytest.fixture
def package(tmp_path):
    """Makes an installed package of a plugin; returns the changes of the environment with which it is found."""

    def make(module, text="", name="mock-plugin", version="1.2", entry=True, **files):
        folder = tmp_path.joinpath(*module.split("."))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text(text)
        for file, content in files.items():
            (folder / file.replace("__", ".")).write_text(content)
        if entry:
            facts = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
            facts.mkdir()
            (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            (facts / "entry_points.txt").write_text(
                f"[console_scripts]\na = b\n[jax_plugins]\nx = {module}\n[more]\nc = d\n"
            )
        return {"PYTHONPATH": f"{SOURCE}:{tmp_path}", "PHLOX_PLATFORMS": None}

    return make


def lines(program, **changes):
    done = run(
        BLOCK_JAX + program, **{"XLA_FLAGS": None, "PHLOX_NUM_CPU_DEVICES": None, "JAX_PLATFORMS": None, **changes}
    )
    return done.stdout.splitlines(), done.stderr.splitlines()


SHOW = """
import sys
import phlox, phlox.numpy as jnp
print(len(phlox.devices()), len(phlox.devices("cpu")), phlox.device_count("mock"))
there, here = phlox.devices("mock")[2], phlox.devices("cpu")[0]
x = phlox.device_put(jnp.arange(3.0), there)
y = phlox.device_put(x, here)
print((x * 2).tolist(), (x * 2).devices() == {there}, y.tolist(), y.devices() == {here})
print(float(phlox.jit(lambda x: x.sum())(x)), sorted(name for name in sys.modules if name.split(".")[0] == "jax"))
"""


@pytest.mark.parametrize(("priority", "default"), [(400, 3), (-1, 1)])
def test_a_package_registers_itself(priority, default, package):
    """It is the default platform if it is preferred; both platforms work side by side, and jax is not imported."""
    changes = package("mock_plugin", PLUGIN.replace("PRIORITY", str(priority)))
    out, err = lines(SHOW, **changes)
    assert out == [f"{default} 1 3", "[0.0, 2.0, 4.0] True [0.0, 1.0, 2.0] True", "3.0 []"] and not err
    out, _ = lines("import phlox; print(len(phlox.devices()))", **{**changes, "PHLOX_PLATFORMS": "cpu"})
    assert out == ["1"]


def test_the_namespace_without_entry_points(package):
    changes = package("jax_plugins.mine", PLUGIN.replace("PRIORITY", "5"), entry=False)
    assert lines("import phlox; print(phlox.device_count('mock'))", **changes) == (["3"], [])


def test_packages_that_fail(package):
    changes = package("broken", "import no_such_module")
    out, err = lines("import phlox; print(phlox.devices()[0].platform)", **changes)
    assert out == ["cpu"]
    assert err == ["mock-plugin 1.2 fails: ModuleNotFoundError: No module named 'no_such_module'"]


def test_a_client_that_does_not_start(package):
    failing = PLUGIN.replace("PRIORITY", "400").replace("return xla", "raise RuntimeError('no chip')\n    return xla")
    program = """
import phlox
for platform in (None, "mock", "nonsense"):
    try:
        phlox.devices(platform)
    except phlox.errors.BackendError as error:
        print(error)
print(phlox.devices("cpu")[0].platform)
"""
    out, _ = lines(program, **package("mock_plugin", failing))
    assert [line.split(".")[0] for line in out if "does not start" in line] == [
        "the platform 'mock' of mock-plugin 1",
    ] * 2
    assert "Unknown backend: 'nonsense'" in "".join(out) and out[-1] == "cpu"


def test_libraries_that_a_variable_names(tmp_path):
    config = tmp_path / "mine.json"
    config.write_text(json.dumps({"library_path": str(tmp_path / "missing.so"), "create_option": {"a": 1}}))
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"no library")
    program = """
import phlox
from phlox._xla import plugins
print(sorted(plugins.installed()))
for name in ("mine", "broken"):
    try:
        phlox.devices(name)
    except phlox.errors.BackendError as error:
        print(str(error).splitlines()[0])
print(phlox.devices("cpu")[0].platform)
"""
    named = f"mine:{config},broken:{broken},wrong"
    out, err = lines(program, PJRT_NAMES_AND_LIBRARY_PATHS=named, PHLOX_PLATFORMS=None)
    assert out[0] == "['broken', 'mine']" and out[-1] == "cpu"
    assert "there is no file" in out[1] and "the platform 'broken' of PJRT_NAMES_AND_LIBRARY_PATHS" in out[2]
    assert [line for line in err if "is not understood" in line] == [
        f"PJRT_NAMES_AND_LIBRARY_PATHS={named} is not understood: it takes name:path"
    ]


def test_options_reach_the_library(tmp_path):
    library = tmp_path / "it.so"
    library.write_bytes(b"")
    config = tmp_path / "it.json"
    config.write_text(json.dumps({"library_path": str(library), "create_option": {"memory": 3}}))
    program = """
import jaxlib._jax as native
import phlox
from phlox._xla import plugins
calls = []
class Native:
    pjrt_plugin_loaded = pjrt_plugin_initialized = staticmethod(lambda name: False)
    load_pjrt_plugin = staticmethod(lambda *words: calls.append(words))
    initialize_pjrt_plugin = staticmethod(lambda name: calls.append(name))
    @staticmethod
    def get_c_api_client(name, options, distributed):
        calls.append((name, options, distributed))
        return native.get_tfrt_cpu_client(asynchronous=True, num_devices=2)
plugins.native = Native
print(phlox.device_count("it"), calls[1:])
"""
    out, _ = lines(program, PJRT_NAMES_AND_LIBRARY_PATHS=f"it:{config}", PHLOX_PLATFORMS=None)
    assert out == ["2 ['phlox_it', ('phlox_it', {'memory': 3}, None)]"]


GPU = """
import phlox
from phlox._xla import gpu
gpu.is_visible = lambda: {visible}
print(phlox.devices()[0].platform, len(phlox.devices()))
"""


def test_a_gpu_without_a_plugin():
    out, err = lines(GPU.format(visible=True), PHLOX_PLATFORMS=None)
    assert out == ["cpu 1"] and len(err) == 1
    assert f'pip install "jax-cuda13-plugin[with-cuda]=={JAXLIB}"' in err[0]
    assert lines(GPU.format(visible=False), PHLOX_PLATFORMS=None) == (["cpu 1"], [])


def test_a_plugin_of_another_version(package):
    changes = package("jax_plugins.xla_cuda13", "import jax", "jax-cuda13-pjrt", "0.1.2", xla_cuda_plugin__so="")
    out, err = lines(GPU.format(visible=True), **changes)
    assert out == ["cpu 1"] and len(err) == 1
    assert f"jax-cuda13-pjrt 0.1.2 is made for another jaxlib than {JAXLIB}, and is not used" in err[0]


def test_a_plugin_without_a_gpu_and_memory_options(package):
    """Nothing is loaded without a GPU; with one, the options for memory are those of the variables."""
    changes = package("jax_plugins.xla_cuda13", "import jax", "jax-cuda13-pjrt", JAXLIB, xla_cuda_plugin__so="")
    assert lines(GPU.format(visible=False), **changes) == (["cpu 1"], [])
    program = """
import phlox
from phlox._xla import gpu, plugins
phlox.config.update("cuda_visible_devices", "1,3")
gpu.is_visible, gpu.register_targets = lambda: True, lambda *words: None
started = []
def start(name, library, options):
    import jaxlib._jax as native
    started.append((name, library.rpartition("/")[2], options))
    return native.get_tfrt_cpu_client(asynchronous=True, num_devices=2)
plugins.start = start
print(phlox.device_count(), phlox.device_count("gpu"), phlox.device_count("cuda"), phlox.device_count("cpu"))
(name, library, options), = started
print(name, library, *(options[key] for key in ("allocator", "memory_fraction", "preallocate", "visible_devices")))
"""
    memory = {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    out, _ = lines(program, **changes, **memory, XLA_PYTHON_CLIENT_MEM_FRACTION="0.25")
    assert out == ["2 2 2 1", "cuda xla_cuda_plugin.so platform 0.25 False [1, 3]"]
