"""A convolutional network with batch normalization and dropout for digits."""

from functools import partial

import optax
from flax import nnx

from .data import digits


class CNN(nnx.Module):
    def __init__(self, rngs):
        self.conv1 = nnx.Conv(1, 32, (3, 3), rngs=rngs)
        self.norm1 = nnx.BatchNorm(32, rngs=rngs)
        self.conv2 = nnx.Conv(32, 64, (3, 3), rngs=rngs)
        self.norm2 = nnx.BatchNorm(64, rngs=rngs)
        self.linear1 = nnx.Linear(256, 128, rngs=rngs)
        self.dropout = nnx.Dropout(0.25, rngs=rngs)
        self.linear2 = nnx.Linear(128, 10, rngs=rngs)
        self.pool = partial(nnx.avg_pool, window_shape=(2, 2), strides=(2, 2))

    def __call__(self, x):
        x = self.pool(nnx.relu(self.norm1(self.conv1(x))))
        x = self.pool(nnx.relu(self.norm2(self.conv2(x))))
        x = nnx.relu(self.linear1(x.reshape(len(x), -1)))
        return self.linear2(self.dropout(x))


def loss(model, images, labels):
    scores = model(images)
    return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()


@nnx.jit
def step(model, optimizer, images, labels):
    value, grads = nnx.value_and_grad(loss)(model, images, labels)
    optimizer.update(model, grads)
    return value


def main(steps):
    model = CNN(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)
    losses = [float(step(model, optimizer, images, labels)) for images, labels in digits(steps)]
    model.eval()
    images, labels = next(digits(1, 500))
    return losses, float((model(images).argmax(1) == labels).mean())
