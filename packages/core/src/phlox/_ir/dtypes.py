"""Element types (dtypes): which exist, their names and kinds, and their 32-bit counterparts. Mirrors ``jax.dtypes``.

A dtype is a `numpy.dtype` (of NumPy or ml_dtypes) or an `ExtendedDtype`. An element of an extended dtype, such as a
PRNG key, is stored as a small array of a physical dtype.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from .._base import config
from .._base.errors import DtypeError, NumberRangeError
from .._base.source import warn

Dtype = Any  # numpy.dtype | ExtendedDtype

_ML_NAMES = (
    "bfloat16",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "int1",
    "int2",
    "int4",
    "uint1",
    "uint2",
    "uint4",
)
#: older releases of ml_dtypes lack some of the names
_ml = {name: np.dtype(getattr(ml_dtypes, name)) for name in _ML_NAMES if hasattr(ml_dtypes, name)}

bool_ = np.dtype(np.bool_)
int8, int16, int32, int64 = map(np.dtype, (np.int8, np.int16, np.int32, np.int64))
uint8, uint16, uint32, uint64 = map(np.dtype, (np.uint8, np.uint16, np.uint32, np.uint64))
float16, float32, float64 = map(np.dtype, (np.float16, np.float32, np.float64))
complex64, complex128 = map(np.dtype, (np.complex64, np.complex128))
bfloat16 = _ml["bfloat16"]
#: the dtype of tangents of integers; its elements have no bits
float0 = np.dtype([("float0", np.void, 0)])
#: error texts for operations on float0 arrays: the reason, and what to write instead
NO_FLOAT0 = "float0s do not support any operations by design, being the derivatives of integers"
INSTEAD_OF_FLOAT0 = "numpy.zeros(x.shape) for zeros to compute with, or a derivative with respect to floats"
#: error text for arithmetic on PRNG keys: what to write instead
INSTEAD_OF_KEYS = (
    "phlox.random.split(key) for new keys, phlox.random.fold_in(key, number) for one that a number goes into; "
    "phlox.random.key_data(key) for its bits"
)

SMALL_FLOATS = tuple(dtype for name, dtype in _ml.items() if name.startswith(("float4", "float6", "float8")))
FLOATS = (*SMALL_FLOATS, bfloat16, float16, float32, float64)
SIGNED = (*(d for name, d in _ml.items() if name == "int1"), _ml["int2"], _ml["int4"], int8, int16, int32, int64)
UNSIGNED = (
    *(d for name, d in _ml.items() if name == "uint1"),
    _ml["uint2"],
    _ml["uint4"],
    uint8,
    uint16,
    uint32,
    uint64,
)
COMPLEX = (complex64, complex128)

_by_name: dict[str, np.dtype] = {d.name: d for d in (bool_, *SIGNED, *UNSIGNED, *FLOATS, *COMPLEX)}
_kind: dict[Dtype, str] = {
    bool_: "b",
    **dict.fromkeys(SIGNED, "i"),
    **dict.fromkeys(UNSIGNED, "u"),
    **dict.fromkeys(FLOATS, "f"),
    **dict.fromkeys(COMPLEX, "c"),
    float0: "0",
}
NARROW = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}
_PYTHON = {bool: bool_, int: int64, float: float64, complex: complex128}


class ExtendedDtype:
    """An element type that is stored as an array of `physical` elements of shape `element_shape`.

    By default it has no derivatives and no conversions, as those of PRNG keys. A subclass with derivatives sets
    `tangent`, `zero` and `add`.
    """

    name: str
    physical: np.dtype
    element_shape: tuple[int, ...]
    #: the abstract type for `issubdtype`
    type: type

    @property
    def isbuiltin(self) -> int:
        """0, NumPy's value for dtypes that are not built in."""
        return 0

    @property
    def itemsize(self) -> int:
        return int(np.prod(self.element_shape)) * self.physical.itemsize

    @property
    def tangent(self) -> Dtype:
        """The element type of tangents."""
        return float0

    def can_convert(self, dtype: Dtype) -> bool:
        """Whether elements of `dtype` become elements of this type, and back, without a computation."""
        return False

    def zero(self) -> Any:
        """A scalar of this type: the neutral element of `add`."""
        raise NotImplementedError(f"cotangents of {self.name} have no zero")

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two cotangents of this type."""
        raise NotImplementedError(f"cotangents of {self.name} have no sum")

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


class extended(np.generic):
    """Abstract type of all extended element types.

    >>> phlox.dtypes.issubdtype(phlox.dtypes.prng_key, phlox.dtypes.extended)
    True
    """


class prng_key(extended):
    """Abstract type of the element types of PRNG keys.

    >>> phlox.dtypes.issubdtype(phlox.random.key(0).dtype, phlox.dtypes.prng_key)
    True
    """


def kind(dtype: Dtype) -> str:
    """One letter: b(ool), i(nt), u(nsigned), f(loat), c(omplex), 0 (float0), k (extended)."""
    return _kind.get(dtype, "k")


def is_inexact(dtype: Dtype) -> bool:
    """True for floating and complex element types."""
    return _kind.get(dtype) in ("f", "c")


def is_extended(dtype: Dtype) -> bool:
    """True for element types such as those of PRNG keys."""
    return isinstance(dtype, ExtendedDtype)


def as_dtype(x: Any) -> Dtype:
    """The dtype that a user means by `x`: a dtype, its name, a scalar type, a Python type, or an array.

    Python's types give the widest dtype of their kind, also in 32-bit mode: see `canonical`.
    """
    dtype = _by_name.get(x) if type(x) is str else None
    if dtype is not None:
        return dtype
    if isinstance(x, ExtendedDtype):
        return x
    # Before `np.dtype`, whose answer for `int` depends on the platform and on the release of NumPy.
    if isinstance(x, type) and x in _PYTHON:
        return _PYTHON[x]
    declared = getattr(x, "dtype", None)
    if declared is not None and not isinstance(x, type) and isinstance(declared, np.dtype | ExtendedDtype):
        if declared not in _kind and not isinstance(declared, ExtendedDtype) and declared != float0:
            raise unknown(x)
        return declared
    try:
        dtype = np.dtype(x)
    except TypeError:
        raise unknown(x) from None
    if dtype not in _kind:
        raise unknown(x)
    return dtype


def unknown(x: Any) -> DtypeError:
    """The error for an `x` that names no element type."""
    # ``jnp.zeros(2, 3)`` takes 3 for a dtype.
    if type(x) is int:
        return DtypeError(
            f"{x!r} is no element type of arrays: it was given in the place of dtype",
            instead="a tuple, as in (2, 3), for several lengths or axes",
            dtype=x,
        )
    return DtypeError(
        f"{x!r} is no element type of arrays",
        instead="one of " + ", ".join(name for name in _by_name if "_" not in name) + ", or a float8/float4 type",
        dtype=x,
    )


def too_large(x: float, dtype: Dtype, where: str = "") -> NumberRangeError:
    """The error for a Python number that this element type cannot hold; the message begins with `where`."""
    shown = f"of {x.bit_length()} bits" if isinstance(x, int) and abs(x) >= 2**128 else str(x)
    return NumberRangeError(
        f"{where}Python {'int' if isinstance(x, int) else 'float'} {shown} too large to convert to {dtype.name}",
        instead="an array of another dtype, as in phlox.numpy.uint32(...), or a float; 64 bits need "
        "phlox.config.update('enable_x64', True)",
        value=x,
        dtype=dtype,
    )


def is_wide(dtype: Dtype) -> bool:
    """Whether arrays can have this dtype in 64-bit mode only."""
    return dtype in NARROW


def canonical(dtype: Dtype) -> Dtype:
    """`dtype`, or its 32-bit counterpart when 64-bit mode is off."""
    if dtype in NARROW and not config.current().enable_x64:
        return NARROW[dtype]
    return dtype


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Dtype:
    """The element type of an array that is created with `dtype` under the current 64-bit setting (as
    ``jax.dtypes.canonicalize_dtype``).

    Args:
      dtype: a dtype or its name.
      allow_extended_dtype: whether to accept dtypes of PRNG keys.

    Returns:
      The 32-bit counterpart of a 64-bit dtype if `enable_x64` is off, else `dtype`.

    Raises:
      DtypeError: `dtype` is no dtype, or is a dtype of PRNG keys and `allow_extended_dtype` is False.

    >>> canonicalize_dtype("float64")
    dtype('float32')
    """
    element_type = as_dtype(dtype)
    if is_extended(element_type) and not allow_extended_dtype:
        raise DtypeError(
            f"canonicalize_dtype: extended element type {element_type} is not allowed here", dtype=element_type
        )
    return canonical(element_type)


def user_dtype(dtype: Any, function: str = "") -> Dtype:
    """`canonical(as_dtype(dtype))`; the flag `explicit_x64_dtypes` says what becomes of a named 64-bit dtype.

    By default a warning says that the result has 32 bits.
    """
    requested = as_dtype(dtype)
    result = canonical(requested)
    # `float` asks for the default float, of whichever width; only a named 64-bit dtype is a loss.
    if result is not requested and result != requested and not (isinstance(dtype, type) and dtype in _PYTHON):
        mode = config.current().explicit_x64_dtypes
        if mode == "allow":
            return requested
        if mode == "error":
            raise DtypeError(
                f"{function + ': ' if function else ''}Explicitly requested dtype {requested.name} is not available",
                instead=f"{result.name}, or phlox.config.update('explicit_x64_dtypes', 'allow')",
                dtype=requested,
            )
        # The first words are those of JAX, for which programs filter.
        warn(
            f"Explicitly requested dtype {requested.name}{' requested in ' + function if function else ''} is not "
            f"available, and will be truncated to dtype {result.name}. To enable more dtypes, set "
            "phlox.config.update('enable_x64', True) or PHLOX_ENABLE_X64=1, or phlox.config.update("
            "'explicit_x64_dtypes', 'allow') for those that are named",
            UserWarning,
        )
    return result


def optional_dtype(dtype: Any, function: str = "") -> Dtype | None:
    """`user_dtype(dtype)`; None for None."""
    return None if dtype is None else user_dtype(dtype, function)


def float_dtype(dtype: Any, function: str = "") -> Dtype:
    """`user_dtype(dtype)`; the default float for None."""
    return canonical(float64) if dtype is None else user_dtype(dtype, function)


def int_dtype(dtype: Any, function: str = "") -> Dtype:
    """`user_dtype(dtype)`; the default integer for None."""
    return canonical(int64) if dtype is None else user_dtype(dtype, function)


def python_scalar_dtype(kind_of: type) -> np.dtype:
    """Canonical element type of Python's bool, int, float or complex."""
    return canonical(_PYTHON[kind_of])


def to_inexact(dtype: Dtype) -> Dtype:
    """`dtype` if floating or complex, else float32, or float64 for 64-bit integers."""
    if is_inexact(dtype):
        return dtype
    if dtype == float0:
        raise DtypeError(NO_FLOAT0, instead=INSTEAD_OF_FLOAT0, dtype=dtype)
    # As in JAX: float32 for small integers too, where NumPy takes float16 or float64.
    return apply_x64_mode(float64) if dtype.itemsize == 8 else float32


def apply_x64_mode(dtype: Dtype) -> Dtype:
    """`dtype` if the flag `explicit_x64_dtypes` allows 64 bits, else its canonical form."""
    return dtype if config.current().explicit_x64_dtypes == "allow" else canonical(dtype)


def real_part(dtype: Dtype) -> Dtype:
    """The type of the real part: complex64 gives float32."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def to_complex(dtype: Dtype) -> Dtype:
    """The complex type that values of `dtype` convert to. Floats of 64 bits keep them also outside of 64-bit mode."""
    if _kind.get(dtype) == "c":
        return dtype
    return complex128 if to_inexact(dtype) == float64 else complex64


_SHORT = (("uint", "u"), ("int", "i"), ("complex", "c"), ("bfloat", "bf"), ("float", "f"))
_short: dict[Dtype, str] = {}


def full_name(dtype: Dtype) -> str:
    """The full name: float32, int8, float0, key<fry>."""
    return "float0" if isinstance(dtype, np.dtype) and dtype == float0 else dtype.name


def short_name(dtype: Dtype) -> str:
    """The abbreviation used in printed programs: f32, bf16, i8, u4, bool, key<fry>."""
    name = _short.get(dtype)
    if name is None:
        name = full_name(dtype)
        if dtype != float0:
            for long, brief in _SHORT:
                if name.startswith(long):
                    name = brief + name[len(long) :]
                    break
        _short[dtype] = name
    return name


def element_text(dtype: Dtype) -> str:
    """The element type in StableHLO text: f32, ui8, i1, complex<f32>, f8E4M3FN."""
    name = dtype.name
    letter = kind(dtype)
    if letter in ("b", "0"):
        return "i1"
    if name in ("int1", "uint1"):  # MLIR reads i1 as bool
        raise DtypeError(f"{name}: the compiler has no numbers of one bit", instead="bool, int2 or uint2", dtype=dtype)
    if letter == "i":
        return "i" + name[3:]
    if letter == "u":
        return "ui" + name[4:]
    if letter == "c":
        # A complex number of n bytes has two floats of 4n bits.
        return f"complex<f{dtype.itemsize * 4}>"
    if dtype == bfloat16:
        return "bf16"
    # float8_e4m3fn is f8E4M3FN in MLIR.
    width, _, layout = name[5:].partition("_")
    return f"f{width}{layout.upper()}"


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """True when element type `arg1` belongs to the (possibly abstract) type `arg2`.

    Like `numpy.issubdtype`, with bfloat16 and float8 as floating, int4 as signed integer, and PRNG keys under
    ``dtypes.prng_key``.

    Args:
      arg1: a dtype, its name or a scalar type.
      arg2: as `arg1`, or an abstract type such as ``numpy.floating``.

    Returns:
      A Python bool.

    >>> issubdtype("bfloat16", np.floating), issubdtype(np.int8, np.floating)
    (True, False)
    """
    try:
        return _is_subtype(arg1, arg2)
    except TypeError:  # an argument that is not hashable cannot be a cache key; for other mistakes this raises again
        return _is_subtype.__wrapped__(arg1, arg2)


@functools.lru_cache(1024, typed=True)
def _is_subtype(arg1: Any, arg2: Any) -> bool:
    first = _type_of(arg1)
    second = _type_of(arg2)
    if isinstance(first, type) and isinstance(second, type):
        return issubclass(first, second)
    if isinstance(second, np.dtype | ExtendedDtype):
        return first == second
    abstract: tuple[type, ...] = {
        "f": (np.floating,),
        "i": (np.signedinteger,),
        "u": (np.unsignedinteger,),
        "k": (first.type,) if isinstance(first, ExtendedDtype) else (),
    }.get(kind(first), (first.type,))
    return any(issubclass(one, second) for one in abstract)


def _type_of(x: Any) -> Any:
    """An abstract NumPy class as it is, anything else as its dtype."""
    if isinstance(x, type) and issubclass(x, extended):
        return x
    if isinstance(x, type) and issubclass(x, np.generic):
        try:
            dtype = np.dtype(x)
        except TypeError:
            return x
        return dtype if dtype in _kind and dtype.type is x else x
    try:
        return as_dtype(x)
    except DtypeError:  # no element type of arrays, but a dtype of NumPy: object, str, datetime64
        if isinstance(x, str | type | np.dtype):
            try:
                return np.dtype(x).type
            except TypeError:
                pass
        raise


def tangent_dtype(dtype: Dtype) -> Dtype:
    """The element type of tangents of `dtype`: itself where derivatives exist, else float0."""
    if is_extended(dtype):
        return dtype.tangent
    return dtype if is_inexact(dtype) else float0


def itemsize_bits(dtype: Any) -> int:
    """Number of bits of one element in device memory (as ``jax.dtypes.itemsize_bits``).

    Args:
      dtype: a dtype or its name.

    Returns:
      The number of bits; 8 for bool.

    Raises:
      DtypeError: `dtype` is no dtype.

    >>> itemsize_bits("int4"), itemsize_bits("float32")
    (4, 32)
    """
    return bits(as_dtype(dtype))


def bits(dtype: Dtype) -> int:
    """Number of bits of one element."""
    # Not by `itemsize`: ml_dtypes stores each element of fewer than 8 bits in a byte.
    if kind(dtype) == "f":
        return int(finfo(dtype).bits)
    if kind(dtype) in "iu":
        return int(iinfo(dtype).bits)
    return int(dtype.itemsize * 8)


def finfo(dtype: Dtype) -> Any:
    """Limits of a floating element type: eps, max, min, tiny, bits, nmant …"""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def holds(dtype: Dtype, number: int) -> bool:
    """Whether an integer dtype holds a number. Floats hold none: their conversion rounds."""
    if kind(dtype) not in "iu":
        return False
    limits = iinfo(dtype)
    return bool(limits.min <= number <= limits.max)


def iinfo(dtype: Dtype) -> Any:
    """Limits of an integer element type: min, max, bits."""
    return ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]


def byte_sized(dtype: Dtype) -> Dtype:
    """The dtype that XLA's sorts and reductions of several operands need in place of one of fewer than 8 bits.

    It holds the same numbers. Any other dtype is returned as it is.
    """
    if is_extended(dtype) or bits(dtype) >= 8:
        return dtype
    # float32 holds all numbers of the floats of 4 and 6 bits.
    return {"i": int8, "u": uint8, "f": float32}[kind(dtype)]


@functools.lru_cache
def has_infinity(dtype: Dtype) -> bool:
    """Whether a float element type has infinities. Some of 8 bits and fewer have none, and convert them to nan."""
    return bool(np.isinf(np.asarray(np.inf).astype(dtype).astype(np.float64)))


def lowest(dtype: Dtype) -> Any:
    """The neutral element of a maximum: minus infinity, or the least value of a type without it."""
    return _extreme(dtype, -np.inf, "min")


def highest(dtype: Dtype) -> Any:
    """The neutral element of a minimum: infinity, or the greatest value of a type without it."""
    return _extreme(dtype, np.inf, "max")


@functools.lru_cache
def _extreme(dtype: Dtype, infinity: float, limit: str) -> Any:
    letter = kind(dtype)
    if letter == "k":
        raise DtypeError(f"{dtype} has no order")
    if letter == "b":
        return limit == "max"
    if letter in "iu":
        return getattr(iinfo(dtype), limit)
    return infinity if letter == "c" or has_infinity(dtype) else float(getattr(finfo(dtype), limit))
