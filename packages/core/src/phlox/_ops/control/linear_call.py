"""The `linear_call` primitive: a linear function with a transpose that the user supplies.

`transposed()` returns the transpose as (jaxpr, its constants); it is traced when it is first needed. Its own transpose
is the original function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._base.errors import DerivativeError
from ..._ir.jaxpr import ClosedJaxpr, hoisted
from ..._trace.program_primitive import ProgramPrimitive
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, instantiate
from ..._transform.batch import BatchAxis, Dim, place_axis
from ..._transform.jaxprs import batch_jaxpr
from ..._transform.transpose import is_linear
from .masked import mask_after_constants
from .once import program_rules

#: Returns a closed jaxpr whose constants were made its leading inputs, and the values of those inputs.
Transposed = Callable[[], tuple[ClosedJaxpr, list[Any]]]


def _linear_call_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, num_consts: int, num_res: int, **params: Any
) -> tuple[list[Any], list[Any]]:
    fixed = num_consts + num_res
    if any(type(t) is not Zero for t in tangents[:fixed]):
        raise DerivativeError(
            f"linear_call of {params['callee'].jaxpr.name} is differentiated with respect to what it is not linear in: "
            "its residual arguments, or a value that it closes over",
            instead="stop_gradient for these values, or custom_vjp",
        )
    params |= {"num_consts": num_consts, "num_res": num_res}
    outs = linear_call.bind(*primals, **params)
    return outs, linear_call.bind(*primals[:fixed], *map(instantiate, tangents[fixed:]), **params)


def _linear_call_transpose(
    cotangents: Sequence[Any],
    *args: Any,
    callee: ClosedJaxpr,
    transposed: Transposed,
    num_consts: int,
    num_res: int,
) -> list[Any]:
    fixed = num_consts + num_res
    program, consts = transposed()
    outs = linear_call.bind(
        *consts,
        *args[num_consts:fixed],
        *map(instantiate, cotangents),
        callee=program,
        # The transpose of the transpose is the function itself, so the cotangents can be differentiated again.
        transposed=lambda: (callee, list(args[:num_consts])),
        num_consts=len(consts),
        num_res=num_res,
    )
    return [None] * fixed + [ct if is_linear(x) else None for x, ct in zip(args[fixed:], outs, strict=True)]


def _linear_call_batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    callee: ClosedJaxpr,
    transposed: Transposed,
    num_consts: int,
    num_res: int,
) -> tuple[list[Any], list[Dim]]:
    fixed = num_consts + num_res
    linear_args = [place_axis(x, d, 0, axis.size) for x, d in zip(args[fixed:], dims[fixed:], strict=True)]
    in_dims: tuple[Dim, ...] = (*dims[:fixed], *(0 for _ in linear_args))
    # All linear operands and results are batched, so that the batch axes of the transpose, which is traced later, are
    # known now.
    all_batched = (True,) * len(callee.out_avals)
    derived, out_dims = batch_jaxpr(callee, axis, in_dims, all_batched)

    def batched() -> tuple[ClosedJaxpr, list[Any]]:
        program, consts = transposed()
        transposed_dims: tuple[Dim, ...] = (*(None for _ in consts), *dims[num_consts:fixed], *(0 for _ in all_batched))
        wide, _ = batch_jaxpr(program, axis, transposed_dims, (True,) * len(linear_args))
        return hoisted(wide), [*wide.consts, *consts]

    outs = linear_call.bind(
        *derived.consts,
        *args[:fixed],
        *linear_args,
        callee=hoisted(derived),
        transposed=batched,
        num_consts=len(derived.consts) + num_consts,
        num_res=num_res,
    )
    return outs, out_dims


def _linear_call_masked(
    mask: Any, *args: Any, callee: ClosedJaxpr, transposed: Transposed, num_consts: int, num_res: int
) -> list[Any]:
    """The mask is the first residual of the function and of its transpose."""
    aval = typeof(mask)

    def masked_transposed() -> tuple[ClosedJaxpr, list[Any]]:
        program, consts = transposed()
        masked = mask_after_constants(program, aval, len(consts))
        return hoisted(masked), [*masked.consts, *consts]

    masked = mask_after_constants(callee, aval, num_consts)
    return linear_call.bind(
        *masked.consts,
        *args[:num_consts],
        mask,
        *args[num_consts:],
        callee=hoisted(masked),
        transposed=masked_transposed,
        num_consts=len(masked.consts) + num_consts,
        num_res=num_res + 1,
    )


linear_call = ProgramPrimitive(
    "linear_call",
    **{**program_rules("callee"), "steps": None},
    jvp=_linear_call_jvp,
    transpose=_linear_call_transpose,
    batch=_linear_call_batch,
    masked=_linear_call_masked,
    nan_checked=True,
    has_user_derivative=True,
)
