"""Products of arrays: dot, matmul, tensordot and others. All are `dot_general` between transposes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ..._api.devices.out_sharding import OutSharding, compute_with_sharding
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, ShapeError
from ..._ir import dtypes
from ..._operands.broadcasting import where
from ..._operands.checks import canonical_axes, canonical_axis, check, check_one, integer, refuse_out, several, type_of
from ..._operands.products import contract
from ..._operands.promotion import promote_dtypes
from ..._ops.elementwise import arithmetic as e
from ..._ops.elementwise.families import literal
from ..._ops.linalg.dot import PrecisionLike
from ..._ops.structure.shape import squeeze as squeeze_op, transpose as transpose_op
from ...typing import Array, ArrayLike, DTypeLike
from .._manipulation.broadcasting import broadcast_shapes
from .._manipulation.shapes import expand_dims, ravel

_static = functools.partial(jit, inline=True, static_argnames=("precision", "preferred_element_type"))


@_static
def _dot(a: Any, b: Any, precision: Any, preferred_element_type: Any) -> Any:
    a, b = promote_dtypes(a, b)
    ra, rb = type_of(a).ndim, type_of(b).ndim
    if ra == 0 or rb == 0:
        axes: Any = ((), ())
    elif rb == 1:
        axes = ((ra - 1,), (0,))
    else:
        axes = ((ra - 1,), (rb - 2,))
    return contract(a, b, axes, ((), ()), precision, preferred_element_type)


def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The dot product: a sum over the last axis of `a` and the second to last axis of `b` (as ``numpy.dot``).

    For vectors it is the inner product, for matrices the matrix product, for a scalar and an array their product.

    Args:
      a: array of shape (..., n), or a scalar.
      b: array of shape (..., n, m) or (n,), or a scalar.
      precision: precision of the multiplications: a `lax.Precision`, its name, or a pair with one for each operand;
        None is the configuration's `default_matmul_precision`.
      preferred_element_type: dtype of the accumulator and of the result; None is the promoted dtype of `a` and `b`.
      out_sharding: a `NamedSharding`, or a `PartitionSpec` of the mesh of the context, for the result; with None the
        operands and the compiler determine it.

    Returns:
      An array with the axes of `a`, then the axes of `b`, that are not summed over; its dtype is the promoted one or
      `preferred_element_type`.

    Raises:
      ShapeError: the axes that are summed over have different lengths.

    >>> jnp.dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))
    Array(11., dtype=float32)
    """
    a, b = check("dot", a, b)
    if out_sharding is not None:
        options: dict[str, Any] = {"precision": precision, "preferred_element_type": preferred_element_type}
        return compute_with_sharding("dot", dot, (a, b), out_sharding, **options)
    return _dot(a, b, precision, dtypes.optional_dtype(preferred_element_type, "dot"))


@_static
def product(a: Any, b: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """``a @ b`` of arrays."""
    a, b = promote_dtypes(a, b)
    sa, sb = type_of(a).shape, type_of(b).shape
    if not sa or not sb:
        raise ShapeError("matmul needs arrays with at least one axis", instead="x * y for scalars", shapes=[sa, sb])
    inner = sb[-2] if len(sb) > 1 else sb[0]
    if sa[-1] != inner:
        raise ShapeError(
            "matmul requires contracting dimensions to have the same shape: the last axis of "
            f"{type_of(a).short} has length {sa[-1]}, and {'the last but one' if len(sb) > 1 else 'the axis'} of "
            f"{type_of(b).short} has {inner}",
            instead="transpose one of them",
            shapes=[sa, sb],
        )
    if len(sb) <= 2:
        return contract(a, b, ((len(sa) - 1,), (max(len(sb) - 2, 0),)), ((), ()), precision, preferred_element_type)
    # Leading axes are batches: those with equal lengths in both become batch axes, the others free axes of one factor.
    batch = broadcast_shapes(sa[:-2], sb[:-2])
    a, b = (expand_dims(x, tuple(range(len(batch) - len(s[:-2])))) if len(s) > 1 else x for x, s in ((a, sa), (b, sb)))
    rank = len(batch)
    fa, fb = len(sa) > 1, len(sb) > 1
    both = range(rank) if fa and fb else range(0)
    shared = [i for i in both if type_of(a).shape[i] == type_of(b).shape[i]]
    # Where one length is one, that axis is dropped; in the result it is the free axis of the other factor.
    drop_a = tuple(i for i in both if i not in shared and type_of(a).shape[i] == 1)
    drop_b = tuple(i for i in both if i not in shared and type_of(b).shape[i] == 1)
    free_a = [i for i in range(rank) if fa and i not in shared and i not in drop_a]
    free_b = [i for i in range(rank) if fb and i not in shared and i not in drop_b]
    a = squeeze_op(a, dimensions=drop_a) if drop_a else a
    b = squeeze_op(b, dimensions=drop_b) if drop_b else b
    axes_a = [i for i in range(rank) if fa and i not in drop_a]
    axes_b = [i for i in range(rank) if fb and i not in drop_b]
    out = contract(
        a,
        b,
        ((type_of(a).ndim - 1,), (type_of(b).ndim - 2 if fb else 0,)),
        ([axes_a.index(i) for i in shared], [axes_b.index(i) for i in shared]),
        precision,
        preferred_element_type,
    )
    # Axes of the product: shared batches, batches and rows of a alone, batches and columns of b alone.
    labels: list[Any] = [*shared, *free_a, *(["row"] if fa else []), *free_b, *(["column"] if fb else [])]
    final_labels = [*[i for i in range(rank) if i in labels], *(["row"] if fa else []), *(["column"] if fb else [])]
    order = tuple(labels.index(i) for i in final_labels)
    return out if order == tuple(range(len(order))) else transpose_op(out, permutation=order)


@docs_from(dot)
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The matrix product over the last two axes, with leading axes broadcast (as ``numpy.matmul``, ``a @ b``).

    Args:
      a: array of shape (..., m, n), or a vector (n,), which is treated as a row.
      b: array of shape (..., n, k), or a vector (n,), which is treated as a column.

    Returns:
      An array of shape (..., m, k), without the axis of m or k where that operand is a vector; of the promoted dtype or
      `preferred_element_type`.

    Raises:
      ShapeError: `a` or `b` is a scalar, the lengths n differ, or the leading axes do not broadcast.

    >>> jnp.matmul(jnp.eye(2), jnp.array([3.0, 4.0]))
    Array([3., 4.], dtype=float32)
    """
    a, b = check("matmul", a, b)
    if out_sharding is not None:
        options: dict[str, Any] = {"precision": precision, "preferred_element_type": preferred_element_type}
        return compute_with_sharding("matmul", matmul, (a, b), out_sharding, **options)
    return product(a, b, precision, dtypes.optional_dtype(preferred_element_type, "matmul"))


@_static
@docs_from(dot)
def vdot(
    a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The inner product of the flattened arrays, the first one conjugated (as ``numpy.vdot``).

    Args:
      a, b: arrays of any shape with the same number of elements.

    Returns:
      An array of shape (), of the promoted dtype or `preferred_element_type`.

    Raises:
      ShapeError: the numbers of elements differ.

    >>> jnp.vdot(jnp.array([1j]), jnp.array([1j]))
    Array(1.+0.j, dtype=complex64)
    """
    a, b = check("vdot", a, b)
    if dtypes.kind(type_of(a).dtype) == "c":
        a = e.conj(a)
    return dot(ravel(a), ravel(b), precision=precision, preferred_element_type=preferred_element_type)


@_static
@docs_from(dot)
def inner(
    a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The product of `a` and `b`, summed over the last axes of both, without conjugation (as ``numpy.inner``).

    Args:
      b: array of shape (..., n), or a scalar; its leading axes are not broadcast against the leading axes of `a`.

    Returns:
      An array of shape ``a.shape[:-1] + b.shape[:-1]``, of the promoted dtype or `preferred_element_type`.

    Raises:
      ShapeError: the last axes have different lengths.

    >>> jnp.inner(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))
    Array(11., dtype=float32)
    """
    a, b = check("inner", a, b)
    if type_of(a).ndim == 0 or type_of(b).ndim == 0:
        return dot(a, b, precision=precision, preferred_element_type=preferred_element_type)
    return tensordot(a, b, (-1, -1), precision=precision, preferred_element_type=preferred_element_type)


@functools.partial(jit, inline=True, static_argnames="out")
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """The products of each element of `a` with each element of `b`, both flattened (as ``numpy.outer``).

    Args:
      a, b: arrays of any shape, with m and n elements.
      out: not supported, must be None: arrays cannot be changed in place.

    Returns:
      An array of shape (m, n), of the promoted dtype.

    >>> jnp.outer(jnp.arange(2), jnp.arange(2))
    Array([[0, 0],
           [0, 1]], dtype=int32)
    """
    refuse_out("outer", out)
    a, b = promote_dtypes(*check("outer", a, b))
    return expand_dims(ravel(a), 1) * expand_dims(ravel(b), 0)


@functools.partial(jit, inline=True, static_argnames=("left", "right", "precision", "preferred_element_type"))
def _tensordot(a: Any, b: Any, left: Any, right: Any, precision: Any, preferred_element_type: Any) -> Any:
    a, b = promote_dtypes(a, b)
    return contract(a, b, (left, right), ((), ()), precision, preferred_element_type)


@docs_from(dot)
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int | Sequence[int]] = 2,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The product of `a` and `b`, summed over pairs of axes (as ``numpy.tensordot``).

    Args:
      a, b: arrays of any shape.
      axes: axes to sum over. An integer n sums over the last n axes of `a` and the first n axes of `b`, in order; a
        pair (axes of `a`, axes of `b`), of integers or of sequences of one length, names the axes.

    Raises:
      ShapeError: paired axes or the two sequences have different lengths, or n is greater than the number of axes of
        `a` or `b`.
      ArgumentError: `axes` is neither a number nor a pair.

    >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), 1).shape
    (2, 4)
    """
    a, b = check("tensordot", a, b)
    if out_sharding is not None:
        options: dict[str, Any] = {"precision": precision, "preferred_element_type": preferred_element_type}
        return compute_with_sharding("tensordot", tensordot, (a, b), out_sharding, axes=axes, **options)
    ra, rb = type_of(a).ndim, type_of(b).ndim
    if hasattr(axes, "__index__"):
        n = integer("tensordot", "axes", axes)
        if n > ra or n > rb:
            raise ShapeError(
                f"Number of tensordot axes (axes={n}) exceeds input ranks of {type_of(a).short} and {type_of(b).short}"
            )
        left, right = tuple(range(ra - n, ra)), tuple(range(n))
    else:
        left, right = (canonical_axes(x, r, "tensordot") for x, r in zip(_axes_lists(axes), (ra, rb), strict=True))
    preferred = dtypes.optional_dtype(preferred_element_type, "tensordot")
    return _tensordot(a, b, left=left, right=right, precision=precision, preferred_element_type=preferred)


def _axes_lists(axes: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The argument `axes` of `tensordot` as two tuples."""
    if isinstance(axes, str) or not hasattr(axes, "__len__") or len(axes) != 2:
        raise ArgumentError(
            f"tensordot axes argument must be an int, a pair of ints, or a pair of lists of ints, got {axes!r}"
        )
    if any(isinstance(part, str) for part in axes):
        raise ArgumentError(
            f"tensordot requires both axes lists to be either ints, tuples or lists, got {axes[0]!r} and {axes[1]!r}"
        )
    left, right = several(axes[0]), several(axes[1])
    if len(left) != len(right):
        raise ShapeError(f"tensordot requires axes lists to have equal length, got {axes[0]} and {axes[1]}")
    return left, right


# --- diagonals ------------------------------------------------------------------------------------------


@functools.partial(jit, inline=True, static_argnames=("offset", "axis1", "axis2", "dtype", "out"))
def trace(
    a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The sum of the elements on a diagonal of two axes (as ``numpy.trace``).

    Args:
      a: array with at least two axes.
      offset: number of the diagonal: 0 is the main diagonal, positive numbers lie above it, negative numbers below it.
      axis1, axis2: axes of the matrices' rows and columns; they must differ.
      dtype: dtype of the accumulator and of the result; None chooses it as for `sum`.
      out: not supported, must be None: arrays cannot be changed in place.

    Returns:
      An array of the shape of `a` without `axis1` and `axis2`.

    Raises:
      ShapeError: `axis1` and `axis2` are the same axis.

    >>> jnp.trace(jnp.eye(3))
    Array(3., dtype=float32)
    """
    from .._statistics.reductions import sum

    refuse_out("trace", out)
    a = check_one("trace", a)
    rank = type_of(a).ndim
    i, j = canonical_axis(axis1, rank, "trace"), canonical_axis(axis2, rank, "trace")
    if i == j:
        raise ShapeError(f"trace: axis1 and axis2 can not be same: axis1={axis1} and axis2={axis2}", axis=axis1)
    return sum(mask_to_diagonal(a, i, j, offset), (i, j), dtype)


def mask_to_diagonal(a: Any, i: int, j: int, offset: int = 0) -> Any:
    """`a` with zeros outside of a diagonal of axes i and j."""
    from .._creation.fill import eye

    shape = type_of(a).shape
    # By a mask, where a gather of the diagonal would become a scatter in reverse mode
    mask = eye(shape[i], shape[j], offset, dtype=bool)
    if i > j:
        mask = mask.T
    return where(mask.reshape([n if k in (i, j) else 1 for k, n in enumerate(shape)]), a, literal(a, 0))
