"""Compiler options for programs of a single operation, which shorten their compilation on the CPU to about half.

Eager code compiles one small program for each operation and kind of argument; the first result waits for that.
XLA's CPU compiler has two implementations of loops over elements. The newer one, fusion emitters, makes faster programs
if several operations are fused. For a single operation both give bitwise equal results in the same time, and the older
one compiles in 0.4 to 0.8 of the time (tests/unit/test_pipeline.py, `./bench first`). jaxlib 0.12 has only the newer
one.
"""

from __future__ import annotations

import numpy as np

from .._ir.jaxpr import Jaxpr

#: compiler options of one program as ((name, value), …), which is hashable and so can be part of cache keys
Overrides = tuple[tuple[str, str | bool | int | float], ...]

ELEMENTAL_EMITTER: Overrides = (("xla_cpu_use_fusion_emitters", False),)

#: With other dtypes some operations, such as log1p, give different bits or run slower.
_DTYPES = frozenset(map(np.dtype, ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float32")))


def emitter_options(jaxpr: Jaxpr) -> Overrides:
    """The compiler options for this program; the user's options override them."""
    single = 0
    for eqn in jaxpr.eqns:
        # "operation": both implementations give equally fast programs with equal bits. `unfused` is None for cbrt,
        # rsqrt, tan and tanh, whose last bits differ, and for scans, argmax and pow, which would be slower.
        if eqn.primitive.unfused == "operation":
            single += 1
        elif eqn.primitive.unfused is None:
            return ()
        # Also the operands count: a comparison of float64 gives bools.
        if any(v.aval.dtype not in _DTYPES for v in (*eqn.invars, *eqn.outvars)):
            return ()
    # With one operation there is nothing to fuse. From two on, the newer implementation makes faster programs.
    return ELEMENTAL_EMITTER if single <= 1 else ()
