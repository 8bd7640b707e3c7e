"""Calls of jitted functions that use references: a pure function takes the values of those and returns new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base.errors import CapturedRefsError
from .._base.pytree import PyTreeDef, flatten
from .._trace.refs import Ref, lifted, values, write_all
from . import arguments
from .entry import Hidden
from .references import check_distinct, merged


class Threaded:
    """A function for one structure of arguments; stands where a compiled call stands otherwise.

    Args:
      fun: the function of the user.
      compiled: makes a jitted function out of a pure one.
      rebuild: the arguments of `fun`, from those that are not static.
      in_tree: structure of those.
      mine: the numbers of the leaves that are references. Those that `fun` closes over are found by tracing it.
    """

    out_tree: PyTreeDef
    #: the arrays hidden in a program; here they lie within `function`
    hidden = Hidden(())

    def __init__(
        self,
        fun: Callable[..., Any],
        compiled: Callable[[Callable[..., Any]], Any],
        rebuild: Callable[..., Any],
        in_tree: PyTreeDef,
        mine: tuple[int, ...],
    ):
        self.fun, self.compiled, self.rebuild, self.in_tree, self.mine = fun, compiled, rebuild, in_tree, mine
        self.name = arguments.fun_name(fun)
        self.captured: tuple[Ref, ...] = ()
        self.types: list[Any] = []
        self.function = self._pure()

    def _pure(self) -> Any:
        def body(rest: list[Any], state: list[Any]) -> tuple[list[Any], list[Any]]:
            refs = [Ref(aval, value) for aval, value in zip(self.types, state, strict=True)]
            positional, keywords = self.rebuild(*merged(self.in_tree, self.mine, refs, rest))
            out = self.fun(*positional, **keywords)
            leaves, self.out_tree = flatten(out)
            arguments.check_outputs(self.fun, out, leaves)
            return leaves, values(refs)

        body.__name__ = self.name
        return self.compiled(lifted(body, self.captured))

    def run(self, leaves: Sequence[Any]) -> Any:
        """The result for flat arguments; what the references hold is replaced."""
        passed = [leaves[i] for i in self.mine]
        rest = [x for i, x in enumerate(leaves) if i not in self.mine]
        self.types = [ref.aval for ref in passed]
        while True:
            check_distinct(self.name, passed, self.captured)
            try:
                (outs, new), kept = self.function(values(self.captured), rest, values(passed))
                break
            except CapturedRefsError as found:
                fresh = [ref for ref in found.refs if ref not in self.captured]
                if not fresh:
                    raise
                self.captured = (*self.captured, *fresh)
                self.function = self._pure()
        write_all([*passed, *self.captured], [*new, *kept])
        return self.out_tree.unflatten(outs)
