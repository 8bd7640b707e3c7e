"""orbax: asynchronous checkpoints, parts of trees, other structures, optimizers' states, metadata."""

import pathlib
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from common import show

params = {"dense": {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.ones(3, jnp.bfloat16)}, "key": jax.random.PRNGKey(1)}
optimizer = optax.adam(0.1)
state = {
    "params": params["dense"],
    "opt": optimizer.init(params["dense"]),
    "step": 3,
    "name": "run",
    "layers": [1.5, (2, 3)],
}
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    with ocp.StandardCheckpointer() as saver:
        saver.save(folder / "state", {k: v for k, v in state.items() if k != "name"})
        saver.wait_until_finished()
        shapes = jax.tree.map(ocp.utils.to_shape_dtype_struct, {k: v for k, v in state.items() if k != "name"})
        back = saver.restore(folder / "state", shapes)
        show("state", back, back["params"]["b"].dtype == jnp.bfloat16, type(back["opt"]) is type(state["opt"]))
        raw = saver.restore(folder / "state")
        show("raw", raw["params"], raw["opt"][0]["mu"], raw["layers"])
        halves = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, jnp.float16) if hasattr(x, "shape") and x.ndim == 2 else x, shapes
        )
        show("converted", saver.restore(folder / "state", halves)["params"]["w"].dtype == jnp.float16)
    handler = ocp.PyTreeCheckpointHandler()
    with ocp.AsyncCheckpointer(handler, timeout_secs=60) as saver:
        saver.save(folder / "tree", args=ocp.args.PyTreeSave(params))
        saver.wait_until_finished()
        part = saver.restore(
            folder / "tree",
            args=ocp.args.PyTreeRestore(
                item={"dense": {"w": params["dense"]["w"]}},
                restore_args={"dense": {"w": ocp.RestoreArgs(restore_type=np.ndarray)}},
                transforms={},
            ),
        )
        show("part", part, isinstance(part["dense"]["w"], np.ndarray))
        renamed = saver.restore(
            folder / "tree",
            args=ocp.args.PyTreeRestore(
                item={"linear": {"kernel": params["dense"]["w"]}},
                restore_args={"linear": {"kernel": ocp.ArrayRestoreArgs(dtype=jnp.float32)}},
                transforms={r"linear/kernel": ocp.Transform(original_key="dense/w", value_fn=lambda x: 2 * x)},
            ),
        )
        show("renamed", renamed)
    mesh = jax.make_mesh((1,), ("x",))
    where = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    options = ocp.CheckpointManagerOptions(
        max_to_keep=2, save_interval_steps=2, best_fn=lambda m: m["loss"], best_mode="min"
    )
    with ocp.CheckpointManager(folder / "run", options=options) as manager:
        for step in range(7):
            tree = {"w": jax.device_put(jnp.arange(4.0) * step, where)}
            manager.save(
                step,
                args=ocp.args.Composite(state=ocp.args.StandardSave(tree), info=ocp.args.JsonSave({"step": step})),
                metrics={"loss": abs(step - 3.0)},
            )
        manager.wait_until_finished()
        show("kept", manager.all_steps(), manager.best_step(), manager.latest_step())
        target = {"w": jax.ShapeDtypeStruct((4,), jnp.float32, sharding=where)}
        got = manager.restore(
            manager.latest_step(),
            args=ocp.args.Composite(state=ocp.args.StandardRestore(target), info=ocp.args.JsonRestore()),
        )
        show("composite", got.state, got.info["step"], got.state["w"].sharding == where)
    with ocp.Checkpointer(ocp.ArrayCheckpointHandler()) as saver:
        saver.save(folder / "array", args=ocp.args.ArraySave(jnp.arange(3.0)))
        show("array", saver.restore(folder / "array"))
    with ocp.Checkpointer(ocp.JaxRandomKeyCheckpointHandler()) as saver:
        saver.save(folder / "key", args=ocp.args.JaxRandomKeySave(jax.random.key(7)))
        show("key", saver.restore(folder / "key"))
