"""What loops say of the user's functions: the name and the types of the carry, and iterators that a body reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

from .._api.jit import arguments
from .._base import checks, pytree
from .._base.pytree import PyTreeDef, treedef_children


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


def carry_text(depth: int, tree: PyTreeDef, avals: Sequence[Any]) -> str:
    """The structure and types of the user's carry, which lies `depth` keys deep in the last part of a loop's carry."""
    types = [a.short for a in avals]
    for _ in range(depth):
        *others, tree = treedef_children(tree)
        types = types[sum(other.num_leaves for other in others) :]
    return pytree.typed_text(tree, types[: tree.num_leaves])


def parameter_name(fun: Callable[..., Any], position: int) -> str:
    """The name of the function's parameter that is the carry."""
    signature = arguments.signature_of(fun)
    names = [*signature.parameters] if signature is not None else []
    return names[position] if position < len(names) else "carry"


def have_equal_types(aval: Any, out: Any) -> bool:
    """Whether two types are equal but for weak types and `vma`."""
    return (aval.shape, aval.dtype, aval.spec, aval.memory_space) == (out.shape, out.dtype, out.spec, out.memory_space)


def difference(name: str, path: Any, aval: Any, out: Any) -> str:
    which = f"component {name}{pytree.keystr(path)}" if path else name
    parts = [
        what
        for what, same in (
            ("dtypes", aval.dtype == out.dtype),
            ("shapes", aval.shape == out.shape),
            ("shardings", aval.spec is out.spec),
            ("memory spaces", aval.memory_space is out.memory_space),
        )
        if not same
    ]
    why = ", and ".join(f"the {what} do not match" for what in parts)
    return (
        f"the input carry {which} has type {aval.str_short(False)} but the corresponding output carry component has "
        f"type {out.str_short(False)}, so {why}"
    )
