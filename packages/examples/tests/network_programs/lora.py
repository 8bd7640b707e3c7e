"""Low-rank fine-tuning (Hu et al., 2021) of a network that was trained in PyTorch, and the weights back to PyTorch."""

import phlox
import phlox_nn as nn
import phlox_optim as optim

from .data import digits

network = nn.Sequential(nn.Linear(64, 128), nn.relu, nn.Linear(128, 10))
model = nn.LoRA(network, rank=4)


def main(steps, module):
    weights, _ = nn.load_torch(network, module)
    learnt, frozen = nn.partition(model.init(phlox.random.key(0)) | {"layer": weights}, "adapters")

    def loss(learnt, batch):
        images, labels = batch
        scores = model.apply(nn.merge(learnt, frozen), nn.flatten(images))
        return optim.softmax_cross_entropy_with_integer_labels(scores, (labels + 1) % 10).mean()

    step = optim.make_step(loss, optim.adam(1e-2))
    train, losses = step.init(learnt), []
    for batch in digits(steps):
        train, figures = step(train, batch)
        losses.append(float(figures["loss"]))
    return losses, nn.to_torch(network, model.merged(nn.merge(train.params, frozen)))
