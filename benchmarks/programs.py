"""Whole programs, written once for jax and phlox: each is a function and its arguments, from NumPy.

They are what people start: a training step of a network, a simulation, a sampler. By default sizes are small, so that
the time to the first result is that of tracing, lowering and compiling; `LARGE` has sizes at which a call is work.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from .models import array, mlp_step, transformer_step

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def _descent(m: Any, loss: Callable[..., Any], rate: float = 0.01) -> Callable[..., Any]:
    """A step of SGD on ``loss(parameters, *batch)``."""

    def step(parameters: Any, *batch: Any) -> Any:
        value, gradients = m.value_and_grad(loss)(parameters, *batch)
        return m.tree.map(lambda p, g: p - rate * g, parameters, gradients), value

    return step


def _put(m: Any, tree: Any) -> Any:
    return m.tree.map(m.numpy.asarray, tree)


def cnn(m: Any, batch: int = 16, widths: tuple[int, ...] = (3, 16, 32, 64)) -> Program:
    """A training step of three convolutions with strides, and a dense layer."""
    nn, lax = m.nn, m.lax

    def loss(p: Any, x: Any, y: Any) -> Any:
        for w, b in p["convolutions"]:
            x = nn.relu(lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + b)
        logits = x.mean((1, 2)) @ p["w"] + p["b"]
        return -(nn.log_softmax(logits) * nn.one_hot(y, 10)).sum(-1).mean()

    pairs = itertools.pairwise(widths)
    parameters = {
        "convolutions": [(array(3, 3, i, o, seed=i, scale=0.1), np.zeros(o, np.float32)) for i, o in pairs],
        "w": array(widths[-1], 10, scale=0.1),
        "b": np.zeros(10, np.float32),
    }
    return _descent(m, loss), _put(m, (parameters, array(batch, 32, 32, 3), np.arange(batch, dtype=np.int32) % 10))


def lstm(m: Any, batch: int = 16, length: int = 32, width: int = 64) -> Program:
    """A training step of an LSTM, a scan over time, that predicts the next character."""
    np_, nn = m.numpy, m.nn

    def loss(p: Any, text: Any) -> Any:
        def cell(carry: Any, x: Any) -> Any:
            h, c = carry
            i, f, g, o = np_.split(x @ p["x"] + h @ p["h"] + p["b"], 4, axis=-1)
            c = nn.sigmoid(f + 1) * c + nn.sigmoid(i) * np_.tanh(g)
            h = nn.sigmoid(o) * np_.tanh(c)
            return (h, c), h

        start = np_.zeros((text.shape[0], width))
        _, hidden = m.lax.scan(cell, (start, start), p["embedding"][text[:, :-1]].swapaxes(0, 1))
        logits = nn.log_softmax(hidden @ p["out"])
        return -np_.take_along_axis(logits, text[:, 1:].T[..., None], axis=-1).mean()

    shapes = {
        "embedding": (64, 32),
        "x": (32, 4 * width),
        "h": (width, 4 * width),
        "b": (4 * width,),
        "out": (width, 64),
    }
    parameters = {name: array(*shape, seed=i, scale=0.1) for i, (name, shape) in enumerate(shapes.items())}
    text = np.random.default_rng(0).integers(0, 64, (batch, length + 1)).astype(np.int32)
    return _descent(m, loss), _put(m, (parameters, text))


def gnn(m: Any, nodes: int = 200, edges: int = 800) -> Program:
    """A training step of three rounds of messages along the edges of a graph."""
    np_, nn = m.numpy, m.nn

    def loss(p: Any, x: Any, senders: Any, receivers: Any, labels: Any) -> Any:
        for layer in p["rounds"]:
            messages = nn.relu(np_.concatenate([x[senders], x[receivers]], -1) @ layer["message"])
            received = m.ops.segment_sum(messages, receivers, nodes)
            degree = m.ops.segment_sum(np_.ones(senders.shape), receivers, nodes)
            x = nn.relu(x @ layer["own"] + received / np_.maximum(degree, 1)[:, None])
        logits = nn.log_softmax(x @ p["out"])
        return -np_.take_along_axis(logits, labels[:, None], 1).mean()

    rng = np.random.default_rng(0)
    rounds = [{"message": array(64, 32, seed=i, scale=0.1), "own": array(32, 32, seed=i, scale=0.1)} for i in range(3)]
    ends = rng.integers(0, nodes, (2, edges)).astype(np.int32)
    labels = rng.integers(0, 4, nodes).astype(np.int32)
    return _descent(m, loss), _put(m, ({"rounds": rounds, "out": array(32, 4)}, array(nodes, 32), *ends, labels))


def hmc(m: Any, rows: int = 200, columns: int = 8, steps: int = 50) -> Program:
    """Hamiltonian Monte Carlo for a logistic regression: steps of 8 leaps, for four chains."""
    np_, random, lax = m.numpy, m.random, m.lax

    def density(w: Any, x: Any, y: Any) -> Any:
        logits = x @ w
        return (y * logits - np_.logaddexp(0.0, logits)).sum() - 0.5 * (w**2).sum()

    def chain(key: Any, w: Any, x: Any, y: Any) -> Any:
        gradient = m.grad(density)

        def leap(_: Any, state: Any) -> Any:
            w, v = state
            v = v + 0.005 * gradient(w, x, y)
            w = w + 0.01 * v
            return w, v + 0.005 * gradient(w, x, y)

        def step(w: Any, key: Any) -> Any:
            first, second = random.split(key)
            v = random.normal(first, w.shape)
            w_new, v_new = lax.fori_loop(0, 8, leap, (w, v))
            gain = density(w_new, x, y) - density(w, x, y) + 0.5 * ((v**2).sum() - (v_new**2).sum())
            w = np_.where(np_.log(random.uniform(second)) < gain, w_new, w)
            return w, w

        return lax.scan(step, w, random.split(key, steps))[1]

    def run(key: Any, x: Any, y: Any) -> Any:
        samples = m.vmap(chain, in_axes=(0, None, None, None))(random.split(key, 4), np_.zeros(columns), x, y)
        return samples.mean((0, 1)), samples.std((0, 1))

    labels = (np.random.default_rng(1).random(rows) < 0.5).astype(np.float32)
    return run, (random.PRNGKey(0), *_put(m, (array(rows, columns), labels)))


def bodies(m: Any, count: int = 64) -> Program:
    """The orbits of bodies: 100 leapfrog steps, and the energy at the end."""
    np_ = m.numpy

    def run(x: Any, v: Any, mass: Any) -> Any:
        def pull(x: Any) -> Any:
            apart = x[None] - x[:, None]
            return (mass[:, None] * apart * ((apart**2).sum(-1, keepdims=True) + 0.01) ** -1.5).sum(1)

        def step(state: Any, _: Any) -> Any:
            x, v = state
            v = v + 0.005 * pull(x)
            x = x + 0.01 * v
            return (x, v + 0.005 * pull(x)), (mass[:, None] * v**2).sum()

        (x, v), energy = m.lax.scan(step, (x, v), None, length=100)
        return x, v, np_.stack([energy.min(), energy.max()])

    return run, _put(m, (array(count, 3), array(count, 3, seed=1, scale=0.1), np.ones(count, np.float32)))


def gaussian_process(m: Any, count: int = 100) -> Program:
    """The evidence of a Gaussian process and its gradient, one step of descent, and predictions with their variance."""
    np_, linalg = m.numpy, m.scipy.linalg

    def kernel(p: Any, a: Any, b: Any) -> Any:
        scaled = (a[:, None] - b[None]) / np_.exp(p["scale"])
        return np_.exp(p["height"]) * np_.exp(-0.5 * (scaled**2).sum(-1))

    def factor(p: Any, x: Any) -> Any:
        return np_.linalg.cholesky(kernel(p, x, x) + (np_.exp(p["noise"]) + 1e-4) * np_.eye(x.shape[0]))

    def loss(p: Any, x: Any, y: Any) -> Any:
        root = factor(p, x)
        return 0.5 * y @ linalg.cho_solve((root, True), y) + np_.log(np_.diag(root)).sum()

    def run(p: Any, x: Any, y: Any, where: Any) -> Any:
        p, value = _descent(m, loss)(p, x, y)
        root = factor(p, x)
        across = kernel(p, x, where)
        half = linalg.solve_triangular(root, across, lower=True)
        return across.T @ linalg.cho_solve((root, True), y), np_.exp(p["height"]) - (half**2).sum(0), value

    parameters = {"scale": np.zeros(2, np.float32), "height": np.float32(0), "noise": np.float32(-2)}
    return run, _put(m, (parameters, array(count, 2), array(count, seed=1), array(50, 2, seed=2)))


def ode(m: Any, count: int = 32) -> Program:
    """A step of fitting a neural differential equation, solved by 40 steps of Runge and Kutta."""
    np_ = m.numpy

    def slope(p: Any, x: Any) -> Any:
        return np_.tanh(np_.tanh(x @ p["a"] + p["b"]) @ p["c"]) @ p["d"]

    def solve(p: Any, x: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            a = slope(p, x)
            b = slope(p, x + 0.05 * a)
            c = slope(p, x + 0.05 * b)
            d = slope(p, x + 0.1 * c)
            x = x + 0.1 / 6 * (a + 2 * b + 2 * c + d)
            return x, x

        return m.lax.scan(step, x, None, length=40)[1]

    def loss(p: Any, starts: Any, wanted: Any) -> Any:
        return ((m.vmap(solve, in_axes=(None, 0))(p, starts) - wanted) ** 2).mean()

    shapes = {"a": (2, 32), "b": (32,), "c": (32, 32), "d": (32, 2)}
    parameters = {name: array(*shape, seed=i, scale=0.3) for i, (name, shape) in enumerate(shapes.items())}
    return _descent(m, loss), _put(m, (parameters, array(count, 2), array(count, 40, 2, seed=1)))


def newton(m: Any, rows: int = 200, columns: int = 10) -> Program:
    """Five steps of Newton's method on a logistic regression, with the Hessian of forward over reverse mode."""
    np_ = m.numpy

    def loss(w: Any, x: Any, y: Any) -> Any:
        return np_.logaddexp(0.0, -y * (x @ w)).mean() + 0.01 * (w**2).sum()

    def run(w: Any, x: Any, y: Any) -> Any:
        for _ in range(5):
            w = w - np_.linalg.solve(m.hessian(loss)(w, x, y), m.grad(loss)(w, x, y))
        return w, loss(w, x, y)

    signs = np.sign(array(rows, seed=1))
    return run, _put(m, (np.zeros(columns, np.float32), array(rows, columns), signs))


def heat(m: Any, count: int = 128, width: int = 32) -> Program:
    """A step of a physics-informed network for the heat equation: second derivatives inside of a gradient."""
    np_ = m.numpy

    def network(p: Any, t: Any, x: Any) -> Any:
        h = np_.stack([t, x])
        for w, b in p[:-1]:
            h = np_.tanh(h @ w + b)
        w, b = p[-1]
        return (h @ w + b)[0]

    def loss(p: Any, t: Any, x: Any) -> Any:
        in_time = m.vmap(m.grad(network, 1), (None, 0, 0))(p, t, x)
        twice = m.vmap(m.grad(m.grad(network, 2), 2), (None, 0, 0))(p, t, x)
        start = m.vmap(network, (None, 0, 0))(p, 0 * t, x) - np_.sin(np_.pi * x)
        return ((in_time - 0.1 * twice) ** 2).mean() + (start**2).mean()

    sizes = ((2, width), (width, width), (width, 1))
    parameters = [(array(n, k, seed=n, scale=n**-0.5), np.zeros(k, np.float32)) for n, k in sizes]
    rng = np.random.default_rng(0)
    points = rng.random((2, count)).astype(np.float32)
    return _descent(m, loss), _put(m, (parameters, *points))


def clusters(m: Any, count: int = 500) -> Program:
    """Means of clusters: twenty rounds of assigning points and averaging them, from points drawn at random."""
    np_ = m.numpy

    def run(key: Any, points: Any) -> Any:
        centres = m.random.choice(key, points, (8,), replace=False)

        def turn(centres: Any, _: Any) -> Any:
            apart = ((points[:, None] - centres[None]) ** 2).sum(-1)
            nearest = m.nn.one_hot(np_.argmin(apart, 1), 8)
            means = nearest.T @ points / np_.maximum(nearest.sum(0), 1)[:, None]
            return means, apart.min(1).mean()

        return m.lax.scan(turn, centres, None, length=20)

    return run, (m.random.PRNGKey(0), m.numpy.asarray(array(count, 4)))


def options(m: Any, paths: int = 1000, days: int = 50) -> Program:
    """The price of an Asian option by Monte Carlo, and its derivatives by price and volatility."""
    np_ = m.numpy

    def price(start: Any, volatility: Any, key: Any) -> Any:
        noise = m.random.normal(key, (paths, days))
        steps = (0.02 - 0.5 * volatility**2) / days + volatility * days**-0.5 * noise
        prices = start * np_.exp(np_.cumsum(steps, axis=1))
        return np_.exp(-0.02) * np_.maximum(prices.mean(1) - 100.0, 0).mean()

    def run(start: Any, volatility: Any, key: Any) -> Any:
        value, slopes = m.value_and_grad(price, (0, 1))(start, volatility, key)
        return value, slopes

    return run, (*_put(m, (np.float32(100), np.float32(0.2))), m.random.PRNGKey(0))


def autoencoder(m: Any, batch: int = 32, pixels: int = 196, width: int = 64) -> Program:
    """A step of Adam on a variational autoencoder."""
    np_, nn = m.numpy, m.nn

    def loss(p: Any, key: Any, x: Any) -> Any:
        mean, spread = np_.split(nn.relu(x @ p["in"]) @ p["code"], 2, axis=-1)
        code = mean + np_.exp(0.5 * spread) * m.random.normal(key, mean.shape)
        logits = nn.relu(code @ p["back"]) @ p["out"]
        found = -(x * nn.log_sigmoid(logits) + (1 - x) * nn.log_sigmoid(-logits)).sum(-1)
        return (found + 0.5 * (np_.exp(spread) + mean**2 - 1 - spread).sum(-1)).mean()

    def step(p: Any, first: Any, second: Any, count: Any, key: Any, x: Any) -> Any:
        key, now = m.random.split(key)
        value, g = m.value_and_grad(loss)(p, now, x)
        first = m.tree.map(lambda a, g: 0.9 * a + 0.1 * g, first, g)
        second = m.tree.map(lambda a, g: 0.999 * a + 0.001 * g * g, second, g)
        count = count + 1
        low, high = 1 - 0.9**count, 1 - 0.999**count
        p = m.tree.map(lambda p, a, b: p - 1e-3 * (a / low) / (np_.sqrt(b / high) + 1e-8), p, first, second)
        return p, first, second, count, key, value

    shapes = {"in": (pixels, width), "code": (width, 16), "back": (8, width), "out": (width, pixels)}
    parameters = {name: array(*shape, seed=i, scale=0.1) for i, (name, shape) in enumerate(shapes.items())}
    zeros = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    images = np.random.default_rng(0).random((batch, pixels)).astype(np.float32)
    tail = m.random.PRNGKey(0), m.numpy.asarray(images)
    return step, (*_put(m, (parameters, zeros, zeros, np.float32(0))), *tail)


def script(m: Any, count: int = 500) -> Program:
    """An analysis that is written as with NumPy, eagerly: statistics, a filter, a fit by least squares, a forecast."""
    np_ = m.numpy

    def run(prices: Any) -> Any:
        returns = np_.diff(np_.log(prices))
        mean, spread = returns.mean(), returns.std()
        scores = (returns - mean) / spread
        kept = np_.where(np_.abs(scores) < 3, returns, 0.0)
        smooth = np_.convolve(kept, np_.ones(5) / 5, mode="valid")
        x = np_.stack([smooth[:-1], np_.ones(smooth.shape[0] - 1)], axis=1)
        slope, *_ = np_.linalg.lstsq(x, smooth[1:])
        left = smooth[1:] - x @ slope
        order = np_.argsort(left)[-5:]
        total = np_.cumsum(left)
        drawdown = np_.max(np_.maximum.accumulate(total) - total)
        return slope, np_.quantile(left, np_.asarray([0.05, 0.5, 0.95])), left[order], drawdown, mean * 252

    walk = 100 * np.exp(np.cumsum(0.01 * array(count)))
    return run, (m.numpy.asarray(walk.astype(np.float32)),)


def training(m: Any, steps: int = 3) -> Program:
    """Steps of SGD on a network, eagerly: `value_and_grad` without `jit`, in a loop of Python."""
    step, (parameters, *batch) = mlp_step(m)

    def run(parameters: Any, *batch: Any) -> Any:
        for _ in range(steps):
            parameters, value = step(parameters, *batch)
        return parameters, value

    return run, (parameters, *batch)


def ranks(m: Any, nodes: int = 200) -> Program:
    """The ranks of pages by their links, eagerly: a loop of Python that stops when they change little."""
    np_ = m.numpy

    def run(links: Any) -> Any:
        chance = links / links.sum(0, keepdims=True)
        rank = np_.ones(nodes) / nodes
        for _ in range(50):
            old, rank = rank, 0.15 / nodes + 0.85 * (chance @ rank)
            if float(np_.abs(rank - old).sum()) < 1e-6:
                break
        return np_.sort(rank)[::-1][:10], np_.argmax(rank)

    return run, (
        m.numpy.asarray((np.random.default_rng(0).random((nodes, nodes)) < 0.05) + np.eye(nodes, dtype=np.float32)),
    )


#: name -> function of the library; the function that it returns is called under `jit` unless it is in `EAGER`
PROGRAMS: dict[str, Callable[..., Program]] = {
    "mlp": mlp_step,
    "transformer": functools.partial(transformer_step, layers=4),
    "cnn": cnn,
    "lstm": lstm,
    "gnn": gnn,
    "autoencoder": autoencoder,
    "neural ode": ode,
    "heat equation": heat,
    "newton": newton,
    "gaussian process": gaussian_process,
    "hmc": hmc,
    "n-body": bodies,
    "clusters": clusters,
    "options": options,
    "eager script": script,
    "eager training": training,
    "eager ranks": ranks,
}
EAGER = frozenset({"eager script", "eager training", "eager ranks"})
#: sizes at which a call takes milliseconds or tens of them
LARGE: dict[str, dict[str, Any]] = {
    "mlp": {"batch": 256, "sizes": (784, 512, 512, 10)},
    "transformer": {"width": 128, "length": 64, "batch": 8},
    "cnn": {"batch": 32, "widths": (3, 32, 64, 128)},
    "lstm": {"batch": 32, "length": 64, "width": 128},
    "gnn": {"nodes": 2000, "edges": 20_000},
    "autoencoder": {"batch": 128, "pixels": 784, "width": 256},
    "neural ode": {"count": 256},
    "heat equation": {"count": 1024, "width": 64},
    "newton": {"rows": 5000, "columns": 40},
    "gaussian process": {"count": 500},
    "hmc": {"rows": 1000, "columns": 16, "steps": 100},
    "n-body": {"count": 128},
    "clusters": {"count": 20_000},
    "options": {"paths": 10_000, "days": 100},
    "eager script": {"count": 5000},
    "eager training": {"steps": 10},
    "eager ranks": {"nodes": 1000},
}
