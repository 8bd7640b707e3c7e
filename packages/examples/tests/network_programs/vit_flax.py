"""A vision transformer (Dosovitskiy et al., 2020) for digits, in patches of 2 x 2."""

import jax
import optax
from flax import nnx

from .data import digits


class Block(nnx.Module):
    def __init__(self, rngs):
        self.norm1 = nnx.LayerNorm(64, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(4, 64, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(64, rngs=rngs)
        self.up = nnx.Linear(64, 256, rngs=rngs)
        self.down = nnx.Linear(256, 64, rngs=rngs)

    def __call__(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class ViT(nnx.Module):
    def __init__(self, rngs):
        self.patches = nnx.Conv(1, 64, (2, 2), strides=2, rngs=rngs)
        self.positions = nnx.Param(0.02 * jax.random.normal(rngs.params(), (16, 64)))
        self.blocks = nnx.Sequential(*[Block(rngs) for _ in range(4)])
        self.norm = nnx.LayerNorm(64, rngs=rngs)
        self.head = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, images):
        x = self.patches(images).reshape(len(images), 16, 64) + self.positions
        return self.head(self.norm(self.blocks(x)).mean(1))


def loss(model, images, labels):
    scores = model(images)
    return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()


@nnx.jit
def step(model, optimizer, images, labels):
    value, grads = nnx.value_and_grad(loss)(model, images, labels)
    optimizer.update(model, grads)
    return value


def main(steps):
    model = ViT(nnx.Rngs(0))
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)
    return [float(step(model, optimizer, images, labels)) for images, labels in digits(steps)]
