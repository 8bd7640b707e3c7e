"""Checkpoints of arrays that are spread over processes: each writes its parts, and any number of processes restores them."""

import socket

import pytest

from optim_processes import start

PROGRAM = """
import os, sys
import numpy as np
import phlox, phlox.numpy as jnp
from phlox import P
from phlox.experimental import multihost_utils
from phlox_optim.checkpoint import CheckpointManager

folder, me, count, port = sys.argv[1], *map(int, sys.argv[2:])
phlox.config.update("num_cpu_devices", 4 // count)
if count > 1:
    phlox.distributed.initialize(f"127.0.0.1:{port}", num_processes=count, process_id=me, initialization_timeout=60)
mesh = phlox.make_mesh((2, 2), ("a", "b"))
weights = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
weights[0, 0] = -0.0

def spread(x, spec):
    return phlox.make_array_from_callback(x.shape, phlox.NamedSharding(mesh, spec), lambda index: x[index])

def tree():
    return {
        "both": spread(weights, P("a", "b")),
        "rows": spread(weights.astype(jnp.bfloat16), P("a")),
        "whole": spread(np.arange(3), P()),
        "joined": spread(np.arange(8, dtype=np.int8), P(("b", "a"))),
        "keys": phlox.random.key(3),
        "step": 7,
    }

def bits(x):
    if phlox.dtypes.issubdtype(getattr(x, "dtype", None), phlox.dtypes.prng_key):
        x = phlox.random.key_data(x)
    return [np.asarray(shard.data).tobytes() for shard in x.addressable_shards] if hasattr(x, "sharding") else x

mine = tree()
for name in sorted(os.listdir(folder)):
    with CheckpointManager(os.path.join(folder, name), max_to_keep=2) as checkpoints:
        assert checkpoints.all_steps() == [1, 2], (name, checkpoints.all_steps())
        found = checkpoints.restore(like=mine)
        for key in mine:
            assert bits(found[key]) == bits(mine[key]), (name, key)
            assert getattr(found[key], "sharding", 0) == getattr(mine[key], "sharding", 0)
        alone = checkpoints.restore(1)
        assert alone["both"].tolist() == weights.tolist() and alone["step"] == 7
if sys.argv[2] == "0":
    print("restored", len(os.listdir(folder)))
if count > 1:
    multihost_utils.sync_global_devices("restored")
with CheckpointManager(os.path.join(folder, f"by-{count}"), max_to_keep=2) as checkpoints:
    for step in range(3):
        if checkpoints.latest_step() in (None, step - 1):
            checkpoints.save(step, mine)
if count > 1:
    multihost_utils.sync_global_devices("saved")
    phlox.distributed.shutdown()
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.mark.parametrize("counts", [(1, 2, 4, 1)])
def test_any_number_of_processes_restores_what_any_number_saved(tmp_path, counts):
    restored = []
    for count in counts:
        port = free_port()
        started = [
            start(PROGRAM, tmp_path, me, count, port, XLA_FLAGS=None, JAX_COORDINATOR_ADDRESS=None)
            for me in range(count)
        ]
        outs = []
        try:
            for process in started:
                out, err = process.communicate(timeout=120)
                assert process.returncode == 0, err[-3000:]
                outs.append(out)
        finally:
            for process in started:
                process.kill()
        restored.append(outs[0].split("restored ")[1].split()[0])
    assert restored == ["0", "1", "2", "3"]
