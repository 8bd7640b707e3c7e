"""Programs with one mistake each, as users write them. The comment ``# guilty`` marks the line with the mistake.

A case is a function that makes the recording and asks the question that a user would ask; see
unit/test_broken_programs.py.
"""

from itertools import pairwise

import numpy as np

import phlox
import phlox.numpy as jnp
from phlox import NamedSharding, P, grad, jit, lax, nn, record, value_and_grad, vmap
from phlox.sharding import AxisType


def data(*shape, seed=0, scale=1.0):
    return jnp.asarray(scale * np.random.default_rng(seed).standard_normal(shape), "float32")


def params(*widths):
    return [{"w": data(m, n, seed=i, scale=0.5), "b": jnp.zeros(n)} for i, (m, n) in enumerate(pairwise(widths))]


# -- nan


def nan_in_third_layer():
    def net(params, x):
        for i, layer in enumerate(params):
            x = x @ layer["w"] + layer["b"]
            x = jnp.tanh(x)
            if i == 2:
                x = jnp.sqrt(x - x)  # guilty
        return x

    def loss(params, x, y):
        return jnp.mean((net(params, x) - y) ** 2)

    return record(grad(loss))(params(4, 8, 8, 2), data(5, 4), data(5, 2)).why_nan()


def log_of_a_negative():
    def likelihood(theta, x):
        rate = theta[0] + theta[1] * x
        log_rate = jnp.log(rate)  # guilty
        return jnp.sum(x * log_rate - rate)

    return record(likelihood)(jnp.array([0.5, 1.0]), jnp.linspace(-1.0, 1.0, 9)).why_nan()


def sqrt_at_zero():
    def distance(a, b):
        squares = jnp.sum((a - b) ** 2)
        return jnp.sqrt(squares)  # guilty

    return record(grad(distance))(jnp.ones(3), jnp.ones(3)).why_nan()


def division_by_a_zero_count():
    def class_means(x, labels):
        one_hot = nn.one_hot(labels, 4)
        counts = one_hot.sum(axis=0)
        sums = one_hot.T @ x
        return sums / counts[:, None]  # guilty

    return record(jit(class_means))(data(6, 2), jnp.array([0, 1, 1, 3, 0, 3])).why_nan()


def where_trap():
    def penalty(x):
        logs = jnp.where(x > 0, jnp.log(x), 0.0)  # guilty
        return jnp.sum(logs)

    return record(grad(penalty))(jnp.array([1.0, 0.0, 2.0])).why_nan("")


def labels_out_of_range():
    def cross_entropy(logits, labels):
        log_p = nn.log_softmax(logits)
        picked = jnp.take_along_axis(log_p, labels[:, None], axis=1)  # guilty
        return -jnp.mean(picked)

    return record(value_and_grad(cross_entropy))(data(4, 10), jnp.array([1, 9, 10, 3])).why_nan()


def float16_overflow():
    def attention(q, k):
        scores = q @ k.T
        weights = jnp.exp(scores)  # guilty
        return weights / weights.sum(axis=-1, keepdims=True)

    q = 3 * jnp.ones((2, 8), "float16")
    return record(jit(attention))(q, q).why_nan()


def logsumexp_by_hand():
    def log_evidence(log_weights):
        weights = jnp.exp(log_weights)  # guilty
        total = jnp.sum(weights)
        return jnp.log(total) - total / total

    return record(jit(log_evidence))(jnp.array([1000.0, 1001.0])).why_nan()


def normalisation_by_zero_deviation():
    def normalise(x):
        centred = x - x.mean(axis=0)
        return centred / x.std(axis=0)  # guilty

    x = jnp.stack([jnp.arange(4.0), jnp.full(4, 2.0)], axis=1)
    return record(normalise)(x).why_nan()


def arccos_at_one():
    def angle(u, v):
        cosine = jnp.dot(u, v) / (jnp.linalg.norm(u) * jnp.linalg.norm(v))
        return jnp.arccos(cosine * 1.0001)  # guilty

    return record(grad(angle))(jnp.array([1.0, 0.0]), jnp.array([1.0, 0.0])).why_nan()


def nan_in_a_row_of_vmap():
    def score(x):
        shifted = x - 2.0
        root = jnp.sqrt(shifted)  # guilty
        return root.sum()

    return record(vmap(score))(jnp.array([[3.0, 4.0], [5.0, 6.0], [7.0, 1.0]])).why_nan()


def nan_in_a_turn_of_scan():
    def simulate(x0, forces):
        def step(state, force):
            position, velocity = state
            energy = 4.0 - velocity**2
            speed = jnp.sqrt(energy)  # guilty
            velocity = velocity + 0.5 * force
            position = position + 0.1 * speed
            return (position, velocity), position

        return lax.scan(step, (x0, jnp.zeros(())), forces)

    return record(jit(simulate))(jnp.zeros(()), jnp.ones(8)).why_nan()


def inverted_mask_in_attention():
    def attend(scores, mask):
        scores = jnp.where(mask, -jnp.inf, scores)  # guilty
        scores = scores - scores.max(axis=-1, keepdims=True)
        weights = jnp.exp(scores)
        return weights / weights.sum(axis=-1, keepdims=True)

    return record(attend)(data(3, 3), jnp.tril(jnp.ones((3, 3), bool))).why_nan()


def norm_of_zero_vector():
    def unit(v):
        return v / jnp.sqrt(jnp.sum(v * v))  # guilty

    def loss(vs):
        return vmap(unit)(vs).sum()

    return record(loss)(jnp.array([[1.0, 2.0], [0.0, 0.0]])).why_nan()


def power_of_a_negative():
    def gamma_correct(image, gamma):
        linear = (image - 0.1) / 0.9
        return linear**gamma  # guilty

    return record(jit(gamma_correct))(jnp.linspace(0.0, 1.0, 5), jnp.float32(2.2)).why_nan()


def nan_behind_cond():
    def solve(a, b, c):
        disc = b * b - 4 * a * c
        root = lax.cond(
            a > 0,
            lambda d: jnp.sqrt(d),  # guilty
            lambda d: jnp.abs(d),
            disc,
        )
        return (-b + root) / (2 * a)

    return record(jit(solve))(1.0, 1.0, 5.0).why_nan()


def entropy_of_certain_outcome():
    @jit
    def entropy(p):
        return -jnp.sum(p * jnp.log(p))  # guilty

    return record(entropy)(jnp.array([0.5, 0.5, 0.0])).why_nan()


# -- zero


def dead_relu():
    def loss(params, x):
        pre = x @ params["w"] + params["b"]
        h = nn.relu(pre)  # guilty
        return jnp.sum((h @ params["v"]) ** 2)

    p = {"w": data(4, 8), "b": jnp.full(8, -50.0), "v": data(8, 1)}
    return record(grad(loss))(p, data(5, 4)).why_zero("w")


def detached_gradient():
    def loss(params, x):
        features = jnp.tanh(x @ params["encoder"])
        features = lax.stop_gradient(features)  # guilty
        return jnp.mean((features @ params["head"]) ** 2)

    return record(grad(loss))({"encoder": data(4, 8), "head": data(8, 1)}, data(5, 4)).why_zero("encoder")


def integer_parameter():
    def loss(width, x):
        count = width.astype(jnp.int32)  # guilty
        window = jnp.arange(10) < count
        return jnp.sum(window * x)

    return record(grad(loss))(jnp.float32(3.5), data(10)).why_zero()


def rounded_levels():
    def loss(scale, x):
        levels = jnp.round(x * scale)  # guilty
        return jnp.mean((levels - x) ** 2)

    return record(jit(grad(loss)))(jnp.float32(4.0), data(10)).why_zero()


def clipped_logits():
    def loss(w, x):
        logits = x @ w
        logits = jnp.clip(logits, -1.0, 1.0)  # guilty
        return jnp.sum(logits**2)

    return record(grad(loss))(100 * jnp.ones(3), jnp.ones((4, 3))).why_zero()


def mask_of_loss_inverted():
    def loss(w, x, padding):
        errors = (x @ w) ** 2
        kept = jnp.where(padding, 0.0, errors)  # guilty
        return jnp.sum(kept)

    return record(grad(loss))(data(3), data(4, 3), jnp.ones(4, bool)).why_zero()


def cumulative_product_underflows():
    def survival(hazards):
        alive = 1.0 - hazards
        curve = jnp.cumprod(alive)  # guilty
        return curve

    return record(survival)(jnp.full(200, 0.9)).why_zero()


def loss_scale_too_small():
    def loss(w, x):
        h = (x @ w).astype(jnp.float16)
        scaled = h * 1e-5
        return jnp.sum(scaled * scaled)  # guilty

    return record(loss)(data(3, scale=0.1), data(4, 3)).why_zero()


def saturated_sigmoid():
    def loss(w, x, y):
        p = nn.sigmoid(x @ w)  # guilty
        return jnp.mean((p - y) ** 2)

    return record(grad(loss))(jnp.full(3, 200.0), jnp.ones((4, 3)), jnp.zeros(4)).why_zero()


# -- large


def exploding_rnn():
    def loss(w, xs):
        def cell(h, x):
            h = h @ w + x  # guilty
            return h, h

        return lax.scan(cell, jnp.zeros(4), xs)[1].mean()

    return record(value_and_grad(loss))(3.0 * jnp.eye(4), data(40, 4)).why_large()


def learning_rate_of_a_thousand():
    def loss(w, x, y):
        return jnp.mean((x @ w - y) ** 2)

    @jit
    def train(w, x, y):
        def step(w, _):
            gradient = grad(loss)(w, x, y)
            return w - 1e3 * gradient, None  # guilty

        return lax.scan(step, w, None, length=8)[0]

    return record(train)(data(3), data(20, 3), data(20, seed=1)).why_large()


def wrong_loss_scale():
    def loss(w, x, y):
        errors = (x @ w - y) ** 2
        scaled = 65536.0 * errors  # guilty
        return jnp.mean(scaled)

    return record(grad(loss))(data(3), data(20, 3), data(20, seed=1)).why_large()


def exploding_while_loop():
    def newton(x):
        def unfinished(x):
            return jnp.abs(x) < 1e6

        def step(x):
            return x + x**3 / 0.01  # guilty

        return lax.while_loop(unfinished, step, x)

    return record(jit(newton))(jnp.float32(0.5)).why_large()


def variance_too_small():
    def log_density(x, mean, log_std):
        z = (x - mean) / jnp.exp(log_std)  # guilty
        return -0.5 * z**2

    return record(log_density)(data(5), jnp.float32(0.0), jnp.float32(-12.0)).why_large()


# -- two runs


def wrong_axis_of_softmax():
    def attention(q, k, v):
        scores = q @ k.T
        weights = nn.softmax(scores, axis=0)  # guilty
        return weights @ v

    def reference(q, k, v):
        scores = q @ k.T
        weights = nn.softmax(scores, axis=-1)
        return weights @ v

    return record(attention)(data(4, 8), data(4, 8, seed=1), data(4, 8, seed=2)).compare(function=reference)


def broadcast_in_a_loss():
    def loss(w, x, y):
        predictions = x @ w
        errors = predictions - y  # guilty
        return jnp.mean(errors**2)

    def reference(w, x, y):
        predictions = x @ w
        errors = predictions[:, 0] - y
        return jnp.mean(errors**2)

    return record(loss)(data(3, 1), data(8, 3), data(8, seed=1)).compare(function=reference)


def off_by_one_in_scan():
    def returns(rewards):
        def step(total, reward):
            total = reward + 0.9 * total
            return total, total

        later = rewards[1:]  # guilty
        return lax.scan(step, 0.0, later, reverse=True)[0]

    def reference(rewards):
        def step(total, reward):
            total = reward + 0.9 * total
            return total, total

        return lax.scan(step, 0.0, rewards, reverse=True)[0]

    return record(returns)(jnp.arange(5.0)).compare(function=reference)


def sign_in_a_scan_body():
    def integrate(x, steps):
        def step(x, dt):
            velocity = 1.0 + x  # guilty
            return x + dt * velocity, None

        return lax.scan(step, x, steps)[0]

    def reference(x, steps):
        def step(x, dt):
            velocity = 1.0 - x
            return x + dt * velocity, None

        return lax.scan(step, x, steps)[0]

    return record(integrate)(jnp.ones(3), jnp.full(4, 0.1)).compare(function=reference)


def other_arguments_take_another_branch():
    def price(x, threshold):
        doubled = x * 2.0
        expensive = threshold > 1.0  # guilty
        return lax.cond(expensive, lambda y: y + 1.0, lambda y: y - 1.0, doubled)

    return record(price)(jnp.ones(3), jnp.float32(2.0)).compare(jnp.ones(3), jnp.float32(0.0))


# -- compiled programs


def sharding_that_replicates():
    mesh = phlox.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))

    def features(w, x):
        h = jnp.tanh(x @ w)
        h = lax.with_sharding_constraint(h, NamedSharding(mesh, P()))  # guilty
        return jnp.sort(h, axis=1)

    x = phlox.device_put(data(64, 32), NamedSharding(mesh, P("data", None)))
    w = phlox.device_put(data(32, 16), NamedSharding(mesh, P()))
    return phlox.explain_sharding(features, w, x)


def pairs_that_fill_the_memory():
    def energies(x):
        near = jnp.tanh(x)
        pairs = jnp.sort(near[:, None, :] - near[None, :, :], axis=0)  # guilty
        return jnp.sort(pairs.sum(axis=(1, 2)))

    return phlox.explain_memory(energies, data(64, 16))


def slow_sort_in_a_step():
    def update(w, x):
        scores = x @ w
        order = jnp.argsort(jnp.tile(scores, 2000))  # guilty
        return w + 0.1 * x[order[0] % 8]

    return phlox.where_time(update, data(16), data(8, 16))


CASES = {
    name: case
    for name, case in list(globals().items())
    if callable(case) and getattr(case, "__module__", None) == __name__ and name not in ("data", "params")
}
