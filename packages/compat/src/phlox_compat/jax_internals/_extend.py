"""``jax.extend.backend``, ``sharding``, ``mlir``: clients, options of XLA and bytes of programs, for libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from phlox import clear_caches, devices, effects_barrier

from .._core import NAME, add_any, client, config, hlo, native

#: caches of libraries, which `clear_in_memory_compilation_cache` clears
_caches: dict[Any, str] = {}

deserialize_portable_artifact = native.mlir.deserialize_portable_artifact
serialize_portable_artifact = native.mlir.serialize_portable_artifact
refine_polymorphic_shapes = native.mlir.refine_polymorphic_shapes
hlo_to_stablehlo = native.mlir.hlo_to_stablehlo

#: the primitives of `checkpoint_name`, and of sums of cotangents
name_p = NAME
add_jaxvals_p = add_any


def get_default_device() -> Any:
    """The device of the flag `default_device`, or the first one."""
    device = config.current().default_device
    return client(device).local_devices()[0] if isinstance(device, str) else device or devices()[0]


def backend_xla_version(platform: str | None = None) -> int | None:
    """The version that a plugin for a platform reports; None for the clients that jaxlib contains."""
    return getattr(client(platform), "xla_version", None)


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Registers an object with ``cache_clear()``."""
    _caches[cache] = for_what


def clear_in_memory_compilation_cache() -> None:
    """Clears the caches of programs, and those of `register_backend_cache`."""
    effects_barrier()
    clear_caches()
    for cache in list(_caches):
        cache.cache_clear()


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    env_options_overrides: dict[str, Any] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Any = None,
) -> Any:
    """XLA's options for a program that a library compiles itself.

    Args:
      num_replicas, num_partitions: the numbers of replicas and of partitions.
      device_assignment: devices or their numbers, of shape (replicas, partitions); with one partition also (replicas,).
      env_options_overrides: options of XLA's debug flags by name.
      fdo_profile: a profile that directs optimizations.
      detailed_logging, backend: not used.
    """
    options = native.CompileOptions()
    options.num_replicas, options.num_partitions = num_replicas, num_partitions
    build = options.executable_build_options
    build.use_spmd_partitioning = True
    if fdo_profile is not None:
        build.fdo_profile = fdo_profile
    if device_assignment is not None:
        numbers = np.asarray(device_assignment)
        if numbers.dtype == object:
            numbers = np.vectorize(lambda device: device.id, otypes=[np.int32])(numbers)
        numbers = numbers[:, None] if numbers.ndim == 1 and num_partitions == 1 else numbers
        if numbers.shape != (num_replicas, num_partitions):
            raise ValueError(
                f"device_assignment has shape {numbers.shape} instead of (replicas, partitions) = "
                f"({num_replicas}, {num_partitions})"
            )
        options.device_assignment = native.DeviceAssignment.create(numbers.astype(np.int32))
    if env_options_overrides:
        options.env_option_overrides = list(env_options_overrides.items())
    return options


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """XLA's ``OpSharding`` of its bytes."""
    proto = hlo.OpSharding()
    proto.ParseFromString(sharding)
    return proto


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """XLA's ``HloSharding`` of its bytes."""
    return hlo.HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> bytes:
    """The bytes of an ``HloSharding``."""
    return sharding.to_proto().SerializeToString()
