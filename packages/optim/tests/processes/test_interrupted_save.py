"""A process that is killed while it saves leaves the steps before it as they were."""

import signal

import numpy as np

import phlox.numpy as jnp
from optim_processes import run
from phlox_optim.checkpoint import CheckpointManager

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
