"""``jax._src.numpy.util``: checks of operands, and their promotion to one dtype and one rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phlox import Array
from phlox.numpy import asarray

from .._core import check_arrays, promote_dtypes as _promote, promote_inexact, promoted, promoted_inexact


def _arrays(values: Sequence[Any]) -> list[Array]:
    # Core keeps numbers, which are literals of programs.
    return [asarray(x) for x in values]


def promote_dtypes(*args: Any) -> list[Array]:
    """The arguments as arrays of their common dtype."""
    return _arrays(_promote(*args))


def promote_dtypes_inexact(*args: Any) -> list[Array]:
    """Like `promote_dtypes`, but integers and bools become floats."""
    return _arrays(promote_inexact(*args))


def promote_dtypes_complex(*args: Any) -> list[Array]:
    """Like `promote_dtypes`, but all dtypes become complex."""
    return _arrays(_promote(*promote_inexact(*args), 1j)[:-1])


def promote_args(fun_name: str, *args: Any) -> list[Array]:
    """The arguments checked, and converted to one dtype and one rank."""
    return _arrays(promoted(fun_name, *args))


def promote_args_inexact(fun_name: str, *args: Any) -> list[Array]:
    """Like `promote_args`, but integers and bools become floats."""
    return _arrays(promoted_inexact(fun_name, *args))


def check_arraylike(fun_name: str, *args: Any, emit_warning: bool = False, stacklevel: int = 3) -> None:
    """Raises if an argument is neither an array nor a number."""
    check_arrays(fun_name, *args)


def ensure_arraylike(fun_name: str, *args: Any) -> Any:
    """The argument as an array, or the tuple of several; raises if one is neither an array nor a number."""
    arrays = tuple(_arrays(check_arrays(fun_name, *args)))
    return arrays[0] if len(arrays) == 1 else arrays
