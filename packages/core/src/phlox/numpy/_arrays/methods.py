"""Operators and methods of arrays and tracers, which `install` puts on their common base class."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..._base.beside_jax import is_of_jax
from ..._base.errors import ArgumentError, OptionError, ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._ir.avals import is_masked, typeof_value
from ..._operands.checks import array_like, becomes_array, check, type_of
from ..._ops.elementwise import arithmetic as e
from ..._ops.structure.shape import bitcast_convert_type, rev
from ..._trace.trace import ArrayLike as Base, Tracer
from ..._xla.array import ArrayImpl, move, physical
from ..._xla.devices import Device
from ..._xla.sharding import Sharding, single_device
from .._creation.from_data import asarray, astype
from .._elementwise import binary as b, choose as c, comparisons as order, unary as u
from .._linalg import products as lin
from .._manipulation import shapes as s
from .._statistics import reductions as r
from . import laid_out as laid

if TYPE_CHECKING:
    from ..._api.devices.out_sharding import OutSharding
    from ...typing import Array, ArrayLike, DTypeLike, Shape
    from .._indexing.at import At
    from .._indexing.plan import Index

#: version of the array API standard, https://data-apis.org/array-api/
_OPERANDS = {float, int, bool, complex, np.ndarray}


def _is_operand(x: Any) -> bool:
    if type(x) in _OPERANDS or typeof_value(x) is not None:
        return True
    # Masked arrays count as operands, which raise later: NotImplemented would run the operators of numpy.ma instead.
    # For arrays of jax it would end in Python's TypeError, which does not say where they come from.
    return becomes_array(x) or is_masked(x) or is_of_jax(x)


def _operator(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """The method for ``self <op> other``. For other classes it returns NotImplemented, so that Python tries theirs."""

    def method(self: Any, other: ArrayLike) -> Array:
        if type(other) is ArrayImpl:
            return function(self, other)
        return function(self, array_like(other)) if _is_operand(other) else NotImplemented

    return method


def _reflected(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: ArrayLike) -> Array:
        return function(array_like(other), self) if _is_operand(other) else NotImplemented

    return method


_BINARY: dict[str, Callable[..., Any]] = {
    "add": b.add,
    "sub": b.subtract,
    "mul": b.multiply,
    "truediv": b.true_divide,
    "floordiv": b.floor_divide,
    "mod": b.remainder,
    "pow": b.power,
    "matmul": lin.product,
    "and": b.bitwise_and,
    "or": b.bitwise_or,
    "xor": b.bitwise_xor,
    "lshift": b.left_shift,
    "rshift": b.right_shift,
}
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": order.equal,
    "ne": order.not_equal,
    "lt": order.less,
    "le": order.less_equal,
    "gt": order.greater,
    "ge": order.greater_equal,
}


def _equality(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Like `_operator`, for == and !=; raises for lists and dicts, because Python's False would hide a mistake."""
    compare = _operator(function)

    def method(self: Any, other: ArrayLike) -> Array:
        if isinstance(other, list | tuple | dict | set):
            raise ArgumentError(
                f"an array and a {type(other).__name__} are not compared", instead="phlox.numpy.asarray(...) of it"
            )
        return compare(self, other)

    return method


def _round(self: Any, ndigits: int | None = None) -> Array:
    """Python's `round`: integers if `ndigits` is None, else numbers rounded to this many decimals."""
    return astype(c.round(self), int) if ndigits is None else c.round(self, ndigits)


def _divmod(x: Any, y: Any) -> tuple[Array, Array]:
    return b.floor_divide(x, y), b.remainder(x, y)


def _contains(self: Any, other: ArrayLike) -> Array:
    """Whether an element of a vector equals the scalar `other`. Raises for other shapes."""
    if other is None or isinstance(other, str):
        raise ArgumentError(
            f"Array.__contains__: unsupported operand type {type(other).__name__}: {other!r} is no number",
            instead="a number",
        )
    self, other = check("__contains__", self, other)
    for wrong, rule in (
        (type_of(self).ndim != 1, "search array must be one-dimensional"),
        (type_of(other).shape, "query value must be a scalar"),
    ):
        if wrong:
            raise ShapeError(
                f"Array.__contains__: {rule}, got {type_of(other).short} in {type_of(self).short}",
                instead="(array == x).any()",
            )
    return r.any(order.equal(self, other))


def _byteswap(self: Any) -> Array:
    """The array with the bytes of each element in the opposite order."""
    aval = type_of(self)
    if dtypes.kind(aval.dtype) == "c":
        return e.complex_(_byteswap(u.real(self)), _byteswap(u.imag(self)))
    if dtypes.bits(aval.dtype) <= 8:
        return asarray(self, copy=True)
    octets = rev(bitcast_convert_type(self, new_dtype=dtypes.uint8), dimensions=(aval.ndim,))
    return bitcast_convert_type(octets, new_dtype=aval.dtype)


def _copy(self: Any) -> Array:
    """A copy of the array."""
    return asarray(self, copy=True)


def _no_flat(self: Any) -> NoReturn:
    raise UnsupportedError("x.flat is not supported", instead="x.flatten()")


def _namespace(self: Any, *, api_version: str | None = None) -> Any:
    """The module `phlox.numpy`, for code that is written for the array API standard.

    Under `phlox.as_jax` it is the ``jax.numpy`` that the program imports: libraries compare the two by identity.
    """
    own = sys.modules["phlox.numpy"]
    jax_numpy: Any = sys.modules.get("jax.numpy")
    namespace = jax_numpy if getattr(jax_numpy, "_target", None) is own else own
    version = namespace.__array_api_version__
    if api_version not in (None, version, "2024.12"):  # each version contains the one before
        raise OptionError(f"version {api_version!r} of the array API is not supported", instead=repr(version))
    return namespace


def _iterate(self: Any) -> Iterator[Array]:
    if not type_of(self).shape:
        raise ShapeError("iteration over an array without axes", instead="x itself, or x[None]", shapes=[()])
    from .._indexing.reading import unstack_rows

    if type(self) is ArrayImpl and not self._is_shown():
        np.asarray(physical(self))  # raises: rows come from all processes, which need not iterate together
    return iter(unstack_rows(self))


def _astype(
    self: Any, dtype: DTypeLike | None = None, copy: bool = False, device: Device | Sharding | None = None
) -> Array:
    """See `numpy.astype`."""
    return astype(self, dtype, copy=copy, device=device)


def _refuse_assignment(self: Any, index: Any, value: Any) -> NoReturn:
    instead = "x = x.at[index].set(value)"
    if "array_api_extra" in sys._getframe(1).f_globals.get("__name__", ""):  # part of SciPy, too
        # It knows by jax's classes alone which arrays cannot be changed.
        instead = "phlox.as_jax.install() before anything is imported: this library then uses x.at, as with jax"
    raise ArgumentError("arrays cannot be changed in place", instead=instead)


def _refuse_deletion(self: Any, index: Any) -> NoReturn:
    raise ArgumentError("arrays cannot be changed in place", instead="x = phlox.numpy.delete(x, index)")


def _reshape(
    self: Any, *args: Shape, order: str = "C", copy: bool | None = None, out_sharding: OutSharding = None
) -> Array:
    """See `numpy.reshape`; the shape is one tuple or several numbers."""
    shape: Any = args[0] if len(args) == 1 else args
    if out_sharding is None:
        return s.reshape(self, shape, order)
    return laid.reshape(self, shape, order, out_sharding=out_sharding)


def _transpose(self: Any, *args: int | Sequence[int] | None) -> Array:
    """See `numpy.transpose`; the order is one tuple or several numbers."""
    order: Any = None if not args else args[0] if len(args) == 1 and not isinstance(args[0], int) else args
    return s.transpose(self, order)


def _to_device(self: Any, device: Device | Sharding, *, stream: Any = None) -> Array:
    """The array on another device or with another sharding."""
    if isinstance(self, Tracer):
        return self  # type: ignore[return-value]
    if type(device) is not Device and not isinstance(device, Sharding):
        raise ArgumentError(f"to_device: {device!r} is neither a device nor a sharding")
    return move(self, single_device(device) if type(device) is Device else device)


def _method(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    if type(function) is FunctionType and function.__name__ == name:
        return function

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__, method.__wrapped__ = name, function  # type: ignore[attr-defined]
    method.__doc__ = f"See `numpy.{getattr(function, '__name__', name)}`."
    return method


# --- methods that few programs call: the first call imports the module, to keep `import phlox` fast -----


def _argpartition(self: Any, kth: int, axis: int = -1) -> Array:
    from .._searches.orders import argpartition

    return argpartition(self, kth, axis)


def _argsort(
    self: Any, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
    descending: bool = False,
) -> Array:  # fmt: skip
    from .._searches.sorting import argsort

    return argsort(self, axis, kind=kind, order=order, stable=stable, descending=descending)


def _at(self: Any) -> At:
    from .._indexing.at import At

    return At(self)


def _choose(self: Any, choices: Array | Sequence[ArrayLike], out: None = None, mode: str = "raise") -> Array:
    from .._functions.apply import choose

    return choose(self, choices, out, mode)


def _compress(
    self: Any, condition: ArrayLike, axis: int | None = None, *, out: None = None, size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Array:  # fmt: skip
    from .._indexing.places import compress

    return compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def _diagonal(self: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    from .._indexing.reading import diagonal

    return diagonal(self, offset, axis1, axis2)


def _getitem(self: Any, index: Index) -> Array:
    """Imports the indexing module at the first index in a process, and replaces itself with its `getitem`."""
    from .._indexing.ds import getitem

    setattr(Base, "__getitem__", getitem)  # noqa: B010 (for those who check types, the class has none)
    return getitem(self, index)


def _nonzero(
    self: Any, *, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None, size: int | None = None
) -> tuple[Array, ...]:
    from .._indexing.places import nonzero

    return nonzero(self, size=size, fill_value=fill_value)


def _repeat(
    self: Any, repeats: ArrayLike, axis: int | None = None, *, total_repeat_length: int | None = None,
    out_sharding: OutSharding = None,
) -> Array:  # fmt: skip
    from .laid_out_later import repeat

    return repeat(self, repeats, axis, total_repeat_length=total_repeat_length, out_sharding=out_sharding)


def _searchsorted(
    self: Any, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Array:
    from .._searches.searching import searchsorted

    return searchsorted(self, v, side, sorter, method=method)


def _sort(
    self: Any, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
    descending: bool = False,
) -> Array:  # fmt: skip
    from .._searches.sorting import sort

    return sort(self, axis, kind=kind, order=order, stable=stable, descending=descending)


def _take(
    self: Any, indices: ArrayLike, axis: int | None = None, out: None = None, mode: str | None = None,
    unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: ArrayLike | None = None,
) -> Array:  # fmt: skip
    from .._indexing.reading import take

    return take(self, indices, axis, out, mode, unique_indices, indices_are_sorted, fill_value)


def _view(self: Any, dtype: DTypeLike | None = None, type: None = None) -> Array:
    from .._creation.view import view

    return view(self, dtype, type)


_ON_DEMAND = (
    _argpartition, _argsort, _choose, _compress, _diagonal, _nonzero, _repeat, _searchsorted, _sort, _take, _view,
)  # fmt: skip

_METHODS: dict[str, Callable[..., Any]] = {
    "all": r.all,
    "any": r.any,
    "argmax": r.argmax,
    "argmin": r.argmin,
    "byteswap": _byteswap,
    "clip": c.clip,
    "conj": u.conjugate,
    "conjugate": u.conjugate,
    "copy": _copy,
    "cumprod": r.cumprod,
    "cumsum": r.cumsum,
    "dot": lin.dot,
    "flatten": laid.ravel,
    "max": r.max,
    "mean": r.mean,
    "min": r.min,
    "prod": r.prod,
    "ptp": r.ptp,
    "ravel": laid.ravel,
    "round": c.round,
    "squeeze": s.squeeze,
    "std": r.std,
    "sum": r.sum,
    "swapaxes": s.swapaxes,
    "trace": lin.trace,
    "var": r.var,
}
_PROPERTIES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "T": (s.transpose, "The array with its axes reversed."),
    "mT": (s.matrix_transpose, "The array with its last two axes exchanged."),
    "real": (u.real, "The real part."),
    "imag": (u.imag, "The imaginary part."),
    "flat": (_no_flat, "Not supported: `flatten` gives the elements in one axis."),
    "at": (_at, "``x.at[index]`` has the methods set, add, multiply, min, max, get …, which return changed arrays."),
}


def install() -> None:
    """Installs operators and methods on the base class of arrays and tracers."""
    for name, function in _BINARY.items():
        setattr(Base, f"__{name}__", _operator(function))
        setattr(Base, f"__r{name}__", _reflected(function))
    for name, function in _COMPARISONS.items():
        setattr(Base, f"__{name}__", (_equality if name in ("eq", "ne") else _operator)(function))
    unary = {"neg": u.negative, "pos": u.positive, "abs": u.abs, "invert": u.invert}
    for name, function in unary.items():
        setattr(Base, f"__{name}__", _method(function, name))
    special = {
        "__divmod__": _operator(_divmod),
        "__rdivmod__": _reflected(_divmod),
        "__array_namespace__": _namespace,
        "__contains__": _contains,
        "__getitem__": _getitem,
        "__iter__": _iterate,
        "__setitem__": _refuse_assignment,
        "__delitem__": _refuse_deletion,
        "__round__": _round,
        "__hash__": None,
        "astype": _astype,
        "reshape": _reshape,
        "transpose": _transpose,
        "to_device": _to_device,
    }
    for name, value in special.items():
        setattr(Base, name, value)
    for name, function in _METHODS.items():
        setattr(Base, name, _method(function, name))
    for method in _ON_DEMAND:
        name = method.__name__ = method.__qualname__ = method.__name__.removeprefix("_")
        method.__doc__ = f"See `numpy.{name}`."
        setattr(Base, name, method)
    for name, (getter, doc) in _PROPERTIES.items():
        setattr(Base, name, property(getter, doc=doc))


install()
