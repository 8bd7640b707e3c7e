"""Programs as people write them, for arguments of varying length: functions of a module (phlox or jax)."""

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


# --- further ones


def encoder(m, w, tokens, mask):
    """A layer of a transformer, in which padded tokens of a batch of texts have no part."""
    x = tokens
    scores = m.numpy.einsum("btd,bsd->bts", x @ w[0], x @ w[1]) / 2.0
    scores = m.numpy.where(mask[:, None], scores, -1e9)
    x = x + m.nn.softmax(scores) @ (x @ w[2])
    x = (x - x.mean(-1, keepdims=True)) / m.numpy.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return (m.nn.gelu(x @ w[3]) * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)


def _encoder(n, rng):
    mask = np.arange(n) < rng.integers(1, n + 1, 3)[:, None]
    return floats(rng, 4, 8, 8) / 3, floats(rng, 3, n, 8), mask


def viterbi(m, transitions, scores):
    """The most likely states of a chain, and the logarithm of the sum over all paths (a conditional random field)."""

    def forward(carry, row):
        best, total = carry
        paths = best[:, None] + transitions
        total = m.nn.logsumexp(total[:, None] + transitions, axis=0) + row
        return (paths.max(0) + row, total), paths.argmax(0)

    (best, total), back = m.lax.scan(forward, (scores[0], scores[0]), scores[1:])
    last = best.argmax()
    _, states = m.lax.scan(lambda state, row: (row[state], row[state]), last, back, reverse=True)
    return best.max(), m.nn.logsumexp(total), m.numpy.append(states, last)


def kalman(m, noise, observations):
    """A Kalman filter, and the likelihood of the observations."""

    def turn(carry, y):
        mean, variance = carry
        variance = variance + noise
        gain = variance / (variance + 1)
        likelihood = -0.5 * ((y - mean) ** 2 / (variance + 1) + m.numpy.log(variance + 1))
        mean = mean + gain * (y - mean)
        return (mean, (1 - gain) * variance), (mean, likelihood)

    zeros = m.numpy.zeros(observations.shape[1])
    (_, variance), (means, likelihoods) = m.lax.scan(turn, (zeros, zeros + 1), observations)
    return means, variance, likelihoods.sum() / observations.shape[0]


def contrastive(m, w, images, texts):
    """The loss of pairs of images and texts, of which each is to find the other among all."""
    a, b = images @ w[0], texts @ w[1]
    a, b = (x / m.numpy.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    scores = a @ b.T * 5
    labels = m.numpy.arange(scores.shape[0])
    losses = [-m.nn.log_softmax(s, axis=1)[labels, labels].mean() for s in (scores, scores.T)]
    return (losses[0] + losses[1]) / 2, (scores.argmax(1) == labels).mean()


def interpolation(m, knots, values, x):
    """A linear interpolation, and integrals by the trapezoidal rule."""
    y = m.numpy.interp(x, knots, values)
    slopes = m.numpy.diff(values) / m.numpy.diff(knots)
    areas = m.numpy.cumsum((values[1:] + values[:-1]) / 2 * m.numpy.diff(knots))
    return y, slopes.max(), areas, m.numpy.trapezoid(values, knots), m.numpy.gradient(values)


def principal_components(m, x):
    x = x - x.mean(0)
    _, s, v = m.numpy.linalg.svd(x, full_matrices=False)
    return s**2 / x.shape[0], (x @ v.T) ** 2, m.numpy.cov(x.T)


def sinkhorn(m, scale, a, b):
    """Optimal transport between two clouds of points, by Sinkhorn's iterations on logarithms."""
    cost = ((a[:, None] - b) ** 2).sum(-1) / scale
    log_n, log_m = m.numpy.log(float(1) * a.shape[0]), m.numpy.log(float(1) * b.shape[0])

    def turn(_, f_g):
        f, _ = f_g
        g = -m.nn.logsumexp(f[:, None] - cost, axis=0) - log_m
        return -m.nn.logsumexp(g - cost, axis=1) - log_n, g

    f, g = m.lax.fori_loop(0, 10, turn, (m.numpy.zeros(a.shape[0]), m.numpy.zeros(b.shape[0])))
    plan = m.numpy.exp(f[:, None] + g - cost)
    return (plan * cost).sum(), plan.sum(0)


def beam(m, w, tokens, scores):
    """A step of a beam search: the best continuations of n candidates."""
    logits = m.nn.log_softmax(w[tokens[:, -1]], axis=1) + scores[:, None]
    best, places = m.lax.top_k(logits.reshape(-1), 2)
    rows, words = places // w.shape[1], places % w.shape[1]
    return best, m.numpy.concatenate([tokens[rows], words[:, None].astype(tokens.dtype)], axis=1)


FURTHER = {
    "encoder": Sized(encoder, {"tokens": "_, t", "mask": "_, t"}, _encoder),
    "viterbi": Sized(viterbi, {"scores": "t"}, lambda n, rng: (floats(rng, 5, 5), floats(rng, n + 1, 5)), None),
    "kalman": Sized(kalman, {"observations": "t"}, lambda n, rng: (np.float32(0.2), floats(rng, n, 3))),
    "contrastive": Sized(
        contrastive,
        {"images": "n", "texts": "n"},
        lambda n, rng: (floats(rng, 2, 6, 4), floats(rng, n, 6), floats(rng, n, 6)),
    ),
    "interpolation": Sized(
        interpolation,
        {"knots": "n", "values": "n", "x": "m"},
        lambda n, rng: (np.cumsum(rng.random(n + 2) + 0.1).astype(np.float32), floats(rng, n + 2), floats(rng, 7)),
        None,
    ),
    "principal components": Sized(
        principal_components, {"x": "n"}, lambda n, rng: (floats(rng, n + 5, 3) * np.float32([3, 2, 1]),)
    ),
    "sinkhorn": Sized(
        sinkhorn, {"a": "n", "b": "m"}, lambda n, rng: (np.float32(0.7), floats(rng, n, 2), floats(rng, n // 2 + 1, 2))
    ),
    "beam": Sized(
        beam,
        {"tokens": "n", "scores": "n"},
        lambda n, rng: (floats(rng, 9, 9), rng.integers(0, 9, (n, 4)).astype(np.int32), floats(rng, n)),
        None,
    ),
}

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
