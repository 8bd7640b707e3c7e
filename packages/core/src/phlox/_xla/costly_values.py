"""Random numbers and values of special functions that XLA would compute more than once.

XLA on CPUs computes an operand in the loop of its reader: again in each loop that reads it, and for each of the
positions that one turn reads. That saves memory traffic for arithmetic, and multiplies the time of a cipher or of a
series, whose long code LLVM then does not vectorize. `lower_jaxpr` passes such values through `in_memory`: normal
samples of shape (100000, 3) and their sums along an axis take 0.1 of the time.

Stored are the bits and the keys, which JAX computes in a loop of their own, so that what follows is rounded as in JAX.
"""

from __future__ import annotations

from .._ir.jaxpr import Jaxpr, JaxprEqn, Var, memoized

#: Operations whose results are stored always
_CIPHERS = frozenset(("random_bits", "random_split", "random_fold_in"))
#: Operations that are computed in the loops of their readers, as those of one elementwise operation are
_FUSED = frozenset((
    "integer_pow", "select_n", "clamp", "convert_element_type", "bitcast_convert_type", "round", "log2", "log10",
    "logaddexp", "stop_gradient", "reduce_precision", "copy", "name", "reshape", "squeeze", "broadcast_in_dim",
    "transpose", "rev", "slice", "split", "concatenate", "pad", "random_wrap", "random_unwrap", "random_clone",
))  # fmt: skip
#: Operations that read several positions for one of the result: reductions, whose turns over a short axis are unrolled,
#: and concatenations, in which each part is a function that is not inlined.
_READS_SEVERAL = frozenset((
    "concatenate", "pad", "reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "argmax",
    "argmin", "dot_general",
))  # fmt: skip
#: Fewer elements are computed in less time than the loop takes that stores them.
_LEAST = 1024

_NONE: tuple[frozenset[Var], frozenset[Var]] = frozenset(), frozenset()


def costly_values(jaxpr: Jaxpr) -> frozenset[Var]:
    """The variables of a Jaxpr that are costly, and that XLA would compute more than once."""
    return _classified(jaxpr)[0]


def _classified(jaxpr: Jaxpr) -> tuple[frozenset[Var], frozenset[Var]]:
    """The costly variables of a Jaxpr: those that are to be stored, and values of functions that a reader computes."""
    return memoized(jaxpr, "costly values", lambda: _classify(jaxpr) if _has_costly(jaxpr) else _NONE)


def _has_costly(jaxpr: Jaxpr) -> bool:
    """Whether an operation of a Jaxpr, or of a program that it calls, is costly; most have none."""
    return bool(memoized(jaxpr, "has costly", lambda: _finds_costly(jaxpr)))


def _finds_costly(jaxpr: Jaxpr) -> bool:
    # There are far fewer primitives than equations.
    primitives = {eqn.primitive for eqn in jaxpr.eqns}
    if any(primitive.costly or primitive.name in _CIPHERS for primitive in primitives):
        return True
    calls = {primitive for primitive in primitives if primitive.program is not None}
    return bool(calls) and any(_has_costly(_program(eqn)) for eqn in jaxpr.eqns if eqn.primitive in calls)


def _program(eqn: JaxprEqn) -> Jaxpr:
    """The Jaxpr that computes the results of a call."""
    assert eqn.primitive.program is not None
    jaxpr: Jaxpr = eqn.params[eqn.primitive.program].jaxpr
    return jaxpr


def _classify(jaxpr: Jaxpr) -> tuple[frozenset[Var], frozenset[Var]]:
    read = {v for eqn in jaxpr.eqns for v in eqn.invars}
    read_at_several = {v for eqn in jaxpr.eqns if eqn.primitive.name in _READS_SEVERAL for v in eqn.invars}
    stored: set[Var] = set()
    functions: set[Var] = set()
    for eqn in jaxpr.eqns:
        primitive, results = eqn.primitive, eqn.outvars
        if primitive.name in _CIPHERS:
            stored.update(v for v in results if v in read and v.aval.physical.size >= _LEAST)
            continue
        if primitive.program is not None:
            inner = _program(eqn)
            results = [v for v, x in zip(results, inner.outvars, strict=True) if x in _classified(inner)[1]]
        elif not primitive.costly:
            is_fused = primitive.operation is not None or primitive.name in _FUSED
            if not is_fused or functions.isdisjoint(eqn.invars):
                continue
        several = [v for v in results if v in read_at_several and v.aval.physical.size >= _LEAST]
        stored.update(several)
        functions.update(set(results).difference(several))
    return frozenset(stored), frozenset(functions)
