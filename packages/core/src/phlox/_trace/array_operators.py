"""The operators of arrays and tracers: arithmetic, comparisons, indexing, iteration.

An operator with two operands calls the jitted function inside of the ufunc of `phlox.numpy` at once if the class of the
other operand is in `OPERANDS`, as nearly always. Other objects go through `operate`, which converts them or returns
NotImplemented. `numpy/_arrays/functions.py` puts these functions into the module `numpy_functions`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import ArgumentError
from . import numpy_functions as fn

if TYPE_CHECKING:
    from ..numpy._indexing.plan import Index
    from ..typing import Array, ArrayLike

#: classes of operands that need no conversion and no check: Python numbers, NumPy arrays, arrays and tracers of phlox
OPERANDS: set[type] = {bool, int, float, complex, np.ndarray}


class ArrayOperators:
    """The operators of arrays and tracers. `self` is an `Array` or a `Tracer`."""

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Arrays and the tracers of all transformations are operands of each other.
        OPERANDS.add(cls)

    # -- arithmetic

    def __neg__(self: Any) -> Array:
        return fn.negative(self)

    def __pos__(self: Any) -> Array:
        return fn.positive(self)

    def __abs__(self: Any) -> Array:
        return fn.abs(self)

    def __invert__(self: Any) -> Array:
        return fn.invert(self)

    def __round__(self: Any, ndigits: int | None = None) -> Array:
        """Python's `round`: integers if `ndigits` is None, else numbers rounded to this many decimals."""
        return fn.astype(fn.round(self), int) if ndigits is None else fn.round(self, ndigits)

    def __add__(self: Any, other: ArrayLike) -> Array:
        return fn.add(self, other) if type(other) in OPERANDS else fn.operate(fn.add, self, other)

    def __radd__(self: Any, other: ArrayLike) -> Array:
        return fn.add(other, self) if type(other) in OPERANDS else fn.reflected(fn.add, self, other)

    def __sub__(self: Any, other: ArrayLike) -> Array:
        return fn.subtract(self, other) if type(other) in OPERANDS else fn.operate(fn.subtract, self, other)

    def __rsub__(self: Any, other: ArrayLike) -> Array:
        return fn.subtract(other, self) if type(other) in OPERANDS else fn.reflected(fn.subtract, self, other)

    def __mul__(self: Any, other: ArrayLike) -> Array:
        return fn.multiply(self, other) if type(other) in OPERANDS else fn.operate(fn.multiply, self, other)

    def __rmul__(self: Any, other: ArrayLike) -> Array:
        return fn.multiply(other, self) if type(other) in OPERANDS else fn.reflected(fn.multiply, self, other)

    def __truediv__(self: Any, other: ArrayLike) -> Array:
        return fn.true_divide(self, other) if type(other) in OPERANDS else fn.operate(fn.true_divide, self, other)

    def __rtruediv__(self: Any, other: ArrayLike) -> Array:
        return fn.true_divide(other, self) if type(other) in OPERANDS else fn.reflected(fn.true_divide, self, other)

    def __floordiv__(self: Any, other: ArrayLike) -> Array:
        return fn.floor_divide(self, other) if type(other) in OPERANDS else fn.operate(fn.floor_divide, self, other)

    def __rfloordiv__(self: Any, other: ArrayLike) -> Array:
        return fn.floor_divide(other, self) if type(other) in OPERANDS else fn.reflected(fn.floor_divide, self, other)

    def __mod__(self: Any, other: ArrayLike) -> Array:
        return fn.remainder(self, other) if type(other) in OPERANDS else fn.operate(fn.remainder, self, other)

    def __rmod__(self: Any, other: ArrayLike) -> Array:
        return fn.remainder(other, self) if type(other) in OPERANDS else fn.reflected(fn.remainder, self, other)

    def __divmod__(self: Any, other: ArrayLike) -> tuple[Array, Array]:
        return fn.divmod(self, other) if type(other) in OPERANDS else fn.operate(fn.divmod, self, other)

    def __rdivmod__(self: Any, other: ArrayLike) -> tuple[Array, Array]:
        return fn.divmod(other, self) if type(other) in OPERANDS else fn.reflected(fn.divmod, self, other)

    def __pow__(self: Any, other: ArrayLike) -> Array:
        return fn.power(self, other) if type(other) in OPERANDS else fn.operate(fn.power, self, other)

    def __rpow__(self: Any, other: ArrayLike) -> Array:
        return fn.power(other, self) if type(other) in OPERANDS else fn.reflected(fn.power, self, other)

    def __matmul__(self: Any, other: ArrayLike) -> Array:
        return fn.product(self, other) if type(other) in OPERANDS else fn.operate(fn.product, self, other)

    def __rmatmul__(self: Any, other: ArrayLike) -> Array:
        return fn.product(other, self) if type(other) in OPERANDS else fn.reflected(fn.product, self, other)

    def __and__(self: Any, other: ArrayLike) -> Array:
        return fn.bitwise_and(self, other) if type(other) in OPERANDS else fn.operate(fn.bitwise_and, self, other)

    def __rand__(self: Any, other: ArrayLike) -> Array:
        return fn.bitwise_and(other, self) if type(other) in OPERANDS else fn.reflected(fn.bitwise_and, self, other)

    def __or__(self: Any, other: ArrayLike) -> Array:
        return fn.bitwise_or(self, other) if type(other) in OPERANDS else fn.operate(fn.bitwise_or, self, other)

    def __ror__(self: Any, other: ArrayLike) -> Array:
        return fn.bitwise_or(other, self) if type(other) in OPERANDS else fn.reflected(fn.bitwise_or, self, other)

    def __xor__(self: Any, other: ArrayLike) -> Array:
        return fn.bitwise_xor(self, other) if type(other) in OPERANDS else fn.operate(fn.bitwise_xor, self, other)

    def __rxor__(self: Any, other: ArrayLike) -> Array:
        return fn.bitwise_xor(other, self) if type(other) in OPERANDS else fn.reflected(fn.bitwise_xor, self, other)

    def __lshift__(self: Any, other: ArrayLike) -> Array:
        return fn.left_shift(self, other) if type(other) in OPERANDS else fn.operate(fn.left_shift, self, other)

    def __rlshift__(self: Any, other: ArrayLike) -> Array:
        return fn.left_shift(other, self) if type(other) in OPERANDS else fn.reflected(fn.left_shift, self, other)

    def __rshift__(self: Any, other: ArrayLike) -> Array:
        return fn.right_shift(self, other) if type(other) in OPERANDS else fn.operate(fn.right_shift, self, other)

    def __rrshift__(self: Any, other: ArrayLike) -> Array:
        return fn.right_shift(other, self) if type(other) in OPERANDS else fn.reflected(fn.right_shift, self, other)

    # -- comparisons

    # An array cannot be a key of a dict, as its == gives an array.
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self: Any, other: ArrayLike) -> Array:  # type: ignore[override]
        return fn.equal(self, other) if type(other) in OPERANDS else fn.compare(fn.equal, self, other)

    def __ne__(self: Any, other: ArrayLike) -> Array:  # type: ignore[override]
        return fn.not_equal(self, other) if type(other) in OPERANDS else fn.compare(fn.not_equal, self, other)

    def __lt__(self: Any, other: ArrayLike) -> Array:
        return fn.less(self, other) if type(other) in OPERANDS else fn.operate(fn.less, self, other)

    def __le__(self: Any, other: ArrayLike) -> Array:
        return fn.less_equal(self, other) if type(other) in OPERANDS else fn.operate(fn.less_equal, self, other)

    def __gt__(self: Any, other: ArrayLike) -> Array:
        return fn.greater(self, other) if type(other) in OPERANDS else fn.operate(fn.greater, self, other)

    def __ge__(self: Any, other: ArrayLike) -> Array:
        return fn.greater_equal(self, other) if type(other) in OPERANDS else fn.operate(fn.greater_equal, self, other)

    # -- elements

    def __getitem__(self: Any, index: Index) -> Array:
        return fn.getitem(self, index)

    def __iter__(self: Any) -> Iterator[Array]:
        return fn.iterate(self)

    def __contains__(self: Any, other: ArrayLike) -> Array:
        """Whether an element of a vector equals the scalar `other`. Raises for other shapes."""
        return fn.contains(self, other)

    # Type checkers do not see these two, and report their use. If they were typed NoReturn, a checker would skip all
    # that follows ``x[0] = 1`` in the user's function.
    if not TYPE_CHECKING:

        def __setitem__(self, index, value):
            raise _refused_assignment(index, value, sys._getframe(1).f_globals.get("__name__", ""))

        def __delitem__(self, index):
            raise ArgumentError(
                f"{type(self).__name__!r} object doesn't support item deletion: arrays do not change in place",
                instead="x = phlox.numpy.delete(x, index)",
            )


#: JAX's words, for which tests of libraries look
_IMMUTABLE = "JAX arrays are immutable and do not support in-place item assignment"


def _refused_assignment(index: Any, value: Any, module: str) -> ArgumentError:
    """The error for ``x[index] = value`` in a module of this name."""
    instead = f"x = x.at[{_index_text(index)}].set({_text(value, 'value')})"
    if "array_api_extra" in module:  # part of SciPy, too
        # It knows by jax's classes alone which arrays cannot be changed.
        instead = "phlox.as_jax.install() before anything is imported: this library then uses x.at, as with jax"
    return ArgumentError(_IMMUTABLE, instead=instead)


def _index_text(index: Any) -> str:
    """The index as source text: ``0``, ``1:, None``; its longer parts as ``index``."""
    if isinstance(index, tuple) and index:
        return ", ".join(_index_text(part) for part in index) + ("," if len(index) == 1 else "")
    if isinstance(index, slice):
        start, stop, step = ("" if n is None else _text(n, "n") for n in (index.start, index.stop, index.step))
        return f"{start}:{stop}" + (f":{step}" if step else "")
    return "..." if index is Ellipsis else _text(index, "index")


def _text(value: Any, name: str) -> str:
    """A Python number, None or short list as source text; `name` for anything else."""
    return (
        repr(value) if type(value) in (bool, int, float, complex, type(None), list) and len(repr(value)) < 20 else name
    )
