"""``phlox.checkpoint_policies``: policies of what `checkpoint` saves, as in ``jax.checkpoint_policies``.

A policy is any function ``policy(primitive, *avals, **params) -> bool``; these are the usual ones.
"""

from ._api.derivatives.remat import (
    dots_saveable,
    dots_saveable as checkpoint_dots,
    dots_with_no_batch_dims_saveable,
    dots_with_no_batch_dims_saveable as checkpoint_dots_with_no_batch_dims,
    everything_saveable,
    nothing_saveable,
    offload_dot_with_no_batch_dims,
    save_and_offload_only_these_names,
    save_any_names_but_these,
    save_anything_except_these_names,
    save_from_both_policies,
    save_only_these_names,
)
from ._base.public_names import publish

__all__ = [
    "checkpoint_dots",
    "checkpoint_dots_with_no_batch_dims",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
    "everything_saveable",
    "nothing_saveable",
    "offload_dot_with_no_batch_dims",
    "save_and_offload_only_these_names",
    "save_any_names_but_these",
    "save_anything_except_these_names",
    "save_from_both_policies",
    "save_only_these_names",
]


publish(__name__)
