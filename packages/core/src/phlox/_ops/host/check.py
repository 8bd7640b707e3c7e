"""The `check` primitive, and `Error`, a value that holds the first failed check.

A check has an `Error` as its operand. Run eagerly it raises. A compiled program cannot raise, so `checkify` must first
make the error a result (see `_api/checkify/checkify.py`). An `Error` is a pytree of arrays: for each kind of error
whether it happened, the number of the check that failed first, and the values for its message.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._base import pytree
from ..._base.errors import UncheckedError
from ..._base.pytree import PyTreeDef
from ..._base.source import Location
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.effects import Effect
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import whole
from ..._trace.trace import typeof
from ..._transform.array_operations import zeros
from ..._transform.batch import BatchAxis, Dim, place_axis
from ..elementwise.arithmetic import add, sub
from ..elementwise.logic import or_, select_n
from ..reductions.reduce import argmax, reduce_or
from ..structure.shape import broadcast_in_dim, convert, reshape, rev
from ..structure.slicing import dynamic_slice


class CheckEffect(Effect):
    """A check that may fail and that `checkify` has not made a result yet."""


class JaxException(Exception):
    """The exception of a failed check; `where` is the source line of the check."""

    where: Location | None = None

    def place(self) -> str:
        """The source line, as the end of a message."""
        return "" if self.where is None else f" at {self.where}"


ErrorCategory = type[JaxException]
Categories = frozenset[ErrorCategory]


class JaxRuntimeError(ValueError):
    """A check failed. Its `__cause__` is the exception of that check."""

    __module__ = "phlox.experimental.checkify"


class Report(NamedTuple):
    """Makes the exception of one check of a program: ``kind.restore(details, payload)``."""

    kind: Any
    details: tuple[Any, ...]
    where: Location | None

    def exception(self, payload: Sequence[Any]) -> JaxException:
        """The exception with these values in its message."""
        exception = self.kind.restore(self.details, payload)
        exception.where = self.where
        return exception


class Kind(NamedTuple):
    """Errors of one class whose values have equal types; they share one `State` of an `Error`."""

    category: type[JaxException]
    payload: tuple[ShapedArray, ...]


class State(NamedTuple):
    """The run-time state of one kind of error."""

    happened: Any
    code: Any
    payload: list[Any]


_codes = itertools.count(1)


class Error:
    """Whether checks failed, as a value: `checkify` returns it, and transformations see a tree of arrays."""

    __slots__ = ("_reports", "_states")

    def __init__(self, states: dict[Kind, State], reports: dict[int, Report]):
        self._states = states
        self._reports = reports

    def get(self) -> str | None:
        """The message of the first check that failed, or None."""
        exception = self.get_exception()
        return None if exception is None else str(exception)

    def get_exception(self) -> JaxException | None:
        """The exception of the first check that failed, or None. Under vmap, one that holds those of all examples."""
        states = list(self._states.values())
        shape = next((typeof(s.happened).shape for s in states), ())
        if not shape:
            return self._first(())
        exceptions = {index: e for index in np.ndindex(*shape) if (e := self._first(index)) is not None}
        return BatchedError(exceptions) if exceptions else None

    def _first(self, index: tuple[int, ...]) -> JaxException | None:
        failed = [s for s in self._states.values() if np.asarray(s.happened)[index]]
        if not failed:
            return None
        # Codes count checks in the order in which they are traced, which is that of the program.
        first = min(failed, key=lambda s: int(np.asarray(s.code)[index]))
        payload = [x[index] if index else x for x in first.payload]
        return self._reports[int(np.asarray(first.code)[index])].exception(payload)

    def throw(self) -> None:
        """Raises `JaxRuntimeError` if a check failed. Inside of `checkify` the error becomes one of the function's."""
        raise_failed(self)

    def __str__(self) -> str:
        return f"Error({self.get()})"

    __repr__ = __str__

    # -- methods for traced code

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of errors that have a `State` in this error."""
        return tuple(self._states)

    def adding(self, happened: Any, report: Report, payload: Sequence[Any]) -> Error:
        """This error if it has happened, else the reported one if `happened`."""
        code = next(_codes)
        values = [convert(x, typeof(x).dtype) for x in payload]
        kind = Kind(report.kind, tuple(typeof(x) for x in values))
        state = State(happened, dtypes.int32.type(code), values)
        return self._joined({kind: state}, {code: report})

    def joined(self, other: Error, categories: Iterable[type[JaxException]]) -> Error:
        """This error if it has happened, else the other one, restricted to these categories."""
        if not other._reports:
            return self
        # The other error's codes are of its staging. Here they follow those of the checks that have been evaluated.
        first, last = min(other._reports), max(other._reports)
        new, *_ = [next(_codes) for _ in range(first, last + 1)]
        shift = new - first
        selection = set(categories)
        chosen = {
            kind: State(state.happened, add(state.code, dtypes.int32.type(shift)), state.payload)
            for kind, state in other._states.items()
            if kind.category in selection
        }
        return self._joined(chosen, {code + shift: report for code, report in other._reports.items()})

    def _joined(self, states: dict[Kind, State], reports: dict[int, Report]) -> Error:
        result = dict(self._states)
        for kind, new in states.items():
            old = result.get(kind)
            result[kind] = new if old is None else _either(old, new)
        return Error(result, {**self._reports, **reports})

    def with_states(self, kinds: Iterable[Kind]) -> Error:
        """This error with a `State` for each of `kinds`."""
        # Branches and turns of a loop must return equal types, so each has a state for the errors of all of them.
        blank = {
            kind: State(np.False_, dtypes.int32.type(-1), [zeros(a) for a in kind.payload])
            for kind in kinds
            if kind not in self._states
        }
        return Error({**self._states, **blank}, self._reports)

    def with_reports(self, *others: Error) -> Error:
        """This error with the reports of the others added."""
        reports = dict(self._reports)
        for other in others:
            reports.update(other._reports)
        return Error(self._states, reports)

    def reduced(self) -> Error:
        """For a batched error (axis 0), the error of the last example that has one."""
        return Error({kind: _last_state(s) for kind, s in self._states.items()}, self._reports)


init_error = Error({}, {})


def _either(old: State, new: State) -> State:
    def choose(a: Any, b: Any) -> Any:
        shape = typeof(a).shape
        # The error that happened first stays.
        return select_n(broadcast_in_dim(old.happened, shape=shape, broadcast_dimensions=()), b, a)

    payload = [choose(a, b) for a, b in zip(old.payload, new.payload, strict=True)]
    return State(or_(old.happened, new.happened), choose(old.code, new.code), payload)


def _last_state(state: State) -> State:
    # The last, as in JAX. Of bools the largest is True, so that it is the first of the reversed examples.
    from_end = argmax(rev(state.happened, dimensions=(0,)), axes=(0,), index_dtype=dtypes.int32)
    which = sub(dtypes.int32.type(typeof(state.happened).shape[0] - 1), from_end)

    def take(x: Any) -> Any:
        shape = typeof(x).shape
        start = [which, *[dtypes.int32.type(0)] * (len(shape) - 1)]
        row = dynamic_slice(x, *start, slice_sizes=(1, *shape[1:]))
        return reshape(row, new_sizes=shape[1:], dimensions=None)

    return State(reduce_or(state.happened, axes=(0,)), take(state.code), [take(x) for x in state.payload])


def _flatten(error: Error) -> tuple[Any, Any]:
    children = [(s.happened, s.code, list(s.payload)) for s in error._states.values()]
    return children, (error.kinds, tuple(error._reports.items()))


def _unflatten(fixed: Any, children: Any) -> Error:
    kinds, reports = fixed
    return Error({kind: State(*child) for kind, child in zip(kinds, children, strict=True)}, dict(reports))


pytree.register_pytree_node(Error, _flatten, _unflatten)


class BatchedError(JaxException):
    """Errors of several examples of a batch; `error_mapping` has the exception for each index."""

    def __init__(self, error_mapping: dict[tuple[int, ...], JaxException]):
        super().__init__(error_mapping)
        self.error_mapping = error_mapping
        self.where = next(iter(error_mapping.values())).where

    def __str__(self) -> str:
        lines = [f"at mapped index {', '.join(map(str, index))}: {e}" for index, e in self.error_mapping.items()]
        return "\n".join(lines)


# --- the primitive --------------------------------------------------------------------------------------


def raise_failed(error: Error, *, debug: bool = False) -> None:
    """Binds `check`, which raises if `error` has happened; with `debug` only in functions that are checkified."""
    # One exception is raised, so an error for each example of a batch becomes the first of them.
    if any(typeof(s.happened).shape for s in error._states.values()):
        error = error.reduced()
    leaves, tree = pytree.flatten(error)
    check_p.bind(*leaves, tree=tree, debug=debug)


def _eager(*leaves: Any, tree: PyTreeDef, debug: bool) -> list[Any]:
    exception = None if debug else tree.unflatten(leaves).get_exception()
    if exception is not None:
        raise JaxRuntimeError(str(exception)) from exception
    return []


def _lower(_f: Any, *_: Any, tree: PyTreeDef, debug: bool) -> list[Any]:
    if not debug:
        raise UncheckedError(
            "Cannot abstractly evaluate a checkify.check: a compiled program does not raise errors",
            instead="checkify.checkify(f), and then jit, scan, pmap … of that",
        )
    return []


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], tree: PyTreeDef, debug: bool
) -> tuple[list[Any], list[Dim]]:
    placed = [place_axis(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
    raise_failed(tree.unflatten(placed), debug=debug)
    return [], []


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], tree: PyTreeDef, debug: bool) -> tuple[list[Any], list[Any]]:
    check_p.bind(*primals, tree=tree, debug=debug)
    return [], []


def _checked(checks: Any, *leaves: Any, tree: PyTreeDef, debug: bool) -> list[Any]:
    checks.happened(tree.unflatten(leaves))
    return []


check_p = Primitive(
    "check",
    multiple_results=True,
    types=lambda *avals, **_: [],
    sharding=whole,
    memory_in_types=True,
    lower=_lower,
    jvp=_jvp,
    batch=_batch,
    effects=lambda params: frozenset([CheckEffect()]),
    eager=_eager,
    checked=_checked,
    show=lambda eqn, printer: {"debug": eqn.params["debug"]},
)
