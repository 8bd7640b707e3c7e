"""``phlox.sharding``: meshes and shardings, the distribution of arrays over devices, as in ``jax.sharding``."""

from ._api.devices.axis_types import AbstractDevice, ManualAxisType, auto_axes, explicit_axes
from ._api.devices.meshes import get_abstract_mesh, get_mesh, reshard, set_mesh, use_abstract_mesh
from ._api.devices.shard_map import Infer
from ._base.public_names import publish
from ._xla.mesh import AbstractMesh, AxisType, Mesh
from ._xla.partition_spec import PartitionSpec, UnreducedKind
from ._xla.sharding import NamedSharding, Sharding, SingleDeviceSharding, make_single_device_sharding

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "Infer",
    "ManualAxisType",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "Sharding",
    "SingleDeviceSharding",
    "UnreducedKind",
    "auto_axes",
    "explicit_axes",
    "get_abstract_mesh",
    "get_mesh",
    "make_single_device_sharding",
    "reshard",
    "set_mesh",
    "use_abstract_mesh",
]


publish(__name__)
