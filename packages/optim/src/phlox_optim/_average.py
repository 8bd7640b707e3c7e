"""The moving average of parameters and state over the steps of training (Polyak and Juditsky 1992).

An average that starts at the initial parameters, with a decay of 0.999 from the first step on, consists of them for
thousands of steps. Here the decay grows with the number n of steps before, up to its limit: ``n / (n + 9)``. So the
average is that of about the last tenth of the steps, from the first step on, as long as training is short.
"""

from __future__ import annotations

from typing import Any

import phlox
import phlox.numpy as jnp
from phlox.extend import lenient_promotion

_WARMUP = 9


def start(tree: Any) -> Any:
    """The average before the first step: a copy, with 16-bit floats in 32 bits, in which small changes are not lost."""
    return phlox.tree.map(lambda x: jnp.array(x, wide(x)) if _is_averaged(x) else jnp.copy(x), tree)


def weight(limit: float, steps: Any) -> Any:
    """The weight of new values after so many averaged steps: 1 minus the decay, of which `limit` is the limit."""
    return jnp.maximum(jnp.float32(1 - limit), _WARMUP / (jnp.asarray(steps, jnp.float32) + _WARMUP))


def moved(average: Any, tree: Any, weight: Any) -> Any:
    """The average with new values. Those of integers, bools and keys have no average: the latest are taken."""

    def leaf(old: Any, new: Any) -> Any:
        return old + jnp.asarray(weight, old.dtype) * (jnp.asarray(new, old.dtype) - old) if _is_averaged(new) else new

    return phlox.tree.map(leaf, average, tree)


def in_dtypes_of(tree: Any, average: Any) -> Any:
    """The average in the dtypes of `tree`."""
    return phlox.tree.map(lambda x, old: jnp.asarray(old, x.dtype) if _is_averaged(x) else old, tree, average)


def _is_averaged(x: Any) -> bool:
    return bool(jnp.issubdtype(jnp.result_type(x), jnp.inexact))


@lenient_promotion()
def wide(x: Any) -> Any:
    """The dtype in which to sum numbers of the dtype of `x`: at least 32 bits."""
    return jnp.promote_types(jnp.result_type(x), jnp.float32)
