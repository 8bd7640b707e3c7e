"""Calling a Jaxpr as one unit."""

from __future__ import annotations

from typing import Any

from ..._base.errors import ArgumentError, ShapeError
from ..._ir.jaxpr import ClosedJaxpr
from ..._ops.control.call import call
from ..._trace.trace import typeof


def closed_call(call_jaxpr: ClosedJaxpr, *args: Any) -> list[Any]:
    """Calls a Jaxpr with flat arguments as one unit: one equation in a Jaxpr, one function in a compiled program.

    It replaces ``jax.extend.core.primitives.closed_call_p.bind``. The equation is that of a jitted function.

    Args:
      call_jaxpr: a Jaxpr with its constants, as `phlox.make_jaxpr` returns it.
      *args: arrays and numbers of the types of its inputs.

    Returns:
      A list of arrays.

    Raises:
      ArgumentError: `call_jaxpr` is no `ClosedJaxpr`.
      ShapeError: the arguments have other shapes or dtypes than the inputs of the Jaxpr.

    >>> closed_call(phlox.make_jaxpr(jnp.sin)(0.0), 0.0)
    [Array(0., dtype=float32, weak_type=True)]
    """
    if not isinstance(call_jaxpr, ClosedJaxpr):
        raise ArgumentError(f"closed_call takes a ClosedJaxpr, got {call_jaxpr!r}", instead="phlox.make_jaxpr(f)(...)")
    expected, got = call_jaxpr.in_avals, [typeof(x) for x in args]
    if [(a.shape, a.dtype) for a in expected] != [(a.shape, a.dtype) for a in got]:
        described = [", ".join(a.short for a in avals) for avals in (expected, got)]
        raise ShapeError(f"closed_call: a Jaxpr of ({described[0]}) was called with ({described[1]})")
    return call(call_jaxpr, args, name=call_jaxpr.jaxpr.name or "closed_call")
