"""The `remat_opt` primitive: runs the forward rule of a custom_vjp function, which computes results and residuals.

When no residual is used, as in the forward half of a `checkpoint`, the rule `narrow` replaces it with a call of the
function itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import ClosedJaxpr, JaxprEqn, effects_inside, hoisted
from ..._ir.primitive import Primitive, sharding_in_types, vma_in_types
from ..._trace.interpret import eval_jaxpr
from ..._trace.trace import typeof
from ..._transform.batch import BatchAxis, Dim
from ..._transform.jaxprs import batch_jaxpr
from ..._xla.lower import lower_jaxpr
from ..._xla.text import Function, Value
from .call import axes_used, jit_p
from .masked import mask_after_constants


def _eager(*args: Any, fwd_jaxpr: ClosedJaxpr, fun_jaxpr: ClosedJaxpr, num_fun_consts: int, num_consts: int) -> Any:
    return eval_jaxpr(fwd_jaxpr.jaxpr, fwd_jaxpr.consts, *args[num_fun_consts:])


def _types(*avals: ShapedArray, fwd_jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return fwd_jaxpr.out_avals


def _lower(f: Function, *args: Value, fwd_jaxpr: ClosedJaxpr, num_fun_consts: int, **_: Any) -> list[Value]:
    return lower_jaxpr(f, fwd_jaxpr.jaxpr, args[num_fun_consts:])


def _as_call(args: Sequence[Any], params: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """Operands and parameters of `jit_p` that call the forward rule, which is what derivatives differentiate."""
    closed = params["fwd_jaxpr"]
    return args[params["num_fun_consts"] :], {"jaxpr": closed, "name": closed.jaxpr.name, "inline": False}


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    operands, how = _as_call(primals, params)
    return jit_p.rule("jvp")(operands, _as_call(tangents, params)[0], **how)


def _linearize(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    operands, how = _as_call(primals, params)
    return jit_p.rule("linearize")(operands, _as_call(tangents, params)[0], **how)


def _batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    fwd_jaxpr: ClosedJaxpr,
    fun_jaxpr: ClosedJaxpr,
    num_fun_consts: int,
    num_consts: int,
) -> tuple[list[Any], list[Dim]]:
    fun_dims = (*dims[:num_fun_consts], *dims[num_fun_consts + num_consts :])
    fwd, out_dims = batch_jaxpr(fwd_jaxpr, axis, tuple(dims[num_fun_consts:]))
    count = len(fun_jaxpr.out_avals)
    # Results of both jaxprs need the same dims, because the function may replace its forward rule.
    front = (*(True for _ in range(count)), *(d is not None for d in out_dims[count:]))
    fwd, out_dims = batch_jaxpr(fwd_jaxpr, axis, tuple(dims[num_fun_consts:]), front)
    fun, _ = batch_jaxpr(fun_jaxpr, axis, fun_dims, (True,) * count)
    outs = remat_opt.bind(
        *fun.consts,
        *args[:num_fun_consts],
        *fwd.consts,
        *args[num_fun_consts:],
        fwd_jaxpr=hoisted(fwd),
        fun_jaxpr=hoisted(fun),
        num_fun_consts=len(fun.consts) + num_fun_consts,
        num_consts=len(fwd.consts) + num_consts,
    )
    return outs, out_dims


def _masked(
    mask: Any, *args: Any, fwd_jaxpr: ClosedJaxpr, fun_jaxpr: ClosedJaxpr, num_fun_consts: int, num_consts: int
) -> list[Any]:
    """The mask is the first operand of the function and of its forward rule, after the constants of both."""
    fixed, aval = num_fun_consts + num_consts, typeof(mask)
    fun, fwd = mask_after_constants(fun_jaxpr, aval, num_fun_consts), mask_after_constants(fwd_jaxpr, aval, num_consts)
    return remat_opt.bind(
        *fun.consts,
        *args[:num_fun_consts],
        *fwd.consts,
        *args[num_fun_consts:fixed],
        mask,
        *args[fixed:],
        fwd_jaxpr=hoisted(fwd),
        fun_jaxpr=hoisted(fun),
        num_fun_consts=len(fun.consts) + num_fun_consts,
        num_consts=len(fwd.consts) + num_consts,
    )


def _narrow(eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
    params = eqn.params
    fun: ClosedJaxpr = params["fun_jaxpr"]
    count, own = len(fun.out_avals), params["num_fun_consts"]
    if any(used[count:]):
        return eqn
    return JaxprEqn(
        [*eqn.invars[:own], *eqn.invars[own + params["num_consts"] :]],
        eqn.outvars[:count],
        jit_p,
        {"jaxpr": fun, "name": fun.jaxpr.name, "inline": False},
        eqn.source_info,
    )


remat_opt = Primitive(
    "remat_opt",
    multiple_results=True,
    types=_types,
    vma=vma_in_types,
    sharding=sharding_in_types,
    lower=_lower,
    jvp=_jvp,
    linearize=_linearize,
    batch=_batch,
    pad=lambda padding, eqn, *args: padding.run(eqn.params["fwd_jaxpr"], args[eqn.params["num_fun_consts"] :]),
    extend=lambda params, trailing, *avals: params,
    masked=_masked,
    eager=_eager,
    axes=lambda params: axes_used(params["fwd_jaxpr"]),
    effects=effects_inside,
    narrow=_narrow,
    nan_checked=True,
)
