"""Several devices: eight virtual ones on the host, or the GPUs that are there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..case import case


@case("devices/pmap x + 1", budget=1.0)
def pmap(m: Any) -> Any:
    f = m.pmap(lambda x: x + 1)
    x = f(m.numpy.zeros((m.local_device_count(), 16)))
    return lambda: m.block_until_ready(f(x))


@case("devices/pmap psum", budget=1.0)
def psum(m: Any) -> Any:
    f = m.pmap(lambda x: m.lax.psum(x, "i"), axis_name="i")
    x = f(m.numpy.zeros((m.local_device_count(), 16)))
    return lambda: m.block_until_ready(f(x))


@case("devices/device_put sharded", budget=1.0)
def device_put(m: Any) -> Any:
    mesh = m.sharding.Mesh(np.array(m.devices()), ("i",))
    sharding = m.sharding.NamedSharding(mesh, m.sharding.PartitionSpec("i"))
    x = np.ones((8, 1024), np.float32)
    return lambda: m.block_until_ready(m.device_put(x, sharding))
