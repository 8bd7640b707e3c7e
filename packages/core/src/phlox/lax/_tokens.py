"""Tokens: values without content that put operations in order. What takes a token comes after what gave it.

A program of phlox consists of arrays, so a token is a tree with one array of no elements; `optimization_barrier` ties
it to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base import pytree
from .._base.docstrings import docs_from
from .._base.errors import ArgumentError, UnsupportedError
from ._conveniences import full
from ._parallel import AxisName, names_of
from ._staging import optimization_barrier


class Token:
    """A place in the order of operations; made by `create_token` and `after_all`."""

    __slots__ = ("_order",)

    def __init__(self, order: Any):
        self._order = order

    def __repr__(self) -> str:
        return "Token()"

    def block_until_ready(self) -> Token:
        """The token, when all that it comes after is done."""
        self._order.block_until_ready()
        return self


pytree.register_pytree_node(Token, lambda token: ((token._order,), None), lambda _, children: Token(*children))


def create_token(_: Any = None) -> Token:
    """A new token, which is not ordered after anything (StableHLO's ``create_token``).

    Args:
      _: not used; JAX takes an argument here.

    Returns:
      A `Token`.

    >>> create_token()
    Token()
    """
    # An array without elements: its place in the data flow of the program is the order.
    return Token(full((0,), False))


def after_all(*operands: Token) -> Token:
    """A token that is ordered after all given tokens (StableHLO's ``after_all``).

    By `optimization_barrier` it puts other values in order too; see the example.

    Args:
      *operands: tokens to wait for.

    Returns:
      A `Token`.

    Raises:
      ArgumentError: an operand is not a token.

    >>> x, token = optimization_barrier((jnp.ones(2), create_token()))
    >>> y, token = optimization_barrier((jnp.zeros(2), after_all(token)))  # y comes after x
    >>> token
    Token()
    """
    for position, x in enumerate(operands):
        if not isinstance(x, Token):
            raise ArgumentError(
                f"after_all takes tokens, got {type(x).__name__} as argument {position}",
                instead="phlox.lax.create_token()",
                argument=position,
                value=x,
            )
    return optimization_barrier(operands)[0] if operands else create_token()


def psend(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """Sends `x` along a mapped axis to a receiver that `precv` makes (StableHLO's ``send``). No platform that phlox
    knows can do it.

    Args:
      x: array.
      axis_name: name of the mapped axis.
      perm: pairs (source, target) of indices along the axis.

    Returns:
      Nothing: it always raises.

    Raises:
      AxisNameError: no mapped axis has this name.
      UnsupportedError: always, as in JAX but on GPUs; `ppermute` does both halves at once.

    >>> phlox.vmap(lambda x: psend(x, "i", [(0, 1)]), axis_name="i")(jnp.arange(2))
    Traceback (most recent call last):
    phlox.errors.UnsupportedError: psend: one half of an exchange cannot be compiled alone
    """
    raise _halved("psend", axis_name)


@docs_from(psend)
def precv(token: Token, out_shape: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """Receives the array that `psend` sent along a mapped axis (StableHLO's ``recv``). No platform that phlox knows can
    do it.

    Args:
      token: the token that `psend` returned.
      out_shape: array or `ShapeDtypeStruct` of the shape and dtype of what arrives.

    >>> phlox.vmap(lambda x: precv(create_token(), x, "i", [(0, 1)]), axis_name="i")(jnp.arange(2))
    Traceback (most recent call last):
    phlox.errors.UnsupportedError: precv: one half of an exchange cannot be compiled alone
    """
    raise _halved("precv", axis_name)


def _halved(function: str, axis_name: AxisName) -> UnsupportedError:
    names_of(axis_name)
    return UnsupportedError(
        f"{function}: one half of an exchange cannot be compiled alone", instead="phlox.lax.ppermute, which is both"
    )
