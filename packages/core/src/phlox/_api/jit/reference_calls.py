"""Calls of jitted functions that use references: a pure function takes the values of those and returns new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..._base.errors import CapturedRefsError
from ..._base.pytree import PyTreeDef, flatten
from ..._trace.refs import AbstractRef, Ref, lifted, values, write_all
from ..._trace.trace import typeof
from . import arguments
from .entry import LIMIT, Hidden
from .reference_arguments import check_distinct, merged


class _Pure(NamedTuple):
    """A pure function that is jitted, and the references closed over whose values it takes first."""

    captured: tuple[Ref, ...]
    function: Callable[..., Any]


class ReferenceCall:
    """A function for one structure of arguments; stands where a compiled call stands otherwise.

    Threads may share it: what a call reads of it is read once, and replaced as a whole.

    Args:
      fun: the function of the user.
      compiled: makes a jitted function out of a pure one.
      rebuild: the arguments of `fun`, from those that are not static.
      in_tree: structure of those.
      mine: the numbers of the leaves that are references. Those that `fun` closes over are found by tracing it.
    """

    __slots__ = ("compiled", "found", "fun", "in_tree", "mine", "name", "pure", "rebuild")

    #: the arrays hidden in a program; here they lie within the pure functions
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
        #: the references closed over that were found last: other types of arguments are first tried with them
        self.found: tuple[Ref, ...] = ()
        #: by the types of the references that are passed
        self.pure: dict[tuple[AbstractRef, ...], _Pure] = {}

    def _made(self, types: tuple[AbstractRef, ...], captured: tuple[Ref, ...]) -> _Pure:
        def body(rest: list[Any], state: list[Any]) -> tuple[Any, list[Any]]:
            refs = [Ref(aval, value) for aval, value in zip(types, state, strict=True)]
            positional, keywords = self.rebuild(*merged(self.in_tree, self.mine, refs, rest))
            out = self.fun(*positional, **keywords)
            arguments.check_outputs(self.fun, out, flatten(out)[0])
            return out, values(refs)

        body.__name__ = self.name
        made = _Pure(captured, self.compiled(lifted(body, captured)))
        if len(self.pure) >= LIMIT:
            self.pure.clear()
        self.pure[types] = made
        self.found = captured
        return made

    def run(self, leaves: Sequence[Any]) -> Any:
        """The result for flat arguments; what the references hold is replaced."""
        passed, rest = self._parted(leaves)
        captured, result = self._asked(passed, lambda f, found: f(values(found), rest, values(passed)))
        return _taken([*passed, *captured], result)

    def stage(self, stage: str, leaves: Sequence[Any]) -> Any:
        """The function traced or lowered ("trace", "lower") for flat arguments, as users see it: they pass references
        where the pure one takes and returns arrays.
        """
        from . import reference_stages as threaded_stages  # which calls alone do not wait for

        passed, rest = self._parted(leaves)
        captured, made = self._asked(passed, lambda f, found: getattr(f, stage)(values(found), rest, values(passed)))
        in_avals = [x.aval if type(x) is Ref else typeof(x) for x in leaves]
        return threaded_stages.of_users(self, captured, made, in_avals)

    def call_with(self, captured: Sequence[Ref], run: Callable[[list[Any]], Any], leaves: Sequence[Any]) -> Any:
        """The same as `run`, by a compiled program of the pure function that takes `captured`."""
        passed, rest = self._parted(leaves)
        check_distinct(self.name, passed, captured)
        return _taken([*passed, *captured], run([*values(captured), *rest, *values(passed)]))

    def _parted(self, leaves: Sequence[Any]) -> tuple[list[Ref], list[Any]]:
        """The references among the arguments, and the others."""
        return [leaves[i] for i in self.mine], [x for i, x in enumerate(leaves) if i not in self.mine]

    def _asked(self, passed: list[Ref], ask: Callable[[Any, tuple[Ref, ...]], Any]) -> tuple[tuple[Ref, ...], Any]:
        """The references that `fun` closes over, and what `ask` says of the pure function that takes all of them."""
        types = tuple(ref.aval for ref in passed)
        pure = self.pure.get(types)
        if pure is None:
            pure = self._made(types, tuple(r for r in self.found if all(r is not ref for ref in passed)))
        while True:
            captured, function = pure
            check_distinct(self.name, passed, captured)
            try:
                return captured, ask(function, captured)
            except CapturedRefsError as found:
                fresh = [ref for ref in found.refs if ref not in captured]
                if not fresh:
                    raise
                # Another thread may have found others meanwhile: whichever function stays, later calls complete it.
                pure = self._made(types, (*captured, *fresh))


def _taken(refs: Sequence[Ref], result: Any) -> Any:
    """The result of the user's function, from that of the pure one, whose new values go into the references."""
    (out, new), kept = result
    write_all(refs, [*new, *kept])
    return out
