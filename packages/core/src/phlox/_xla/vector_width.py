"""The width of vectors in programs for CPUs.

XLA asks LLVM for vectors of 256 bits, as the first processors with AVX-512 lowered their clock for wider ones. Those
that have VBMI2 too, from Ice Lake and Zen 4 on, do not. There exp, log and gelu of 1e6 float32 take 0.53 to 0.63 of the
time with 512 bits (two cores of Zen 5), and normal samples 0.54 to 0.79. The results have the same bits.
"""

from __future__ import annotations

import functools
import os

from .._ir.jaxpr import Jaxpr, jaxprs_in, memoized
from .cpu_emitter import Overrides
from .platforms import processor

_WIDTH = "xla_cpu_prefer_vector_width"
#: Programs with smaller arrays gain nothing.
_LEAST = 4096
#: Operations that sum products, in another order with wide vectors. Programs with them keep the bits of JAX: a training
#: that differs in the last bit differs in its loss after some steps. Convolutions would take twice as long to compile.
_SUMS = frozenset((
    "dot_general", "ragged_dot_general", "conv_general_dilated", "fft", "reduce_sum", "reduce_prod", "reduce", "cumsum",
    "cumprod", "cumlogsumexp", "reduce_window", "reduce_window_sum", "scatter-add", "scatter-mul",
))  # fmt: skip


def vector_options(jaxpr: Jaxpr) -> Overrides:
    """The compiler options for this program; the user's options override them."""
    if not _has_wide_vectors() or _WIDTH in os.environ.get("XLA_FLAGS", ""):
        return ()
    is_large, has_sums = _properties(jaxpr)
    return ((_WIDTH, 512),) if is_large and not has_sums else ()


def _properties(jaxpr: Jaxpr) -> tuple[bool, bool]:
    """Whether operations of a Jaxpr, and of the programs in it, have large results, and whether they sum products."""

    def search() -> tuple[bool, bool]:
        sizes = (v.aval.size for eqn in jaxpr.eqns for v in eqn.outvars)
        is_large = any(type(size) is int and size >= _LEAST for size in sizes)
        has_sums = not _SUMS.isdisjoint([eqn.primitive.name for eqn in jaxpr.eqns])
        for eqn in jaxpr.eqns:
            for inner in jaxprs_in(eqn.params) if eqn.primitive.holds_programs else ():
                inner_is_large, inner_has_sums = _properties(inner)
                is_large, has_sums = is_large or inner_is_large, has_sums or inner_has_sums
        return is_large, has_sums

    properties: tuple[bool, bool] = memoized(jaxpr, "large, sums", search)
    return properties


@functools.cache
def _has_wide_vectors() -> bool:
    return "avx512_vbmi2" in processor().split()
