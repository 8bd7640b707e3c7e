"""The packages installed with pip into empty environments: what comes along, and that it works there."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

# Everything that the named distributions need, by what each says that it needs, and whatever else is installed.
NEEDED = """
import json, sys
from importlib import metadata
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name

def needs(name, extras):
    for text in metadata.requires(name) or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(requirement.name), frozenset(requirement.extras)

found, waiting = set(), [(name, frozenset()) for name in sys.argv[1:]]
while waiting:
    entry = waiting.pop()
    if entry not in found:
        found.add(entry)
        waiting += needs(*entry)
needed = {name for name, _ in found}
installed = {canonicalize_name(each.name) for each in metadata.distributions()} - {"pip", "setuptools"}
print(json.dumps([sorted(needed), sorted(installed)]))
"""


class Environment:
    """A new virtual environment with packages of the repository, installed by one call of pip."""

    def __init__(self, folder, names):
        # pip leaves folders in the sources that it builds from.
        ignored = shutil.ignore_patterns("tests", "build", "*.egg-info", "__pycache__")
        for name in names:
            shutil.copytree(REPOSITORY / "packages" / name, folder / "packages" / name, ignore=ignored)
        self.folder = folder
        self.python = folder / "venv" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=120)
        # Only what the tests import is compiled to bytecode: all of scipy takes longer than they do.
        options = ("--quiet", "--no-compile")
        self.run("-m", "pip", "install", *options, *(f"./packages/{name}" for name in names), timeout=900)

    def run(self, *words, timeout=120):
        env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "XLA_FLAGS")}
        done = subprocess.run(
            [self.python, *words], cwd=self.folder, env=env, capture_output=True, text=True, timeout=timeout
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    def check_packages(self, *names):
        """Nothing is installed that these do not say they need. Returns what is."""
        needed, installed = map(set, json.loads(self.run("-c", NEEDED, *names)))
        assert installed == needed
        return installed


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("core"), ["core"])


@pytest.fixture(scope="module")
def siblings(tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("siblings"), ["core", "compat", "nn", "optim", "data"])


def test_what_core_brings(core):
    installed = core.check_packages("phlox")
    assert {"phlox", "numpy", "ml-dtypes", "jaxlib", "opt-einsum"} <= installed
    assert installed <= {"phlox", "numpy", "ml-dtypes", "jaxlib", "opt-einsum", "scipy"}  # scipy is jaxlib's


def test_core_works_alone(core):
    program = """
import phlox, phlox.numpy as jnp, sys
from pathlib import Path

assert "site-packages" in phlox.__file__
assert Path(phlox.__file__).with_name("py.typed").exists()
x = phlox.random.normal(phlox.random.key(0), (3,))
gradient = phlox.jit(phlox.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)))(x)
assert jnp.allclose(gradient, 2 * jnp.tanh(x) * (1 - jnp.tanh(x) ** 2), atol=1e-6)
print(phlox.vmap(lambda x: x + 1)(jnp.arange(3)).tolist(), "jax" in sys.modules)
"""
    assert core.run("-c", program) == "[1, 2, 3] False"


def test_core_alone_says_where_libraries_run(core):
    program = """
import phlox
try:
    phlox.adopt("optax")
except phlox.errors.MissingNameError as error:
    print(error.instead, hasattr(phlox, "interpreters"))
"""
    assert core.run("-c", program) == "pip install phlox-compat False"


def test_what_the_siblings_bring(siblings):
    installed = siblings.check_packages("phlox", "phlox-compat", "phlox-nn", "phlox-optim", "phlox-data")
    assert {"phlox", "phlox-compat", "phlox-nn", "phlox-optim", "phlox-data", "optax"} <= installed
    # the extras
    assert not installed & {"orbax-checkpoint", "torch", "tensorflow", "tensorflow-cpu", "tensorflow-datasets"}


def test_the_siblings_work_together(siblings):
    program = """
import sys
from pathlib import Path
import numpy as np
import phlox, phlox.numpy as jnp
import phlox_compat, phlox_nn as nn, phlox_optim as optim, phlox_data as data

for package in (phlox, phlox_compat, nn, optim, data):
    assert "site-packages" in package.__file__
    assert Path(package.__file__).with_name("py.typed").exists()

model = nn.Sequential(nn.Linear(2, 8), nn.selu, nn.Linear(8, 1))
params = model.init(phlox.random.key(0))
adam = optim.adam(0.05)
state = adam.init(params)

@phlox.jit
def step(params, state, x, y):
    loss, gradients = phlox.value_and_grad(lambda params: jnp.mean((model.apply(params, x)[:, 0] - y) ** 2))(params)
    updates, state = adam.update(gradients, state, params)
    return optim.apply_updates(params, updates), state, loss

x = np.random.default_rng(0).normal(size=(64, 2)).astype("float32")
losses = []
for epoch in range(20):
    for inputs, outputs in data.batches((x, x[:, 0] * 2), batch_size=16, seed=0).epoch(epoch):
        params, state, loss = step(params, state, inputs, outputs)
        losses.append(float(loss))
print(losses[-1] < 0.1 * losses[0], "jax" in sys.modules)
"""
    assert siblings.run("-c", program) == "True False"


def test_a_missing_extra_says_how_to_install_it(siblings):
    program = """
import phlox_data, phlox_optim
for ask in (
    lambda: phlox_data.require("torch"),
    lambda: phlox_optim.checkpoint.CheckpointManager("nowhere"),
):
    try:
        ask()
    except ImportError as error:
        print(error.command)
"""
    assert siblings.run("-c", program) == 'pip install torch\npip install "phlox-optim[checkpoint]"'
