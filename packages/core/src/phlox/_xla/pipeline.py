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

QUICK: Overrides = (("xla_cpu_use_fusion_emitters", False),)

#: Operations that both implementations compile to equally fast programs with bitwise equal results. With the older one
#: cbrt, rsqrt, tan and tanh differ in the last bits; scans and argmax run slower.
SINGLE = frozenset(
    (
        "abs", "add", "and", "atan2", "ceil", "clamp", "cos", "div", "eq", "erf", "exp", "exp2", "expm1",
        "floor", "ge", "gt", "integer_pow", "is_finite", "le", "lgamma", "log", "log1p", "logistic", "lt",
        "max", "min", "mul", "ne", "neg", "nextafter", "not", "or", "pow", "reduce_max", "reduce_min",
        "reduce_sum", "rem", "rev", "round", "select_n", "shift_left", "shift_right_arithmetic",
        "shift_right_logical", "sign", "sin", "slice", "sqrt", "square", "sub", "transpose", "xor",
    )
)  # fmt: skip
#: Operations that may surround the single one: they cost nothing in its loop.
AROUND = frozenset(("broadcast_in_dim", "convert_element_type", "reshape", "squeeze"))
#: With other dtypes some operations, such as log1p, give different bits or run slower.
_BOOL = np.dtype("bool")
_DTYPES = frozenset(map(np.dtype, ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float32")))


def pipeline(jaxpr: Jaxpr) -> Overrides:
    """The compiler options for this program; the user's options override them."""
    single = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in SINGLE:
            single += 1
        elif eqn.primitive.name not in AROUND:
            return ()
        if eqn.primitive.name == "clamp" and eqn.outvars[0].aval.dtype == _BOOL:  # the older one cannot compile this
            return ()
        if any(v.aval.dtype not in _DTYPES for v in (*eqn.invars, *eqn.outvars)):
            return ()
    return QUICK if single <= 1 else ()
