"""phlox: JAX's programming model on jaxlib. Arrays, `jit`, `grad`, `vmap`, `pmap`, PRNG keys.

    import phlox
    import phlox.numpy as jnp
    from phlox import grad, jit, vmap

Names, signatures and numbers are JAX's: ``import phlox as jax`` runs programs written for it.
"""

# Imported first: deep inside of other imports NumPy takes 10 ms longer on Python 3.11 (docs/notes/starting.md).
import numpy as _numpy  # noqa: F401

from . import errors, numpy, tree, tree_util
from ._api.batching.vmap import vmap
from ._api.configuration import (
    allow_f16_reductions,
    array_garbage_collection_guard,
    auto_pcast,
    check_tracer_leaks,
    checking_leaks,
    checks,
    config,
    debug_infs,
    debug_key_reuse,
    debug_nans,
    default_device,
    default_matmul_precision,
    default_prng_impl,
    disable_jit,
    enable_checks,
    enable_custom_prng,
    enable_x64,
    explain_cache_misses,
    jax2tf_associative_scan_reductions,
    legacy_prng_key,
    log_compiles,
    make_user_context,
    no_execution,
    no_tracing,
    numpy_dtype_promotion,
    numpy_rank_promotion,
    remove_size_one_mesh_axis_from_type,
    softmax_custom_jvp,
    thread_guard,
    threefry_partitionable,
    transfer_guard,
    transfer_guard_device_to_device,
    transfer_guard_device_to_host,
    transfer_guard_host_to_device,
)
from ._api.derivatives.custom import custom_jvp, custom_vjp
from ._api.derivatives.differentiate import jvp, linearize, vjp
from ._api.derivatives.grad import fwd_and_bwd, grad, hessian, jacfwd, jacobian, jacrev, value_and_grad
from ._api.devices import memory
from ._api.devices.meshes import get_abstract_mesh, get_mesh, make_mesh, reshard, set_mesh, use_abstract_mesh
from ._api.devices.transfers import block_until_ready, copy_to_host_async, device_get, device_put
from ._api.jit.caches import clear_caches
from ._api.jit.effort_level import CompilerEffortLevel
from ._api.jit.inlining import Inline
from ._api.jit.jit import jit
from ._api.jit.programs import ShapeDtypeStruct, eval_shape, make_jaxpr
from ._base.public_names import on_demand, publish
from ._ir.dtypes import float0
from ._trace.refs import Ref
from ._xla import disk as cache
from ._xla.array import Array, Shard, live_arrays
from ._xla.callbacks import effects_barrier
from ._xla.devices import (
    Device,
    default_backend,
    device_count,
    devices,
    host_count,
    host_id,
    host_ids,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
)
from ._xla.partition_spec import PartitionSpec as P
from ._xla.sharding import NamedSharding

__version__ = "0.1.0"

with on_demand(__name__):
    from . import (
        ad,
        ad_checkpoint,
        api_util,
        checkpoint_policies,
        core,
        custom_batching,
        custom_derivatives,
        debug,
        distributed,
        dlpack,
        dtypes,
        example_libraries,
        experimental,
        export,
        extend,
        ffi,
        flatten_util,
        image,
        interpreters,
        lax,
        monitoring,
        nn,
        ops,
        profiler,
        random,
        ref,
        scipy,
        sharding,
        stages,
        typing,
    )
    from ._api.debug.callbacks import pure_callback
    from ._api.debug.environment import print_environment_info
    from ._api.debug.naming import named_call, named_scope
    from ._api.derivatives.closures import closure_convert, custom_gradient, linear_transpose
    from ._api.derivatives.remat import checkpoint, remat
    from ._api.devices.assemble import (
        device_put_replicated,
        device_put_sharded,
        make_array_from_callback,
        make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )
    from ._api.devices.pmap import pmap
    from ._api.devices.shard_map import shard_map, smap
    from ._api.jit.compile_time import ensure_compile_time_eval
    from ._api.recording.compiled import explain_memory, explain_sharding, where_time
    from ._api.recording.record import record
    from ._api.recording.show import show
    from ._api.recording.watch import tag
    from ._api.sizes.pad_axes import pad_axes
    from .as_jax import adopt
    from .numpy._indexing.ds import ds
    from .numpy._indexing.refs import empty_ref, free_ref, freeze, new_ref, typeof

publish(__name__)

__all__ = [
    "Array",
    "CompilerEffortLevel",
    "Device",
    "Inline",
    "NamedSharding",
    "P",
    "Ref",
    "ShapeDtypeStruct",
    "Shard",
    "__version__",
    "ad",
    "ad_checkpoint",
    "adopt",
    "allow_f16_reductions",
    "api_util",
    "array_garbage_collection_guard",
    "auto_pcast",
    "block_until_ready",
    "cache",
    "check_tracer_leaks",
    "checking_leaks",
    "checkpoint",
    "checkpoint_policies",
    "checks",
    "clear_caches",
    "closure_convert",
    "config",
    "copy_to_host_async",
    "core",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "device_count",
    "device_get",
    "device_put",
    "device_put_replicated",
    "device_put_sharded",
    "devices",
    "disable_jit",
    "distributed",
    "dlpack",
    "ds",
    "dtypes",
    "effects_barrier",
    "empty_ref",
    "enable_checks",
    "enable_custom_prng",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "example_libraries",
    "experimental",
    "explain_cache_misses",
    "explain_memory",
    "explain_sharding",
    "export",
    "extend",
    "ffi",
    "flatten_util",
    "float0",
    "free_ref",
    "freeze",
    "fwd_and_bwd",
    "get_abstract_mesh",
    "get_mesh",
    "grad",
    "hessian",
    "host_count",
    "host_id",
    "host_ids",
    "image",
    "interpreters",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jax2tf_associative_scan_reductions",
    "jit",
    "jvp",
    "lax",
    "legacy_prng_key",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_jaxpr",
    "make_mesh",
    "make_user_context",
    "memory",
    "monitoring",
    "named_call",
    "named_scope",
    "new_ref",
    "nn",
    "no_execution",
    "no_tracing",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "ops",
    "pad_axes",
    "pmap",
    "print_environment_info",
    "process_count",
    "process_index",
    "process_indices",
    "profiler",
    "pure_callback",
    "random",
    "record",
    "ref",
    "remat",
    "remove_size_one_mesh_axis_from_type",
    "reshard",
    "scipy",
    "set_mesh",
    "shard_map",
    "sharding",
    "show",
    "smap",
    "softmax_custom_jvp",
    "stages",
    "tag",
    "thread_guard",
    "threefry_partitionable",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "use_abstract_mesh",
    "value_and_grad",
    "vjp",
    "vmap",
    "where_time",
]
