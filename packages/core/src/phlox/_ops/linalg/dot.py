"""Tensor contraction: `dot_general`, of which matrix products are special cases."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..._base.errors import DtypeError, OptionError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.jaxpr import JaxprEqn
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import Entries, any_specs, entries_of, join, manual_reductions, over, reductions_of, refuse
from ..._trace.trace import typeof
from ..._transform import spectra
from ..._transform.array_operations import Zero, add
from ..._transform.batch import BatchAxis, Dim
from ..._transform.padding import Padding, pad_elementwise
from ..._transform.sharding_types import in_auto
from ..._transform.transpose import Linear, is_linear
from ..._xla.platforms import platform_of
from ..._xla.text import Function, Value, ints
from ..structure.shape import convert, transpose

if TYPE_CHECKING:
    from .algorithms import Algorithm

#: what users may pass as `precision`
PrecisionLike: TypeAlias = "str | Precision | tuple[str, str] | tuple[Precision, Precision] | Algorithm | None"

Dims = tuple[int, ...]
DotDimensionNumbers = tuple[tuple[Dims, Dims], tuple[Dims, Dims]]


class Precision(enum.Enum):
    """The precision of matrix products on hardware that multiplies in less than float32.

    DEFAULT is fastest, HIGHEST the full precision of the dtype. On a CPU all three are the same. All names that a
    `precision` argument takes are also values of the class: ``Precision("high")``.

    >>> jnp.dot(jnp.ones(2), jnp.ones(2), precision=Precision.HIGHEST)
    Array(2., dtype=float32)
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        return (_WORDS[value] or cls.DEFAULT) if isinstance(value, str | None) and value in _WORDS else None

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


_WORDS = {
    None: None,
    "default": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "high": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
}


def canonical_precision(precision: Any) -> tuple[Precision, Precision] | Algorithm | None:
    """The `precision` of a user (None, a name, a `Precision`, a pair of those, or an algorithm) as a pair of
    `Precision`, an algorithm, or None."""
    # A `DotAlgorithm` is a tuple too: only plain tuples and lists are pairs of precisions.
    several = type(precision) in (tuple, list)
    is_word = isinstance(precision, str | None) and precision in _WORDS
    if not (several or is_word or isinstance(precision, Precision)):
        from .algorithms import algorithm_of  # imported late: few programs name an algorithm

        if (algorithm := algorithm_of(precision)) is not None:
            return algorithm
    first, second = map(_one_precision, precision if several and len(precision) == 2 else (precision, precision))
    if first is None and second is None:
        return None
    return first or Precision.DEFAULT, second or Precision.DEFAULT


def _one_precision(precision: Any) -> Precision | None:
    if isinstance(precision, Precision):
        return precision
    if not isinstance(precision, str | None) or precision not in _WORDS:
        raise OptionError(f"unknown precision {precision!r}", instead="one of " + ", ".join(str(w) for w in _WORDS))
    return _WORDS[precision]


def _free(ndim: int, contract: Dims, batch: Dims) -> list[int]:
    return [i for i in range(ndim) if i not in contract and i not in batch]


def _dot_types(
    lhs: ShapedArray,
    rhs: ShapedArray,
    dimension_numbers: DotDimensionNumbers,
    precision: Any,
    preferred_element_type: Any,
) -> ShapedArray:
    (lc, rc), (lb, rb) = dimension_numbers
    for name, x, axes in (("lhs", lhs, (*lb, *lc)), ("rhs", rhs, (*rb, *rc))):
        if len(set(axes)) < len(axes) or any(not 0 <= axis < x.ndim for axis in axes):
            raise ShapeError(
                f"dot_general requires {name} dimension numbers to be distinct, nonnegative and less than the number "
                f"of axes of the {name}, got {axes} for {x.short}",
                axes=axes,
                shapes=[x.shape],
            )
    for what, left, right in (("contracting", lc, rc), ("batch", lb, rb)):
        sizes = [lhs.shape[i] for i in left], [rhs.shape[i] for i in right]
        if sizes[0] != sizes[1]:
            raise ShapeError(
                f"dot_general requires {what} dimensions to have the same shape, got {tuple(sizes[0])} and "
                f"{tuple(sizes[1])}: axes {list(left)} of {lhs.short} and {list(right)} of {rhs.short}",
                instead="transpose one of them, or choose other axes",
                shapes=[lhs.shape, rhs.shape],
            )
    if lhs.dtype != rhs.dtype and preferred_element_type is None:
        raise DtypeError(f"dot_general: {lhs.short} and {rhs.short} need preferred_element_type")
    if dtypes.is_extended(lhs.dtype):
        raise DtypeError(f"dot_general does not accept {lhs.short}", instead=dtypes.INSTEAD_OF_KEYS)
    shape = (
        *(lhs.shape[i] for i in lb),
        *(lhs.shape[i] for i in _free(lhs.ndim, lc, lb)),
        *(rhs.shape[i] for i in _free(rhs.ndim, rc, rb)),
    )
    dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
    return shaped(shape, dtype, lhs.weak_type and rhs.weak_type)


def widened(f: Function, x: Value) -> Value:
    """A factor of the result, in 8 bits or more if its own dtype has fewer and the result has another one.

    XLA compiles no conversion of narrower numbers inside of a product for CPUs and GPUs.
    """
    if dtypes.bits(x.aval.dtype) >= 8 or x.aval.dtype == f.out.dtype or platform_of(f) == "tpu":
        return x
    return f.convert(x, {"i": dtypes.int8, "u": dtypes.uint8}.get(dtypes.kind(x.aval.dtype), dtypes.bfloat16))


def _dot_lower(
    f: Function, lhs: Value, rhs: Value, dimension_numbers: DotDimensionNumbers, precision: Any, **_: Any
) -> Value:
    out, algorithm = f.out, ""
    lhs, rhs = (widened(f, x) for x in (lhs, rhs))
    if precision is not None and type(precision) is not tuple:
        # An algorithm may need other dtypes of factors and sum than the equation has; the result is converted back.
        from .algorithms import prepared

        lhs, rhs, out_dtype, algorithm = prepared(f, lhs, rhs, precision)
        out, precision = shaped(out.shape, out_dtype), None
    end = _dot_end(dimension_numbers, precision, algorithm, lhs.aval, rhs.aval, out)
    return f.convert(f.ending("stablehlo.dot_general", f"{lhs.name}, {rhs.name}", end, out), f.out.dtype)


@functools.lru_cache(4096)
def _dot_end(
    numbers: DotDimensionNumbers,
    precision: Any,
    algorithm: str,
    lhs: ShapedArray,
    rhs: ShapedArray,
    out: ShapedArray,
) -> str:
    (lc, rc), (lb, rb) = numbers
    batch = f", batching_dims = {ints(lb)} x {ints(rb)}" if lb else ""
    first, second = precision or (Precision.DEFAULT, Precision.DEFAULT)
    return (
        f"{batch}, contracting_dims = {ints(lc)} x {ints(rc)}, precision = [{first.name}, {second.name}]{algorithm}"
        f" : ({lhs.text}, {rhs.text}) -> {out.text}"
    )


def bilinear_jvp(get_primitive: Callable[[], Primitive]) -> Callable[..., tuple[Any, Any]]:
    """The jvp rule of a product of two operands, such as a matrix product, which is linear in each of them.

    Args:
      get_primitive: returns the primitive, which is not yet defined when its rules are.
    """

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        (x, y), (tx, ty) = primals, tangents
        out = get_primitive().bind(x, y, **params)
        total: Any = Zero(typeof(out).tangent())
        if type(tx) is not Zero:
            total = get_primitive().bind(tx, y, **params)
        if type(ty) is not Zero:
            total = add(total, get_primitive().bind(x, ty, **params))
        return out, total

    return jvp


def _dot_transpose(ct: Any, lhs: Any, rhs: Any, **params: Any) -> list[Any]:
    """The cotangent of one factor. If it is unreduced, each device computes its part of the sum."""
    if not any_specs():
        return _whole_transpose(ct, lhs, rhs, **params)
    first = is_linear(lhs)
    factor, other = (lhs, rhs) if first else (rhs, lhs)
    axes = reductions_of(factor.aval).reduced - manual_reductions(factor.aval)[1]
    if axes and _sums_over(axes, typeof(ct), factor.aval, typeof(other), first, params["dimension_numbers"]):
        from ..spmd.parts import map_parts  # here: only programs over explicit axes need it

        whole = Linear(factor.aval.with_spec(None))

        def cotangent(ct: Any, other: Any) -> Any:
            return _whole_transpose(ct, *((whole, other) if first else (other, whole)), **params)[not first]

        result = map_parts(cotangent, (ct, other), entries_of(factor.aval), axes, axes)
        assert result is not None  # as the parts of both operands fit each other
        return [result, None] if first else [None, result]
    return in_auto(_whole_transpose)(ct, lhs, rhs, **params)


def _sums_over(
    axes: frozenset[Any],
    ct: ShapedArray,
    factor: ShapedArray,
    other: ShapedArray,
    first: bool,
    dimension_numbers: DotDimensionNumbers,
) -> bool:
    """Whether the cotangent of `factor`, the `first` one or the second, is a sum over what `axes` split in `ct` and in
    the other factor."""
    (mine, theirs), (my_batch, their_batch) = (pair if first else pair[::-1] for pair in dimension_numbers)
    # `ct` has the batch axes first, then the free axes of the first factor, then those of the second.
    start = len(my_batch) + (factor.ndim - len(mine) - len(my_batch) if first else 0)
    ct_entries, entries = entries_of(ct), entries_of(other)
    free = _free(other.ndim, theirs, their_batch)
    summed = [(over(ct_entries[start + i], axes), over(entries[j], axes)) for i, j in enumerate(free)]
    return all(a == b for a, b in summed) and axes == {name for entry, _ in summed for name in entry}


def _whole_transpose(
    ct: Any, lhs: Any, rhs: Any, dimension_numbers: DotDimensionNumbers, precision: Any, **_: Any
) -> list[Any]:
    """The cotangent of one factor: the contraction of `ct` with the other factor over that factor's free axes."""
    # In a linear program only one of the factors depends on linear arguments.
    if is_linear(lhs):
        return [_factor(ct, lhs.aval, rhs, dimension_numbers, precision, True), None]
    (lc, rc), (lb, rb) = dimension_numbers
    return [None, _factor(ct, rhs.aval, lhs, ((rc, lc), (rb, lb)), precision, False)]


def _factor(
    ct: Any, aval: ShapedArray, other: Any, numbers: DotDimensionNumbers, precision: Any, ct_has_it_first: bool
) -> Any:
    """The cotangent of the factor of type `aval`, whose axes come first in `numbers`."""
    (mine, theirs), (my_batch, their_batch) = numbers
    other_aval = typeof(other)
    my_free = _free(aval.ndim, mine, my_batch)
    their_free = _free(other_aval.ndim, theirs, their_batch)
    batches = len(my_batch)
    # Axes of ct: batch, free axes of the left factor, free axes of the right factor. Axes of the result: batch, free
    # axes of this factor, then contracted axes in the order that they have in the other factor.
    start = batches + (len(my_free) if ct_has_it_first else 0)
    ct_axes = tuple(range(start, start + len(their_free)))
    ct_batch = tuple(range(batches))
    # A pair of precisions belongs to the factors in their order.
    swapped = (precision[1], precision[0]) if type(precision) is tuple and not ct_has_it_first else precision
    contracted = [mine[theirs.index(axis)] for axis in _free(other_aval.ndim, tuple(their_free), their_batch)]
    factors = [ct, other]
    numbers = ((ct_axes, tuple(their_free)), (ct_batch, their_batch))
    order = [*my_batch, *my_free, *contracted]
    # bfloat16 keeps JAX's order: XLA rounds a product before a transpose, and not before a conversion to float32.
    if aval.dtype != dtypes.bfloat16 and order != sorted(order) == [*my_batch, *contracted, *my_free]:
        # In this order of factors the result needs no transpose; XLA on a CPU is up to twice as fast.
        factors.reverse()
        numbers = (numbers[0][::-1], numbers[1][::-1])
        swapped = swapped[::-1] if type(swapped) is tuple else swapped
        order.sort()
    result = dot_general(
        *factors,
        dimension_numbers=numbers,
        precision=swapped,
        # With preferred_element_type, cotangent and factor may have different dtypes.
        preferred_element_type=None if typeof(ct).dtype == other_aval.dtype else aval.dtype,
    )
    permutation = tuple(order.index(i) for i in range(aval.ndim))
    if permutation != tuple(range(aval.ndim)):
        result = transpose(result, permutation=permutation)
    return convert(result, aval.dtype)


def _dot_batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    dimension_numbers: DotDimensionNumbers,
    **params: Any,
) -> tuple[Any, Dim]:
    (lc, rc), (lb, rb) = dimension_numbers
    lhs, rhs = args
    ld, rd = dims
    if ld is not None and rd is not None:
        # Mapped in both factors: a batch axis, which results have in front.
        numbers = ((_skip(lc, ld), _skip(rc, rd)), ((ld, *_skip(lb, ld)), (rd, *_skip(rb, rd))))
        return dot_general(lhs, rhs, dimension_numbers=numbers, **params), 0
    if ld is not None:
        # The mapped axis becomes a free axis of the left factor.
        numbers = ((_skip(lc, ld), rc), (_skip(lb, ld), rb))
        free = _free(typeof(lhs).ndim, numbers[0][0], numbers[1][0])
        dim = len(lb) + free.index(ld)
    else:
        assert rd is not None
        numbers = ((lc, _skip(rc, rd)), (lb, _skip(rb, rd)))
        free = _free(typeof(rhs).ndim, numbers[0][1], numbers[1][1])
        dim = len(lb) + len(_free(typeof(lhs).ndim, lc, lb)) + free.index(rd)
    return dot_general(lhs, rhs, dimension_numbers=numbers, **params), dim


def _skip(dims: Dims, new: int) -> Dims:
    """These axis numbers after an axis was inserted at `new`."""
    return tuple(d if d < new else d + 1 for d in dims)


def _dot_show(eqn: Any, printer: Any) -> dict[str, Any]:
    (lc, rc), (lb, rb) = eqn.params["dimension_numbers"]
    shown = {"dimension_numbers": ((list(lc), list(rc)), (list(lb), list(rb)))}
    for name in ("precision", "preferred_element_type"):
        if eqn.params[name] is not None:
            shown[name] = eqn.params[name]
    return shown


def _dot_sharding(
    out: ShapedArray, lhs: ShapedArray, rhs: ShapedArray, dimension_numbers: DotDimensionNumbers, **_: Any
) -> Entries:
    (lc, rc), (lb, rb) = dimension_numbers
    avals, left, right = (lhs, rhs), entries_of(lhs), entries_of(rhs)
    for i, j in zip(lc, rc, strict=True):
        join("dot_general", avals, (left[i], right[j]), "contracted axes differ")
        if left[i] and right[j]:
            refuse(
                "dot_general",
                f"axes {i} and {j}, which are contracted, are split, so that it is not clear how the result is",
                avals,
                "out_sharding=phlox.P(...), as in phlox.numpy.matmul(x, y, out_sharding=...)",
            )
    batch = [join("dot_general", avals, (left[i], right[j]), "batch axes differ") for i, j in zip(lb, rb, strict=True)]
    return (*batch, *(left[i] for i in _free(lhs.ndim, lc, lb)), *(right[i] for i in _free(rhs.ndim, rc, rb)))


def _dot_pad(padding: Padding, eqn: JaxprEqn, lhs: Any, rhs: Any) -> Any:
    """Both operands are zero behind the true lengths of contracted axes: zero times nan would be nan."""
    contracted = eqn.params["dimension_numbers"][0]
    operands = [
        padding.filled(x, v.aval, 0, axes) for x, v, axes in zip((lhs, rhs), eqn.invars, contracted, strict=True)
    ]
    return pad_elementwise(padding, eqn, *operands)


dot_general = Primitive(
    "dot_general",
    remembers=True,
    types=_dot_types,
    sharding=_dot_sharding,
    lower=_dot_lower,
    jvp=bilinear_jvp(lambda: dot_general),
    spectral=lambda *args, **params: spectra.contract(dot_general, *args, **params),
    transpose=_dot_transpose,
    batch=_dot_batch,
    pad=_dot_pad,
    show=_dot_show,
    nan_checked=True,
    series="bilinear",
)
