"""orbax: checkpoints of NumPy arrays and of jax's."""

import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from common import show

tree = {"a": np.arange(4.0), "b": {"c": np.ones((2, 2), np.float32)}}
with tempfile.TemporaryDirectory() as folder:
    with ocp.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(folder + "/numpy", tree)
        show("numpy", checkpointer.restore(folder + "/numpy"))
    with ocp.StandardCheckpointer() as checkpointer:
        mine = jax.tree.map(jnp.asarray, tree)
        checkpointer.save(folder + "/jax", mine)
        checkpointer.wait_until_finished()
        show("jax", checkpointer.restore(folder + "/jax", mine))
        show("without a target", checkpointer.restore(folder + "/jax"))
    with ocp.PyTreeCheckpointer() as checkpointer:
        mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
        where = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        placed = jax.tree.map(lambda x: ocp.ArrayRestoreArgs(sharding=where), mine)
        checkpointer.save(folder + "/tree", mine)
        restored = checkpointer.restore(folder + "/tree", restore_args=placed)
        show("placed", restored, int(restored["a"].sharding == where))
    with ocp.AsyncCheckpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
        checkpointer.save(folder + "/async", {"h": jnp.arange(3, dtype=jnp.bfloat16), "n": 3, "mine": mine})
        checkpointer.wait_until_finished()
        show("async", checkpointer.restore(folder + "/async"))
    with ocp.CheckpointManager(folder + "/steps", options=ocp.CheckpointManagerOptions(max_to_keep=2)) as manager:
        for step in range(4):
            manager.save(step, args=ocp.args.StandardSave(jax.tree.map(lambda x: x * step, mine)))
        manager.wait_until_finished()
        show("steps", manager.all_steps(), manager.restore(3, args=ocp.args.StandardRestore(mine)))
