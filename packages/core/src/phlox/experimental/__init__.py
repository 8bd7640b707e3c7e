"""``phlox.experimental``: modules of ``jax.experimental``."""

from .._api.debug.callbacks import io_callback
from . import checkify

__all__ = ["checkify", "io_callback"]


def __dir__() -> list[str]:
    return __all__
