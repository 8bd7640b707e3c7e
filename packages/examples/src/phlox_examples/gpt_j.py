"""``./train gpt-j``: a tiny GPT-J learns to add, digit by digit.

GPT-J (Wang and Komatsuzaki 2021) differs from the first GPTs in two points. Its blocks have parallel branches:
attention and MLP see the same input, and both are added to it,

    x <- x + attention(norm(x)) + MLP(norm(x)),

so that the two can be computed at once. And positions are not added to what is read; queries and keys are rotated by
them, here and in GPT-J only a part of their features, two neighbours at a time,

    (a, b) <- (a cos t - b sin t, a sin t + b cos t),       t = position * 10000^(-2 i / n).

A product of a query and a key then depends on the distance of their positions alone (Su et al. 2021).

The text is sums, as "703+684=3970" for 307 + 486 = 793: all numbers are written backwards, as one adds from the right.
So the digits that make a digit of the answer are always at the same distances before it, which is what rotary positions
tell. The network never sees the sums that it is examined with, and must find the rule.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
import phlox_optim as optim

from . import plots, report, results
from .errors import ProgramError
from .options import settings_of

NAME = "gpt-j"
SIGNS = "0123456789+="
HEADS, ROTARY = 4, 8  # heads, and features of each that are rotated
TESTS = 1000
CHUNK = 100  # steps between two rows


def rotated(x: Any, features: int) -> Any:
    """Queries or keys (..., length, heads, size), of which the first `features` are rotated by their positions."""
    turning, rest = x[..., :features], x[..., features:]
    speeds = 10000.0 ** (-np.arange(0, features, 2) / features)
    angles = jnp.asarray(np.arange(x.shape[-3])[:, None, None] * speeds, x.dtype)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    a, b = turning[..., ::2], turning[..., 1::2]
    pairs = jnp.stack([a * cos - b * sin, a * sin + b * cos], axis=-1)
    return jnp.concatenate([pairs.reshape(turning.shape), rest], axis=-1)


class Attention(nn.Layer):
    """Causal attention with rotated queries and keys; no biases."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    out: nn.Linear
    heads: int
    rotary: int

    def weights(self, x: Any) -> Any:
        """How much each position attends to each other (..., heads, length, length)."""
        q, k = (rotated(self.split(f(x)), self.rotary) for f in (self.query, self.key))
        scores = jnp.einsum("...qhd,...khd->...hqk", q, k) / np.sqrt(q.shape[-1]).astype("float32")
        return nn.softmax(jnp.where(np.tri(x.shape[-2], dtype=bool), scores, -1e9))

    def split(self, x: Any) -> Any:
        """Features (..., n) as (..., heads, size)."""
        return x.reshape(*x.shape[:-1], self.heads, -1)

    def __call__(self, x: Any) -> Any:
        y = jnp.einsum("...hqk,...khd->...qhd", self.weights(x), self.split(self.value(x)))
        return self.out(y.reshape(x.shape))


class Block(nn.Layer):
    """Attention and MLP side by side."""

    norm: nn.LayerNorm
    attention: Attention
    mlp: nn.MLP

    def __call__(self, x: Any) -> Any:
        y = self.norm(x)
        return x + self.attention(y) + self.mlp(y)


class GPTJ(nn.Layer):
    """Scores of the next sign at each position of texts (n, length)."""

    tokens: nn.Embedding
    blocks: tuple[Block, ...]
    norm: nn.LayerNorm
    head: nn.Linear

    def __call__(self, tokens: Any) -> Any:
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def attended(self, tokens: Any) -> Any:
        """The weights of the attention of all blocks."""
        x, weights = self.tokens(tokens), []
        for block in self.blocks:
            weights.append(block.attention.weights(block.norm(x)))
            x = block(x)
        return jnp.stack(weights)


def network(signs: int, features: int, layers: int, heads: int = HEADS, rotary: int = ROTARY) -> GPTJ:
    """A GPT-J of so many features and layers."""
    square = nn.Linear(features, features, use_bias=False)

    def block() -> Block:
        attention = Attention(square, square, square, square, heads, rotary)
        return Block(nn.LayerNorm(features), attention, nn.MLP((features, 4 * features, features), nn.gelu))

    return GPTJ(
        nn.Embedding(signs, features),
        tuple(block() for _ in range(layers)),
        nn.LayerNorm(features),
        nn.Linear(features, signs),
    )


def written(a: Any, b: Any, digits: int) -> Any:
    """Sums as numbers of signs (n, 3 digits + 3): a, plus, b, equals and the answer, each from its last digit on."""

    def backwards(x: Any, digits: int) -> Any:
        return x[:, None] // 10 ** np.arange(digits) % 10

    plus, equals = (np.full((len(a), 1), SIGNS.index(c)) for c in "+=")
    parts = [backwards(a, digits), plus, backwards(b, digits), equals, backwards(a + b, digits + 1)]
    return np.concatenate(parts, 1).astype("int32")


def sums(options: argparse.Namespace) -> tuple[Any, Any]:
    """Sums to learn, for each step a batch (steps, batch, length), and others to be examined with."""
    random = np.random.default_rng(options.seed)
    most = 10**options.digits
    pairs = random.permutation(most * most)
    tests = min(TESTS, most)
    chosen = random.choice(pairs[tests:], (options.steps, options.batch_size))

    def text(pairs: Any) -> Any:
        return written(pairs // most, pairs % most, options.digits)

    return text(chosen.ravel()).reshape(*chosen.shape, -1), text(pairs[:tests])


def train(options: argparse.Namespace) -> dict[str, Any]:
    """Trains, examines, and looks at what is attended to."""
    model = network(len(SIGNS), options.features, options.layers)
    answer = 2 * options.digits + 1  # the position of the sign "=", from which on answers are predicted
    batches, tests = sums(options)

    def loss(params: Any, tokens: Any) -> Any:
        scores = model.apply(params, tokens[:, :-1])[:, answer:]
        return optim.softmax_cross_entropy_with_integer_labels(scores, tokens[:, answer + 1 :]).mean()

    warm = min(100, options.steps // 10)
    rate = optim.warmup_cosine_decay_schedule(0.0, options.learning_rate, warm, options.steps)
    tx = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(rate, weight_decay=0.01))

    def step(carry: Any, tokens: Any) -> Any:
        params, state = carry
        value, gradient = phlox.value_and_grad(loss)(params, tokens)
        updates, state = tx.update(gradient, state, params)
        return (optim.apply_updates(params, updates), state), value

    @phlox.jit
    def right(params: Any, tokens: Any) -> Any:
        """The shares of answers and of digits that are right, if each digit is appended to the text."""
        text = tokens.at[:, answer + 1 :].set(0)
        for place in range(answer, tokens.shape[1] - 1):
            text = text.at[:, place + 1].set(model.apply(params, text)[:, place].argmax(-1))
        hits = (text == tokens)[:, answer + 1 :]
        return hits.all(1).mean(), hits.mean(0)

    several = phlox.jit(lambda carry, tokens: phlox.lax.scan(step, carry, tokens))
    params = model.init(phlox.random.key(options.seed))
    carry, rows = (params, tx.init(params)), []
    chunk = min(CHUNK, options.steps)
    with report.progress("Training", options.steps // chunk) as shown:
        shown.row(" step", "  loss", "sums right")
        for number in shown.counted(range(options.steps // chunk)):
            carry, values = several(carry, batches[number * chunk : (number + 1) * chunk])
            share, digits = right(carry[0], tests)
            rows.append({"step": (number + 1) * chunk, "loss": float(values.mean()), "right": float(share)})
            if not np.isfinite(rows[-1]["loss"]):
                raise ProgramError("the loss has become infinite: choose a smaller --learning-rate", status=1)
            shown.row(str(rows[-1]["step"]), f"{rows[-1]['loss']:.4f}", f"{rows[-1]['right']:.1%}")
    weights = model.apply(carry[0], tests[:1], method="attended")
    return {
        "rows": rows,
        "digits": np.asarray(digits),
        "attended": np.asarray(weights)[:, 0],
        "example": "".join(SIGNS[i] for i in tests[0]),
    }


def draw(result: dict[str, Any], title: str) -> Figure:
    """The training, and what the digits of an answer attend to in each block."""
    figure = plots.figure(title, (12, 4.8))
    layers = len(result["attended"])
    grid = figure.add_gridspec(1, 1 + layers, width_ratios=(3, *[2] * layers))
    left = figure.add_subplot(grid[0])
    steps = [row["step"] for row in result["rows"]]
    plots.curve(left, steps, [row["right"] for row in result["rows"]], plots.ORANGE, "")
    left.set(title="Sums it has not seen: answers that are right", xlabel="step", ylim=(0, 1.05))
    plots.percents(left)
    text = result["example"]
    equals = text.index("=")
    for number, weights in enumerate(result["attended"]):
        axes = figure.add_subplot(grid[1 + number])
        # The largest of all heads; a row is the position before the digit that is predicted there.
        axes.imshow(weights.max(0)[equals:-1], cmap="Blues", vmin=0, vmax=1, aspect="equal")
        axes.set_xticks(range(len(text)), list(text), family="monospace")
        axes.set_yticks(range(len(text) - 1 - equals), list(text[equals + 1 :]), family="monospace")
        axes.set_title(f"Block {number + 1}: attention for\neach digit of the answer", fontsize=10)
    return figure


def run(options: argparse.Namespace) -> None:
    """Trains, examines, and draws."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = train(options)
    share = result["rows"][-1]["right"]
    title = f"A tiny GPT-J adds: {share:.1%} of sums that it has not seen are right"
    contents = {
        "settings": settings,
        "training": result["rows"],
        "sums_right": share,
        "digits_right": result["digits"].tolist(),
    }
    files = results.write(options, contents, draw(result, title))
    report.show(f"{share:.2%} of the sums are right. Wrote {' and '.join(files)}.")
