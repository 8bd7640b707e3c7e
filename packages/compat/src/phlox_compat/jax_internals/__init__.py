"""``phlox_compat.jax_internals``: what libraries take from the inside of JAX.

Libraries that say ``import jax`` use some names that no program would use: wrappers of functions, tables of rules, the
current trace, modules below ``jax._src``. They are here; `phlox.as_jax` and `phlox.adopt` present them. `TABLE` lists
each name with the library that asks for it. `UNAVAILABLE` has the parts of JAX that phlox does not have, with what to
use.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from phlox.extend import publish

from .._core import UNAVAILABLE as _ABSENT

if TYPE_CHECKING:  # `_first` imports them by name; packagers look for import statements
    from ..interpreters import _mlir_helpers  # noqa: F401
    from . import (  # noqa: F401
        _annotations,
        _custom_partitioning,
        _extend,
        _extended_dtypes,
        _former_hijax,
        _functions,
        _hijax,
        _pallas,
        _partial_eval,
        _promotion,
        _registry,
        _tables,
        _threefry,
        _topologies,
        _tracebacks,
        _traces,
        _types,
        _versions,
    )
    from ._hijax import _shard_map, _transformations, _vmap  # noqa: F401
    from ._pallas import _tpu, _triton  # noqa: F401

__all__ = ["JAX_VERSION", "TABLE", "UNAVAILABLE", "Entry"]

#: the version of JAX that phlox stands for; libraries choose code by it
JAX_VERSION = "0.12.0"


class Entry(NamedTuple):
    """One line of `TABLE`.

    Attributes:
      module: the module of JAX.
      names: the names in it; ``("*",)`` for every name that one of `homes` has.
      homes: the modules that provide the names, in the order of lookup: "." is phlox, ``_types`` a file of this
        folder, ``core`` is ``phlox.core``, ``jaxlib.mlir.ir`` a module of jaxlib.
      libraries: those that ask for it; ``any`` if JAX's pages offer it to all.
    """

    module: str
    names: tuple[str, ...]
    homes: tuple[str, ...]
    libraries: tuple[str, ...]


# module of jax | names | homes | libraries that use them
_LINES = """
jax | __version__ __version_info__ | _versions | chex equinox flax haiku
jax.version | __version__ __version_info__ _version | _versions | numpyro torchax
jax.extend.linear_util | * | _functions | distrax flax haiku numpyro
jax._src.linear_util | * | _functions | flax
jax.linear_util | * | _functions | haiku
jax.interpreters.partial_eval | * | _partial_eval | flax
jax._src.interpreters.partial_eval | * | _partial_eval | flax
jax._src.traceback_util | * | _tracebacks | diffrax equinox flax lineax optimistix
jax.extend.source_info_util | * | _tracebacks | flax
jax._src.source_info_util | * | _tracebacks | flax
jax.core | take_current_trace set_current_trace | _traces | flax haiku
jax.core | get_opaque_trace_state find_top_trace TraceTag | _traces | flax haiku
jax.extend.core | take_current_trace set_current_trace | _traces | equinox flax haiku
jax.extend.core | get_opaque_trace_state find_top_trace TraceTag | _traces | equinox flax haiku
jax._src.core | take_current_trace set_current_trace | _traces | equinox flax
jax._src.core | get_opaque_trace_state find_top_trace TraceTag | _traces | equinox flax
jax.core | trace_state_clean | _traces | numpyro haiku
jax._src.core | trace_state_clean | _traces | numpyro
jax.core | Atom DropVar AbstractValue | _types | equinox haiku lineax tensorflow_probability
jax.core | gensym is_constant_dim | _types | kfac_jax haliax
jax.core | pytype_aval_mappings | _types | tensorflow_probability
jax.core | raise_to_shaped physical_aval | _types | equinox lineax
jax.core | Value ParamDict | _types | oryx
jax.core | eval_context | _traces | oryx
jax.lax | PrecisionLike ConvGeneralDilatedDimensionNumbers | _types | flax haiku
jax.extend.core | gensym | _types | kfac_jax
jax.extend.core | unsafe_am_i_under_a_jit_DO_NOT_USE unsafe_am_i_under_a_vmap_DO_NOT_USE | _traces | any
jax.extend.core | unsafe_get_axis_names_DO_NOT_USE nonempty_axis_env_DO_NOT_USE | _traces | any
jax.extend.core | Atom DropVar AbstractValue | _types | haiku
jax._src.core | Atom DropVar AbstractValue | _types | equinox lineax
jax._src.core | pytype_aval_mappings raise_to_shaped physical_aval AxisSize | _types | equinox lineax
jax.core | ClosedJaxpr Jaxpr JaxprEqn Literal | extend.core . | haiku treescope
jax.core | Primitive Var jaxpr_as_fun ensure_compile_time_eval | extend.core . | haiku treescope
jax.extend.core.primitives | call_p closed_call_p xla_pmap_p core_call_p | _types | distrax numpyro
jax._src.core | * | core extend.core errors . | chex equinox flax
jax._src.core | full_lower | _traces | quax
jax._src.ad_checkpoint | saved_residuals | phlox_compat._core | any
jax._src.ad_checkpoint | * | ad_checkpoint . | any
jax._src.ad_util | * | extend.core.primitives interpreters.ad | lineax
jax._src.ad_util | SymbolicZero | custom_derivatives | equinox
jax._src.api | _dtype | _types | pennylane
jax._src.api | * | . api_util | flax
jax._src.api_util | infer_argnums_and_argnames | _functions | e3nn_jax
jax._src.api_util | * | api_util | flax
jax._src.array | ArrayImpl | _types | orbax
jax._src.callback | * | . experimental | equinox
jax._src.checkify | JaxException | phlox_compat._core | flax
jax._src.checkify | * | experimental.checkify | chex
jax._src.compiler | backend_compile backend_compile_and_load | _types | chex
jax._src.config | * | . | flax
jax._src.custom_derivatives | * | . custom_derivatives | equinox
jax._src.dispatch | wait_for_tokens | _types | equinox
jax._src.dispatch | apply_primitive | _tables | any
jax._src.distributed | global_state | _types | orbax
jax._src.dtypes | TypePromotionError DType supports_inf | _types | chex flax
jax._src.dtypes | to_complex_dtype | _types | tinygp
jax._src.dtypes | dtype | _types | optree
jax._src.dtypes | ExtendedDType | _extended_dtypes | flax
jax._src.earray | EArray | _extended_dtypes | flax
jax.experimental | EArray | _extended_dtypes | flax
jax._src.dtypes | * | dtypes | equinox flax
jax._src.flattree | * | _flattree | quax
jax._src.flatten_util | * | flatten_util | blackjax
jax._src.lax.lax | * | lax extend.core.primitives | lineax
jax._src.lax.linalg | * | lax.linalg extend.core.primitives | any
jax._src.lax.parallel | * | lax extend.core.primitives | any
jax._src.lax.slicing | * | lax extend.core.primitives | any
jax._src.lax.control_flow | * | lax extend.core.primitives | equinox
jax._src.lib | jaxlib_extension_version version | _versions | flax
jax._src.lib._jax | * | jaxlib._jax | qwix
jax._src.literals | TypedFloat TypedInt TypedComplex TypedNdArray | _types | equinox
jax._src.mesh | * | sharding . | flax
jax._src.nn.functions | * | nn | any
jax._src.nn.initializers | * | nn.initializers | flax
jax._src.pjit | auto_axes explicit_axes reshard | sharding . | jaxns
jax._src.pjit | jit_p | extend.core.primitives | quax
jax._src.numpy.lax_numpy | * | numpy | numpyro
jax._src.numpy.einsum | * | numpy | any
jax._src.numpy.fft | * | numpy.fft | any
jax._src.numpy.linalg | * | numpy.linalg | any
jax._src.numpy.reductions | * | numpy | any
jax._src.numpy.ufuncs | * | numpy | esquilax
jax._src.numpy.vectorize | * | numpy | any
jax._src.numpy.util | * | _promotion numpy _types | cuthbert jaxopt orthax
jax._src.prng | * | extend.random random _threefry | flax quax
jax._src.public_test_util | * | test_util | chex tinygp
jax._src.random | * | random | numpyro
jax._src.random.threefry2x32 | * | _threefry extend.random | quax
jax._src.scipy.linalg | * | scipy.linalg | any
jax._src.scipy.special | * | scipy.special | jaxctx jaxns
jax._src.shard_map | * | . | any
jax._src.sharding_impls | * | sharding . | flax
jax._src.sharding_impls | canonicalize_sharding | _types | jaxns
jax._src.state.types | AbstractRef | _types | flax
jax._src.tree_util | _registry | _registry | flax
jax._src.tree_util | * | tree_util | orbax
jax._src.typing | SupportsDType | _types | jaxctx
jax._src.typing | * | typing | numpyro
jax._src.util | safe_map safe_zip unzip2 unzip3 split_list partition_list wraps | _functions | equinox
jax._src.util | HashablePartial canonicalize_axis | _functions | optree torchax
jax._src.xla_bridge | _backends get_backend backends | _types | chex keras
jax._src.xla_bridge | * | . | chex
jax._src.interpreters.ad | * | interpreters.ad | equinox
jax._src.interpreters.batching | * | interpreters.batching | equinox
jax._src.interpreters.mlir | * | interpreters.mlir phlox_compat.interpreters._mlir_helpers | equinox
jax._src.interpreters.pxla | * | _types | flax
jax.extend.backend | get_backend backends | _types | flax
jax.extend.backend | get_default_device get_compile_options backend_xla_version | _extend | any
jax.extend.backend | register_backend_cache clear_in_memory_compilation_cache | _extend | any
jax.extend.sharding | get_op_sharding_from_serialized_proto | _extend | any
jax.extend.sharding | get_hlo_sharding_from_serialized_proto get_serialized_proto_from_hlo_sharding | _extend | any
jax.extend.mlir | deserialize_portable_artifact serialize_portable_artifact | _extend | any
jax.extend.mlir | refine_polymorphic_shapes hlo_to_stablehlo | _extend | any
jax.ad_checkpoint | name_p | _extend | any
jax.interpreters.ad | add_jaxvals_p | _extend | any
jax.extend.sharding | * | sharding | flax
jax.lib.xla_bridge | get_backend | _types | rlax numpyro
jax.lib | __version__ | _versions | jaxns
jax.lib.xla_extension | XlaRuntimeError | _types | equinox
jax.interpreters.batching | axis_primitive_batchers not_mapped NotMapped BatchTracer | _tables | equinox
jax.interpreters.batching | defreducer fancy_primitive_batchers | _tables | any
jax.interpreters.ad | defjvp2 get_primitive_transpose | _tables | any
jax.interpreters.mlir | * | phlox_compat.interpreters._mlir_helpers | mpi4jax sphericart transformer_engine
jax._src.lib.mlir.ir | * | jaxlib.mlir.ir | mpi4jax
jax._src.lib.mlir.dialects.hlo | * | jaxlib.mlir.dialects.stablehlo | mpi4jax
jax.extend.mlir.ir | * | jaxlib.mlir.ir | jax_triton
jax.extend.mlir.dialects.arith | * | jaxlib.mlir.dialects.arith | jax_triton
jax.extend.mlir.dialects.builtin | * | jaxlib.mlir.dialects.builtin | jax_triton
jax.extend.mlir.dialects.chlo | * | jaxlib.mlir.dialects.chlo | jax_triton
jax.extend.mlir.dialects.func | * | jaxlib.mlir.dialects.func | jax_triton
jax.extend.mlir.dialects.math | * | jaxlib.mlir.dialects.math | jax_triton
jax.extend.mlir.dialects.memref | * | jaxlib.mlir.dialects.memref | jax_triton
jax.extend.mlir.dialects.mpmd | * | jaxlib.mlir.dialects.mpmd | jax_triton
jax.extend.mlir.dialects.scf | * | jaxlib.mlir.dialects.scf | jax_triton
jax.extend.mlir.dialects.sdy | * | jaxlib.mlir.dialects.sdy | jax_triton
jax.extend.mlir.dialects.sparse_tensor | * | jaxlib.mlir.dialects.sparse_tensor | jax_triton
jax.extend.mlir.dialects.stablehlo | * | jaxlib.mlir.dialects.stablehlo | jax_triton
jax.extend.mlir.dialects.vector | * | jaxlib.mlir.dialects.vector | jax_triton
jax.extend.mlir.passmanager | * | jaxlib.mlir.passmanager | jax_triton
jax.interpreters.ad | JVPTrace JVPTracer deflinear zeros_like_aval | _tables | equinox haiku pennylane
jax.interpreters.xla | apply_primitive | _tables | s2fft
jax.interpreters.xla | canonicalize_dtype_handlers pytype_aval_mappings | _types | tensorflow_probability
jax.interpreters.pxla | thread_resources | _types | flax
jax.experimental.array_serialization.serialization | GlobalAsyncCheckpointManagerBase | _types | orbax
jax.experimental.hijax | * | _hijax _former_hijax | flax
jax.experimental.compute_on | * | _annotations | maxtext tunix
jax.experimental.xla_metadata | * | phlox_compat.experimental.xla_metadata | maxtext
jax.experimental.scheduling_groups | * | phlox_compat.experimental.xla_metadata | maxtext
jax.experimental.shard_alike | * | _annotations | maxtext
jax._src.shard_alike | * | _annotations | maxtext
jax.experimental.custom_partitioning | * | _custom_partitioning | torchax transformer_engine
jax.experimental.topologies | * | _topologies | maxtext
jax.experimental.sparse.bcoo | * | experimental.sparse | folx sparsejac
jax.experimental.sparse.bcsr | * | experimental.sparse | folx
jax.experimental.sparse.coo | * | experimental.sparse | folx
jax.experimental.sparse.csr | * | experimental.sparse | folx
jax.experimental.sparse.ad | * | experimental.sparse | folx
jax.experimental.sparse.api | * | experimental.sparse | folx
jax.experimental.sparse.random | * | experimental.sparse | folx
jax.experimental.sparse.transform | * | experimental.sparse | folx
jax.experimental.sparse.util | * | experimental.sparse | folx
jax.experimental.sparse._base | * | experimental.sparse | folx
jax.experimental.pallas | * | _pallas | jax_md qwix
jax.experimental.pallas.tpu | * | _pallas._tpu | qwix
jax.experimental.pallas.triton | * | _pallas._triton | jax_md
jax | typeof | _hijax | flax
jax | grad value_and_grad jvp vjp linearize | _hijax._transformations | any
jax | vmap | _hijax._vmap | any
jax | shard_map | _hijax._shard_map | any
jax.core | typeof get_aval | _hijax | flax
jax._src.core | typeof get_aval | _hijax | flax
"""


def _entries() -> tuple[Entry, ...]:
    lines = [[part.strip() for part in line.split("|")] for line in _LINES.strip().splitlines()]
    return tuple(Entry(module, *(tuple(part.split()) for part in rest)) for module, *rest in lines)


#: every name that libraries take from JAX's inside
TABLE = _entries()

_NAMED = {f"{entry.module}.{name}": entry.homes for entry in TABLE for name in entry.names if name != "*"}
_FORWARDED: dict[str, tuple[str, ...]] = {entry.module: entry.homes for entry in TABLE if entry.names == ("*",)}
_MODULES = {
    ".".join(parts[:count])
    for parts in (entry.module.split(".") for entry in TABLE)
    for count in range(1, len(parts) + 1)
}

#: parts of JAX that are not there: why, and what to use. Some of those that programs of phlox lack are in `TABLE`.
UNAVAILABLE = {name: why for name, why in _ABSENT.items() if name not in _MODULES}


def has(jax_name: str) -> bool:
    """Whether `TABLE` has this full name."""
    return jax_name in _NAMED


def find(jax_name: str) -> Any:
    """The object that stands for a full name of `TABLE`."""
    return _first(_NAMED[jax_name], jax_name.rpartition(".")[2])


def forwarded(jax_module: str, name: str) -> Any:
    """The name in one of the modules that stand for all of `jax_module`; `AttributeError` if none has it."""
    return _first(_FORWARDED.get(jax_module, ()), name)


def _first(homes: tuple[str, ...], name: str) -> Any:
    for home in homes:
        try:
            return getattr(import_home(home), name)
        except AttributeError:
            continue
    raise AttributeError(name)


def import_home(home: str) -> ModuleType:
    """The module that an entry of `TABLE` names."""
    if home == ".":
        return importlib.import_module("phlox")
    if home.startswith(("jaxlib.", "phlox_compat.")):
        return importlib.import_module(home)
    return importlib.import_module(f"{__name__ if home[0] == '_' else 'phlox'}.{home}")


def has_module(jax_module: str) -> bool:
    """Whether `TABLE` has names of this module of JAX, or of one below it."""
    return jax_module in _MODULES


def names_of(jax_module: str) -> list[str]:
    """The names of `TABLE` in a module of JAX; for ``*`` the public names of its homes."""
    forwarded = [name for home in _FORWARDED.get(jax_module, ()) for name in dir(import_home(home)) if name[0] != "_"]
    return forwarded + [name for entry in TABLE if entry.module == jax_module for name in entry.names if name != "*"]


publish(__name__)
