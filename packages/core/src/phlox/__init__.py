"""phlox: JAX's programming model on jaxlib. Arrays, `jit`, `grad`, `vmap`, `pmap`, PRNG keys.

    import phlox
    import phlox.numpy as jnp
    from phlox import grad, jit, vmap

Names, signatures and numbers are JAX's: ``import phlox as jax`` runs programs written for it.
"""

# Imported first: deep inside of other imports NumPy takes 10 ms longer on Python 3.11 (docs/notes/starting.md).
import numpy as _numpy  # noqa: F401

from . import errors as errors, numpy as numpy, tree as tree, tree_util as tree_util
from ._api.batching.vmap import vmap as vmap
from ._api.configuration import (
    allow_f16_reductions as allow_f16_reductions,
    array_garbage_collection_guard as array_garbage_collection_guard,
    auto_pcast as auto_pcast,
    check_tracer_leaks as check_tracer_leaks,
    checking_leaks as checking_leaks,
    checks as checks,
    config as config,
    debug_infs as debug_infs,
    debug_key_reuse as debug_key_reuse,
    debug_nans as debug_nans,
    default_device as default_device,
    default_matmul_precision as default_matmul_precision,
    default_prng_impl as default_prng_impl,
    disable_jit as disable_jit,
    enable_checks as enable_checks,
    enable_custom_prng as enable_custom_prng,
    enable_x64 as enable_x64,
    explain_cache_misses as explain_cache_misses,
    jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
    legacy_prng_key as legacy_prng_key,
    log_compiles as log_compiles,
    make_user_context as make_user_context,
    no_execution as no_execution,
    no_tracing as no_tracing,
    numpy_dtype_promotion as numpy_dtype_promotion,
    numpy_rank_promotion as numpy_rank_promotion,
    remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
    softmax_custom_jvp as softmax_custom_jvp,
    thread_guard as thread_guard,
    threefry_partitionable as threefry_partitionable,
    transfer_guard as transfer_guard,
    transfer_guard_device_to_device as transfer_guard_device_to_device,
    transfer_guard_device_to_host as transfer_guard_device_to_host,
    transfer_guard_host_to_device as transfer_guard_host_to_device,
)
from ._api.derivatives.custom import custom_jvp as custom_jvp, custom_vjp as custom_vjp
from ._api.derivatives.differentiate import jvp as jvp, linearize as linearize, vjp as vjp
from ._api.derivatives.grad import (
    fwd_and_bwd as fwd_and_bwd,
    grad as grad,
    hessian as hessian,
    jacfwd as jacfwd,
    jacobian as jacobian,
    jacrev as jacrev,
    value_and_grad as value_and_grad,
)
from ._api.devices import memory as memory
from ._api.devices.meshes import (
    get_abstract_mesh as get_abstract_mesh,
    get_mesh as get_mesh,
    make_mesh as make_mesh,
    reshard as reshard,
    set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
)
from ._api.devices.transfers import (
    block_until_ready as block_until_ready,
    copy_to_host_async as copy_to_host_async,
    device_get as device_get,
    device_put as device_put,
)
from ._api.jit.caches import clear_caches as clear_caches
from ._api.jit.inlining import Inline as Inline
from ._api.jit.jit import jit as jit
from ._api.jit.options import CompilerEffortLevel as CompilerEffortLevel
from ._api.jit.programs import ShapeDtypeStruct as ShapeDtypeStruct, eval_shape as eval_shape, make_jaxpr as make_jaxpr
from ._base.public_names import on_demand as _on_demand, publish as _publish
from ._ir.dtypes import float0 as float0
from ._trace.refs import Ref as Ref
from ._xla import disk as _disk
from ._xla.array import Array as Array, Shard as Shard, live_arrays as live_arrays
from ._xla.callbacks import effects_barrier as effects_barrier
from ._xla.devices import (
    Device as Device,
    default_backend as default_backend,
    device_count as device_count,
    devices as devices,
    host_count as host_count,
    host_id as host_id,
    host_ids as host_ids,
    local_device_count as local_device_count,
    local_devices as local_devices,
    process_count as process_count,
    process_index as process_index,
    process_indices as process_indices,
)
from ._xla.partition_spec import PartitionSpec as _PartitionSpec
from ._xla.sharding import NamedSharding as NamedSharding

__version__ = "0.1.0"

P = _PartitionSpec
cache = _disk

with _on_demand(__name__):
    from . import (
        ad as ad,
        ad_checkpoint as ad_checkpoint,
        api_util as api_util,
        checkpoint_policies as checkpoint_policies,
        core as core,
        custom_batching as custom_batching,
        custom_derivatives as custom_derivatives,
        debug as debug,
        distributed as distributed,
        dlpack as dlpack,
        dtypes as dtypes,
        example_libraries as example_libraries,
        experimental as experimental,
        export as export,
        extend as extend,
        ffi as ffi,
        flatten_util as flatten_util,
        image as image,
        interpreters as interpreters,
        lax as lax,
        monitoring as monitoring,
        nn as nn,
        ops as ops,
        profiler as profiler,
        random as random,
        ref as ref,
        scipy as scipy,
        sharding as sharding,
        stages as stages,
        typing as typing,
    )
    from ._api.debug.callbacks import pure_callback as pure_callback
    from ._api.debug.environment import print_environment_info as print_environment_info
    from ._api.debug.naming import named_call as named_call, named_scope as named_scope
    from ._api.derivatives.closures import (
        closure_convert as closure_convert,
        custom_gradient as custom_gradient,
        linear_transpose as linear_transpose,
    )
    from ._api.derivatives.remat import checkpoint as checkpoint, remat as remat
    from ._api.devices.assemble import (
        device_put_replicated as device_put_replicated,
        device_put_sharded as device_put_sharded,
        make_array_from_callback as make_array_from_callback,
        make_array_from_process_local_data as make_array_from_process_local_data,
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )
    from ._api.devices.pmap import pmap as pmap
    from ._api.devices.shard_map import shard_map as shard_map, smap as smap
    from ._api.jit.compile_time import ensure_compile_time_eval as ensure_compile_time_eval
    from ._api.recording.compiled import (
        explain_memory as explain_memory,
        explain_sharding as explain_sharding,
        where_time as where_time,
    )
    from ._api.recording.record import record as record
    from ._api.recording.show import show as show
    from ._api.recording.watch import tag as tag
    from ._api.sizes.pad_axes import pad_axes as pad_axes
    from .as_jax import adopt as adopt
    from .numpy._indexing.ds import ds as ds
    from .numpy._indexing.refs import (
        empty_ref as empty_ref,
        free_ref as free_ref,
        freeze as freeze,
        new_ref as new_ref,
        typeof as typeof,
    )

_publish(__name__)
