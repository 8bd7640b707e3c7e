"""``phlox_compat.experimental``: modules of ``jax.experimental`` that ported programs use."""

from phlox.extend import publish

__all__ = ["buffer_callback", "compilation_cache", "mesh_utils", "pjit", "rnn", "shard_map"]


publish(__name__)
