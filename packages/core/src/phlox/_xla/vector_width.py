"""The width of vectors in programs for CPUs.

XLA asks LLVM for vectors of 256 bits, as the first processors with AVX-512 lowered their clock for wider ones. Those
that have VBMI2 too, from Ice Lake and Zen 4 on, do not. There exp, log and gelu of 1e6 float32 take 0.53 to 0.63 of the
time with 512 bits (two cores of Zen 5), and normal samples 0.54 to 0.79.
"""

from __future__ import annotations

import functools
import os

from .._ir.jaxpr import Jaxpr, jaxprs_in, memoized
from .cpu_emitter import Overrides

_WIDTH = "xla_cpu_prefer_vector_width"
#: Programs with smaller arrays gain nothing, and keep the bits of JAX, where sums are rounded in another order.
_LEAST = 4096


def vector_options(jaxpr: Jaxpr) -> Overrides:
    """The compiler options for this program; the user's options override them."""
    if not _has_wide_vectors() or _WIDTH in os.environ.get("XLA_FLAGS", "") or not _is_large(jaxpr):
        return ()
    return ((_WIDTH, 512),)


def _is_large(jaxpr: Jaxpr) -> bool:
    """Whether an operation of a Jaxpr, or of a program in it, has a large result."""

    def is_large() -> bool:
        sizes = (v.aval.size for eqn in jaxpr.eqns for v in eqn.outvars)
        return any(type(size) is int and size >= _LEAST for size in sizes) or any(
            _is_large(inner) for eqn in jaxpr.eqns if eqn.primitive.holds_programs for inner in jaxprs_in(eqn.params)
        )

    return bool(memoized(jaxpr, "is large", is_large))


@functools.cache
def _has_wide_vectors() -> bool:
    return "avx512_vbmi2" in processor().split()


@functools.cache
def processor() -> str:
    """The model and the features of the processor, as Linux lists them; elsewhere its name."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.startswith(("model name", "flags", "Features"))]
        # Each core repeats the lines, in any order of flags.
        return "\n".join(sorted(set(lines)))
    except OSError:
        import platform

        return platform.processor()
