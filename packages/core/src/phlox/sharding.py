"""``phlox.sharding``: meshes and shardings, the distribution of arrays over devices, as in ``jax.sharding``."""

from ._api.devices.axis_types import (
    ManualAxisType as ManualAxisType,
    auto_axes as auto_axes,
    explicit_axes as explicit_axes,
)
from ._api.devices.meshes import (
    get_abstract_mesh as get_abstract_mesh,
    get_mesh as get_mesh,
    reshard as reshard,
    set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
)
from ._api.devices.shard_map import Infer as Infer
from ._base.public_names import publish as _publish
from ._xla.mesh import (
    AbstractDevice as AbstractDevice,
    AbstractMesh as AbstractMesh,
    AxisType as AxisType,
    Mesh as Mesh,
)
from ._xla.partition_spec import PartitionSpec as PartitionSpec, UnreducedKind as UnreducedKind
from ._xla.sharding import (
    NamedSharding as NamedSharding,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
    make_single_device_sharding as make_single_device_sharding,
)

_publish(__name__)
