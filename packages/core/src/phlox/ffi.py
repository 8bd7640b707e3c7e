"""``phlox.ffi``: custom calls of foreign functions, such as compiled C++ code, as in ``jax.ffi``."""

from ._api.debug.ffi import ffi_call as ffi_call
from ._base.public_names import publish as _publish
from ._ops.host.ffi import build_ffi_lowering_function as build_ffi_lowering_function, ffi_lowering as ffi_lowering
from ._xla.targets import (
    TypeRegistration as TypeRegistration,
    include_dir as include_dir,
    pycapsule as pycapsule,
    register_ffi_target as register_ffi_target,
    register_ffi_target_as_batch_partitionable as register_ffi_target_as_batch_partitionable,
    register_ffi_type as register_ffi_type,
    register_ffi_type_id as register_ffi_type_id,
)

_publish(__name__)
