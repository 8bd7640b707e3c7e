"""Logs of the backward rules that `defvjp_with_logs` sets: dicts of trees of arrays, gathered in one backward pass."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from ..._base.errors import OptionError, UnsupportedError
from ..._base.pytree import tree_flatten
from ..._base.scoped import scoped
from ..._ir.primitive import current_trace


class Logs:
    """The logs of one backward pass."""

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}
        self._trace = current_trace.get()

    def add(self, rule: str, entries: dict[str, Any]) -> None:
        """Adds what a rule returned."""
        for key in entries:
            if key in self.entries:
                raise OptionError(
                    f"the backward rule {rule} logs {key!r} a second time in one backward pass",
                    instead="a key of its own for each call, such as one with the name of the layer",
                )
        # Values of an inner trace end with it.
        if current_trace.get() is not self._trace:
            raise UnsupportedError(
                f"with_logs: the backward rule {rule} runs inside of another program",
                instead="a call of the function outside of that",
            )
        self.entries.update(entries)


_current: ContextVar[Logs | None] = ContextVar("phlox_backward_logs", default=None)


def current_logs() -> Logs | None:
    """The logs that rules add to; None if nobody asks for them."""
    return _current.get()


@contextlib.contextmanager
def gather_logs() -> Iterator[Logs]:
    """A context in which backward rules add their logs to the result."""
    logs = Logs()
    with scoped(_current, logs):
        yield logs


class LoggedRule:
    """A backward rule that runs inside of another program, which returns the leaves of its logs after its results."""

    def __init__(self, name: str, call: Callable[..., list[Any]]):
        self._name, self._call = name, call
        self._logs, self._tree = _current.get(), tree_flatten({})[1]

    def __call__(self, *args: Any) -> list[Any]:
        if self._logs is None:
            return self._call(*args)
        with gather_logs() as logs:
            results = self._call(*args)
        leaves, self._tree = tree_flatten(logs.entries)
        return [*results, *leaves]

    def add_logs(self, leaves: Sequence[Any]) -> None:
        """Adds the logs with these leaves, which the other program has returned."""
        if self._logs is not None:
            self._logs.add(self._name, self._tree.unflatten(leaves))
