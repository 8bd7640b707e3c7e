"""Tables and helpers of ``jax.interpreters`` that only libraries use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from phlox.core import Trace
from phlox.errors import UnsupportedError
from phlox.extend import Primitive, ShapedArray
from phlox.numpy import zeros

from .._core import BatchTracer as BatchTracer, JVPTrace as _JVPTrace, JVPTracer as JVPTracer
from ..interpreters import ad
from ..interpreters._tables import RuleTable

#: the dim of a value without the mapped axis
not_mapped = None
NotMapped = type(None)

#: rules ``(axis size, axis name, None, args, dims, **params) -> (outputs, output dims)``
axis_primitive_batchers = RuleTable(
    "batch",
    adapt=lambda rule: lambda axis, args, dims, **params: rule(axis.size, axis.name, None, args, dims, **params),
)


class JVPTrace(_JVPTrace):
    """The forward derivative of the operations on its tracers; PennyLane marks arguments by it.

    Args:
      parent_trace: the trace of the derivatives, None to compute them at once.
      tag: not used; traces are told apart by their identity.
    """

    __slots__ = ()

    def __init__(self, parent_trace: Trace | None, tag: Any):
        super().__init__()
        self.parent = parent_trace


def deflinear(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """As `ad.deflinear2`, for a rule that is given the cotangent only."""
    ad.deflinear2(primitive, lambda ct, *_args, **params: transpose_rule(ct, **params))


def zeros_like_aval(aval: ShapedArray) -> Any:
    """Zeros of this type."""
    return zeros(aval.shape, aval.dtype)


def emit_python_callback(*_args: Any, **_kwargs: Any) -> NoReturn:
    """Raises: it builds MLIR, and phlox writes text."""
    raise UnsupportedError(
        "mlir.emit_python_callback builds MLIR, and phlox writes text", instead="jax.pure_callback, io_callback"
    )
