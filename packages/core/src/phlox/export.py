"""``phlox.export``: compiled functions that can be saved to a file and called by other processes, as in ``jax.export``.

    exported = export(jit(f))(x)
    file.write_bytes(exported.serialize(vjp_order=1))
    ...
    deserialize(file.read_bytes()).call(x)

In version 1 of the calling convention, the program takes the leaves of (args, kwargs) that it reads, in order, and
returns the leaves of the result.
"""

from ._api.export.dimensions import (
    is_symbolic_dim as is_symbolic_dim,
    symbolic_args_specs as symbolic_args_specs,
    symbolic_dim_bounds as symbolic_dim_bounds,
    symbolic_shape as symbolic_shape,
)
from ._api.export.export import (
    DisabledSafetyCheck as DisabledSafetyCheck,
    Exported as Exported,
    default_export_platform as default_export_platform,
    export as export,
    maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
)
from ._api.export.format import (
    deserialize as deserialize,
    register_namedtuple_serialization as register_namedtuple_serialization,
    register_pytree_node_serialization as register_pytree_node_serialization,
)
from ._base.public_names import publish as _publish
from ._ir.dimensions import SymbolicScope as SymbolicScope

_publish(__name__)
