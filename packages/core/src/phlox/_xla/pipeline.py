"""How hard the compiler tries: programs of a single operation need less of it, and are ready in about half the time.

Eager code compiles one small program for each operation and kind of argument, so this is what a first result waits for.
XLA's CPU compiler has two ways to make loops of elementwise operations. The newer one, by fusion emitters, gives faster
programs where several operations are fused; for one operation both give the same bits in the same time, and the
older one compiles in 0.4 to 0.8 of the time (tests/unit/test_pipeline.py, `./bench first`). jaxlib 0.12 has the
newer one alone.
"""

from __future__ import annotations

import numpy as np

from .._ir.jaxpr import Jaxpr

#: options of XLA for one program, in the form that caches can key on: ((name, value), …)
Overrides = tuple[tuple[str, str | bool | int | float], ...]

QUICK: Overrides = (("xla_cpu_use_fusion_emitters", False),)

#: Of other types log1p and others differ, or run slower.
_BOOL = np.dtype("bool")
_DTYPES = frozenset(map(np.dtype, ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float32")))


def pipeline(jaxpr: Jaxpr) -> Overrides:
    """Options for this program, before those that the user asks for."""
    single = 0
    for eqn in jaxpr.eqns:
        # Primitives state this: both emitters write their loop alike. cbrt, rsqrt, tan and tanh do not, as last bits
        # differ; scans and argmax do not, as they would run slower.
        if eqn.primitive.unfused == "operation":
            single += 1
        elif eqn.primitive.unfused is None:
            return ()
        if eqn.primitive.name == "clamp" and eqn.outvars[0].aval.dtype == _BOOL:  # which the older way cannot compile
            return ()
        if any(v.aval.dtype not in _DTYPES for v in (*eqn.invars, *eqn.outvars)):
            return ()
    return QUICK if single <= 1 else ()
