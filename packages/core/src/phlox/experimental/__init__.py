"""``phlox.experimental``: what JAX keeps under this name."""

from .._api.callbacks import io_callback

__all__ = ["io_callback"]
