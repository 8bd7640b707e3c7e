"""Tokens: values without content that put operations in order. What takes a token comes after what gave it.

A program of phlox consists of arrays, so a token is a tree with one array of no elements; `optimization_barrier` ties
it to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base import pytree
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
    """A token that comes after nothing (StableHLO's ``create_token``).

    >>> create_token()
    Token()
    """
    return Token(full((0,), False))


def after_all(*operands: Token) -> Token:
    """A token that comes after all of these (StableHLO's ``after_all``). Raises `ArgumentError` for what is no token.

    With `optimization_barrier` other values are put in order by it:

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

    Raises `AxisNameError` where nothing maps the axis, and `UnsupportedError`, as JAX does but on GPUs.

    >>> phlox.vmap(lambda x: psend(x, "i", [(0, 1)]), axis_name="i")(jnp.arange(2))
    Traceback (most recent call last):
    phlox.errors.UnsupportedError: psend: one half of an exchange cannot be compiled alone
    """
    raise _halved("psend", axis_name)


def precv(token: Token, out_shape: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """Receives an array of the type `out_shape` that `psend` sent (StableHLO's ``recv``). Raises as `psend` does.

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
