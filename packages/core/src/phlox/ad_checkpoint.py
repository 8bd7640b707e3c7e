"""``phlox.ad_checkpoint``: `checkpoint`, its policies and named values, as in ``jax.ad_checkpoint``."""

from . import checkpoint_policies as checkpoint_policies
from ._api.derivatives.remat import (
    checkpoint as checkpoint,
    checkpoint_name as checkpoint_name,
    print_saved_residuals as print_saved_residuals,
    remat as remat,
)
from ._base.public_names import publish as _publish
from ._ops.control.division import Offloadable as Offloadable, Recompute as Recompute, Saveable as Saveable

_publish(__name__)
