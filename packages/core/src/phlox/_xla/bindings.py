"""jaxlib's MLIR bindings, for programs with callbacks, which cannot be compiled from text, and for showing modules.

They are imported at first use, because the import takes 60 ms and few programs need it.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any


@functools.cache
def context() -> Any:
    """The MLIR context of all modules, with the dialects of StableHLO programs."""
    import jaxlib.mlir._mlir_libs._jax_mlir_ext as extension
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    class Context(ir.Context):  # type: ignore[misc]
        def __init__(self) -> None:
            # Skips ir.Context's constructor, which loads what jax has registered, and so imports jax.
            super(ir.Context, self).__init__()

    registry = ir.DialectRegistry()
    extension.register_dialects(registry)
    mlir_context = Context()
    mlir_context.append_dialect_registry(registry)
    mlir_context.load_all_available_dialects()
    for dialect in (sdy, chlo, stablehlo):
        dialect.register_dialect(mlir_context)
    return mlir_context


def module(name: str) -> Any:
    """The module ``jaxlib.mlir.NAME``, such as ``ir`` or ``dialects.stablehlo``."""
    return importlib.import_module(f"jaxlib.mlir.{name}")


def parse(text: str) -> Any:
    """The StableHLO module of this text as an ``ir.Module``."""
    from jaxlib.mlir import ir

    with context():
        return ir.Module.parse(text)
