"""``phlox.ad``: options of ``pullback.with_refs`` (see `phlox.vjp`), which say what to do with each gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..._base.errors import RefError
from ..._base.pytree import register_static
from ..._ir.primitive import current_trace
from ..._ops.elementwise.arithmetic import add_any
from ..._trace.refs import Ref
from ..._trace.trace import typeof


@dataclass(frozen=True, slots=True)
class GradValue:
    """Return the gradient."""


@dataclass(frozen=True, slots=True)
class DontWant:
    """Leave the gradient out."""


# Static, so that the result is a tree whose leaves are gradients only.
@register_static
@dataclass(frozen=True, slots=True)
class GradRef:
    """In the result, takes the place of a gradient that was added to a reference."""


@register_static
@dataclass(frozen=True, slots=True)
class DidntWant:
    """In the result, takes the place of a gradient that was left out."""


def deliver(gradients: Sequence[Any], wishes: Sequence[Any]) -> list[Any]:
    """The gradients as the wishes ask: returned, left out, or added to a reference."""
    # The trace of the call, in which the reference is read and written.
    trace = current_trace.get()
    out: list[Any] = []
    for gradient, wish in zip(gradients, wishes, strict=True):
        if isinstance(wish, Ref):
            aval, inner = typeof(gradient), wish.aval.inner_aval
            if (aval.shape, aval.dtype) != (inner.shape, inner.dtype):
                raise RefError(f"with_refs: a gradient of type {aval.short} for a reference of type {wish.aval}")
            # Added and not replaced: several pullbacks may collect in one reference.
            wish.write(trace, add_any(wish.read(trace), gradient))
            out.append(GradRef())
        else:
            out.append(DidntWant() if isinstance(wish, DontWant) else gradient)
    return out
