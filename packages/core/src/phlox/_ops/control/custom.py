"""The primitives behind custom_jvp and custom_vjp.

Their parameters are the function as a Jaxpr, and the user's rules as flat Python functions, which run when the function
is differentiated. In everything but differentiation they behave as a call of the Jaxpr.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple

from ..._base.errors import UnexpectedTracerError
from ..._base.scoped import scoped
from ..._ir.jaxpr import ClosedJaxpr, axes_used, hoisted
from ..._ir.primitive import Primitive
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import Operands, ProgramPrimitive, RefValues
from ..._trace.staging import stage
from ..._trace.trace import recorder, typeof
from ..._transform.array_operations import Zero, instantiate, move_axis
from ..._transform.batch import BatchAxis, Dim, run_batched
from ..._transform.jaxprs import batch_jaxpr
from ..._transform.transpose import backward_pass
from .custom_rules import Rule, batched_cotangents, custom_vjp_forward, place_dim, run_batched_rule
from .logs import LoggedRule
from .masked import mask_after_constants, run_masked
from .once import program_rules
from .rows import row_at


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

    try:
        with scoped(_is_finding_dims, True):
            stage(run, [typeof(x) for x in primals])
    except Exception:  # a rule that fails for these operands raises again when it is used
        return []
    return out_dims


# --- custom_jvp -----------------------------------------------------------------------------------------


def _custom_jvp_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], call_jaxpr: ClosedJaxpr, jvp: Rule, num_consts: int
) -> tuple[list[Any], list[Any]]:
    _refuse_closed_over(tangents[:num_consts], "custom_jvp", call_jaxpr.jaxpr.name)
    return jvp.call(primals[num_consts:], jvp.inputs(tangents[num_consts:]))


def _custom_jvp_linearize(
    primals: Sequence[Any], tangents: Sequence[Any], call_jaxpr: ClosedJaxpr, jvp: Rule, num_consts: int
) -> tuple[list[Any], list[Any]]:
    if jvp.other_mode is not None:
        jvp = jvp._replace(call=jvp.other_mode)
    return _custom_jvp_jvp(primals, tangents, call_jaxpr, jvp, num_consts)


def _custom_jvp_batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    call_jaxpr: ClosedJaxpr,
    jvp: Rule,
    num_consts: int,
) -> tuple[list[Any], list[Dim]]:
    in_dims = list(dims[num_consts:])

    def by_rule(
        rule: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Dim]]:
        def both(*xs: Any) -> list[Any]:
            outs, out_tangents = rule(xs[: len(primals)], xs[len(primals) :])
            return [*outs, *out_tangents]

        return run_batched_rule(both, axis, [*primals, *tangents], in_dims * 2)

    def dims_by_rule(*primals: Any) -> list[Dim]:
        tangents = [instantiate(Zero(typeof(x).tangent())) for x in primals]
        return _either(by_rule(jvp.call, primals, tangents)[1])

    batched_function = _BatchedFunction(axis, args, dims, num_consts, call_jaxpr, dims_by_rule)

    def batched(
        rule: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        results, rule_dims = by_rule(rule, primals, tangents)
        out_dims = batched_function.update_dims(_either(rule_dims), "jvp", jvp.name)
        placed = [place_dim(x, d, w, axis.size) for x, d, w in zip(results, rule_dims, out_dims * 2, strict=True)]
        return placed[: len(out_dims)], placed[len(out_dims) :]

    program = batched_function.program
    outs = _bind(custom_jvp_call, program, args, num_consts, (), jvp=jvp.map(lambda rule: partial(batched, rule)))
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

    def checked(
        rule: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        after = eval_jaxpr(program.jaxpr, program.consts, *consts, *primals)[:width]
        outs, out_tangents = rule(primals[len(leaves) :], tangents[len(leaves) :])
        return [*after, *outs], [*(instantiate(Zero(typeof(x).tangent())) for x in after), *out_tangents]

    outs = _bind(custom_jvp_call, program, args, num_consts, leaves, jvp=jvp.map(lambda rule: partial(checked, rule)))
    return checks.results(outs, tree)


def _custom_jvp_masked(mask: Any, *args: Any, call_jaxpr: ClosedJaxpr, jvp: Rule, num_consts: int) -> list[Any]:
    """The mask is an operand of the function, after its constants; the loops of the rule are masked too."""
    program = mask_after_constants(call_jaxpr, typeof(mask), num_consts)

    def masked(
        rule: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        width = len(primals) - 1

        def both(*xs: Any) -> list[Any]:
            outs, out_tangents = rule(xs[:width], xs[width:])
            return [*outs, *out_tangents]

        results = run_masked(primals[0], both, *primals[1:], *tangents[1:])
        return results[: len(results) // 2], results[len(results) // 2 :]

    return _bind(custom_jvp_call, program, args, num_consts, [mask], jvp=jvp.map(lambda rule: partial(masked, rule)))


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
    linearize=_custom_jvp_linearize,
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
        placed = [place_dim(x, d, w, axis.size) for x, d, w in zip(results, rule_dims, out_dims, strict=False)]
        return placed, results[count:], (form, rule_dims[count:])

    def batched_bwd(form: Any, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        inner_form, residual_dims = form
        inner = bwd._replace(call=partial(bwd.call, inner_form))
        return batched_cotangents(inner, axis, residual_dims, batched_function.dims, in_dims, residuals, cotangents)

    program = batched_function.program
    rules = {"fwd": fwd._replace(call=batched_fwd), "bwd": bwd._replace(call=batched_bwd)}
    outs = _bind(custom_vjp_call, program, args, num_consts, (), **rules)
    return outs, batched_function.settle_dims()


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
