"""``phlox.sharding``: how arrays lie on devices, as in ``jax.sharding``."""

from ._xla.mesh import Mesh, PartitionSpec
from ._xla.sharding import NamedSharding, Sharding, SingleDeviceSharding

__all__ = ["Mesh", "NamedSharding", "PartitionSpec", "Sharding", "SingleDeviceSharding"]
