"""``phlox.example_libraries``: small libraries that older JAX programs use, as in ``jax.example_libraries``."""

from phlox.extend import publish

from . import optimizers, stax

__all__ = ["optimizers", "stax"]


publish(__name__)
