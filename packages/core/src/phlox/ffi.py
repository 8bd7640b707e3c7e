"""``phlox.ffi``: custom calls of foreign functions, such as compiled C++ code, as in ``jax.ffi``."""

from ._api.debug.ffi import ffi_call
from ._base.public_names import publish
from ._ops.host.ffi import build_ffi_lowering_function, ffi_lowering
from ._xla.targets import (
    TypeRegistration,
    include_dir,
    pycapsule,
    register_ffi_target,
    register_ffi_target_as_batch_partitionable,
    register_ffi_type,
    register_ffi_type_id,
)

__all__ = [
    "TypeRegistration",
    "build_ffi_lowering_function",
    "ffi_call",
    "ffi_lowering",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type",
    "register_ffi_type_id",
]


publish(__name__)
