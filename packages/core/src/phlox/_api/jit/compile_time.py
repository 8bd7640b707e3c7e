"""`ensure_compile_time_eval`, which computes with concrete arrays during tracing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..._base.scoped import scoped
from ..._ir.primitive import current_trace
from ..._trace.partial_evaluation import FoldingTrace


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Inside of the ``with`` block, operations on concrete arrays are run at once, also while a function is traced.

    Their results can be used in Python conditions and as static values. Operations on traced values are recorded as
    usual.

    Returns:
      A context manager.

    >>> @phlox.jit
    ... def f(x):
    ...     with ensure_compile_time_eval():
    ...         size = int(jnp.arange(4).sum())
    ...     return x + size
    >>> f(1)
    Array(7, dtype=int32, weak_type=True)
    """
    if current_trace.get() is None:
        yield
        return
    with scoped(current_trace, FoldingTrace()):
        yield
