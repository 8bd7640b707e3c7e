"""Beam search: the most probable of many continuations, as Hugging Face's `generate` searches for it.

Each prompt has `beams` open texts. A step continues each of them by every token and keeps the most probable ones. Texts
that end compete with those that ended before, by their log-probability divided by a power of their length.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

import phlox
import phlox.numpy as jnp
from phlox import lax, nn

from ._language import cache_dtype, init_cache
from ._prompts import Prompts
from ._sampling import Sampling, penalized, seen_tokens

#: the score of what may not be chosen
_NEVER = -1e9


class Limits(NamedTuple):
    """Numbers that the compiled programs take as arguments.

    Attributes:
      penalty: log-probabilities are divided by the length of the text to this power.
      tokens: the largest number of new tokens.
    """

    penalty: Any
    tokens: Any


class Ended(NamedTuple):
    """The best texts that have ended, of each prompt: arrays (batch, beams, ...).

    Attributes:
      texts: the new tokens, (batch, beams, length).
      lengths: how many each has.
      scores: log-probabilities, divided by a power of the length.
      is_used: false where no text has ended yet.
    """

    texts: Any
    lengths: Any
    scores: Any
    is_used: Any


class Open(NamedTuple):
    """The open texts of each prompt, or candidates for them: arrays (batch, beams, ...).

    Attributes:
      scores: log-probabilities.
      parents: the beams that the texts continue.
      tokens: the newest token.
      texts: the new tokens, (batch, beams, length).
      recent: the last tokens, as many as the longest stop sequence has.
    """

    scores: Any
    parents: Any
    tokens: Any
    texts: Any
    recent: Any


class State(NamedTuple):
    """What a step needs besides the cache.

    Attributes:
      open: the open texts, the most probable first.
      ended: the best texts that have ended.
      positions: of the newest tokens in their texts, prompt included, int32 (batch * beams,).
      seen: from `seen_tokens`, for each open text.
      number: how many new tokens the open texts have.
      improvable: whether an open text may become better than one that has ended, bool (batch, 1).
      goes_on: whether the search needs another step.
    """

    open: Open
    ended: Ended
    positions: Any
    seen: Any
    number: Any
    improvable: Any
    goes_on: Any


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
    first, following = _programs(Search(model, settings.structure, beams, early_stopping))
    tokens, mask = texts.padded(beams)
    cache = init_cache(model, len(tokens), length, cache_dtype(params))
    arguments = ends, Limits(np.float32(length_penalty), np.int32(max_new_tokens)), settings.numbers
    # The room for new tokens is as long as the cache, so that other numbers of tokens need no other program.
    room = np.zeros(length, np.int32)
    cache, state = first(params, tokens, mask, cache, room, *arguments)
    for _ in range(max_new_tokens - 1):
        if not bool(state.goes_on):
            break
        cache, state = following(params, cache, state, *arguments)
    return np.asarray(state.ended.texts)[:, 0], np.asarray(state.ended.lengths)[:, 0]


@dataclasses.dataclass(frozen=True)
class Search:
    """The steps of a search. Its fields are constants of the compiled programs."""

    model: Any
    structure: Sampling
    beams: int
    early_stopping: bool

    def first(
        self, params: Any, tokens: Any, mask: Any, cache: Any, room: Any, ends: Any, limits: Limits, numbers: Any
    ) -> tuple[Any, State]:
        """The cache and the state after the first token of each beam."""
        logits, cache = self.model.apply(params, tokens, mask, cache, method="prefill")
        seen = seen_tokens(tokens, mask, logits.shape[-1], self.structure)
        state = self._initial(len(tokens) // self.beams, room, ends, jnp.sum(mask, axis=1).astype(jnp.int32), seen)
        return self._advance(logits, cache, state, ends, limits, numbers)

    def following(
        self, params: Any, cache: Any, state: State, ends: Any, limits: Limits, numbers: Any
    ) -> tuple[Any, State]:
        """The cache and the state after one more token."""
        tokens = state.open.tokens.reshape(-1)
        logits, cache = self.model.apply(params, tokens, state.positions, cache, method="decode")
        state = state._replace(positions=state.positions + 1)
        return self._advance(logits, cache, state, ends, limits, numbers)

    def _initial(self, batch: int, room: Any, ends: Any, positions: Any, seen: Any) -> State:
        """The state before the first token."""
        shape = batch, self.beams
        texts, zeros = jnp.broadcast_to(room, (*shape, len(room))), jnp.zeros(shape, jnp.int32)
        recent = jnp.full((*shape, ends.stops.shape[1]), -2, jnp.int32)
        # All beams of a text are equal at first: only one of them is continued.
        scores = jnp.where(jnp.arange(self.beams) == 0, 0.0, _NEVER) * jnp.ones((batch, 1))
        ended = Ended(texts, zeros, jnp.full(shape, _NEVER), jnp.zeros(shape, bool))
        improvable = jnp.ones((batch, 1), bool)
        return State(
            Open(scores, zeros, zeros, texts, recent), ended, positions, seen, jnp.int32(0), improvable, jnp.array(True)
        )

    def _advance(
        self, logits: Any, cache: Any, state: State, ends: Any, limits: Limits, numbers: Any
    ) -> tuple[Any, State]:
        """The cache and the state with the tokens that these logits (batch * beams, vocabulary) choose."""
        candidates = self._candidates(logits, state, ends, numbers)
        is_end = ends.hit(candidates.tokens, candidates.recent) | (state.number + 1 >= limits.tokens)
        ended = self._with_ended(state, candidates, is_end, limits)
        scores, index = lax.top_k(candidates.scores + is_end * _NEVER, self.beams)
        chosen = _of_best(candidates, index)._replace(scores=scores)

        batch = len(scores)
        rows = (chosen.parents + jnp.arange(batch)[:, None] * self.beams).reshape(-1)
        seen = state.seen
        if self.structure.repetition_penalty is not None:
            seen = seen[rows].at[jnp.arange(batch * self.beams), chosen.tokens.reshape(-1)].set(True)
        worst = jnp.where(ended.is_used, jnp.min(ended.scores, axis=1, keepdims=True), _NEVER)
        possible = scores[:, :1] / (state.number + 1).astype(jnp.float32) ** limits.penalty
        improvable = state.improvable & jnp.any(possible > worst, axis=1, keepdims=True)
        goes_on = jnp.any(improvable) & ~jnp.all(is_end)
        if self.early_stopping:
            goes_on &= ~jnp.all(ended.is_used)
        cache = phlox.tree.map(lambda x: x[rows] if x.ndim else x, cache)
        return cache, State(chosen, ended, state.positions, seen, state.number + 1, improvable, goes_on)

    def _candidates(self, logits: Any, state: State, ends: Any, numbers: Any) -> Open:
        """The most probable texts with one more token, the best first: so many that `beams` of them do not end."""
        batch, vocabulary = len(state.open.scores), logits.shape[-1]
        scores = penalized(nn.log_softmax(logits.astype(jnp.float32)), state.seen, numbers)
        scores = scores.reshape((batch, self.beams, vocabulary)) + state.open.scores[:, :, None]
        count = max(2, 1 + ends.eos.shape[0]) * self.beams
        scores, index = lax.top_k(scores.reshape((batch, -1)), count)
        parents, tokens = index // vocabulary, (index % vocabulary).astype(jnp.int32)
        texts, recent = _of_best((state.open.texts, state.open.recent), parents)
        recent = jnp.concatenate([recent, tokens[:, :, None]], axis=2)[:, :, 1:]
        return Open(scores, parents, tokens, texts.at[:, :, state.number].set(tokens), recent)

    def _with_ended(self, state: State, candidates: Open, is_end: Any, limits: Limits) -> Ended:
        """The best texts that have ended: those of the state, and those of the candidates that end now."""
        length = state.number + 1
        # Only the best candidates may end; the others are there to go on.
        ends_now = is_end & (jnp.arange(is_end.shape[1]) < self.beams)
        scores = candidates.scores / length.astype(jnp.float32) ** limits.penalty
        scores += ~ends_now * _NEVER + ~state.improvable * _NEVER
        if self.early_stopping:
            scores += jnp.all(state.ended.is_used, axis=1, keepdims=True) * _NEVER
        new = Ended(candidates.texts, jnp.broadcast_to(length, scores.shape), scores, ends_now)
        both = Ended(*(jnp.concatenate(pair, axis=1) for pair in zip(state.ended, new, strict=True)))
        return _of_best(both, lax.top_k(both.scores, self.beams)[1])


@functools.lru_cache(maxsize=32)
def _programs(steps: Search) -> tuple[Any, Any]:
    """The compiled functions for the first token of each beam, and for the following ones."""
    return phlox.jit(steps.first, donate_argnums=3), phlox.jit(steps.following, donate_argnums=1)


def _of_best(arrays: Any, index: Any) -> Any:
    """The rows of arrays (batch, n, ...) that an index (batch, m) chooses, in arrays (batch, m, ...)."""
    return phlox.tree.map(
        lambda x: jnp.take_along_axis(x, index.reshape(index.shape + (1,) * (x.ndim - 2)), axis=1), arrays
    )
