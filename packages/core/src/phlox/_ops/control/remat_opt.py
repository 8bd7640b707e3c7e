"""The `remat_opt` primitive: runs the forward rule of a custom_vjp function, which computes results and residuals.

When no residual is used, as in the forward half of a `checkpoint`, the rule `drop_unused` replaces it with a call of
the function itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._ir.jaxpr import ClosedJaxpr, JaxprEqn, hoisted
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import Body, Operands, ProgramPrimitive
from ..._transform.batch import BatchAxis, Dim
from ..._transform.jaxprs import batch_jaxpr
from ..._xla.lower import lower_jaxpr
from .call import jit_p


def _remat_opt_eager(*args: Any, fwd_jaxpr: ClosedJaxpr, num_fun_consts: int, **_: Any) -> Any:
    return eval_jaxpr(fwd_jaxpr.jaxpr, fwd_jaxpr.consts, *args[num_fun_consts:])


def _remat_opt_rebuild(
    args: Sequence[Any], params: dict[str, Any], programs: Sequence[ClosedJaxpr], carried: Sequence[Any] = ()
) -> Operands:
    """The constants of the function and of its forward rule come first among those of each."""
    (fun, fwd), num_fun_consts = programs, params["num_fun_consts"]
    changes = {
        "fwd_jaxpr": hoisted(fwd),
        "fun_jaxpr": hoisted(fun),
        "num_fun_consts": num_fun_consts + len(fun.consts),
        "num_consts": params["num_consts"] + len(fwd.consts),
    }
    args = [*fun.consts, *args[:num_fun_consts], *fwd.consts, *args[num_fun_consts:]]
    return args, {**params, **changes}


def _as_call(args: Sequence[Any], params: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """Operands and parameters of `jit_p` that call the forward rule, which is what derivatives differentiate."""
    closed = params["fwd_jaxpr"]
    return args[params["num_fun_consts"] :], {"jaxpr": closed, "name": closed.jaxpr.name, "inline": False}


def _remat_opt_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    operands, call_params = _as_call(primals, params)
    return jit_p.rule("jvp")(operands, _as_call(tangents, params)[0], **call_params)


def _remat_opt_linearize(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    operands, call_params = _as_call(primals, params)
    return jit_p.rule("linearize")(operands, _as_call(tangents, params)[0], **call_params)


def _remat_opt_batch(
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
    params = {"num_fun_consts": num_fun_consts, "num_consts": num_consts}
    return remat_opt.rebind(args, params, [fun, fwd]), out_dims


def _remat_opt_drop_unused(eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
    params = eqn.params
    fun: ClosedJaxpr = params["fun_jaxpr"]
    count, num_fun_consts = len(fun.out_avals), params["num_fun_consts"]
    # The forward rule is needed for its residuals alone. Without one the function itself may be cheaper.
    if any(used[count:]):
        return eqn
    return JaxprEqn(
        [*eqn.invars[:num_fun_consts], *eqn.invars[num_fun_consts + params["num_consts"] :]],
        eqn.outvars[:count],
        jit_p,
        {"jaxpr": fun, "name": fun.jaxpr.name, "inline": False},
        eqn.source_info,
    )


remat_opt = ProgramPrimitive(
    "remat_opt",
    bodies=lambda params: [Body(params["fun_jaxpr"]), Body(params["fwd_jaxpr"])],
    rebuild=_remat_opt_rebuild,
    types=lambda *avals, fwd_jaxpr, **_: fwd_jaxpr.out_avals,
    lower=lambda f, *args, fwd_jaxpr, num_fun_consts, **_: lower_jaxpr(f, fwd_jaxpr.jaxpr, args[num_fun_consts:]),
    jvp=_remat_opt_jvp,
    linearize=_remat_opt_linearize,
    batch=_remat_opt_batch,
    pad=lambda padding, eqn, *args: padding.run(eqn.params["fwd_jaxpr"], args[eqn.params["num_fun_consts"] :]),
    eager=_remat_opt_eager,
    drop_unused=_remat_opt_drop_unused,
    nan_checked=True,
)
