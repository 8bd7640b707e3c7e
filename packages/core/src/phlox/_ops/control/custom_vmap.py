"""The `custom_vmap_call` primitive: a function whose batches the user computes.

It carries the function as a program, and the user's rule as a flat Python function ``rule(size, batched, *args)`` that
returns results for all examples, the batch in front, and which of them depend on the example.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

from ..._base.errors import DerivativeError, UnexpectedTracerError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import ClosedJaxpr, effects_inside, hoisted
from ..._ir.primitive import Primitive
from ..._trace.interpret import eval_jaxpr
from ..._transform.array_operations import Zero, fill, instantiate, zero_tangent
from ..._transform.batch import BatchAxis, Dim, place_axis, run_batched
from ..._transform.jaxprs import jvp_jaxpr
from ..._transform.jvp import jvp
from ..._xla.lower import lower_jaxpr
from ..._xla.text import Function, Value
from .call import axes_used


class BatchRule(NamedTuple):
    """``call(axis_size, batched, args) -> outputs, which of them are batched``, and the name of the user's rule.

    The constants of the program are among `args`; they are never batched.
    """

    call: Callable[[int, list[bool], list[Any]], tuple[list[Any], list[bool]]]
    name: str

    def __str__(self) -> str:
        return self.name


def _eager(*args: Any, call: ClosedJaxpr, **_: Any) -> list[Any]:
    return eval_jaxpr(call.jaxpr, call.consts, *args)


def _types(*avals: ShapedArray, call: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return call.out_avals


def _lower(f: Function, *args: Value, call: ClosedJaxpr, **_: Any) -> list[Value]:
    return lower_jaxpr(f, call.jaxpr, args)


def _refuse_closed_over(flags: Sequence[bool], name: str, how: str) -> None:
    if any(flags):
        raise UnexpectedTracerError(
            f"the custom_vmap function {name} closes over a value that is being {how}",
            instead=f"pass the value to {name} as an argument",
        )


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], call: ClosedJaxpr, rule: BatchRule, num_consts: int
) -> tuple[list[Any], list[Dim]]:
    batched = [d is not None for d in dims]
    _refuse_closed_over(batched[:num_consts], call.jaxpr.name, "mapped")
    in_front = [x if d is None else place_axis(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
    outs, out_batched = rule.call(axis.size, batched, in_front)
    return outs, [0 if there else None for there in out_batched]


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], call: ClosedJaxpr, rule: BatchRule, num_consts: int
) -> tuple[list[Any], list[Any]]:
    nonzero = tuple(type(t) is not Zero for t in tangents)
    _refuse_closed_over(nonzero[:num_consts], call.jaxpr.name, "differentiated")
    # Which tangents come out must not depend on whether the rule of the user is run.
    keep = tuple(dtypes.is_inexact(a.dtype) for a in call.out_avals)
    derived, present = jvp_jaxpr(call, nonzero, keep)
    outs = custom_vmap_call.bind(
        *derived.consts,
        *primals,
        *(t for t in tangents if type(t) is not Zero),
        call=hoisted(derived),
        rule=rule._replace(call=_rule_of_jvp(rule, nonzero, derived, present)),
        num_consts=len(derived.consts) + num_consts,
    )
    count = len(call.out_avals)
    return outs[:count], fill(outs[count:], present, call.out_avals)


def _rule_of_jvp(
    rule: BatchRule, nonzero: tuple[bool, ...], derived: ClosedJaxpr, present: Sequence[bool]
) -> Callable[[int, list[bool], list[Any]], tuple[list[Any], list[bool]]]:
    """The rule of the derivative `derived`: the derivative of the user's rule."""
    own, count = len(derived.consts), len(nonzero)
    kept = [i for i, there in enumerate(present) if there]

    def directions(size: int, batched: list[bool], args: list[Any]) -> tuple[list[Any], list[bool]]:
        """Many directions at one point, without the rule."""
        dims = [0 if there else None for there in batched]
        return _in_front(partial(eval_jaxpr, hoisted(derived).jaxpr, []), size, args, dims)

    def apart(
        size: int, primals: list[Any], tangents: list[Any], batched: list[bool]
    ) -> tuple[list[Any], list[bool], bool]:
        """Where no value is batched together with its tangent: the rule of one example, mapped. Also says whether the
        rule returns a batch all the same."""
        found: list[bool] = []

        def one(*xs: Any) -> list[Any]:
            def by_rule(*values: Any) -> list[Any]:
                outs, found[:] = rule.call(size, [False] * count, list(values))
                return outs

            given = iter(xs[count:])
            outs, out_tangents = jvp(by_rule, xs[:count], [t if type(t) is Zero else next(given) for t in tangents])
            return [*outs, *(instantiate(out_tangents[i]) for i in kept)]

        dims = [0 if there else None for there in batched]
        outs, out_batched = _in_front(one, size, [*primals, *(t for t in tangents if type(t) is not Zero)], dims)
        return outs, out_batched, any(found)

    def together(
        size: int, primals: list[Any], tangents: list[Any], with_axis: list[bool], tangent_with_axis: list[bool]
    ) -> tuple[list[Any], list[bool]]:
        """A value and its tangent are batched together, for the rule sees one of them as the other."""
        both = [p or t for p, t in zip(with_axis, tangent_with_axis, strict=True)]
        for i in range(count):
            if both[i] and not with_axis[i]:
                primals[i] = place_axis(primals[i], None, 0, size)
            if type(tangents[i]) is Zero:
                tangents[i] = zero_tangent(primals[i])
            elif both[i] and not tangent_with_axis[i]:
                tangents[i] = place_axis(tangents[i], None, 0, size)
        found: list[bool] = []

        def batched_call(*xs: Any) -> list[Any]:
            outs, found[:] = rule.call(size, both, list(xs))
            return outs

        outs, out_tangents = jvp(batched_call, primals, tangents)
        return [*outs, *(instantiate(out_tangents[i]) for i in kept)], [*found, *(found[i] for i in kept)]

    def run(size: int, batched: list[bool], args: list[Any]) -> tuple[list[Any], list[bool]]:
        primals, with_axis = args[own : own + count], batched[own : own + count]
        given, given_axis = iter(args[own + count :]), iter(batched[own + count :])
        tangents = [next(given) if has else zero_tangent(p) for has, p in zip(nonzero, primals, strict=True)]
        tangent_with_axis = [next(given_axis) if has else False for has in nonzero]
        if not any(p and t for p, t in zip(with_axis, tangent_with_axis, strict=True)):
            outs, out_batched, again = apart(size, primals, tangents, batched[own:])
            if not again:
                return outs, out_batched
            if not any(with_axis):
                return directions(size, batched, args)
        return together(size, primals, tangents, with_axis, tangent_with_axis)

    return run


def _in_front(
    fun: Callable[..., Sequence[Any]], size: int, args: Sequence[Any], dims: Sequence[Dim]
) -> tuple[list[Any], list[bool]]:
    """Results of flat `fun` on a batch, which axis is in front, and which of them are batched."""
    outs, out_dims = run_batched(fun, BatchAxis(size), args, dims)
    in_front = [x if d is None else place_axis(x, d, 0, size) for x, d in zip(outs, out_dims, strict=True)]
    return in_front, [d is not None for d in out_dims]


def _linearize(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    # Once for the values, and once more beside the tangents when those are known.
    return custom_vmap_call.bind(*primals, **params), _jvp(primals, tangents, **params)[1]


def _transpose(*_args: Any, call: ClosedJaxpr, **_params: Any) -> NoReturn:
    name = call.jaxpr.name
    raise DerivativeError(
        "Linearization failed to produce known values for all output primals: reverse-mode differentiation of the "
        f"custom_vmap function {name}",
        instead=f"custom_vjp around {name}; or forward mode (jvp, jacfwd)",
    )


custom_vmap_call = Primitive(
    "custom_vmap_call",
    multiple_results=True,
    types=_types,
    lower=_lower,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    extend=lambda params, trailing, *avals: params,
    eager=_eager,
    axes=lambda params: axes_used(params["call"]),
    effects=effects_inside,
    nan_checked=True,
    program="call",
)
