"""Definitions of elementwise NumPy functions: from a name, a promotion, a computation and the docstring's summary.

The other parts of the docstring are generated: arguments, shape and dtype of the result, errors, the example.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._api.jit.jit import jit
from ..._operands.promotion import promoted_inexact
from ...typing import Array, ArrayLike

if TYPE_CHECKING:
    from ..._api.jit.stages import Jitted

Prepare = Callable[..., Sequence[Any]]

_AS_FLOAT = "; float32 for integers and bools, float64 for 64-bit integers"
#: for docstrings: the dtype of the result of functions that convert integers to floats
AS_FLOAT, PROMOTED_AS_FLOAT = f"its dtype{_AS_FLOAT}", f"the promoted dtype{_AS_FLOAT}"
REAL_PART = "its dtype; complex64 gives float32, complex128 gives float64"


class _Operands(NamedTuple):
    """What a docstring says of the operands, and of the shape and the dtype that a result has from them."""

    names: str
    named: str
    what: str
    shape: str
    dtype: str


_ONE = _Operands("x", "the operand `x`", "an array of any shape, or a number", "the shape of `x`", "its dtype")
_TWO = _Operands(
    "x, y",
    "the operands `x` and `y`",
    "arrays or numbers that broadcast against each other; they are promoted to one dtype",
    "the broadcast shape",
    "the promoted dtype",
)


def define_unary(
    name: str, prepare: Prepare, apply: Callable[[Any], Any], summary: str, example: str, result: str, **options: Any
) -> Jitted[[ArrayLike], Array]:
    """The jitted function ``name(x)``, which calls `apply` with the result of ``prepare(name, x)``. See `_finish`."""

    def function(x: ArrayLike, /) -> Array:
        return apply(*prepare(name, x))

    return _finish(function, name, prepare, _ONE, summary, example, result, **options)


def define_binary(
    name: str, prepare: Prepare, apply: Callable[..., Any], summary: str, example: str, result: str, **options: Any
) -> Jitted[[ArrayLike, ArrayLike], Array]:
    """The jitted function ``name(x, y)``: `apply` of what ``prepare(name, x, y)`` returns. See `_finish`."""

    def function(x: ArrayLike, y: ArrayLike, /) -> Array:
        return apply(*prepare(name, x, y))

    return _finish(function, name, prepare, _TWO, summary, example, result, **options)


def _finish(
    function: Callable[..., Any],
    name: str,
    prepare: Prepare,
    operands: _Operands,
    summary: str,
    example: str,
    result: str,
    *,
    weak: bool = True,
    note: str = "",
    dtype: str = "",
    raises: str = "",
    is_ufunc: bool = False,
) -> Any:
    """The jitted function, with its name and docstring.

    Args:
      summary, example, result: the first sentence, the arguments of a call, the number that it returns as printed.
      weak: whether that number is weakly typed.
      note: what follows the first sentence.
      dtype: the dtype of the result; by default what `prepare` and `result` imply.
      raises: the condition under which a `DtypeError` is raised.
      is_ufunc: whether the public object is a `ufunc` (see `ufuncs.py`), which takes `*args`, `out` and `where`.
    """
    function.__name__ = function.__qualname__ = name
    function.__module__ = "phlox.numpy"
    kind = "bool" if result in ("True", "False") else "complex64" if "j" in result else "float32"
    kind = kind if "." in result or kind == "bool" else "int32"
    if not dtype:
        own = operands.dtype + (_AS_FLOAT if prepare is promoted_inexact else "")
        dtype = "dtype bool" if kind == "bool" else own
    entries = f"{f'*args: {operands.named}' if is_ufunc else operands.names}: {operands.what}."
    errors = f"  DtypeError: {raises}.\n" if raises else ""
    if is_ufunc:
        entries += "\n  out, where: not supported, must be None."
        errors += "  UnsupportedError: `out` or `where` is not None.\n"
    note = f"{note}\n\n" if note else ""
    if errors:
        errors = f"Raises:\n{errors}\n"
    mirrored = f" (as ``numpy.{name}``)" if hasattr(np, name) else ""
    shown = f"Array({result}, dtype={kind}{', weak_type=True' if weak else ''})"
    function.__doc__ = (
        f"{summary}, elementwise{mirrored}.\n\n{note}Args:\n  {entries}\n\nReturns:\n  An array of {operands.shape}, "
        f"of {dtype}.\n\n{errors}>>> jnp.{name}({example})\n{shown}\n"
    )
    # Called eagerly it runs one compiled program. In a trace its operations are written into the outer program, so that
    # jaxprs have no calls of such small functions.
    return jit(function, inline=True)
