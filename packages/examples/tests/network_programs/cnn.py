"""A convolutional network with batch normalization and dropout for digits."""

import phlox
import phlox_nn as nn
import phlox_optim as optim

from .data import digits

model = nn.Sequential(
    *(nn.Conv(1, 32, (3, 3)), nn.BatchNorm(32), nn.relu, nn.avg_pool((2, 2))),
    *(nn.Conv(32, 64, (3, 3)), nn.BatchNorm(64), nn.relu, nn.avg_pool((2, 2))),
    *(nn.flatten, nn.Linear(256, 128), nn.relu, nn.Dropout(0.25), nn.Linear(128, 10)),
)


def loss(params, batch, state, key):
    images, labels = batch
    scores, state = model.apply(params, images, state=state, key=key, train=True)
    return optim.softmax_cross_entropy_with_integer_labels(scores, labels).mean(), {"state": state}


def main(steps):
    step = optim.make_step(loss, optim.adamw(1e-3))
    train = step.init(model.init(phlox.random.key(0)), state=model.init_state(), key=phlox.random.key(1))
    losses = []
    for batch in digits(steps):
        train, figures = step(train, batch)
        losses.append(float(figures["loss"]))
    images, labels = next(digits(1, 500))
    scores, _ = model.apply(train.params, images, state=train.state)
    return losses, float((scores.argmax(1) == labels).mean())
