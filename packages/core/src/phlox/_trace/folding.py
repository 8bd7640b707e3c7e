"""A trace that computes at once what it can, while a program is being recorded around it."""

from __future__ import annotations

from typing import Any

from .._ir.primitive import Primitive
from .trace import Trace, Tracer, bind_under


class FoldingTrace(Trace):
    """Runs operations on concrete arrays now; those on traced values go to the trace outside."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        traced = any(isinstance(x, Tracer) for x in args)
        return bind_under(self.parent if traced else None, primitive, args, params)

    def recorder(self) -> None:
        return None
