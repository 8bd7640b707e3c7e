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
from ..._ir.avals import ShapedArray
from ..._ir.effects import refuse_io
from ..._ir.jaxpr import (
    Atom,
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Var,
    effects_inside,
    hoisted,
    memoized,
    narrowed,
    only,
    prune,
)
from ..._ir.key_uses import KeyUses
from ..._ir.primitive import Primitive, primitive, sharding_in_types, vma_in_types
from ..._trace.axes import axis_env
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import Operands, ProgramPrimitive, RefValues, call_with_refs
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, fill
from ..._transform.batch import BatchAxis, Dim
from ..._transform.jaxprs import LinearizedJaxpr, batch_jaxpr, jvp_jaxpr, linearize_jaxpr, restage, transpose_jaxpr
from ..._transform.padding import passes
from ..._transform.transpose import is_linear
from ..._xla.lower import lower_jaxpr
from ..._xla.text import Function, Value
from .call import Steps, axes_used, dependent_call, narrow_call
from .division import Divided, Policy, divide
from .masked import masked_jaxpr

#: For each operand whether it passes an optimization barrier, which keeps XLA's CSE from reusing the first computation.
Flags = bool | tuple[bool, ...]


def _types(*avals: ShapedArray, jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return jaxpr.out_avals


def _eager(*args: Any, jaxpr: ClosedJaxpr, differentiated: bool, **_: Any) -> list[Any]:
    if differentiated and config.current().debug_key_reuse:
        with config.scope(debug_key_reuse=False):  # see `_keys`
            return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)
    return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)


def _lower(
    f: Function, *args: Value, jaxpr: ClosedJaxpr, prevent_cse: Flags, differentiated: bool, policy: Any
) -> list[Value]:
    flags = (prevent_cse,) * len(args) if isinstance(prevent_cse, bool) else prevent_cse
    guarded = only(args, flags)
    if differentiated and guarded:
        # Without a barrier common subexpression elimination would reuse, and so store, the values of the first half.
        apart = iter(f.barrier(guarded))
        args = tuple(next(apart) if flag else x for x, flag in zip(args, flags, strict=True))
    return lower_jaxpr(f, jaxpr.jaxpr, args)


def _steps(*args: Any, jaxpr: ClosedJaxpr, **_: Any) -> Steps:
    yield jaxpr, args, jaxpr.jaxpr.name or "checkpoint"


def _bind(closed: ClosedJaxpr, args: Sequence[Any], prevent_cse: Flags, how: dict[str, Any]) -> list[Any]:
    """Binds `checkpoint`; the constants of the closed jaxpr become operands. If `prevent_cse` has flags for operands,
    constants do not pass the barrier; operands after those with flags (saved values, tangents, cotangents) do."""
    if not isinstance(prevent_cse, bool):
        more = len(args) - len(prevent_cse)
        prevent_cse = (False,) * len(closed.consts) + prevent_cse + (True,) * more
    return checkpoint.bind(*closed.consts, *args, jaxpr=hoisted(closed), prevent_cse=prevent_cse, **how)


def _selected(prevent_cse: Flags, there: Sequence[bool]) -> Flags:
    """The flags of the operands that are selected by `there`."""
    return prevent_cse if isinstance(prevent_cse, bool) else tuple(only(prevent_cse, there))


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], jaxpr: ClosedJaxpr, prevent_cse: Flags, **how: Any
) -> tuple[list[Any], list[Any]]:
    nonzero = tuple(type(t) is not Zero for t in tangents)
    derived, there = jvp_jaxpr(jaxpr, nonzero)
    results = _bind(derived, [*primals, *(t for t in tangents if type(t) is not Zero)], prevent_cse, how)
    count = len(jaxpr.out_avals)
    return results[:count], fill(results[count:], there, jaxpr.out_avals)


class _Halves(NamedTuple):
    """A linearized jaxpr. `primal` returns the outputs, then the saved values; `linear` takes the inputs selected by
    `read`, the saved values, and tangents, and returns the tangents of the outputs selected by `nonzero`."""

    primal: ClosedJaxpr
    linear: ClosedJaxpr
    read: list[bool]
    nonzero: list[bool]


def _linearize(
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
    halves = memoized(jaxpr.jaxpr, key, lambda: _split(jaxpr, nonzero, policy))
    results = eval_jaxpr(halves.primal.jaxpr, halves.primal.consts, *primals)
    count = len(jaxpr.out_avals)
    outs, residuals = results[:count], results[count:]
    if not any(halves.nonzero):
        return outs, [Zero(a.tangent()) for a in jaxpr.out_avals]
    monitoring.log(config.current().log_checkpoint_residuals, lambda: (_log_text(halves, count),))
    nonzero_tangents = [t for t in tangents if type(t) is not Zero]
    operands = [*only(primals, halves.read), *residuals, *nonzero_tangents]
    apart = _selected(prevent_cse, halves.read)
    tangents_out = _bind(halves.linear, operands, apart, {"differentiated": True, "policy": policy})
    return outs, fill(tangents_out, halves.nonzero, jaxpr.out_avals)


def _split(jaxpr: ClosedJaxpr, nonzero: tuple[bool, ...], policy: Policy | None) -> _Halves:
    s = linearize_jaxpr(jaxpr, nonzero)
    divided = Divided(s.primal, s.primal, []) if policy is None else divide(s.primal, policy)
    inner, inputs, outputs = divided.again.jaxpr, len(jaxpr.in_avals), len(jaxpr.out_avals)
    residuals = [inner.invars[i] if kind == "in" else inner.outvars[i] for kind, i in s.residuals]
    recompute, needed = narrowed(divided.again.replace(jaxpr=inner.replace(outvars=residuals)), [True] * len(residuals))
    saved = only(divided.residuals, needed[inputs:])
    first = divided.first.jaxpr
    primal, _ = prune(first.replace(outvars=[*first.outvars[:outputs], *saved]))
    linear = _linear(s, recompute)
    return _Halves(divided.first.replace(jaxpr=_rounded(primal, saved)), linear, needed[:inputs], s.nonzero)


def _log_text(halves: _Halves, outputs: int) -> str:
    """The log message about the saved inputs and values."""
    jaxpr = halves.primal.jaxpr
    inputs = [v.aval.short for v in only(jaxpr.invars, halves.read)]
    values = described(jaxpr, jaxpr.outvars[outputs:])
    parts = [["saving inputs with shapes:", *inputs]] if inputs else []
    parts += [["saving these intermediates:", *values]] if values else []
    return "remat-decorated function " + "\nand ".join("\n  ".join(part) for part in parts or [["saving nothing"]])


def described(jaxpr: Jaxpr, values: Sequence[Atom]) -> list[str]:
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


def _linear(s: LinearizedJaxpr, recompute: ClosedJaxpr) -> ClosedJaxpr:
    count = len(recompute.in_avals)

    def fun(*args: Any) -> list[Any]:
        with within("rematted_computation"):
            residuals = eval_jaxpr(recompute.jaxpr, recompute.consts, *args[:count])
        return eval_jaxpr(s.linear.jaxpr, s.linear.consts, *residuals, *args[count:])

    return restage(fun, [*recompute.in_avals, *s.linear.in_avals[len(s.residuals) :]], recompute.jaxpr)


def _transpose(cotangents: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, prevent_cse: Flags, **how: Any) -> list[Any]:
    linear = tuple(is_linear(x) for x in args)
    nonzero = tuple(type(ct) is not Zero for ct in cotangents)
    derived, there = transpose_jaxpr(jaxpr, linear, nonzero)
    inputs = [x for x in args if not is_linear(x)] + [ct for ct in cotangents if type(ct) is not Zero]
    apart = _selected(prevent_cse, [not is_lin for is_lin in linear])
    results, present = iter(_bind(derived, inputs, apart, how)), iter(there)
    return [(next(results) if next(present) else Zero(x.aval)) if is_linear(x) else None for x in args]


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], jaxpr: ClosedJaxpr, prevent_cse: Flags, **how: Any
) -> tuple[list[Any], list[Dim]]:
    derived, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
    return _bind(derived, args, prevent_cse, how), out_dims


def _masked(mask: Any, *args: Any, jaxpr: ClosedJaxpr, prevent_cse: Flags, **how: Any) -> list[Any]:
    flags = prevent_cse if isinstance(prevent_cse, bool) else (False, *prevent_cse)
    return _bind(masked_jaxpr(jaxpr, typeof(mask)), [mask, *args], flags, how)


def _checked(checks: Any, *args: Any, jaxpr: ClosedJaxpr, prevent_cse: Flags, **how: Any) -> list[Any]:
    program, tree = checks.program(jaxpr, [typeof(x) for x in args])
    if not isinstance(prevent_cse, bool):
        prevent_cse = (False,) * len(checks.leaves) + prevent_cse
    return checks.results(_bind(program, [*checks.leaves, *args], prevent_cse, how), tree)


def _narrow(eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
    narrower = narrow_call(eqn, used)
    flags = eqn.params["prevent_cse"]
    if isinstance(flags, bool) or narrower is eqn:
        return narrower
    read = narrowed(eqn.params["jaxpr"], used)[1]
    return narrower.replace(params={**narrower.params, "prevent_cse": _selected(flags, read)})


def _keys(eqn: JaxprEqn, uses_of: Any) -> KeyUses:
    """The half that computes values again for the derivative draws the numbers that the first half has drawn."""
    return KeyUses() if eqn.params["differentiated"] else uses_of(eqn.params["jaxpr"])


def _remat2_pass_refs(refs: RefValues, args: Sequence[Any], params: dict[str, Any]) -> Operands:
    args, params = call_with_refs("jaxpr")(refs, args, params)
    if not isinstance(params["prevent_cse"], bool):
        params["prevent_cse"] = (False,) * (len(args) - len(params["prevent_cse"])) + params["prevent_cse"]
    return args, params


checkpoint = ProgramPrimitive(
    "remat2",
    pass_refs=_remat2_pass_refs,
    multiple_results=True,
    types=_types,
    vma=vma_in_types,
    sharding=sharding_in_types,
    lower=_lower,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    extend=lambda params, trailing, *avals: params,
    masked=_masked,
    steps=_steps,
    eager=_eager,
    axes=lambda params: axes_used(params["jaxpr"]),
    effects=effects_inside,
    keys=_keys,
    narrow=_narrow,
    dependent=dependent_call,
    checked=_checked,
    program="jaxpr",
)

name_p = Primitive(
    "name",
    types=lambda x, name: x,
    lower=lambda f, x, name: x,
    jvp=lambda primals, tangents, name: (name_p.bind(*primals, name=name), tangents[0]),
    batch=lambda axis, args, dims, name: (name_p.bind(*args, name=name), dims[0]),
    pad=passes,
    extend=lambda params, trailing, *avals: params,
    nan_checked=False,
    series="linear",
)
