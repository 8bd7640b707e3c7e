"""`shard_map` and typed shardings over four devices, without a library."""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4 " + os.environ.get("XLA_FLAGS", "")

import jax
import jax.numpy as jnp
from common import show
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("i",))  # jax 0.12: its axis is in types
auto = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))
ring = [(k, (k + 1) % 4) for k in range(4)]
a = jnp.arange(16.0).reshape(4, 4)


def split(x, *spec):
    return jax.device_put(x, NamedSharding(mesh, P(*spec)))


def exchange(over):
    swap = lambda x: lax.all_to_all(x, "i", split_axis=1, concat_axis=0, tiled=True)
    return jax.shard_map(swap, mesh=over, in_specs=P("i", None), out_specs=P(None, "i"))


rotate = jax.shard_map(lambda x: lax.ppermute(x, "i", ring), mesh=auto, in_specs=P("i"), out_specs=P("i"))
show("gradient of a ring", jax.grad(lambda x: (rotate(x) ** 2 * jnp.arange(8.0)).sum())(jnp.arange(8.0)))
show("transpose of an exchange", jax.vjp(exchange(auto), a)[1](a))
rows, columns = split(a, "i", None), split(a, None, "i")
show("typed exchange", exchange(mesh)(rows), jax.vjp(exchange(mesh), rows)[1](columns))
show("compiled gradient", jax.jit(jax.grad(lambda x: (exchange(mesh)(x) ** 2).sum()))(rows))
show("elements", rows * jnp.arange(4.0), jnp.where(rows > 3, rows, 0.0), jnp.sort(rows, axis=1), rows[:, 1])
show("inferred", jax.shard_map(lambda x: x * 2, mesh=mesh, out_specs=P("i"))(rows), jax.vmap(jnp.sum)(rows))
show("scan", lax.scan(lambda c, x: (c + x, x), split(jnp.zeros(4), None), split(a, None, None)))
show("moved", jax.reshard(rows, NamedSharding(mesh, P(None, "i"))), jax.jacfwd(jnp.sin)(split(jnp.arange(4.0), "i")))
