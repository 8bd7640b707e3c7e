"""``phlox.core``: types, tracers and the evaluation of Jaxprs, as in ``jax.core``."""

from __future__ import annotations

from typing import Any

from ._base.public_names import publish
from ._ir.avals import ShapedArray
from ._ir.dimensions import max_dim, min_dim
from ._trace.interpret import eval_jaxpr
from ._trace.trace import Trace, Tracer
from .extend.core import (
    Effect,
    Effects,
    concrete_or_error,
    jaxprs_in_params,
    mapped_aval,
    new_jaxpr_eqn,
    no_effects,
    primal_dtype_to_tangent_dtype,
    subjaxprs,
    unmapped_aval,
    valid_jaxtype,
)
from .lax._unstaged import known_primal
from .numpy._indexing.refs import typeof as get_aval

__all__ = [
    "Effect",
    "Effects",
    "ShapedArray",
    "Trace",
    "Tracer",
    "concrete_or_error",
    "eval_jaxpr",
    "get_aval",
    "is_concrete",
    "jaxprs_in_params",
    "mapped_aval",
    "max_dim",
    "min_dim",
    "new_jaxpr_eqn",
    "no_effects",
    "primal_dtype_to_tangent_dtype",
    "subjaxprs",
    "unmapped_aval",
    "valid_jaxtype",
]


def is_concrete(x: Any) -> bool:
    """Whether `x` has a concrete value: whether it is no tracer, or one of a derivative whose primal value is known.

    Args:
      x: any object.

    Returns:
      A bool.

    >>> seen = []
    >>> _ = phlox.jit(lambda x: seen.append(is_concrete(x)))(1.0)
    >>> is_concrete(1.0), seen
    (True, [False])
    """
    return not isinstance(known_primal(x), Tracer)


publish(__name__)
