"""Checkpoints of arrays that are spread over processes: each writes its parts, and any number of processes restores them."""

import itertools
import os
import shutil
import socket
import time

import numpy as np
import pytest

from optim_processes import start
from phlox_optim.checkpoint import CheckpointManager

FACTOR = float(os.environ.get("PHLOX_TEST_CASES", "1"))

#: Threads of Gloo print their connections on file descriptor 1, in pieces: they go to the error stream.
OUTPUT = """
import os, sys
sys.stdout = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
"""

PROGRAM = (
    OUTPUT
    + """
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
    sharding = spec if isinstance(spec, phlox.sharding.Sharding) else phlox.NamedSharding(mesh, spec)
    return phlox.make_array_from_callback(x.shape, sharding, lambda index: x[index], dtype=x.dtype)

last = phlox.sharding.Mesh(np.array(phlox.devices()[2:]), ("i",))  # of several processes the first has none of them

def tree():
    return {
        "both": spread(weights, P("a", "b")),
        "rows": spread(weights.astype(jnp.bfloat16), P("a")),
        "whole": spread(np.arange(3), P()),
        "joined": spread(np.arange(8, dtype=np.int8), P(("b", "a"))),
        "elsewhere": [spread(weights, phlox.NamedSharding(last, P("i"))), 3],
        "copies": spread(weights, phlox.NamedSharding(last, P())),
        "one": phlox.device_put(np.int32(5), phlox.devices()[-1]),
        "empty": spread(np.zeros((0, 4), np.float32), P(None, "a")),
        "spread keys": phlox.random.wrap_key_data(spread(np.arange(8, dtype=np.uint32).reshape(4, 2), P("a"))),
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
            pairs = zip(*map(phlox.tree.leaves, (found[key], mine[key])), strict=True)
            for one, other in pairs:
                assert bits(one) == bits(other), (name, key)
                assert getattr(one, "sharding", 0) == getattr(other, "sharding", 0)
        alone = checkpoints.restore(1)
        assert set(alone) == set(mine) and alone["step"] == 7 and alone["one"] == 5
        for array in (alone["both"], alone["elsewhere"][0], alone["copies"]):
            assert array.tolist() == weights.tolist() and array.is_fully_addressable
        assert alone["empty"].shape == (0, 4) and phlox.random.key_data(alone["spread keys"])[3].tolist() == [6, 7]
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
)


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


#: Two processes save steps whose elements are all their number, plus an offset by which runs are told apart.
STEPS = (
    OUTPUT
    + """
import resource, signal
import numpy as np
import phlox
from phlox import P
from phlox_optim.checkpoint import CheckpointManager
from phlox_optim.errors import CheckpointError, StepError

folder, me, count, port = sys.argv[1], *map(int, sys.argv[2:])
phlox.config.update("num_cpu_devices", 4 // count)
if count > 1:
    phlox.distributed.initialize(f"127.0.0.1:{port}", num_processes=count, process_id=me, initialization_timeout=60)
where = phlox.NamedSharding(phlox.make_mesh((4,), ("i",)), P("i"))

def tree(value):
    whole = np.full(8, value, np.float32)
    return {str(i): phlox.make_array_from_callback((8,), where, lambda index: whole[index]) for i in range(5)}

def value(found):
    parts = {float(x) for array in found.values() for shard in array.addressable_shards for x in shard.data}
    assert len(parts) == 1, f"a mixture: {parts}"
    return parts.pop()

checkpoints = CheckpointManager(folder, max_to_keep={keep})
"""
)


def started(program, folder, count, keep=None):
    port = free_port()
    text = STEPS.replace("{keep}", str(keep)) + program
    settings = {"XLA_FLAGS": None, "JAX_COORDINATOR_ADDRESS": None}
    return [start(text, folder, me, count, port, **settings) for me in range(count)]


def together(program, folder, count=2, keep=None):
    """What each of the processes prints that run `program`."""
    processes = started(program, folder, count, keep)
    try:
        ends = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, err) in zip(processes, ends, strict=True):
        assert process.returncode == 0, err[-3000:]
    return [out.split("found ")[1].strip() for out, _ in ends]


def test_shares_of_different_runs_make_no_step(tmp_path):
    save = "for step in range(2):\n    checkpoints.save(step, tree(step))\nprint('found', checkpoints.all_steps())"
    assert together(save, tmp_path) == ["[0, 1]"] * 2
    shutil.rmtree(tmp_path / "process-1-of-2" / "1")  # as if that process had been killed before
    again = """
print("found", checkpoints.all_steps(), end=" ")
checkpoints.save(1, tree(101))
print(checkpoints.all_steps(), value(checkpoints.restore(like=tree(0))), end=" ")
checkpoints.delete(1)
print(checkpoints.all_steps())
"""
    assert together(again, tmp_path) == ["[0] [0, 1] 101.0 [0]"] * 2
    assert together("checkpoints.save(7, tree(7))\nprint('found', checkpoints.all_steps())", tmp_path, 1) == ["[0, 7]"]
    more = "checkpoints.save(8, tree(8))\nprint('found', checkpoints.all_steps())"
    assert together(more, tmp_path, keep=1) == ["[8]"] * 2, "what runs with other numbers of processes left is removed"
    assert sorted(path.name for path in tmp_path.rglob("[0-9]")) == ["8", "8"]


def test_a_share_that_cannot_be_written(tmp_path):
    program = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
checkpoints.save(0, tree(0))
checkpoints.wait_until_finished()
if me == 1:
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
try:
    checkpoints.save(1, tree(1))
    checkpoints.wait_until_finished()
except (OSError, CheckpointError) as error:
    print("found", type(error).__name__, end=" ")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(checkpoints.all_steps(), value(checkpoints.restore(like=tree(0))), end=" ")
checkpoints.save(1, tree(11))
print(checkpoints.all_steps(), value(checkpoints.restore(like=tree(0))))
try:
    checkpoints.save(2 + me, tree(2))
except CheckpointError as error:
    assert "the processes save different steps" in str(error)
checkpoints.close()
"""
    end = "[0] 0.0 [0, 1] 11.0"
    assert together(program, tmp_path) == [f"CheckpointError {end}", f"OSError {end}"]


def test_kills_leave_whole_steps(tmp_path):
    """One process after the other is killed while both save and remove; with one step kept, it is always whole."""
    save = """
first = (checkpoints.latest_step() or 0) + 1
for step in range(first, first + 1000):
    checkpoints.save(step, tree(step))
    print(step, flush=True)
"""
    random = np.random.default_rng(0)
    for trial in range(max(2, int(2 * FACTOR))):
        processes = started(save, tmp_path, 2, keep=1)
        try:
            numbers = (line for line in processes[0].stdout if line.strip().isdecimal())
            assert len(list(itertools.islice(numbers, 3))) == 3
            time.sleep(random.uniform(0, 0.3))
            processes[trial % 2].kill()
            time.sleep(random.uniform(0, 0.1))
        finally:
            for process in processes:
                process.kill()
                process.communicate()
        with CheckpointManager(tmp_path) as checkpoints:
            steps = checkpoints.all_steps()
            assert steps
            for step in steps:
                assert all((array == step).all() for array in checkpoints.restore(step).values())
