"""The wheel, installed by the extra `kernels` of phlox from a folder, without an index."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import library

CORE = Path(library.PACKAGE).parent / "core"
#: Where jaxlib and all else is that the packages need.
LIBRARIES = [path for path in sys.path if path and Path(path).name in ("site-packages", "dist-packages")]


def run(*words, **options):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | options.pop("env", {})
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """A folder with the wheels of core and of the kernels."""
    folder = tmp_path_factory.mktemp("wheels")
    shutil.copy(library.wheel(), folder)
    ignored = shutil.ignore_patterns("tests", "build", "*.egg-info", "__pycache__")
    source = shutil.copytree(CORE, folder / "core", ignore=ignored)
    build = "from setuptools import setup; setup()"
    words = ("-c", build, "--quiet", "bdist_wheel", "--dist-dir", folder)
    run(sys.executable, *words, cwd=source, env={"PYTHONPATH": os.pathsep.join(LIBRARIES)})
    return folder


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The Python of a fresh environment, which has the libraries of this one and no package of the repository."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin/python"
    (installed,) = run(python, "-c", "import site; print(*site.getsitepackages())").split()
    Path(installed, "libraries.pth").write_text("\n".join(LIBRARIES))
    return python


def test_one_wheel_serves_all_versions_of_python():
    assert "-py3-none-" in library.wheel().name


def test_the_extra_installs_kernels_that_doctor_finds(wheels, fresh):
    words = ("install", "--quiet", "--no-index", "--find-links", wheels, "phlox[kernels]")
    run(fresh, "-m", "pip", "--disable-pip-version-check", *words)
    told = json.loads(run(fresh, "-m", "phlox", "doctor", "--json"))
    assert told["kernels"]["state"] == "used"
    assert told["kernels"]["instructions"]
    assert {"sort", "extrema"} <= {check["name"] for check in told["checks"]}
    assert all(check["ok"] for check in told["checks"])
