"""Beam search: the most probable of many continuations, as Hugging Face's `generate` searches for it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import phlox
import phlox.numpy as jnp
from phlox import lax, nn

from ._language import init_cache
from ._prompts import Prompts
from ._sampling import Sampling, penalized

#: the score of what may not be chosen
_NEVER = -1e9


def search(
    model: Any,
    params: Any,
    texts: Prompts,
    ends: Any,
    settings: Sampling,
    max_new_tokens: int,
    beams: int,
    length_penalty: float,
    early_stopping: bool,
    length: int,
) -> tuple[Any, Any]:
    """New tokens (batch, length) of the best beam of each text, and how many it has."""
    from ._generate import cache_dtype

    first, following = _programs(model, settings.structure, beams, early_stopping)
    tokens, mask = texts.padded(beams)
    cache = init_cache(model, len(tokens), length, cache_dtype(params))
    limits = {"penalty": np.float32(length_penalty), "tokens": np.int32(max_new_tokens)}
    arguments = ends, limits, settings.numbers
    # The room for new tokens is as long as the cache, so that other numbers of tokens need no other program.
    room = np.zeros(length, np.int32)
    cache, state = first(params, tokens, mask, cache, room, *arguments)
    for _ in range(max_new_tokens - 1):
        if not bool(state["is_open"]):
            break
        cache, state = following(params, cache, state, *arguments)
    new, lengths = np.asarray(state["ended"])[:, 0], np.asarray(state["ended_lengths"])[:, 0]
    return new, lengths


@functools.lru_cache(maxsize=32)
def _programs(model: Any, structure: Sampling, beams: int, early_stopping: bool) -> tuple[Any, Any]:
    """The compiled functions for the first token of each beam, and for the following ones."""
    from ._generate import seen_tokens

    def advance(logits: Any, cache: Any, state: Any, ends: Any, limits: Any, numbers: Any) -> Any:
        batch = len(state["scores"])
        vocabulary = logits.shape[-1]
        scores = penalized(nn.log_softmax(logits.astype(jnp.float32)), state["seen"], numbers)
        scores = scores.reshape((batch, beams, vocabulary)) + state["scores"][:, :, None]
        # So many candidates that `beams` of them go on even if all others end.
        count = max(2, 1 + ends.eos.shape[0]) * beams
        best, index = lax.top_k(scores.reshape((batch, -1)), count)
        beam, tokens = index // vocabulary, (index % vocabulary).astype(jnp.int32)
        number = state["number"]
        texts = jnp.take_along_axis(state["texts"], beam[:, :, None], axis=1).at[:, :, number].set(tokens)
        recent = jnp.take_along_axis(state["recent"], beam[:, :, None], axis=1)
        recent = jnp.concatenate([recent, tokens[:, :, None]], axis=2)[:, :, 1:]
        is_end = ends.hit(tokens, recent) | (number + 1 >= limits["tokens"])

        going, chosen = lax.top_k(best + is_end * _NEVER, beams)

        def of_chosen(x: Any) -> Any:
            return jnp.take_along_axis(x, chosen.reshape(chosen.shape + (1,) * (x.ndim - 2)), axis=1)

        ended = _with_ended(state, texts, best, is_end, limits["penalty"], beams, early_stopping)
        rows = (of_chosen(beam) + jnp.arange(batch)[:, None] * beams).reshape(-1)
        new = of_chosen(tokens)
        seen = state["seen"]
        if structure.repetition_penalty is not None:
            seen = seen[rows].at[jnp.arange(batch * beams), new.reshape(-1)].set(True)
        worst = jnp.where(ended["is_ended"], jnp.min(ended["ended_scores"], axis=1, keepdims=True), _NEVER)
        possible = going[:, :1] / (number + 1).astype(jnp.float32) ** limits["penalty"]
        improvable = state["improvable"] & jnp.any(possible > worst, axis=1, keepdims=True)
        is_open = jnp.any(improvable) & ~jnp.all(is_end)
        if early_stopping:
            is_open &= ~jnp.all(ended["is_ended"])
        cache = phlox.tree.map(lambda x: x[rows] if x.ndim else x, cache)
        return cache, {
            **ended,
            "positions": state["positions"],
            "texts": of_chosen(texts),
            "recent": of_chosen(recent),
            "scores": going,
            "tokens": new.reshape(-1),
            "seen": seen,
            "number": number + 1,
            "improvable": improvable,
            "is_open": is_open,
        }

    @phlox.jit(donate_argnums=3)
    def first(params: Any, tokens: Any, mask: Any, cache: Any, room: Any, ends: Any, limits: Any, numbers: Any) -> Any:
        logits, cache = model.apply(params, tokens, mask, cache, method="prefill")
        batch = len(tokens) // beams
        empty = jnp.broadcast_to(room, (batch, beams, len(room)))
        state = {
            "positions": jnp.sum(mask, axis=1).astype(jnp.int32),
            "texts": empty,
            "ended": empty,
            "recent": jnp.full((batch, beams, ends.stops.shape[1]), -2, jnp.int32),
            # All beams of a text are equal at first: only one of them is continued.
            "scores": jnp.where(jnp.arange(beams) == 0, 0.0, _NEVER) * jnp.ones((batch, 1)),
            "ended_scores": jnp.full((batch, beams), _NEVER),
            "ended_lengths": jnp.zeros((batch, beams), jnp.int32),
            "is_ended": jnp.zeros((batch, beams), bool),
            "seen": seen_tokens(tokens, mask, logits.shape[-1], structure),
            "number": jnp.int32(0),
            "improvable": jnp.ones((batch, 1), bool),
        }
        return advance(logits, cache, state, ends, limits, numbers)

    @phlox.jit(donate_argnums=1)
    def following(params: Any, cache: Any, state: Any, ends: Any, limits: Any, numbers: Any) -> Any:
        logits, cache = model.apply(params, state["tokens"], state["positions"], cache, method="decode")
        state = {**state, "positions": state["positions"] + 1}
        return advance(logits, cache, state, ends, limits, numbers)

    return first, following


def _with_ended(
    state: dict[str, Any], texts: Any, scores: Any, is_end: Any, penalty: Any, beams: int, early_stopping: bool
) -> dict[str, Any]:
    """The best texts that have ended: those of the state, and those of the candidates that end now.

    Args:
      state: has `ended` (batch, beams, length), `ended_scores`, `ended_lengths` and `is_ended` (batch, beams).
      texts: of the candidates, (batch, candidates, length).
      scores, is_end: of the candidates, (batch, candidates), the best first.
    """
    length = state["number"] + 1
    # Only the best candidates may end; the others are there to go on.
    ends_now = is_end & (jnp.arange(is_end.shape[1]) < beams)
    scores = scores / length.astype(jnp.float32) ** penalty + ~ends_now * _NEVER + ~state["improvable"] * _NEVER
    if early_stopping:
        scores += jnp.all(state["is_ended"], axis=1, keepdims=True) * _NEVER
    merged = {
        "ended": (state["ended"], texts),
        "ended_lengths": (state["ended_lengths"], jnp.broadcast_to(length, scores.shape)),
        "is_ended": (state["is_ended"], ends_now),
    }
    best, index = lax.top_k(jnp.concatenate([state["ended_scores"], scores], axis=1), beams)

    def of_best(pair: Any) -> Any:
        joint = jnp.concatenate(pair, axis=1)
        return jnp.take_along_axis(joint, index.reshape(index.shape + (1,) * (joint.ndim - 2)), axis=1)

    return {"ended_scores": best, **{name: of_best(pair) for name, pair in merged.items()}}
