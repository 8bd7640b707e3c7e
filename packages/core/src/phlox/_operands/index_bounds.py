"""Checks that indices lie inside of their arrays, for the flags `checks` and `check_static_indices`.

Indices that are known when they are written (Python's numbers, NumPy's arrays) are checked by default, others in strict
mode: those of arrays at once, traced ones while the program runs. Only expressions of the user are checked: phlox's own
functions make use of what happens out of bounds.
"""

from __future__ import annotations

import math
import os
import sys
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from .._base import checks, config
from .._base.errors import CheckError, IndexingError
from .._base.source import Location, is_internal, user_location
from .._ir.avals import typeof_value
from .._ir.dimensions import is_symbolic
from .._trace.trace import Tracer
from .._xla.array import ArrayImpl
from .checks import canonical_axis
from .runtime_checks import check_when_run

_CHECK = "index out of bounds"


class Access(NamedTuple):
    """The use of an index: what happens out of bounds, what to write instead, and whether elements are only read."""

    effect: str
    instead: str
    reads: bool = False


READ = Access("the nearest element is read", "x.at[i].get(mode='clip' or 'fill')", reads=True)
WRITE = Access("nothing is written", "x.at[i].set(value, mode='drop')")
FILL = Access("nan, or the smallest integer, is returned", "mode='clip' or 'fill'", reads=True)
PUT = Access("the value is written to the nearest element", "mode='clip'")
INSERT = Access("the value is inserted at the nearest end", "phlox.numpy.clip(i, 0, size)")
MOVE = Access("the slice is moved so that it lies inside", "phlox.numpy.clip(start, 0, size - length)")

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
#: classes of indices that are known when they are written
_KNOWN = (int, np.generic, np.ndarray)
#: the files through which an expression of the user reaches this module
_ENTRANCES = (
    *(os.path.join(_PACKAGE, "numpy", "_indexing", name) for name in ("reading.py", "at.py", "plan.py")),
    os.path.join(_PACKAGE, "numpy", "_arrays", "functions.py"),
    os.path.join(_PACKAGE, "_trace", "array_operators.py"),
    os.path.join(_PACKAGE, "_trace", "array_methods.py"),
    os.path.join(_PACKAGE, "lax", "_slices.py"),
    os.path.join(_PACKAGE, "lax", "_conveniences.py"),
    __file__,
)
#: (file, function) of those that check indices, in files whose other functions index for themselves
_ENTRANCE_FUNCTIONS = {
    (os.path.join(_PACKAGE, "numpy", "_indexing", "places.py"), "put"),
    (os.path.join(_PACKAGE, "numpy", "_indexing", "places.py"), "put_along_axis"),
    (os.path.join(_PACKAGE, "numpy", "_manipulation", "edit.py"), "insert"),
}


def _is_from_user() -> bool:
    """Whether the index is part of an expression of the user."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_entrance(frame.f_code):
        frame = frame.f_back
    return not is_internal(frame.f_code.co_filename)


def _is_entrance(code: CodeType) -> bool:
    return code.co_filename in _ENTRANCES or (code.co_filename, code.co_name) in _ENTRANCE_FUNCTIONS


def check(i: Any, axis: int, shape: tuple[Any, ...], access: Access, wraps: bool = True, length: int = 1) -> None:
    """Checks an index along an axis of an array of this shape.

    Args:
      i: a Python integer, an array of NumPy, or an array; traced or not.
      axis: number of the axis.
      shape: shape of the array.
      access: what the index is for.
      wraps: whether negative indices count from the end.
      length: number of elements that are selected from the index on. With 0 the index may be the size of the axis.

    Raises:
      IndexingError: a Python integer is out of bounds, and the flag `check_static_indices` is on.
      CheckError: an index is out of bounds, and checks are strict.
    """
    if not isinstance(i, _KNOWN):
        if config.current().checks == "strict" and not is_symbolic(shape[axis]) and _is_from_user():
            values_check = _Check(axis, shape, access, wraps, length, user_location())
            if isinstance(i, Tracer):
                check_when_run(values_check, i)
            else:
                values_check(i)
        return
    if is_symbolic(shape[axis]):
        return
    first = _first_outside(i, shape[axis], wraps, length)
    if first is None:
        return
    if access.reads and type(i) is int and config.current().check_static_indices:
        raise IndexingError(
            f"index {first} out of bounds for axis {axis} with size {shape[axis]}",
            instead="a position in the array, or x.at[i].get(mode='clip' or 'fill')",
            index=first,
            shapes=[shape],
        )
    if checks.is_on() and _is_from_user():
        where = user_location()
        message, instead = _Check(axis, shape, access, wraps, length, where).texts(first)
        checks.report(_CHECK, message, instead=instead, location=where)


def check_positions(
    function: str, a: Any, indices: Any, axis: int | None, access: Access, wraps: bool = True, length: int = 1
) -> None:
    """Checks the indices of a function along an axis of `a` (None: of the flattened array); see `check`.

    Returns at once if they are an array of phlox that is not traced, and checks are not strict.
    """
    if type(indices) is ArrayImpl and not checks.is_strict():
        return
    aval = typeof_value(a)
    if aval is None or typeof_value(indices) is None or not isinstance(axis, int | None):
        return  # which raises an error
    shape = aval.shape if axis is not None else (math.prod(aval.shape),)
    check(indices, canonical_axis(axis or 0, len(shape), function), shape, access, wraps, length)


def report_slice(part: slice, axis: int, shape: tuple[int, ...], access: Access) -> None:
    """Reports a slice that lies outside of the array."""
    if checks.is_on() and _is_from_user():
        text = ":".join("" if n is None else str(n) for n in (part.start, part.stop, part.step)).removesuffix(":")
        what = "nothing is read" if access.reads else access.effect
        checks.report(
            _CHECK,
            f"the slice {text} is outside of axis {axis} with size {shape[axis]} of an array of shape {shape}: {what}",
            instead=f"a slice that begins between 0 and {shape[axis]}",
        )


def is_outside(part: slice, n: int) -> bool:
    """Whether a slice of Python integers begins and ends on the same side out of an axis of length `n`."""
    start, stop = part.start, part.stop
    if start is None:
        return False
    return bool(start > n and (stop is None or stop > n)) or bool(start < -n and stop is not None and stop < -n)


class _Check(NamedTuple):
    """The check of one index expression; its call, with the values of the index, raises `CheckError`."""

    axis: int
    shape: tuple[int, ...]
    access: Access
    wraps: bool
    length: int
    where: Location | None

    def __call__(self, values: Any) -> None:
        first = _first_outside(np.asarray(values), self.shape[self.axis], self.wraps, self.length)
        if first is not None:
            message, instead = self.texts(first)
            raise CheckError(message, where=self.where, instead=instead, check=_CHECK)

    def texts(self, index: int) -> tuple[str, str]:
        """The report of an index that is out of bounds, and the expression to write instead."""
        n, effect = self.shape[self.axis], self.access.effect
        what = f"index {index}" if self.length <= 1 else f"a slice of length {self.length} from index {index} on"
        valid = f"an index from {-n if self.wraps else 0} to {n - self.length}"
        message = (
            f"{what} is out of bounds for axis {self.axis} with size {n} of an array of shape {self.shape}: {effect}"
        )
        return message, f"{valid}; or {self.access.instead}, where it is meant"


def _first_outside(i: Any, n: int, wraps: bool, length: int) -> int | None:
    """The first of the indices for which the elements from it on do not all lie inside; None if there is none."""
    if isinstance(i, int):
        front = i + n if wraps and i < 0 else i
        return None if 0 <= front <= n - length else i
    if not i.size or i.dtype == np.bool_:
        return None
    # Most indices are inside, and two reductions tell.
    low, high = int(i.min()), int(i.max())
    if low >= 0 and high <= n - length:
        return None
    # Small dtypes would overflow when `n` is added.
    values = i.astype(np.int64)
    front = np.where(values < 0, values + n, values) if wraps else values
    outside = values[(front < 0) | (front > n - length)]
    return int(outside.flat[0]) if outside.size else None
