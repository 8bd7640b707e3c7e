"""Reports iterators that the body of a loop reads: they advance while the body is traced, and not in each turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from .._base import checks


def report_iterators(function: str, role: str, fun: Callable[..., Any]) -> None:
    """Reports each iterator that a loop's body closes over, or reads from a global variable.

    Args:
      function: name of the function of `phlox.lax`.
      role: name of its parameter.
      fun: the body.

    Raises:
      CheckError: there is one, and checks are strict.
    """
    if not isinstance(fun, FunctionType) or not checks.is_on():
        return
    code = fun.__code__
    cells: list[tuple[str, Any]] = []
    for name, cell in zip(code.co_freevars, fun.__closure__ or (), strict=True):
        try:
            cells.append((name, cell.cell_contents))
        except ValueError:  # the variable has no value yet
            continue
    cells += [(name, fun.__globals__.get(name)) for name in code.co_names]
    for name, value in cells:
        if isinstance(value, Iterator):
            checks.report(
                "iterator in a loop",
                f"{role} ({fun.__name__}) of {function} reads the iterator {name}, which advances once, while the "
                "program is traced, and not in each turn",
                instead="an array of the values: phlox.lax.scan over it, or values[i] with the number of the turn",
            )
