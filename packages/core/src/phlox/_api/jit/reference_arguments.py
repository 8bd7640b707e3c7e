"""References among the arguments of transformed functions: taken out of the trees, and put back inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._base.errors import RefError
from ..._base.pytree import PyTreeDef, flatten
from ..._base.wrapping import wraps
from ..._trace.refs import Ref


def places(leaves: Sequence[Any]) -> tuple[int, ...]:
    """Numbers of the leaves that are references."""
    return tuple(i for i, x in enumerate(leaves) if isinstance(x, Ref))


def check_distinct(function: str, refs: Sequence[Ref], captured: Sequence[Ref] = ()) -> None:
    """Two names for one reference would be two arrays in the program: raises `RefError`."""
    for i, ref in enumerate(refs):
        if any(ref is other for other in refs[:i]):
            raise RefError(f"{function}: the same reference of type {ref.aval} is passed twice", instead="pass it once")
        if any(ref is other for other in captured):
            raise RefError(
                f"{function}: a reference of type {ref.aval} is both passed and closed over", instead="pass it alone"
            )


def closed_over(
    funs: Sequence[Callable[..., Any]], operands: tuple[Any, ...]
) -> tuple[list[Callable[..., Any]], tuple[Any, ...]]:
    """Functions and operands without references: the functions close over those that the operands held."""
    leaves, tree = flatten(operands)
    mine = places(leaves)
    if not mine:
        return list(funs), operands
    check_distinct("operands", [leaves[i] for i in mine])

    def wrapped(fun: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fun)
        def filled(*rest: Any) -> Any:
            return fun(*merged(tree, mine, [leaves[i] for i in mine], rest))

        return filled

    return [wrapped(f) for f in funs], tuple(x for i, x in enumerate(leaves) if i not in mine)


def merged(tree: PyTreeDef, mine: Sequence[int], refs: Sequence[Any], rest: Sequence[Any]) -> Any:
    """The tree whose leaves are `refs` at the places `mine`, and `rest` elsewhere."""
    given, others = iter(refs), iter(rest)
    return tree.unflatten([next(given) if i in mine else next(others) for i in range(tree.num_leaves)])
