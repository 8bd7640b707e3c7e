"""Choosing the next token from logits: penalties, restrictions to probable tokens, and drawing."""

from __future__ import annotations

import math
import numbers
from typing import Any, NamedTuple

import phlox.numpy as jnp
from phlox import lax, nn, random
from phlox.errors import ArgumentError


class Sampling(NamedTuple):
    """How tokens are chosen. What is None is not compiled into the program; numbers are arguments of it.

    Attributes:
      temperature: the divisor of logits; None: the most probable token is chosen.
      top_k: how many of the most probable tokens may be drawn.
      top_p: the sum of probabilities that the most probable tokens which may be drawn reach.
      min_p: the smallest probability of tokens that may be drawn, relative to the largest.
      repetition_penalty: logits of tokens that the text has are divided by it if positive, else multiplied.
    """

    temperature: Any = None
    top_k: int | None = None
    top_p: Any = None
    min_p: Any = None
    repetition_penalty: Any = None

    @property
    def numbers(self) -> dict[str, Any]:
        """The arguments of the compiled program."""
        values = self._asdict()
        return {name: jnp.float32(x) for name, x in values.items() if name != "top_k" and x is not None}

    @property
    def structure(self) -> Sampling:
        """This without numbers: the key of compiled programs."""
        return Sampling(*(x if name == "top_k" or x is None else True for name, x in self._asdict().items()))


def sampling(
    temperature: float, top_k: int | None, top_p: float | None, min_p: float | None, repetition_penalty: float | None
) -> Sampling:
    """A `Sampling` with these numbers. Raises `ArgumentError` for numbers outside of their ranges."""
    _check("temperature", temperature, "a number from 0 (the most probable token) on", lambda x: x >= 0)
    _check("top_p", top_p, "above 0 and at most 1", lambda x: 0 < x <= 1)
    _check("min_p", min_p, "from 0 to 1", lambda x: 0 <= x <= 1)
    _check("repetition_penalty", repetition_penalty, "a number above 0", lambda x: x > 0)
    if top_k is not None and (isinstance(top_k, bool) or not isinstance(top_k, numbers.Integral) or top_k < 1):
        raise ArgumentError(f"generate: top_k is {top_k!r}", instead="an integer from 1 on", argument="top_k")
    for name, value in (("top_k", top_k), ("top_p", top_p), ("min_p", min_p)):
        if value is not None and temperature == 0:
            raise ArgumentError(
                f"generate: {name} restricts what is drawn, but with temperature=0 the most probable token is chosen",
                instead="temperature=1.0, key=phlox.random.key(0)",
                argument=name,
            )
    penalty = None if repetition_penalty == 1 else repetition_penalty
    top_k = None if top_k is None else int(top_k)
    return Sampling(None if temperature == 0 else temperature, top_k, None if top_p == 1 else top_p, min_p, penalty)


def _check(name: str, value: Any, kind: str, is_valid: Any) -> None:
    if value is None:
        return
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not is_valid(value):
        raise ArgumentError(f"generate: {name} is {value!r}", instead=f"{name}: {kind}", argument=name)


def penalized(logits: Any, seen: Any, numbers: dict[str, Any]) -> Any:
    """Logits (batch, vocabulary) with the repetition penalty for tokens that are `seen`, bool (batch, vocabulary)."""
    if "repetition_penalty" not in numbers:
        return logits
    penalty = numbers["repetition_penalty"]
    return jnp.where(seen, jnp.where(logits < 0, logits * penalty, logits / penalty), logits)


def choose(logits: Any, structure: Sampling, numbers: dict[str, Any], key: Any) -> Any:
    """The next tokens (batch,) for penalized logits (batch, vocabulary)."""
    if structure.temperature is None:
        return jnp.argmax(logits, axis=-1).astype(jnp.int32)
    return random.categorical(key, restricted(logits, structure, numbers)).astype(jnp.int32)


def restricted(logits: Any, structure: Sampling, numbers: dict[str, Any]) -> Any:
    """Logits divided by the temperature, and -inf for tokens that may not be drawn."""
    logits = logits / numbers["temperature"]
    if structure.top_k is not None:
        least = lax.top_k(logits, min(structure.top_k, logits.shape[-1]))[0][:, -1:]
        logits = jnp.where(logits < least, -jnp.inf, logits)
    if structure.top_p is not None:
        # A token stays if those that are more probable do not reach top_p without it.
        descending = -jnp.sort(-logits, axis=-1)
        probabilities = nn.softmax(descending, axis=-1)
        before = jnp.cumsum(probabilities, axis=-1) - probabilities
        stays = before < numbers["top_p"]
        least = jnp.min(jnp.where(stays, descending, jnp.inf), axis=-1, keepdims=True)
        logits = jnp.where(logits < least, -jnp.inf, logits)
    if structure.min_p is not None:
        # A ratio of probabilities is a difference of logits.
        least = jnp.max(logits, axis=-1, keepdims=True) + jnp.log(numbers["min_p"])
        logits = jnp.where(logits < least, -jnp.inf, logits)
    return logits


def seen_tokens(tokens: Any, mask: Any, vocabulary: int, structure: Sampling) -> Any:
    """Whether each token is in each text, bool (batch, vocabulary); an empty array if nothing asks for it."""
    if structure.repetition_penalty is None:
        return jnp.zeros((len(tokens), 0), bool)
    seen = jnp.zeros((len(tokens), vocabulary), bool)
    return seen.at[jnp.arange(len(tokens))[:, None], jnp.where(mask, tokens, vocabulary)].set(True, mode="drop")
