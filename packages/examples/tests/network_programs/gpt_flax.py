"""A transformer that learns text character by character, and writes some, with keys and values cached."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from .data import CHARACTERS, characters


class Block(nnx.Module):
    def __init__(self, rngs):
        self.norm1 = nnx.LayerNorm(64, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(4, 64, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(64, rngs=rngs)
        self.up = nnx.Linear(64, 256, rngs=rngs)
        self.down = nnx.Linear(256, 64, rngs=rngs)

    def __call__(self, x, mask):
        x = x + self.attention(self.norm1(x), mask=mask)
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class GPT(nnx.Module):
    def __init__(self, rngs):
        size = len(CHARACTERS)
        self.tokens = nnx.Embed(size, 64, rngs=rngs)
        self.positions = nnx.Embed(64, 64, rngs=rngs)
        self.blocks = nnx.List([Block(rngs) for _ in range(3)])
        self.norm = nnx.LayerNorm(64, rngs=rngs)
        self.head = nnx.Linear(64, size, rngs=rngs)

    def __call__(self, tokens, start=0, cached=False):
        x = self.tokens(tokens) + self.positions(start + jnp.arange(tokens.shape[1]))
        mask = None if cached else nnx.make_causal_mask(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))


def loss(model, tokens):
    scores = model(tokens[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(scores, tokens[:, 1:]).mean()


@nnx.jit
def step(model, optimizer, tokens):
    value, grads = nnx.value_and_grad(loss)(model, tokens)
    optimizer.update(model, grads)
    return value


@nnx.jit
def write(model, token, place, key):
    scores = model(token, place, cached=True)
    return jax.random.categorical(key, scores[:, -1:])


def main(steps, length=40):
    model = GPT(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(3e-3), wrt=nnx.Param)
    losses = [float(step(model, optimizer, tokens)) for tokens in characters(steps)]
    for block in model.blocks:
        block.attention.init_cache((1, 64, 64))
        block.attention.set_attributes(decode=True)
    token, text = jnp.array([[CHARACTERS.index("t")]]), "t"
    for place, key in enumerate(jax.random.split(jax.random.key(1), length)):
        token = write(model, token, place, key)
        text += CHARACTERS[int(token[0, 0])]
    return losses, text
