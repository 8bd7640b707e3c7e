"""A convolutional network on all devices: each has a part of every batch, and all have the parameters."""

import jax
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from .data import digits


class CNN(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(1, 32, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(32, rngs=rngs)
        self.linear = nnx.Linear(512, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.max_pool(nnx.relu(self.norm(self.conv(x))), (2, 2), (2, 2))
        return self.linear(x.reshape(len(x), -1))


def loss(model, images, labels):
    scores = model(images)
    return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()


@nnx.jit
def step(model, optimizer, images, labels):
    value, grads = nnx.value_and_grad(loss)(model, images, labels)
    optimizer.update(model, grads)
    return value


def main(steps):
    mesh = jax.make_mesh((len(jax.devices()),), ("data",))
    model = CNN(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)
    for part in (model, optimizer):
        nnx.update(part, jax.device_put(nnx.state(part), NamedSharding(mesh, P())))
    losses = []
    for batch in digits(steps):
        images, labels = jax.device_put(batch, NamedSharding(mesh, P("data")))
        losses.append(float(step(model, optimizer, images, labels)))
    return losses, nnx.state(model, nnx.Param)
