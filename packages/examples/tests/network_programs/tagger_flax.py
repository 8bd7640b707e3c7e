"""A bidirectional LSTM that gives each word of a sentence a tag; sentences have different lengths."""

import jax.numpy as jnp
import optax
from flax import nnx

from .data import sentences


class Tagger(nnx.Module):
    def __init__(self, rngs):
        self.words = nnx.Embed(20, 32, rngs=rngs)
        forward, backward = (nnx.RNN(nnx.LSTMCell(32, 32, rngs=rngs)) for _ in range(2))
        self.lstm = nnx.Bidirectional(forward, backward)
        self.head = nnx.Linear(64, 3, rngs=rngs)

    def __call__(self, words, lengths):
        return self.head(self.lstm(self.words(words), seq_lengths=lengths))


def loss(model, words, tags, lengths):
    scores = model(words, lengths)
    counts = jnp.arange(words.shape[1]) < lengths[:, None]
    losses = optax.softmax_cross_entropy_with_integer_labels(scores, tags)
    return losses.mean(where=counts), (scores.argmax(-1) == tags).mean(where=counts)


@nnx.jit
def step(model, optimizer, words, tags, lengths):
    (value, accuracy), grads = nnx.value_and_grad(loss, has_aux=True)(model, words, tags, lengths)
    optimizer.update(model, grads)
    return value, accuracy


def main(steps):
    model = Tagger(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    losses = []
    for words, tags, lengths in sentences(steps):
        value, accuracy = step(model, optimizer, words, tags, lengths)
        losses.append(float(value))
    return losses, float(accuracy)
