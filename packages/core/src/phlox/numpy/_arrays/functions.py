"""The functions that operators and methods of arrays call, under the names by which they call them.

Some are ufuncs in `phlox.numpy`, or have the option `out_sharding` there, and calls of those cost more. Others exist
here only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..._base.beside_jax import is_of_jax
from ..._base.errors import ArgumentError, OptionError, ShapeError
from ..._base.public_names import Import, on_demand
from ..._ir import dtypes
from ..._ir.avals import is_masked, typeof_value
from ..._ir.primitive import current_trace
from ..._ir.sharding_types import entries_of
from ..._operands.checks import array_like, becomes_array, check, type_of
from ..._ops.elementwise import arithmetic
from ..._ops.structure.shape import bitcast_convert_type, rev
from ..._trace import numpy_functions
from ..._trace.trace import Tracer
from ..._xla.array import ArrayImpl, physical
from ..._xla.devices import Device
from ..._xla.moves import move
from ..._xla.partition_spec import PartitionSpec
from ..._xla.sharding import Sharding, single_device
from ...typing import Array
from .._creation.from_data import asarray as asarray, astype as astype
from .._elementwise.binary import (
    add as add,
    bitwise_and as bitwise_and,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    floor_divide as floor_divide,
    left_shift as left_shift,
    multiply as multiply,
    power as power,
    remainder as remainder,
    right_shift as right_shift,
    subtract as subtract,
    true_divide as true_divide,
)
from .._elementwise.choose import clip as clip, round as round
from .._elementwise.comparisons import (
    equal as equal,
    greater as greater,
    greater_equal as greater_equal,
    less as less,
    less_equal as less_equal,
    not_equal as not_equal,
)
from .._elementwise.unary import (
    abs as abs,
    conjugate as conjugate,
    imag as imag,
    invert as invert,
    negative as negative,
    positive as positive,
    real as real,
)
from .._linalg.products import dot as dot, product as product, trace as trace
from .._manipulation.shapes import (
    matrix_transpose as matrix_transpose,
    ravel as ravel,
    reshape as reshape,
    squeeze as squeeze,
    swapaxes as swapaxes,
    transpose as transpose,
)
from .._statistics.moments import mean as mean, std as std, var as var
from .._statistics.reductions import (
    all as all,
    any as any,
    argmax as argmax,
    argmin as argmin,
    cumprod as cumprod,
    cumsum as cumsum,
    max as max,
    min as min,
    prod as prod,
    ptp as ptp,
    sum as sum,
)
from . import with_out_sharding as with_out_sharding

# Imported at the first call of one of these functions, to keep `import phlox` fast.
with on_demand(__name__) as _on_demand:
    from .._creation.view import view as view
    from .._elementwise.integers import divmod as divmod
    from .._functions.apply import choose as choose
    from .._indexing.at import At as At
    from .._indexing.places import compress as compress, nonzero as nonzero
    from .._indexing.reading import diagonal as diagonal, getitem as getitem, take as take
    from .._manipulation.repeat import repeat as repeat
    from .._searches.orders import argpartition as argpartition
    from .._searches.searching import searchsorted as searchsorted
    from .._searches.sorting import argsort as argsort, sort as sort


# --- operators ------------------------------------------------------------------------------------------


def operate(function: Callable[..., Any], x: Any, other: Any) -> Any:
    """``function(x, other)`` for the operator of an array `x` and any object.

    For objects that are no operands it returns NotImplemented, so that Python tries the operator of their class.
    """
    _refuse_repetition(function, other)
    return function(x, array_like(other)) if _is_operand(other) else NotImplemented


def reflected(function: Callable[..., Any], x: Any, other: Any) -> Any:
    """Like `operate`, with the array `x` on the right: ``function(other, x)``."""
    _refuse_repetition(function, other)
    return function(array_like(other), x) if _is_operand(other) else NotImplemented


def _refuse_repetition(function: Callable[..., Any], other: Any) -> None:
    # After NotImplemented, Python would repeat the list: ``phlox.numpy.array(2) * [1]`` would be [1, 1].
    if function is numpy_functions.multiply and type(other) in (list, tuple):
        kind = type(other).__name__
        raise ArgumentError(f"arrays are not multiplied by a {kind}", instead=f"phlox.numpy.asarray(...) of the {kind}")


def compare(function: Callable[..., Any], x: Any, other: Any) -> Any:
    """Like `operate`, for == and !=; raises for lists and dicts, because Python's False would hide a mistake."""
    if isinstance(other, list | tuple | dict | set):
        raise ArgumentError(
            f"an array and a {type(other).__name__} are not compared", instead="phlox.numpy.asarray(...) of it"
        )
    return operate(function, x, other)


def _is_operand(x: Any) -> bool:
    # Masked arrays count as operands, which raise later: NotImplemented would run the operators of numpy.ma instead.
    # For arrays of jax it would end in Python's TypeError, which does not say where they come from.
    return typeof_value(x) is not None or becomes_array(x) or is_masked(x) or is_of_jax(x)


def contains(x: Any, value: Any) -> Array:
    """Whether an element of the vector `x` equals the scalar `value`. Raises for other shapes."""
    if value is None or isinstance(value, str):
        raise ArgumentError(
            f"Array.__contains__: unsupported operand type {type(value).__name__}: {value!r} is no number",
            instead="a number",
        )
    x, value = check("__contains__", x, value)
    for wrong, rule in (
        (type_of(x).ndim != 1, "search array must be one-dimensional"),
        (type_of(value).shape, "query value must be a scalar"),
    ):
        if wrong:
            raise ShapeError(
                f"Array.__contains__: {rule}, got {type_of(value).short} in {type_of(x).short}",
                instead="(array == x).any()",
            )
    return any(equal(x, value))


def iterate(x: Any) -> Iterator[Array]:
    """An iterator over the rows of `x`."""
    from .._indexing.rows import unstack_rows

    if type(x) is ArrayImpl:
        if not x._is_shown():
            np.asarray(physical(x))  # raises: rows come from all processes, which need not iterate together
        # In a trace, types must say where rows lie, so those of an axis that is split are refused.
        if x.ndim and entries_of(x.aval)[0] and current_trace.get() is None:
            x = move(x, x.sharding.update(spec=PartitionSpec(None, *x.sharding.spec[1:])))
    return unstack_rows(x)


# --- methods --------------------------------------------------------------------------------------------


def byteswap(x: Any) -> Array:
    """`x` with the bytes of each element in the opposite order."""
    aval = type_of(x)
    if dtypes.kind(aval.dtype) == "c":
        return arithmetic.complex_(byteswap(real(x)), byteswap(imag(x)))
    if dtypes.bits(aval.dtype) <= 8:
        return asarray(x, copy=True)
    # A bitcast to bytes adds an axis of them, which is reversed and joined again.
    octets = rev(bitcast_convert_type(x, new_dtype=dtypes.uint8), dimensions=(aval.ndim,))
    return bitcast_convert_type(octets, new_dtype=aval.dtype)


def to_device(x: Any, device: Device | Sharding) -> Array:
    """The array on another device or with another sharding; a tracer unchanged."""
    if isinstance(x, Tracer):
        return x  # type: ignore[return-value]
    if type(device) is not Device and not isinstance(device, Sharding):
        raise ArgumentError(f"to_device: {device!r} is neither a device nor a sharding")
    return move(x, single_device(device) if type(device) is Device else device)


def array_namespace(api_version: str | None) -> Any:
    """The module `phlox.numpy`, for code that is written for the array API standard.

    Under `phlox.as_jax` it is the ``jax.numpy`` that the program imports: libraries compare the two by identity.
    """
    phlox_numpy = sys.modules["phlox.numpy"]
    # If phlox stands in the place of jax, programs compare the namespace with jax.numpy.
    jax_numpy: Any = sys.modules.get("jax.numpy")
    namespace = jax_numpy if getattr(jax_numpy, "_target", None) is phlox_numpy else phlox_numpy
    version = namespace.__array_api_version__
    if api_version not in (None, version, "2024.12"):  # each version contains the one before
        raise OptionError(f"version {api_version!r} of the array API is not supported", instead=repr(version))
    return namespace


# --- what arrays see ------------------------------------------------------------------------------------


def _replaced(name: str, statement: Import) -> Callable[..., Any]:
    """A function that imports that of this name at its first call, and puts it into its own place."""

    def first_call(*args: Any, **kwargs: Any) -> Any:
        function = statement.load()
        setattr(numpy_functions, name, function)
        return function(*args, **kwargs)

    return first_call


def _fill() -> None:
    """Puts the functions of this module into `phlox._trace.numpy_functions`."""
    functions = {name: value for name, value in globals().items() if name[0] != "_"}
    functions.update({name: _replaced(name, statement) for name, statement in _on_demand.items()})
    vars(numpy_functions).update(functions)


_fill()
