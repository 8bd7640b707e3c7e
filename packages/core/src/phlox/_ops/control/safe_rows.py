"""The `safe_rows` primitive: rows of a batched loop, of which only some go on.

It returns its operand `x`; axis i of the mask `goes_on` is axis ``axes[i]`` of it, and the rows are along axis `row` of
the mask. In derivatives, rows that have ended are replaced by one that goes on. They still take part in each turn of
the batch, with results that are dropped. The derivative of such a turn may be infinite, as that of a square root at 0,
and zero times infinity would be nan in the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._ir.jaxpr import ClosedJaxpr, JaxprEqn, memoized
from ..._ir.primitive import Primitive
from ..._trace.axes import axis_env
from ..._trace.interpret import eval_jaxpr
from ..._trace.trace import typeof
from ..._transform.array_operations import linear_jvp, zeros
from ..._transform.batch import BatchAxis, Dim
from ..._transform.jaxprs import restage
from ..._transform.padding import pad_elementwise
from ..._transform.transpose import is_linear
from ..elementwise.logic import eq, select
from ..random.keys import is_key
from ..reductions.reduce import reduce_min, reduce_or, reduce_sum
from ..structure.shape import broadcast_in_dim, transpose
from .rows import broadcast, index_along


# Only reverse mode multiplies zero cotangents of rows that have ended by derivatives: the jvp rule replaces nothing.
def _safe_rows_linearize(
    primals: Sequence[Any], tangents: Sequence[Any], axes: tuple[int, ...], row: int
) -> tuple[Any, Any]:
    (goes_on, x), t = primals, tangents[1]
    return _replaced(goes_on, x, axes, row), select(_mask(goes_on, t, axes), t, zeros(typeof(t)))


def _replaced(goes_on: Any, x: Any, axes: tuple[int, ...], row: int) -> Any:
    """`x` with a row that goes on in the place of those that have ended."""
    return select(_mask(goes_on, x, axes), x, _row_that_goes_on(goes_on, x, axes, row))


def rows_that_go_on(goes_on: Any, x: Any) -> Any:
    """`x`, batched along axis 0, with a row that goes on in the place of those that do not; keys stay."""
    return x if is_key(typeof(x)) else _replaced(goes_on, x, (0,), 0)


def with_safe_rows(body: ClosedJaxpr) -> ClosedJaxpr:
    """The body of a loop with its rows replaced at once, as derivatives replace no integers: these have no tangents."""
    if not any(eqn.primitive is safe_rows for eqn in body.eqns):
        return body

    def run(eqn: JaxprEqn, values: list[Any]) -> Any:
        return (_replaced if eqn.primitive is safe_rows else eqn.primitive.bind)(*values, **eqn.params)

    def fun(*args: Any) -> list[Any]:
        return eval_jaxpr(body.jaxpr, body.consts, *args, run=run)

    return memoized(body.jaxpr, ("safe rows", axis_env.get()), lambda: restage(fun, body.in_avals, body.jaxpr))


def _mask(goes_on: Any, x: Any, axes: tuple[int, ...]) -> Any:
    order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    mask = goes_on if order == tuple(range(len(axes))) else transpose(goes_on, permutation=order)
    return broadcast_in_dim(mask, shape=typeof(x).shape, broadcast_dimensions=tuple(sorted(axes)))


def _row_that_goes_on(goes_on: Any, x: Any, axes: tuple[int, ...], row: int) -> Any:
    """The first row that goes on, in the place of every row."""
    shape = typeof(goes_on).shape
    index, rest = index_along(shape, row), [i for i in range(len(shape)) if i != row]
    # If none goes on, no row is the first and the sums below are zeros. The loop has ended then.
    first = reduce_min(select(goes_on, index, broadcast(shape[row], shape)), axes=(row,))
    is_first = _mask(eq(index, broadcast(first, shape, *rest)), x, axes)
    aval = typeof(x)
    sum_over = reduce_or if aval.dtype == bool else reduce_sum
    one = sum_over(select(is_first, x, zeros(aval.update(weak_type=False))), axes=(axes[row],))
    others = tuple(i for i in range(aval.ndim) if i != axes[row])
    return broadcast_in_dim(one, shape=aval.shape, broadcast_dimensions=others)


def _safe_rows_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], axes: tuple[int, ...], row: int
) -> tuple[Any, Dim]:
    (goes_on, x), (mask_dim, dim) = args, dims
    if dim is None:  # the value of a row is equal for all examples, so it is that of an example that goes on
        return x, None
    moved = [i + (i >= dim) for i in axes]
    if mask_dim is not None:
        moved.insert(mask_dim, dim)
        row += mask_dim <= row
    return safe_rows.bind(goes_on, x, axes=tuple(moved), row=row), dim


safe_rows = Primitive(
    "safe_rows",
    remembers=True,
    types=lambda goes_on, x, axes, row: x,
    lower=lambda f, goes_on, x, axes, row: x,
    jvp=linear_jvp(lambda: safe_rows, slice(1, None)),
    linearize=_safe_rows_linearize,
    transpose=lambda ct, goes_on, x, **_: [None, ct if is_linear(x) else None],
    batch=_safe_rows_batch,
    pad=pad_elementwise,
    nan_checked=False,
)
