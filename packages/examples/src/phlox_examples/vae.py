"""``./train vae``: a plane of all digits, from a variational autoencoder.

A picture x shall come about like this: two numbers z are drawn from a normal distribution, and a network, the decoder,
says for each pixel how probable ink is, p(x | z). How probable a picture is then is an integral over z that nobody can
do. A second network, the encoder, says which z may have made x: a normal distribution q(z | x) with mean m and
deviation s. For every q (Kingma and Welling 2013)

    log p(x)  >=  E_q[log p(x | z)] - KL(q(z | x) | N(0, 1)),
    KL = sum of (m^2 + s^2 - 1 - 2 log s) / 2,

and both networks are trained such that the right side is as large as possible. Its expectation is over random z, which
gradients do not pass; written as z = m + s e, with e drawn from N(0, 1), they do.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import phlox
import phlox.numpy as jnp
import phlox_data
import phlox_nn as nn
import phlox_optim as optim

from . import plots, report, results
from .errors import ProgramError
from .fitting import fit
from .options import settings_of

SIDE = 14  # digits along a side of the plane


class VAE(nn.Layer):
    """Both networks; applied, they give scores of pixels, and mean and logarithm of the deviation of z."""

    encoder: nn.MLP
    decoder: nn.MLP

    def encode(self, images: Any) -> Any:
        """Mean and logarithm of the deviation of z, each (n, 2), of pictures (n, 64)."""
        return jnp.split(self.encoder(images), 2, axis=-1)

    def decode(self, codes: Any) -> Any:
        """Scores (n, 64) of pixels for z (n, 2); `nn.sigmoid` makes probabilities of ink of them."""
        return self.decoder(codes)

    def __call__(self, images: Any) -> Any:
        """Pictures to z and back."""
        mean, spread = self.encode(images)
        noise = phlox.random.normal(self.random_key(), mean.shape)
        return self.decode(mean + jnp.exp(spread) * noise), mean, spread


model = VAE(nn.MLP((64, 256, 128, 4), nn.relu), nn.MLP((2, 128, 256, 64), nn.relu))


def loss(params: Any, images: Any, key: Any) -> Any:
    """Minus the lower bound of log p(x), averaged over a batch, and its two parts."""
    scores, mean, spread = model.apply(params, images, key=key)
    reconstruction = optim.sigmoid_binary_cross_entropy(scores, images).sum(1).mean()
    divergence = ((mean**2 + jnp.exp(2 * spread) - 1 - 2 * spread).sum(1) / 2).mean()
    return reconstruction + divergence, {"reconstruction": reconstruction, "divergence": divergence}


def run(options: argparse.Namespace) -> None:
    """Trains, and draws the plane of z, and where in it the digits lie."""
    results.make_folder(options.out, "--out")
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32")  # ink of each pixel, from 0 to 1
    if options.batch_size > len(images):
        raise ProgramError(f"--batch-size {options.batch_size}: there are only {len(images)} pictures to learn from")
    batches = phlox_data.batches(images, options.batch_size, seed=options.seed, last="drop")

    rate = optim.cosine_decay_schedule(options.learning_rate, options.epochs * len(batches))
    step = optim.make_step(loss, optim.adam(rate))
    params_key, noise_key = phlox.random.split(phlox.random.key(options.seed))
    state, history = fit(step.init(model.init(params_key), key=noise_key), step, batches, epochs=options.epochs)

    # The plane: at equal steps of probability, so that each part of it is as likely to be drawn.
    normal = phlox.scipy.special.ndtri((jnp.arange(SIDE) + 0.5) / SIDE)
    codes = jnp.stack(jnp.meshgrid(normal, -normal), -1).reshape(-1, 2)
    drawn = np.asarray(nn.sigmoid(model.apply(state.params, codes, method="decode"))).reshape(SIDE, SIDE, 8, 8)
    means, _ = map(np.asarray, model.apply(state.params, images, method="encode"))

    bound = -history[-1]["loss"]
    title = f"Two numbers tell all digits: log p(x) is at least {bound:.1f} nats a picture"
    figure = plots.figure(title, (11, 5.6))
    left, right = figure.subplots(1, 2)
    drawn = np.pad(drawn, ((0, 0), (0, 0), (1, 1), (1, 1)))  # white between them
    left.imshow(drawn.transpose(0, 2, 1, 3).reshape(10 * SIDE, 10 * SIDE), cmap="gray_r")
    left.set(title="What the decoder makes of each point of the plane", xticks=[], yticks=[])
    right.scatter(*means.T, c=labels, cmap="tab10", s=6, alpha=0.7)
    for digit in range(10):
        right.annotate(
            str(digit),
            np.median(means[labels == digit], axis=0),
            fontsize=15,
            fontweight="bold",
            ha="center",
            va="center",
            bbox={"boxstyle": "circle,pad=0.15", "fc": "white", "alpha": 0.8, "lw": 0},
        )
    right.set(title="Where the encoder puts the real digits", xlabel="first number", ylabel="second number")
    right.set(xlim=(-3.5, 3.5), ylim=(-3.5, 3.5), aspect="equal")
    contents = {"settings": settings_of(options), "epochs": history, "lower_bound": bound}
    written = results.write(options, contents, figure)
    report.show(f"Lower bound: {bound:.2f} nats a picture. Wrote {' and '.join(written)}.")
