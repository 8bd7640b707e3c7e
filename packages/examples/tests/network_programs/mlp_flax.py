"""A multilayer perceptron for digits."""

import optax
from flax import nnx

from .data import digits


class MLP(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(64, 128, rngs=rngs)
        self.second = nnx.Linear(128, 128, rngs=rngs)
        self.last = nnx.Linear(128, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.first(x.reshape(len(x), -1)))
        return self.last(nnx.relu(self.second(x)))


def loss(model, images, labels):
    scores = model(images)
    return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()


@nnx.jit
def step(model, optimizer, images, labels):
    value, grads = nnx.value_and_grad(loss)(model, images, labels)
    optimizer.update(model, grads)
    return value


def main(steps):
    model = MLP(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    return [float(step(model, optimizer, images, labels)) for images, labels in digits(steps)]
