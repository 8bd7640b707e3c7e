"""References among the arguments of transformed functions, and calls of compiled programs with their values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from ..._base.errors import RefError
from ..._base.pytree import PyTreeDef, flatten
from ..._base.wrapping import wraps
from ..._ir.primitive import current_trace
from ..._trace.refs import Ref, values
from .arguments import fun_name, leaf_names
from .entry import Entry


def find_refs(leaves: Sequence[Any]) -> tuple[int, ...]:
    """Returns the indices of the leaves that are references."""
    return tuple([i for i, x in enumerate(leaves) if type(x) is Ref])


def check_distinct(
    function: str, refs: Sequence[Ref], captured: Collection[Ref] = (), *, names: Callable[[], Sequence[str]]
) -> None:
    """Raises `RefError` if a reference occurs twice: the program would hold its value as two separate arrays.

    ``names()`` returns the names of the arguments that the references are.
    """
    for i, ref in enumerate(refs):
        for k, other in enumerate(refs[:i]):
            if ref is other:
                raise RefError(
                    f"{function}: only one reference to a mutable array may be passed as an argument; that of type "
                    f"{ref.aval} appeared at both {names()[k]} and {names()[i]}",
                    instead="pass it once",
                )
        if any(ref is other for other in captured):
            raise RefError(
                f"{function}: the reference of type {ref.aval} is both closed over and passed as the argument "
                f"{names()[i]}",
                instead="pass it alone",
            )


def numbered(indices: Iterable[int]) -> list[str]:
    """Names of arguments of which only the positions among all leaves are known."""
    return [f"leaf {i}" for i in indices]


def names_of_refs(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
    """The names of the references among the leaves of these arguments."""
    indices = find_refs(flatten((args, kwargs))[0])
    names = leaf_names(fun, args, kwargs)
    return [names[i] for i in indices]


class ArrayTree(NamedTuple):
    """The structure of a tree of arrays and references: its leaves are the arrays, and it holds the references."""

    tree: PyTreeDef
    ref_indices: tuple[int, ...]
    refs: list[Ref]

    def unflatten(self, arrays: Iterable[Any]) -> Any:
        """The tree with these arrays."""
        return merged(self.tree, self.ref_indices, self.refs, arrays)


#: the structure of a tree whose leaves are arrays; an `ArrayTree` if there are references, too
Structure = ArrayTree | PyTreeDef


def flatten_arrays(tree: Any) -> tuple[list[Any], Structure]:
    """The arrays of a tree, and its structure with its references, if there are any."""
    leaves, treedef = flatten(tree)
    indices = find_refs(leaves)
    if not indices:
        return leaves, treedef
    arrays = [x for i, x in enumerate(leaves) if i not in indices]
    return arrays, ArrayTree(treedef, indices, [leaves[i] for i in indices])


def closed_over(
    function: str, funs: Sequence[Callable[..., Any]], operands: tuple[Any, ...]
) -> tuple[list[Callable[..., Any]], tuple[Any, ...]]:
    """`funs` changed to close over the references among the operands, and the operands without those."""
    arrays, tree = flatten_arrays(operands)
    if not isinstance(tree, ArrayTree):
        return list(funs), operands
    name = f"{fun_name(funs[0])} for {function}"
    check_distinct(name, tree.refs, names=lambda: names_of_refs(funs[0], operands, {}))

    def wrapped(fun: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fun)
        def filled(*rest: Any) -> Any:
            return fun(*tree.unflatten(rest))

        return filled

    return [wrapped(f) for f in funs], tuple(arrays)


def merged(tree: PyTreeDef, ref_indices: Sequence[int], refs: Sequence[Any], rest: Iterable[Any]) -> Any:
    """The tree whose leaves are `refs` at the indices `ref_indices`, and `rest` elsewhere."""
    ref_values, others = iter(refs), iter(rest)
    return tree.unflatten([next(ref_values) if i in ref_indices else next(others) for i in range(tree.num_leaves)])


def replaced(leaves: Sequence[Any], indices: Sequence[int], items: Sequence[Any]) -> list[Any]:
    """The leaves with `items` at these indices."""
    result = list(leaves)
    for i, x in zip(indices, items, strict=True):
        result[i] = x
    return result


class RefKey(NamedTuple):
    """The key of a leaf that is a reference: that of its value."""

    key: Any


class ReferenceEntry(Entry):
    """A compiled call of a function that uses references.

    The program takes the values of `captured`, the closed-over references, after the arguments. It returns the new
    values of the references with the numbers `written` after the result; see `LoweredCall`.
    """

    __slots__ = ()

    def other_keys(self) -> list[Any] | None:
        """The keys of the values that the closed-over references have now; None if the program is for these."""
        # The values of closed-over references are the last arguments, so their keys are the last ones.
        keys = [x._placement for x in values(self.captured)]
        return None if keys == self.keys[len(self.keys) - len(keys) :] else keys

    def run(self, leaves: Sequence[Any]) -> Any:
        """The user's result for leaves in pytree order; the references get their new values."""
        trace, passed = current_trace.get(), [x for x in leaves if type(x) is Ref]
        # Checked in each call: the program is cached by types, and two references of one type have one key.
        check_distinct("jit", passed, self.captured, names=lambda: numbered(find_refs(leaves)))
        result = super().run([x.read(trace) if type(x) is Ref else x for x in (*leaves, *self.captured)])
        if not self.written:
            return result
        refs = [*passed, *self.captured]
        result, new = result
        for i, value in zip(self.written, new, strict=True):
            refs[i].write(trace, value)
        return result
