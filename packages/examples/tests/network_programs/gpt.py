"""A transformer that learns text character by character, and writes some, with keys and values cached."""

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
import phlox_optim as optim

from .data import CHARACTERS, characters


class GPT(nn.Layer):
    tokens: nn.Embedding
    positions: nn.Embedding
    blocks: nn.Sequential
    norm: nn.LayerNorm
    head: nn.Linear

    def __call__(self, tokens, start=0, cached=False):
        x = self.tokens(tokens) + self.positions(start + jnp.arange(tokens.shape[1]))
        x = self.blocks.decode(x) if cached else self.blocks(x)
        return self.head(self.norm(x))


attention = nn.MultiHeadAttention(64, 4, causal=True, cache_length=64)
block = nn.Sequential(
    nn.Residual(nn.Sequential(nn.LayerNorm(64), attention)),
    nn.Residual(nn.Sequential(nn.LayerNorm(64), nn.MLP((64, 256, 64)))),
)
size = len(CHARACTERS)
model = GPT(
    nn.Embedding(size, 64), nn.Embedding(64, 64), nn.Sequential(*3 * [block]), nn.LayerNorm(64), nn.Linear(64, size)
)


def loss(params, tokens):
    scores, _ = model.apply(params, tokens[:, :-1], state=model.init_state())
    return optim.softmax_cross_entropy_with_integer_labels(scores, tokens[:, 1:]).mean()


@phlox.jit
def write(params, token, place, state, key):
    scores, state = model.apply(params, token, place, cached=True, state=state)
    return phlox.random.categorical(key, scores[:, -1:]), state


def main(steps, length=40):
    step = optim.make_step(loss, optim.adamw(3e-3))
    train = step.init(model.init(phlox.random.key(0)))
    losses = []
    for batch in characters(steps):
        train, figures = step(train, batch)
        losses.append(float(figures["loss"]))
    token, state, text = jnp.array([[CHARACTERS.index("t")]]), model.init_state(batch=1), "t"
    for place, key in enumerate(phlox.random.split(phlox.random.key(1), length)):
        token, state = write(train.params, token, place, state, key)
        text += CHARACTERS[int(token[0, 0])]
    return losses, text
