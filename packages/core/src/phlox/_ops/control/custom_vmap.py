"""The `custom_vmap_call` primitive: a function with a batching rule of the user's.

Its parameters are the function as a Jaxpr, and the rule as a flat Python function ``rule(size, batched, args)``, which
returns batched results (the batch is axis 0) and for each result whether it is batched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

from ..._base.errors import DerivativeError
from ..._ir import dtypes
from ..._ir.jaxpr import ClosedJaxpr, hoisted
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import ProgramPrimitive
from ..._trace.staging import stage
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, fill, instantiate, zero_tangent
from ..._transform.batch import BatchAxis, Dim, batch_dims, place_axes, place_axis, run_batched
from ..._transform.jaxprs import jvp_jaxpr, restage
from ..._transform.jvp import jvp
from ..reductions.reduce import reduce_or
from ..structure.shape import convert
from .branch import bind_branches
from .custom import closes_over
from .masked import mask_after_constants
from .once import program_rules
from .rows import zero_array
from .safe_rows import rows_that_go_on


class BatchRule(NamedTuple):
    """A rule ``call(axis_size, batched, args) -> (outputs, whether each is batched)``, and its name.

    The constants of the jaxpr are the first of `args`; they are never batched.
    """

    call: Callable[[int, list[bool], list[Any]], tuple[list[Any], list[bool]]]
    name: str

    def __str__(self) -> str:
        return self.name


def _custom_vmap_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], call: ClosedJaxpr, rule: BatchRule, num_consts: int
) -> tuple[list[Any], list[Dim]]:
    batched = [d is not None for d in dims]
    if any(batched[:num_consts]):
        raise closes_over("custom_vmap", call.jaxpr.name, "mapped")
    outs, out_batched = rule.call(axis.size, batched, place_axes(axis, args, dims, batched))
    return outs, list(batch_dims(out_batched))


def _custom_vmap_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], call: ClosedJaxpr, rule: BatchRule, num_consts: int
) -> tuple[list[Any], list[Any]]:
    nonzero = tuple(type(t) is not Zero for t in tangents)
    if any(nonzero[:num_consts]):
        raise closes_over("custom_vmap", call.jaxpr.name)
    # The same tangents must be present whether the user's rule runs or not.
    keep = tuple(dtypes.is_inexact(a.dtype) for a in call.out_avals)
    derived, present = jvp_jaxpr(call, nonzero, keep)
    outs = custom_vmap_call.bind(
        *derived.consts,
        *primals,
        *(t for t in tangents if type(t) is not Zero),
        call=hoisted(derived),
        rule=rule._replace(call=_JvpRule(rule, nonzero, derived, present)),
        num_consts=len(derived.consts) + num_consts,
    )
    count = len(call.out_avals)
    return outs[:count], fill(outs[count:], present, call.out_avals)


class _JvpRule:
    """The batching rule of the jvp `derived`, made by differentiating the user's batching rule.

    Called with the batch size, a flag for each operand (constants of `derived`, primals, nonzero tangents) and the
    operands. Returns the results and a flag for each.
    """

    def __init__(self, rule: BatchRule, nonzero: tuple[bool, ...], derived: ClosedJaxpr, present: Sequence[bool]):
        self.rule = rule
        #: whether each operand has a tangent
        self.nonzero = nonzero
        self.derived = derived
        #: results that have a tangent
        self.present = [i for i, flag in enumerate(present) if flag]

    def __call__(self, size: int, batched: list[bool], args: list[Any]) -> tuple[list[Any], list[bool]]:
        consts, count = len(self.derived.consts), len(self.nonzero)
        primals, is_primal_batched = args[consts : consts + count], batched[consts : consts + count]
        nonzero_tangents, nonzero_flags = iter(args[consts + count :]), iter(batched[consts + count :])
        tangents = [
            next(nonzero_tangents) if has else zero_tangent(p) for has, p in zip(self.nonzero, primals, strict=True)
        ]
        is_tangent_batched = [next(nonzero_flags) if has else False for has in self.nonzero]
        if not any(p and t for p, t in zip(is_primal_batched, is_tangent_batched, strict=True)):
            outs, out_batched, is_rule_batched = self._unbatched(size, primals, tangents, batched[consts:])
            if not is_rule_batched:
                return outs, out_batched
            if not any(is_primal_batched):
                return self._batched_tangents(size, batched, args)
        return self._batched(size, primals, tangents, is_primal_batched, is_tangent_batched)

    def _batched_tangents(self, size: int, batched: list[bool], args: list[Any]) -> tuple[list[Any], list[bool]]:
        """Only tangents are batched: the vmap of the jvp, without the user's rule."""
        dims = batch_dims(batched)
        return _in_front(partial(eval_jaxpr, hoisted(self.derived).jaxpr, []), size, args, dims)

    def _unbatched(
        self, size: int, primals: list[Any], tangents: list[Any], batched: list[bool]
    ) -> tuple[list[Any], list[bool], bool]:
        """No operand is batched together with its tangent: the jvp of the rule for unbatched operands, mapped.

        Also returns whether that rule returned a batched output nevertheless.
        """
        count = len(self.nonzero)
        rule_flags: list[bool] = []

        def call_rule(*values: Any) -> list[Any]:
            outs, rule_flags[:] = self.rule.call(size, [False] * count, list(values))
            return outs

        def one(*xs: Any) -> list[Any]:
            nonzero_tangents = iter(xs[count:])
            all_tangents = [t if type(t) is Zero else next(nonzero_tangents) for t in tangents]
            return self._with_tangents(*jvp(call_rule, xs[:count], all_tangents))

        dims = batch_dims(batched)
        outs, out_batched = _in_front(one, size, [*primals, *(t for t in tangents if type(t) is not Zero)], dims)
        return outs, out_batched, any(rule_flags)

    def _batched(
        self, size: int, primals: list[Any], tangents: list[Any], is_primal: list[bool], is_tangent: list[bool]
    ) -> tuple[list[Any], list[bool]]:
        """The jvp of the rule for batched operands.

        An operand and its tangent are batched together: if only one is, the other is broadcast.
        """
        both = [p or t for p, t in zip(is_primal, is_tangent, strict=True)]
        for i, flag in enumerate(both):
            if flag and not is_primal[i]:
                primals[i] = place_axis(primals[i], None, 0, size)
            if type(tangents[i]) is Zero:
                tangents[i] = zero_tangent(primals[i])
            elif flag and not is_tangent[i]:
                tangents[i] = place_axis(tangents[i], None, 0, size)
        rule_flags: list[bool] = []

        def call_rule(*xs: Any) -> list[Any]:
            outs, rule_flags[:] = self.rule.call(size, both, list(xs))
            return outs

        results = self._with_tangents(*jvp(call_rule, primals, tangents))
        return results, [*rule_flags, *(rule_flags[i] for i in self.present)]

    def _with_tangents(self, outs: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """The results and the tangents of those that have one."""
        return [*outs, *(instantiate(tangents[i]) for i in self.present)]


def _in_front(
    fun: Callable[..., Sequence[Any]], size: int, args: Sequence[Any], dims: Sequence[Dim]
) -> tuple[list[Any], list[bool]]:
    """The results of flat `fun` on batched operands, with the batch as axis 0, and for each whether it is batched."""
    axis = BatchAxis(size)
    outs, out_dims = run_batched(fun, axis, args, dims)
    batched = [d is not None for d in out_dims]
    return place_axes(axis, outs, out_dims, batched), batched


def _custom_vmap_linearize(
    primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[list[Any], list[Any]]:
    # The function runs once for the primals, and again with the tangents when the linear program runs.
    return custom_vmap_call.bind(*primals, **params), _custom_vmap_jvp(primals, tangents, **params)[1]


def _custom_vmap_transpose(*_args: Any, call: ClosedJaxpr, **_params: Any) -> NoReturn:
    name = call.jaxpr.name
    raise DerivativeError(
        "Linearization failed to produce known values for all output primals: reverse-mode differentiation of the "
        f"custom_vmap function {name}",
        instead=f"custom_vjp around {name}; or forward mode (jvp, jacfwd)",
    )


def _custom_vmap_masked(mask: Any, *args: Any, call: ClosedJaxpr, rule: BatchRule, num_consts: int) -> list[Any]:
    """The mask is an operand of the function, after its constants.

    The user's batching rule does not know of it, so it does not run if no row takes the branch, and rows that do not
    take it have the operands of one that does.
    """
    masked = mask_after_constants(call, typeof(mask), num_consts)
    before = len(masked.consts) + num_consts

    def by_rule(size: int, batched: list[bool], operands: list[Any]) -> tuple[list[Any], list[bool]]:
        consts, goes_on, inputs = operands[before - num_consts : before], operands[before], operands[before + 1 :]
        is_row = batched[before + 1 :]
        out_batched: list[bool] = []

        def run(*xs: Any) -> list[Any]:
            outs, out_batched[:] = rule.call(size, [*[False] * num_consts, *is_row], [*consts, *xs])
            return outs

        if batched[before]:
            inputs = [rows_that_go_on(goes_on, x) if flag else x for x, flag in zip(inputs, is_row, strict=True)]
            goes_on = reduce_or(goes_on, axes=(0,))
        jaxpr, consts = stage(run, [typeof(x) for x in inputs])
        program = ClosedJaxpr(jaxpr, consts)
        nothing = restage(lambda *_: [zero_array(a) for a in program.out_avals], program.in_avals, jaxpr)
        outs = bind_branches(convert(goes_on, dtypes.int32), (nothing, program), inputs)
        return outs, out_batched

    return custom_vmap_call.bind(
        *masked.consts,
        *args[:num_consts],
        mask,
        *args[num_consts:],
        call=hoisted(masked),
        rule=rule._replace(call=by_rule),
        num_consts=before,
    )


custom_vmap_call = ProgramPrimitive(
    "custom_vmap_call",
    **{**program_rules("call"), "steps": None},
    jvp=_custom_vmap_jvp,
    linearize=_custom_vmap_linearize,
    transpose=_custom_vmap_transpose,
    batch=_custom_vmap_batch,
    masked=_custom_vmap_masked,
    nan_checked=True,
)
