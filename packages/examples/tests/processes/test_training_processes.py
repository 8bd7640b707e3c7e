"""One training, run by one process, by two and by four, with four devices in sum: the losses are the same.

Data is loaded by shares, parameters are spread over the devices, checkpoints lie in one folder for all. Processes are
killed on the way, and other numbers of them go on from the last checkpoint.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import json, os, signal, sys
import numpy as np
import phlox, phlox.numpy as jnp
import phlox_data as data, phlox_nn as nn, phlox_optim as optim
from phlox import NamedSharding, P
from phlox_optim.checkpoint import CheckpointManager

folder, kill_at, kill_which = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
phlox.distributed.initialize(heartbeat_timeout_seconds=5)
me = phlox.process_index()
devices = phlox.device_count()
assert devices == 4
mesh = phlox.make_mesh((devices,), ("data",), axis_types=(phlox.sharding.AxisType.Auto,))
whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
draw = np.random.default_rng(0)
x = draw.normal(size=(72, 8)).astype(np.float32)
y = np.sin(x @ draw.normal(size=(8, 1))).astype(np.float32)
model = nn.Sequential(nn.Linear(8, 16), nn.tanh, nn.Linear(16, 1))
params = model.init(phlox.random.key(0))
mean = lambda params, batch: jnp.mean((model.apply(params, batch[0]) - batch[1]) ** 2)
found = {"fit": [], "pmap": [], "jit": []}

def number(array):
    return float(np.asarray(array.addressable_data(0)).reshape(-1)[0])

# pmap: each process passes the rows of its devices.
pmapped = phlox.pmap(
    lambda params, batch: (
        phlox.tree.map(lambda p, g: p - 0.1 * phlox.lax.pmean(g, "i"), params, phlox.grad(mean)(params, batch)),
        phlox.lax.pmean(mean(params, batch), "i"),
    ),
    axis_name="i", in_axes=(None, 0), out_axes=(None, None),
)
here = phlox.local_device_count()
now = params
for step in range(3):
    rows = np.arange(24).reshape(devices, -1)[here * me : here * (me + 1)] + 24 * step
    now, loss = pmapped(now, (x[rows], y[rows]))
    found["pmap"].append(number(loss))

# jit of arrays that are spread, with the shardings of parameters asked for.
shardings = phlox.tree.map(lambda p: split if p.ndim and p.shape[0] % devices == 0 else whole, params)
update = phlox.jit(
    lambda params, batch: (
        phlox.tree.map(lambda p, g: p - 0.1 * g, params, phlox.grad(mean)(params, batch)), mean(params, batch)
    ),
    out_shardings=(shardings, whole),
)
now = phlox.device_put(params, shardings)
for batch in data.batches((x, y), 24, seed=None, device=split).epoch(0):
    now, loss = update(now, batch)
    found["jit"].append(number(loss))

# fit, with checkpoints, from the last of which it goes on.
step = optim.make_step(mean, optim.adamw(1e-2), clip=1.0)

def recorded(train, batch):
    if int(train.step) == kill_at and me == kill_which:
        os.kill(os.getpid(), signal.SIGKILL)
    train, figures = step(train, batch)
    found["fit"].append((int(train.step), number(figures["loss"].value())))
    return train, figures

with CheckpointManager(folder, max_to_keep=2) as checkpoints:
    train = step.init(phlox.device_put(params, shardings))
    try:
        done = optim.fit(train, recorded, data.batches((x, y), 24, seed=1, device=split), epochs=3, save_every=1,
            checkpoints=checkpoints, progress=False)
        found["history"] = [row["loss"] for row in done.history]
    finally:
        if me == 0:
            with open(os.path.join(folder, "..", f"found-{phlox.process_count()}.json"), "w") as file:
                json.dump(found, file)
"""


def launch(count, folder, kill_at=-1, kill_which=-1):
    """Exit status and error stream of a training by `count` processes."""
    removed = ("XLA_FLAGS", "JAX_COORDINATOR_ADDRESS", "PHLOX_NUM_CPU_DEVICES")
    env = {name: value for name, value in os.environ.items() if name not in removed}
    env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    words = ["-n", count, "--devices", 4 // count, "-c", PROGRAM, folder, kill_at, kill_which]
    done = subprocess.run(
        [sys.executable, "-m", "phlox.launch", *map(str, words)], env=env, capture_output=True, text=True, timeout=180
    )
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    status, err = launch(1, folder / "steps")
    assert status == 0, err[-3000:]
    return json.loads((folder / "found-1.json").read_text())


def test_curves_are_those_of_one_process(alone, tmp_path):
    """Two processes until one is killed, then four until the first is killed, then one."""
    assert [step for step, _ in alone["fit"]] == list(range(1, 10)) and len(alone["pmap"]) == len(alone["jit"]) == 3
    curve = dict(alone["fit"])
    steps = tmp_path / "steps"
    for count, kill_at, kill_which, ended in ((2, 4, 1, 137), (4, 7, 0, 137), (1, -1, -1, 0)):
        status, err = launch(count, steps, kill_at, kill_which)
        assert status == ended, err[-3000:]
        assert ended == 0 or "the others are ended" in err
        if ended == 0:
            found = json.loads((tmp_path / f"found-{count}.json").read_text())
            # A kill leaves the last step that all processes had written, one or two before.
            first = found["fit"][0][0]
            assert 5 < first <= 8 and [step for step, _ in found["fit"]] == list(range(first, 10))
            np.testing.assert_allclose(
                [loss for _, loss in found["fit"]], [curve[i] for i in range(first, 10)], rtol=1e-5
            )
            np.testing.assert_allclose(found["history"], alone["history"], rtol=1e-5)


@pytest.mark.parametrize("count", [2, 4])
def test_all_at_once(count, alone, tmp_path):
    status, err = launch(count, tmp_path / "steps")
    assert status == 0, err[-3000:]
    found = json.loads((tmp_path / f"found-{count}.json").read_text())
    for name in ("pmap", "jit", "history"):
        np.testing.assert_allclose(found[name], alone[name], rtol=1e-5, err_msg=name)
    np.testing.assert_allclose(found["fit"], alone["fit"], rtol=1e-5)
