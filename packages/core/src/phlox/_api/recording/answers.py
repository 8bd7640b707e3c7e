"""Answers and tables: how they print, in a terminal and in a notebook."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..._base.source import Location, scope_text
from ..._trace.steps import Step, Value

#: rows of a table that fit on a screen
SCREEN = 40


class Answer:
    """The answer to a question about a recording. Its text begins with the user's line.

    Attributes:
      line: file and line in the user's program, as ``train.py:12``; None if no operation is to blame.
      where: the `Location` of it.
      equation: the equation as text; None if there is none.
      step: the `Step`, with its operands and results.
      data: figures of the answer, by name.
    """

    def __init__(self, text: str, step: Step | None = None, details: Sequence[str] = (), **data: Any):
        self.step = step
        self.where: Location | None = None if step is None else step.where
        self.line = None if self.where is None else f"{self.where.file}:{self.where.line}"
        self.equation = None if step is None else str(step.eqn)
        self.data = data
        self._first = text if step is None else f"{text} {first_line(self.where)}"
        self._details = [*details, *([] if step is None else _place(step))]

    def __str__(self) -> str:
        return "\n".join([self._first, *(f"    {line}" for line in self._details)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        details = html.escape("\n".join(self._details))
        return f"<b>{html.escape(self._first)}</b><pre>{details}</pre>"


class Table:
    """A table of texts, which prints itself on one screen."""

    def __init__(self, title: str, head: Sequence[str], rows: Iterable[Sequence[str]]):
        self.title = title
        self.head = tuple(head)
        self.rows = [tuple(map(str, row)) for row in rows]

    def __str__(self) -> str:
        shown = self.rows[:SCREEN]
        rest = len(self.rows) - len(shown)
        return "\n".join([self.title, *aligned([self.head, *shown]), *([f"… and {rest} more"] if rest else [])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in self.rows[:SCREEN])
        return f"<b>{html.escape(self.title)}</b><table>{row(self.head, 'th')}{body}</table>"


def aligned(rows: Sequence[Sequence[str]], numbers: range = range(0)) -> list[str]:
    """A line for each row, with the cells of a column below each other; those of `numbers` end at one place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    adjust = [str.rjust if i in numbers else str.ljust for i in range(len(widths))]
    return ["  ".join(map(lambda f, cell, width: f(cell, width), adjust, row, widths)).rstrip() for row in rows]


def first_line(where: Location | None) -> str:
    """A location with its source line: ``train.py:12 (loss): p = jnp.log(x)``. Files below the current folder are
    shown relative to it."""
    if where is None:
        return "an unknown line"
    text, place = where.text(), str(where).removeprefix(os.getcwd() + os.sep)
    return f"{place}: {text}" if text else place


def _place(step: Step) -> list[str]:
    """The lines that say where a step is: its equation, the pass, the turns of loops, the name scopes."""
    lines = []
    if step.path:
        lines.append("in " + ", in ".join(reversed(step.path)))
    if step.is_backward:
        lines.append("in the backward pass of this line")
    if step.scope:
        lines.append(f"in the scope {scope_text(step.scope)}")
    equation = " ".join(str(step.eqn).split())
    lines.append(f"equation: {equation if len(equation) <= 160 else equation[:160] + ' …'}")
    return lines


def type_text(value: Value) -> str:
    """The type of a value, as f32[3,4]."""
    return str(value.aval.short)


def range_text(value: Value) -> str:
    """The range of the finite elements, and the shares of nan, infinities and zeros."""
    x = value.numbers
    if x.size == 0:
        return ""
    if x.dtype.kind in "biu":
        return f"{x.min()} … {x.max()}" if x.size > 1 else str(x.reshape(())[()])
    if x.size == 1:
        return number_text(x.reshape(())[()])
    finite = x[np.isfinite(x)]
    parts = []
    if finite.size and x.dtype.kind == "f":
        parts.append(f"{number_text(finite.min())} … {number_text(finite.max())}")
    for name, count in (("nan", np.isnan(x).sum()), ("inf", np.isinf(x).sum()), ("zero", (x == 0).sum())):
        if count:
            parts.append(f"{share_text(count, x.size)} {name}")
    return ", ".join(parts)


def number_text(x: Any) -> str:
    """A number with four digits."""
    return f"{x:.4g}"


def share_text(count: int, size: int) -> str:
    """A share as "3 of 12", or as percentage where numbers are large."""
    if count == size:
        return "all"
    return f"{count} of {size}" if size <= 10_000 else f"{100 * count / size:.3g} %"


def operand_lines(step: Step, name_of: Any) -> list[str]:
    """The operands of a step with their ranges, one line each."""
    names = (name_of(x) or ("" if x.step is not None else "the number") for x in step.operands[:6])
    parts = zip(names, step.operands, strict=False)
    return [f"{f'operand {name}'.rstrip()}: {type_text(x)} {range_text(x)}" for name, x in parts]
