"""How much time the compiler may take: the values of the flag and `jit` option `compile_effort`, as compiler options.

- ``default``: XLA's own choice, its optimization level 3.
- ``fast``: level 1. It compiles somewhat faster; nearly all programs have the same bits and run as fast.
- ``tiered``: the first calls run a program that was compiled as quickly as possible. A thread compiles the program of
  ``default`` meanwhile, which then replaces it (`background`, `Lowering.compile_for_calls`).

The quick program of ``tiered`` is compiled without optimization of machine code, and with the older of XLA's two
implementations of loops (see `cpu_emitter`): in 0.15 to 0.65 of the time. It runs 1.5 to 4 times slower, and some last
bits differ. The older implementation is for that level alone: with optimization it can take minutes for PRNG bits.

The options are those of XLA's CPU compiler. On other platforms all programs are compiled as under ``default``.
"""

from __future__ import annotations

from .._ir.jaxpr import Jaxpr, jaxprs_in
from .cpu_emitter import Overrides

CHOICES = ("default", "fast", "tiered")
FAST: Overrides = (("xla_backend_optimization_level", 1),)
QUICK: Overrides = (("xla_backend_optimization_level", 0), ("xla_cpu_use_fusion_emitters", False))

#: With more elements to compute, the quick program would lose in its first call about what its compilation gained.
MOST_ELEMENTS = 30_000_000


def elements(jaxpr: Jaxpr) -> int:
    """How many elements the equations of `jaxpr` compute. Loops of unknown length count once."""
    count = 0
    for eqn in jaxpr.eqns:
        count += sum(v.aval.size for v in eqn.outvars)
        if eqn.primitive.holds_programs:
            count += eqn.params.get("length", 1) * sum(elements(inner) for inner in jaxprs_in(eqn.params))
    return count
