"""phlox: JAX's programming model on jaxlib. Arrays, `jit`, `grad`, `vmap`, `pmap`, PRNG keys.

    import phlox
    import phlox.numpy as jnp
    from phlox import grad, jit, vmap

Names, signatures and numbers are JAX's: ``import phlox as jax`` runs programs written for it.
"""

from . import (
    ad_checkpoint,
    checkpoint_policies,
    core,
    custom_derivatives,
    debug,
    dlpack,
    dtypes,
    errors,
    example_libraries,
    experimental,
    export,
    extend,
    ffi,
    flatten_util,
    interpreters,
    lax,
    nn,
    numpy,
    random,
    scipy,
    sharding,
    stages,
    tree,
    tree_util,
    typing,
)
from ._api.callbacks import pure_callback
from ._api.closures import closure_convert, custom_gradient, linear_transpose
from ._api.compile_time import ensure_compile_time_eval
from ._api.configuration import (
    config,
    default_device,
    default_matmul_precision,
    disable_jit,
    enable_x64,
    numpy_dtype_promotion,
    numpy_rank_promotion,
)
from ._api.custom import custom_jvp, custom_vjp
from ._api.devices import block_until_ready, copy_to_host_async, device_get, device_put
from ._api.differentiate import jvp, linearize, vjp
from ._api.grad import grad, hessian, jacfwd, jacobian, jacrev, value_and_grad
from ._api.jit import clear_caches, jit
from ._api.naming import named_call, named_scope
from ._api.pmap import pmap
from ._api.remat import checkpoint, checkpoint as remat
from ._api.stage_out import ShapeDtypeStruct, eval_shape, make_jaxpr
from ._api.vmap import vmap
from ._ir.dtypes import float0
from ._trace.trace import typeof
from ._xla import disk as cache
from ._xla.array import Array, Shard
from ._xla.callbacks import effects_barrier
from ._xla.devices import (
    Device,
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)
from ._xla.mesh import PartitionSpec as P
from ._xla.sharding import NamedSharding

__version__ = "0.1.0"

__all__ = [
    "Array",
    "Device",
    "NamedSharding",
    "P",
    "ShapeDtypeStruct",
    "Shard",
    "__version__",
    "ad_checkpoint",
    "block_until_ready",
    "cache",
    "checkpoint",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "config",
    "copy_to_host_async",
    "core",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "dlpack",
    "dtypes",
    "effects_barrier",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "example_libraries",
    "experimental",
    "export",
    "extend",
    "ffi",
    "flatten_util",
    "float0",
    "grad",
    "hessian",
    "interpreters",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linear_transpose",
    "linearize",
    "local_device_count",
    "local_devices",
    "make_jaxpr",
    "named_call",
    "named_scope",
    "nn",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "pmap",
    "process_count",
    "process_index",
    "pure_callback",
    "random",
    "remat",
    "scipy",
    "sharding",
    "stages",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "value_and_grad",
    "vjp",
    "vmap",
]
