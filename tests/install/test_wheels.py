"""The wheels, installed by name from a folder as from an index: what each says of itself, and what it brings along."""

import email
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
NAMES = {
    "core": "phlox",
    "compat": "phlox-compat",
    "nn": "phlox-nn",
    "models": "phlox-models",
    "optim": "phlox-optim",
    "data": "phlox-data",
    "examples": "phlox-examples",
}
COMPILER = shutil.which((os.environ.get("CXX") or "g++").split()[0])
if COMPILER:  # the test of its use says where there is none
    NAMES["kernels"] = "phlox-kernels"

PROGRAM = """
import phlox, phlox.numpy as jnp, phlox_data, phlox_nn as nn, phlox_optim as optim

def loss(params, batch):
    return (nn.Linear(2, 1).apply(params, batch) ** 2).mean()

step = optim.make_step(loss, optim.sgd(0.1))
train = step.init(nn.Linear(2, 1).init(phlox.random.key(0)))
losses = []
for batch in phlox_data.batches(jnp.ones((64, 2)), batch_size=8):
    train, figures = step(train, batch)
    losses.append(float(figures["loss"]))
print(losses[-1] < losses[0])
"""


def environment():
    """The variables of a process that finds no package of the repository."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "XLA_FLAGS")}


def run(*words):
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


def pip(python, *words):
    return run(python, "-m", "pip", "--disable-pip-version-check", *words)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The Python of a fresh environment, with pip, which the environment of the tests may lack."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder)
    return folder / "bin/python"


@pytest.fixture(scope="module")
def wheels(fresh, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    # pip leaves folders in the sources that it builds from.
    ignored = shutil.ignore_patterns("tests", "build", "*.egg-info", "__pycache__")
    sources = shutil.copytree(REPOSITORY / "packages", folder / "packages", ignore=ignored)
    pip(fresh, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, *(sources / name for name in NAMES))
    return folder


def metadata(wheels, name):
    """The metadata of a wheel, and the names of its files."""
    (path,) = wheels.glob(name.replace("-", "_") + "-[0-9]*.whl")
    with zipfile.ZipFile(path) as file:
        files = file.namelist()
        return email.message_from_bytes(file.read(next(f for f in files if f.endswith("METADATA")))), files


@pytest.mark.parametrize("name", NAMES.values())
def test_what_a_wheel_says(wheels, name):
    found, files = metadata(wheels, name)
    assert found["License-Expression"] == "Apache-2.0"
    assert {line.split(",")[0] for line in found.get_all("Project-URL")} >= {"Documentation", "Source", "Changelog"}
    assert found["Requires-Python"] == ">=3.11"
    for minor in (11, 12, 13):
        assert f"Programming Language :: Python :: 3.{minor}" in found.get_all("Classifier")
    # On an index there is nothing beside the description that a relative link could lead to.
    links = re.findall(r"\]\(([^)]+)\)", found.get_payload())
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert any(file.endswith("licenses/LICENSE") for file in files)
    assert any(file.endswith("py.typed") for file in files)
    assert not [file for file in files if "tests/" in file]


def resolved(fresh, wheels, asked):
    """The names of what pip would install for `asked` in an empty environment."""
    report = wheels / "report.json"
    options = ("--quiet", "--dry-run", "--ignore-installed", "--report", report, "--find-links", wheels)
    pip(fresh, "install", *options, *asked)
    return {item["metadata"]["name"].lower() for item in json.loads(report.read_text())["install"]}


@pytest.mark.parametrize("name", NAMES.values())
def test_a_wheel_brings_its_siblings(fresh, wheels, name):
    installed = resolved(fresh, wheels, [name])
    assert installed >= {name, "phlox", "jaxlib", "numpy"}
    assert installed & set(NAMES.values()) == {name} | siblings(wheels, name)


def siblings(wheels, name):
    """The packages of the repository that one needs, and those that these need."""
    lines = [line for line in metadata(wheels, name)[0].get_all("Requires-Dist") if "extra ==" not in line]
    direct = {line.split("==")[0].split("[")[0] for line in lines} & set(NAMES.values())
    return direct.union(*(siblings(wheels, other) for other in direct))


@pytest.mark.parametrize("name", NAMES.values())
def test_extras_are_found(fresh, wheels, name):
    extras = set(metadata(wheels, name)[0].get_all("Provides-Extra", ()))
    if "kernels" in extras and COMPILER is None:
        pytest.skip("no C++ compiler to build the kernels with: g++ is not on the PATH")
    # Each extra of phlox_examples is that of phlox_data. torch in the version that needs no CUDA, see the README.
    if extras:
        installed = resolved(
            fresh, wheels, [f"{name}[{','.join(sorted(extras))}]", *(["torch==2.13.0"] * ("torch" in extras))]
        )
        assert installed > resolved(fresh, wheels, [name])


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler to build the kernels with: g++ is not on the PATH")
def test_installed_kernels_are_used(fresh, wheels):
    (path,) = wheels.glob("phlox_kernels-*.whl")
    assert "-py3-none-" in path.name  # for all versions of Python
    pip(fresh, "install", "--quiet", "--no-compile", "-f", wheels, "phlox[kernels]")
    program = """
import phlox, phlox.numpy as jnp
print("phlox_kernels" in phlox.jit(jnp.sort).lower(jnp.ones(3)).as_text(), jnp.sort(jnp.array([3, 1, 2])).tolist())
"""
    assert run(fresh, "-c", program) == "True [1, 2, 3]"


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_newer_pythons(wheels, tmp_path, version):
    found = subprocess.run([REPOSITORY / "scripts/find-python", version], capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"no CPython {version} on the PATH or among pyenv's versions")
    run(found.stdout.strip(), "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    pip(python, "install", "--quiet", "--no-compile", "-f", wheels, "phlox-nn", "phlox-optim", "phlox-data")
    assert run(python, "-c", PROGRAM) == "True"
