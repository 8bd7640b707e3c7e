"""``phlox.example_libraries``: small libraries that older JAX programs use."""

from . import optimizers

__all__ = ["optimizers"]
