"""jaxlib's Python bindings of MLIR, for the few programs that cannot go to the compiler as text, and for looking.

They are imported when the first of these is met: 60 ms that no other program pays.
"""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def context() -> Any:
    """The context that modules belong to; it knows the dialects of StableHLO programs."""
    import jaxlib.mlir._mlir_libs._jax_mlir_ext as extension
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    class Context(ir.Context):  # type: ignore[misc]
        def __init__(self) -> None:
            # ir.Context's own constructor loads what jax registers, and jax with it.
            super(ir.Context, self).__init__()

    registry = ir.DialectRegistry()
    extension.register_dialects(registry)
    made = Context()
    made.append_dialect_registry(registry)
    made.load_all_available_dialects()
    for dialect in (sdy, chlo, stablehlo):
        dialect.register_dialect(made)
    return made


def parse(text: str) -> Any:
    """The StableHLO module of this text as an ``ir.Module``."""
    from jaxlib.mlir import ir

    with context():
        return ir.Module.parse(text)
