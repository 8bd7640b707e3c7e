"""When programs call the kernels, and what happens where the package is missing or broken."""

import os
import shutil
import subprocess
import sys

import numpy as np

import library
import phlox
import phlox.numpy as jnp

X = np.array([3, 1, 2, 1], np.float32)

PROGRAM = """
import numpy as np, phlox, phlox.numpy as jnp
x = np.random.default_rng(0).normal(size=3000).astype("float32")
print("phlox_kernels" in phlox.jit(jnp.sort).lower(x).as_text(), np.array_equal(jnp.sort(x), np.sort(x)))
"""


def run(*folders, program=PROGRAM, **more):
    """What a process prints that has these folders on its path besides phlox; warnings included."""
    others = [path for path in sys.path if path and not os.path.exists(os.path.join(path, "phlox_kernels"))]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*folders, *others]), **more}
    words = [sys.executable, "-W", "always", "-c", program]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def calls(f, *args):
    return "phlox_kernels" in phlox.jit(f).lower(*args).as_text()


def test_the_flag_is_part_of_cache_keys():
    sort = phlox.jit(jnp.sort)
    for _ in range(2):
        for on in (True, False):
            with phlox.config.scope(native_kernels=on):
                assert calls(jnp.sort, X) == on
                assert sort(X).tolist() == [1, 1, 2, 3]
    assert sort._cache_size() == 2


def test_programs_for_other_places_have_no_kernels():
    assert "phlox_kernels" not in phlox.export.export(phlox.jit(jnp.sort))(X).mlir_module()
    mesh = phlox.make_mesh((2,), ("x",), axis_types=(phlox.sharding.AxisType.Auto,))
    x = phlox.device_put(X, phlox.NamedSharding(mesh, phlox.P("x")))
    assert "phlox_kernels" not in phlox.jit(jnp.sort).lower(x).as_text()
    assert jnp.sort(x).tolist() == [1, 1, 2, 3]
    assert "phlox_kernels" not in phlox.jit(lambda x: phlox.lax.top_k(x, 1)).lower(x).as_text()


def test_the_disk_cache_serves_processes_with_and_without_the_package(kernels, tmp_path):
    cache = {"PHLOX_COMPILATION_CACHE_DIR": str(tmp_path), "PHLOX_ENABLE_COMPILATION_CACHE": "1"}
    for folders, expected in (([kernels], "True True"), ([], "False True")):
        for _ in range(2):
            assert run(*folders, **cache)[0] == expected
    assert run(kernels, PHLOX_NATIVE_KERNELS="0", **cache)[0] == "False True"


def test_import_does_not_look_for_the_package(kernels):
    program = "import sys, phlox, phlox.numpy as jnp; jnp.ones(3) + 1; print('phlox_kernels' in sys.modules)"
    assert run(kernels, program=program)[0] == "False"


def test_a_package_without_its_library_is_silent():
    out, warnings = run(library.SOURCES[1])
    assert (out, "phlox-kernels" in warnings) == ("False True", False)


def test_a_broken_library_is_told(kernels, tmp_path):
    shutil.copytree(os.path.join(kernels, "phlox_kernels"), tmp_path / "phlox_kernels")
    (library_file,) = (tmp_path / "phlox_kernels").glob("_kernels.*")
    library_file.write_bytes(b"no library")
    out, warnings = run(str(tmp_path))
    assert out == "False True"
    assert "phlox-kernels is installed but does not work here" in warnings
    # One that lacks a kernel is of another version.
    library_file.unlink()
    init = tmp_path / "phlox_kernels/__init__.py"
    init.write_text("def handlers():\n    return {}\n")
    assert run(str(tmp_path))[0] == "False True"
