"""The package as tests use it: installed, or built from its sources into a temporary folder."""

import functools
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
SOURCES = [str(PACKAGE.parent / name / "src") for name in ("core", "kernels")]


@functools.cache
def folder():
    """A folder with the package `phlox_kernels` and its library, for the path of Python; else the test is skipped."""
    spec = importlib.util.find_spec("phlox_kernels")
    if spec is not None and list(Path(spec.origin).parent.glob("_kernels.*")):
        return str(Path(spec.origin).parents[1])
    compiler = shlex.split(os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++")[0]
    if shutil.which(compiler) is None:
        pytest.skip(f"no C++ compiler to build the kernels with: {compiler} is not on the PATH")
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("no setuptools to build the kernels with")
    built = Path(tempfile.mkdtemp(prefix="phlox-kernels-"))
    words = ("setup.py", "--quiet", "build_ext", "--build-lib", built, "--build-temp", built / "objects")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # jaxlib and setuptools, wherever they are
    done = subprocess.run([sys.executable, *words], cwd=PACKAGE, env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    shutil.copy(PACKAGE / "src/phlox_kernels/__init__.py", built / "phlox_kernels")
    return str(built)
