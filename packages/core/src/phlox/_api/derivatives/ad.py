"""``phlox.ad``: the destinations of gradients in ``pullback.with_refs``; see `phlox.vjp`."""

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


def deliver(gradients: Sequence[Any], destinations: Sequence[Any]) -> list[Any]:
    """Adds gradients to the references among `destinations`; returns the others, or `DidntWant` for `DontWant`."""
    # The trace of the call, in which the reference is read and written.
    trace = current_trace.get()
    out: list[Any] = []
    for gradient, destination in zip(gradients, destinations, strict=True):
        if isinstance(destination, Ref):
            aval, inner = typeof(gradient), destination.aval.inner_aval
            if (aval.shape, aval.dtype) != (inner.shape, inner.dtype):
                raise RefError(
                    f"with_refs: unexpected JAX type for a gradient ref: it is {destination.aval}, and the gradient "
                    f"{aval.short}"
                )
            # Added and not replaced: several pullbacks may collect in one reference.
            destination.write(trace, add_any(destination.read(trace), gradient))
            out.append(GradRef())
        else:
            out.append(DidntWant() if isinstance(destination, DontWant) else gradient)
    return out
