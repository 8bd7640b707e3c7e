"""A bidirectional LSTM that gives each word of a sentence a tag; sentences have different lengths."""

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
import phlox_optim as optim

from .data import sentences


class Tagger(nn.Layer):
    words: nn.Embedding
    lstm: nn.LSTM
    head: nn.Linear

    def __call__(self, words, lengths):
        return self.head(self.lstm(self.words(words), lengths=lengths))


model = Tagger(nn.Embedding(20, 32), nn.LSTM(32, 32, bidirectional=True), nn.Linear(64, 3))


def loss(params, batch):
    words, tags, lengths = batch
    scores = model.apply(params, words, lengths)
    counts = jnp.arange(words.shape[1]) < lengths[:, None]
    losses = optim.softmax_cross_entropy_with_integer_labels(scores, tags)
    return losses.mean(where=counts), {"accuracy": optim.metrics.accuracy(scores, tags, counts)}


def main(steps):
    step = optim.make_step(loss, optim.adam(1e-2))
    train = step.init(model.init(phlox.random.key(0)))
    losses = []
    for batch in sentences(steps):
        train, figures = step(train, batch)
        losses.append(float(figures["loss"]))
    return losses, float(figures["accuracy"])
