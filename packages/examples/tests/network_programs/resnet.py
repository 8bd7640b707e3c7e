"""A residual network (He et al., 2015) for digits."""

import phlox
import phlox_nn as nn
import phlox_optim as optim

from .data import digits


class Block(nn.Layer):
    convolutions: nn.Layer
    shortcut: nn.Layer

    @classmethod
    def of(cls, inputs, outputs, strides):
        first = nn.Conv(inputs, outputs, (3, 3), strides, use_bias=False), nn.BatchNorm(outputs), nn.relu
        second = nn.Conv(outputs, outputs, (3, 3), use_bias=False), nn.BatchNorm(outputs)
        return cls(nn.Sequential(*first, *second), nn.Conv(inputs, outputs, (1, 1), strides))

    def __call__(self, x):
        return nn.relu(self.convolutions(x) + self.shortcut(x))


model = nn.Sequential(
    *(nn.Conv(1, 16, (3, 3), use_bias=False), nn.BatchNorm(16), nn.relu),
    *(Block.of(16, 16, 1), Block.of(16, 32, 2), Block.of(32, 64, 2)),
    *(nn.global_avg_pool, nn.Linear(64, 10)),
)


def loss(params, batch, state):
    images, labels = batch
    scores, state = model.apply(params, images, state=state, train=True)
    return optim.softmax_cross_entropy_with_integer_labels(scores, labels).mean(), {"state": state}


def main(steps):
    step = optim.make_step(loss, optim.sgd(0.1, momentum=0.9))
    train = step.init(model.init(phlox.random.key(0)), state=model.init_state())
    losses = []
    for batch in digits(steps):
        train, figures = step(train, batch)
        losses.append(float(figures["loss"]))
    return losses
