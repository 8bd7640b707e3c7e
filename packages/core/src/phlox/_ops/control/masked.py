"""Loops of a branch that run only for the rows of a batch which take the branch.

`vmap` of `cond` with a batched predicate computes every branch for all rows. A loop in a branch might never end for a
row that does not take the branch. `masked_jaxpr` therefore gives the branch one more operand, the mask of the rows that
take it, and every loop in the branch stops where the mask is false. The results of the other rows are arbitrary.

An operation that holds programs is bound with the mask as a constant of each program, if it has no rule `masked`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._base.errors import ShapeError
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, contains, jaxprs_in, memoized, with_constants
from ..._ir.primitive import Primitive
from ..._trace.axes import axis_env
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import ProgramPrimitive
from ..._trace.staging import stage
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero
from ..._transform.batch import BatchAxis, Dim, place_axis
from ..._transform.jaxprs import restage
from ..._transform.padding import pad_elementwise
from ..reductions.reduce import reduce_or


def needs_mask(jaxpr: Jaxpr) -> bool:
    """Whether the jaxpr or its derivative may contain a loop whose number of turns depends on values."""
    return contains(jaxpr, "needs mask", _may_loop)


def _may_loop(primitive: Primitive) -> bool:
    # The rules of custom_jvp, custom_vjp and linear_call have no jaxpr yet, so they count as if they had a loop.
    return primitive.unbounded or primitive.has_user_derivative


def masked_jaxpr(closed: ClosedJaxpr, mask: ShapedArray) -> ClosedJaxpr:
    """The jaxpr with a leading input of type `mask`; its loops run only while the mask is true."""

    def fun(mask_value: Any, *args: Any) -> list[Any]:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args, run=_masked_run(mask_value))

    key = ("masked", mask, axis_env.get())
    return memoized(closed.jaxpr, key, lambda: restage(fun, [mask, *closed.in_avals], closed.jaxpr))


def mask_after_constants(function: ClosedJaxpr, mask: ShapedArray, num_consts: int) -> ClosedJaxpr:
    """The masked jaxpr of a function, with the mask behind the `num_consts` constants."""
    # User's rules count on the constants as first operands.
    program = masked_jaxpr(function, mask)
    first, *rest = program.jaxpr.invars
    invars = [*rest[:num_consts], first, *rest[num_consts:]]
    make = lambda: ClosedJaxpr(program.jaxpr.replace(invars=invars), program.consts)  # noqa: E731
    return memoized(program.jaxpr, ("mask after constants", num_consts), make)


def run_masked(mask: Any, fun: Callable[..., Sequence[Any]], *args: Any) -> list[Any]:
    """Calls flat `fun`, whose arguments and results may be `Zero`; its loops run only while the mask is true."""
    results: list[Any] = []

    def fun_of_arrays(*xs: Any) -> list[Any]:
        arrays = iter(xs)
        results[:] = fun(*[x if type(x) is Zero else next(arrays) for x in args])
        return [x for x in results if type(x) is not Zero]

    operands = [x for x in args if type(x) is not Zero]
    jaxpr, consts = stage(fun_of_arrays, [typeof(x) for x in operands])
    outs = iter(eval_jaxpr(jaxpr, consts, *operands, run=_masked_run(mask)))
    return [x if type(x) is Zero else next(outs) for x in results]


def _masked_run(mask: Any) -> Callable[[JaxprEqn, list[Any]], Any]:
    def run(eqn: JaxprEqn, values: list[Any]) -> Any:
        primitive, params = eqn.primitive, eqn.params
        needed = _may_loop(primitive) or any(map(needs_mask, jaxprs_in(params)))
        if not isinstance(primitive, ProgramPrimitive) or not needed:
            return primitive.bind(*values, **params)
        if primitive.masked is not None:
            return primitive.masked(mask, *values, **params)
        if primitive.rebuild is None:  # a function of scalars, such as that of a reduction
            return primitive.bind(*values, **params)
        programs = [
            with_constants(masked_jaxpr(body.program, typeof(mask)), [mask]) for body in primitive.bodies(params)
        ]
        return primitive.rebind(values, params, programs)

    return run


# --- the condition of a masked loop ---------------------------------------------------------------------


def _masked_test_types(test: ShapedArray, mask: ShapedArray) -> ShapedArray:
    if test.shape != mask.shape or not test.dtype == mask.dtype == bool:
        raise ShapeError(f"masked_test: {test.short} and {mask.short}", shapes=[test.shape, mask.shape])
    return test


def _masked_test_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    out = masked_test.bind(*primals)
    return out, Zero(typeof(out).tangent())


def _masked_test_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim]) -> tuple[Any, Dim]:
    """Keeps a test unbatched which is equal for all rows: the loop goes on while any row needs it."""
    (test, mask), (test_dim, mask_dim) = args, dims
    if test_dim is None:
        return masked_test.bind(test, reduce_or(mask, axes=(mask_dim,))), None
    return masked_test.bind(place_axis(test, test_dim, 0, axis.size), place_axis(mask, mask_dim, 0, axis.size)), 0


masked_test = Primitive(
    "masked_test",
    remembers=True,
    types=_masked_test_types,
    lower=lambda f, test, mask: f.op("stablehlo.and", [test, mask], test.aval),
    jvp=_masked_test_jvp,
    batch=_masked_test_batch,
    pad=pad_elementwise,
    nan_checked=False,
)
