"""A vision transformer (Dosovitskiy et al., 2020) for digits, in patches of 2 x 2."""

import phlox
import phlox_nn as nn
import phlox_optim as optim

from .data import digits


class Block(nn.Layer):
    norm1: nn.LayerNorm
    attention: nn.MultiHeadAttention
    norm2: nn.LayerNorm
    mlp: nn.MLP

    def __call__(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Layer):
    patches: nn.Conv
    blocks: nn.Stack
    norm: nn.LayerNorm
    head: nn.Linear

    def parameters(self):
        return {"positions": (nn.initializers.normal(0.02), (16, 64))}

    def __call__(self, images):
        x = self.patches(images).reshape(len(images), 16, 64) + self.positions
        return self.head(self.norm(self.blocks(x)).mean(1))


block = Block(nn.LayerNorm(64), nn.MultiHeadAttention(64, 4), nn.LayerNorm(64), nn.MLP((64, 256, 64)))
model = ViT(nn.Conv(1, 64, (2, 2), strides=2), nn.Stack(block, 4), nn.LayerNorm(64), nn.Linear(64, 10))


def loss(params, batch):
    images, labels = batch
    scores = model.apply(params, images)
    return optim.softmax_cross_entropy_with_integer_labels(scores, labels).mean()


def main(steps):
    step = optim.make_step(loss, optim.adamw(1e-3), clip=1.0)
    train = step.init(model.init(phlox.random.key(0)))
    losses = []
    for batch in digits(steps):
        train, figures = step(train, batch)
        losses.append(float(figures["loss"]))
    return losses
