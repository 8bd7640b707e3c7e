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

#: One loop each, which both ways write alike. cbrt, rsqrt, tan and tanh are not: last bits differ. Scans and argmax run
#: slower.
SINGLE = frozenset(
    (
        "abs", "add", "and", "atan2", "ceil", "clamp", "cos", "div", "eq", "erf", "exp", "exp2", "expm1",
        "floor", "ge", "gt", "integer_pow", "is_finite", "le", "lgamma", "log", "log1p", "logistic", "lt",
        "max", "min", "mul", "ne", "neg", "nextafter", "not", "or", "pow", "reduce_max", "reduce_min",
        "reduce_sum", "rem", "rev", "round", "select_n", "shift_left", "shift_right_arithmetic",
        "shift_right_logical", "sign", "sin", "slice", "sqrt", "square", "sub", "transpose", "xor",
    )
)  # fmt: skip
#: What stands around an operation and costs nothing in its loop.
AROUND = frozenset(("broadcast_in_dim", "convert_element_type", "reshape", "squeeze"))
#: Of other types log1p and others differ, or run slower.
_BOOL = np.dtype("bool")
_DTYPES = frozenset(map(np.dtype, ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float32")))


def pipeline(jaxpr: Jaxpr) -> Overrides:
    """Options for this program, before those that the user asks for."""
    single = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in SINGLE:
            single += 1
        elif eqn.primitive.name not in AROUND:
            return ()
        if eqn.primitive.name == "clamp" and eqn.outvars[0].aval.dtype == _BOOL:  # which the older way cannot compile
            return ()
        if any(v.aval.dtype not in _DTYPES for v in (*eqn.invars, *eqn.outvars)):
            return ()
    return QUICK if single <= 1 else ()
