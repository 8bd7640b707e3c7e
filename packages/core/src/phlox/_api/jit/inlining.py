"""`Inline`, the stages at which the call of a jitted function may be replaced by its operations."""

from __future__ import annotations

import enum
from typing import Any

from ..._base.errors import OptionError


class Inline(enum.Enum):
    """The stage at which the call of a jitted function inside of another is replaced by its operations.

    It is a value of the option `inline` of `jit`. `JAX_EARLY` is the trace of the outer function, like True; `JAX_LATE`
    is the lowering of the outer function. The others leave it to XLA: `AUTO`, like False, in any pass, `XLA_EARLY` and
    `XLA_LATE` in a pass that XLA chooses by them.

    >>> phlox.jit(lambda x: x + 1, inline=Inline.JAX_EARLY)(1.0)
    Array(2., dtype=float32, weak_type=True)
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


def as_inline(inline: Any) -> Inline:
    """The option `inline` of `jit`. Raises `OptionError` for objects that are no value of it."""
    if isinstance(inline, Inline):
        return inline
    if isinstance(inline, bool | int) or inline is None:
        return Inline.JAX_EARLY if inline else Inline.AUTO
    raise OptionError(f"jit: inline={inline!r} is no such option", instead="True, False or an Inline")


#: the parameter `inline` of equations of calls, see `call.jit_p`
IN_EQUATION: dict[Inline, bool | str] = {
    Inline.AUTO: False,
    Inline.JAX_LATE: True,
    Inline.XLA_EARLY: Inline.XLA_EARLY.value,
    Inline.XLA_LATE: Inline.XLA_LATE.value,
}
