"""Symbolic dimensions: lengths of axes that have a name in place of a value, so that one program serves many shapes.

A `SymbolicDim` is a polynomial with whole coefficients. Its factors are names, whose values are at least 1, and
operations on polynomials that have no simpler form: ``floordiv``, ``mod``, ``max`` and ``min``. Equal polynomials are
equal; other comparisons are answered where `bounds.py` can prove the answer for all values, and raise elsewhere.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeGuard

import numpy as np

from .._base.docstrings import docs_from
from .._base.errors import InconclusiveDimensionOperation, OptionError
from .._base.source import is_internal


class Operation(NamedTuple):
    """A factor that is no name: ``floordiv(a, 2)``."""

    name: str
    args: tuple[Any, Any]

    def __str__(self) -> str:
        return f"{self.name}({self.args[0]}, {self.args[1]})"


Factor = str | Operation
#: a product of factors, each with its power, sorted by name
Term = tuple[tuple[Factor, int], ...]
Terms = dict[Term, int]
#: the most terms of a polynomial: sums and products of longer ones take seconds
_MAX_TERMS = 1000

#: the operations on numbers
NUMERIC: dict[str, Callable[[int, int], int]] = {
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": max,
    "min": min,
}


class SymbolicScope:
    """A namespace of symbolic dimensions. Only dimensions of the same scope can be combined.

    Args:
      constraints_str: constraints on the dimensions, a list of strings such as ``"a >= 3"``, ``"a <= b"`` and
        ``"mod(a, 4) == 0"``. The left side of ``==``, a product, is replaced by the right side wherever it occurs.

    Raises:
      OptionError: `constraints_str` is one string, cannot be read, or holds for no values.

    Attributes:
      decides: whether ``==`` and ``bool`` in the user's code raise where the answer differs between lengths. As in
        JAX they do not by default: what cannot be told to be equal is unequal, and no length is 0. phlox's own code
        has a form for that answer which is right for all lengths.

    >>> phlox.export.SymbolicScope(["a >= 3"])
    SymbolicScope('a >= 3')
    """

    decides = False

    def __init__(self, constraints_str: Iterable[str] = ()):
        if isinstance(constraints_str, str):
            raise OptionError(
                f"SymbolicScope: the constraints are one string, {constraints_str!r}", instead="a list of strings"
            )
        self.constraints: tuple[str, ...] = ()
        #: polynomials that are at least 0
        self.not_negative: list[SymbolicDim] = []
        #: for products, a factor and what the factor times the product is equal to
        self.equal: dict[Term, tuple[int, Any]] = {}
        for text in constraints_str:
            SymbolicScope.add(self, text)
            self.constraints += (text,)

    #: reads one constraint; set by the module that parses
    add: ClassVar[Callable[[SymbolicScope, str], None]]

    def __repr__(self) -> str:
        return f"SymbolicScope({', '.join(map(repr, self.constraints))})"


class SymbolicDim:
    """The length of an axis, as a polynomial in named lengths, each of which is at least 1."""

    __slots__ = ("_hash", "_text", "scope", "terms")

    #: NumPy leaves operations with arrays to this class
    __array_ufunc__ = None
    __array_priority__ = 1000
    #: the dimension as an integer of a program, and its type; set by the module of the primitive
    as_value: ClassVar[Callable[[SymbolicDim], Any]]
    aval: ClassVar[property]

    def __init__(self, terms: Terms, scope: SymbolicScope):
        nonzero = [(term, n) for term, n in terms.items() if n]
        if len(nonzero) > _MAX_TERMS:
            raise _too_long(len(nonzero))
        self.terms: Terms = dict(sorted(nonzero, key=_order, reverse=True))
        self.scope = scope
        # Shapes are parts of cache keys, so the hash is asked for often.
        self._hash = hash(tuple(self.terms.items()))
        self._text = ""

    def _combined(self, other: Any, combine: Callable[[Terms, Terms], Terms]) -> Any:
        terms = self._terms_of(other)
        return NotImplemented if terms is None else make_polynomial(combine(self.terms, terms), self.scope)

    def _terms_of(self, other: Any) -> Terms | None:
        """The terms of a dimension of this scope, or of a whole number; None for anything else."""
        if isinstance(other, SymbolicDim):
            if other.scope is not self.scope:
                raise OptionError(
                    f"the symbolic dimensions {self} and {other} belong to different scopes",
                    instead="symbolic_shape(..., scope=...) with one SymbolicScope for both",
                )
            return other.terms
        return {(): int(other)} if _is_int(other) else None

    def __add__(self, other: Any) -> Any:
        # With an array the dimension is an integer that the program computes with, here and in the other operators.
        result = self._combined(other, _sum)
        return self.as_value() + other if result is NotImplemented else result

    def __radd__(self, other: Any) -> Any:
        return self + other if _is_dimension(other) else other + self.as_value()

    def __mul__(self, other: Any) -> Any:
        result = self._combined(other, _product)
        return self.as_value() * other if result is NotImplemented else result

    def __rmul__(self, other: Any) -> Any:
        return self * other if _is_dimension(other) else other * self.as_value()

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other if _is_dimension(other) else self.as_value() - other

    def __rsub__(self, other: Any) -> Any:
        return -self + other if _is_dimension(other) else other - self.as_value()

    def __pow__(self, power: Any) -> Any:
        if not _is_int(power) or power < 0:
            return self.as_value() ** power
        if len(self.terms) == 1:
            ((term, n),) = self.terms.items()
            return make_polynomial(
                {tuple((factor, m * power) for factor, m in term): integer_power(n, power)}, self.scope
            )
        # The middle coefficient of (a + 1)^67 is above 2**63.
        if power > 66:
            raise OptionError(f"({self})^{power} has coefficients of more than 64 bits", instead="a smaller power")
        result: Any = 1
        for _ in range(power):
            result = self * result
        return result

    def __rpow__(self, other: Any) -> Any:
        return other ** self.as_value()

    def __floordiv__(self, other: Any) -> Any:
        return divided(self, other)[0] if _is_dimension(other) else self.as_value() // other

    def __rfloordiv__(self, other: Any) -> Any:
        return divided(other, self)[0] if _is_dimension(other) else other // self.as_value()

    def __mod__(self, other: Any) -> Any:
        return divided(self, other)[1] if _is_dimension(other) else self.as_value() % other

    def __rmod__(self, other: Any) -> Any:
        return divided(other, self)[1] if _is_dimension(other) else other % self.as_value()

    def __divmod__(self, other: Any) -> Any:
        return divided(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return divided(other, self)

    def __truediv__(self, other: Any) -> Any:
        return self.as_value() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.as_value()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SymbolicDim):
            if self.scope is not other.scope:
                return False
            if self.terms == other.terms:
                return True
        # Unequal polynomials may have equal values for some lengths, and the function may branch on the answer.
        if self.scope.decides and _is_dimension(other):
            self._decide(other)
        return False

    def __hash__(self) -> int:
        return self._hash

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, ">=", self - other, 0)

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, ">", self - other, 1)

    def __le__(self, other: Any) -> bool:
        return self._compared(other, "<=", other - self, 0)

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, "<", other - self, 1)

    def _compared(self, other: Any, sign: str, difference: Any, least: int) -> bool:
        """Whether `difference` is at least `least` for all values."""
        if _is_int(difference):
            return bool(difference >= least)
        if not isinstance(difference, SymbolicDim):
            return bool(difference >= least)
        from .bounds import bounds  # bounds.py computes with these classes

        low, high = bounds(difference)
        if low >= least:
            return True
        if high < least:
            return False
        raise self._inconclusive(other, sign)

    def _inconclusive(self, other: Any, sign: str) -> InconclusiveDimensionOperation:
        return InconclusiveDimensionOperation(
            f"Symbolic dimension comparison '{self}' {sign} '{other}' is inconclusive: it holds for some lengths and "
            "not for others, or cannot be decided",
            instead=f"symbolic_shape(..., constraints=['{self} {sign.rstrip('=') + '='} {other}']), if that is so; "
            "phlox.core.max_dim and min_dim for the larger and the smaller length",
            dimension=self,
        )

    def _decide(self, other: Any) -> None:
        """Raises if the dimension may be equal to `other`."""
        from .bounds import bounds

        # Frame 1 is the operator, frame 2 its caller.
        if is_internal(sys._getframe(2).f_code.co_filename):
            return
        difference = self - other
        low, high = bounds(difference) if is_symbolic(difference) else (difference, difference)
        if low <= 0 <= high:
            raise self._inconclusive(other, "==")

    def __int__(self) -> int:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant",
            instead="a shape of numbers",
            dimension=self,
        )

    __index__ = __int__

    def __bool__(self) -> bool:
        if self.scope.decides:
            self._decide(0)
        return True  # what may be 0 cannot be told from what is not, as in JAX

    def __jax_array__(self) -> Any:
        return self.as_value()

    def __str__(self) -> str:
        # Written once: terms are sorted by their texts, and those of nested operations would be written at each level.
        self._text = self._text or self._written()
        return self._text

    def _written(self) -> str:
        text = ""
        for term, n in self.terms.items():
            factors = [str(factor) if power == 1 else f"{factor}^{power}" for factor, power in term]
            if abs(n) != 1 or not factors:
                factors.insert(0, str(abs(n)))
            sign = ("- " if n < 0 else "") if not text else (" - " if n < 0 else " + ")
            text += sign + "*".join(factors)
        return text

    __repr__ = __str__

    def __deepcopy__(self, memo: Any) -> SymbolicDim:
        return self


def _too_long(n: int) -> OptionError:
    return OptionError(
        f"a symbolic dimension would have up to {n} terms, more than {_MAX_TERMS}",
        instead="one name for the whole length",
    )


def _is_int(x: Any) -> bool:
    return isinstance(x, int | np.integer)


def _is_dimension(x: Any) -> bool:
    return isinstance(x, SymbolicDim | int | np.integer)


def is_symbolic(x: Any) -> TypeGuard[SymbolicDim]:
    """Whether the length of an axis is symbolic."""
    return type(x) is SymbolicDim


def _factor_order(factor: Factor) -> tuple[bool, str]:
    return type(factor) is not str, str(factor)


def _order(item: tuple[Term, int]) -> Any:
    term = item[0]
    # Equal polynomials must have one order of terms, on which hash and text depend. Degrees come first, since `divided`
    # takes the first term for the leading one.
    return sum(power for _, power in term), [(_factor_order(f), power) for f, power in reversed(term)]


def _sum(x: Terms, y: Terms) -> Terms:
    return {term: x.get(term, 0) + y.get(term, 0) for term in {**x, **y}}


def _times(x: Term, y: Term) -> Term:
    powers = dict(x)
    for factor, power in y:
        powers[factor] = powers.get(factor, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: _factor_order(item[0])))


def integer_power(n: int, power: int) -> int:
    """n**power. Raises `OptionError` for numbers of more than 64 bits, some of which would fill the memory."""
    # |n| is at least two to the power of its bit length less one, so the test needs no large number.
    if power * (abs(n).bit_length() - 1) > 64:
        raise OptionError(f"the number {n}^{power} in a symbolic shape has more than 64 bits")
    return int(n**power)


def _product(x: Terms, y: Terms) -> Terms:
    # Many products of terms may be equal, so that the limit for the polynomial is checked after they are added.
    if len(x) * len(y) > 20 * _MAX_TERMS:
        raise _too_long(len(x) * len(y))
    total: Terms = {}
    for a, m in x.items():
        for b, n in y.items():
            term = _times(a, b)
            total[term] = total.get(term, 0) + m * n
    return total


def quotient(x: Term, y: Term) -> Term | None:
    """x / y, or None if that is no product."""
    powers = dict(x)
    for factor, power in y:
        powers[factor] = powers.get(factor, 0) - power
        if powers[factor] < 0:
            return None
    return tuple((factor, power) for factor, power in powers.items() if power)


def make_polynomial(terms: Terms, scope: SymbolicScope) -> Any:
    """The polynomial, with the equalities of the scope applied; an int if it has no factors."""
    # A term that contains the left side has it replaced, and the result may have further ones.
    for left, (factor, right) in scope.equal.items():
        for term, n in list(terms.items()):
            rest = quotient(term, left) if n and n % factor == 0 else None
            if rest is not None:
                others = {t: m for t, m in terms.items() if t != term}
                replaced = make_polynomial({rest: n // factor}, scope) * right
                return make_polynomial(others, scope) + replaced
    nonzero = {term: n for term, n in terms.items() if n}
    return SymbolicDim(nonzero, scope) if any(nonzero) else nonzero.get((), 0)


def variable(name: str, scope: SymbolicScope) -> Any:
    """The dimension of this name."""
    return make_polynomial({((name, 1),): 1}, scope)


def operation(name: str, x: Any, y: Any) -> Any:
    """``floordiv``, ``mod``, ``max`` or ``min`` of two dimensions, computed if both are numbers."""
    if _is_int(x) and _is_int(y):
        return NUMERIC[name](int(x), int(y))
    scope = (x if is_symbolic(x) else y).scope
    return make_polynomial({((Operation(name, (x, y)), 1),): 1}, scope)


def divided(x: Any, y: Any) -> tuple[Any, Any]:
    """(x // y, x % y). A polynomial is divided term by term; what does not come out even is an operation."""
    if _is_int(x) and _is_int(y):
        return divmod(int(x), int(y))
    scope = (x if is_symbolic(x) else y).scope

    def terms(dim: Any) -> Terms:
        return dim.terms if is_symbolic(dim) else {(): int(dim)}

    divisor = terms(y)
    if not any(divisor.values()):
        raise ZeroDivisionError(f"division of the symbolic dimension {x} by zero")
    # Long division by the leading terms: terms are sorted, the one of highest degree first.
    (first, m), *_ = divisor.items()
    whole: Any = 0
    rest = x
    # A number is divided by a number at the end; any other rest goes on, or makes the quotient an operation.
    while not (_is_int(rest) and (rest == 0 or not is_symbolic(y))):
        (term, n), *_ = terms(rest).items()
        by = quotient(term, first)
        if by is None or n % m:
            return operation("floordiv", x, y), operation("mod", x, y)
        part = make_polynomial({by: n // m}, scope)
        whole, rest = whole + part, rest - part * y
    if _is_int(rest) and _is_int(y):
        return whole + rest // y, rest % y
    return whole, rest


def as_length(n: Any) -> Any:
    """A length of an axis: an int, or a symbolic dimension as it is. Raises `TypeError` for anything else."""
    return n if type(n) is SymbolicDim else operator.index(n)


def value_of(n: Any) -> Any:
    """A length for arithmetic with arrays: an int, or a symbolic dimension as an integer of the program."""
    return n.as_value() if type(n) is SymbolicDim else n


def surely_at_least(n: Any, least: Any) -> bool:
    """Whether a length is at least `least`, for all values of those that are symbolic: where two forms compute the
    same, and one is for long axes."""
    # The difference is one polynomial, in which equal terms cancel: bounds of each side alone would prove less.
    difference = n - least
    if type(difference) is not SymbolicDim:
        return bool(difference >= 0)
    from .bounds import bounds

    return bool(bounds(difference)[0] >= 0)


def max_dim(d1: Any, d2: Any) -> Any:
    """The larger of two lengths, which may be symbolic.

    Args:
      d1, d2: integers, or lengths from `symbolic_shape`.

    Returns:
      An integer or a symbolic length.

    >>> a, b = phlox.export.symbolic_shape("a, b")
    >>> max_dim(a, b), max_dim(a, 1), max_dim(2, 3)
    (max(a, b), a, 3)
    """
    return _larger("max", d1, d2)


@docs_from(max_dim)
def min_dim(d1: Any, d2: Any) -> Any:
    """The smaller of two lengths, which may be symbolic.

    >>> a, b = phlox.export.symbolic_shape("a, b")
    >>> min_dim(a, b), min_dim(a, 1), min_dim(2, 3)
    (min(a, b), 1, 2)
    """
    return _larger("min", d1, d2)


def _larger(name: str, x: Any, y: Any) -> Any:
    if _is_int(x) and _is_int(y):
        return NUMERIC[name](int(x), int(y))
    from .bounds import bounds

    low, high = bounds(x - y)
    if low >= 0:
        return x if name == "max" else y
    if high <= 0:
        return y if name == "max" else x
    return operation(name, x, y)


def evaluated(dim: Any, values: Mapping[str, Any]) -> Any:
    """The dimension for these values of the names; still symbolic if one has none."""
    if not is_symbolic(dim):
        return dim
    total: Any = 0
    for term, n in dim.terms.items():
        product: Any = n
        for factor, power in term:
            if isinstance(factor, Operation):
                value = _applied(factor.name, *[evaluated(x, values) for x in factor.args])
            else:
                value = values[factor] if factor in values else variable(factor, dim.scope)
            product = product * value**power
        total = total + product
    return total


def _applied(name: str, x: Any, y: Any) -> Any:
    if name in ("max", "min"):
        return _larger(name, x, y)
    return divided(x, y)[name == "mod"]


def names_in(dim: Any) -> set[str]:
    """The names that occur in a dimension."""
    names: set[str] = set()
    for term in dim.terms if is_symbolic(dim) else ():
        for factor, _ in term:
            names |= {factor} if isinstance(factor, str) else names_in(factor.args[0]) | names_in(factor.args[1])
    return names
