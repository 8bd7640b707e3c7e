"""Symbolic dimensions as text: `symbolic_shape` and its kin, in the syntax of ``jax.export``.

What dimensions are and compute is in `_ir/dimensions.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ..._base import pytree
from ..._base.errors import OptionError
from ..._ir.bounds import bounds
from ..._ir.dimensions import SymbolicDim, SymbolicScope, divided, is_symbolic, max_dim, min_dim, variable
from ..._ops.structure import dimension as dimension  # lets programs compute with dimensions
from ..._trace.trace import typeof
from ..jit.programs import ShapeDtypeStruct


def is_symbolic_dim(p: Any) -> bool:
    """Whether the length of an axis is symbolic.

    Args:
      p: an integer, or a length from `symbolic_shape`.

    Returns:
      A bool.

    >>> [is_symbolic_dim(n) for n in symbolic_shape("a, 3")]
    [True, False]
    """
    return is_symbolic(p)


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """Parses a shape of numbers, names, and expressions of them with ``+ - *``, `floordiv`, `mod`, `max` and `min`.

    Args:
      shape_spec: lengths separated by commas; ``_`` stands for the length in `like`, ``...`` for all remaining lengths
        in `like`. None means ``...``.
      constraints: constraints on the names, as `SymbolicScope` takes them.
      scope: the scope of the names; None for a new one.
      like: another shape.

    Returns:
      A tuple of integers and symbolic lengths.

    Raises:
      OptionError: the text cannot be parsed, `like` has another number of axes, or both `scope` and `constraints` are
        given.

    >>> symbolic_shape("a, 2*b + 1, 4")
    (a, 2*b + 1, 4)
    """
    text = ("..." if shape_spec is None else shape_spec).strip()
    if scope is not None and constraints:
        raise OptionError("symbolic_shape takes either a scope or constraints", instead="SymbolicScope(constraints)")
    where = scope if scope is not None else SymbolicScope(constraints)
    inner = text.removeprefix("(").removesuffix(")") if _enclosed(text) else text
    try:
        parsed = ast.parse(f"({inner.strip().removesuffix(',')},)", mode="eval")
    except SyntaxError:
        if not inner.strip():
            return ()
        raise _unreadable(text) from None
    entries = parsed.body.elts  # type: ignore[attr-defined]
    given = None if like is None else list(like)
    dims: list[Any] = []
    for i, entry in enumerate(entries):
        if isinstance(entry, ast.Constant) and entry.value is ...:
            if given is None or i != len(entries) - 1:
                raise OptionError(f"symbolic_shape({text!r}): '...' stands at the end, and needs like=...")
            dims += given[i:]
            break
        if isinstance(entry, ast.Name) and entry.id == "_":
            if given is None or i >= len(given) or given[i] is None:
                raise OptionError(f"symbolic_shape({text!r}): '_' needs a length in like=...")
            dims.append(given[i])
        else:
            dims.append(_dimension(entry, where, text))
    if given is not None and len(dims) != len(given):
        raise OptionError(f"symbolic_shape({text!r}) has {len(dims)} axes, and like={tuple(given)} has {len(given)}")
    return tuple(dims)


def _enclosed(text: str) -> bool:
    """Whether one pair of parentheses encloses the whole text."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and i < len(text) - 1:
            return False
    return True


_CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": lambda x, y: divided(x, y)[0],
    "mod": lambda x, y: divided(x, y)[1],
    "max": max_dim,
    "min": min_dim,
}
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda x, y: x + y,
    ast.Sub: lambda x, y: x - y,
    ast.Mult: lambda x, y: x * y,
    ast.BitXor: lambda x, y: x**y,
}


def _dimension(node: ast.AST, scope: SymbolicScope, text: str) -> Any:
    def read(inner: ast.AST) -> Any:
        return _dimension(inner, scope, text)

    match node:
        case ast.Constant(value=int(n)) if not isinstance(n, bool):
            return n
        case ast.Name(id=name):
            return variable(name, scope)
        case ast.UnaryOp(op=ast.USub(), operand=x):
            return -read(x)
        case ast.BinOp(left=x, op=operator, right=y) if type(operator) in _OPERATORS:
            return _OPERATORS[type(operator)](read(x), read(y))
        case ast.Call(func=ast.Name(id=name), args=[x, y], keywords=[]) if name in _CALLS:
            return _CALLS[name](read(x), read(y))
    raise _unreadable(text)


def _unreadable(text: str) -> OptionError:
    return OptionError(f"symbolic_shape cannot read {text!r}", instead="numbers, names, + - *, floordiv, mod, max, min")


_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {">=": lambda x, y: x - y, "<=": lambda x, y: y - x}


def _constrain(scope: SymbolicScope, text: str) -> None:
    """Adds a constraint to a scope."""
    sign = next((s for s in ("==", ">=", "<=") if s in text), None)
    if sign is None:
        raise OptionError(f"the constraint {text!r} has none of '==', '>=' and '<='")
    sides = [part.strip() for part in text.split(sign, 1)]
    parsed = [symbolic_shape(side, scope=scope) for side in sides]
    if any(len(shape) != 1 for shape in parsed):
        raise _unreadable(text)
    (left,), (right,) = parsed
    if sign == "==":
        _equate(scope, left, right, text)
        return
    difference = _RELATIONS[sign](left, right)
    if bounds(difference)[1] < 0:
        raise OptionError(f"Unsatisfiable constraint: {text}")
    if isinstance(difference, SymbolicDim):
        scope.not_negative.append(difference)


def _equate(scope: SymbolicScope, left: Any, right: Any, text: str) -> None:
    if left == right:
        return
    terms = left.terms if isinstance(left, SymbolicDim) else {}
    if list(terms.values()) != [1]:
        raise OptionError(
            f"the constraint {text!r} must have a product of names and operations on the left of '=='",
            instead="other sides of the equation, such as 'a == b + 3'",
        )
    scope.equal[next(iter(terms))] = right


SymbolicScope.add = _constrain


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """The types of arguments, with some lengths replaced by symbolic ones.

    Args:
      args: a tree of arrays or `ShapeDtypeStruct`s.
      shapes_specs: texts for `symbolic_shape`, a tree that is a prefix of `args`; None keeps a shape.
      constraints, scope: as for `symbolic_shape`.

    Returns:
      A tree like `args` of `ShapeDtypeStruct`s.

    Raises:
      OptionError: a text cannot be parsed, or has another number of axes.
      TreeError: `shapes_specs` is no prefix of `args`.

    >>> symbolic_args_specs((jnp.ones((3, 4)),), "a, ...")
    (ShapeDtypeStruct(shape=(a, 4), dtype=float32),)
    """
    where = scope if scope is not None else SymbolicScope(constraints)
    leaves, tree = pytree.flatten(args)
    specs = pytree.broadcast_prefix(shapes_specs, args, is_leaf=pytree.is_none)
    made = []
    for x, spec in zip(leaves, specs, strict=True):
        aval = typeof(x)
        made.append(ShapeDtypeStruct(symbolic_shape(spec, scope=where, like=aval.shape), aval.dtype))
    return tree.unflatten(made)
