"""A process that is killed while it saves or removes, or that meets a full disk, leaves whole steps and nothing else."""

import os
import signal
import time

import numpy as np

import phlox.numpy as jnp
from optim_processes import run, start
from phlox_optim.checkpoint import CheckpointManager

FACTOR = float(os.environ.get("PHLOX_TEST_CASES", "1"))

#: Killed at the moment when the second step is complete but for its name: nothing later can be interrupted.
KILLED = """
import os, signal, sys
import phlox.numpy as jnp
from phlox_optim.checkpoint import CheckpointManager

def at_rename(event, arguments):
    if event == "os.rename" and os.path.basename(arguments[1]) == "2":
        print("writing", sorted(os.listdir(sys.argv[1])), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(at_rename)
with CheckpointManager(sys.argv[1]) as checkpoints:
    for step in (1, 2):
        checkpoints.save(step, {"x": jnp.full((1000,), step), "step": step})
print("not killed")
"""


def test_a_killed_save(tmp_path):
    out = run(KILLED, tmp_path, status=-signal.SIGKILL)
    assert out.startswith("writing ['1', '2.") and "not killed" not in out
    like = {"x": jnp.zeros(1000, jnp.int32), "step": 0}
    with CheckpointManager(tmp_path) as checkpoints:
        assert checkpoints.all_steps() == [1]
        restored = checkpoints.restore(like=like)
        assert restored["step"] == 1
        np.testing.assert_array_equal(restored["x"], np.ones(1000))
        # The program starts again and comes to the same step.
        checkpoints.save(2, {"x": jnp.full((1000,), 2), "step": 2})
        assert checkpoints.restore(like=like)["step"] == 2
        checkpoints.wait_until_finished()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"], "nothing of the killed save is left"


#: Saves one step after the other and keeps two, until it is killed. It tells when a step is about to be removed.
REMOVING = """
import os, sys
import phlox.numpy as jnp
from phlox_optim.checkpoint import CheckpointManager

tree = {str(i): jnp.full((300,), i) for i in range(30)}
with CheckpointManager(sys.argv[1], max_to_keep=2) as checkpoints:
    for step in range(1000):
        checkpoints.save(step, tree)
        print(step, flush=True)
"""


def test_a_kill_at_any_moment_leaves_whole_steps(tmp_path):
    """Removing old steps is the larger part of what this program does."""
    like = {str(i): jnp.zeros(300, jnp.int32) for i in range(30)}
    random = np.random.default_rng(0)
    for trial in range(max(2, int(4 * FACTOR))):
        folder = tmp_path / str(trial)
        process = start(REMOVING, folder)
        for line in process.stdout:
            if int(line) >= 4:
                break
        time.sleep(random.uniform(0, 0.15))
        process.kill()
        process.communicate()
        with CheckpointManager(folder, max_to_keep=2) as checkpoints:
            steps = checkpoints.all_steps()
            assert len(steps) in (2, 3)  # a kill may come before the first of three is removed
            for step in steps:
                restored = checkpoints.restore(step, like=like)
                assert all((restored[name] == int(name)).all() for name in like)
            checkpoints.save(steps[-1] + 1, like)
        names = sorted(path.name for path in folder.iterdir())
        assert names == sorted(map(str, [steps[-1], steps[-1] + 1])), "nothing of what was killed is left"


REMOVED = """
import os, signal, sys
import phlox.numpy as jnp
from phlox_optim.checkpoint import CheckpointManager

removing = []

def at_removal(event, arguments):
    if event == "shutil.rmtree" and ".removed-" in str(arguments[0]):
        removing.append(arguments)
    if event == "os.remove" and removing:
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(at_removal)
with CheckpointManager(sys.argv[1], max_to_keep=1) as checkpoints:
    for step in range(3):
        checkpoints.save(step, {"x": jnp.full((1000,), step)})
"""


def test_a_kill_in_the_middle_of_removing(tmp_path):
    run(REMOVED, tmp_path, status=-signal.SIGKILL)
    with CheckpointManager(tmp_path) as checkpoints:
        assert checkpoints.all_steps() == [1]
        assert checkpoints.restore()["x"][0] == 1
        checkpoints.save(2, {"x": jnp.zeros(3)})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]


FULL = """
import resource, signal, sys
import numpy as np
from phlox_optim.checkpoint import CheckpointManager

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
random = np.random.default_rng(0)
with CheckpointManager(sys.argv[1]) as checkpoints:
    checkpoints.save(0, {"x": np.arange(4)})
    checkpoints.wait_until_finished()
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
    try:
        checkpoints.save(1, {"x": random.normal(size=500_000)})
        checkpoints.wait_until_finished()
    except OSError as error:
        print("OSError", error.errno is not None)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(checkpoints.all_steps(), checkpoints.restore()["x"].tolist())
    checkpoints.save(2, {"x": np.arange(5)})
    checkpoints.wait_until_finished()
    print(checkpoints.all_steps())
"""


def test_a_full_disk_is_an_os_error_and_leaves_the_earlier_steps(tmp_path):
    assert run(FULL, tmp_path).splitlines() == ["OSError True", "[0] [0, 1, 2, 3]", "[0, 2]"]
