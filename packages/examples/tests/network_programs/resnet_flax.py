"""A residual network (He et al., 2015) for digits."""

import optax
from flax import nnx

from .data import digits


class Block(nnx.Module):
    def __init__(self, inputs, outputs, strides, rngs):
        self.conv1 = nnx.Conv(inputs, outputs, (3, 3), strides, use_bias=False, rngs=rngs)
        self.norm1 = nnx.BatchNorm(outputs, rngs=rngs)
        self.conv2 = nnx.Conv(outputs, outputs, (3, 3), use_bias=False, rngs=rngs)
        self.norm2 = nnx.BatchNorm(outputs, rngs=rngs)
        self.shortcut = nnx.Conv(inputs, outputs, (1, 1), strides, rngs=rngs)

    def __call__(self, x):
        y = nnx.relu(self.norm1(self.conv1(x)))
        return nnx.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(1, 16, (3, 3), use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.blocks = nnx.Sequential(Block(16, 16, 1, rngs), Block(16, 32, 2, rngs), Block(32, 64, 2, rngs))
        self.linear = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, x):
        x = self.blocks(nnx.relu(self.norm(self.conv(x))))
        return self.linear(x.mean((1, 2)))


def loss(model, images, labels):
    scores = model(images)
    return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()


@nnx.jit
def step(model, optimizer, images, labels):
    value, grads = nnx.value_and_grad(loss)(model, images, labels)
    optimizer.update(model, grads)
    return value


def main(steps):
    model = ResNet(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.1, momentum=0.9), wrt=nnx.Param)
    return [float(step(model, optimizer, images, labels)) for images, labels in digits(steps)]
