"""References among the arguments of transformed functions, and calls of compiled programs with their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._base.errors import RefError
from ..._base.pytree import PyTreeDef, flatten
from ..._base.wrapping import wraps
from ..._trace.refs import Ref, values, write_all
from .entry import LIMIT, Entry, Hidden

if TYPE_CHECKING:
    from .bound_call import BoundCall


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


def replaced(leaves: Sequence[Any], indices: Sequence[int], items: Sequence[Any]) -> list[Any]:
    """The leaves with `items` at these indices."""
    by_index = dict(zip(indices, items, strict=True))
    return [by_index.get(i, x) for i, x in enumerate(leaves)] if indices else list(leaves)


class ReferenceEntry(NamedTuple):
    """A compiled call of a function that uses references.

    The program takes the values of `captured`, the closed-over references, after the arguments. It returns the new
    values of the references with the numbers `written` after the result; see `LoweredCall`.
    """

    entry: Entry
    name: str
    captured: tuple[Ref, ...]
    written: Sequence[int]

    def run(self, leaves: Sequence[Any]) -> Any:
        """The user's result for leaves in pytree order; the references get their new values."""
        indices = find_refs(leaves)
        passed = [leaves[i] for i in indices]
        check_distinct(self.name, passed, self.captured)
        result = self.entry.run([*replaced(leaves, indices, values(passed)), *values(self.captured)])
        if not self.written:
            return result
        refs = [*passed, *self.captured]
        result, new = result
        write_all([refs[i] for i in self.written], new)
        return result


class ReferenceCall:
    """The compiled calls of a function that uses references, for one kind of arguments; cached in place of an `Entry`.

    The kind of arguments does not include the types of references, nor the placement of their values.
    """

    __slots__ = ("captured", "entries")

    #: no hidden arrays: the entries have them
    hidden = Hidden(())

    def __init__(self) -> None:
        #: the references that the function closes over, by the keys of the arguments
        self.captured: dict[tuple[Any, ...], tuple[Ref, ...]] = {}
        #: by the keys of the arguments, then of the values of these references
        self.entries: dict[tuple[Any, ...], ReferenceEntry] = {}

    def entry(self, call: BoundCall) -> ReferenceEntry | None:
        """The entry for a call with the values that the references have now; None if there is none."""
        return self.entries.get(tuple(call.with_values_of(self.captured.get(tuple(call.keys), ())).keys))

    def add(self, call: BoundCall, whole: BoundCall, entry: ReferenceEntry) -> None:
        """Adds the entry of a call; `whole` is the call with the values of closed-over references as last leaves."""
        if len(self.entries) >= LIMIT:
            self.entries.clear()
        self.captured[tuple(call.keys)] = entry.captured
        self.entries[tuple(whole.keys)] = entry
