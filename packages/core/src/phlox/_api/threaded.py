"""Calls of jitted functions that use references: a pure function takes the values of those and returns new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base.errors import CapturedRefsError
from .._base.pytree import PyTreeDef, flatten
from .._trace.refs import Ref, lifted, values, write_all
from .._trace.trace import typeof
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
        passed, rest = self._parted(leaves)
        return self._taken(passed, self._asked(passed, lambda f: f(values(self.captured), rest, values(passed))))

    def stage(self, stage: str, leaves: Sequence[Any]) -> Any:
        """The function traced or lowered ("trace", "lower") for flat arguments, as users see it: they pass references
        where the pure one takes and returns arrays.
        """
        from . import threaded_stages  # which calls alone do not wait for

        passed, rest = self._parted(leaves)
        made = self._asked(passed, lambda f: getattr(f, stage)(values(self.captured), rest, values(passed)))
        return threaded_stages.of_users(self, made, [x.aval if type(x) is Ref else typeof(x) for x in leaves])

    def call_with(self, run: Callable[[list[Any]], Any], leaves: Sequence[Any]) -> Any:
        """The same as `run`, by a compiled program of the pure function."""
        passed, rest = self._parted(leaves)
        check_distinct(self.name, passed, self.captured)
        return self._taken(passed, run([*values(self.captured), *rest, *values(passed)]))

    def _parted(self, leaves: Sequence[Any]) -> tuple[list[Ref], list[Any]]:
        """The references among the arguments, and the others."""
        return [leaves[i] for i in self.mine], [x for i, x in enumerate(leaves) if i not in self.mine]

    def _asked(self, passed: list[Ref], ask: Callable[[Any], Any]) -> Any:
        """What `ask` says of the pure function, once it takes all references that `fun` closes over."""
        self.types = [ref.aval for ref in passed]
        while True:
            check_distinct(self.name, passed, self.captured)
            try:
                return ask(self.function)
            except CapturedRefsError as found:
                fresh = [ref for ref in found.refs if ref not in self.captured]
                if not fresh:
                    raise
                self.captured = (*self.captured, *fresh)
                self.function = self._pure()

    def _taken(self, passed: list[Ref], result: Any) -> Any:
        """The result of `fun`, from that of the pure function, whose new values go into the references."""
        (outs, new), kept = result
        write_all([*passed, *self.captured], [*new, *kept])
        return self.out_tree.unflatten(outs)
