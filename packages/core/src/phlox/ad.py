"""``phlox.ad``: options of ``pullback.with_refs`` of `phlox.vjp`, as in ``jax.ad``."""

from ._api.derivatives.ad import DidntWant, DontWant, GradRef, GradValue
from ._base.public_names import publish

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]


publish(__name__)
