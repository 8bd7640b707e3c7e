"""Further programs for arguments of varying length, as people write them: functions of a module (phlox or jax)."""

from __future__ import annotations

import numpy as np

from sized_programs import Sized, floats


def integers(rng, *shape, most=6):
    return rng.integers(0, most, shape).astype(np.int32)


def key_data(rng):
    return rng.integers(0, 1000, 2).astype(np.uint32)


# --- sequences


def ctc(m, logits, labels):
    """The CTC loss by a scan over time."""
    logs = m.nn.log_softmax(logits)
    extended = m.numpy.zeros(2 * labels.shape[0] + 1, m.numpy.int32).at[1::2].set(labels)
    can_skip = m.numpy.concatenate([m.numpy.zeros(2, bool), extended[2:] != extended[:-2]]) & (extended != 0)

    def step(alpha, row):
        one = m.numpy.concatenate([m.numpy.full(1, -1e9), alpha[:-1]])
        two = m.numpy.where(can_skip, m.numpy.concatenate([m.numpy.full(2, -1e9), alpha[:-2]]), -1e9)
        return m.numpy.logaddexp(m.numpy.logaddexp(alpha, one), two) + row[extended], None

    first = m.numpy.full(extended.shape[0], -1e9).at[0].set(logs[0, 0]).at[1].set(logs[0, extended[1]])
    alpha, _ = m.lax.scan(step, first, logs[1:])
    return -m.numpy.logaddexp(alpha[-1], alpha[-2])


def edit_distance(m, a, b):
    def row(previous, x):
        def column(left, above):
            up, diagonal, y = above
            value = m.numpy.minimum(m.numpy.minimum(up, left) + 1, diagonal + (x != y))
            return value, value

        first = previous[0] + 1
        _, rest = m.lax.scan(column, first, (previous[1:], previous[:-1], b))
        return m.numpy.concatenate([first[None], rest]), None

    last, _ = m.lax.scan(row, m.numpy.arange(b.shape[0] + 1), a)
    return last[-1]


def time_warping(m, a, b):
    """Dynamic time warping."""
    infinity = m.numpy.full(1, m.numpy.inf)

    def row(previous, costs):
        def column(left, above):
            up, diagonal, cost = above
            value = cost + m.numpy.minimum(m.numpy.minimum(up, left), diagonal)
            return value, value

        shifted = m.numpy.concatenate([infinity, previous[:-1]])
        return m.lax.scan(column, m.numpy.inf, (previous, shifted, costs))[1], None

    costs = m.numpy.abs(a[:, None] - b)
    last, _ = m.lax.scan(row, m.numpy.cumsum(costs[0]), costs[1:])
    return last[-1] / (a.shape[0] + b.shape[0])


def decoder(m, x, w):
    """A layer of a language model with rotary positions, and the loss of the next tokens."""
    n, width = x.shape
    positions = m.numpy.arange(n)
    angles = positions[:, None] / 100 ** (m.numpy.arange(0, width, 2) / width)

    def norm(x):
        return (x - x.mean(-1, keepdims=True)) * m.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def rotate(x):
        a, b = x[:, ::2], x[:, 1::2]
        sin, cos = m.numpy.sin(angles), m.numpy.cos(angles)
        return m.numpy.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)

    h = norm(x)
    scores = m.numpy.einsum("qd,kd->qk", rotate(h @ w[0]), rotate(h @ w[1])) / np.sqrt(np.float32(width))
    scores = m.numpy.where(positions[:, None] >= positions, scores, m.numpy.finfo(scores.dtype).min)
    x = x + m.nn.softmax(scores) @ (h @ w[2])
    x = x + m.nn.silu(norm(x) @ w[3])
    return -m.nn.log_softmax(x[:-1] @ w[4])[:, 0].sum() / n, x[-1]


def text_cnn(m, w, tokens, embedding):
    rows = embedding[tokens]
    y = m.lax.conv_general_dilated(rows[None], w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
    z = m.lax.conv_general_dilated(m.numpy.pad(rows, ((2, 2), (0, 0))).T[None], w.transpose(2, 1, 0), (1,), "VALID")
    return m.nn.relu(y).max(1)[0], m.numpy.tanh(z).max(-1)[0]


def advantages(m, rewards, values):
    """Generalized advantages, standardized."""

    def step(advantage, row):
        reward, value, following = row
        advantage = reward + 0.99 * following - value + 0.94 * advantage
        return advantage, advantage

    _, result = m.lax.scan(step, 0.0, (rewards, values[:-1], values[1:]), reverse=True)
    return (result - result.mean()) / (result.std() + 1e-2), result + values[:-1]


def smoothing(m, x, w):
    """Moving averages, an exponential one, and the loss from the peak."""
    weights = 0.9 ** m.numpy.arange(x.shape[0])[::-1]
    total = m.numpy.cumsum(x)
    loss = m.lax.cummax(total) - total
    averages = m.numpy.convolve(x, w, "same"), m.numpy.convolve(x, w, "full")
    return averages, (weights * x).sum() / weights.sum(), loss.max(), loss.argmax(), m.numpy.roll(x, 1), x[-1]


# --- points and groups


def neighbors(m, points):
    distance = ((points[:, None] - points) ** 2).sum(-1)
    distance = distance + m.numpy.where(m.numpy.eye(points.shape[0], dtype=bool), 1e9, 0)
    nearest = distance.argmin(1)
    return nearest, points[nearest].sum(0), m.lax.top_k(-distance[0], 1)


def kernel_ridge(m, scale, x, y):
    kernel = m.numpy.exp(-((x[:, None] - x) ** 2).sum(-1) * scale) + 0.1 * m.numpy.eye(x.shape[0])
    return kernel @ m.numpy.linalg.solve(kernel, y), m.numpy.linalg.slogdet(kernel)[1], m.numpy.linalg.inv(kernel).sum()


def folds(m, x):
    """The errors of k-fold validation."""
    fold = m.numpy.arange(x.shape[0]) % 3

    def error(k):
        inside = fold != k
        mean = m.numpy.where(inside, x, 0).sum() / m.numpy.maximum(inside.sum(), 1)
        return m.numpy.where(inside, 0, (x - mean) ** 2).sum() / m.numpy.maximum((~inside).sum(), 1)

    return m.vmap(error)(m.numpy.arange(3))


def group_medians(m, x, groups):
    order = m.numpy.lexsort((x, groups))
    counts = m.numpy.bincount(groups, length=6)
    middle = m.numpy.cumsum(counts) - counts + m.numpy.maximum(counts - 1, 0) // 2
    entropy = -m.scipy.special.xlogy(counts / x.shape[0], counts / x.shape[0]).sum()
    return m.numpy.where(counts > 0, x[order][m.numpy.minimum(middle, x.shape[0] - 1)], 0), counts, entropy


def curves(m, scores, labels):
    """The area under the ROC curve, the average precision and the rank correlation."""
    sorted_labels = labels[m.numpy.argsort(-scores)]
    hits, misses = m.numpy.cumsum(sorted_labels), m.numpy.cumsum(1 - sorted_labels)
    area = m.numpy.trapezoid(hits / m.numpy.maximum(hits[-1], 1), misses / m.numpy.maximum(misses[-1], 1))
    precision = (hits / m.numpy.arange(1, labels.shape[0] + 1) * sorted_labels).sum() / m.numpy.maximum(hits[-1], 1)
    return area, precision, m.scipy.stats.rankdata(scores), m.numpy.percentile(scores, 30)


def sets(m, a, b):
    values = m.numpy.unique(a, size=6, fill_value=-1, return_inverse=True, return_counts=True)
    (where,) = m.numpy.nonzero(a > 2, size=4, fill_value=-1)
    return values, where, m.numpy.isin(a, b), m.numpy.searchsorted(m.numpy.sort(a), b), m.nn.one_hot(a, 6).sum(0)


# --- random numbers and derivatives


def augmentation(m, x, key):
    """Dropout, a shuffled batch and noise of each row."""
    keys = m.random.split(m.random.wrap_key_data(key), 4)
    keep = m.random.bernoulli(keys[0], 0.7, x.shape)
    rows = m.vmap(lambda k, row: row + m.random.normal(k, row.shape))(m.random.split(keys[3], x.shape[0]), x)
    order = m.random.permutation(keys[1], x.shape[0])
    return m.numpy.where(keep, x / 0.7, 0), m.random.permutation(keys[2], x), x[order], rows


def clipped_gradients(m, w, x, y):
    gradients = m.vmap(m.grad(lambda w, x, y: (m.numpy.tanh(x @ w) - y) ** 2), (None, 0, 0))(w, x, y)
    norms = m.numpy.linalg.norm(gradients, axis=1)
    return (gradients / m.numpy.maximum(norms, 1)[:, None]).mean(0)


def newton(m, x):
    def loss(z):
        return (m.numpy.cosh(z) - z * x).sum() + 0.1 * z.sum() ** 2

    z = m.numpy.zeros_like(x)
    for _ in range(2):
        z = z - m.numpy.linalg.solve(m.hessian(loss)(z), m.grad(loss)(z))
    return z


def recurrences(m, x):
    """A linear recurrence by `associative_scan`, and a map over rows."""

    def combined(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    _, states = m.lax.associative_scan(combined, (m.nn.sigmoid(x), x))
    return states, m.lax.map(lambda row: m.numpy.tanh(row).sum(), x), m.jacobian(lambda s: (s * x[:, 0]).std())(2.0)


EVERYDAY = {
    "ctc": Sized(ctc, {"logits": "t", "labels": "k"}, lambda n, rng: (floats(rng, 2 * n + 6, 7), 1 + integers(rng, n))),
    "edit distance": Sized(
        edit_distance, {"a": "n", "b": "k"}, lambda n, rng: (integers(rng, n), integers(rng, n // 2 + 1)), None
    ),
    "time warping": Sized(time_warping, {"a": "n", "b": "k"}, lambda n, rng: (floats(rng, n), floats(rng, n // 2 + 1))),
    "decoder": Sized(decoder, {"x": "n"}, lambda n, rng: (floats(rng, n, 8), floats(rng, 5, 8, 8) / 3)),
    "text cnn": Sized(
        text_cnn, {"tokens": "n"}, lambda n, rng: (floats(rng, 3, 4, 5), integers(rng, n), floats(rng, 6, 4))
    ),
    "advantages": Sized(
        advantages, {"rewards": "n", "values": "n + 1"}, lambda n, rng: (floats(rng, n), floats(rng, n + 1))
    ),
    "smoothing": Sized(smoothing, {"x": "n"}, lambda n, rng: (floats(rng, n), floats(rng, 3)), None),
    "neighbors": Sized(neighbors, {"points": "n"}, lambda n, rng: (floats(rng, n, 3),), None),
    "kernel ridge": Sized(
        kernel_ridge, {"x": "n", "y": "n"}, lambda n, rng: (np.float32(0.5), floats(rng, n, 2), floats(rng, n))
    ),
    "folds": Sized(folds, {"x": "n"}, lambda n, rng: (floats(rng, n),)),
    "group medians": Sized(
        group_medians, {"x": "n", "groups": "n"}, lambda n, rng: (floats(rng, n), integers(rng, n)), None
    ),
    "curves": Sized(
        curves, {"scores": "n", "labels": "n"}, lambda n, rng: (floats(rng, n), integers(rng, n, most=2)), None
    ),
    "sets": Sized(sets, {"a": "n", "b": "k"}, lambda n, rng: (integers(rng, n), integers(rng, n // 2 + 2)), None),
    "augmentation": Sized(augmentation, {"x": "n"}, lambda n, rng: (floats(rng, n, 3), key_data(rng)), None),
    "clipped gradients": Sized(
        clipped_gradients, {"x": "n", "y": "n"}, lambda n, rng: (floats(rng, 3), floats(rng, n, 3), floats(rng, n))
    ),
    "newton": Sized(newton, {"x": "n"}, lambda n, rng: (floats(rng, n),)),
    "recurrences": Sized(recurrences, {"x": "n"}, lambda n, rng: (floats(rng, n, 3),)),
}
