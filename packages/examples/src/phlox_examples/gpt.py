"""``./train gpt``: a transformer learns Python's documentation letter by letter, and writes some of its own.

A language model says how probable each next character is, given those before: p(c_t | c_1 ... c_(t-1)). Their product
is the probability of a text, and the loss is minus its logarithm, per character: in nats; divided by log 2, in bits.

The network is a small GPT: characters and their positions become vectors, which pass through blocks of attention and
MLP. Attention is causal, no place sees a later one, so a text of n characters is n examples at once.

To write, one draws a character from p, appends it, and asks again. The keys and values of earlier characters do not
change by that: they are kept in a cache, and each new character costs one step, not a pass over the whole text. The
cache is state of the network, which `apply` takes and returns; `lax.scan` makes all steps one compiled program.
"""

from __future__ import annotations

import argparse
import math
import textwrap
from pydoc_data.topics import topics
from typing import Any

import numpy as np

import phlox
import phlox.numpy as jnp
import phlox_data
import phlox_nn as nn
import phlox_optim as optim

from . import plots, report, results
from .errors import ProgramError
from .fitting import fit
from .options import settings_of

FEATURES, LENGTH = 96, 64
WRITTEN = 960  # characters that it writes
START = "The "


def text() -> str:
    """What ``help()`` of Python says on the topics of the language, without tables and other characters than ASCII."""
    lines = "\n".join(topics[name] for name in sorted(topics)).splitlines()
    joined = "\n".join(line for line in lines if not line.lstrip().startswith(("+--", "+==", "|")))
    return "".join(c for c in joined if c == "\n" or " " <= c <= "~")


class GPT(nn.Layer):
    """Scores of the next character at each place of texts (n, length)."""

    tokens: nn.Embedding
    positions: nn.Embedding
    blocks: nn.Stack
    norm: nn.LayerNorm
    head: nn.Linear

    def __call__(self, tokens: Any, start: Any = 0, cached: bool = False) -> Any:
        x = self.tokens(tokens) + self.positions(start + jnp.arange(tokens.shape[1]))
        x = self.blocks.decode(x) if cached else self.blocks(x)
        return self.head(self.norm(x))


def network(characters: int, layers: int) -> GPT:
    """A network for so many different characters."""
    attention = nn.MultiHeadAttention(FEATURES, 4, causal=True, cache_length=LENGTH)
    block = nn.Sequential(
        nn.Residual(nn.Sequential(nn.LayerNorm(FEATURES), attention)),
        nn.Residual(nn.Sequential(nn.LayerNorm(FEATURES), nn.MLP((FEATURES, 4 * FEATURES, FEATURES), nn.gelu))),
    )
    return GPT(
        nn.Embedding(characters, FEATURES),
        nn.Embedding(LENGTH, FEATURES),
        nn.Stack(block, layers),
        nn.LayerNorm(FEATURES),
        nn.Linear(FEATURES, characters),
    )


def run(options: argparse.Namespace) -> None:
    """Trains on the first nine tenths of the text, measures on the last, and writes."""
    results.make_folder(options.out, "--out")

    # 1. The data: pieces of the text, each one character longer than the network sees, as the last is only predicted.
    written = text()
    characters = sorted(set(written))
    numbers = np.array([characters.index(c) for c in written], np.int32)
    pieces = numbers[: len(numbers) // (LENGTH + 1) * (LENGTH + 1)].reshape(-1, LENGTH + 1)
    cut = len(pieces) * 9 // 10
    train, test = pieces[: min(cut, options.pieces)], pieces[cut:][: options.pieces]
    if options.batch_size > len(train):
        raise ProgramError(f"--batch-size {options.batch_size}: there are only {len(train)} pieces to learn from")
    batches = phlox_data.batches(train, options.batch_size, seed=options.seed, last="drop")

    # 2. The model and its loss. In training the cache is not used, and the state that it lives in is dropped.
    model = network(len(characters), options.layers)

    def loss(params: Any, tokens: Any) -> Any:
        scores, _ = model.apply(params, tokens[:, :-1], state=model.init_state())
        return optim.softmax_cross_entropy_with_integer_labels(scores, tokens[:, 1:]).mean()

    # 3. The training.
    total = options.epochs * len(batches)
    rate = optim.warmup_cosine_decay_schedule(0.0, options.learning_rate, min(100, total // 10), total)
    step = optim.make_step(loss, optim.adamw(rate, weight_decay=0.01), clip=1.0)
    state = step.init(model.init(phlox.random.key(options.seed)))
    tests = phlox_data.batches(test, min(256, len(test)))
    evaluate = optim.make_evaluation(lambda params, tokens: {"loss": loss(params, tokens)}, tests, prefix="test_")
    state, history = fit(state, step, batches, epochs=options.epochs, evaluate=evaluate)

    # 4. Writing.
    sample = write(model, state.params, characters, phlox.random.key(options.seed + 1))
    report.show(sample)
    bits = history[-1]["test_loss"] / math.log(2)
    figure = plots.figure(f"A transformer needs {bits:.2f} bits a character of unseen documentation", (12, 5.6))
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.3))
    plots.loss_curves(left, history, {"loss": "training", "test_loss": "test"})
    right.axis("off")
    right.set_title(f"What it writes after {START!r}", loc="left")
    right.text(0, 0.98, wrapped(sample, 76), family="monospace", fontsize=9, va="top", parse_math=False)
    contents = {"settings": settings_of(options), "epochs": history, "bits_per_character": bits, "sample": sample}
    files = results.write(options, contents, figure)
    report.show(f"{bits:.2f} bits a character. Wrote {' and '.join(files)}.")


def write(model: GPT, params: Any, characters: list[str], key: Any) -> str:
    """A text that begins with START, several pieces of LENGTH characters long."""

    @phlox.jit
    def piece(params: Any, prompt: Any, key: Any) -> Any:
        """The rest of a piece that begins with the numbers `prompt`, (1, n)."""

        def next_character(carry: Any, key: Any) -> Any:
            token, place, state = carry
            scores, state = model.apply(params, token, place, cached=True, state=state)
            token = phlox.random.categorical(key, scores[:, -1:] / 0.8)  # bolder than p, to err less
            return (token, place + 1, state), token[0, 0]

        _, state = model.apply(params, prompt[:, :-1], cached=True, state=model.init_state(batch=1))
        carry = prompt[:, -1:], jnp.int32(prompt.shape[1] - 1), state
        _, tokens = phlox.lax.scan(next_character, carry, phlox.random.split(key, LENGTH - prompt.shape[1]))
        return tokens

    # The cache is as long as a piece: after that it is filled anew, with the end of what was written.
    numbers = [characters.index(c) for c in START]
    for number in range(WRITTEN):
        if len(numbers) >= WRITTEN:
            break
        prompt = jnp.array([numbers[-(LENGTH // 2) :]])
        numbers += np.asarray(piece(params, prompt, phlox.random.fold_in(key, number))).tolist()
    return "".join(characters[number] for number in numbers)


def wrapped(sample: str, width: int) -> str:
    """The text in lines of at most `width` characters, broken between words, 26 of them."""
    lines = [part for line in sample.split("\n") for part in textwrap.wrap(line, width) or [""]]
    return "\n".join(lines[:26])
