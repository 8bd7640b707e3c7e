"""References among the arguments of transformed functions: taken out of the pytrees, and put back in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._base.errors import RefError
from ..._base.pytree import PyTreeDef, flatten
from ..._base.wrapping import wraps
from ..._trace.refs import Ref


def find_refs(leaves: Sequence[Any]) -> tuple[int, ...]:
    """Returns the indices of the leaves that are references."""
    return tuple(i for i, x in enumerate(leaves) if isinstance(x, Ref))


def check_distinct(function: str, refs: Sequence[Ref], captured: Sequence[Ref] = ()) -> None:
    """Raises `RefError` if a reference occurs twice: the program would hold its value as two separate arrays."""
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
    """`funs` changed to close over the references among the operands, and the operands without those."""
    leaves, tree = flatten(operands)
    ref_indices = find_refs(leaves)
    if not ref_indices:
        return list(funs), operands
    check_distinct("operands", [leaves[i] for i in ref_indices])

    def wrapped(fun: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fun)
        def filled(*rest: Any) -> Any:
            return fun(*merged(tree, ref_indices, [leaves[i] for i in ref_indices], rest))

        return filled

    return [wrapped(f) for f in funs], tuple(x for i, x in enumerate(leaves) if i not in ref_indices)


def merged(tree: PyTreeDef, ref_indices: Sequence[int], refs: Sequence[Any], rest: Sequence[Any]) -> Any:
    """The tree whose leaves are `refs` at the indices `ref_indices`, and `rest` elsewhere."""
    ref_values, others = iter(refs), iter(rest)
    return tree.unflatten([next(ref_values) if i in ref_indices else next(others) for i in range(tree.num_leaves)])
