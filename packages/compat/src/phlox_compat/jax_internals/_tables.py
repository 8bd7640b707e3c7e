"""Tables and helpers of ``jax.interpreters`` that only libraries use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from phlox import typeof
from phlox.core import Trace
from phlox.extend import Primitive, ShapedArray, Zero
from phlox.numpy import zeros

from .._core import BatchTracer as BatchTracer, JVPTrace as _JVPTrace, JVPTracer as JVPTracer
from ..interpreters import ad
from ..interpreters._tables import RuleTable

#: the dim of a value without the mapped axis
not_mapped = None
NotMapped = type(None)

#: rules ``(axis, args, dims, **params) -> (outputs, output dims)``, where the axis has a size and a name
fancy_primitive_batchers = RuleTable("batch")

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


def defjvp2(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """As `ad.defjvp`, for rules that are given the result too: ``rule(tangent, out, *primals, **params)``."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        parts = [
            rule(t, out, *primals, **params)
            for rule, t in zip(jvprules, tangents, strict=True)
            if rule is not None and type(t) is not Zero
        ]
        return out, reduce(ad.add_tangents, parts, Zero(typeof(out).tangent()))

    primitive.jvp = jvp


def get_primitive_transpose(primitive: Primitive) -> Callable[..., Any]:
    """The rule of `ad.primitive_transposes`.

    Raises:
      NotImplementedError: the primitive has none.
    """
    rule = ad.primitive_transposes.get(primitive)
    if rule is None:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for '{primitive}' not implemented"
        )
    return rule


def defreducer(primitive: Primitive, identity: Any = None) -> None:
    """Sets the batching rule of a reduction over the parameter ``axes``: the axes behind the mapped one move by one."""

    def batch(
        axis: Any, args: Sequence[Any], dims: Sequence[int], axes: Sequence[int], **params: Any
    ) -> tuple[Any, Any]:
        (x,), (dim,) = args, dims
        moved = tuple(a + (a >= dim) for a in axes)
        out_dim = dim - sum(a < dim for a in moved)
        out = primitive.bind(x, axes=moved, **params)
        return out, (out_dim,) * len(out) if primitive.multiple_results else out_dim

    primitive.batch = batch


def apply_primitive(primitive: Primitive, *args: Any, **params: Any) -> Any:
    """Executes the operation by its lowering rule; libraries hand it to `def_impl`."""
    return primitive.compiled(*args, **params)


def zeros_like_aval(aval: ShapedArray) -> Any:
    """Zeros of this type."""
    return zeros(aval.shape, aval.dtype)
