"""``./train logistic-newton``: Newton's method, with and without its matrix, against gradient descent.

Logistic regression says that a tumour with measurements x (30 numbers) is benign with probability 1/(1 + exp(-w.x)).
With labels y = +1 (benign) and -1 (malignant) the best weights w minimize the convex function

    f(w) = mean log(1 + exp(-y w.x)) + decay/2 |w|^2.

Gradient descent walks along -grad f, and its error shrinks by a constant factor in each step. Newton's method also
uses the curvature: it jumps to the minimum of the parabola that has the value, gradient g and Hessian H of f at w,

    w <- w - s,      H s = g,

and its error is squared in each step, |e'| <= C |e|^2: the number of right digits doubles.

`phlox.hessian` makes H. For many weights H is too large to store, but H v needs only one derivative more than the
gradient: it is the derivative of grad f in the direction v, one `jvp`. The method of conjugate gradients solves
H s = g with such products alone. Both ways are below, and take the same path.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import phlox
import phlox.numpy as jnp

from . import plots, report, results
from .options import settings_of

NAME = "logistic-newton"
METHODS = {
    "gradient": ("gradient descent", plots.GREY),
    "cg": ("Newton, H s = g by\nconjugate gradients", plots.ORANGE),
    "newton": ("Newton, H by hessian", plots.BLUE),
}


def load(seed: int) -> tuple[Any, ...]:
    """Measurements of 426 tumours to learn from and of 143 to test with, standardized, a 1 in front; labels +-1."""
    data, benign = load_breast_cancer(return_X_y=True)
    learnt, tested, y, y_test = train_test_split(data, 2.0 * benign - 1, random_state=seed, stratify=benign)
    mean, std = learnt.mean(0), learnt.std(0)
    x, x_test = (np.insert((part - mean) / std, 0, 1.0, axis=1) for part in (learnt, tested))
    return x, y, x_test, y_test


def conjugate_gradients(product: Any, g: Any, tolerance: float = 1e-14) -> Any:
    """The solution s of H s = g, from a function that returns H v."""

    def step(state: Any) -> Any:
        s, residual, direction, size = state
        image = product(direction)
        length = size / (direction @ image)
        residual = residual - length * image
        new = residual @ residual
        return s + length * direction, residual, residual + new / size * direction, new

    def unfinished(state: Any) -> Any:
        return state[3] > tolerance**2 * (g @ g)

    return phlox.lax.while_loop(unfinished, step, (jnp.zeros_like(g), g, g, g @ g))[0]


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """The weights after each step of each method, and what they are worth."""
    # Sixteen digits are needed to see them double more than once.
    with phlox.enable_x64(True):
        x, y, x_test, y_test = map(jnp.asarray, load(options.seed))

        def f(w: Any) -> Any:
            return jnp.logaddexp(0.0, -y * (x @ w)).mean() + options.decay / 2 * w @ w

        gradient = phlox.grad(f)
        # No curvature of f is above L, so that steps of 1/L never overshoot.
        largest = jnp.linalg.norm(x, ord=2) ** 2 / (4 * len(y)) + options.decay

        def descend(w: Any) -> Any:
            return gradient(w) / largest

        def newton(w: Any) -> Any:
            return jnp.linalg.solve(phlox.hessian(f)(w), gradient(w))

        def newton_cg(w: Any) -> Any:
            return conjugate_gradients(lambda v: phlox.jvp(gradient, (w,), (v,))[1], gradient(w))

        def path(direction: Any, steps: int) -> Any:
            def step(w: Any, _: Any) -> Any:
                return w - direction(w), w

            end, before = phlox.lax.scan(step, jnp.zeros(x.shape[1]), length=steps)
            return jnp.concatenate([before, end[None]])

        paths: dict[str, Any] = {}
        for name, direction in {"gradient": descend, "cg": newton_cg, "newton": newton}.items():
            paths[name] = phlox.jit(path, static_argnums=(0, 1))(direction, options.steps)
        best = paths["newton"][-1] - newton(paths["newton"][-1])
        errors = {name: jnp.linalg.norm(weights - best, axis=1) for name, weights in paths.items()}
        return {
            **{name: np.asarray(weights) for name, weights in paths.items()},
            "errors": {name: np.asarray(error) for name, error in errors.items()},
            "gradient_norm": float(jnp.linalg.norm(gradient(best))),
            "accuracy": float(jnp.mean(jnp.sign(x_test @ best) == y_test)),
        }


def order(errors: Any) -> tuple[Any, Any, float]:
    """Errors before and after the steps in the region where Newton converges, and the slope of their logarithms."""
    before, after = errors[:-1], errors[1:]
    # Later steps only show rounding.
    used = (before < 1) & (after > 1e-13)
    slope = np.polyfit(np.log(before[used][-2:]), np.log(after[used][-2:]), 1)[0]
    return before[used], after[used], float(slope)


def draw(result: dict[str, Any], title: str) -> Figure:
    """The errors over the steps, and of each Newton step over that of the step before."""
    figure = plots.figure(title)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    for name, (text, color) in METHODS.items():
        errors = np.maximum(result["errors"][name], 1e-16)
        # What both kinds of Newton do is so equal that one would hide the other.
        style = {"linewidth": 7, "alpha": 0.4} if name == "cg" else {"linewidth": 2, "marker": "o", "markersize": 4}
        left.semilogy(errors, color=color, label=text, **style)
    left.set(xlabel="step", ylabel="distance to the best weights", title="Error after each step", ylim=(3e-17, 1e2))
    left.legend(frameon=False, loc="center right")
    plots.tidy(left)

    before, after, slope = order(result["errors"]["newton"])
    line = np.geomspace(before.min() / 3, before.max() * 2)
    right.loglog(line, after[-1] * (line / before[-1]) ** 2, color=plots.GREY, linewidth=1)
    right.loglog(before, after, "o", color=plots.BLUE, markersize=8)
    right.annotate(
        "slope 2: the error\nis squared",
        (before[-1], after[-1]),
        (18, -4),
        textcoords="offset points",
        color=plots.GREY,
    )
    right.set(xlabel="error before a Newton step", ylabel="after it", title=f"Measured order: {slope:.2f}")
    right.grid(alpha=0.25)
    right.spines[["top", "right"]].set_visible(False)
    return figure


def run(options: argparse.Namespace) -> None:
    """Takes the steps of the three methods, and draws how fast each approaches the best weights."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    errors = result["errors"]
    with report.progress("Methods", 0) as shown:
        shown.row("step", "gradient descent", "       Newton", "  Newton by CG")
        for step in range(options.steps + 1):
            shown.row(str(step), *(f"{errors[name][step]:.1e}" for name in ("gradient", "newton", "cg")))
    steps = int(np.argmax(errors["newton"] < 1e-12))
    off = errors["gradient"][-1]
    title = f"Newton has 12 digits after {steps} steps; gradient descent is off by {off:.1f} after {options.steps}"
    if not (errors["newton"] < 1e-12).any():
        title = (
            f"After {options.steps} steps Newton is off by {errors['newton'][-1]:.0e}, gradient descent by {off:.1f}"
        )
    contents = {
        "settings": settings,
        "errors": {name: values.tolist() for name, values in errors.items()},
        "order": order(errors["newton"])[2],
        "gradient_norm": result["gradient_norm"],
        "test_accuracy": result["accuracy"],
    }
    written = results.write(options, contents, draw(result, title))
    report.show(f"{result['accuracy']:.1%} of unseen tumours are told right. Wrote {' and '.join(written)}.")
