"""An MLP-mixer (Tolstikhin et al., 2021) for digits, in patches of 2 x 2."""

import optax
from flax import nnx

from .data import digits


class MLP(nnx.Module):
    def __init__(self, size, hidden, rngs):
        self.up = nnx.Linear(size, hidden, rngs=rngs)
        self.down = nnx.Linear(hidden, size, rngs=rngs)

    def __call__(self, x):
        return self.down(nnx.gelu(self.up(x)))


class Mixer(nnx.Module):
    def __init__(self, rngs):
        self.norm1 = nnx.LayerNorm(64, rngs=rngs)
        self.places = MLP(16, 32, rngs)
        self.norm2 = nnx.LayerNorm(64, rngs=rngs)
        self.channels = MLP(64, 128, rngs)

    def __call__(self, x):
        x = x + self.places(self.norm1(x).mT).mT
        return x + self.channels(self.norm2(x))


class Network(nnx.Module):
    def __init__(self, rngs):
        self.patches = nnx.Conv(1, 64, (2, 2), strides=2, rngs=rngs)
        self.blocks = nnx.Sequential(*[Mixer(rngs) for _ in range(4)])
        self.norm = nnx.LayerNorm(64, rngs=rngs)
        self.head = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, images):
        x = self.blocks(self.patches(images).reshape(len(images), 16, 64))
        return self.head(self.norm(x).mean(1))


def loss(model, images, labels):
    scores = model(images)
    return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()


@nnx.jit
def step(model, optimizer, images, labels):
    value, grads = nnx.value_and_grad(loss)(model, images, labels)
    optimizer.update(model, grads)
    return value


def main(steps):
    model = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(2e-3), wrt=nnx.Param)
    return [float(step(model, optimizer, images, labels)) for images, labels in digits(steps)]
