"""`Inline`, the stages at which the call of a jitted function may be replaced by its operations."""

from __future__ import annotations

import enum
from typing import Any

from ..._base.errors import OptionError


class Inline(enum.Enum):
    """The stage at which the call of a jitted function inside of another is replaced by its operations.

    It is a value of the option `inline` of `jit`. `JAX_EARLY` is the trace of the outer function, like True. The others
    are equal in phlox, and like False: XLA decides.

    >>> phlox.jit(lambda x: x + 1, inline=Inline.JAX_EARLY)(1.0)
    Array(2., dtype=float32, weak_type=True)
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


def as_inline(inline: Any) -> bool:
    """Whether calls are replaced while the outer function is traced. Raises `OptionError` for other objects."""
    if isinstance(inline, Inline):
        return inline is Inline.JAX_EARLY
    if isinstance(inline, bool | int) or inline is None:
        return bool(inline)
    raise OptionError(f"jit: inline={inline!r} is no such option", instead="True, False or an Inline")
