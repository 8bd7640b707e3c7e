"""Checks of arguments of public functions: arrays, integers, shapes and axes.

Errors name the function and the argument. lax, numpy and the modules built on them share these checks.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from .._base.beside_jax import is_of_jax
from .._base.errors import (
    ArgumentError,
    AxisError,
    ConcretizationTypeError,
    PhloxError,
    ShapeError,
    TracerIntegerConversionError,
    UnsupportedError,
)
from .._base.source import warn
from .._ir import dtypes
from .._ir.avals import ShapedArray, is_masked, scalar_aval, typeof_value
from .._ir.dimensions import as_length
from .._trace.refs import content_type
from .._trace.trace import ArrayBase, Tracer, array_advice, not_an_array
from .._xla.array import ArrayImpl
from ..typing import Array, Shape

_NUMBERS = frozenset((float, int, bool, complex))


def array_like(x: Any) -> Array:
    """`x`, or the array that its method ``__jax_array__`` returns."""
    return x.__jax_array__() if type(x) is not ArrayImpl and becomes_array(x) else x


def becomes_array(x: Any) -> bool:
    """Whether `x` has a method ``__jax_array__``. Arrays and tracers of jax itself have None in its place."""
    return not isinstance(x, ArrayBase) and getattr(x, "__jax_array__", None) is not None


def check(function: str, *args: Any) -> list[Array]:
    """The arguments as arrays or numbers. Raises `ArgumentError` with the position of one that is neither."""
    # Nearly all calls have arrays of phlox only, for which this loop is all.
    for x in args:
        if type(x) is not ArrayImpl:
            break
    else:
        return list(args)
    arrays: list[Any] = [x if isinstance(x, ArrayBase) else checked(function, i, x)[0] for i, x in enumerate(args)]
    return arrays


def check_one(function: str, x: Any) -> Array:
    """`check` for a function of one array."""
    return x if type(x) is ArrayImpl else check(function, x)[0]


def checked(function: str, position: int, x: Any) -> tuple[Any, ShapedArray]:
    """An argument that is no array or tracer of phlox, and its type. Raises `ArgumentError` if it is no array."""
    if type(x) in _NUMBERS:
        return x, scalar_aval(type(x))
    x = array_like(x)
    aval = typeof_value(x)
    if aval is None:
        if is_masked(x) or is_of_jax(x):
            raise not_an_array(x, f"argument {position} of {function}")
        what = f"{function} requires ndarray or scalar arguments, got {type(x)} at position {position}"
        if content_type(x) is not None:
            kind = type(x).__name__
            what = (
                f"{function} got a {kind} of type {x.aval} at position {position}, but a {kind} can't be passed where "
                "an array is expected"
            )
        elif isinstance(x, np.ndarray | np.generic):
            what = (
                f"Error interpreting argument to {function} as a JAX value. The problematic value is of type {type(x)} "
                f"and was passed to {function} at position {position}. Its dtype is {x.dtype}"
            )
        shown = repr(x)
        raise ArgumentError(
            what + (f": {shown}" if len(shown) < 80 and "Tracer<" not in shown else ""),
            instead=array_advice(x),
            argument=position,
            value=x,
        )
    return x, aval


def type_of(x: Any) -> ShapedArray:
    """The type of an argument that has been checked."""
    aval = typeof_value(x)
    if aval is None:
        raise not_an_array(x, "an argument")
    return aval


def type_or_content_type(function: str, x: Any) -> ShapedArray:
    """The type of an array or number, or of the array of a reference or view. Raises `ArgumentError` for others."""
    return content_type(x) or type_of(check_one(function, x))


def declared_dtype(x: Any) -> Any:
    """The attribute `dtype` of an object that is no array, such as a named array of penzai; None if it has none."""
    dtype = getattr(x, "dtype", None)
    is_other = (
        isinstance(dtype, np.dtype | dtypes.ExtendedDtype) and typeof_value(x) is None and content_type(x) is None
    )
    return dtypes.canonical(dtypes.as_dtype(x)) if is_other else None


def refuse_complex(function: str, x: Any, dtype: Any) -> None:
    """Raises for a Python complex number given for a real dtype, as NumPy does.

    Complex arrays pass: their conversion drops the imaginary part.
    """
    if type(x) is complex and dtypes.kind(dtype) not in "cbk":
        raise ArgumentError(f"{function}: {x!r} is no {dtype.name}", instead="its real part", value=x)


def matrix_shape(function: str, m: Any) -> tuple[int, int]:
    """The number of rows and columns. Raises `ShapeError` for arrays with fewer than two axes."""
    shape = type_of(m).shape
    if len(shape) < 2:
        raise ShapeError(f"{function}: needs at least 2 axes, got {type_of(m).short}", shapes=[shape])
    return shape[-2], shape[-1]


def check_square(function: str, m: Any) -> int:
    """The number of rows of square matrices. Raises `ShapeError` for others."""
    rows, columns = matrix_shape(function, m)
    if rows != columns:
        raise ShapeError(f"{function}: takes square matrices, got {type_of(m).short}", shapes=[type_of(m).shape])
    return rows


def refuse_out(function: str, out: Any) -> None:
    """Raises for ``out=``, because arrays are immutable."""
    if out is not None:
        raise UnsupportedError(f"{function}: out={type(out).__name__} is not supported", instead=f"x = {function}(...)")


def warn_of_lost_parts(old: Any, new: Any) -> None:
    """Warns, as NumPy does, where numbers of the dtype `old` lose their imaginary part when they become `new`."""
    if dtypes.kind(old) == "c" and dtypes.kind(new) in "iuf":
        warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)


def integer(function: str, name: str, value: Any) -> int:
    """A parameter as an int. Raises `ArgumentError` if it is no integer."""
    try:
        return as_length(value)
    except TypeError as error:
        # A traced integer raises its own error, which knows nothing of this function and parameter.
        if isinstance(error, TracerIntegerConversionError):
            value._refuse(
                ConcretizationTypeError,
                f"Abstract tracer value encountered where concrete value is expected: {function}'s argument `{name}`",
                f"a number; mark `{name}` static with static_argnames",
            )
        if isinstance(error, PhloxError):
            raise
        raise ArgumentError(
            f"{function}: {name} must be an integer, got {value!r:.60} of type {type(value).__name__}",
            argument=name,
            value=value,
        ) from None


def integers(function: str, name: str, values: Iterable[Any]) -> tuple[int, ...]:
    """A parameter that lists integers, as a tuple. Raises `ArgumentError` if one of them is no integer."""
    values = sequence(function, name, values)
    try:
        return tuple([as_length(n) for n in values])
    except TypeError:
        return tuple([integer(function, name, n) for n in values])


def sequence(function: str, name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """A parameter that lists something, as a tuple. Raises `ArgumentError` for a number, None and the like."""
    try:
        return tuple(values)
    except TypeError:
        raise ArgumentError(
            f"{function}: {name} must be a sequence, got {values!r:.60} of type {type(values).__name__}",
            instead=f"{name}=({values!r:.60},)" if hasattr(values, "__index__") else "a tuple",
            argument=name,
            value=values,
        ) from None


def per_axis(function: str, name: str, numbers: Iterable[Any] | None, count: int) -> tuple[int, ...]:
    """A parameter with an integer for each of `count` axes that a window slides along, as a tuple; None means 1."""
    if numbers is None:
        return (1,) * count
    numbers = integers(function, name, numbers)
    if len(numbers) != count:
        raise ShapeError(
            f"{function} window and {name} must have the same number of dimensions, got {name}={numbers} "
            f"for {count} axes"
        )
    return numbers


def as_shape(shape: Shape, function: str = "") -> tuple[int, ...]:
    """A user's shape (an int or a sequence of ints) as a tuple. Raises `ArgumentError` for anything else.

    Raises `TracerIntegerConversionError` if a length is traced.
    """
    if type(shape) is tuple and not shape:
        return ()
    # Arrays without axes have `__iter__` too, and raise when it is called.
    lengths: Any = shape if getattr(shape, "ndim", 1) and hasattr(shape, "__iter__") else (shape,)
    try:
        return tuple([as_length(n) for n in lengths])
    except TracerIntegerConversionError:
        raise TracerIntegerConversionError(
            f"{function or 'shape'}: Shapes must be 1D sequences of concrete values of integer type, got {shape!r}, "
            "which depends on values that are not known while the program is traced.\n"
            "If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions.",
            instead="a static argument (static_argnums, static_argnames), or the shape of an array",
        ) from None
    except TypeError:
        raise ArgumentError(
            f"{function or 'shape'}: Shapes must be 1D sequences of concrete values of integer type, got {shape!r}",
            instead="an int or a sequence of ints",
        ) from None


def _refuse_traced_axis(axis: Any) -> None:
    if isinstance(axis, Tracer):
        axis._refuse(
            ConcretizationTypeError,
            "An axis must be known while the program is traced",
            "a number; mark the argument static with static_argnames",
        )


def canonical_axis(axis: Any, ndim: int, function: str = "") -> int:
    """`axis` as a nonnegative number. Raises `AxisError` when the array has no such axis."""
    _refuse_traced_axis(axis)
    try:
        number = operator.index(axis)
    except TypeError:
        raise AxisError(
            f"{function + ': ' if function else ''}axis {axis!r} of type {type(axis).__name__} "
            "cannot be interpreted as an integer",
            instead="a whole number",
            axis=axis,
        ) from None
    if not -ndim <= number < ndim:
        raise AxisError(
            f"{function + ': ' if function else ''}axis {number} is out of bounds for an array with {ndim} axes",
            axis=number,
        )
    return number % ndim


def canonical_axes(axis: Any, ndim: int, function: str = "") -> tuple[int, ...]:
    """None (all axes), one axis or several, as a tuple of nonnegative numbers. Raises if one occurs twice."""
    if axis is None:
        return tuple(range(ndim))
    numbers = tuple(canonical_axis(a, ndim, function) for a in several(axis))
    if len(set(numbers)) != len(numbers):
        raise ShapeError(f"{function}: repeated axis (duplicate value in 'axis': {axis})", axis=axis)
    return numbers


def hashable(axis: Any) -> Any:
    """A user's axis, or list or array of axes, in hashable form for cache keys."""
    if axis is None or type(axis) is int:
        return axis
    if type(axis) is tuple or isinstance(axis, tuple | list | range):
        axes = tuple(axis)
        try:
            hash(axes)
        except TypeError:  # of arrays or lists
            return tuple(map(hashable, axes))
        return axes
    _refuse_traced_axis(axis)
    value = axis.tolist() if hasattr(axis, "tolist") else axis
    return tuple(value) if isinstance(value, list) else value


def several(axis: Any) -> tuple[Any, ...]:
    """One axis or several, as a tuple."""
    axes = hashable(axis)
    return axes if isinstance(axes, tuple) else (axes,)
