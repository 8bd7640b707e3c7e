"""`f.explain()` of jitted functions: a table of what was compiled, why, what it cost, and how often it ran."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..jit import arguments
from ..recording.answers import aligned
from .recompiles import Compilation, Label, differences, type_of_call

_HEADS = ("", "types", "trace", "lower", "compile", "calls", "compiled because")


class Row(NamedTuple):
    """One compiled program of a function.

    Attributes:
      types: the arguments of its calls, as ``x: f32[3], n=2``.
      trace, lower, compile: times in milliseconds.
      calls: how often it ran; None if it is not compiled yet.
      reason: how the arguments differ from earlier ones.
    """

    types: str
    trace: float
    lower: float
    compile: float
    calls: int | None
    reason: str


class Explanation:
    """The compiled programs of a function, as a list of rows that prints itself as a table.

    Attributes:
      name: the name of the function.
      rows: a `Row` for each compilation, oldest first.
    """

    def __init__(self, name: str, rows: Sequence[Row]):
        self.name = name
        self.rows = list(rows)

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                str(number),
                row.types,
                *(f"{time:.1f} ms" for time in (row.trace, row.lower, row.compile)),
                "-" if row.calls is None else str(row.calls),
                row.reason,
            )
            for number, row in enumerate(self.rows, 1)
        ]

    def __str__(self) -> str:
        lines = aligned([_HEADS, *self._cells()], numbers=range(2, 6))
        calls = sum(row.calls or 0 for row in self.rows)
        total = sum(row.trace + row.lower + row.compile for row in self.rows)
        head = f"{self.name}: compiled {len(self.rows)} times in {total:.1f} ms, {calls} calls"
        return "\n".join([head, *lines] if self.rows else [head])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        import html  # only notebooks need it

        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in _HEADS)
        rows = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self._cells()]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><caption>{html.escape(self.name)}</caption><tr>{head}</tr>{body}</table>"


def explanation(fun: Callable[..., Any], label: Label, history: Sequence[Compilation]) -> Explanation:
    """The table of a function with these compilations."""
    rows = []
    keys = [one.key for one in history]
    for i, one in enumerate(history):
        calls = None if one.cost.counter is None else one.cost.counter.calls
        # The table shows each change, where a report waits for the third kind.
        changes = differences(fun, label, keys[: i + 1])
        reason = "; ".join(map(str, changes)) or ("another combination" if i else "")
        trace, lower, compiling = (1e3 * s for s in one.cost.seconds)
        rows.append(Row(type_of_call(fun, label, one.key), trace, lower, compiling, calls, reason))
    return Explanation(arguments.fun_name(fun), rows)
