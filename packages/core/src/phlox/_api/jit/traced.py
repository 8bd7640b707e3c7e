"""Functions that are traced: what `jit` keeps of a trace for lowering."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._base import pytree
from ..._base.pytree import PyTreeDef
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import ClosedJaxpr
from ..._trace.refs import Ref


class FunctionTrace(NamedTuple):
    """A function traced for one kind of arguments: its Jaxpr, closed-over values, and the treedef of its result.

    The Jaxpr takes `consts` as its first arguments. `integer_dtypes` has the dtypes that must hold the leaves which are
    Python integers, by leaf index; see `narrowing`. `refs` are the references from outside that it uses. Of the
    references among the arguments, it writes those with the numbers `written`, and returns their new values after the
    result. `stale_values` has the values from outside that the trace read, if any are to be compared later; see
    `checks.stale_values`.
    """

    closed: ClosedJaxpr
    consts: list[Any]
    out_tree: PyTreeDef
    integer_dtypes: dict[int, Any]
    refs: tuple[Ref, ...] = ()
    written: tuple[int, ...] = ()
    stale_values: Any = None

    def result(self) -> Any:
        """The result with abstract values as leaves, since constructors of users' pytree classes may read shapes.

        Its leaves are objects where such a class takes no type for data; see `pytree.placeholders`.
        """
        result = self.out_tree.unflatten(self.out_avals)
        if pytree.tree_structure(result).num_leaves == self.out_tree.num_leaves:
            return result
        return pytree.placeholders(self.out_tree)

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of the leaves of the result."""
        return self.closed.out_avals[: self.out_tree.num_leaves]

    def result_paths(self) -> list[str]:
        """The path of each leaf of the result: ``result['loss']``."""
        try:
            result = self.result()
        except Exception:  # the user's class takes arrays only; these names are comments of the program
            return [f"result[{i}]" for i in range(self.out_tree.num_leaves)]
        return ["result" + pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(result)]
