"""Symbolic dimensions as text: `symbolic_shape` and its kin, in the syntax of ``jax.export``.

What dimensions are and compute is in `_ir/dimensions.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..._base import pytree
from ..._base.errors import ArgumentError, OptionError
from ..._ir.bounds import bounds
from ..._ir.dimensions import Operation, SymbolicDim, SymbolicScope, is_symbolic, operation, quotient
from ..._ops.structure import dimension as dimension  # lets programs compute with dimensions
from ..._trace.trace import typeof
from ..jit.programs import ShapeDtypeStruct
from .shape_text import parse_shape, unreadable


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


def symbolic_dim_bounds(dimension: Any) -> tuple[float, float]:
    """The least and the largest length of an axis that the constraints of its names leave, as far as they are known.

    Args:
      dimension: an integer, or a length from `symbolic_shape`.

    Returns:
      A pair of integers; -inf or inf where no bound is known.

    Raises:
      ArgumentError: `dimension` is no integer.

    >>> a, b = symbolic_shape("a, b", constraints=["a >= 4", "b <= 10"])
    >>> [symbolic_dim_bounds(n) for n in (a, a - b, a % 3)]
    [(4, inf), (-6, inf), (0, 2)]
    """
    if is_symbolic(dimension):
        return bounds(dimension)
    try:
        number = operator.index(dimension)
    except TypeError:
        raise ArgumentError(
            f"symbolic_dim_bounds: dimension is {dimension!r}", instead="an integer, or a length from symbolic_shape"
        ) from None
    return number, number


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
      OptionError: the text cannot be parsed, `like` has another number of axes or another length, or both `scope` and
        `constraints` are given.

    >>> symbolic_shape("a, 2*b + 1, 4")
    (a, 2*b + 1, 4)
    """
    text = "..." if shape_spec is None else shape_spec
    if scope is not None and constraints:
        raise OptionError("symbolic_shape takes either a scope or constraints", instead="SymbolicScope(constraints)")
    # All axes of one text belong to one scope, and so can be compared.
    where = scope if scope is not None else SymbolicScope(constraints)
    entries = parse_shape(text, where)
    lengths = None if like is None else list(like)
    dims: list[Any] = []
    for i, entry in enumerate(entries):
        if isinstance(entry, str) and entry == "...":
            if lengths is None or i != len(entries) - 1:
                raise OptionError(f"symbolic_shape({text!r}): '...' stands at the end, and needs like=...")
            # The rest of the lengths, however many.
            dims += lengths[i:]
            break
        if isinstance(entry, str):
            if lengths is None or i >= len(lengths) or lengths[i] is None:
                raise OptionError(f"symbolic_shape({text!r}): '_' needs a length in like=...")
            entry = lengths[i]
        dims.append(entry)
    if lengths is not None and len(dims) != len(lengths):
        raise OptionError(
            f"symbolic_shape({text!r}) has {len(dims)} axes, and like={tuple(lengths)} has {len(lengths)}"
        )
    for axis, (dim, length) in enumerate(zip(dims, lengths or dims, strict=True)):
        if type(dim) is int and type(length) is int and dim != length:
            raise OptionError(f"symbolic_shape({text!r}): axis {axis} has length {dim}, and {length} in like")
    return tuple(dims)


# Both relations are stored in the form "difference >= 0".
_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {">=": lambda x, y: x - y, "<=": lambda x, y: y - x}


def _constrain(scope: SymbolicScope, text: str) -> None:
    """Adds a constraint to a scope."""
    if not isinstance(text, str):
        raise OptionError(f"a constraint is a str, not {text!r}", instead="such as 'a >= 3'")
    # "==" first, as the others have its second character too.
    sign = next((s for s in ("==", ">=", "<=") if s in text), None)
    if sign is None:
        raise OptionError(f"the constraint {text!r} has none of '==', '>=' and '<='")
    sides = [part.strip() for part in text.split(sign, 1)]
    parsed = [symbolic_shape(side, scope=scope) for side in sides]
    if any(len(shape) != 1 for shape in parsed):
        raise unreadable(text, "a constraint compares two lengths")
    (left,), (right,) = parsed
    if sign == "==":
        _equate(scope, left, right, text)
        return
    difference = _RELATIONS[sign](left, right)
    # A constraint that no length meets is an error where it is written.
    if bounds(difference)[1] < 0:
        raise OptionError(f"Unsatisfiable constraint: {text}")
    # A number needs no constraint: it has just been compared.
    if isinstance(difference, SymbolicDim):
        scope.not_negative.append(difference)


def _equate(scope: SymbolicScope, left: Any, right: Any, text: str) -> None:
    if left == right:
        return
    terms = left.terms if isinstance(left, SymbolicDim) else {}
    # A single product, so that it can be replaced wherever its multiples occur.
    if len(terms) != 1:
        raise OptionError(
            f"the constraint {text!r} must have a product of names and operations on the left of '=='",
            instead="other sides of the equation, such as 'a == b + 3'",
        )
    ((product, factor),) = terms.items()
    # It would be replaced again and again.
    if isinstance(right, SymbolicDim) and any(quotient(term, product) is not None for term in right.terms):
        raise OptionError(
            f"the constraint {text!r} replaces {left} by {right}, which contains it again",
            instead="a new name for the length on the left",
        )
    scope.equal[product] = factor, right
    match product:
        case ((Operation("mod", (x, int(y))), 1),) if factor == 1 and right == 0:
            _equate(scope, y * operation("floordiv", x, y), x, text)


# The class is in a lower layer, which cannot parse text.
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
    # One scope for all arguments, in which equal names are equal lengths.
    where = scope if scope is not None else SymbolicScope(constraints)
    leaves, tree = pytree.flatten(args)
    if isinstance(shapes_specs, list) and isinstance(args, tuple):  # of positional arguments
        shapes_specs = tuple(shapes_specs)
    specs = pytree.spread("symbolic_args_specs shapes_specs", shapes_specs, args, pytree.is_none)
    structs = []
    for x, spec in zip(leaves, specs, strict=True):
        aval = typeof(x)
        structs.append(ShapeDtypeStruct(symbolic_shape(spec, scope=where, like=aval.shape), aval.dtype))
    return tree.unflatten(structs)
