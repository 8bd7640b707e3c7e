"""The `checkpoint` primitive: a program whose derivative computes again what it needs, instead of keeping it.

Its linear half takes the inputs, whatever a policy wants kept, and tangents; the values between are computed again when
it runs, or is run backwards. `name` marks values so that policies can speak of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._base.errors import ArgumentError
from .._ir.avals import ShapedArray
from .._ir.effects import refuse_io
from .._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, effects_inside, hoisted, memoized, prune
from .._ir.primitive import Primitive
from .._trace.axes import axis_env
from .._trace.interpret import eval_jaxpr
from .._trace.trace import typeof
from .._transform.batch import BatchAxis, Dim
from .._transform.jaxprs import LinearizedJaxpr, batch_jaxpr, jvp_jaxpr, linearize_jaxpr, restage, transpose_jaxpr
from .._transform.transpose import is_linear
from .._transform.words import Zero, fill
from .._xla.lower import lower_jaxpr
from .._xla.text import Function, Value
from .call import Steps, axes_used, call, jit_p


class _Answer:
    """What a policy may answer beside True and False."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


Recompute = _Answer("Recompute")
Saveable = _Answer("Saveable")


class Offloadable(NamedTuple):
    """The answer of a policy: keep the results, in another memory until they are needed.

    `src` and `dst` are kinds of memory, as "device" and "pinned_host". Programs here know of one kind, in which the
    results stay.
    """

    src: str
    dst: str


#: Asked of each operation, as ``policy(primitive, *avals, **params)``: whether its results are kept.
Policy = Callable[..., Any]


def keeps(policy: Policy, eqn: JaxprEqn) -> bool:
    """What a policy says of an equation. Raises `ArgumentError` when that is no answer."""
    answer = policy(eqn.primitive, *[v.aval for v in eqn.invars], **eqn.params)
    if isinstance(answer, bool):
        return answer
    if answer is Saveable or isinstance(answer, Offloadable):
        return True
    if answer is Recompute:
        return False
    raise ArgumentError(
        f"a policy of checkpoint answered {answer!r} when asked about {eqn.primitive}",
        instead="True or False; or Saveable, Recompute or Offloadable(src=..., dst=...) of phlox.ad_checkpoint",
    )


def _types(*avals: ShapedArray, jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return jaxpr.out_avals


def _eager(*args: Any, jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return call(jaxpr, args, name=jaxpr.jaxpr.name or "checkpoint")


def _text(f: Function, *args: Value, jaxpr: ClosedJaxpr, prevent_cse: bool, differentiated: bool, policy: Any) -> Any:
    if differentiated and prevent_cse and args:
        # Otherwise the compiler finds that it has computed all of this before, and keeps it.
        args = tuple(f.op("stablehlo.optimization_barrier", args, [x.aval for x in args]))
    return lower_jaxpr(f, jaxpr.jaxpr, args)


def _steps(*args: Any, jaxpr: ClosedJaxpr, **_: Any) -> Steps:
    yield jaxpr, args, jaxpr.jaxpr.name or "checkpoint"


def _bind(closed: ClosedJaxpr, args: Sequence[Any], how: dict[str, Any]) -> list[Any]:
    """`checkpoint` of a program whose own constants are concrete: they become arguments."""
    return checkpoint.bind(*closed.consts, *args, jaxpr=hoisted(closed), **how)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], jaxpr: ClosedJaxpr, **how: Any
) -> tuple[list[Any], list[Any]]:
    nonzero = tuple(type(t) is not Zero for t in tangents)
    derived, there = jvp_jaxpr(jaxpr, nonzero)
    results = _bind(derived, [*primals, *(t for t in tangents if type(t) is not Zero)], how)
    count = len(jaxpr.out_avals)
    return results[:count], fill(results[count:], there, jaxpr.out_avals)


class _Halves(NamedTuple):
    """`primal` returns the outputs, then what is kept; `linear` takes the inputs that are `read`, what is kept, and
    tangents, and returns tangents of outputs where `nonzero`."""

    primal: ClosedJaxpr
    linear: ClosedJaxpr
    read: list[int]
    nonzero: list[bool]


def _linearize(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    jaxpr: ClosedJaxpr,
    prevent_cse: bool,
    differentiated: bool,
    policy: Policy | None,
) -> tuple[list[Any], list[Any]]:
    refuse_io(jaxpr.effects, "checkpoint", "which computes it again for the derivative")
    wanted = tuple(type(t) is not Zero for t in tangents)
    key = ("checkpoint halves", wanted, policy, axis_env.get())
    halves = memoized(jaxpr.jaxpr, key, lambda: _split(jaxpr, wanted, policy))
    results = call(halves.primal, primals, name=jaxpr.jaxpr.name or "checkpoint", inline=True)
    count = len(jaxpr.out_avals)
    outs, kept = results[:count], results[count:]
    if not any(halves.nonzero):
        return outs, [Zero(a.tangent()) for a in jaxpr.out_avals]
    given = [t for t in tangents if type(t) is not Zero]
    how = {"prevent_cse": prevent_cse, "differentiated": True, "policy": policy}
    found = _bind(halves.linear, [*(primals[i] for i in halves.read), *kept, *given], how)
    return outs, fill(found, halves.nonzero, jaxpr.out_avals)


def _split(jaxpr: ClosedJaxpr, wanted: tuple[bool, ...], policy: Policy | None) -> _Halves:
    flat = without_calls(jaxpr)  # so that a policy is asked about what they do
    s = linearize_jaxpr(flat, wanted)
    inner, outputs = s.primal.jaxpr, len(jaxpr.out_avals)
    residuals = [inner.invars[i] if kind == "in" else inner.outvars[i] for kind, i in s.residuals]
    saved = [policy is not None and keeps(policy, eqn) for eqn in inner.eqns]
    keepable = {v for eqn, save in zip(inner.eqns, saved, strict=True) if save for v in eqn.outvars}
    again, needed = _again(inner, residuals, saved, keepable)
    read = [i for i, v in enumerate(inner.invars) if v in needed]
    kept = [v for eqn in inner.eqns for v in eqn.outvars if v in needed and v in keepable]
    recompute = inner.replace(invars=[*(inner.invars[i] for i in read), *kept], outvars=residuals, eqns=again)
    primal, _ = prune(inner.replace(outvars=[*inner.outvars[:outputs], *kept]))
    linear = _linear(s, ClosedJaxpr(recompute, s.primal.consts))
    return _Halves(ClosedJaxpr(primal, s.primal.consts), linear, read, s.nonzero)


def without_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with what it calls in place of the calls."""

    def fun(*xs: Any) -> list[Any]:
        return eval_jaxpr(closed.jaxpr, closed.consts, *xs, run=_opened)

    return restage(fun, closed.in_avals, closed.jaxpr)


def _opened(eqn: JaxprEqn, values: Sequence[Any]) -> Any:
    """Runs an equation; of a call, what it calls."""
    if eqn.primitive is not jit_p:
        return eqn.primitive.bind(*values, **eqn.params)
    inner = eqn.params["jaxpr"]
    return eval_jaxpr(inner.jaxpr, inner.consts, *values, run=_opened)


def _again(
    jaxpr: Jaxpr, wanted: Sequence[Any], saved: Sequence[bool], kept: set[Var]
) -> tuple[list[JaxprEqn], set[Var]]:
    """The equations that compute `wanted` from the inputs and from what is kept, and the variables they read.

    Those with effects are among them, so that one sees in prints what is computed twice.
    """
    needed = {v for v in wanted if type(v) is Var}
    eqns = []
    for eqn, save in zip(reversed(jaxpr.eqns), reversed(saved), strict=True):
        if (eqn.effects and not save) or any(v in needed and v not in kept for v in eqn.outvars):
            eqns.append(eqn)
            needed.update(v for v in eqn.invars if type(v) is Var)
    return eqns[::-1], needed


def _linear(s: LinearizedJaxpr, recompute: ClosedJaxpr) -> ClosedJaxpr:
    count = len(recompute.in_avals)

    def fun(*args: Any) -> list[Any]:
        residuals = eval_jaxpr(recompute.jaxpr, recompute.consts, *args[:count])
        return eval_jaxpr(s.linear.jaxpr, s.linear.consts, *residuals, *args[count:])

    return restage(fun, [*recompute.in_avals, *s.linear.in_avals[len(s.residuals) :]], recompute.jaxpr)


def _transpose(cotangents: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, **how: Any) -> list[Any]:
    linear = tuple(is_linear(x) for x in args)
    nonzero = tuple(type(ct) is not Zero for ct in cotangents)
    derived, there = transpose_jaxpr(jaxpr, linear, nonzero)
    given = [x for x in args if not is_linear(x)] + [ct for ct in cotangents if type(ct) is not Zero]
    found, present = iter(_bind(derived, given, how)), iter(there)
    return [(next(found) if next(present) else Zero(x.aval)) if is_linear(x) else None for x in args]


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], jaxpr: ClosedJaxpr, **how: Any
) -> tuple[list[Any], list[Dim]]:
    derived, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
    return _bind(derived, args, how), out_dims


def _checked(checks: Any, *args: Any, jaxpr: ClosedJaxpr, **how: Any) -> list[Any]:
    program, tree = checks.program(jaxpr, [typeof(x) for x in args])
    return checks.results(_bind(program, [*checks.leaves, *args], how), tree)


checkpoint = Primitive(
    "remat2",
    multiple_results=True,
    types=_types,
    lower=_text,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    extend=lambda params, trailing, *avals: params,
    steps=_steps,
    eager=_eager,
    axes=lambda params: axes_used(params["jaxpr"]),
    effects=effects_inside,
    checked=_checked,
)

name_p = Primitive(
    "name",
    types=lambda x, name: x,
    lower=lambda f, x, name: x,
    jvp=lambda primals, tangents, name: (name_p.bind(*primals, name=name), tangents[0]),
    batch=lambda axis, args, dims, name: (name_p.bind(*args, name=name), dims[0]),
    extend=lambda params, trailing, *avals: params,
    nan_checked=False,
)
