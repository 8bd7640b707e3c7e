"""Names of the user's variables: the targets of the statement on whose line a step was recorded."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ..._base.source import Location
from ..._trace.steps import Step, Value


class Statement(NamedTuple):
    """A simple statement of a file: its first line and the names that it binds."""

    line: int
    targets: tuple[str, ...]


def statement_at(where: Location | None) -> Statement | None:
    """The innermost simple statement that contains a location; None if the source cannot be read."""
    return None if where is None else _statements("".join(linecache.getlines(where.file))).get(where.line)


@lru_cache(maxsize=64)
def _statements(source: str) -> dict[int, Statement]:
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell of a notebook with commands of IPython
        return {}
    by_line: dict[int, Statement] = {}
    for node in ast.walk(tree):  # outer statements come first, so that inner ones replace them
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Expr):
            statement = Statement(node.lineno, _targets(node))
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                by_line[line] = statement
    return by_line


def _targets(node: ast.stmt) -> tuple[str, ...]:
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        return tuple(map(ast.unparse, target.elts)) if isinstance(target, ast.Tuple) else (ast.unparse(target),)
    if isinstance(node, ast.AnnAssign | ast.AugAssign):
        return (ast.unparse(node.target),)
    return ("the returned value",) if isinstance(node, ast.Return) else ()


def variable_names(steps: Sequence[Step], outputs: Sequence[Value]) -> dict[int, str]:
    """Names of values by their id.

    A statement makes one step or several consecutive ones. The value of its variable is the result of the last step
    that another statement, or the caller, reads: under `grad` a statement also computes factors for the backward pass.
    """
    statements = [None if step.is_backward else statement_at(step.where) for step in steps]
    read_later = {id(x) for x in outputs}
    names: dict[int, str] = {}
    following: Statement | None = None
    pending: list[int] = []  # steps of the statement `following`, last first
    # Backwards, as it depends on later statements which value a statement is for.
    for i in range(len(steps) - 1, -2, -1):
        statement = statements[i] if i >= 0 else None
        # A group ends where the statement or the function changes.
        if pending and (i < 0 or statement is not following or _code(steps[i]) is not _code(steps[pending[0]])):
            _name_results([steps[k] for k in pending], following, read_later, names)
            for k in pending:
                read_later.update(id(x) for x in steps[k].operands if not steps[k].is_backward)
            pending = []
        if i >= 0 and statement is not None:
            following = statement
            pending.append(i)
    return names


def _code(step: Step) -> object:
    return None if step.where is None else step.where.code


def _offset(step: Step) -> int | None:
    return None if step.where is None else step.where.offset


def _name_results(
    steps: Sequence[Step], statement: Statement | None, read_later: set[int], names: dict[int, str]
) -> None:
    """Names the results of the steps (last first) of one statement."""
    if statement is None or not statement.targets:
        return
    targets = statement.targets
    last = next((s for s in steps if any(id(x) in read_later for x in s.results)), steps[0])
    if len(targets) == 1:
        position = next((i for i, x in enumerate(last.results) if id(x) in read_later), 0)
        for step in steps:  # a statement in a loop of Python runs several times
            if step is last or (step.name == last.name and _offset(step) == _offset(last)):
                names.setdefault(id(step.results[position]), targets[0])
    elif len(last.results) == len(targets):
        for value, target in zip(last.results, targets, strict=True):
            names.setdefault(id(value), target)
