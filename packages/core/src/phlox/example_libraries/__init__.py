"""``phlox.example_libraries``: small libraries that older JAX programs use, as in ``jax.example_libraries``."""

from . import optimizers, stax

__all__ = ["optimizers", "stax"]


def __dir__() -> list[str]:
    return __all__
