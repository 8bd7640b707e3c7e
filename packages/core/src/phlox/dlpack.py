"""``phlox.dlpack``: exchange of arrays with other libraries without copying, as in ``jax.dlpack``."""

from .numpy._create import from_dlpack

__all__ = ["from_dlpack"]
