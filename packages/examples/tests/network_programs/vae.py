"""A variational autoencoder (Kingma and Welling, 2013) of digits, and new digits drawn from it."""

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
import phlox_optim as optim

from .data import digits


class VAE(nn.Layer):
    encoder: nn.MLP
    decoder: nn.MLP

    def __call__(self, images):
        mean, spread = jnp.split(self.encoder(nn.flatten(images)), 2, axis=-1)
        noise = phlox.random.normal(self.random_key(), mean.shape)
        return self.decode(mean + jnp.exp(spread) * noise), mean, spread

    def decode(self, codes):
        return self.decoder(codes).reshape(-1, 8, 8, 1)


model = VAE(nn.MLP((64, 128, 16), nn.relu), nn.MLP((8, 128, 64), nn.relu))


def loss(params, batch, key):
    images, _ = batch
    scores, mean, spread = model.apply(params, images, key=key)
    seen = optim.sigmoid_binary_cross_entropy(scores, images).sum((1, 2, 3))
    divergence = (mean**2 + jnp.exp(2 * spread) - 1 - 2 * spread).sum(1) / 2
    return (seen + divergence).mean()


def main(steps):
    step = optim.make_step(loss, optim.adam(2e-3))
    train = step.init(model.init(phlox.random.key(0)), key=phlox.random.key(1))
    losses = []
    for batch in digits(steps):
        train, figures = step(train, batch)
        losses.append(float(figures["loss"]))
    codes = phlox.random.normal(phlox.random.key(2), (16, 8))
    return losses, nn.sigmoid(model.apply(train.params, codes, method="decode"))
