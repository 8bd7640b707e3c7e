"""The package as tests use it: installed, or its wheel, built from the sources once for all processes and kept."""

import functools
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
SOURCES = [str(PACKAGE.parent / name / "src") for name in ("core", "kernels")]
#: So many wheels are kept, for a change of the sources and the way back.
_KEPT = 4


@functools.cache
def folder():
    """A folder with the package `phlox_kernels` and its library, for the path of Python; else the test is skipped."""
    spec = importlib.util.find_spec("phlox_kernels")
    if spec is not None and list(Path(spec.origin).parent.glob("_kernels.*")):
        return str(Path(spec.origin).parents[1])
    unpacked = tempfile.mkdtemp(prefix="phlox-kernels-")
    with zipfile.ZipFile(wheel()) as file:
        file.extractall(unpacked)
    return unpacked


@functools.cache
def wheel():
    """The path of the package's wheel; the test is skipped where it cannot be built."""
    compiler = shlex.split(os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++")[0]
    if shutil.which(compiler) is None:
        pytest.skip(f"no C++ compiler to build the kernels with: {compiler} is not on the PATH")
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("no setuptools to build the kernels with")
    kept = _cache() / _digest(compiler)
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix="unfinished-") as unfinished:
            _build(Path(unfinished))
            try:
                os.rename(Path(unfinished) / "wheel", kept)
            except OSError:  # another process was faster
                assert kept.exists()
        finished = [path for path in kept.parent.iterdir() if not path.name.startswith("unfinished-")]
        for old in sorted(finished, key=os.path.getmtime)[:-_KEPT]:
            shutil.rmtree(old, ignore_errors=True)
    (path,) = kept.glob("*.whl")
    return path


def _build(unfinished):
    """Writes the wheel into the folder `wheel`, from a copy: setuptools writes beside what it builds."""
    source = shutil.copytree(PACKAGE, unfinished / "source", ignore=shutil.ignore_patterns("tests", "__pycache__"))
    words = ("setup.py", "--quiet", "bdist_wheel", "--dist-dir", unfinished / "wheel")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # jaxlib and setuptools
    done = subprocess.run([sys.executable, *words], cwd=source, env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr


def _cache():
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "phlox-test-kernels"


def _digest(compiler):
    """A name for what the library depends on."""
    import jaxlib

    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    digest = hashlib.sha256(f"{version} {jaxlib.__version__} {sys.platform} {os.uname().machine}".encode())
    for path in sorted(
        [PACKAGE / "setup.py", PACKAGE / "pyproject.toml", *PACKAGE.glob("cpp/*"), *PACKAGE.glob("src/*/*.py")]
    ):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:20]
