"""A trace that computes at once what it can, while a program is being recorded around it."""

from __future__ import annotations

from typing import Any

from .._base import pytree
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


def runs_at_once(trace: Trace | None, *args: Any) -> bool:
    """Whether a function of `args` is simply called under `trace`, as nothing of it is traced."""
    if trace is None:
        return True
    return type(trace) is FoldingTrace and not any(isinstance(x, Tracer) for x in pytree.tree_leaves(args))
