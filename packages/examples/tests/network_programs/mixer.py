"""An MLP-mixer (Tolstikhin et al., 2021) for digits, in patches of 2 x 2."""

import phlox
import phlox_nn as nn
import phlox_optim as optim

from .data import digits


class Mixer(nn.Layer):
    norm1: nn.LayerNorm
    places: nn.MLP
    norm2: nn.LayerNorm
    channels: nn.MLP

    def __call__(self, x):
        x = x + self.places(self.norm1(x).mT).mT
        return x + self.channels(self.norm2(x))


block = Mixer(nn.LayerNorm(64), nn.MLP((16, 32, 16)), nn.LayerNorm(64), nn.MLP((64, 128, 64)))
model = nn.Sequential(
    *(nn.Conv(1, 64, (2, 2), strides=2), lambda x: x.reshape(len(x), 16, 64)),
    *(nn.Sequential(*4 * [block]), nn.LayerNorm(64), nn.global_avg_pool, nn.Linear(64, 10)),
)


def loss(params, batch):
    images, labels = batch
    scores = model.apply(params, images)
    return optim.softmax_cross_entropy_with_integer_labels(scores, labels).mean()


def main(steps):
    step = optim.make_step(loss, optim.adam(2e-3))
    train = step.init(model.init(phlox.random.key(0)))
    losses = []
    for batch in digits(steps):
        train, figures = step(train, batch)
        losses.append(float(figures["loss"]))
    return losses
