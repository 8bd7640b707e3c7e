"""``phlox.ad_checkpoint``: names for values that policies of `checkpoint` keep, as in ``jax.ad_checkpoint``."""

from ._api.remat import checkpoint, checkpoint_name, print_saved_residuals

__all__ = ["checkpoint", "checkpoint_name", "print_saved_residuals"]
