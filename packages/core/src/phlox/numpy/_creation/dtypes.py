"""The scalar types of `phlox.numpy`, such as float32, and functions about dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._api.jit.programs import dtype_like
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, DtypeError, OptionError
from ..._ir import dtypes
from ..._ir.avals import typeof_value
from ..._ir.promotion import promote
from ..._operands.checks import array_like, declared_dtype, type_or_content_type
from ...typing import ArrayLike, DTypeLike
from .from_data import asarray


class _ScalarType(type):
    """A dtype that can be called: ``jnp.float32(3)`` is an array of shape ()."""

    dtype: np.dtype

    def __call__(cls, x: Any = 0) -> Any:
        return asarray(x, dtypes.user_dtype(cls.dtype, cls.__name__))

    def __instancecheck__(cls, x: Any) -> bool:
        # NumPy's numbers of this dtype; an array is an instance of `Array` whatever its dtype.
        return isinstance(x, cls.dtype.type)

    def __eq__(cls, other: object) -> bool:
        if cls is other:
            return True
        if isinstance(other, str):  # as jax.numpy.int8 == "int8"
            return False
        try:
            # Equal to other objects that are the same dtype, so that x.dtype == jnp.float32
            return cls.dtype == np.dtype(other)  # type: ignore[call-overload]
        except TypeError:
            return NotImplemented

    def __hash__(cls) -> int:
        # jnp.float32 == np.float32, so both must have the same hash.
        return hash(cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def _scalar_type(name: str) -> Any:
    doc = f"The element type {name}; called with a number it makes an array without axes."
    return _ScalarType(name, (), {"dtype": dtypes.as_dtype(name), "__doc__": doc, "__module__": "phlox.numpy"})


bool_ = _scalar_type("bool")
int1, int2, int4, int8 = map(_scalar_type, ("int1", "int2", "int4", "int8"))
int16, int32, int64 = map(_scalar_type, ("int16", "int32", "int64"))
uint1, uint2, uint4, uint8 = map(_scalar_type, ("uint1", "uint2", "uint4", "uint8"))
uint16, uint32, uint64 = map(_scalar_type, ("uint16", "uint32", "uint64"))
bfloat16, float16, float32, float64 = map(_scalar_type, ("bfloat16", "float16", "float32", "float64"))
float4_e2m1fn = _scalar_type("float4_e2m1fn")
float6_e2m3fn = _scalar_type("float6_e2m3fn")
float6_e3m2fn = _scalar_type("float6_e3m2fn")
float8_e3m4 = _scalar_type("float8_e3m4")
float8_e4m3 = _scalar_type("float8_e4m3")
float8_e4m3b11fnuz = _scalar_type("float8_e4m3b11fnuz")
float8_e4m3fnuz = _scalar_type("float8_e4m3fnuz")
float8_e5m2fnuz = _scalar_type("float8_e5m2fnuz")
float8_e8m0fnu = _scalar_type("float8_e8m0fnu")
float8_e4m3fn = _scalar_type("float8_e4m3fn")
float8_e5m2 = _scalar_type("float8_e5m2")
complex64, complex128 = map(_scalar_type, ("complex64", "complex128"))
single, double, csingle, cdouble = float32, float64, complex64, complex128
int_, uint, float_, complex_ = int64, uint64, float64, complex128

# Abstract types, for `issubdtype`.
generic = np.generic
number = np.number
integer = np.integer
signedinteger = np.signedinteger
unsignedinteger = np.unsignedinteger
inexact = np.inexact
floating = np.floating
complexfloating = np.complexfloating
character = np.character
flexible = np.flexible
object_ = np.object_
dtype = np.dtype


#: the kinds of dtypes of the array API standard, as characters of `dtypes.kind`
KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def isdtype(dtype: DTypeLike, kind: str | DTypeLike | tuple[str | DTypeLike, ...]) -> bool:
    """Whether a dtype belongs to a kind of dtypes (as ``numpy.isdtype``).

    Args:
      dtype: the dtype, or an object that has one.
      kind: one of ``bool``, ``signed integer``, ``unsigned integer``, ``integral``, ``real floating``, ``complex
        floating``, ``numeric``; another dtype; or a tuple of those, of which one must apply.

    Returns:
      A Python bool.

    Raises:
      OptionError: `kind` is a string that names neither a kind nor a dtype.
      ArgumentError: `kind` is neither a string nor a dtype nor a tuple of these.

    >>> jnp.isdtype(jnp.bfloat16, "real floating"), jnp.isdtype("int8", ("bool", jnp.int16))
    (True, False)
    """
    numpy_dtype = np.dtype(dtype)
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str) and one in KINDS:
            if dtypes.kind(numpy_dtype) in KINDS[one]:
                return True
            continue
        try:
            same = numpy_dtype == np.dtype(one)
        except TypeError:
            if isinstance(one, str):
                raise OptionError(
                    f"isdtype: unknown kind {one!r}", instead=f"a dtype or one of {list(KINDS)}"
                ) from None
            raise ArgumentError(f"isdtype: kind {one!r} is no dtype and no word") from None
        if same:
            return True
    return False


def finfo(dtype: DTypeLike | None) -> Any:
    """Limits of a floating dtype: eps, max, min, tiny, bits … (as ``numpy.finfo``).

    Args:
      dtype: a float dtype; a complex dtype, for the dtype of its parts; or an array, whose dtype is used.

    Returns:
      An object with the limits as attributes.

    Raises:
      ValueError: the dtype is an integer dtype or bool.

    >>> int(finfo("bfloat16").bits)
    16
    """
    return dtypes.finfo(dtypes.real_part(dtypes.as_dtype(dtype)))


@docs_from(finfo)
def iinfo(int_type: DTypeLike) -> Any:
    """Limits of an integer dtype: min, max, bits (as ``numpy.iinfo``).

    Args:
      int_type: an integer dtype, or an array, whose dtype is used.

    Raises:
      ValueError: the dtype is not an integer dtype.

    >>> int(iinfo("int8").max)
    127
    """
    return dtypes.iinfo(dtypes.as_dtype(int_type))


def common_type(*args: Any) -> tuple[Any, bool]:
    """The result of `result_type`, and whether it is weakly typed."""
    return promote(tuple(_typed(x, is_explicit=True) for x in args))


def result_type(*args: ArrayLike | DTypeLike | None) -> Any:
    """The dtype of an operation on these arrays, numbers and dtypes, by JAX's promotion rules (as
    ``numpy.result_type``).

    Args:
      *args: arrays, other objects with an attribute ``dtype``, Python numbers, which adapt to the dtypes of arrays, and
        dtypes; None means the default float dtype.

    Returns:
      A dtype; 64-bit types become 32-bit ones unless x64 mode is on, or the flag `explicit_x64_dtypes` is "allow".

    Raises:
      ArgumentError: an argument is not one of these, or there are no arguments.
      DtypeError: a 64-bit dtype is given, and `explicit_x64_dtypes` is "error".

    >>> result_type(np.int32(1), 2.0), result_type("float16", 1.0)
    (dtype('float32'), dtype('float16'))
    """
    return common_type(*args)[0]


def scalar_type_of(x: Any) -> type:
    """The Python number type that corresponds to the dtype of `x` (as ``jax.dtypes.scalar_type_of``).

    Args:
      x: an array, a number or a dtype.

    Returns:
      bool, int, float or complex.

    Raises:
      DtypeError: no Python number type corresponds to the dtype, as for random keys.

    >>> scalar_type_of(np.ones(2)), scalar_type_of("int4")
    (<class 'float'>, <class 'int'>)
    """
    dtype = _typed(x)[0]
    python_type = {"b": bool, "i": int, "u": int, "f": float, "c": complex}.get(dtypes.kind(dtype))
    if python_type is None:
        raise DtypeError(f"scalar_type_of: no Python number is like the elements of {dtype}", dtype=dtype)
    return python_type


def _typed(x: Any, is_explicit: bool = False) -> tuple[Any, bool]:
    """The dtype and weak type of an array, number or dtype.

    With `is_explicit`, the flag `explicit_x64_dtypes` decides what becomes of a 64-bit dtype of NumPy or its name.
    """
    if any(x is kind for kind in (int, float, complex)):  # not ==, because `float64` of this package equals float
        return dtypes.python_scalar_dtype(x), True
    if x is None:
        return dtypes.canonical(dtypes.float64), False
    if isinstance(x, str | type | np.dtype | dtypes.ExtendedDtype):
        if is_explicit and (isinstance(x, str | np.dtype) or (isinstance(x, type) and issubclass(x, np.generic))):
            return dtypes.user_dtype(x, "result_type"), False
        return dtypes.canonical(dtypes.as_dtype(x)), False
    if (declared := declared_dtype(x)) is not None:
        return declared, False
    aval = type_or_content_type("result_type", x)
    return dtype_like(x, aval), aval.weak_type


def can_cast(from_: DTypeLike, to: DTypeLike, casting: str = "safe") -> bool:
    """Whether one dtype can be converted to another under a casting rule (as ``numpy.can_cast``).

    Args:
      from_, to: dtypes, or arrays, whose dtype is used.
      casting: conversions that are allowed: 'no', 'equiv', 'safe' (no value is lost), 'same_kind' or 'unsafe'.

    Returns:
      A bool.

    Raises:
      DtypeError: an argument is not a dtype.

    >>> bool(can_cast("int8", "int32"))
    True
    """
    return np.can_cast(dtypes.as_dtype(from_), dtypes.as_dtype(to), casting=casting)  # type: ignore[arg-type]


def isrealobj(x: Any) -> bool:
    """Whether the dtype of `x` is not complex (as ``numpy.isrealobj``).

    Args:
      x: an array, a number, or nested lists of these.

    Returns:
      A Python bool, True also if `x` is none of these.

    >>> isrealobj(1.0)
    True
    """
    return not iscomplexobj(x)


@docs_from(isrealobj)
def iscomplexobj(x: Any) -> bool:
    """Whether the dtype of `x` is complex (as ``numpy.iscomplexobj``).

    Returns:
      A Python bool, False also if `x` is none of these.

    >>> iscomplexobj(1j)
    True
    """
    aval = typeof_value(array_like(x))
    if aval is not None:
        return dtypes.kind(aval.dtype) == "c"
    if isinstance(x, list | tuple):  # elements may be tracers
        return any(iscomplexobj(part) for part in x)
    return bool(np.iscomplexobj(x))


def isscalar(element: Any) -> bool:
    """Whether `element` is a number or an array of shape () (as ``numpy.isscalar``).

    Args:
      element: any object.

    Returns:
      A Python bool.

    >>> isscalar(1.0), isscalar([1.0])
    (True, False)
    """
    aval = typeof_value(array_like(element))
    return bool(np.isscalar(element)) if aval is None else aval.ndim == 0
