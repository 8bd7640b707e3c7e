"""``phlox_compat.experimental``: modules of ``jax.experimental`` that ported programs use."""

from phlox.extend import on_demand as _on_demand, publish as _publish

with _on_demand(__name__):
    from . import buffer_callback, compilation_cache, mesh_utils, pjit, rnn, shard_map, xla_metadata

__all__ = ["buffer_callback", "compilation_cache", "mesh_utils", "pjit", "rnn", "shard_map", "xla_metadata"]


_publish(__name__)
