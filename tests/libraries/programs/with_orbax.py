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
