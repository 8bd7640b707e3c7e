"""Calls of jitted functions that use references, by a pure function that takes and returns the references' values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..._base.errors import CapturedRefsError
from ..._base.pytree import flatten
from ..._trace.refs import AbstractRef, Ref, values, with_ref_values, write_all
from ..._trace.trace import typeof
from . import arguments
from .bound_call import BoundCall, join_static
from .entry import LIMIT, Hidden
from .reference_arguments import check_distinct, merged


class _Pure(NamedTuple):
    """A jitted pure function, and the closed-over references whose values it takes as its first argument."""

    captured: tuple[Ref, ...]
    function: Callable[..., Any]


class ReferenceCall:
    """A call of a function that uses references, for one treedef of arguments; cached in place of an `Entry`.

    Threads may share it: each call reads a `_Pure` once, and a `_Pure` is replaced as a whole.

    Args:
      call: the call, without values.
      compiled: makes a jitted function from a pure one.
      ref_indices: indices of the leaves that are references. Closed-over references are found by tracing.
    """

    __slots__ = ("call", "captured", "compiled", "fun", "name", "pure", "ref_indices")

    #: no hidden arrays: the entries of the pure functions have them
    hidden = Hidden(())

    def __init__(self, call: BoundCall, compiled: Callable[[Callable[..., Any]], Any], ref_indices: tuple[int, ...]):
        self.call, self.compiled, self.ref_indices = call, compiled, ref_indices
        self.fun = call.fun
        self.name = arguments.fun_name(call.fun)
        #: the closed-over references of the last pure function; the first try for arguments of other types
        self.captured: tuple[Ref, ...] = ()
        #: pure functions, by the types of the references among the arguments
        self.pure: dict[tuple[AbstractRef, ...], _Pure] = {}

    def _add_pure(self, types: tuple[AbstractRef, ...], captured: tuple[Ref, ...]) -> _Pure:
        def body(rest: list[Any], state: list[Any]) -> tuple[Any, list[Any]]:
            refs = [Ref(aval, value) for aval, value in zip(types, state, strict=True)]
            positional, keywords = join_static(self.call.statics, *merged(self.call.tree, self.ref_indices, refs, rest))
            out = self.fun(*positional, **keywords)
            arguments.check_outputs(self.fun, out, flatten(out)[0])
            return out, values(refs)

        body.__name__ = self.name
        pure = _Pure(captured, self.compiled(with_ref_values(body, captured)))
        if len(self.pure) >= LIMIT:
            self.pure.clear()
        self.pure[types] = pure
        self.captured = captured
        return pure

    def run(self, leaves: Sequence[Any]) -> Any:
        """The result for flat arguments; the references get their new values."""
        passed, rest = self._split_refs(leaves)
        captured, result = self._with_captured(passed, lambda f, refs: f(values(refs), rest, values(passed)))
        return _write_back([*passed, *captured], result)

    def stage(self, stage: str, leaves: Sequence[Any]) -> Any:
        """The function traced or lowered (`stage` is "trace" or "lower") for flat arguments, as a stage whose calls
        take references where the pure function takes and returns arrays.
        """
        from . import reference_stages as threaded_stages  # programs that only call functions do not import it

        passed, rest = self._split_refs(leaves)
        captured, pure_stage = self._with_captured(
            passed, lambda f, refs: getattr(f, stage)(values(refs), rest, values(passed))
        )
        call = self.call.with_keys([x.aval if type(x) is Ref else typeof(x) for x in leaves])
        return threaded_stages.of_users(self, captured, pure_stage, call)

    def call_with(self, captured: Sequence[Ref], run: Callable[[list[Any]], Any], leaves: Sequence[Any]) -> Any:
        """Like `run`, but calls `run`, a compiled program of the pure function that takes `captured`."""
        passed, rest = self._split_refs(leaves)
        check_distinct(self.name, passed, captured)
        return _write_back([*passed, *captured], run([*values(captured), *rest, *values(passed)]))

    def _split_refs(self, leaves: Sequence[Any]) -> tuple[list[Ref], list[Any]]:
        """The references among the arguments, and the other arguments."""
        return [leaves[i] for i in self.ref_indices], [x for i, x in enumerate(leaves) if i not in self.ref_indices]

    def _with_captured(
        self, passed: list[Ref], use: Callable[[Any, tuple[Ref, ...]], Any]
    ) -> tuple[tuple[Ref, ...], Any]:
        """The references that `fun` closes over, and the result of ``use(pure function, those references)``.

        While tracing finds further closed-over references, makes a pure function that takes them and tries again.
        """
        types = tuple(ref.aval for ref in passed)
        pure = self.pure.get(types)
        if pure is None:
            pure = self._add_pure(types, tuple(r for r in self.captured if all(r is not ref for ref in passed)))
        while True:
            captured, function = pure
            check_distinct(self.name, passed, captured)
            try:
                return captured, use(function, captured)
            except CapturedRefsError as error:
                fresh = [ref for ref in error.refs if ref not in captured]
                if not fresh:
                    raise
                # Another thread may have stored a function with other references meanwhile. Either may stay in the
                # cache: later calls add what it lacks.
                pure = self._add_pure(types, (*captured, *fresh))


def _write_back(refs: Sequence[Ref], result: Any) -> Any:
    """Writes the new values in the pure function's result to `refs`; returns the result of the user's function."""
    (out, new), closed_over = result
    write_all(refs, [*new, *closed_over])
    return out
