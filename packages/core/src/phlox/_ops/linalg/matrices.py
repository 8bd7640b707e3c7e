"""Stacks of matrices: `linalg`, which makes the primitives of linear algebra, and functions that their rules use.

The last two axes are those of the matrix, the others are the batch axes of the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._base.errors import DtypeError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.dimensions import is_symbolic, min_dim, value_of
from ..._ir.jaxpr import ClosedJaxpr
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import check_whole, entries_of, join
from ..._trace.staging import stage
from ..._trace.trace import typeof
from ..._transform.array_operations import move_axis
from ..._transform.batch import BatchAxis, Dim, place_axis
from ..._transform.sharding_types import with_reductions
from ..._transform.spectra import Decomposition, Followed, Slope, Spectrum, Vectors
from ..._xla.lapack import LETTERS
from ..control.scan import Scan
from ..elementwise.arithmetic import abs_, add, conj, div, mul, real, sqrt, stop_gradient, sub
from ..elementwise.families import INEXACT, check_kind, literal, same_dtype
from ..elementwise.logic import and_, eq, ge, le, not_, select
from ..reductions.reduce import reduce_max, reduce_or, reduce_sum
from ..structure.dimension_numbers import GatherDimensionNumbers
from ..structure.gather import take
from ..structure.iota import iota
from ..structure.shape import broadcast_in_dim, broadcast_to, convert, reshape, transpose
from ..structure.slicing import along, slice_
from .dot import Precision, dot_general
from .padding import stack_pad

Shape = tuple[int, ...]
#: Maps the dtype and the shapes of the operands to the shapes and dtypes of the results.
Result = Callable[..., Sequence[tuple[Shape, Any]]]


def linalg(
    name: str,
    *,
    ranks: Sequence[int],
    result: Result,
    many: bool = False,
    kinds: Sequence[str] | None = None,
    narrow: bool = False,
    batch: Callable[..., Any] | None = None,
    sharding: Callable[..., Any] | None = None,
    pad: Callable[..., Any] | None = None,
    **rules: Any,
) -> Primitive:
    """A primitive on stacks of matrices (rank 2) and vectors (rank 1).

    Args:
      ranks: the rank of each operand without the batch axes, which all operands share.
      result: ``result(dtype, *shapes, **params)`` for one element of the stack; it raises `ShapeError`.
      kinds: kinds of dtypes for each operand; by default all operands have one inexact dtype.
      narrow: whether it takes floats that LAPACK has no routines for, such as float16.
      batch: the batching rule, if the mapped axis should not become one more batch axis.
      sharding: how results are split, if other axes than those of the stack may be.
      pad: the rule for padded axes, if other axes than those of the stack may be padded.
      **rules: others of `Primitive`.
    """

    def types(*avals: ShapedArray, **params: Any) -> Any:
        stack = _stack(name, avals, ranks)
        for i, aval in enumerate(avals):
            check_kind(name, aval, INEXACT if kinds is None else kinds[i], i)
            if not narrow and dtypes.is_inexact(aval.dtype):
                _check_routines(name, aval, i)
        dtype = same_dtype(name, avals) if kinds is None else avals[0].dtype
        weak = all(a.weak_type for a in avals)
        cores = [a.shape[a.ndim - r :] for a, r in zip(avals, ranks, strict=True)]
        outs = [shaped((*stack, *shape), d, weak) for shape, d in result(dtype, *cores, **params)]
        return outs if many else outs[0]

    def batched(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*[place_axis(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)], **params)
        return out, [0] * len(out) if many else 0

    primitive = Primitive(
        name,
        multiple_results=many,
        types=types,
        sharding=sharding or over_stack(name, ranks),
        batch=batch or batched,
        pad=pad or stack_pad(ranks),
        nan_checked=True,
        **rules,
    )
    return primitive


def _check_routines(name: str, aval: ShapedArray, position: int) -> None:
    if aval.dtype.name not in LETTERS:
        raise DtypeError(
            f"{name} does not accept dtype {aval.dtype.name} at position {position}, got {aval.short}: "
            f"there are routines for {', '.join(LETTERS)}",
            instead="x.astype('float32')",
            primitive=name,
            aval=aval,
        )


def _stack(name: str, avals: Sequence[ShapedArray], ranks: Sequence[int]) -> Shape:
    stacks = []
    for aval, rank in zip(avals, ranks, strict=True):
        if aval.ndim < rank:
            what = "matrices" if rank == 2 else "vectors"
            raise ShapeError(f"{name}: takes {what}, got {aval.short}", shapes=[a.shape for a in avals])
        stacks.append(aval.shape[: aval.ndim - rank])
    if len(set(stacks)) > 1:
        raise ShapeError(
            f"{name}: stacks of different shapes: {', '.join(a.short for a in avals)}",
            instead="broadcast them first: the axes before those of the matrix must be the same",
            shapes=[a.shape for a in avals],
        )
    return stacks[0]


def over_stack(name: str, ranks: Sequence[int]) -> Callable[..., Any]:
    """The rule `sharding` of operations on stacks: the stack may be split, matrices and vectors may not."""

    def rule(outs: Any, *avals: ShapedArray, **params: Any) -> Any:
        for a, rank in zip(avals, ranks, strict=True):
            check_whole(name, a, range(a.ndim - rank, a.ndim), avals)
        stack = range(avals[0].ndim - ranks[0])
        front = tuple(join(name, avals, [entries_of(a)[i] for a in avals]) for i in stack)
        if isinstance(outs, ShapedArray):
            return (*front, *((),) * (outs.ndim - len(front)))
        return [(*front, *((),) * (out.ndim - len(front))) for out in outs]

    return rule


def need_square(name: str, shape: Shape) -> int:
    """The size of a square matrix. Raises `ShapeError` for others."""
    if shape[0] != shape[1]:
        raise ShapeError(f"{name}: takes square matrices, got shape {shape}", shapes=[shape])
    return shape[0]


def real_of(dtype: Any) -> Any:
    """The dtype of absolute values."""
    return dtypes.real_part(dtype) if dtypes.kind(dtype) == "c" else dtype


# --- functions for rules --------------------------------------------------------------------------------


def swapped(x: Any) -> Any:
    """The transpose of each matrix."""
    ndim = typeof(x).ndim
    return transpose(x, permutation=(*range(ndim - 2), ndim - 1, ndim - 2))


def conjugated(x: Any) -> Any:
    """The complex conjugate; `x` itself if it is real."""
    return conj(x) if dtypes.kind(typeof(x).dtype) == "c" else x


def real_part(x: Any) -> Any:
    """The real part; `x` itself if it is real."""
    return real(x) if dtypes.kind(typeof(x).dtype) == "c" else x


def adjoint(x: Any) -> Any:
    """The conjugate transpose of each matrix."""
    return conjugated(swapped(x))


def hermitian_part(x: Any) -> Any:
    """(x + xᴴ) / 2."""
    return div(add(x, adjoint(x)), filled(x, 2))


def filled(x: Any, value: Any) -> Any:
    """An array of the type of `x`, filled with a number."""
    aval = typeof(x)
    number = convert(literal(x, value), aval.dtype, aval.weak_type)
    return with_reductions(broadcast_to(number, aval.shape), aval)


def product(x: Any, y: Any, *more: Any) -> Any:
    """The matrix products of stacks with equal batch axes, in the full precision of the dtype."""
    a, b = typeof(x), typeof(y)
    stack = tuple(range(a.ndim - 2))
    out = dot_general(
        x,
        y,
        dimension_numbers=(((a.ndim - 1,), (b.ndim - 2,)), (stack, stack)),
        precision=(Precision.HIGHEST, Precision.HIGHEST),
        preferred_element_type=a.dtype,
    )
    return product(out, *more) if more else out


def _row_and_column_indices(shape: Shape) -> tuple[Any, Any]:
    """The row number and the column number of each element."""
    rows, columns = (iota(dtype=dtypes.int32, shape=shape[-2:], dimension=i) for i in (0, 1))
    return broadcast_to(rows, shape), broadcast_to(columns, shape)


def lower_triangle(x: Any, k: int = 0) -> Any:
    """`x` with zeros above the diagonal `k`, as numpy.tril."""
    rows, columns = _row_and_column_indices(typeof(x).shape)
    return select(ge(add(rows, filled(rows, k)), columns), x, filled(x, 0))


def upper_triangle(x: Any, k: int = 0) -> Any:
    """`x` with zeros below the diagonal `k`, as numpy.triu."""
    rows, columns = _row_and_column_indices(typeof(x).shape)
    return select(le(add(rows, filled(rows, k)), columns), x, filled(x, 0))


def identity(shape: Shape, dtype: Any) -> Any:
    """Ones on the diagonal of each matrix, zeros elsewhere."""
    return convert(eq(*_row_and_column_indices(shape)), dtype)


def diagonal_of(x: Any) -> Any:
    """The diagonals of square matrices."""
    *batch, n, _ = typeof(x).shape
    # Every (n + 1)-th element of a flattened matrix: a strided slice. `det` takes jax's time with it, and took 1.3
    # times that without.
    return along(reshape(x, new_sizes=(*batch, n * n), dimensions=None), len(batch), 0, n * n, n + 1)


def column_products(x: Any, y: Any) -> Any:
    """The real parts of the inner products of the columns of `x` with those of `y`."""
    return reduce_sum(real_part(mul(conjugated(x), y)), axes=(typeof(x).ndim - 2,))


def batch_solve(
    solve: Callable[..., Any], axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], left_side: bool = True
) -> tuple[Any, Dim]:
    """Batches `solve`, whose last operand holds right-hand sides: its columns, or its rows with ``left_side=False``."""
    *matrix, b = args
    if any(d is not None for d in dims[:-1]):
        return solve(*(place_axis(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True))), 0
    # The matrix is not batched: solve once, with the right-hand sides of all examples side by side.
    assert dims[-1] is not None
    dim = typeof(b).ndim - 2
    b = move_axis(b, dims[-1], dim)
    *stack, before, middle, after = typeof(b).shape
    joined = (*stack, before, middle * after) if left_side else (*stack, before * middle, after)
    out = solve(*matrix, reshape(b, new_sizes=joined, dimensions=None))
    return reshape(out, new_sizes=typeof(b).shape, dimensions=None), dim


def over_rows(x: Any, rows: int) -> Any:
    """Repeats each vector as the rows of a matrix."""
    aval = typeof(x)
    shape = (*aval.shape[:-1], rows, aval.shape[-1])
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=(*range(aval.ndim - 1), aval.ndim))


def over_columns(x: Any, columns: int) -> Any:
    """Repeats each vector as the columns of a matrix."""
    aval = typeof(x)
    return broadcast_in_dim(x, shape=(*aval.shape, columns), broadcast_dimensions=tuple(range(aval.ndim)))


def diagonal_matrix(x: Any) -> Any:
    """The diagonal matrices with these diagonals."""
    wide = over_rows(x, typeof(x).shape[-1])
    return select(eq(*_row_and_column_indices(typeof(wide).shape)), wide, literal(wide, 0))


def differences(x: Any) -> Any:
    """The matrix of each vector with ``x[j] - x[i]`` in row i and column j."""
    n = typeof(x).shape[-1]
    return sub(over_rows(x, n), over_columns(x, n))


#: Eigenvalues and singular values that are equal differ by rounding errors up to this many units in the last place of
#: the largest, times the root of their number (measured: 4 to 10 in float64, below 1 in float32).
_ROUNDING = 8


def safe_inverse(x: Any, values: Any) -> Any:
    """1 / x for sums or differences `x` of eigenvalues or singular values; 0 where `x` is zero up to rounding errors.

    Derivatives of vectors have these factors. Vectors of equal values may be rotated among each other, and have
    no derivative. Results that do not depend on the rotation multiply the factor of such a pair by zero.
    """
    is_zero = is_rounding(x, values)
    # The selection before the division keeps nan out of the derivatives of the quotient.
    return select(is_zero, filled(x, 0), div(filled(x, 1), select(is_zero, filled(x, 1), x)))


def is_rounding(x: Any, values: Any) -> Any:
    """Mask of the sums or differences `x` of eigenvalues or singular values that are zero up to rounding errors."""
    aval, n = typeof(values), typeof(values).shape[-1]
    # The bound decides which pairs are equal, and has no derivative.
    sizes = abs_(stop_gradient(values))
    largest = reduce_max(sizes, axes=(aval.ndim - 1,)) if n else reduce_sum(sizes, axes=(aval.ndim - 1,))
    eps = _ROUNDING * float(dtypes.finfo(aval.dtype).eps)
    if is_symbolic(n):
        count = broadcast_to(sqrt(convert(value_of(n), aval.dtype)), typeof(largest).shape)
        bound = times(mul(largest, count), eps)
    else:
        bound = times(largest, eps * float(n) ** 0.5)
    stack = tuple(range(aval.ndim - 1))
    bound = broadcast_in_dim(bound, shape=typeof(x).shape, broadcast_dimensions=stack)
    return le(abs_(stop_gradient(x)), bound)


def decomposition(values: Any, inner: Any, tangent: Any) -> Decomposition:
    """The `Decomposition` with these values and their tangent, where `inner` is the derivative of their matrix."""
    shape = typeof(inner).shape
    equal = is_rounding(differences(values), values)
    has_equal = reduce_or(and_(equal, not_(eq(*_row_and_column_indices(shape)))), axes=(len(shape) - 1,))
    # Only the parts of the derivative between equal values are kept: `_transform.spectra` needs them where a function
    # does not depend on how the vectors of equal values are rotated.
    mixing = select(and_(equal, over_rows(has_equal, shape[-1])), inner, literal(inner, 0))
    return Decomposition(mixing, tangent, has_equal)


def by_vectors(x: Any, of: Decomposition, are_rows: bool = False) -> Any:
    """The tangent `x` of vectors, in columns or rows, with its spectrum."""
    axis = typeof(x).ndim - (2 if are_rows else 1)
    return Followed(x, Spectrum({axis: Vectors(of, are_rows)}, {}))


def by_values(x: Any, of: Decomposition) -> Any:
    """The tangent `x` of the values themselves, with its spectrum."""
    return Followed(x, Spectrum({}, {typeof(x).ndim - 1: Slope(of, filled(x, 1))}))


def scaled(x: Any, factors: Any) -> Any:
    """`x`, real or complex, times real factors, elementwise."""
    return mul(x, convert(factors, typeof(x).dtype))


def block(x: Any, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """A block of each matrix, from ``(start, stop)`` of its rows and columns."""
    shape = typeof(x).shape
    stack = shape[:-2]
    start, stop = (*(0 for _ in stack), rows[0], columns[0]), (*stack, rows[1], columns[1])
    if start == (0,) * len(shape) and stop == shape:
        return x
    return slice_(x, start_indices=start, limit_indices=stop, strides=None)


def take_rows(x: Any, order: Any) -> Any:
    """The rows of each matrix permuted by `order`, which has a permutation for each matrix."""
    shape = typeof(x).shape
    stack = tuple(range(len(shape) - 2))
    numbers = GatherDimensionNumbers((len(shape) - 1,), (len(shape) - 2,), (len(shape) - 2,), stack, stack)
    return take(x, order, numbers, (*(min_dim(n, 1) for n in shape[:-1]), shape[-1]), unique=True)


def take_columns(x: Any, order: Any) -> Any:
    """The columns of each matrix permuted by `order`, which has a permutation for each matrix."""
    return swapped(take_rows(swapped(x), order))


def times(x: Any, number: Any) -> Any:
    """`x` times a number."""
    return mul(x, filled(x, number))


def plus_identity(x: Any) -> Any:
    """`x` plus the identity matrix."""
    return add(x, identity(typeof(x).shape, typeof(x).dtype))


def minus_identity(x: Any) -> Any:
    """`x` minus the identity matrix."""
    return sub(x, identity(typeof(x).shape, typeof(x).dtype))


def loop_over_rows(step: Callable[..., Sequence[Any]], carry: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
    """A loop over the first axis of `xs`: ``step(*carry, *slices) -> [*carry, *results]``; see `scan`."""
    length = typeof(xs[0]).shape[0]
    jaxpr, consts = stage(step, [*map(typeof, carry), *[typeof(x).without_axis(0) for x in xs]])
    assert not consts
    last, rows = Scan(ClosedJaxpr(jaxpr), [], carry, xs, {"length": length, "reverse": False, "unroll": 1}).bind()
    return [*last, *rows]
