"""``phlox.ad_checkpoint``: `checkpoint`, its policies and named values, as in ``jax.ad_checkpoint``."""

from . import checkpoint_policies
from ._api.derivatives.remat import checkpoint, checkpoint_name, print_saved_residuals, remat
from ._base.public_names import publish
from ._ops.control.division import Offloadable, Recompute, Saveable

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
]


publish(__name__)
