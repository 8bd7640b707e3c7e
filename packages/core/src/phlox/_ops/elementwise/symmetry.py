"""Symmetries of complex functions, which say what they are on the other side of a cut.

All functions here are real on a part of the real axis, so that f(conj(z)) = conj(f(z)). They are computed where the
imaginary part is not negative, odd and even ones in the first quadrant, and reflected from there. The sign of a zero
then says on which side of a cut along an axis an operand is, as in C99 (Annex G) and NumPy. XLA's own functions lose
it: there the root of -1 - 0i is i.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from ..._ir import dtypes
from ..._ir.avals import shaped
from ..._xla.text import Function, Value


@dataclasses.dataclass(frozen=True)
class Symmetry:
    """How a complex function is reflected.

    `parity` is 1 for even, -1 for odd and 0 for other functions; `imag` the sign of the imaginary part of results in
    the upper half plane if it is the same everywhere, else 0.
    """

    parity: int = 0
    imag: int = 0


def is_signed(f: Function, x: Value) -> Value:
    """Whether elements have the sign bit, as -0.0 has."""
    word = shaped(x.aval.shape, np.dtype(f"i{x.aval.dtype.itemsize}"))
    return f.compare("LT", f.unlike("stablehlo.bitcast_convert", x, word), f.number(0, word))


def reflected(lower: Callable[..., Value], symmetry: Symmetry) -> Callable[..., Value]:
    """The lowering rule of a function of one operand with its complex numbers reflected."""

    def rule(f: Function, x: Value) -> Value:
        if dtypes.kind(x.aval.dtype) != "c":
            return lower(f, x)
        part = shaped(x.aval.shape, dtypes.real_part(x.aval.dtype))
        re, im = (f.unlike(f"stablehlo.{name}", x, part) for name in ("real", "imag"))
        left, below = is_signed(f, re), is_signed(f, im)
        # Odd and even functions are computed in the first quadrant, others in the upper half plane.
        upper = [f.same("stablehlo.abs", re) if symmetry.parity else re, f.same("stablehlo.abs", im)]
        out = lower(f, f.op("stablehlo.complex", upper, x.aval))
        re, im = (f.unlike(f"stablehlo.{name}", out, part) for name in ("real", "imag"))
        # XLA's result near a cut may have the sign of the other side. The sign of the upper half plane is known.
        if symmetry.imag:
            im = f.same("stablehlo.abs", im)
        if symmetry.imag < 0:
            im = f.same("stablehlo.negate", im)
        # With f(conj z) = conj f(z), an odd f(-conj z) is -conj f(z): left of the axis only the real part changes its
        # sign. For an even f it is conj f(z): the imaginary part changes its sign once for `left` and once for `below`.
        if symmetry.parity < 0:
            re = f.select(left, f.same("stablehlo.negate", re), re)
        if symmetry.parity > 0:
            below = f.same("stablehlo.xor", left, below)
        im = f.select(below, f.same("stablehlo.negate", im), im)
        return f.op("stablehlo.complex", [re, im], x.aval)

    return rule
