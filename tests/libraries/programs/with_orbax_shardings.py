"""orbax: arrays over four devices, restored over the same ones, another mesh, one device, and from a layout of another."""

import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"

import pathlib
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from common import show
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

square = Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
line = Mesh(np.array(jax.devices()[::-1]), ("x",))
shardings = {
    "both": NamedSharding(square, P("data", "model")),
    "joined": NamedSharding(square, P(("data", "model"))),
    "part": NamedSharding(square, P(None, "model")),
    "replicated": NamedSharding(square, P()),
}
tree = {
    name: jax.device_put(jnp.arange(32, dtype=jnp.float32).reshape(8, 4) + i, sharding)
    for i, (name, sharding) in enumerate(shardings.items())
}
tree["half"] = jax.device_put(jnp.linspace(0, 1, 16, dtype=jnp.bfloat16), NamedSharding(line, P("x")))


def described(sharding_of):
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding_of(x)), tree)


def shards(restored):
    return [(s.device.id, s.data.shape, s.data) for x in jax.tree.leaves(restored) for s in x.addressable_shards]


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    with ocp.StandardCheckpointer() as saver:
        saver.save(folder / "tree", tree)
        saver.wait_until_finished()
        same = saver.restore(folder / "tree", described(lambda x: x.sharding))
        show("same", [same[k].sharding == tree[k].sharding for k in tree], shards(same))
        other = saver.restore(folder / "tree", described(lambda x: NamedSharding(line, P("x"))))
        show("another mesh", shards(other))
        one = jax.sharding.SingleDeviceSharding(jax.devices()[2])
        show("one device", shards(saver.restore(folder / "tree", described(lambda x: one))))
        show("as saved", shards(saver.restore(folder / "tree", tree)))
    with ocp.PyTreeCheckpointer() as saver:
        arguments = jax.tree.map(
            lambda x: ocp.ArrayRestoreArgs(sharding=NamedSharding(line, P("x")), dtype=np.float16), tree
        )
        converted = saver.restore(folder / "tree", restore_args=arguments)
        show("converted", [x.dtype == jnp.float16 for x in jax.tree.leaves(converted)], shards(converted))
        wider = {"both": ocp.ArrayRestoreArgs(sharding=shardings["both"], global_shape=(10, 4), strict=False)}
        padded = saver.restore(
            folder / "tree", args=ocp.args.PyTreeRestore({"both": 0}, restore_args=wider, transforms={})
        )
        show("padded", shards(padded))
    doubled = jax.tree.map(jax.jit(lambda x: 2 * x), same)
    with ocp.CheckpointManager(folder / "run") as manager:
        manager.save(0, args=ocp.args.StandardSave(doubled))
        manager.wait_until_finished()
        again = manager.restore(0, args=ocp.args.StandardRestore(described(lambda x: x.sharding)))
        show("after a step", shards(again))
        metadata = manager.item_metadata(0)
        show("metadata", [tuple(metadata[k].shape) == tree[k].shape for k in sorted(tree)])
