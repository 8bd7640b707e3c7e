"""The `checkpoint` primitive: a jaxpr whose derivative recomputes its residuals instead of storing them.

Its linear half takes the inputs, the values that a policy saves, and tangents; it recomputes the other values when it
runs or is transposed. The primitive `name` gives values a name for policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..._base import config, monitoring
from ..._base.source import within
from ..._ir import dtypes
from ..._ir.effects import refuse_io
from ..._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var, memoized, narrowed, only, prune
from ..._ir.key_uses import KeyUses
from ..._ir.primitive import Primitive, primitive
from ..._trace.axes import axis_env
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import Operands
from ..._transform.array_operations import Zero, drop_zeros, fill
from ..._transform.jaxprs import LinearizedJaxpr, linearize_jaxpr, restage
from ..._transform.padding import pad_elementwise
from ..._transform.transpose import is_linear
from ..._xla.lower import lower_jaxpr
from ..._xla.text import Function, Value
from ..structure.shape import results_as_arrays
from .call import rebuild_call
from .division import Divided, Policy, divide
from .once import once_drop_unused, once_transpose, runs_once

#: For each operand whether it passes an optimization barrier, which keeps XLA's CSE from reusing the first computation.
Flags = bool | tuple[bool, ...]


def _selected(prevent_cse: Flags, selected: Sequence[bool]) -> Flags:
    """The flags of the operands that are marked in `selected`."""
    return prevent_cse if isinstance(prevent_cse, bool) else tuple(only(prevent_cse, selected))


def _remat_eager(*args: Any, jaxpr: ClosedJaxpr, differentiated: bool, **_: Any) -> list[Any]:
    if differentiated and config.current().debug_key_reuse:
        with config.scope(debug_key_reuse=False):  # see `_remat_keys`
            return _remat_eager(*args, jaxpr=jaxpr, differentiated=False)
    return results_as_arrays(eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args))


def _remat_lower(
    f: Function, *args: Value, jaxpr: ClosedJaxpr, prevent_cse: Flags, differentiated: bool, policy: Any
) -> list[Value]:
    flags = (prevent_cse,) * len(args) if isinstance(prevent_cse, bool) else prevent_cse
    guarded = only(args, flags)
    if differentiated and guarded:
        # Without a barrier common subexpression elimination would reuse, and so store, the values of the first half.
        outs = iter(f.barrier(guarded))
        args = tuple(next(outs) if flag else x for x, flag in zip(args, flags, strict=True))
    around, f.label = f.label, f.label_inside("checkpoint")
    results = lower_jaxpr(f, jaxpr.jaxpr, args)
    f.label = around
    return results


def _remat_rebuild(
    args: Sequence[Any], params: dict[str, Any], programs: Sequence[ClosedJaxpr], carried: Sequence[Any] = ()
) -> Operands:
    """As that of a call. If `prevent_cse` has flags for operands, new first ones do not pass the barrier; operands
    after those with flags (saved values, tangents, cotangents) do."""
    operands, params = rebuild_call(args, params, programs, carried)
    flags = params["prevent_cse"]
    if not isinstance(flags, bool):
        first, more = len(operands) - len(args), len(args) - len(flags)
        params["prevent_cse"] = (False,) * first + flags + (True,) * more
    return operands, params


class _Halves(NamedTuple):
    """A linearized jaxpr. `primal` returns the outputs, then the saved values; `linear` takes the inputs selected by
    `read`, the saved values, and tangents, and returns the tangents of the outputs selected by `nonzero`."""

    primal: ClosedJaxpr
    linear: ClosedJaxpr
    read: list[bool]
    nonzero: list[bool]


def _remat_linearize(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    jaxpr: ClosedJaxpr,
    prevent_cse: Flags,
    differentiated: bool,
    policy: Policy | None,
) -> tuple[list[Any], list[Any]]:
    refuse_io(jaxpr.effects, "checkpoint", "which computes it again for the derivative")
    nonzero = tuple(type(t) is not Zero for t in tangents)
    key = ("checkpoint halves", nonzero, policy, axis_env.get())
    halves = memoized(jaxpr.jaxpr, key, lambda: _halves(jaxpr, nonzero, policy))
    results = results_as_arrays(eval_jaxpr(halves.primal.jaxpr, halves.primal.consts, *primals))
    count = len(jaxpr.out_avals)
    outs, residuals = results[:count], results[count:]
    if not any(halves.nonzero):
        return outs, [Zero(a.tangent()) for a in jaxpr.out_avals]
    monitoring.log(config.current().log_checkpoint_residuals, lambda: (_log_text(halves, count),))
    nonzero_tangents = drop_zeros(tangents)
    operands = [*only(primals, halves.read), *residuals, *nonzero_tangents]
    params = {"prevent_cse": _selected(prevent_cse, halves.read), "differentiated": True, "policy": policy}
    tangents_out = checkpoint.rebind(operands, params, [halves.linear])
    return outs, fill(tangents_out, halves.nonzero, jaxpr.out_avals)


def _halves(jaxpr: ClosedJaxpr, nonzero: tuple[bool, ...], policy: Policy | None) -> _Halves:
    s = linearize_jaxpr(jaxpr, nonzero)
    divided = Divided(s.primal, s.primal, []) if policy is None else divide(s.primal, policy)
    inner, inputs, outputs = divided.recompute.jaxpr, len(jaxpr.in_avals), len(jaxpr.out_avals)
    residuals = [inner.invars[i] if kind == "in" else inner.outvars[i] for kind, i in s.residuals]
    # Inputs, and values that the policy saves, are kept only if the residuals are computed from them.
    of_residuals = divided.recompute.replace(jaxpr=inner.replace(outvars=residuals))
    recompute, needed = narrowed(of_residuals, [True] * len(residuals))
    saved = only(divided.residuals, needed[inputs:])
    first = divided.forward.jaxpr
    primal, _ = prune(first.replace(outvars=[*first.outvars[:outputs], *saved]))
    linear = _linear_half(s, recompute)
    return _Halves(divided.forward.replace(jaxpr=_rounded(primal, saved)), linear, needed[:inputs], s.nonzero)


def _log_text(halves: _Halves, outputs: int) -> str:
    """The log message about the saved inputs and values."""
    jaxpr = halves.primal.jaxpr
    inputs = [v.aval.short for v in only(jaxpr.invars, halves.read)]
    values = describe_values(jaxpr, jaxpr.outvars[outputs:])
    parts = [["saving inputs with shapes:", *inputs]] if inputs else []
    parts += [["saving these intermediates:", *values]] if values else []
    return "remat-decorated function " + "\nand ".join("\n  ".join(part) for part in parts or [["saving nothing"]])


def describe_values(jaxpr: Jaxpr, values: Sequence[Atom]) -> list[str]:
    """A line for each value that an equation computes: its type, its name or primitive, and its source line."""
    producers: dict[Atom, JaxprEqn] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    texts = []
    for v in values:
        eqn = producers.get(v)
        while eqn is not None and eqn.primitive.name == "reduce_precision":  # inserted by `_rounded`
            eqn = producers.get(eqn.invars[0])
        if eqn is not None:
            name = f"named {eqn.params['name']!r}" if eqn.primitive is name_p else f"output of {eqn.primitive.name}"
            where = f" from {eqn.source_info}" if eqn.source_info is not None else ""
            texts.append(f"{v.aval.short} {name}{where}")
    return texts


def _rounded(jaxpr: Jaxpr, residuals: Sequence[Var]) -> Jaxpr:
    """The jaxpr with its saved values of narrow dtypes rounded by `reduce_precision` before they are used.

    XLA may compute with more precision than the dtype has. The derivative starts from the stored, rounded values, and
    the forward computation must use the same values.
    """
    used = {v for eqn in jaxpr.eqns for v in eqn.invars}
    narrow = {v for v in residuals if v in used and dtypes.is_inexact(v.aval.dtype) and v.aval.dtype.itemsize < 4}
    eqns = []
    for eqn in jaxpr.eqns:
        exact = {v: Var(v.aval) for v in eqn.outvars if v in narrow}
        eqns.append(eqn.replace(outvars=[exact.get(v, v) for v in eqn.outvars]) if exact else eqn)
        for v, unrounded in exact.items():
            info = dtypes.finfo(v.aval.dtype)
            digits = {"exponent_bits": info.nexp, "mantissa_bits": info.nmant}
            eqns.append(JaxprEqn([unrounded], [v], primitive("reduce_precision"), digits, eqn.source_info))
    return jaxpr.replace(eqns=eqns) if narrow else jaxpr


def _linear_half(s: LinearizedJaxpr, recompute: ClosedJaxpr) -> ClosedJaxpr:
    count = len(recompute.in_avals)

    def fun(*args: Any) -> list[Any]:
        with within("rematted_computation"):
            residuals = eval_jaxpr(recompute.jaxpr, recompute.consts, *args[:count])
        return eval_jaxpr(s.linear.jaxpr, s.linear.consts, *residuals, *args[count:])

    return restage(fun, [*recompute.in_avals, *s.linear.in_avals[len(s.residuals) :]], recompute.jaxpr)


def _remat_transpose(cotangents: Sequence[Any], *args: Any, prevent_cse: Flags, **params: Any) -> list[Any]:
    flags = _selected(prevent_cse, [not is_linear(x) for x in args])
    return once_transpose(checkpoint, 0, cotangents, *args, prevent_cse=flags, **params)


def _remat_drop_unused(eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
    flags = eqn.params["prevent_cse"]
    if not isinstance(flags, bool) and not all(used):
        read = narrowed(eqn.params["jaxpr"], used)[1]
        eqn = eqn.replace(params={**eqn.params, "prevent_cse": _selected(flags, read)})
    return once_drop_unused(checkpoint, 0, eqn, used)


def _remat_keys(eqn: JaxprEqn, uses_of: Any) -> KeyUses:
    """The half that computes values again for the derivative draws the numbers that the first half has drawn."""
    return KeyUses() if eqn.params["differentiated"] else uses_of(eqn.params["jaxpr"])


checkpoint = runs_once(
    "remat2",
    program="jaxpr",
    rebuild=_remat_rebuild,
    lower=_remat_lower,
    linearize=_remat_linearize,
    separate=None,  # it would keep the values that are to be computed again
    transpose=_remat_transpose,
    eager=_remat_eager,
    keys=_remat_keys,
    drop_unused=_remat_drop_unused,
)

name_p = Primitive(
    "name",
    types=lambda x, name: x,
    memory_in_types=True,
    lower=lambda f, x, name: x,
    jvp=lambda primals, tangents, name: (name_p.bind(*primals, name=name), tangents[0]),
    batch=lambda axis, args, dims, name: (name_p.bind(*args, name=name), dims[0]),
    pad=pad_elementwise,
    extend=lambda params, trailing, *avals: params,
    nan_checked=False,
    series="linear",
)
