"""Symbolic dimensions: lengths of axes with a name instead of a value, in the syntax of ``jax.export``.

They can be parsed, compared and printed. Functions cannot be traced or exported for them yet: `refuse_symbolic` raises.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ..._base import pytree
from ..._base.errors import InconclusiveDimensionOperation, OptionError, UnsupportedError
from ..._trace.trace import typeof

_Terms = dict[tuple[str, ...], int]


class SymbolicScope:
    """A namespace of symbolic dimensions. Only dimensions of the same scope can be combined.

    Args:
      constraints_str: constraints on the dimensions, a list of strings; stored but not used.

    Raises:
      OptionError: `constraints_str` is one string.

    >>> SymbolicScope(["a >= 3"])
    SymbolicScope('a >= 3')
    """

    def __init__(self, constraints_str: Sequence[str] = ()):
        if isinstance(constraints_str, str):
            raise OptionError(
                f"SymbolicScope: the constraints are one string, {constraints_str!r}", instead="a list of strings"
            )
        self.constraints = tuple(constraints_str)

    def __repr__(self) -> str:
        return f"SymbolicScope({', '.join(map(repr, self.constraints))})"


class SymbolicDim:
    """The length of an axis, as a polynomial in named lengths, each of which is at least 1."""

    __slots__ = ("scope", "terms")

    def __init__(self, terms: _Terms, scope: SymbolicScope):
        self.terms = {names: n for names, n in sorted(terms.items(), key=lambda t: (-len(t[0]), t[0])) if n}
        self.scope = scope

    def _with(self, other: Any, combine: Callable[[_Terms, _Terms], _Terms]) -> Any:
        if isinstance(other, SymbolicDim):
            if other.scope is not self.scope:
                raise OptionError(
                    f"the symbolic dimensions {self} and {other} belong to different scopes",
                    instead="symbolic_shape(..., scope=...) with one SymbolicScope for both",
                )
            return _simple(SymbolicDim(combine(self.terms, other.terms), self.scope))
        if isinstance(other, int):
            return _simple(SymbolicDim(combine(self.terms, {(): other}), self.scope))
        return NotImplemented

    def __add__(self, other: Any) -> Any:
        return self._with(other, _sum)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, _product)

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def __pow__(self, power: int) -> Any:
        result: Any = 1
        for _ in range(power):
            result = self * result
        return result

    def __floordiv__(self, other: Any) -> Any:
        return _named("floordiv", self, other)

    def __mod__(self, other: Any) -> Any:
        return _named("mod", self, other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicDim) and self.scope is other.scope and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(tuple(self.terms.items()))

    def __ge__(self, other: Any) -> bool:
        difference = self - other
        if isinstance(difference, int):
            return difference >= 0
        return difference._is_positive(f"{self} >= {other}", 0)

    def __gt__(self, other: Any) -> bool:
        return self >= other + 1

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def _is_positive(self, asked: str, least: int) -> bool:
        """Whether the value is at least `least` for all lengths; raises if that holds for some lengths only, or cannot
        be decided. `asked` is the comparison, for the message."""
        factors = [n for names, n in self.terms.items() if names]
        plain = all("(" not in name for names in self.terms for name in names)
        smallest = sum(self.terms.values())  # the value if all lengths are 1
        if plain and all(n > 0 for n in factors) and smallest >= least:
            return True
        if plain and all(n < 0 for n in factors) and smallest < least:
            return False
        raise InconclusiveDimensionOperation(f"{asked} holds for some lengths and not for others", dimension=self)

    def __int__(self) -> int:
        raise InconclusiveDimensionOperation(
            f"the symbolic dimension {self} has no value", instead="a shape of numbers", dimension=self
        )

    __index__ = __int__

    def __bool__(self) -> bool:
        return self != 0

    def __str__(self) -> str:
        text = ""
        for names, n in self.terms.items():
            powers = [f"{x}^{names.count(x)}" if names.count(x) > 1 else x for x in dict.fromkeys(names)]
            factors = [*([str(abs(n))] if abs(n) != 1 or not names else []), *powers]
            sign = ("- " if n < 0 else "") if not text else (" - " if n < 0 else " + ")
            text += sign + "*".join(factors)
        return text or "0"

    __repr__ = __str__


def _sum(x: _Terms, y: _Terms) -> _Terms:
    return {names: x.get(names, 0) + y.get(names, 0) for names in {**x, **y}}


def _product(x: _Terms, y: _Terms) -> _Terms:
    total: _Terms = {}
    for a, m in x.items():
        for b, n in y.items():
            names = tuple(sorted(a + b))
            total[names] = total.get(names, 0) + m * n
    return total


def _simple(dim: SymbolicDim) -> Any:
    """`dim`, or an int if it has no names."""
    return dim if any(names for names in dim.terms) else dim.terms.get((), 0)


def _named(function: str, *args: Any) -> SymbolicDim:
    scope = next(x.scope for x in args if isinstance(x, SymbolicDim))
    return SymbolicDim({(f"{function}({', '.join(map(str, args))})",): 1}, scope)


def is_symbolic_dim(p: Any) -> bool:
    """Whether the length of an axis is symbolic.

    Args:
      p: an integer, or a length from `symbolic_shape`.

    Returns:
      A bool.

    >>> [is_symbolic_dim(n) for n in symbolic_shape("a, 3")]
    [True, False]
    """
    return isinstance(p, SymbolicDim)


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
      constraints: constraints on the names, such as ``"a >= 3"``; stored but not used.
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
    try:
        parsed = ast.parse(f"({text.removeprefix('(').removesuffix(')') if _enclosed(text) else text},)", mode="eval")
    except SyntaxError:
        if not text or text == "()":
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
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": lambda x, y: _named("max", x, y) if is_symbolic_dim(x) or is_symbolic_dim(y) else max(x, y),
    "min": lambda x, y: _named("min", x, y) if is_symbolic_dim(x) or is_symbolic_dim(y) else min(x, y),
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
            return SymbolicDim({(name,): 1}, scope)
        case ast.UnaryOp(op=ast.USub(), operand=x):
            return -read(x)
        case ast.BinOp(left=x, op=operator, right=y) if type(operator) in _OPERATORS:
            return _OPERATORS[type(operator)](read(x), read(y))
        case ast.Call(func=ast.Name(id=name), args=[x, y], keywords=[]) if name in _CALLS:
            return _CALLS[name](read(x), read(y))
    raise _unreadable(text)


def _unreadable(text: str) -> OptionError:
    return OptionError(f"symbolic_shape cannot read {text!r}", instead="numbers, names, + - *, floordiv, mod, max, min")


class SymbolicStruct:
    """The type of an array with symbolic lengths: a `ShapeDtypeStruct` that cannot be traced."""

    def __init__(self, shape: tuple[Any, ...], dtype: Any):
        self.shape = shape
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype})"


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """The types of arguments, with some lengths replaced by symbolic ones.

    Args:
      args: a tree of arrays or `ShapeDtypeStruct`s.
      shapes_specs: texts for `symbolic_shape`, a tree that is a prefix of `args`; None keeps a shape.
      constraints, scope: as for `symbolic_shape`.

    Returns:
      A tree like `args` of objects with a shape and a dtype, as `ShapeDtypeStruct` has.

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
        made.append(SymbolicStruct(symbolic_shape(spec, scope=where, like=aval.shape), aval.dtype))
    return tree.unflatten(made)


def refuse_symbolic(function: str, args: Any) -> None:
    """Raises `UnsupportedError` if the shape of an argument has symbolic lengths."""
    for x in pytree.tree_leaves(args):
        shape = getattr(x, "shape", None)
        if isinstance(shape, tuple) and any(map(is_symbolic_dim, shape)):
            raise UnsupportedError(
                f"{function} for symbolic lengths: {x}",
                instead="one export for each shape, or padding to a fixed one",
                struct=x,
            )
