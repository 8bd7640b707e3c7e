"""``phlox_compat.experimental``: modules of ``jax.experimental`` that ported programs use."""

from typing import TYPE_CHECKING

from phlox.extend import publish as _publish

if TYPE_CHECKING:
    from . import buffer_callback, compilation_cache, mesh_utils, pjit, rnn, shard_map

__all__ = ["buffer_callback", "compilation_cache", "mesh_utils", "pjit", "rnn", "shard_map"]


_publish(__name__, "buffer_callback compilation_cache mesh_utils pjit rnn shard_map")
