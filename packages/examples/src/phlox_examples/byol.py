"""``./train byol``: what digits look like, learnt without a single label.

Two pictures are made of each digit, by turning, moving, stretching and noise. A network, the online one, must predict
from the first what another network, the target, makes of the second, up to length,

    loss = |p/|p| - z/|z||^2,        p = predictor(projector(encoder(first))),   z = projector'(encoder'(second)).

If both networks answered the same to everything, the loss would be 0. That it does not come to this is the surprise of
BYOL (Grill et al. 2020): the target is not trained, its weights are a slow moving average of the online ones, and only
the online network has a predictor.

What was learnt is judged by a linear probe: the encoder is fixed, and a linear classifier is fitted to what it makes of
few labelled digits. The same probe gets the raw pixels, and what an encoder makes of them that has learnt nothing. All
probes are averaged over many choices of the labelled digits.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
import phlox_optim as optim

from . import digits, plots, report, results
from .errors import ProgramError
from .options import settings_of

NAME = "byol"
FEATURES, PROJECTED = 128, 64
AVERAGE = 0.99  # of the target that stays in a step
LABELS, CHOICES = (1, 2, 5, 10, 20), 40  # labelled digits of each class, and how often they are chosen
RIDGE = 0.1


def standardized(x: Any) -> Any:
    """Features of mean 0 and deviation 1 over a batch. Without this in the networks all answers become the same."""
    return (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5)


class Online(nn.Layer):
    """Encoder, projector and predictor; the target has the same without predictor."""

    encoder: nn.Sequential
    projector: nn.Sequential
    predictor: nn.Sequential

    def project(self, images: Any) -> Any:
        """z of pictures (n, 8, 8, 1)."""
        return self.projector(self.encoder(images))

    def encode(self, images: Any) -> Any:
        """Features (n, FEATURES) of pictures."""
        return self.encoder(images)

    def __call__(self, images: Any) -> Any:
        """p of pictures."""
        return self.predictor(self.project(images))


def network() -> Online:
    """The networks."""

    def head(inputs: int) -> nn.Sequential:
        return nn.Sequential(nn.Linear(inputs, 128), standardized, nn.relu, nn.Linear(128, PROJECTED))

    encoder = nn.Sequential(nn.flatten, nn.MLP((64, 256, 256, FEATURES), nn.relu), nn.relu)
    return Online(encoder, head(FEATURES), head(PROJECTED))


model = network()


def changed(key: Any, image: Any) -> Any:
    """A picture (8, 8, 1), turned, moved, stretched and with noise, at random."""
    keys = phlox.random.split(key, 4)
    angle = phlox.random.uniform(keys[0], minval=-0.3, maxval=0.3)
    stretch = jnp.exp(phlox.random.uniform(keys[1], (2,), minval=-0.2, maxval=0.2))
    shift = phlox.random.uniform(keys[2], (2,), minval=-1.0, maxval=1.0)
    y, x = jnp.meshgrid(jnp.arange(8.0) - 3.5, jnp.arange(8.0) - 3.5, indexing="ij")
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    rows = stretch[0] * (cos * y - sin * x) + shift[0] + 3.5
    columns = stretch[1] * (sin * y + cos * x) + shift[1] + 3.5
    # Around the picture there is paper, the least of all values.
    paper = image.min()
    moved = paper + phlox.scipy.ndimage.map_coordinates(image[..., 0] - paper, [rows, columns], 1, mode="constant")
    return (moved + 0.1 * phlox.random.normal(keys[3], moved.shape))[..., None]


def unit(x: Any) -> Any:
    """Vectors of length 1."""
    return x / (jnp.linalg.norm(x, axis=-1, keepdims=True) + 1e-6)


def loss(params: Any, target: Any, first: Any, second: Any) -> Any:
    """The loss of pairs of pictures; each picture of a pair predicts the other."""

    def one_way(seen: Any, hidden: Any) -> Any:
        z = phlox.lax.stop_gradient(model.apply(target, hidden, method="project"))
        return ((unit(model.apply(params, seen)) - unit(z)) ** 2).sum(-1).mean()

    return (one_way(first, second) + one_way(second, first)) / 2


def probe(features: Any, labels: Any, test_features: Any, test_labels: Any, seed: int) -> dict[int, float]:
    """The accuracy of linear classifiers, for each number of labelled digits of a class.

    The classifiers are those of least squares with a penalty, on features of mean 0 and deviation 1.
    """
    mean, deviation = features.mean(0), features.std(0) + 1e-6
    x, t = ((part - mean) / deviation for part in (features, test_features))
    random, accuracies = np.random.default_rng(seed), {}
    for count in LABELS:
        hits = []
        for _ in range(CHOICES):
            chosen = np.concatenate([random.permutation(np.flatnonzero(labels == c))[:count] for c in range(10)])
            a, goal = x[chosen], np.eye(10)[labels[chosen]] - 0.1
            # In the form for fewer examples than features.
            weights = a.T @ np.linalg.solve(a @ a.T + RIDGE * a.shape[1] * np.eye(len(a)), goal)
            hits.append(((t @ weights).argmax(1) == test_labels).mean())
        accuracies[count] = float(np.mean(hits))
    return accuracies


def encoded(params: Any, images: Any) -> Any:
    """What the encoder makes of pictures."""
    return np.asarray(phlox.jit(lambda x: model.apply(params, x, method="encode"))(images))


def train(options: argparse.Namespace, images: Any) -> tuple[Any, Any, list[dict[str, float]]]:
    """The parameters before and after, and for each epoch the loss and the deviation of the features."""
    params_key, key = phlox.random.split(phlox.random.key(options.seed))
    steps = len(images) // options.batch_size
    if not steps:
        raise ProgramError(f"--batch-size {options.batch_size}: there are only {len(images)} pictures to learn from")
    tx = optim.adamw(optim.cosine_decay_schedule(options.learning_rate, options.epochs * steps), weight_decay=1e-4)

    def step(carry: Any, row: Any) -> Any:
        params, target, state = carry
        batch, key = row
        keys = phlox.random.split(key, (2, len(batch)))
        first, second = (phlox.vmap(changed)(some, batch) for some in keys)
        value, gradient = phlox.value_and_grad(loss)(params, target, first, second)
        updates, state = tx.update(gradient, state, params)
        params = optim.apply_updates(params, updates)
        target = phlox.tree.map(lambda t, p: AVERAGE * t + (1 - AVERAGE) * p, target, params)
        return (params, target, state), value

    @phlox.jit
    def epoch(carry: Any, images: Any, key: Any) -> Any:
        order_key, key = phlox.random.split(key)
        order = phlox.random.permutation(order_key, len(images))[: steps * options.batch_size]
        batches = images[order].reshape(steps, options.batch_size, 8, 8, 1)
        carry, values = phlox.lax.scan(step, carry, (batches, phlox.random.split(key, steps)))
        # 0, if the network answers the same to everything.
        spread = unit(model.apply(carry[0], images, method="project")).std(0).mean() * jnp.sqrt(PROJECTED)
        return carry, (values.mean(), spread)

    start = model.init(params_key)
    carry, history = (start, start, tx.init(start)), []
    images = jnp.asarray(images)
    with report.progress("Training", options.epochs) as shown:
        shown.row("epoch", "  loss", "spread")
        for number in shown.counted(range(options.epochs)):
            carry, (value, spread) = epoch(carry, images, phlox.random.fold_in(key, number))
            history.append({"epoch": number + 1, "loss": float(value), "spread": float(spread)})
            if not np.isfinite(history[-1]["loss"]):
                raise ProgramError("the loss has become infinite: choose a smaller --learning-rate", status=1)
            if (number + 1) % max(1, options.epochs // 10) == 0:
                shown.row(str(number + 1), f"{value:.4f}", f"{spread:.4f}")
    return start, carry[0], history


def draw(result: dict[str, Any], title: str) -> Figure:
    """Changed pictures, the loss, and the probes."""
    figure = plots.figure(title, (12, 5))
    grid = figure.add_gridspec(4, 8, width_ratios=(1, 1, 1, 1, 0.6, 6, 0.1, 6))
    for row, pictures in enumerate(result["views"]):
        for column, pixels in enumerate(pictures):
            plots.picture(
                figure.add_subplot(grid[row, column]), pixels, ("digit", *["changed"] * 3)[column] * (row == 0)
            )
    left, right = figure.add_subplot(grid[:, 5]), figure.add_subplot(grid[:, 7])
    epochs = [row["epoch"] for row in result["history"]]
    left.plot(epochs, [row["loss"] for row in result["history"]], ".-", color=plots.BLUE, linewidth=2, label="loss")
    left.plot(
        epochs, [row["spread"] for row in result["history"]], ".-", color=plots.GREY, linewidth=2, label="spread of z"
    )
    left.set(title="Training without labels", xlabel="epoch", ylim=(0, None))
    left.legend(frameon=False)
    plots.tidy(left)
    for name, label, color in (
        ("learnt", "features of BYOL", plots.ORANGE), ("untrained", "features of an untrained network", plots.BLUE),
        ("pixels", "raw pixels", plots.GREY),
    ):  # fmt: skip
        probes = result["probes"][name]
        right.plot(list(probes), list(probes.values()), "o-", color=color, linewidth=2, label=label)
    right.set(title="Test digits read by a linear probe", xlabel="labelled digits of each class", xscale="log")
    right.set_xticks(LABELS, [str(count) for count in LABELS])
    right.set_xticks([], minor=True)
    plots.percents(right)
    right.grid(alpha=0.25)
    right.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False)
    return figure


def run(options: argparse.Namespace) -> None:
    """Trains without labels, probes, and draws."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    data = digits.load(options.seed, (8, 8, 1))
    start, params, history = train(options, data.train["image"])
    sets: dict[str, Callable[[Any], Any]] = {"pixels": lambda x: x.reshape(len(x), -1)}
    for name, some in (("untrained", start), ("learnt", params)):
        sets[name] = functools.partial(encoded, some)
    train_labels, test_labels = data.train["label"], data.test["label"]
    probes = {
        name: probe(f(data.train["image"]), train_labels, f(data.test["image"]), test_labels, options.seed)
        for name, f in sets.items()
    }
    views = []
    for row, image in enumerate(data.train["image"][:4]):
        keys = phlox.random.split(phlox.random.key(row), 3)
        views.append([image, *np.asarray(phlox.vmap(changed, (0, None))(keys, jnp.asarray(image)))])
    count = LABELS[1]
    learnt, pixels = probes["learnt"][count], probes["pixels"][count]
    title = f"Learnt without labels: {count} labelled digits of each class read {learnt:.0%}, from pixels {pixels:.0%}"
    figure = draw({"views": views, "history": history, "probes": probes}, title)
    named = {name: {str(count): value for count, value in rows.items()} for name, rows in probes.items()}
    written = results.write(options, {"settings": settings, "epochs": history, "probes": named}, figure)
    report.show(f"Linear probe: {learnt:.1%}, of raw pixels {pixels:.1%}. Wrote {' and '.join(written)}.")
