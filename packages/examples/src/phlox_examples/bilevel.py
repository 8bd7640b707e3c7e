"""``./train bilevel``: which examples to trust, learnt by the gradient through a whole training.

Half of the labels of some digits are wrong, and nobody knows which; a few others have been checked. Each doubtful
example gets a weight between 0 and 1, p = sigmoid(a). A network of one layer is trained on the weighted examples,

    w(a) = argmin over w of  L(w, a) = sum of p_i loss_i(w) / n + c |w|^2 / 2,

and the weights shall be such that the trained network is good on the checked examples: a second loss F(w(a)) is to be
minimized over a. The gradient of it asks how the end of a training moves with a. There the gradient g of L by w is 0,
and stays 0 when a changes, so that by the implicit function theorem

    dF/da = - dF/dw (dg/dw)^-1 dg/da:

one linear system with the Hessian of L, solved by conjugate gradients, and no word of how the training went.
`custom_vjp` says this once; after that `grad` goes through the training as through any function.

Examples with wrong labels get small weights, although nothing says that they should (hypercleaning; Pedregosa 2016,
Franceschi et al. 2018). A network that is trained with the weights reads new digits better.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import phlox
import phlox.numpy as jnp
import phlox_optim as optim

from . import digits, plots, report, results
from .options import settings_of

NAME = "bilevel"
DECAY = 0.05  # c
NEWTON, CONJUGATE = 8, 200  # steps of Newton's method, and of conjugate gradients in each at most


def data(options: argparse.Namespace) -> dict[str, Any]:
    """Doubtful, checked and test examples. Wrong labels are any of the nine others."""
    train, test = digits.load(options.seed)
    random = np.random.default_rng(options.seed)
    n, checked = options.doubtful, options.checked

    def ones(images: Any) -> Any:
        return np.concatenate([images, np.ones((len(images), 1))], axis=1).astype("float64")

    images, labels = ones(train["image"][: n + checked]), train["label"][: n + checked]
    wrong = random.permutation(n) < n // 2
    noisy = np.where(wrong, (labels[:n] + random.integers(1, 10, n)) % 10, labels[:n])
    return {
        "doubtful": (jnp.asarray(images[:n]), jnp.asarray(noisy)),
        "checked": (jnp.asarray(images[n:]), jnp.asarray(labels[n:])),
        "test": (jnp.asarray(ones(test["image"])), jnp.asarray(test["label"])),
        "wrong": wrong,
    }


def losses(w: Any, examples: Any) -> Any:
    """The cross entropy of each example, for weights w (65, 10)."""
    images, labels = examples
    return optim.softmax_cross_entropy_with_integer_labels(images @ w, labels)


def inner(w: Any, a: Any, doubtful: Any) -> Any:
    """L."""
    return (phlox.nn.sigmoid(a) * losses(w, doubtful)).mean() + DECAY / 2 * (w**2).sum()


def conjugate_gradients(product: Any, target: Any) -> Any:
    """The solution x of product(x) = target, for a positive definite matrix."""
    return phlox.scipy.sparse.linalg.cg(product, target, tol=1e-12, maxiter=CONJUGATE)[0]


def trained(a: Any, doubtful: Any) -> Any:
    """w(a), by Newton's method; its gradient is that of the implicit function, whatever method is used."""
    slope = phlox.grad(inner)

    @phlox.custom_vjp
    def solution(a: Any) -> Any:
        def step(w: Any, _: Any) -> Any:
            value, product = phlox.linearize(lambda w: slope(w, a, doubtful), w)
            return w - conjugate_gradients(product, value), None

        return phlox.lax.scan(step, jnp.zeros((65, 10)), length=NEWTON)[0]

    def forward(a: Any) -> Any:
        w = solution(a)
        return w, (a, w)

    def backward(saved: Any, cotangent: Any) -> Any:
        a, w = saved
        # The Hessian is symmetric, so its products from the left are those from the right.
        _, product = phlox.linearize(lambda w: slope(w, a, doubtful), w)
        _, pull_back = phlox.vjp(lambda a: slope(w, a, doubtful), a)
        return pull_back(-conjugate_gradients(product, cotangent))

    solution.defvjp(forward, backward)
    return solution(a)


def outer(a: Any, doubtful: Any, checked: Any) -> Any:
    """F, the loss of the trained network on checked examples."""
    return losses(trained(a, doubtful), checked).mean()


def accuracy(w: Any, examples: Any) -> float:
    """The share of examples that are read correctly."""
    images, labels = examples
    return float(((images @ w).argmax(1) == labels).mean())


def share_found(a: Any, wrong: Any) -> float:
    """The share of wrong labels among as many examples with the smallest weights."""
    return float(wrong[np.argsort(np.asarray(a), kind="stable")[: wrong.sum()]].mean())


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """The weights of the examples, and what networks make of them."""
    with phlox.enable_x64(True):
        sets = data(options)
        doubtful, checked, test, wrong = (sets[name] for name in ("doubtful", "checked", "test", "wrong"))
        tx = optim.adam(options.rate)

        @phlox.jit
        def step(a: Any, state: Any) -> Any:
            value, gradient = phlox.value_and_grad(outer)(a, doubtful, checked)
            updates, state = tx.update(gradient, state)
            return optim.apply_updates(a, updates), state, value

        a = jnp.zeros(options.doubtful)
        state, values = tx.init(a), []
        end = phlox.jit(trained)
        first = accuracy(end(a, doubtful), test)
        with report.progress("Trainings", options.steps) as shown:
            shown.row("trainings", "loss on checked", "wrong labels found")
            for number in shown.counted(range(options.steps)):
                a, state, value = step(a, state)
                values.append(float(value))
                if number % 10 == 9:
                    shown.row(str(number + 1), f"{values[-1]:.4f}", f"{share_found(a, wrong):.1%}")
        return {
            "losses": np.array(values),
            "weights": np.asarray(phlox.nn.sigmoid(a)),
            "wrong": wrong,
            "share_found": share_found(a, wrong),
            "accuracy_before": first,
            "test_accuracy": accuracy(end(a, doubtful), test),
            "accuracy_checked_only": accuracy(end(jnp.full(options.checked, 20.0), checked), test),
        }


def draw(result: dict[str, Any], title: str) -> Figure:
    """The loss on checked examples, the weights, and the accuracies."""
    figure = plots.figure(title, (12, 4.8))
    left, middle, right = figure.subplots(1, 3)
    steps = np.arange(1, len(result["losses"]) + 1)
    left.plot(steps, result["losses"], color=plots.BLUE, linewidth=2)
    left.set(title="Loss on checked examples", xlabel="trainings", ylabel="cross entropy (nats)")
    plots.tidy(left)
    edges = np.linspace(0, 1, 31)
    for wrong, name, color in ((False, "right label", plots.BLUE), (True, "wrong label", plots.ORANGE)):
        middle.hist(result["weights"][result["wrong"] == wrong], edges, color=color, alpha=0.6, label=name)
    middle.set(title="Weights of the doubtful examples", xlabel="weight", ylabel="examples")
    middle.legend(frameon=False)
    middle.spines[["top", "right"]].set_visible(False)
    names = {"all alike": "accuracy_before", "checked only": "accuracy_checked_only", "weighted": "test_accuracy"}
    values = [result[name] for name in names.values()]
    bars = right.bar(list(names), values, color=[plots.GREY, plots.GREY, plots.ORANGE])
    right.bar_label(bars, [f"{value:.1%}" for value in values])
    right.set(title="Test pictures read correctly, trained on", ylim=(0, 1.05))
    plots.percents(right)
    right.spines[["top", "right"]].set_visible(False)
    return figure


def run(options: argparse.Namespace) -> None:
    """Learns the weights, and draws."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    before, after = result["accuracy_before"], result["test_accuracy"]
    title = (
        f"Gradients through {len(result['losses'])} trainings: {result['share_found']:.0%} of the wrong labels found"
    )
    names = ("share_found", "accuracy_before", "test_accuracy", "accuracy_checked_only")
    contents = {"settings": settings, "losses": result["losses"].tolist(), **{name: result[name] for name in names}}
    written = results.write(options, contents, draw(result, title))
    report.show(f"Test accuracy {before:.2%} before, {after:.2%} after. Wrote {' and '.join(written)}.")
