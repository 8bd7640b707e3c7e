"""``phlox.distributed``: programs over the devices of several processes, as in ``jax.distributed``."""

from ._xla.distributed import initialize, is_initialized, shutdown

__all__ = ["initialize", "is_initialized", "shutdown"]


def __dir__() -> list[str]:
    return __all__
