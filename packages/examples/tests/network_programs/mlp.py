"""A multilayer perceptron for digits."""

import phlox
import phlox_nn as nn
import phlox_optim as optim

from .data import digits

model = nn.Sequential(nn.flatten, nn.MLP((64, 128, 128, 10), nn.relu))


def loss(params, batch):
    images, labels = batch
    scores = model.apply(params, images)
    return optim.softmax_cross_entropy_with_integer_labels(scores, labels).mean()


def main(steps):
    step = optim.make_step(loss, optim.adam(1e-3))
    train = step.init(model.init(phlox.random.key(0)))
    losses = []
    for batch in digits(steps):
        train, figures = step(train, batch)
        losses.append(float(figures["loss"]))
    return losses
