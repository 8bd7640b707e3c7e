"""Programs of many fields for arguments of varying length, as people write them: functions of a module (phlox or jax)."""

from __future__ import annotations

import numpy as np

from everyday_programs import integers, key_data
from sized_programs import Sized, floats

# --- layers and losses


def batch_norm(m, params, stats, x):
    """Batch normalization with running statistics."""
    mean, variance, n = x.mean(0), x.var(0), x.shape[0]
    y = (x - mean) * m.lax.rsqrt(variance + 1e-5) * params["scale"] + params["offset"]
    unbiased = variance * n / m.numpy.maximum(n - 1, 1)
    return m.nn.relu(y), 0.9 * stats[0] + 0.1 * mean, 0.9 * stats[1] + 0.1 * unbiased


def instance_norm(m, scale, x):
    mean = x.mean(1, keepdims=True)
    y = (x - mean) / m.numpy.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + 1e-5) * scale
    groups = y.reshape(*y.shape[:2], 2, 2)
    z = (groups - groups.mean((1, 3), keepdims=True)) / (groups.std((1, 3), keepdims=True) + 1e-2)
    return z.reshape(y.shape), y.max(1)


def masked_softmax(m, queries, keys, mask):
    scores = queries @ keys.T
    weights = m.nn.softmax(m.numpy.where(mask, scores, -m.numpy.inf), axis=-1)
    return m.nn.softmax(scores, where=mask), weights @ keys, scores.max(1, where=mask, initial=-10)


def convolutions(m, w, x):
    y = m.nn.relu(m.lax.conv_general_dilated(x, w[0], (1,), "SAME", rhs_dilation=(2,)))
    z = m.lax.conv_general_dilated(y, w[1], (2,), "VALID")
    pooled = m.lax.reduce_window(z, -m.numpy.inf, m.lax.max, (1, 1, 2), (1, 1, 1), "VALID")
    return z.mean(-1), pooled.max(-1), z


def two_ways(m, w, x):
    """A gated recurrent network that reads a sequence in both directions."""

    def run(w, reverse):
        def step(h, row):
            update, reset = m.nn.sigmoid(m.numpy.concatenate([row, h]) @ w[:, :6]).reshape(2, 3)
            new = m.numpy.tanh(m.numpy.concatenate([row, reset * h]) @ w[:, 6:])
            h = (1 - update) * h + update * new
            return h, h

        return m.lax.scan(step, m.numpy.zeros(3), x, reverse=reverse)

    (first, forward), (last, backward) = run(w[0], False), run(w[1], True)
    return m.numpy.concatenate([forward, backward], -1), first, last


def pairs_of_views(m, a, b):
    """The loss NT-Xent of two views of each image, by a matrix of all pairs."""
    z, n = m.numpy.concatenate([a, b]), a.shape[0]
    z = z / m.numpy.linalg.norm(z, axis=-1, keepdims=True)
    scores = m.numpy.where(m.numpy.eye(2 * n, dtype=bool), -1e9, z @ z.T / 0.5)
    other = m.numpy.concatenate([m.numpy.arange(n) + n, m.numpy.arange(n)])
    return -(scores[m.numpy.arange(2 * n), other] - m.nn.logsumexp(scores, axis=1)).mean()


def bags(m, table, tokens, bag):
    """Embeddings of bags of tokens: means, maxima and products."""
    rows = table[tokens]
    count = m.ops.segment_sum(m.numpy.ones(tokens.shape), bag, 4, indices_are_sorted=True)
    most = m.ops.segment_max(rows, bag, 4)
    mean = m.ops.segment_sum(rows, bag, 4) / m.numpy.maximum(count, 1)[:, None]
    return mean, m.numpy.where(m.numpy.isfinite(most), most, 0), m.ops.segment_prod(rows, bag, 4)


def dropout(m, x, data):
    a, b, c = m.random.split(m.random.wrap_key_data(data), 3)
    kept = m.numpy.where(m.random.bernoulli(a, 0.7, x.shape), x / 0.7, 0)
    noisy = x + 0.1 * m.random.normal(b, (x.shape[0],))[:, None]
    return kept, noisy, (x * m.random.bernoulli(c, 0.5, (x.shape[0], 1))).sum(0)


def private_gradients(m, w, x, y):
    """Gradients of single examples, each clipped."""
    one = lambda w, x, y: (m.numpy.tanh(x @ w) - y) ** 2
    gradients = m.vmap(m.grad(one), (None, 0, 0))(w, x, y)
    norms = m.numpy.linalg.norm(gradients, axis=1)
    kernel = m.vmap(lambda a: m.vmap(lambda b: m.numpy.exp(-((a - b) ** 2).sum()))(x))(x)
    return (gradients * m.numpy.minimum(1, 1 / norms)[:, None]).mean(0), norms, kernel.sum(1)


def adam_step(m, params, x, y):
    def loss(p):
        out = m.nn.gelu(x @ p["w"]) @ p["v"]
        error = (out - y) ** 2
        return error.mean(), {"largest": error.max(), "out": out, "accuracy": ((out > 0) == (y > 0)).mean()}

    (value, metrics), gradient = m.value_and_grad(loss, has_aux=True)(params)
    moments = m.tree.map(lambda g: (0.1 * g, 0.001 * g * g), gradient)
    update = lambda p, m_v: p - 0.01 * (m_v[0] / 0.1) / (m.numpy.sqrt(m_v[1] / 0.001) + 1e-2)
    return value, metrics, {name: update(params[name], moments[name]) for name in params}


# --- time series


def smoother(m, a, observations):
    """A Kalman filter, and the backward pass of Rauch, Tung and Striebel."""
    noise, row = 0.1 * np.eye(2, dtype=np.float32), np.ones((1, 2), np.float32)

    def forward(carry, y):
        predicted, spread = a @ carry[0], a @ carry[1] @ a.T + noise
        gain = m.numpy.linalg.solve(row @ spread @ row.T + np.float32(0.5), row @ spread).T
        state = predicted + gain @ (y - row @ predicted), spread - gain @ row @ spread
        return state, (*state, predicted, spread)

    def backward(carry, rows):
        mean, variance, predicted, spread = rows
        gain = m.numpy.linalg.solve(spread, a @ variance).T
        state = mean + gain @ (carry[0] - predicted), variance + gain @ (carry[1] - spread) @ gain.T
        return state, state[0]

    _, (means, variances, *predictions) = m.lax.scan(forward, (m.numpy.zeros(2), m.numpy.eye(2)), observations)
    rows = (means[:-1], variances[:-1], *[p[1:] for p in predictions])
    _, smooth = m.lax.scan(backward, (means[-1], variances[-1]), rows, reverse=True)
    return m.numpy.concatenate([smooth, means[-1:]])


def drawdown(m, x):
    peak, growth = m.lax.cummax(x), 1 + 0.01 * x
    logs = m.lax.cumlogsumexp(x), m.lax.cumlogsumexp(x, reverse=True)
    products = m.lax.cumprod(growth), m.lax.cumprod(growth, reverse=True)
    return (peak - x).max(), *logs, *products, m.lax.cummin(x, reverse=True), m.numpy.cumsum(x[::-1])[::-1]


def state_space(m, a, b):
    combine = lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1])
    forward = m.lax.associative_scan(combine, (a, b))[1]
    backward = m.lax.associative_scan(combine, (a, b), reverse=True)[1]
    return forward, backward, forward[-1], backward[0]


def positions(m, w, x):
    """Scans whose carry is a Python number, and maps."""

    def step(carry, row):
        i, total = carry
        return (i + 1, total + row.sum() * i), (total, i)

    one = m.lax.map(lambda row: m.numpy.tanh(row @ w), x)
    return one, m.lax.map(lambda row: row * w, x, batch_size=4), m.lax.scan(step, (0, 0.0), x)


def texts(m, x, lengths):
    """Rows of texts that are padded to different lengths."""
    mask = (m.numpy.arange(x.shape[1]) < lengths[:, None])[..., None]
    last = m.numpy.take_along_axis(x, (lengths - 1)[:, None, None], 1)[:, 0]
    most = m.numpy.where(mask, x, -m.numpy.inf).max(1)
    mean = m.numpy.where(mask, x, 0).sum(1) / lengths[:, None]
    return mean, last, most, mask.sum() / mask.size, x[m.numpy.arange(x.shape[0]), lengths - 1]


# --- points, graphs and orders


def neighbor_graph(m, x):
    n = x.shape[0]
    distance = ((x[:, None] - x[None]) ** 2).sum(-1) + m.numpy.where(m.numpy.eye(n, dtype=bool), m.numpy.inf, 0)
    _, nearest = m.lax.top_k(-distance, 2)
    adjacent = m.numpy.zeros((n, n)).at[m.numpy.arange(n)[:, None], nearest].set(1.0)
    adjacent = m.numpy.maximum(adjacent, adjacent.T)
    degree = adjacent.sum(1)
    return adjacent @ x / degree[:, None], (x * ((m.numpy.diag(degree) - adjacent) @ x)).sum(), nearest


def nucleus(m, logits, data):
    """Sampling from the most likely words, of together 0.8 probability."""
    order = m.numpy.argsort(-logits)
    probabilities = m.nn.softmax(logits[order])
    keep = m.numpy.cumsum(probabilities) - probabilities < 0.8
    choice = m.random.categorical(m.random.wrap_key_data(data), m.numpy.where(keep, logits[order], -m.numpy.inf))
    return order[choice], keep.sum(), m.numpy.zeros_like(keep).at[order].set(keep)


def weighted_quantiles(m, x, weights):
    order = m.numpy.argsort(x)
    share = (m.numpy.cumsum(weights[order]) - 0.5 * weights[order]) / weights.sum()
    at = m.numpy.clip(m.numpy.searchsorted(share, m.numpy.array([0.1, 0.5, 0.9])), 0, x.shape[0] - 1)
    return m.numpy.interp(m.numpy.array([0.25, 0.5]), share, x[order]), x[order][at]


def edge_softmax(m, scores, group, values):
    n = values.shape[0]
    weights = m.numpy.exp(scores - m.ops.segment_max(scores, group, n)[group])
    weights = weights / m.ops.segment_sum(weights, group, n)[group]
    return m.ops.segment_sum(weights[:, None] * values[group], group, n), weights


def polynomial(m, x, y):
    matrix = m.numpy.vander(x, 3)
    coefficients, _, rank, _ = m.numpy.linalg.lstsq(matrix, y)
    return coefficients, rank, m.numpy.polyval(coefficients, x)


def distances(m, a, b):
    squares = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
    distance = m.numpy.sqrt(m.numpy.maximum(squares, 1e-6))
    hausdorff = m.numpy.maximum(distance.min(1).max(), distance.min(0).max())
    return distance, distance.argmin(0), hausdorff, m.numpy.abs(a[:, None] - b).sum(-1)


def dynamic_programs(m, weights, values):
    """The knapsack, and the longest rising subsequence."""
    n = values.shape[0]

    def add(i, best):
        fits = m.numpy.arange(11) >= weights[i]
        return m.numpy.maximum(best, m.numpy.where(fits, m.numpy.roll(best, weights[i]), -m.numpy.inf) + values[i])

    def extend(i, longest):
        before = (values < values[i]) & (m.numpy.arange(n) < i)
        return longest.at[i].set(1 + m.numpy.max(m.numpy.where(before, longest, 0)))

    longest = m.lax.fori_loop(0, n, extend, m.numpy.zeros(n, m.numpy.int32))
    return m.lax.fori_loop(0, n, add, m.numpy.zeros(11)), longest, longest.max()


def page_rank(m, links):
    columns, n = links / links.sum(0), links.shape[0]
    far = lambda state: (m.numpy.abs(state[0] - state[1]).sum() > 1e-5) & (state[2] < 50)
    turn = lambda state: (columns @ state[0] * 0.85 + 0.15 / n, state[0], state[2] + 1)
    rank, _, _ = m.lax.while_loop(far, turn, (m.numpy.full(n, 1 / n), m.numpy.zeros(n), 0))
    return rank, m.numpy.trace(links), m.numpy.triu(links), links.diagonal()


def runs(m, keys, values):
    """Runs of equal keys: their groups, sizes, starts, and positions inside of them."""
    n = keys.shape[0]
    new = m.numpy.concatenate([m.numpy.ones(1, bool), keys[1:] != keys[:-1]])
    group, at = m.numpy.cumsum(new) - 1, m.numpy.arange(n)
    first = m.numpy.searchsorted(keys, m.numpy.arange(4))
    starts = m.numpy.nonzero(new, size=4, fill_value=-1)[0], at - m.lax.cummax(m.numpy.where(new, at, 0))
    order = m.lax.sort((keys, values, at), num_keys=2)
    return group, m.ops.segment_sum(m.numpy.ones(n), group, n), first, *starts, *order


FIELDS = {
    "batch norm": Sized(
        batch_norm,
        {"x": "n"},
        lambda n, rng: ({"scale": floats(rng, 4), "offset": floats(rng, 4)}, floats(rng, 2, 4) ** 2, floats(rng, n, 4)),
    ),
    "instance norm": Sized(
        instance_norm, {"x": "b, t"}, lambda n, rng: (floats(rng, 4), floats(rng, n // 8 + 1, n + 2, 4))
    ),
    "masked softmax": Sized(
        masked_softmax,
        {"queries": "q", "keys": "k", "mask": "q, k"},
        lambda n, rng: (
            floats(rng, n, 4),
            floats(rng, n // 2 + 2, 4),
            (rng.random((n, n // 2 + 2)) < 0.5) | (np.arange(n // 2 + 2) == 0),
        ),
    ),
    "convolutions": Sized(
        convolutions,
        {"x": "_, _, t"},
        lambda n, rng: ((floats(rng, 5, 3, 3), floats(rng, 6, 5, 3)), floats(rng, 2, 3, 4 * n + 8)),
    ),
    "two ways": Sized(two_ways, {"x": "t"}, lambda n, rng: (floats(rng, 2, 7, 9) / 2, floats(rng, n, 4))),
    "pairs of views": Sized(
        pairs_of_views, {"a": "n", "b": "n"}, lambda n, rng: (floats(rng, n + 1, 4), floats(rng, n + 1, 4))
    ),
    "bags": Sized(
        bags,
        {"tokens": "e", "bag": "e"},
        lambda n, rng: (floats(rng, 9, 3), integers(rng, n, most=9), np.sort(integers(rng, n, most=4))),
    ),
    "dropout": Sized(dropout, {"x": "n"}, lambda n, rng: (floats(rng, n, 3), key_data(rng))),
    "private gradients": Sized(
        private_gradients, {"x": "n", "y": "n"}, lambda n, rng: (floats(rng, 3), floats(rng, n, 3), floats(rng, n))
    ),
    "adam step": Sized(
        adam_step,
        {"x": "n", "y": "n"},
        lambda n, rng: ({"w": floats(rng, 3, 4), "v": floats(rng, 4)}, floats(rng, n, 3), floats(rng, n)),
        None,
    ),
    "smoother": Sized(smoother, {"observations": "t"}, lambda n, rng: (floats(rng, 2, 2) / 2, floats(rng, n, 1)), None),
    "drawdown": Sized(drawdown, {"x": "n"}, lambda n, rng: (floats(rng, n),), None),
    "state space": Sized(
        state_space,
        {"a": "t", "b": "t"},
        lambda n, rng: (rng.random((n, 3)).astype(np.float32), floats(rng, n, 3)),
    ),
    "positions": Sized(positions, {"x": "n"}, lambda n, rng: (floats(rng, 3), floats(rng, n, 3))),
    "texts": Sized(
        texts,
        {"x": "b, t", "lengths": "b"},
        lambda n, rng: (floats(rng, n, n + 1, 2), 1 + integers(rng, n, most=n + 1)),
    ),
    "neighbor graph": Sized(neighbor_graph, {"x": "n"}, lambda n, rng: (floats(rng, n + 3, 3),)),
    "nucleus": Sized(nucleus, {"logits": "n"}, lambda n, rng: (floats(rng, n), key_data(rng)), None),
    "weighted quantiles": Sized(
        weighted_quantiles,
        {"x": "n", "weights": "n"},
        lambda n, rng: (floats(rng, n), rng.random(n).astype(np.float32) + 0.1),
        None,
    ),
    "edge softmax": Sized(
        edge_softmax,
        {"scores": "e", "group": "e", "values": "n"},
        lambda n, rng: (floats(rng, 3 * n), integers(rng, 3 * n, most=n), floats(rng, n, 2)),
    ),
    "polynomial": Sized(
        polynomial, {"x": "n", "y": "n"}, lambda n, rng: (floats(rng, n + 4), floats(rng, n + 4)), None
    ),
    "distances": Sized(distances, {"a": "n", "b": "k"}, lambda n, rng: (floats(rng, n, 3), floats(rng, n // 2 + 1, 3))),
    "dynamic programs": Sized(
        dynamic_programs,
        {"weights": "n", "values": "n"},
        lambda n, rng: (1 + integers(rng, n, most=4), floats(rng, n)),
        None,
    ),
    "page rank": Sized(page_rank, {"links": "n, n"}, lambda n, rng: (rng.random((n, n)).astype(np.float32),), None),
    "runs": Sized(
        runs, {"keys": "n", "values": "n"}, lambda n, rng: (np.sort(integers(rng, n, most=4)), floats(rng, n)), None
    ),
}
