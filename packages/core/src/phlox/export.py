"""``phlox.export``: compiled functions that can be saved to a file and called by other processes, as in ``jax.export``.

    exported = export(jit(f))(x)
    file.write_bytes(exported.serialize(vjp_order=1))
    ...
    deserialize(file.read_bytes()).call(x)

In version 1 of the calling convention, the program takes the leaves of (args, kwargs) that it reads, in order, and
returns the leaves of the result.
"""

from ._api.export.dimensions import is_symbolic_dim, symbolic_args_specs, symbolic_dim_bounds, symbolic_shape
from ._api.export.export import (
    DisabledSafetyCheck,
    Exported,
    default_export_platform,
    export,
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from ._api.export.format import deserialize, register_namedtuple_serialization, register_pytree_node_serialization
from ._base.public_names import publish
from ._ir.dimensions import SymbolicScope

__all__ = [
    "DisabledSafetyCheck",
    "Exported",
    "SymbolicScope",
    "default_export_platform",
    "deserialize",
    "export",
    "is_symbolic_dim",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "symbolic_args_specs",
    "symbolic_dim_bounds",
    "symbolic_shape",
]


publish(__name__)
