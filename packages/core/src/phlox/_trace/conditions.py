"""The advice in errors about Python conditions and integers of traced values, which depends on the statement."""

from __future__ import annotations

import ast
import linecache

from .._base.source import Location

_STATIC = "or mark the argument static with static_argnums"
_CHOICE = "phlox.lax.cond(condition, f, g, x), or phlox.numpy.where(condition, a, b)"
_OTHERWISE = f"phlox.numpy.where(condition, a, b) or phlox.lax.cond; {_STATIC}"
#: what to write instead of Python's functions that compare their arguments
_COMPARING = {
    "all": "phlox.numpy.all(x)",
    "any": "phlox.numpy.any(x)",
    "bool": "x.astype(bool)",
    "max": "phlox.numpy.max(x), or phlox.numpy.maximum(a, b)",
    "min": "phlox.numpy.min(x), or phlox.numpy.minimum(a, b)",
    "sorted": "phlox.numpy.sort(x)",
}

Span = tuple[int, int, int, int]


def instead_of(where: Location | None) -> str:
    """What the user can write instead of the condition at `where`; a general text if its source cannot be read."""
    tree, span = _source_of(where)
    written = "" if tree is None or span is None else _written_for(tree, span)
    return f"{written}; {_STATIC}" if written else _OTHERWISE


def instead_of_integer(where: Location | None) -> str:
    """What the user can write where Python needs an integer, as in ``range(n)``, at the call or index at `where`."""
    tree, span = _source_of(where)
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and _span(node) == span:
            if node.func.id == "range":
                return f"phlox.lax.fori_loop(0, n, body, start); {_STATIC}"
        elif isinstance(node, ast.Subscript) and _span(node) == span:
            return f"phlox.numpy.array(values)[i], or phlox.lax.switch(i, functions) to choose a function; {_STATIC}"
    return "index an array, not a list; mark shape arguments static with static_argnums"


def _source_of(where: Location | None) -> tuple[ast.AST | None, Span | None]:
    """The syntax tree of the file of a location, and the range of its expression there; None if one is not known."""
    span = None if where is None else where.span
    if where is None or span is None:
        return None, None
    try:
        return ast.parse("".join(linecache.getlines(where.file))), span
    except (SyntaxError, ValueError):  # not Python: a notebook cell with magics, or a file that has changed since
        return None, None


def _written_for(tree: ast.AST, span: Span) -> str:
    """The text for the innermost condition that contains the source range `span`."""
    text = ""
    for node in ast.walk(tree):  # outer nodes come before inner ones
        if _holds(node, span):
            text = _of(node, span) or text
    return text


def _of(node: ast.AST, span: Span) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and _span(node) == span:
        return _COMPARING.get(node.func.id, "")
    if isinstance(node, ast.While) and _holds(node.test, span):
        return "phlox.lax.while_loop(condition, body, start)"
    if isinstance(node, ast.If | ast.IfExp) and _holds(node.test, span):
        return _CHOICE
    if isinstance(node, ast.Assert):  # the whole statement, because pytest rewrites the condition inside
        return "phlox.experimental.checkify.check(condition, message)"
    if isinstance(node, ast.BoolOp):
        return "a & b, a | b (phlox.numpy.logical_and, logical_or), and phlox.lax.cond for what follows from it"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return "~a (phlox.numpy.logical_not)"
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        return "phlox.numpy.isin(x, phlox.numpy.array(values))"
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        return "(a < b) & (b < c)"
    return ""


def _span(node: ast.AST) -> Span | None:
    end = getattr(node, "end_lineno", None)
    if end is None:
        return None
    return node.lineno, end, node.col_offset, node.end_col_offset  # type: ignore[attr-defined]


def _holds(node: ast.AST, span: Span) -> bool:
    own = _span(node)
    if own is None:
        return False
    return (own[0], own[2]) <= (span[0], span[2]) and (span[1], span[3]) <= (own[1], own[3])
