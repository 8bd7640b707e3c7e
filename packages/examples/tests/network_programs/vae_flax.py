"""A variational autoencoder (Kingma and Welling, 2013) of digits, and new digits drawn from it."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from .data import digits


class MLP(nnx.Module):
    def __init__(self, inputs, hidden, outputs, rngs):
        self.first = nnx.Linear(inputs, hidden, rngs=rngs)
        self.last = nnx.Linear(hidden, outputs, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.relu(self.first(x)))


class VAE(nnx.Module):
    def __init__(self, rngs):
        self.encoder = MLP(64, 128, 16, rngs)
        self.decoder = MLP(8, 128, 64, rngs)
        self.rngs = rngs

    def __call__(self, images):
        mean, spread = jnp.split(self.encoder(images.reshape(len(images), -1)), 2, axis=-1)
        noise = jax.random.normal(self.rngs.noise(), mean.shape)
        return self.decode(mean + jnp.exp(spread) * noise), mean, spread

    def decode(self, codes):
        return self.decoder(codes).reshape(-1, 8, 8, 1)


def loss(model, images):
    scores, mean, spread = model(images)
    seen = optax.sigmoid_binary_cross_entropy(scores, images).sum((1, 2, 3))
    divergence = (mean**2 + jnp.exp(2 * spread) - 1 - 2 * spread).sum(1) / 2
    return (seen + divergence).mean()


@nnx.jit
def step(model, optimizer, images):
    value, grads = nnx.value_and_grad(loss)(model, images)
    optimizer.update(model, grads)
    return value


def main(steps):
    model = VAE(nnx.Rngs(0, noise=1))
    optimizer = nnx.Optimizer(model, optax.adam(2e-3), wrt=nnx.Param)
    losses = [float(step(model, optimizer, images)) for images, _ in digits(steps)]
    codes = jax.random.normal(jax.random.key(2), (16, 8))
    return losses, nnx.sigmoid(model.decode(codes))
