"""`generate`: texts from a language model, token by token.

Prompts are padded at the left to a bucket of lengths, and the cache of keys and values has a static size, so that
there are two programs for each bucket: one reads the prompts (prefill), one makes the next token of each text (decode).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import phlox
import phlox.numpy as jnp
from phlox import random
from phlox.errors import ArgumentError

from . import _beams
from ._language import cache_dtype, init_cache
from ._prompts import Prompts, bucket, prompts
from ._sampling import Sampling, choose, penalized, sampling, seen_tokens


class Ends(NamedTuple):
    """What ends a text.

    Attributes:
      eos: tokens of which each ends a text, int32 (count,).
      stops: sequences of tokens that end a text, int32 (count, longest), with -1 at the left of shorter ones.
      pad: the token after the end.
    """

    eos: Any
    stops: Any
    pad: int

    def hit(self, tokens: Any, recent: Any) -> Any:
        """Whether texts end with their newest tokens (...,); `recent` are their last tokens (..., longest)."""
        done = jnp.any(tokens[..., None] == self.eos, axis=-1)
        matches = (recent[..., None, :] == self.stops) | (self.stops == -1)
        return done | jnp.any(jnp.all(matches, axis=-1), axis=-1)


def generate(
    model: Any,
    params: Any,
    prompt: Any,
    *,
    max_new_tokens: int,
    mask: Any = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float | None = None,
    key: Any = None,
    eos: int | Sequence[int] | str | None = "config",
    stop: Sequence[Sequence[int]] = (),
    beams: int = 1,
    length_penalty: float = 1.0,
    early_stopping: bool = False,
    callback: Callable[[Any], Any] | None = None,
) -> Any:
    """Continues texts, by default with the most probable token at each place.

    Args:
      model: a language model, from `load` or `build`.
      params: its parameters, of any floating-point dtype.
      prompt: tokens: an array (length,) or (batch, length), or a list of arrays (length,) of different lengths. The
        encoder of T5 reads them.
      max_new_tokens: how many tokens are added at most.
      mask: bools like an array of prompts, false for padding.
      temperature: 0 chooses the most probable token. Above 0 tokens are drawn, with logits divided by it.
      top_k: draws only from so many of the most probable tokens.
      top_p: draws only from the most probable tokens whose probabilities together reach this number.
      min_p: draws only tokens whose probability is at least this part of the largest.
      repetition_penalty: above 1 makes tokens that the text has less probable.
      key: a PRNG key, for drawing.
      eos: the token, or several, that end a text; "config": `eos_token_id` of the model's configuration.
      stop: sequences of new tokens that end a text; they are part of the result.
      beams: how many continuations of each text are searched for the most probable one.
      length_penalty: with beams, log-probabilities are divided by the length to this power.
      early_stopping: with beams, whether the search ends as soon as so many texts have ended.
      callback: called with the new tokens (batch,), a NumPy array, as soon as they are known; texts that have ended get
        the padding token.

    Returns:
      The prompts with the new tokens, in the form of `prompt`; arrays (batch, length) have the padding token
      (`pad_token_id` of the configuration, else `eos`) after the end of texts. T5's results begin with the first token
      of the decoder instead of the prompt.

    Raises:
      ArgumentError: an argument is out of its range, a prompt is empty or has unknown tokens, or the texts would become
        longer than the model's positions.

    >>> import phlox
    >>> import phlox_models
    >>> model = phlox_models.build(
    ...     {"model_type": "gpt2", "vocab_size": 100, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2}
    ... )
    >>> params = model.init(phlox.random.key(0))
    >>> phlox_models.generate(model, params, phlox.numpy.array([1, 2, 3]), max_new_tokens=5).shape
    (8,)
    """
    _check_model(model)
    settings = sampling(temperature, top_k, top_p, min_p, repetition_penalty)
    texts = prompts(prompt, mask, model.config.integer("vocab_size"))
    _check_lengths(model, texts, max_new_tokens, beams)
    max_new_tokens, beams = int(max_new_tokens), int(beams)  # of NumPy, too
    if settings.temperature is not None and key is None:
        raise ArgumentError("generate: drawing tokens needs a key", instead="key=phlox.random.key(0)", argument="key")
    ends = _ends(model, eos, stop)
    length = bucket(max_new_tokens + (1 if model.start_token is not None else bucket(texts.longest)))
    if beams > 1:
        if settings.temperature is not None or callback is not None:
            other = "a callback" if callback is not None else "a temperature"
            raise ArgumentError(f"generate: beams do not go with {other}", instead="beams=1", argument="beams")
        if ends.pad == 0 and ends.eos.size:  # as in Hugging Face's beam search, where 0 is not taken for a token
            ends = ends._replace(pad=int(ends.eos[0]))
        new, lengths = _beams.search(
            model, params, texts, ends, settings, max_new_tokens, beams, length_penalty, early_stopping, length
        )
    else:
        new, lengths = _loop(model, params, texts, ends, settings, max_new_tokens, key, callback, length)
    return texts.with_new(new, lengths, ends.pad, model.start_token)


def _loop(
    model: Any,
    params: Any,
    texts: Prompts,
    ends: Ends,
    settings: Sampling,
    max_new_tokens: int,
    key: Any,
    callback: Callable[[Any], Any] | None,
    length: int,
) -> tuple[Any, Any]:
    """New tokens (batch, length) and how many each text has."""
    first, following = _programs(model, settings.structure)
    tokens, mask = texts.padded()
    cache = init_cache(model, len(tokens), length, cache_dtype(params))
    key = random.key(0) if key is None else key
    arguments = ends, settings.numbers
    cache, state = first(params, tokens, mask, cache, key, *arguments)
    columns = []
    for number in range(max_new_tokens):
        if number:
            cache, state = following(params, cache, state, *arguments)
        columns.append(state["tokens"])
        if callback is not None:
            callback(np.asarray(columns[-1]))
        # Only what can end is asked: reading the answer waits for the device.
        if (ends.eos.size or ends.stops.size) and bool(state["done"].all()):
            break
    new = np.stack([np.asarray(column) for column in columns], axis=1)
    return new, np.asarray(state["lengths"])


@functools.lru_cache(maxsize=32)
def _programs(model: Any, structure: Sampling) -> tuple[Any, Any]:
    """The compiled functions for the first token, and for the following ones."""

    def advance(logits: Any, state: dict[str, Any], ends: Ends, numbers: Any) -> dict[str, Any]:
        """The state with the tokens that these logits choose."""
        key, drawing = random.split(state["key"])
        logits = penalized(logits.astype(jnp.float32), state["seen"], numbers)
        tokens = jnp.where(state["done"], ends.pad, choose(logits, structure, numbers, drawing))
        recent = jnp.concatenate([state["recent"], tokens[:, None]], axis=1)[:, 1:]
        seen = state["seen"]
        if structure.repetition_penalty is not None:
            seen = seen.at[jnp.arange(len(tokens)), tokens].set(True)
        return {
            **state,
            "tokens": tokens,
            "lengths": state["lengths"] + ~state["done"],
            "done": state["done"] | ends.hit(tokens, recent),
            "recent": recent,
            "seen": seen,
            "key": key,
        }

    @phlox.jit(donate_argnums=3)
    def first(params: Any, tokens: Any, mask: Any, cache: Any, key: Any, ends: Ends, numbers: Any) -> Any:
        logits, cache = model.apply(params, tokens, mask, cache, method="prefill")
        batch = len(tokens)
        state = {
            "positions": jnp.sum(mask, axis=1).astype(jnp.int32),
            "lengths": jnp.zeros(batch, jnp.int32),
            "done": jnp.zeros(batch, bool),
            "recent": jnp.full((batch, ends.stops.shape[1]), -2, jnp.int32),
            "seen": seen_tokens(tokens, mask, logits.shape[-1], structure),
            "key": key,
        }
        return cache, advance(logits, state, ends, numbers)

    @phlox.jit(donate_argnums=1)
    def following(params: Any, cache: Any, state: Any, ends: Ends, numbers: Any) -> Any:
        logits, cache = model.apply(params, state["tokens"], state["positions"], cache, method="decode")
        state = {**state, "positions": state["positions"] + 1}
        return cache, advance(logits, state, ends, numbers)

    return first, following


def _ends(model: Any, eos: Any, stop: Sequence[Sequence[int]]) -> Ends:
    """What ends texts, from the arguments of `generate`."""
    tokens = model.config.get("eos_token_id") if isinstance(eos, str) and eos == "config" else eos
    tokens = [] if tokens is None else [tokens] if isinstance(tokens, int | np.integer) else list(tokens)
    pad = model.config.get("pad_token_id")
    pad = pad if type(pad) is int else tokens[0] if tokens else 0
    sequences = [[one] if isinstance(one, int | np.integer) else list(one) for one in stop]
    if not all(sequences):
        raise ArgumentError("generate: a stop sequence is empty", instead="stop=[[198], [50256]]", argument="stop")
    for token in (*tokens, *(token for sequence in sequences for token in sequence)):
        if not isinstance(token, int | np.integer) or isinstance(token, bool) or token < 0:
            raise ArgumentError(
                f"generate: {token!r} is no token",
                instead="eos=50256, and stop=[[198, 198]]: sequences of tokens, which the tokenizer makes of texts",
                argument="stop",
            )
    longest = max(map(len, sequences), default=0)
    stops = np.full((len(sequences), longest), -1, np.int32)
    for row, sequence in zip(stops, sequences, strict=True):
        row[longest - len(sequence) :] = sequence
    return Ends(np.array(tokens, np.int32), stops, int(pad))


def _check_model(model: Any) -> None:
    # Layers around a model, such as phlox_nn.Quantized, have its methods.
    if not hasattr(model, "prefill"):
        raise ArgumentError(
            f"generate: {type(model).__name__} does not generate tokens",
            instead="a language model, such as GPT-2 or T5",
        )
    model.config.head("ForCausalLM" if model.start_token is None else "ForConditionalGeneration")  # raises for others


def _check_lengths(model: Any, texts: Prompts, max_new_tokens: int, beams: int) -> None:
    for name, value in (("max_new_tokens", max_new_tokens), ("beams", beams)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise ArgumentError(f"generate: {name} is {value!r}", instead="an integer from 1 on", argument=name)
    longest = model.max_length
    if longest is not None and texts.longest + max_new_tokens > longest:
        raise ArgumentError(
            f"generate: a prompt of {texts.longest} tokens and max_new_tokens={max_new_tokens} are more than the "
            f"{longest} positions of the model",
            instead=f"max_new_tokens={max(longest - texts.longest, 0)} or less, or a shorter prompt",
            argument="max_new_tokens",
        )
