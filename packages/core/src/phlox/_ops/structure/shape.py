"""Primitives that rearrange or convert elements: conversion, reshape, transpose, broadcast, concatenate, pad.

They are linear, so most state a transpose only, and `structural` makes the jvp rule. `extend` rules adapt their
parameters to arrays of PRNG keys, which have trailing axes in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..._base.errors import AxisError, DtypeError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.dimensions import is_symbolic, max_dim
from ..._ir.jaxpr import Literal
from ..._ir.key_uses import passes, replaces
from ..._ir.primitive import Primitive, primitive
from ..._ir.printing import shown_with
from ..._ir.sharding_types import entries_of, resized
from ..._trace.staging import JaxprTracer
from ..._trace.trace import ArrayBase, recorder, typeof
from ..._transform import spectra
from ..._transform.array_operations import Zero, linear_jvp, move_axis, sum_axes, weak_number
from ..._transform.batch import BatchAxis, Dim, batch_of_one, place_axis
from ..._transform.padding import pad_elementwise
from ..._transform.transpose import is_linear
from ..._xla.host_values import as_array
from ..._xla.text import Derived, Function, Value, i64_array
from ..elementwise.arithmetic import sub
from ..elementwise.families import literal, unbroadcast
from ..elementwise.logic import select_n
from . import padding, shape_sharding
from .numbers import keep_dtype, literal_of

Params = dict[str, Any]


def structural(
    name: str,
    *,
    transpose: Callable[..., Any],
    batch: Callable[..., Any],
    pad: Callable[..., Any] = pad_elementwise,
    axis_map_of: Callable[..., dict[int, int]] | None = None,
    keys: Callable[..., Any] = passes,
    nan_checked: bool = False,
    **rules: Any,
) -> Primitive:
    """A primitive that is linear in its operand. `transpose(ct, aval, **params)` returns the operand's cotangent, and
    `axis_map_of(aval, **params)` maps axes of the operand to axes of the result. `rules` are others of `Primitive`."""

    prim = Primitive(
        name,
        remembers=True,
        jvp=linear_jvp(lambda: prim),
        spectral=None if axis_map_of is None else spectra.moved(lambda: prim, axis_map_of),
        transpose=lambda ct, x, **params: [transpose(ct, x.aval, **params)],
        batch=batch_of_one(batch),
        pad=pad,
        keys=keys,
        nan_checked=nan_checked,
        light=True,
        series="linear",
        **rules,
    )
    return prim


# --- element types --------------------------------------------------------------------------------------


def _has_conversion(old: Any, new: Any) -> bool:
    """Whether elements can be converted: extended dtypes say from which, and to which, they can."""
    if old == new:
        return True
    if dtypes.is_extended(new):
        return new.can_convert(old)
    return not dtypes.is_extended(old) or old.can_convert(new)


def _convert_types(x: ShapedArray, new_dtype: Any, weak_type: bool) -> ShapedArray:
    if not _has_conversion(x.dtype, new_dtype):
        raise DtypeError(
            f"convert_element_type: {x.short} cannot become {dtypes.short_name(new_dtype)}",
            instead="phlox.random.key_data and wrap_key_data convert between keys and numbers",
        )
    return shaped(x.shape, new_dtype, bool(weak_type))


def _convert_lower(f: Function, x: Value, new_dtype: Any, weak_type: bool) -> Value:
    if dtypes.kind(x.aval.dtype) == "c" and dtypes.kind(new_dtype) != "c":
        # A complex number is true if one of its parts is not zero. Other conversions drop the imaginary part.
        if dtypes.kind(new_dtype) == "b":
            return f.compare("NE", x, f.constant(0, x.aval))
        x = f.unlike("stablehlo.real", x, shaped(x.aval.shape, dtypes.real_part(x.aval.dtype)))
    if new_dtype == dtypes.bool_ and x.aval.dtype != dtypes.bool_:
        return f.compare("NE", x, f.constant(0, x.aval))
    converted = f.convert(x, new_dtype)
    return converted if converted is x else Derived(converted, x, tuple(range(x.aval.ndim)))


def _convert_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    out = convert_element_type(x, **params)
    # Conversions to integers and bools are piecewise constant.
    if dtypes.tangent_dtype(params["new_dtype"]) == dtypes.float0:
        return out, Zero(typeof(out).tangent())
    return out, convert_element_type(t, **params)


def _convert_extend(params: dict[str, Any], element_shape: tuple[int, ...], x: Any) -> dict[str, Any]:
    """The parameters for the physical elements, which an extended dtype and its conversions share."""
    new = params["new_dtype"]
    return {**params, "new_dtype": new.physical if dtypes.is_extended(new) else new}


convert_element_type = Primitive(
    "convert_element_type",
    remembers=True,
    types=_convert_types,
    lower=_convert_lower,
    jvp=_convert_jvp,
    spectral=lambda *args, **params: spectra.linear(convert_element_type, *args, **params),
    transpose=lambda ct, x, **params: [convert_element_type(ct, new_dtype=x.aval.dtype, weak_type=x.aval.weak_type)],
    extend=_convert_extend,
    batch=lambda axis, args, dims, **params: (convert_element_type(*args, **params), dims[0]),
    pad=pad_elementwise,
    keys=passes,
    nan_checked=False,
    light=True,
    unfused="layout",
    series="linear",
)


#: pairs (from, to) of dtype kinds that NumPy converts like XLA; float to integer differs for values out of range
_EXACT = {"bb", "bi", "bu", "bf", "bc", "ii", "iu", "ui", "uu", "if", "uf", "ic", "uc", "ff", "fc", "cc"}


def convert(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`x` converted to this dtype and weak type; `x` itself when it has them already."""
    aval = typeof(x)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return x
    is_number = isinstance(x, np.ndarray | np.generic | bool | int | float | complex) and not aval.shape
    if is_number and not weak_type and dtypes.kind(aval.dtype) + dtypes.kind(dtype) in _EXACT:
        return keep_dtype(literal_of(x, dtype))
    return convert_array(x, dtype, weak_type)


def convert_array(x: Any, dtype: Any, weak_type: bool) -> Any:
    """The array `x` converted to this dtype and weak type. A literal of the jaxpr being traced is converted now and
    stays a literal."""
    if type(x) is JaxprTracer and type(x.variable) is Literal and recorder() is x.owner:
        old = x.aval.dtype
        if dtypes.kind(old) + dtypes.kind(dtype) in _EXACT:
            number = literal_of(np.asarray(x.variable.val, old)[()], dtype)
            return x.owner.constant(weak_number(number) if weak_type else number, shaped((), dtype, weak_type))
    return convert_element_type(x, new_dtype=dtype, weak_type=weak_type)


def _bitcast_types(x: ShapedArray, new_dtype: Any) -> ShapedArray:
    old, new = dtypes.bits(x.dtype), dtypes.bits(new_dtype)
    if {"b", "c"} & {dtypes.kind(x.dtype), dtypes.kind(new_dtype)} and x.dtype != new_dtype:
        raise DtypeError(f"bitcast_convert_type: cannot reinterpret {x.short} as {new_dtype.name}")
    if old == new:
        return shaped(x.shape, new_dtype)
    if old > new:
        return shaped((*x.shape, old // new), new_dtype)
    if not x.shape or x.shape[-1] != new // old:
        raise ShapeError(
            f"bitcast_convert_type: the last axis of {x.short} must have length {new // old} to become {new_dtype.name}"
        )
    return shaped(x.shape[:-1], new_dtype)


bitcast_convert_type = Primitive(
    "bitcast_convert_type",
    types=_bitcast_types,
    sharding=shape_sharding.bitcast_sharding,
    lower=lambda f, x, new_dtype: x if x.aval.dtype == new_dtype else f.unlike("stablehlo.bitcast_convert", x, f.out),
    jvp=lambda primals, tangents, **params: (
        out := bitcast_convert_type(*primals, **params),
        Zero(typeof(out).tangent()),
    ),
    batch=batch_of_one(lambda x, dim, **params: (bitcast_convert_type(move_axis(x, dim, 0), **params), 0)),
    pad=pad_elementwise,
    nan_checked=False,
)

# --- reshape, transpose, broadcast ----------------------------------------------------------------------


def _reshape_types(x: ShapedArray, new_sizes: tuple[int, ...], dimensions: Any) -> ShapedArray:
    if math.prod(new_sizes) != x.size or any(size < 0 for size in new_sizes):
        raise ShapeError(
            f"reshape: {x.short} has {x.size} elements, shape {new_sizes} has {math.prod(new_sizes)}",
            instead="phlox.numpy.reshape, which works out a length that is given as -1",
            shapes=[x.shape, new_sizes],
        )
    return shaped(tuple(new_sizes), x.dtype, x.weak_type).in_space(x.memory_space)


reshape = structural(
    "reshape",
    types=_reshape_types,
    sharding=shape_sharding.reshape_sharding,
    memory_in_types=True,
    axis_map_of=shape_sharding.reshape_axis_map,
    lower=lambda f, x, new_sizes, dimensions: f.unlike("stablehlo.reshape", x, f.out),
    transpose=lambda ct, aval, **_: reshape(ct, new_sizes=aval.shape, dimensions=None),
    batch=lambda x, dim, new_sizes, dimensions: (
        reshape(move_axis(x, dim, 0), new_sizes=(typeof(x).shape[dim], *new_sizes), dimensions=None),
        0,
    ),
    pad=padding.reshape_pad,
    # PRNG keys have trailing axes in memory, which all operations on keys keep.
    extend=lambda params, trailing, x: {**params, "new_sizes": (*params["new_sizes"], *trailing)},
    show=shown_with(sharding=None),
    unfused="layout",
)


def split_axis(x: Any, axis: int, count: int) -> Any:
    """`x` with an axis split in two: one of length `count`, followed by one along each part."""
    shape = typeof(x).shape
    sizes = (*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :])
    return reshape(x, new_sizes=sizes, dimensions=None)


def merge_axes(x: Any, axis: int) -> Any:
    """`x` with an axis and the next one merged."""
    shape = typeof(x).shape
    sizes = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
    return reshape(x, new_sizes=sizes, dimensions=None)


def _transpose_types(x: ShapedArray, permutation: tuple[int, ...]) -> ShapedArray:
    if sorted(permutation) != list(range(x.ndim)):
        raise ShapeError(
            f"transpose: {permutation} is no permutation of the {x.ndim} axes of {x.short}", shapes=[x.shape]
        )
    return shaped(tuple(x.shape[i] for i in permutation), x.dtype, x.weak_type)


def _transpose_lower(f: Function, x: Value, permutation: tuple[int, ...]) -> Value:
    dims = f", dims = [{', '.join(map(str, permutation))}]"
    return Derived(f.unlike("stablehlo.transpose", x, f.out, dims), x, permutation)


def _transpose_batch(x: Any, dim: int, permutation: tuple[int, ...]) -> tuple[Any, Dim]:
    order = (dim, *(i if i < dim else i + 1 for i in permutation))
    return transpose(x, permutation=order), 0


def _inverse(permutation: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argsort(permutation))


transpose = structural(
    "transpose",
    types=_transpose_types,
    sharding=lambda out, x, permutation: tuple(entries_of(x)[i] for i in permutation),
    axis_map_of=lambda x, permutation: {axis: i for i, axis in enumerate(permutation)},
    lower=_transpose_lower,
    transpose=lambda ct, aval, permutation: transpose(ct, permutation=_inverse(permutation)),
    batch=_transpose_batch,
    extend=lambda params, trailing, x: {
        "permutation": (*params["permutation"], *range(x.ndim, x.ndim + len(trailing)))
    },
    unfused="operation",
)


def _broadcast_types(x: ShapedArray, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> ShapedArray:
    wrong = None
    if x.ndim != len(broadcast_dimensions):
        wrong = "broadcast_dimensions must have length equal to operand ndim"
    elif len(shape) < x.ndim:
        wrong = "target broadcast shape must have equal or higher rank to the operand shape"
    elif any(not 0 <= at < len(shape) for at in broadcast_dimensions):
        wrong = "broadcast_dimensions must be a subset of output dimensions"
    elif any(size not in (1, shape[at]) for at, size in zip(broadcast_dimensions, x.shape, strict=True)):
        wrong = (
            "operand dimension sizes must either be 1, or be equal to their corresponding dimensions in the target "
            "broadcast shape"
        )
    elif len(set(broadcast_dimensions)) < x.ndim:
        wrong = "broadcast_dimensions must not contain duplicates"
    elif any(n < 0 for n in shape):
        wrong = "lengths of the target broadcast shape must not be negative"
    if wrong is not None:
        raise ShapeError(
            f"broadcast_in_dim {wrong}; got operand {x.short}, shape {shape} and broadcast_dimensions "
            f"{broadcast_dimensions}",
            shapes=[x.shape, shape],
        )
    return shaped(tuple(shape), x.dtype, x.weak_type).in_space(x.memory_space)


def _broadcast_transpose(ct: Any, aval: ShapedArray, shape: Any, broadcast_dimensions: Any) -> Any:
    new_axes = tuple(i for i in range(len(shape)) if i not in broadcast_dimensions)
    # A repeated element gets the sum of the cotangents of its copies.
    ct = sum_axes(ct, new_axes)
    order = tuple(sorted(broadcast_dimensions).index(i) for i in broadcast_dimensions)
    ct = ct if order == tuple(range(len(order))) else transpose(ct, permutation=order)
    return unbroadcast(ct, aval)


def _broadcast_batch(x: Any, dim: int, shape: Any, broadcast_dimensions: Any) -> tuple[Any, Dim]:
    if typeof(x).ndim == 1 and math.prod(shape) == 1:
        # Scalars that become arrays of one element, as in stack([a, b]): with the batch axis last, concatenation copies
        # whole rows. Runge-Kutta steps of stacked scalars take 1.02 of jax's time this way, and 1.6 with it in front.
        size = typeof(x).shape[0]
        return broadcast_in_dim(x, shape=(*shape, size), broadcast_dimensions=(len(shape),)), len(shape)
    x = move_axis(x, dim, 0)
    dims = (0, *(i + 1 for i in broadcast_dimensions))
    return broadcast_in_dim(x, shape=(typeof(x).shape[0], *shape), broadcast_dimensions=dims), 0


def _broadcast_show(eqn: Any, printer: Any) -> Params:
    dims = eqn.params["broadcast_dimensions"]
    return {"broadcast_dimensions": dims} if dims else {}


broadcast_in_dim = structural(
    "broadcast_in_dim",
    types=_broadcast_types,
    sharding=shape_sharding.broadcast_sharding,
    memory_in_types=True,
    axis_map_of=shape_sharding.broadcast_axis_map,
    lower=lambda f, x, shape, broadcast_dimensions: f.broadcast(x, f.out.shape, broadcast_dimensions),
    transpose=_broadcast_transpose,
    batch=_broadcast_batch,
    extend=lambda params, trailing, x: {
        "shape": (*params["shape"], *trailing),
        "broadcast_dimensions": (
            *params["broadcast_dimensions"],
            *range(len(params["shape"]), len(params["shape"]) + len(trailing)),
        ),
    },
    show=_broadcast_show,
    unfused="layout",
)


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` broadcast to `shape`, along new leading axes and axes of length one."""
    old = typeof(x).shape
    if old == shape:
        return x
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(range(len(shape) - len(old), len(shape))))


def _squeeze_types(x: ShapedArray, dimensions: tuple[int, ...]) -> ShapedArray:
    if len(set(dimensions)) < len(dimensions):
        raise AxisError(f"squeeze of {x.short}: dimensions are not unique: {dimensions}", axes=dimensions)
    for axis in dimensions:
        if not 0 <= axis < x.ndim or x.shape[axis] != 1:
            raise ShapeError(
                f"squeeze: cannot select an axis to squeeze out which has size not equal to one, got axis {axis} of "
                f"{x.short}",
                instead="an axis of length 1",
                axis=axis,
            )
    return shaped(tuple(n for i, n in enumerate(x.shape) if i not in dimensions), x.dtype, x.weak_type)


squeeze = structural(
    "squeeze",
    types=_squeeze_types,
    sharding=lambda out, x, dimensions: tuple(e for i, e in enumerate(entries_of(x)) if i not in dimensions),
    lower=lambda f, x, dimensions: f.unlike("stablehlo.reshape", x, f.out),
    transpose=lambda ct, aval, dimensions: reshape(ct, new_sizes=aval.shape, dimensions=None),
    batch=lambda x, dim, dimensions: (squeeze(move_axis(x, dim, 0), dimensions=tuple(i + 1 for i in dimensions)), 0),
    extend=lambda params, trailing, x: params,
    unfused="layout",
)


def _rev_types(x: ShapedArray, dimensions: tuple[int, ...]) -> ShapedArray:
    if len(set(dimensions)) != len(dimensions) or any(not 0 <= a < x.ndim for a in dimensions):
        raise AxisError(f"rev: {x.short} cannot be reversed along axes {dimensions}", axes=dimensions)
    return x


rev = structural(
    "rev",
    types=_rev_types,
    lower=lambda f, x, dimensions: f.op("stablehlo.reverse", [x], f.out, f"dimensions = {i64_array(dimensions)}"),
    transpose=lambda ct, aval, dimensions: rev(ct, dimensions=dimensions),
    batch=lambda x, dim, dimensions: (rev(move_axis(x, dim, 0), dimensions=tuple(i + 1 for i in dimensions)), 0),
    pad=padding.rev_pad,
    extend=lambda params, trailing, x: params,
    unfused="operation",
)

# Values of a program never change, so a copy inside of one is the value itself.
copy = structural(
    "copy",
    types=lambda x: x,
    lower=lambda f, x: x,
    transpose=lambda ct, aval: copy(ct),
    batch=lambda x, dim: (copy(x), dim),
    extend=lambda params, trailing, x: params,
    memory_in_types=True,
)


def as_array_or_tracer(x: Any) -> Any:
    """`x` as an array or tracer: a number or NumPy array becomes a constant of the jaxpr being traced, or an array."""
    # Arrays and tracers are returned at once: this is on the path of every call.
    if isinstance(x, ArrayBase):
        return x
    program = recorder()
    return as_array(x) if program is None else program.constant(x, typeof(x))


def results_as_arrays(values: Iterable[Any]) -> list[Any]:
    """Results of a user's function, which may be NumPy arrays where it returned an argument: these become arrays."""
    return [
        as_array_or_tracer(x) if isinstance(x, np.ndarray | np.generic) and x.dtype != dtypes.float0 else x
        for x in values
    ]


# --- concatenate ----------------------------------------------------------------------------------------


def _concatenate_types(*xs: ShapedArray, dimension: int) -> ShapedArray:
    first = xs[0]
    if not 0 <= dimension < first.ndim:
        raise AxisError(f"concatenate: {first.short} has no axis {dimension}", axis=dimension)
    for x in xs[1:]:
        if x.ndim != first.ndim or any(
            a != b for i, (a, b) in enumerate(zip(x.shape, first.shape, strict=True)) if i != dimension
        ):
            raise ShapeError(
                f"Cannot concatenate arrays along axis {dimension}: "
                f"{'other lengths' if len({a.ndim for a in xs}) == 1 else 'numbers of dimensions'} must agree, got "
                f"{', '.join(a.short for a in xs)}",
                shapes=[a.shape for a in xs],
            )
        if x.dtype != first.dtype:
            raise DtypeError(f"concatenate: operands must have one dtype, got {', '.join(a.short for a in xs)}")
    shape = list(first.shape)
    shape[dimension] = sum(x.shape[dimension] for x in xs)
    return shaped(tuple(shape), first.dtype, all(x.weak_type for x in xs))


def _concatenate_transpose(ct: Any, *xs: Any, dimension: int) -> list[Any]:
    result, start = [], 0
    for x in xs:
        shape = typeof(x).shape if not is_linear(x) else x.aval.shape
        stop = start + shape[dimension]
        result.append(_part(ct, dimension, start, stop) if is_linear(x) else None)
        start = stop
    return result


def _part(x: Any, axis: int, start: int, stop: int) -> Any:
    shape = typeof(x).shape
    starts, limits = [0] * len(shape), list(shape)
    starts[axis], limits[axis] = start, stop
    return primitive("slice").bind(x, start_indices=tuple(starts), limit_indices=tuple(limits), strides=None)


def _concatenate_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], dimension: int) -> tuple[Any, Dim]:
    # Operands with their mapped axes at one position stay as they are. Moving an axis is a transpose of memory.
    to = dims[0] if dims[0] is not None and all(d == dims[0] for d in dims) else 0
    moved = [place_axis(x, d, to, axis.size) for x, d in zip(args, dims, strict=True)]
    return concatenate(*moved, dimension=dimension + (to <= dimension)), to


concatenate = Primitive(
    "concatenate",
    remembers=True,
    types=_concatenate_types,
    sharding=shape_sharding.concatenate_sharding,
    lower=lambda f, *xs, dimension: f.op("stablehlo.concatenate", xs, f.out, f"dimension = {dimension} : i64"),
    jvp=linear_jvp(lambda: concatenate),
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
    pad=padding.concatenate_pad,
    extend=lambda params, trailing, *xs: params,
    keys=replaces,
    nan_checked=False,
    series="linear",
)

# --- pad ------------------------------------------------------------------------------------------------

PaddingConfig = tuple[tuple[int, int, int], ...]


def _pad_types(x: ShapedArray, value: ShapedArray, padding_config: PaddingConfig) -> ShapedArray:
    if value.shape or value.dtype != x.dtype:
        raise ShapeError(f"pad: padding_value must be a scalar of the dtype of operand {x.short}, got {value.short}")
    if len(padding_config) != x.ndim:
        raise ShapeError(
            f"pad: padding_config has {len(padding_config)} triples for {x.short}", instead="one for each axis"
        )
    shape = tuple(
        # n elements have n - 1 gaps between them.
        lo + hi + n + (max_dim(0, n - 1) * inner if inner else 0)
        for n, (lo, hi, inner) in zip(x.shape, padding_config, strict=True)
    )
    if any(inner < 0 for _, _, inner in padding_config):
        raise ShapeError(f"pad: interior padding in padding_config must be nonnegative, got {padding_config}")
    if any(n < 0 for n in shape if not is_symbolic(n)):
        raise ShapeError(
            f"pad: Dimension size after padding is not at least 0: {x.short} with {padding_config} would have shape "
            f"{shape}",
            shapes=[x.shape],
        )
    return shaped(shape, x.dtype, x.weak_type and value.weak_type)


def _pad_lower(f: Function, x: Value, value: Value, padding_config: PaddingConfig) -> Value:
    low, high, inner = zip(*padding_config, strict=True) if padding_config else ((), (), ())
    attributes = (
        f"edge_padding_low = {i64_array(low)}, edge_padding_high = {i64_array(high)}, "
        f"interior_padding = {i64_array(inner)}"
    )
    return f.op("stablehlo.pad", [x, value], f.out, attributes)


def _pad_transpose(ct: Any, x: Any, value: Any, padding_config: PaddingConfig) -> list[Any]:
    # Negative widths remove the outer padding; the strides of the slice skip the interior padding.
    zero = literal(ct, 0)
    inside = pad(ct, zero, padding_config=tuple((-lo, -hi, 0) for lo, hi, _ in padding_config))
    limits = typeof(inside).shape
    strides = tuple(inner + 1 for _, _, inner in padding_config)
    ct_x = primitive("slice").bind(inside, start_indices=(0,) * len(limits), limit_indices=limits, strides=strides)
    ct_value = None
    if is_linear(value):
        everything = tuple(range(len(limits)))
        # The value is everywhere but at the elements of the operand.
        ct_value = sub(sum_axes(ct, everything), sum_axes(ct_x, everything))
    return [ct_x if is_linear(x) else None, ct_value]


def _pad_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], padding_config: PaddingConfig
) -> tuple[Any, Dim]:
    x, value = args
    x = place_axis(x, dims[0], 0, axis.size)
    wider = ((0, 0, 0), *padding_config)
    if dims[1] is None:
        return pad(x, value, padding_config=wider), 0
    # The padding value is batched: select it where a padded mask is False.
    shape = typeof(x).shape
    inside = pad(broadcast_in_dim(np.True_, shape=shape, broadcast_dimensions=()), np.False_, padding_config=wider)
    padded = pad(x, literal(x, 0), padding_config=wider)
    values = broadcast_in_dim(value, shape=typeof(padded).shape, broadcast_dimensions=(0,))
    return select_n(inside, values, padded), 0


pad = Primitive(
    "pad",
    types=_pad_types,
    sharding=lambda out, x, value, padding_config: resized("pad", x, out),
    lower=_pad_lower,
    jvp=linear_jvp(lambda: pad),
    transpose=_pad_transpose,
    batch=_pad_batch,
    pad=padding.pad_pad,
    nan_checked=True,
    series="linear",
)
