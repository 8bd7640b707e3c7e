"""``phlox.ad``: options of ``pullback.with_refs`` of `phlox.vjp`, as in ``jax.ad``."""

from ._api.derivatives.ad import DidntWant, DontWant, GradRef, GradValue

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]


def __dir__() -> list[str]:
    return __all__
