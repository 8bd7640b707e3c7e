"""``phlox.distributed``: programs over the devices of several processes, as in ``jax.distributed``."""

from ._base.public_names import publish
from ._xla.distributed import initialize, is_initialized, shutdown

__all__ = ["initialize", "is_initialized", "shutdown"]


publish(__name__)
