"""The primitives behind custom_jvp and custom_vjp.

Their parameters are the function as a Jaxpr, and the user's rules as flat Python functions, which run when the function
is differentiated. In everything but differentiation they behave as a call of the Jaxpr.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, NoReturn

from ..._base.errors import DerivativeError, UnexpectedTracerError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import ClosedJaxpr, axes_used, hoisted
from ..._ir.primitive import Primitive, sharding_in_types, vma_in_types
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import Operands, ProgramPrimitive, RefValues
from ..._trace.staging import stage
from ..._trace.trace import recorder, typeof
from ..._transform.array_operations import Zero, instantiate, move_axis, sum_axes
from ..._transform.batch import BatchAxis, Dim, place_axis, run_batched
from ..._transform.jaxprs import batch_jaxpr
from ..._transform.transpose import backward_pass
from .logs import LoggedRule
from .masked import mask_after_constants, run_masked
from .once import program_rules
from .rows import row_at, with_rows, zero_array


class Rule(NamedTuple):
    """A user's derivative rule as a flat function, and its name.

    A forward rule is called with the primals and, for each, whether it is differentiated. It returns (results,
    residuals, form). A backward rule is called with a form, residuals and cotangents. A form says how the residuals are
    to be read: the same rule may save others for each derivative.

    A rule may return `Zero` among its tangents or cotangents. Backward rules receive `Zero` ones, those of `custom_jvp`
    if `symbolic_zeros` is true. A backward rule with `has_logs` also gives logs to the caller of the backward pass; one
    with `generic_batching` may be called for a batch whose examples share a result, see `_batched_bwd`.
    """

    call: Callable[..., Any]
    name: str
    symbolic_zeros: bool = False
    has_logs: bool = False
    generic_batching: bool = False

    def inputs(self, tangents: Sequence[Any]) -> list[Any]:
        """The tangents as the rule takes them: with `Zero`, or with arrays of zeros in its place."""
        return list(tangents) if self.symbolic_zeros else [instantiate(t) for t in tangents]

    def __str__(self) -> str:
        return self.name


def _rebuild(
    args: Sequence[Any], params: dict[str, Any], programs: Sequence[ClosedJaxpr], carried: Sequence[Any] = ()
) -> Operands:
    """The constants of the program become those of the function. Its rules return the results only, so that it carries
    nothing."""
    (program,) = programs
    changes = {"call_jaxpr": hoisted(program), "num_consts": params["num_consts"] + len(program.consts)}
    return [*program.consts, *args], {**params, **changes}


def _bind(
    primitive: Primitive, program: ClosedJaxpr, args: Sequence[Any], num_consts: int, more: Sequence[Any], **rules: Rule
) -> list[Any]:
    """Calls `program` in place of a function of `args`, with these rules.

    Args:
      primitive: custom_jvp_call or custom_vjp_call.
      program: takes the constants of the function, then `more`, then its operands.
      args: the constants and operands of the function.
      num_consts: how many of `args` are constants.
    """
    return primitive.bind(
        *program.consts,
        *args[:num_consts],
        *more,
        *args[num_consts:],
        call_jaxpr=hoisted(program),
        num_consts=len(program.consts) + num_consts,
        **rules,
    )


def _refuse_writes(refs: RefValues, params: dict[str, Any]) -> None:
    refs.refuse_writes(f"the function of a {refs.name}")


def _refuse_closed_over(tangents: Sequence[Any], kind: str, name: str) -> None:
    if any(type(t) is not Zero for t in tangents):
        raise closes_over(kind, name)


def closes_over(kind: str, name: str, transformed: str = "differentiated") -> UnexpectedTracerError:
    """The error for a function with a custom rule that closes over a value that is being differentiated or mapped."""
    return UnexpectedTracerError(
        f"the {kind} function {name} closes over a value that is being {transformed}",
        instead=f"pass the value to {name} as an argument",
    )


def _run_batched(
    fun: Callable[..., Sequence[Any]], axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim]
) -> tuple[list[Any], list[Dim]]:
    """`run_batched` for arguments and results that may be `Zero`. The dim of a `Zero` result is None."""
    zero_outs: dict[int, Zero] = {}

    def fun_of_arrays(*xs: Any) -> list[Any]:
        arrays = iter(xs)
        outs = fun(*[_example(x, d) if type(x) is Zero else next(arrays) for x, d in zip(args, dims, strict=True)])
        zero_outs.update((i, out) for i, out in enumerate(outs) if type(out) is Zero)
        return [out for out in outs if type(out) is not Zero]

    present = [(x, d) for x, d in zip(args, dims, strict=True) if type(x) is not Zero]
    results, out_dims = run_batched(fun_of_arrays, axis, [x for x, _ in present], [d for _, d in present])
    for i in sorted(zero_outs):
        results.insert(i, zero_outs[i])
        out_dims.insert(i, None)
    return results, out_dims


def _example(zero: Zero, dim: Dim) -> Zero:
    """The `Zero` of one example, without the mapped axis `dim`."""
    if dim is None:
        return zero
    return Zero(zero.aval.without_axis(dim))


def _place_dim(x: Any, dim: Dim, destination: Dim, size: int) -> Any:
    """`place_axis`, also for a `Zero`. If `destination` is None, `x` is not mapped and returned unchanged."""
    if destination is None:
        return x
    if type(x) is not Zero:
        return place_axis(x, dim, destination, size)
    return Zero(x.aval.with_axis(destination, size))


#: whether a rule is being traced only to find out which results it maps; rules of functions that it calls are then not
#: traced for that purpose too
_is_finding_dims: ContextVar[bool] = ContextVar("phlox_finding_dims", default=False)


class _BatchedFunction:
    """The batched jaxpr of a function with custom rules, and the mapped axis of each result: 0, or None if unmapped.

    A rule may map a result or tangent that the function does not map, but both must have the same dims. If the function
    is differentiated eagerly, its rule runs before the dims are used, and decides. If it is being traced into a jaxpr,
    which may be differentiated later, the rule is traced here to find its dims.
    """

    def __init__(
        self,
        axis: BatchAxis,
        args: Sequence[Any],
        dims: Sequence[Dim],
        num_consts: int,
        function: ClosedJaxpr,
        dims_by_rule: Callable[..., Sequence[Dim]],
    ):
        self.name, self.settled = function.jaxpr.name, False
        self.program = function
        self.dims: list[Dim] = [None] * len(function.out_avals)
        mapped = any(d is not None for d in dims)
        if not mapped and axis.name not in axes_used(function.jaxpr):
            return
        self.program, self.dims = batch_jaxpr(function, axis, tuple(dims), (False,) * len(self.dims))
        if mapped and None in self.dims and recorder() is not None and not _is_finding_dims.get():
            rule_dims = _dims_of_rule(dims_by_rule, args[num_consts:])
            both = zip(self.dims, rule_dims or self.dims, strict=True)
            keep = tuple(dim is not None or rule_dim is not None for dim, rule_dim in both)
            self.program, self.dims = batch_jaxpr(function, axis, tuple(dims), keep)
        self.dims = list(self.dims)

    def update_dims(self, by_rule: Sequence[Dim], kind: str, rule: str) -> list[Dim]:
        """The dims of the results after the rule has returned results with the dims `by_rule`."""
        for i, dim in enumerate(by_rule):
            if dim is not None and self.dims[i] is None:
                if self.settled:
                    raise UnexpectedTracerError(
                        f"the {kind} rule {rule} of {self.name} can't close over a value that vmap maps and "
                        f"{self.name} does not use, in a program that is differentiated later",
                        instead=f"pass the value to {self.name} as an argument",
                    )
                self.dims[i] = 0
        return list(self.dims)

    def settle_dims(self) -> list[Dim]:
        """The dims of the results; from now on `update_dims` refuses to change them."""
        self.settled = True
        return self.dims


def _dims_of_rule(dims_by_rule: Callable[..., Sequence[Dim]], primals: Sequence[Any]) -> list[Dim]:
    """The dims of a rule's results, found by tracing it on these primals; an empty list if it raises."""
    out_dims: list[Dim] = []

    def run(*xs: Any) -> list[Any]:
        out_dims[:] = dims_by_rule(*xs)
        return []

    token = _is_finding_dims.set(True)
    try:
        stage(run, [typeof(x) for x in primals])
    except Exception:  # a rule that fails for these operands raises again when it is used
        return []
    finally:
        _is_finding_dims.reset(token)
    return out_dims


# --- custom_jvp -----------------------------------------------------------------------------------------


def _custom_jvp_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], call_jaxpr: ClosedJaxpr, jvp: Rule, num_consts: int
) -> tuple[list[Any], list[Any]]:
    _refuse_closed_over(tangents[:num_consts], "custom_jvp", call_jaxpr.jaxpr.name)
    return jvp.call(primals[num_consts:], jvp.inputs(tangents[num_consts:]))


def _custom_jvp_batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    call_jaxpr: ClosedJaxpr,
    jvp: Rule,
    num_consts: int,
) -> tuple[list[Any], list[Dim]]:
    in_dims = list(dims[num_consts:])

    def by_rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Dim]]:
        def both(*xs: Any) -> list[Any]:
            outs, out_tangents = jvp.call(xs[: len(primals)], xs[len(primals) :])
            return [*outs, *out_tangents]

        return _run_batched(both, axis, [*primals, *tangents], in_dims * 2)

    def dims_by_rule(*primals: Any) -> list[Dim]:
        tangents = [instantiate(Zero(typeof(x).tangent())) for x in primals]
        return _either(by_rule(primals, tangents)[1])

    batched_function = _BatchedFunction(axis, args, dims, num_consts, call_jaxpr, dims_by_rule)

    def batched(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        results, rule_dims = by_rule(primals, tangents)
        out_dims = batched_function.update_dims(_either(rule_dims), "jvp", jvp.name)
        placed = [_place_dim(x, d, w, axis.size) for x, d, w in zip(results, rule_dims, out_dims * 2, strict=True)]
        return placed[: len(out_dims)], placed[len(out_dims) :]

    program = batched_function.program
    outs = _bind(custom_jvp_call, program, args, num_consts, (), jvp=jvp._replace(call=batched))
    return outs, batched_function.settle_dims()


def _either(dims: Sequence[Dim]) -> list[Dim]:
    """For each result, 0 if it or its tangent is mapped, else None; `dims` has those of results, then of tangents."""
    half = len(dims) // 2
    return [None if a is None and b is None else 0 for a, b in zip(dims[:half], dims[half:], strict=True)]


def _custom_jvp_transpose(cotangents: Sequence[Any], *args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    """Transposes the function's own equations, if it is linear; the custom rule is only for its derivative."""
    return backward_pass(call_jaxpr.jaxpr, call_jaxpr.consts, args, cotangents)


def _custom_jvp_checked(checks: Any, *args: Any, call_jaxpr: ClosedJaxpr, jvp: Rule, num_consts: int) -> list[Any]:
    """The function is checked, its derivative is not."""
    program, tree = checks.program(call_jaxpr, [typeof(x) for x in args], num_consts)
    consts, leaves, width = args[:num_consts], checks.leaves, tree.num_leaves

    def checked(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        after = eval_jaxpr(program.jaxpr, program.consts, *consts, *primals)[:width]
        outs, out_tangents = jvp.call(primals[len(leaves) :], tangents[len(leaves) :])
        return [*after, *outs], [*(instantiate(Zero(typeof(x).tangent())) for x in after), *out_tangents]

    outs = _bind(custom_jvp_call, program, args, num_consts, leaves, jvp=jvp._replace(call=checked))
    return checks.results(outs, tree)


def _custom_jvp_masked(mask: Any, *args: Any, call_jaxpr: ClosedJaxpr, jvp: Rule, num_consts: int) -> list[Any]:
    """The mask is an operand of the function, after its constants; the loops of the rule are masked too."""
    program = mask_after_constants(call_jaxpr, typeof(mask), num_consts)

    def masked(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        width = len(primals) - 1

        def both(*xs: Any) -> list[Any]:
            outs, out_tangents = jvp.call(xs[:width], xs[width:])
            return [*outs, *out_tangents]

        results = run_masked(primals[0], both, *primals[1:], *tangents[1:])
        return results[: len(results) // 2], results[len(results) // 2 :]

    return _bind(custom_jvp_call, program, args, num_consts, [mask], jvp=jvp._replace(call=masked))


def _custom_jvp_show(eqn: Any, printer: Any) -> dict[str, Any]:
    params = eqn.params
    shown = {"name": params["call_jaxpr"].jaxpr.name, "call_jaxpr": params["call_jaxpr"], "jvp": params["jvp"].name}
    if params["num_consts"]:
        shown["num_consts"] = params["num_consts"]
    return {**shown, "symbolic_zeros": params["jvp"].symbolic_zeros}


class _Function(NamedTuple):
    """A function of flat arrays, with the method by which JAX's interpreters call it."""

    call_wrapped: Callable[..., list[Any]]


class _CustomJvpPrimitive(ProgramPrimitive):
    """A primitive whose parameters for `bind` also hold its function, as in JAX: equinox inlines the function."""

    __slots__ = ()

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        call_jaxpr = params["call_jaxpr"]
        return {**params, "subfuns": (_Function(partial(eval_jaxpr, call_jaxpr.jaxpr, call_jaxpr.consts)),)}

    def bind(self, *args: Any, subfuns: Any = None, **params: Any) -> Any:
        return super().bind(*args, **params)


custom_jvp_call = _CustomJvpPrimitive(
    "custom_jvp_call",
    **program_rules("call_jaxpr"),
    rebuild=_rebuild,
    check_refs=_refuse_writes,
    jvp=_custom_jvp_jvp,
    transpose=_custom_jvp_transpose,
    batch=_custom_jvp_batch,
    masked=_custom_jvp_masked,
    show=_custom_jvp_show,
    checked=_custom_jvp_checked,
    has_user_derivative=True,
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
    fwd: Rule, bwd: Rule, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Outputs, and their tangents by `custom_lin`, which can be transposed and not evaluated."""
    outs, residuals, form = fwd.call(primals, [type(t) is not Zero for t in tangents])
    bwd = bwd._replace(call=partial(bwd.call, form))
    avals = [typeof(out).tangent() for out in outs]
    # `custom_lin` takes arrays. The forward rule has been told which tangents are zero.
    tangents = [instantiate(t) for t in tangents]
    out_tangents = custom_lin.bind(*residuals, *tangents, bwd=bwd, num_res=len(residuals), out_avals=tuple(avals))
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
    in_dims = list(dims[num_consts:])
    count = len(call_jaxpr.out_avals)

    def by_rule(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Dim], Any]:
        form = None

        def both(*xs: Any) -> list[Any]:
            nonlocal form
            outs, residuals, form = fwd.call(xs, perturbed)
            return [*outs, *residuals]

        return *run_batched(both, axis, primals, in_dims), form

    def dims_by_rule(*primals: Any) -> list[Dim]:
        if bwd.generic_batching:  # the function decides which results are shared
            return [None] * count
        return by_rule(primals, [True] * len(primals))[1][:count]

    batched_function = _BatchedFunction(axis, args, dims, num_consts, call_jaxpr, dims_by_rule)

    def batched_fwd(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], Any]:
        results, rule_dims, form = by_rule(primals, perturbed)
        if bwd.generic_batching:
            for i, dim in enumerate(batched_function.dims):
                if dim is None and (rule_dim := rule_dims[i]) is not None:
                    results[i], rule_dims[i] = row_at(move_axis(results[i], rule_dim, 0), 0), None
        out_dims = batched_function.update_dims(rule_dims[:count], "fwd", fwd.name)
        placed = [_place_dim(x, d, w, axis.size) for x, d, w in zip(results, rule_dims, out_dims, strict=False)]
        return placed, results[count:], (form, rule_dims[count:])

    def batched_bwd(form: Any, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        inner_form, residual_dims = form
        inner = bwd._replace(call=partial(bwd.call, inner_form))
        return _batched_bwd(inner, axis, residual_dims, batched_function.dims, in_dims, residuals, cotangents)

    program = batched_function.program
    rules = {"fwd": fwd._replace(call=batched_fwd), "bwd": bwd._replace(call=batched_bwd)}
    outs = _bind(custom_vjp_call, program, args, num_consts, (), **rules)
    return outs, batched_function.settle_dims()


def _batched_bwd(
    bwd: Rule,
    axis: BatchAxis,
    residual_dims: Sequence[Dim],
    cotangent_dims: Sequence[Dim],
    in_dims: Sequence[Dim],
    residuals: Sequence[Any],
    cotangents: Sequence[Any],
) -> list[Any]:
    """The backward rule ``bwd(residuals, cotangents)`` on a batch.

    The cotangent of a result that all examples share is one for all of them: what the rule makes of it for each example
    must not be summed over the batch. With `generic_batching` the first example gets the whole of it, the others zero.
    Logs of the examples are stacked along a first axis.
    """
    count = len(residuals)
    rule = LoggedRule(bwd.name, lambda *xs: bwd.call(xs[:count], xs[count:]))

    def run(cotangents: Sequence[Any], cotangent_dims: Sequence[Dim]) -> tuple[list[Any], list[Dim]]:
        dims = [*residual_dims, *cotangent_dims]
        return _run_batched(rule, axis, [*residuals, *cotangents], dims)

    results, dims = run(cotangents, cotangent_dims)
    shares = [d is None and type(ct) is not Zero for ct, d in zip(cotangents, cotangent_dims, strict=True)]
    if any(shares) and any(d is not None and w is None for d, w in zip(dims, in_dims, strict=False)):
        if not bwd.generic_batching:
            raise DerivativeError(
                f"under vmap, all examples share a result of the custom_vjp function behind {bwd.name}, and {bwd.name} "
                "returns a cotangent of each example for an argument that they share: their sum would count the "
                "cotangent of the result once for each example",
                instead="defvjp(..., generic_batching=True), where the first example gets that cotangent",
            )
        pairs = list(zip(cotangents, cotangent_dims, shares, strict=True))
        cotangents = [_of_first_example(ct, axis.size) if shared else ct for ct, _, shared in pairs]
        results, dims = run(cotangents, [0 if shared else d for _, d, shared in pairs])
    width = len(in_dims)
    rule.add_logs([place_axis(x, d, 0, axis.size) for x, d in zip(results[width:], dims[width:], strict=True)])
    return [_cotangent_of(x, d, w, axis.size) for x, d, w in zip(results, dims, in_dims, strict=False)]


def _of_first_example(cotangent: Any, size: int) -> Any:
    """The cotangents of all examples: `cotangent` for the first, and zeros."""
    aval = typeof(cotangent)
    return with_rows(zero_array(aval.with_axis(0, size)), [cotangent], dtypes.int32.type(0))


def _cotangent_of(cotangent: Any, dim: Dim, in_dim: Dim, size: int) -> Any:
    """The cotangent of an operand that is mapped at `in_dim`; of one that is not mapped, the sum over the batch."""
    if in_dim is not None:
        return _place_dim(cotangent, dim, in_dim, size)
    return cotangent if dim is None else sum_axes(cotangent, (dim,))


def _custom_vjp_checked(
    checks: Any, *args: Any, call_jaxpr: ClosedJaxpr, fwd: Rule, bwd: Rule, num_consts: int
) -> list[Any]:
    """The function is checked, its derivative is not."""
    program, tree = checks.program(call_jaxpr, [typeof(x) for x in args], num_consts)
    consts, leaves, width = args[:num_consts], checks.leaves, tree.num_leaves

    def checked_fwd(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], Any]:
        after = eval_jaxpr(program.jaxpr, program.consts, *consts, *primals)[:width]
        outs, residuals, form = fwd.call(primals[len(leaves) :], perturbed[len(leaves) :])
        return [*after, *outs], residuals, form

    def checked_bwd(form: Any, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [*(Zero(typeof(x).tangent()) for x in leaves), *bwd.call(form, residuals, cotangents[width:])]

    rules = {"fwd": fwd._replace(call=checked_fwd), "bwd": bwd._replace(call=checked_bwd)}
    outs = _bind(custom_vjp_call, program, args, num_consts, leaves, **rules)
    return checks.results(outs, tree)


def _custom_vjp_masked(
    mask: Any, *args: Any, call_jaxpr: ClosedJaxpr, fwd: Rule, bwd: Rule, num_consts: int
) -> list[Any]:
    """The mask is an operand of the function, after its constants, and a residual."""
    program = mask_after_constants(call_jaxpr, typeof(mask), num_consts)
    width, operands = len(call_jaxpr.out_avals), len(args) - num_consts

    def masked_fwd(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], Any]:
        form = None

        def both(*xs: Any) -> list[Any]:
            nonlocal form
            outs, residuals, form = fwd.call(xs, perturbed[1:])
            return [*outs, *residuals]

        results = run_masked(primals[0], both, *primals[1:])
        return results[:width], [primals[0], *results[width:]], form

    def masked_bwd(form: Any, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        count = len(residuals) - 1
        rule = LoggedRule(bwd.name, lambda *xs: bwd.call(form, xs[:count], xs[count:]))
        results = run_masked(residuals[0], rule, *residuals[1:], *cotangents)
        rule.add_logs(results[operands:])
        return [Zero(typeof(mask).tangent()), *results[:operands]]

    rules = {"fwd": fwd._replace(call=masked_fwd), "bwd": bwd._replace(call=masked_bwd)}
    return _bind(custom_vjp_call, program, args, num_consts, [mask], **rules)


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


custom_vjp_call = ProgramPrimitive(
    "custom_vjp_call",
    **program_rules("call_jaxpr"),
    rebuild=_rebuild,
    check_refs=_refuse_writes,
    jvp=_custom_vjp_jvp,
    batch=_custom_vjp_batch,
    masked=_custom_vjp_masked,
    show=_custom_vjp_show,
    checked=_custom_vjp_checked,
    has_user_derivative=True,
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
    # The residuals are values, and only the tangents are linear: these get the cotangents that the user's rule returns.
    residuals = args[:num_res]
    return [None] * num_res + list(bwd.call(residuals, cotangents))


def _lin_batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    bwd: Rule,
    num_res: int,
    out_avals: Sequence[ShapedArray],
) -> tuple[list[Any], list[Dim]]:
    wide = tuple(axis.wider(a, 0) for a in out_avals)
    bwd = bwd._replace(call=partial(_batched_bwd, bwd, axis, dims[:num_res], (0,) * len(wide), dims[num_res:]))
    return custom_lin.bind(*args, bwd=bwd, num_res=num_res, out_avals=wide), [0] * len(wide)


custom_lin = Primitive(
    "custom_lin",
    multiple_results=True,
    types=lambda *avals, bwd, num_res, out_avals: list(out_avals),
    vma=vma_in_types,
    sharding=sharding_in_types,
    lower=_no_forward_mode,
    eager=_no_forward_mode,
    jvp=_no_forward_mode,
    transpose=_lin_transpose,
    batch=_lin_batch,
    nan_checked=False,
    # A user's rule may return cotangents even where those of all results are zero.
    transposes_zeros=True,
)
