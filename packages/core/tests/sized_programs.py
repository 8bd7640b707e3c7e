"""Twelve programs as people write them, for arguments of varying length: functions of a module (phlox or jax)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Sized(NamedTuple):
    """A program.

    Attributes:
      function: of the module and the arguments.
      sizes: the names of axes, for `pad_axes`; the parameters are those of `function`.
      arguments: of a length and a NumPy generator.
      by: the number of the argument that the gradient is taken by, or None.
    """

    function: Callable[..., Any]
    sizes: dict[str, Any]
    arguments: Callable[[int, np.random.Generator], tuple[Any, ...]]
    by: int | None = 0


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def mlp(m, params, x):
    for w, b in params:
        x = m.numpy.tanh(x @ w + b)
    return x.mean()


def _mlp(n, rng):
    params = [(floats(rng, 8, 16) / 3, floats(rng, 16)), (floats(rng, 16, 4) / 4, floats(rng, 4))]
    return params, floats(rng, n, 8)


def attention(m, x, w):
    q, k, v = (x @ part for part in w)
    scores = q @ k.T / np.sqrt(np.float32(8))
    mask = m.numpy.tril(m.numpy.ones((x.shape[0], x.shape[0]), bool))
    weights = m.nn.softmax(m.numpy.where(mask, scores, -m.numpy.inf), axis=-1)
    return (weights @ v).mean(0)


def graph(m, nodes, senders, receivers, w):
    messages = m.nn.relu(nodes[senders] @ w)
    total = m.ops.segment_sum(messages, receivers, num_segments=nodes.shape[0])
    count = m.ops.segment_sum(m.numpy.ones_like(receivers, dtype=nodes.dtype), receivers, num_segments=nodes.shape[0])
    return (nodes + total / m.numpy.maximum(count, 1)[:, None]).sum(0) / nodes.shape[0]


def _graph(n, rng):
    edges = 3 * n
    return floats(rng, n, 4), *rng.integers(0, n, (2, edges)).astype(np.int32), floats(rng, 4, 4)


def lstm(m, w, x):
    def step(state, row):
        h, c = state
        i, f, g, o = m.numpy.split(m.numpy.concatenate([row, h]) @ w, 4)
        c = m.nn.sigmoid(f) * c + m.nn.sigmoid(i) * m.numpy.tanh(g)
        h = m.nn.sigmoid(o) * m.numpy.tanh(c)
        return (h, c), h

    zeros = m.numpy.zeros(8)
    (h, _), hs = m.lax.scan(step, (zeros, zeros), x)
    return h, hs.mean(0)


def cross_entropy(m, logits, targets):
    logs = m.nn.log_softmax(logits)
    mask = targets >= 0
    chosen = m.numpy.take_along_axis(logs, m.numpy.maximum(targets, 0)[:, None], 1)[:, 0]
    return -m.numpy.sum(m.numpy.where(mask, chosen, 0)) / m.numpy.maximum(mask.sum(), 1)


def retrieval(m, query, documents):
    norms = m.numpy.linalg.norm(documents, axis=1)
    scores = documents @ query / norms
    best, where = m.lax.top_k(scores, 1)
    return best, where, documents[where], m.numpy.argsort(scores)


def distribution(m, x):
    counts, edges = m.numpy.histogram(x, bins=10)
    return counts, edges, m.numpy.quantile(x, m.numpy.array([0.1, 0.5, 0.9])), m.numpy.median(x)


def k_means(m, centers, points):
    def turn(_, centers):
        distance = ((points[:, None] - centers) ** 2).sum(-1)
        group = m.numpy.argmin(distance, 1)
        total = m.ops.segment_sum(points, group, num_segments=3)
        count = m.ops.segment_sum(m.numpy.ones(points.shape[0]), group, num_segments=3)
        return total / m.numpy.maximum(count, 1)[:, None]

    return m.lax.fori_loop(0, 5, turn, centers)


def gaussian_process(m, scale, x, y):
    distance = (x[:, None] - x) ** 2
    covariance = m.numpy.exp(-0.5 * distance / scale**2) + 0.1 * m.numpy.eye(x.shape[0])
    factor = m.numpy.linalg.cholesky(covariance)
    alpha = m.scipy.linalg.cho_solve((factor, True), y)
    likelihood = 0.5 * y @ alpha + m.numpy.log(m.numpy.diag(factor)).sum()
    return likelihood / x.shape[0]


def particles(m, positions, velocities):
    def force(x):
        center = x.mean(0)
        return -(x - center) - 0.1 * x / (1 + (x**2).sum(-1, keepdims=True))

    def turn(state, _):
        x, v = state
        v = v + 0.05 * force(x)
        return (x + 0.05 * v, v), (v**2).sum() / x.shape[0]

    (x, _), energies = m.lax.scan(turn, (positions, velocities), None, length=20)
    return energies[-1], (x**2).mean()


def statistics(m, x):
    center = m.numpy.nanmean(x, 0)
    return center, m.numpy.nanstd(x, 0), m.numpy.nanmax(x, 0), m.numpy.isnan(x).sum(), m.numpy.nanmean(x, 1).sum()


def _statistics(n, rng):
    x = floats(rng, n, 5)
    x[rng.random((n, 5)) < 0.1] = np.nan
    x[:, 0] = 1
    x[0] = 0
    return (x,)


def train_step(m, w, batch, labels):
    def loss(w):
        return m.numpy.mean(m.numpy.log1p(m.numpy.exp(-labels * (batch @ w))))

    value, gradient = m.value_and_grad(loss)(w)
    return w - 0.1 * gradient, value


SIZED = {
    "mlp": Sized(mlp, {"x": "n"}, _mlp),
    "attention": Sized(attention, {"x": "n"}, lambda n, rng: (floats(rng, n, 8), floats(rng, 3, 8, 8) / 3)),
    "graph": Sized(graph, {"nodes": "n", "senders": "e", "receivers": "e"}, _graph),
    "lstm": Sized(lstm, {"x": "t"}, lambda n, rng: (floats(rng, 12, 32) / 3, floats(rng, n, 4))),
    "cross-entropy": Sized(
        cross_entropy,
        {"logits": "n", "targets": "n"},
        lambda n, rng: (floats(rng, n, 11), rng.integers(-1, 11, n).astype(np.int32)),
    ),
    "retrieval": Sized(retrieval, {"documents": "n"}, lambda n, rng: (floats(rng, 8), floats(rng, n, 8)), None),
    "distribution": Sized(distribution, {"x": "n"}, lambda n, rng: (floats(rng, n),), None),
    "k-means": Sized(k_means, {"points": "n"}, lambda n, rng: (floats(rng, 3, 2), floats(rng, n, 2)), None),
    "gaussian process": Sized(
        gaussian_process,
        {"x": "n", "y": "n"},
        lambda n, rng: (np.float32(0.3), np.sort(floats(rng, n)), floats(rng, n)),
    ),
    "particles": Sized(
        particles,
        {"positions": "n", "velocities": "n"},
        lambda n, rng: (floats(rng, n, 3), floats(rng, n, 3)),
    ),
    "statistics": Sized(statistics, {"x": "n"}, _statistics, None),
    "short last batch": Sized(
        train_step,
        {"batch": "n", "labels": "n"},
        lambda n, rng: (floats(rng, 6), floats(rng, n, 6), np.sign(floats(rng, n))),
        None,
    ),
}
