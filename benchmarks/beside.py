"""The programs of `programs.py` as people write them with torch and NumPy, eagerly, where that is natural.

The arguments are the same arrays, so that the results are the same but where random numbers are drawn.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .programs import LARGE, PROGRAMS


def mapped(f: Callable[[Any], Any], tree: Any) -> Any:
    """`f` of each leaf of tuples, lists and dicts."""
    if isinstance(tree, dict):
        return {key: mapped(f, value) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)(mapped(f, item) for item in tree)
    return f(tree)


def _leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    mapped(found.append, tree)
    return found


#: What of a library the programs need to make their arguments.
_PLAIN = types.SimpleNamespace(
    numpy=np,
    tree=types.SimpleNamespace(map=mapped),
    random=types.SimpleNamespace(PRNGKey=int),
    scipy=types.SimpleNamespace(linalg=None),
    nn=None,
    lax=None,
)


def numpy_call(name: str) -> Callable[[], Any]:
    """A call of the program in NumPy, on its large arguments."""
    _, arguments = PROGRAMS[name](_PLAIN, **LARGE[name])
    return lambda: NUMPY[name](np, *arguments)


def torch_call(torch: Any, name: str) -> Callable[[], Any]:
    """The same in PyTorch."""
    _, arguments = PROGRAMS[name](_PLAIN, **LARGE[name])
    kinds = {"i": np.int64, "f": np.float32}  # torch's indices; NumPy's zeros have 64 bits
    tensors = mapped(lambda x: torch.as_tensor(np.asarray(x, kinds[np.asarray(x).dtype.kind])), arguments)
    if name in LOSSES:
        return lambda: _step(torch, LOSSES[name], 0.1 if name == "mlp" else 0.01, *tensors)
    return lambda: TORCH[name](torch, *tensors)


def _step(t: Any, loss: Callable[..., Any], rate: float, parameters: Any, *batch: Any) -> Any:
    parameters = mapped(lambda p: p.detach().requires_grad_(), parameters)
    value = loss(t, parameters, *batch)
    gradients = iter(t.autograd.grad(value, _leaves(parameters)))
    return mapped(lambda p: (p - rate * next(gradients)).detach(), parameters), value.detach()


# --- networks in torch: losses of parameters and a batch ------------------------------------------------


def _mlp(t: Any, p: Any, x: Any, y: Any) -> Any:
    for w, b in p[:-1]:
        x = t.nn.functional.selu(x @ w + b)
    w, b = p[-1]
    return t.nn.functional.cross_entropy(x @ w + b, y)


def _transformer(t: Any, p: Any, x: Any) -> Any:
    f = t.nn.functional
    b, n, d = x.shape
    for block in p:
        normed = f.layer_norm(x, (d,))
        q, k, v = ((normed @ block[name]).view(b, n, 4, d // 4).transpose(1, 2) for name in ("q", "k", "v"))
        x = x + f.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d) @ block["o"]
        x = x + f.gelu(f.layer_norm(x, (d,)) @ block["up"], approximate="tanh") @ block["down"]
    return (x**2).mean()


def _cnn(t: Any, p: Any, x: Any, y: Any) -> Any:
    f = t.nn.functional
    x = x.permute(0, 3, 1, 2)
    for w, b in p["convolutions"]:
        # The padding of "SAME" with a stride of two: all of it behind.
        x = f.relu(f.conv2d(f.pad(x, (0, 1, 0, 1)), w.permute(3, 2, 0, 1), b, stride=2))
    return f.cross_entropy(x.mean((2, 3)) @ p["w"] + p["b"], y)


def _lstm(t: Any, p: Any, text: Any) -> Any:
    width = p["h"].shape[0]
    forget = t.zeros(4 * width)
    forget[width : 2 * width] = 1
    start = t.zeros(1, text.shape[0], width)
    weights = [p["x"].T, p["h"].T, p["b"], forget]
    hidden, _, _ = t.lstm(p["embedding"][text[:, :-1].T], (start, start), weights, True, 1, 0.0, True, False, False)
    return t.nn.functional.cross_entropy((hidden @ p["out"]).reshape(-1, 64), text[:, 1:].T.reshape(-1))


def _gnn(t: Any, p: Any, x: Any, senders: Any, receivers: Any, labels: Any) -> Any:
    for layer in p["rounds"]:
        messages = t.relu(t.cat([x[senders], x[receivers]], -1) @ layer["message"])
        received = t.zeros(len(x), messages.shape[1]).index_add(0, receivers, messages)
        degree = t.zeros(len(x)).index_add(0, receivers, t.ones(len(receivers)))
        x = t.relu(x @ layer["own"] + received / degree.clamp(min=1)[:, None])
    return t.nn.functional.cross_entropy(x @ p["out"], labels)


def _ode(t: Any, p: Any, starts: Any, wanted: Any) -> Any:
    def slope(x: Any) -> Any:
        return t.tanh(t.tanh(x @ p["a"] + p["b"]) @ p["c"]) @ p["d"]

    x, path = starts, []
    for _ in range(40):
        a = slope(x)
        b = slope(x + 0.05 * a)
        c = slope(x + 0.05 * b)
        d = slope(x + 0.1 * c)
        x = x + 0.1 / 6 * (a + 2 * b + 2 * c + d)
        path.append(x)
    return ((t.stack(path, 1) - wanted) ** 2).mean()


LOSSES: dict[str, Callable[..., Any]] = {
    "mlp": _mlp,
    "transformer": _transformer,
    "cnn": _cnn,
    "lstm": _lstm,
    "gnn": _gnn,
    "neural ode": _ode,
}

# --- other programs: `xp` is torch or NumPy, which take much of the same text ---------------------------


def _bodies(xp: Any, x: Any, v: Any, mass: Any) -> Any:
    def pull(x: Any) -> Any:
        apart = x[None] - x[:, None]
        return (mass[:, None] * apart * ((apart**2).sum(-1)[..., None] + 0.01) ** -1.5).sum(1)

    energy = []
    for _ in range(100):
        v = v + 0.005 * pull(x)
        x = x + 0.01 * v
        energy.append((mass[:, None] * v**2).sum())
        v = v + 0.005 * pull(x)
    return x, v, xp.stack([min(energy), max(energy)])


def _clusters(xp: Any, _: Any, points: Any) -> Any:
    centres, eye, spread = points[:8], xp.eye(8, dtype=points.dtype), []
    for _ in range(20):
        apart = ((points[:, None] - centres[None]) ** 2).sum(-1)
        nearest = eye[xp.argmin(apart, 1)]
        centres = nearest.T @ points / nearest.sum(0).clip(1)[:, None]
        spread.append((apart * nearest).sum(1).mean())
    return centres, spread


def _ranks(xp: Any, links: Any) -> Any:
    nodes = len(links)
    chance = links / links.sum(0)
    rank = xp.ones(nodes, dtype=links.dtype) / nodes
    for _ in range(50):
        old, rank = rank, 0.15 / nodes + 0.85 * (chance @ rank)
        if float(abs(rank - old).sum()) < 1e-6:
            break
    top = xp.argsort(-rank)[:10]
    return rank[top], top[0]


def _newton(n: Any, w: Any, x: Any, y: Any) -> Any:
    def logits(w: Any) -> Any:
        return -y * (x @ w)

    for _ in range(5):
        s = 1 / (1 + n.exp(-logits(w)))
        gradient = -x.T @ (y * s) / len(y) + 0.02 * w
        curvature = x.T @ (x * (s * (1 - s))[:, None]) / len(y) + 0.02 * n.eye(len(w), dtype=w.dtype)
        w = w - n.linalg.solve(curvature, gradient)
    return w, n.logaddexp(n.float32(0), logits(w)).mean() + 0.01 * (w**2).sum()


def _hmc(n: Any, _: Any, x: Any, y: Any) -> Any:
    rng = n.random.default_rng(0)
    w, samples = n.zeros((4, x.shape[1]), np.float32), []

    def density(w: Any) -> Any:
        logits = w @ x.T
        return (y * logits - n.logaddexp(n.float32(0), logits)).sum(1) - 0.5 * (w**2).sum(1)

    def gradient(w: Any) -> Any:
        return (y - 1 / (1 + n.exp(-(w @ x.T)))) @ x - w

    for _ in range(LARGE["hmc"]["steps"]):
        start = v = rng.standard_normal(w.shape, np.float32)
        new = w
        for _ in range(8):
            v = v + 0.005 * gradient(new)
            new = new + 0.01 * v
            v = v + 0.005 * gradient(new)
        gain = density(new) - density(w) + 0.5 * ((start**2).sum(1) - (v**2).sum(1))
        w = n.where((n.log(rng.random(4)) < gain)[:, None], new, w)
        samples.append(w)
    return n.mean(samples, (0, 1)), n.std(samples, (0, 1))


def _script_numpy(n: Any, prices: Any) -> Any:
    returns = n.diff(n.log(prices))
    mean, spread = returns.mean(), returns.std()
    kept = n.where(n.abs((returns - mean) / spread) < 3, returns, n.float32(0))
    smooth = n.convolve(kept, n.full(5, 0.2, n.float32), mode="valid")
    x = n.stack([smooth[:-1], n.ones_like(smooth[1:])], axis=1)
    slope, *_ = n.linalg.lstsq(x, smooth[1:])
    left = smooth[1:] - x @ slope
    order = n.argsort(left)[-5:]
    total = n.cumsum(left)
    drawdown = n.max(n.maximum.accumulate(total) - total)
    return slope, n.quantile(left, [0.05, 0.5, 0.95]), left[order], drawdown, mean * 252


def _script_torch(t: Any, prices: Any) -> Any:
    returns = t.diff(t.log(prices))
    mean, spread = returns.mean(), returns.std(correction=0)
    kept = t.where(t.abs((returns - mean) / spread) < 3, returns, 0.0)
    smooth = t.nn.functional.conv1d(kept[None], t.full((1, 1, 5), 0.2))[0]
    x = t.stack([smooth[:-1], t.ones_like(smooth[1:])], dim=1)
    slope = t.linalg.lstsq(x, smooth[1:, None]).solution[:, 0]
    left = smooth[1:] - x @ slope
    order = t.argsort(left)[-5:]
    total = t.cumsum(left, 0)
    drawdown = t.max(t.cummax(total, 0).values - total)
    return slope, t.quantile(left, t.tensor([0.05, 0.5, 0.95])), left[order], drawdown, mean * 252


def _gaussian_process(t: Any, p: Any, x: Any, y: Any, where: Any) -> Any:
    def kernel(p: Any, a: Any, b: Any) -> Any:
        scaled = (a[:, None] - b[None]) / t.exp(p["scale"])
        return t.exp(p["height"]) * t.exp(-0.5 * (scaled**2).sum(-1))

    def factor(p: Any) -> Any:
        return t.linalg.cholesky(kernel(p, x, x) + (t.exp(p["noise"]) + 1e-4) * t.eye(len(x)))

    def solved(root: Any) -> Any:
        return t.cholesky_solve(y[:, None], root)[:, 0]

    def loss(t: Any, p: Any) -> Any:
        root = factor(p)
        return 0.5 * y @ solved(root) + t.log(t.diag(root)).sum()

    p, value = _step(t, loss, 0.01, p)
    root, across = factor(p), kernel(p, x, where)
    half = t.linalg.solve_triangular(root, across, upper=False)
    return across.T @ solved(root), t.exp(p["height"]) - (half**2).sum(0), value


def _options(t: Any, start: Any, volatility: Any, _: Any) -> Any:
    paths, days = LARGE["options"]["paths"], LARGE["options"]["days"]

    def price(t: Any, p: Any) -> Any:
        start, volatility = p
        steps = (0.02 - 0.5 * volatility**2) / days + volatility * days**-0.5 * t.randn(paths, days)
        prices = start * t.exp(t.cumsum(steps, 1))
        return np.exp(-0.02) * t.relu(prices.mean(1) - 100.0).mean()

    p = [x.clone().requires_grad_() for x in (start, volatility)]
    value = price(t, p)
    return value.detach(), t.autograd.grad(value, p)


def _training(t: Any, parameters: Any, *batch: Any) -> Any:
    for _ in range(LARGE["eager training"]["steps"]):
        parameters, value = _step(t, _mlp, 0.1, parameters, *batch)
    return parameters, value


TORCH: dict[str, Callable[..., Any]] = {
    "gaussian process": _gaussian_process,
    "n-body": _bodies,
    "clusters": _clusters,
    "options": _options,
    "eager script": _script_torch,
    "eager training": _training,
    "eager ranks": _ranks,
}
NUMPY: dict[str, Callable[..., Any]] = {
    "newton": _newton,
    "hmc": _hmc,
    "n-body": _bodies,
    "clusters": _clusters,
    "eager script": _script_numpy,
    "eager ranks": _ranks,
}
#: programs that draw random numbers, so that torch and NumPy have other results
RANDOM = frozenset({"hmc", "options", "clusters", "autoencoder"})
