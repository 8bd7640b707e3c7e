"""Functions with derivatives of their own: the primitives behind custom_jvp and custom_vjp.

Both carry the function as a Jaxpr, and the user's rules as flat Python functions that run when the derivative
is taken. Everything but differentiation treats them as a call of the Jaxpr.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from .._base.errors import DerivativeError, UnexpectedTracerError
from .._ir.avals import ShapedArray
from .._ir.jaxpr import ClosedJaxpr, effects_inside, hoisted
from .._ir.primitive import Primitive
from .._trace.interpret import eval_jaxpr
from .._trace.trace import typeof
from .._transform.batch import BatchAxis, Dim, place_axis, run_batched
from .._transform.jaxprs import batch_jaxpr
from .._transform.transpose import backward_pass
from .._transform.words import Zero, instantiate, sum_axes
from .._xla.lower import lower_jaxpr
from .._xla.text import Function, Value
from .call import Steps, axes_used


class Rule(NamedTuple):
    """A user's derivative rule as a flat function, with the name of the function that it belongs to.

    It may return `Zero` among its tangents, and is given some if it says that it understands them.
    """

    call: Callable[..., Any]
    name: str
    symbolic_zeros: bool = False

    def given(self, tangents: Sequence[Any]) -> list[Any]:
        """Tangents as the rule takes them."""
        return list(tangents) if self.symbolic_zeros else [instantiate(t) for t in tangents]

    def __str__(self) -> str:
        return self.name


def _eager(*args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *args)


def _steps(*args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> Steps:
    yield call_jaxpr, args, call_jaxpr.jaxpr.name


def _types(*avals: ShapedArray, call_jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return call_jaxpr.out_avals


def _text(f: Function, *args: Value, call_jaxpr: ClosedJaxpr, **_: Any) -> list[Value]:
    return lower_jaxpr(f, call_jaxpr.jaxpr, args)


def _axes(params: dict[str, Any]) -> set[Any]:
    return axes_used(params["call_jaxpr"])


def _refuse_closed_over(tangents: Sequence[Any], kind: str, name: str) -> None:
    if any(type(t) is not Zero for t in tangents):
        raise closes_over(kind, name)


def closes_over(kind: str, name: str) -> UnexpectedTracerError:
    """The error of a function with a rule that uses a value it is not given, and that is differentiated."""
    return UnexpectedTracerError(
        f"the {kind} function {name} closes over a value that is being differentiated",
        instead=f"pass the value to {name} as an argument",
    )


def _run_batched(
    fun: Callable[..., Sequence[Any]], axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim]
) -> tuple[list[Any], list[Dim]]:
    """`run_batched` where arguments and results may be `Zero`: those pass beside, and their results have no axis."""
    zero_outs: dict[int, Zero] = {}

    def fun_of_arrays(*xs: Any) -> list[Any]:
        given = iter(xs)
        outs = fun(*[_example(x, d) if type(x) is Zero else next(given) for x, d in zip(args, dims, strict=True)])
        zero_outs.update((i, out) for i, out in enumerate(outs) if type(out) is Zero)
        return [out for out in outs if type(out) is not Zero]

    present = [(x, d) for x, d in zip(args, dims, strict=True) if type(x) is not Zero]
    results, got = run_batched(fun_of_arrays, axis, [x for x, _ in present], [d for _, d in present])
    for i in sorted(zero_outs):
        results.insert(i, zero_outs[i])
        got.insert(i, None)
    return results, got


def _example(zero: Zero, dim: Dim) -> Zero:
    """The zero of one example."""
    if dim is None:
        return zero
    shape = zero.aval.shape
    return Zero(zero.aval.update(shape=shape[:dim] + shape[dim + 1 :]))


def _place(x: Any, dim: Dim, destination: int, size: int) -> Any:
    """`place_axis`, also for a `Zero`."""
    if type(x) is not Zero:
        return place_axis(x, dim, destination, size)
    shape = x.aval.shape
    return Zero(x.aval.update(shape=(*shape[:destination], size, *shape[destination:])))


# --- custom_jvp -----------------------------------------------------------------------------------------


def _custom_jvp_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], call_jaxpr: ClosedJaxpr, jvp: Rule, num_consts: int
) -> tuple[list[Any], list[Any]]:
    _refuse_closed_over(tangents[:num_consts], "custom_jvp", call_jaxpr.jaxpr.name)
    return jvp.call(primals[num_consts:], jvp.given(tangents[num_consts:]))


def _custom_jvp_batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    call_jaxpr: ClosedJaxpr,
    jvp: Rule,
    num_consts: int,
) -> tuple[list[Any], list[Dim]]:
    derived, out_dims = batch_jaxpr(call_jaxpr, axis, tuple(dims), out_dims=(True,) * len(call_jaxpr.out_avals))
    in_dims = list(dims[num_consts:])

    def batched(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        count = len(primals)

        def both(*xs: Any) -> list[Any]:
            outs, out_tangents = jvp.call(xs[:count], xs[count:])
            return [*outs, *out_tangents]

        results, got = _run_batched(both, axis, [*primals, *tangents], in_dims * 2)
        placed = [_place(x, d, 0, axis.size) for x, d in zip(results, got, strict=True)]
        half = len(placed) // 2
        return placed[:half], placed[half:]

    outs = custom_jvp_call.bind(
        *derived.consts,
        *args,
        call_jaxpr=hoisted(derived),
        jvp=jvp._replace(call=batched),
        num_consts=num_consts + len(derived.consts),
    )
    return outs, out_dims


def _custom_jvp_transpose(cotangents: Sequence[Any], *args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    """A function that is linear is transposed as it computes; its rule speaks of its derivative alone."""
    return backward_pass(call_jaxpr.jaxpr, call_jaxpr.consts, args, cotangents)


def _custom_jvp_checked(checks: Any, *args: Any, call_jaxpr: ClosedJaxpr, jvp: Rule, num_consts: int) -> list[Any]:
    """The function is checked, its derivative is not."""
    program, tree = checks.program(call_jaxpr, [typeof(x) for x in args], num_consts)
    consts, leaves, width = args[:num_consts], checks.leaves, tree.num_leaves

    def checked(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        after = eval_jaxpr(program.jaxpr, program.consts, *consts, *primals)[:width]
        outs, out_tangents = jvp.call(primals[len(leaves) :], tangents[len(leaves) :])
        return [*after, *outs], [*(instantiate(Zero(typeof(x).tangent())) for x in after), *out_tangents]

    outs = custom_jvp_call.bind(
        *program.consts,
        *consts,
        *leaves,
        *args[num_consts:],
        call_jaxpr=hoisted(program),
        jvp=jvp._replace(call=checked),
        num_consts=len(program.consts) + num_consts,
    )
    return checks.results(outs, tree)


def _custom_jvp_show(eqn: Any, printer: Any) -> dict[str, Any]:
    params = eqn.params
    shown = {"name": params["call_jaxpr"].jaxpr.name, "call_jaxpr": params["call_jaxpr"], "jvp": params["jvp"].name}
    if params["num_consts"]:
        shown["num_consts"] = params["num_consts"]
    return {**shown, "symbolic_zeros": params["jvp"].symbolic_zeros}


custom_jvp_call = Primitive(
    "custom_jvp_call",
    multiple_results=True,
    types=_types,
    lower=_text,
    jvp=_custom_jvp_jvp,
    transpose=_custom_jvp_transpose,
    batch=_custom_jvp_batch,
    extend=lambda params, trailing, *avals: params,
    steps=_steps,
    eager=_eager,
    axes=_axes,
    effects=effects_inside,
    show=_custom_jvp_show,
    checked=_custom_jvp_checked,
)

# --- custom_vjp -----------------------------------------------------------------------------------------


def _custom_vjp_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    call_jaxpr: ClosedJaxpr,
    fwd: Rule,
    bwd: Rule,
    num_consts: int,
) -> tuple[list[Any], list[Any]]:
    _refuse_closed_over(tangents[:num_consts], "custom_vjp", call_jaxpr.jaxpr.name)
    return custom_vjp_forward(fwd, bwd, primals[num_consts:], tangents[num_consts:])


def custom_vjp_forward(
    fwd: Rule, bwd: Rule, primals: Sequence[Any], given: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Outputs, and tangents that can be transposed alone."""
    outs, residuals = fwd.call(primals, [type(t) is not Zero for t in given])
    avals = [typeof(out).tangent() for out in outs]
    given = [instantiate(t) for t in given]
    out_tangents = custom_lin.bind(*residuals, *given, bwd=bwd, num_res=len(residuals), out_avals=tuple(avals))
    return outs, out_tangents


def _custom_vjp_batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    call_jaxpr: ClosedJaxpr,
    fwd: Rule,
    bwd: Rule,
    num_consts: int,
) -> tuple[list[Any], list[Dim]]:
    derived, out_dims = batch_jaxpr(call_jaxpr, axis, tuple(dims), out_dims=(True,) * len(call_jaxpr.out_avals))
    in_dims = list(dims[num_consts:])
    residual_dims: list[Dim] = []

    def batched_fwd(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any]]:
        counts: list[int] = []

        def both(*xs: Any) -> list[Any]:
            outs, residuals = fwd.call(xs, perturbed)
            counts.append(len(outs))
            return [*outs, *residuals]

        results, got = run_batched(both, axis, primals, in_dims)
        count = counts[0]
        residual_dims[:] = got[count:]
        outs = [place_axis(x, d, 0, axis.size) for x, d in zip(results[:count], got[:count], strict=True)]
        return outs, results[count:]

    def batched_bwd(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        count = len(residuals)
        dims_in = [*residual_dims, *out_dims]
        results, got = _run_batched(
            lambda *xs: bwd.call(xs[:count], xs[count:]), axis, [*residuals, *cotangents], dims_in
        )
        return [_match(x, d, w, axis.size) for x, d, w in zip(results, got, in_dims, strict=True)]

    outs = custom_vjp_call.bind(
        *derived.consts,
        *args,
        call_jaxpr=hoisted(derived),
        fwd=fwd._replace(call=batched_fwd),
        bwd=bwd._replace(call=batched_bwd),
        num_consts=num_consts + len(derived.consts),
    )
    return outs, out_dims


def _match(cotangent: Any, dim: Dim, wanted: Dim, size: int) -> Any:
    """A cotangent for an input that is mapped at `wanted`; for one that is shared, the sum over examples."""
    if wanted is not None:
        return _place(cotangent, dim, wanted, size)
    return cotangent if dim is None else sum_axes(cotangent, (dim,))


def _custom_vjp_checked(
    checks: Any, *args: Any, call_jaxpr: ClosedJaxpr, fwd: Rule, bwd: Rule, num_consts: int
) -> list[Any]:
    """The function is checked, its derivative is not."""
    program, tree = checks.program(call_jaxpr, [typeof(x) for x in args], num_consts)
    consts, leaves, width = args[:num_consts], checks.leaves, tree.num_leaves

    def checked_fwd(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any]]:
        after = eval_jaxpr(program.jaxpr, program.consts, *consts, *primals)[:width]
        outs, residuals = fwd.call(primals[len(leaves) :], perturbed[len(leaves) :])
        return [*after, *outs], residuals

    def checked_bwd(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [*(Zero(typeof(x).tangent()) for x in leaves), *bwd.call(residuals, cotangents[width:])]

    outs = custom_vjp_call.bind(
        *program.consts,
        *consts,
        *leaves,
        *args[num_consts:],
        call_jaxpr=hoisted(program),
        fwd=fwd._replace(call=checked_fwd),
        bwd=bwd._replace(call=checked_bwd),
        num_consts=len(program.consts) + num_consts,
    )
    return checks.results(outs, tree)


def _custom_vjp_show(eqn: Any, printer: Any) -> dict[str, Any]:
    params = eqn.params
    shown = {
        "name": params["call_jaxpr"].jaxpr.name,
        "bwd": params["bwd"].name,
        "call_jaxpr": params["call_jaxpr"],
        "fwd": params["fwd"].name,
    }
    if params["num_consts"]:
        shown["num_consts"] = params["num_consts"]
    return {**shown, "symbolic_zeros": params["bwd"].symbolic_zeros}


custom_vjp_call = Primitive(
    "custom_vjp_call",
    multiple_results=True,
    types=_types,
    lower=_text,
    jvp=_custom_vjp_jvp,
    batch=_custom_vjp_batch,
    extend=lambda params, trailing, *avals: params,
    steps=_steps,
    eager=_eager,
    axes=_axes,
    effects=effects_inside,
    show=_custom_vjp_show,
    checked=_custom_vjp_checked,
)

# --- the linear part of a custom_vjp: it can only be transposed -----------------------------------------


def _no_forward_mode(*_args: Any, bwd: Rule, **_params: Any) -> NoReturn:
    raise DerivativeError(
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function: jvp, jacfwd or linearize of the one behind "
        f"{bwd.name}",
        instead="grad, vjp or jacrev; or define the function with custom_jvp",
    )


def _lin_transpose(
    cotangents: Sequence[Any], *args: Any, bwd: Rule, num_res: int, out_avals: Sequence[ShapedArray]
) -> list[Any]:
    residuals = args[:num_res]
    return [None] * num_res + list(bwd.call(residuals, bwd.given(cotangents)))


def _lin_batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    bwd: Rule,
    num_res: int,
    out_avals: Sequence[ShapedArray],
) -> tuple[list[Any], list[Dim]]:
    residual_dims, in_dims = dims[:num_res], dims[num_res:]

    def batched(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        count = len(residuals)
        results, got = _run_batched(
            lambda *xs: bwd.call(xs[:count], xs[count:]),
            axis,
            [*residuals, *cotangents],
            [*residual_dims, *[0] * len(cotangents)],
        )
        return [_match(x, d, w, axis.size) for x, d, w in zip(results, got, in_dims, strict=True)]

    wide = tuple(a.update(shape=(axis.size, *a.shape)) for a in out_avals)
    return custom_lin.bind(*args, bwd=bwd._replace(call=batched), num_res=num_res, out_avals=wide), [0] * len(wide)


custom_lin = Primitive(
    "custom_lin",
    multiple_results=True,
    types=lambda *avals, bwd, num_res, out_avals: list(out_avals),
    lower=_no_forward_mode,
    eager=_no_forward_mode,
    transpose=_lin_transpose,
    batch=_lin_batch,
    nan_checked=False,
)
