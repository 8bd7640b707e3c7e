"""A trace that executes operations on concrete arrays at once while an outer trace records a Jaxpr."""

from __future__ import annotations

from typing import Any

from .._base import pytree
from .._ir.primitive import Primitive
from .trace import Trace, Tracer, bind_under


class FoldingTrace(Trace):
    """Executes operations on concrete arrays at once; operations with a tracer go to the parent trace."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        traced = any(isinstance(x, Tracer) for x in args)
        return bind_under(self.parent if traced else None, primitive, args, params)

    def recorder(self) -> None:
        return None


def runs_at_once(trace: Trace | None, *args: Any) -> bool:
    """Whether a function called on `args` under `trace` is executed at once, without being recorded."""
    if trace is None:
        return True
    return type(trace) is FoldingTrace and not any(isinstance(x, Tracer) for x in pytree.tree_leaves(args))
