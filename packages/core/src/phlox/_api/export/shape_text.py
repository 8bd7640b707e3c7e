"""The syntax of symbolic shapes: ``a, 2*b + 1, max(c, 4)``.

    shape   = [entry {"," entry} [","]]
    entry   = "..." | "_" | sum
    sum     = product {("+" | "-") product}
    product = power {"*" power}
    power   = {"+" | "-"} atom ["^" number]
    atom    = number | name | operation "(" sum "," sum ")" | "(" sum ")"

It is read by functions of these names, so that a name may be any word, ``in`` and ``lambda`` too. Sums and products of
any length cost no recursion.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..._base.errors import OptionError
from ..._ir.dimensions import (
    SymbolicDim,
    SymbolicScope,
    divided,
    integer_power,
    is_symbolic,
    max_dim,
    min_dim,
    variable,
)

_TOKEN = re.compile(r"\s*(\.\.\.|\d+|[^\W\d]\w*|\S)")
_CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": lambda x, y: divided(x, y)[0],
    "mod": lambda x, y: divided(x, y)[1],
    "max": max_dim,
    "min": min_dim,
}
#: characters of the longest text, and levels of the deepest one: a hostile text costs a second or two
_MAX_LENGTH = 10_000
_MAX_DEPTH = 60


def parse_shape(text: str, scope: SymbolicScope) -> list[Any]:
    """The entries of a shape: integers, symbolic lengths, and the texts ``_`` and ``...``.

    Raises:
      OptionError: the text cannot be read.
    """
    if not isinstance(text, str):
        raise OptionError(f"symbolic_shape takes a str, not {text!r}", instead=repr(str(text)))
    try:
        return _Parser(text, scope).shape()
    # Constraints are applied while dimensions are made, and may replace names for ever.
    except RecursionError:
        raise unreadable(text, "constraints replace its names in a circle") from None
    except ZeroDivisionError as error:
        raise unreadable(text, str(error)) from None


def unreadable(text: str, reason: str) -> OptionError:
    """The error for a text that is no shape."""
    shown = text if len(text) < 80 else f"{text[:40]} ... {text[-30:]}"
    return OptionError(
        f"symbolic_shape cannot read {shown!r}: {reason}",
        instead="numbers, names, + - * ^, floordiv, mod, max and min, with commas between lengths",
    )


class _Parser:
    def __init__(self, text: str, scope: SymbolicScope):
        if len(text) > _MAX_LENGTH:
            raise unreadable(text, f"it has {len(text)} characters, more than {_MAX_LENGTH}")
        self._text = text
        self._scope = scope
        self._tokens = [*_TOKEN.findall(text), ""]  # "" is the end
        self._next = 0
        self._depth = 0

    def shape(self) -> list[Any]:
        # ``(a, b)`` is how Python prints a shape.
        inner = _without_parentheses(self._tokens[:-1])
        self._tokens = [*inner, ""]
        entries: list[Any] = []
        while self._token:
            entries.append(self._read() if self._token in ("...", "_") else self._length())
            if self._token:
                self._expect(",")
        return entries

    def _length(self) -> Any:
        dim = self._sum()
        if any(abs(n) >= 2**63 for n in (dim.terms.values() if isinstance(dim, SymbolicDim) else (dim,))):
            raise unreadable(self._text, "a number has more than 64 bits")
        return dim

    def _sum(self) -> Any:
        total = self._product()
        while self._token in ("+", "-"):
            total = total + self._product() if self._read() == "+" else total - self._product()
        return total

    def _product(self) -> Any:
        total = self._power()
        while self._token == "*":
            self._read()
            total = total * self._power()
        return total

    def _power(self) -> Any:
        sign = 1
        while self._token in ("+", "-"):
            sign = -sign if self._read() == "-" else sign
        dim = self._atom()
        while self._token == "^":
            self._read()
            # Right after the atom: ``-a^2`` is ``-(a^2)``.
            power = self._number()
            dim = dim**power if is_symbolic(dim) else integer_power(dim, power)
        return dim if sign > 0 else -dim

    def _atom(self) -> Any:
        token = self._token
        if token.isdecimal():
            return self._number()
        if not (token == "(" or token.isidentifier()):
            raise unreadable(self._text, f"{token!r} stands for no length" if token else "it ends too early")
        if token != "(":
            self._read()
            if self._token != "(":
                return variable(token, self._scope)
            if token not in _CALLS:
                raise unreadable(self._text, f"there is no operation {token!r}")
        return self._enclosed(token)

    def _enclosed(self, name: str) -> Any:
        """What stands between parentheses: a sum, or the operation `name` of two."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise unreadable(self._text, f"it is nested more than {_MAX_DEPTH} levels deep")
        self._expect("(")
        dim = self._sum()
        if name != "(":
            self._expect(",")
            dim = _CALLS[name](dim, self._sum())
        self._expect(")")
        self._depth -= 1
        return dim

    def _number(self) -> int:
        token = self._read()
        if not token.isdecimal():
            raise unreadable(self._text, f"a power is a number, not {token!r}")
        # Checked before `int`, which takes long for a million digits.
        if len(token) > 19:
            raise unreadable(self._text, "a number has more than 64 bits")
        return int(token)

    @property
    def _token(self) -> str:
        return self._tokens[self._next]

    def _read(self) -> str:
        token = self._token
        # The end is not passed, so that it can be looked at again.
        self._next += bool(token)
        return token

    def _expect(self, token: str) -> None:
        if self._token != token:
            where = f"{self._token!r} stands where" if self._token else "it ends where"
            raise unreadable(self._text, f"{where} {token!r} should stand")
        self._read()


def _without_parentheses(tokens: list[str]) -> list[str]:
    """The tokens, without a pair of parentheses around all of them."""
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token == "(") - (token == ")")
        # The first parenthesis ends before the end: it does not enclose all.
        if depth == 0 and i < len(tokens) - 1:
            return tokens
    return tokens[1:-1] if tokens[:1] == ["("] and tokens[-1] == ")" else tokens
