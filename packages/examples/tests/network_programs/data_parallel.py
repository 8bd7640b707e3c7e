"""A convolutional network on all devices: each has a part of every batch, and all have the parameters."""

import phlox
import phlox_nn as nn
import phlox_optim as optim
from phlox.sharding import NamedSharding, PartitionSpec as P

from .data import digits

model = nn.Sequential(
    *(nn.Conv(1, 32, (3, 3)), nn.BatchNorm(32), nn.relu, nn.max_pool((2, 2))),
    *(nn.flatten, nn.Linear(512, 10)),
)


def loss(params, batch, state):
    images, labels = batch
    scores, state = model.apply(params, images, state=state, train=True)
    return optim.softmax_cross_entropy_with_integer_labels(scores, labels).mean(), {"state": state}


def main(steps):
    mesh = phlox.make_mesh((len(phlox.devices()),), ("data",))
    step = optim.make_step(loss, optim.adam(3e-3))
    train = step.init(model.init(phlox.random.key(0)), state=model.init_state())
    train = phlox.device_put(train, NamedSharding(mesh, P()))
    losses = []
    for batch in digits(steps):
        train, figures = step(train, phlox.device_put(batch, NamedSharding(mesh, P("data"))))
        losses.append(float(figures["loss"]))
    return losses, train.params
