"""Definitions of elementwise NumPy functions: from a name, a promotion, a computation and the docstring's summary.

The other parts of the docstring are generated: arguments, shape and dtype of the result, errors, the example.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._api.jit.jit import jit
from ..._operands.promotion import promoted_inexact
from ...typing import Array, ArrayLike

if TYPE_CHECKING:
    from ..._api.jit.stages import Jitted

Prepare = Callable[..., Sequence[Any]]

#: for docstrings: the dtype of the result of functions that convert integers to floats
AS_FLOAT = "its dtype; float32 for integers and bools, float64 for 64-bit integers"
PROMOTED_AS_FLOAT = "the promoted dtype; float32 for integers and bools, float64 for 64-bit integers"
REAL_PART = "its dtype; complex64 gives float32, complex128 gives float64"


def _shown(value: Any, dtype: str, weak: bool) -> str:
    return f"Array({value}, dtype={dtype}{', weak_type=True' if weak else ''})"


def float32_repr(value: str, weak: bool = True) -> str:
    """The repr of a float32 result of Python floats, for an example; `value` is its printed number."""
    return _shown(value, "float32", weak)


def int32_repr(value: str) -> str:
    """The repr of an int32 result of Python integers, for an example."""
    return _shown(value, "int32", weak=True)


def bool_repr(value: bool, weak: bool = True) -> str:
    """The repr of a bool result, for an example."""
    return _shown(value, "bool", weak)


def define_unary(
    name: str,
    prepare: Prepare,
    apply: Callable[[Any], Any],
    summary: str,
    example: str,
    result: str,
    *,
    dtype: str = "",
    raises: str = "",
    is_ufunc: bool = False,
) -> Jitted[[ArrayLike], Array]:
    """The jitted function ``name(x)``, which calls `apply` with the result of ``prepare(name, x)``.

    Args:
      summary, example, result: for the docstring: the first sentence, the arguments of a call, its result as printed.
      dtype: for the docstring: the dtype of the result; by default what `prepare` and `result` imply.
      raises: for the docstring: the condition under which a `DtypeError` is raised.
      is_ufunc: for the docstring: whether the public object is a `ufunc` (see `ufuncs.py`), which takes `*args`, `out`
        and `where`.
    """

    def function(x: ArrayLike, /) -> Array:
        return apply(*prepare(name, x))

    entries = f"{'*args: the operand `x`' if is_ufunc else 'x'}: an array of any shape, or a number."
    returns = f"An array of the shape of `x`, of {dtype or _dtype(prepare, result, AS_FLOAT, 'its dtype')}."
    return _finish(function, name, summary, "", entries, returns, raises, example, result, is_ufunc)


def define_binary(
    name: str,
    prepare: Prepare,
    apply: Callable[[Any, Any], Any],
    summary: str,
    example: str,
    result: str,
    *,
    note: str = "",
    dtype: str = "",
    raises: str = "",
    is_ufunc: bool = False,
) -> Jitted[[ArrayLike, ArrayLike], Array]:
    """The jitted function ``name(x, y)``: `apply` of what ``prepare(name, x, y)`` returns. See `define_unary`."""

    def function(x: ArrayLike, y: ArrayLike, /) -> Array:
        return apply(*prepare(name, x, y))

    if is_ufunc:
        entries = "*args: the operands `x` and `y`: arrays or numbers that broadcast against each other."
    else:
        entries = "x, y: arrays or numbers that broadcast against each other; they are promoted to one dtype."
    dtype = dtype or _dtype(prepare, result, PROMOTED_AS_FLOAT, "the promoted dtype")
    returns = f"An array of the broadcast shape, of {dtype}."
    return _finish(function, name, summary, note, entries, returns, raises, example, result, is_ufunc)


def _dtype(prepare: Prepare, result: str, as_float: str, otherwise: str) -> str:
    """For docstrings: the dtype of the result that `prepare` and the printed `result` imply."""
    if "dtype=bool" in result:
        return "dtype bool"
    return as_float if prepare is promoted_inexact else otherwise


def _finish(
    function: Callable[..., Any],
    name: str,
    summary: str,
    note: str,
    entries: str,
    returns: str,
    raises: str,
    example: str,
    result: str,
    is_ufunc: bool,
) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "phlox.numpy"
    errors = f"  DtypeError: {raises}.\n" if raises else ""
    if is_ufunc:
        entries += "\n  out, where: not supported, must be None."
        errors += "  UnsupportedError: `out` or `where` is not None.\n"
    note = f"{note}\n\n" if note else ""
    if errors:
        errors = f"Raises:\n{errors}\n"
    mirrored = f" (as ``numpy.{name}``)" if hasattr(np, name) else ""
    function.__doc__ = (
        f"{summary}, elementwise{mirrored}.\n\n{note}Args:\n  {entries}\n\nReturns:\n  {returns}\n\n"
        f"{errors}>>> jnp.{name}({example})\n{result}\n"
    )
    # Called eagerly it runs one compiled program. In a trace its operations are written into the outer program, so that
    # jaxprs have no calls of such small functions.
    return jit(function, inline=True)
