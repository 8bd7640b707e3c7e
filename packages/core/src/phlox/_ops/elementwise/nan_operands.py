"""Formulas of XLA that are undefined where the compiler knows an operand to be nan. See `_xla.constant_nan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._ir import dtypes
from ..._ir.avals import shaped
from ..._xla.text import Function, Value


def with_nan(rule: Callable[..., Value]) -> Callable[..., Value]:
    """A lowering rule whose result is nan where the operand is, even if the compiler knows that."""

    def lower(f: Function, x: Value, **params: Any) -> Value:
        if not f.module.may_know_nan:
            return rule(f, x, **params)
        is_number = f.compare("EQ", x, x)
        out = rule(f, _without_nan(f, x, is_number), **params)
        nan = complex(np.nan, np.nan) if dtypes.kind(out.aval.dtype) == "c" else np.nan
        return f.select(is_number, out, f.number(nan, out.aval))

    return lower


def _without_nan(f: Function, x: Value, is_number: Value) -> Value:
    """`x` with infinities in place of nan, by the bits: of floats, the numbers above infinity are nan.

    A selection would not do: where the result is used for ``is_number`` only, LLVM takes `x` for it.
    """
    dtype = x.aval.dtype
    bits = dtypes.bits(dtype)
    if dtypes.kind(dtype) == "c" or bits < 16:  # small floats may have no infinity, or no sign
        return f.select(is_number, x, f.number(0, x.aval))
    word = shaped(x.aval.shape, np.dtype(f"u{dtype.itemsize}"))
    infinity, sign = int(np.asarray(np.inf, dtype).view(word.dtype)), 1 << (bits - 1)
    pattern = f.unlike("stablehlo.bitcast_convert", x, word)
    size = f.same("stablehlo.and", pattern, f.number(sign - 1, word))
    size = f.same("stablehlo.minimum", size, f.number(infinity, word))
    signed = f.same("stablehlo.or", size, f.same("stablehlo.and", pattern, f.number(sign, word)))
    return f.unlike("stablehlo.bitcast_convert", signed, x.aval)
