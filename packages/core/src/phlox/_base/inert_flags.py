"""Options of JAX that change nothing in phlox: programs may set and read them.

They belong to parts that phlox does not have (Pallas, jax2tf, profile-guided optimization, services of clusters), to
choices that it makes in one way, or to JAX's own tests. A value other than the default is noted once in the log.
"""

from __future__ import annotations

import functools
import os
from typing import Any

#: JAX's names, and its defaults on CPUs
DEFAULTS: dict[str, Any] = {
    "check_vma": False,
    "eager_constant_folding": False,
    "exclude_test_targets": None,
    "jax2tf_associative_scan_reductions": False,
    "jax2tf_default_native_serialization": True,
    "jax_accurate_erf_inv": False,
    "jax_array_garbage_collection_guard": None,
    "jax_auto_pcast": True,
    "jax_backend_target": "",
    "jax_bcoo_cusparse_lowering": False,
    "jax_captured_constants_report_frames": 0,
    "jax_captured_constants_warn_bytes": 2000000000,
    "jax_check_proxy_envs": True,
    "jax_compilation_cache_check_contents": False,
    "jax_compilation_cache_expect_pgle": False,
    "jax_compilation_cache_include_metadata_in_key": False,
    "jax_compiler_detailed_logging_min_ops": 10,
    "jax_compiler_enable_remat_pass": True,
    "jax_cpu_collectives_implementation": "gloo",
    "jax_cpu_get_global_topology_timeout_minutes": 5,
    "jax_cpu_get_local_topology_timeout_minutes": 2,
    "jax_cross_host_transfer_socket_address": "",
    "jax_cross_host_transfer_timeout_seconds": None,
    "jax_cross_host_transfer_transfer_size": None,
    "jax_cross_host_transport_addresses": "",
    "jax_custom_jvp3": False,
    "jax_custom_vjp3": False,
    "jax_debug_leaked_clients_on_clear_backends": False,
    "jax_disable_bwd_checks": False,
    "jax_disable_most_optimizations": False,
    "jax_disable_vmap_shmap_error": False,
    "jax_disallow_mesh_context_manager": False,
    "jax_distributed_debug": False,
    "jax_distributed_verify_secure_credentials": False,
    "jax_embedded_constants_max_bytes": 32,
    "jax_enable_pgle": False,
    "jax_enable_preemption_service": True,
    "jax_enable_recoverability": False,
    "jax_error_checking_behavior_divide": "ignore",
    "jax_error_checking_behavior_nan": "ignore",
    "jax_error_checking_behavior_oob": "ignore",
    "jax_exec_time_optimization_effort": 0.0,
    "jax_experimental_unsafe_xla_runtime_errors": False,
    "jax_export_calling_convention_version": 10,
    "jax_export_deserialize_expired_versions": False,
    "jax_export_ignore_forward_compatibility": False,
    "jax_force_dcn_cross_host_transfers": False,
    "jax_include_full_tracebacks_in_locations": True,
    "jax_memory_fitting_effort": 0.0,
    "jax_memory_fitting_level": "O2",
    "jax_mock_gpu_topology": "",
    "jax_mosaic_allow_hlo": False,
    "jax_mosaic_unzip_debug_locations": True,
    "jax_mtls_ca_file": None,
    "jax_mtls_cert_file": None,
    "jax_mtls_key_file": None,
    "jax_mtls_peer_uri_prefix": None,
    "jax_mutable_array_checks": True,
    "jax_num_generated_cases": None,
    "jax_oneapi_visible_devices": "all",
    "jax_optimization_level": "UNKNOWN",
    "jax_pallas_auto_assign_collective_ids": "no",
    "jax_pallas_auto_assign_collective_ids_limit": 25,
    "jax_pallas_enable_debug_checks": False,
    "jax_pallas_poison_buffers": False,
    "jax_pallas_use_mosaic_gpu": True,
    "jax_pallas_verbose_errors": False,
    "jax_persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
    "jax_persistent_cache_min_compile_time_secs": 1.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
    "jax_pgle_aggregation_percentile": 90,
    "jax_pgle_profiling_runs": 3,
    "jax_pjrt_client_create_options": None,
    "jax_pprint_use_color": True,
    "jax_ragged_dot_use_gpu_pallas_triton_lowering": False,
    "jax_ragged_dot_use_ragged_dot_instruction": True,
    "jax_raise_on_ppermute_sort_diff": True,
    "jax_raise_persistent_cache_errors": False,
    "jax_refs_to_pins": False,
    "jax_remat3": False,
    "jax_remat_barrier_no_cotangents": False,
    "jax_remove_custom_partitioning_ptr_from_cache_key": False,
    "jax_remove_size_one_mesh_axis_from_type": False,
    "jax_scan3": False,
    "jax_send_traceback_to_runtime": "off",
    "jax_serialization_version": 0,
    "jax_share_binary_between_hosts": False,
    "jax_share_binary_between_hosts_timeout_ms": 1200000,
    "jax_skip_slow_tests": None,
    "jax_softmax_custom_jvp": False,
    "jax_sort_devices_by_process_index": True,
    "jax_source_url_schema": None,
    "jax_test_dut": None,
    "jax_test_num_threads": None,
    "jax_test_with_persistent_compilation_cache": None,
    "jax_thread_guard": False,
    "jax_threefry_gpu_kernel_lowering": False,
    "jax_traceback_in_locations_limit": 100,
    "jax_tracer_error_num_traceback_frames": 5,
    "jax_use_cpp_shard_args": False,
    "jax_use_direct_linearize": True,
    "jax_use_emit_pipeline_primitive": False,
    "jax_use_hlo_logistic_lowering": None,
    "jax_use_magma": "auto",
    "jax_use_rgv3": True,
    "jax_use_shardy_partitioner": True,
    "jax_xla_backend": "",
    "jax_xla_profile_version": 0,
    "max_cases_sampling_retries": None,
    "mock_num_gpu_processes": 0,
    "test_targets": None,
}
_BEHAVIORS = ("ignore", "raise")
#: the values of options that have a few; JAX refuses others
CHOICES: dict[str, tuple[Any, ...]] = {
    "jax_array_garbage_collection_guard": ("allow", "log", "fatal", None),
    "jax_cpu_collectives_implementation": ("gloo", "mpi", "megascale", None),
    "jax_error_checking_behavior_divide": _BEHAVIORS,
    "jax_error_checking_behavior_nan": _BEHAVIORS,
    "jax_error_checking_behavior_oob": _BEHAVIORS,
    "jax_memory_fitting_level": ("UNKNOWN", "O0", "O1", "O2", "O3"),
    "jax_optimization_level": ("UNKNOWN", "O0", "O1", "O2", "O3"),
}
#: the same by names without ``jax_``
_NAMES = {name.removeprefix("jax_"): name for name in DEFAULTS}


def full_name(short: str) -> str | None:
    """JAX's name of an option, from the name without ``jax_``; None if it is none of these."""
    return _NAMES.get(short)


def check(name: str, value: Any) -> None:
    """Raises `ValueError` if JAX's option cannot have this value: one of a few words, or a number."""
    choices, kind = CHOICES.get(name), type(DEFAULTS[name])
    if choices is not None and value not in choices:
        raise ValueError("one of " + ", ".join(repr(choice) for choice in choices))
    if kind in (int, float) and isinstance(value, str):
        kind(value)


# Cached, so that each option is noted once.
@functools.cache
def note(name: str) -> None:
    """Logs that a program sets an option without effect; for each option once."""
    import logging  # this module is imported with phlox, which does not wait for it

    logging.getLogger("phlox").debug("the option %s is accepted, and has no effect in phlox", name)


def first_value(name: str) -> Any:
    """The value of an option that the program has not set: of the environment variable, or the default."""
    text, default = os.environ.get(name.upper()), DEFAULTS[name]
    if text is None:
        return default
    if isinstance(default, bool):
        return text.strip().lower() in ("1", "true", "yes", "on")
    # Numbers and texts of the environment are converted to the class of the default.
    return type(default)(text) if isinstance(default, (int, float)) else text
