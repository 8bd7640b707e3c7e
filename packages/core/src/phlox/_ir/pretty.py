"""A pretty printer: documents that choose between one line and several (Wadler 1998, Lindig 2000).

A document is a string, a list of documents, or one of the nodes below. A group is printed on one line when
it fits into the width, otherwise every break that belongs to it becomes a new line.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Doc = Any  # str | list[Doc] | Break | Nest | Group


class Break(NamedTuple):
    """A new line, or `flat` when the enclosing group fits on one line."""

    flat: str = " "


class Nest(NamedTuple):
    """`child` with its new lines indented by `columns` more."""

    columns: int
    child: Doc


class Group(NamedTuple):
    """`child` on one line if it fits."""

    child: Doc


def join(separator: Doc, docs: list[Doc]) -> list[Doc]:
    """`docs` with `separator` between them."""
    result: list[Doc] = []
    for index, doc in enumerate(docs):
        if index:
            result.append(separator)
        result.append(doc)
    return result


def render(doc: Doc, width: int = 80) -> str:
    """The text of `doc`, with lines of at most `width` columns as far as its breaks allow."""
    out: list[str] = []
    column = 0
    agenda: list[tuple[int, bool, Doc]] = [(0, False, doc)]
    while agenda:
        indent, flat, node = agenda.pop()
        kind = type(node)
        if kind is str:
            out.append(node)
            column += len(node)
        elif kind is list:
            # A stack in place of recursion, as Jaxprs inside of Jaxprs nest deeply.
            agenda.extend((indent, flat, child) for child in reversed(node))
        elif kind is Nest:
            agenda.append((indent + node.columns, flat, node.child))
        elif kind is Group:
            agenda.append((indent, flat or _fits(node.child, width - column), node.child))
        elif flat:
            out.append(node.flat)
            column += len(node.flat)
        else:
            out.append("\n" + " " * indent)
            column = indent
    return "".join(out)


def _fits(doc: Doc, space: int) -> bool:
    agenda = [doc]
    # Ends where the space does: the rest of a long document is not looked at.
    while agenda and space >= 0:
        node = agenda.pop()
        kind = type(node)
        if kind is str:
            space -= len(node)
        elif kind is list:
            agenda.extend(reversed(node))
        elif kind is Break:
            space -= len(node.flat)
        else:
            agenda.append(node.child)
    return space >= 0
