"""``./train selu-mlp``: a SELU network learns to read handwritten digits.

A picture of 8 x 8 pixels is a vector x of 64 numbers. The network is a chain of layers, each a matrix, a vector and a
function of single numbers,

    h = selu(W x + b),      selu(a) = 1.0507 a            for a > 0
                                      1.7581 (exp(a) - 1)  otherwise,

and its last layer has ten outputs, a score for each digit. softmax makes probabilities of the scores, and the loss is
the cross entropy: minus the logarithm of the probability of the right digit, averaged over a batch.

The two constants of SELU are chosen such that, with weights of variance 1/n for n inputs, activations of mean 0 and
variance 1 keep these from layer to layer (Klambauer et al. 2017). `phlox_nn.Linear` draws such weights.

The parameters are a nested dict of arrays. `phlox_optim.make_step` takes the gradient of the loss with respect to all
of them, gives it to Adam, and compiles the whole step once; `fit` runs it over epochs and saves after each.
"""

from __future__ import annotations

import argparse
from typing import Any

import phlox
import phlox_nn as nn
import phlox_optim as optim

from . import digits, plots, report, results
from .checkpoints import checkpoints
from .feeds import feed
from .fitting import fit
from .options import settings_of

NOISE = 0.3  # standard deviation of the noise that is added to training pictures, whose own is 1


def network(widths: list[int]) -> nn.Layer:
    """The network with hidden layers of these widths."""
    return nn.MLP((64, *widths, 10), nn.selu)


def run(options: argparse.Namespace) -> None:
    """Trains, and draws how loss and accuracy came about."""
    # 1. The data: 1437 pictures to learn from and 360 to test with, in batches.
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    data = digits.load(options.seed)
    steps = digits.steps(data, options.batch_size)
    batches = feed(options.loader, data.train, options.batch_size, options.seed, options.out)

    # 2. The model, and the loss. Each step sees its pictures with new noise, so that none can be learnt by heart.
    model = network(options.widths)

    def loss(params: Any, batch: Any, key: Any) -> Any:
        images = batch["image"] + NOISE * phlox.random.normal(key, batch["image"].shape)
        scores = model.apply(params, images)
        return optim.softmax_cross_entropy_with_integer_labels(scores, batch["label"]).mean()

    def measure(params: Any, batch: Any) -> dict[str, Any]:
        return digits.measure(model.apply(params, batch["image"]), batch["label"])

    # 3. The training. The learning rate depends on the step only, not on how many epochs will follow: so a training
    # can be made longer afterwards, and is the same as if it had been so long from the beginning.
    rate = optim.exponential_decay(options.learning_rate, int(options.half_life * steps) or 1, 0.5)
    step = optim.make_step(loss, optim.adam(rate))
    params_key, noise_key = phlox.random.split(phlox.random.key(options.seed))
    state = step.init(model.init(params_key), key=noise_key)
    evaluate = optim.make_evaluation(measure, [phlox.device_put(data.test)], prefix="test_")
    with checkpoints(options.checkpoint, settings) as manager:
        state, history = fit(state, step, batches, epochs=options.epochs, evaluate=evaluate, checkpoints=manager)

    # 4. What came out.
    accuracy = history[-1]["test_accuracy"]
    title = f"A SELU network reads {accuracy:.1%} of unseen digits after {len(history)} epochs"
    contents = {"settings": settings, "epochs": history, "test_accuracy": accuracy}
    written = results.write(options, contents, plots.learning_curves(history, title))
    report.show(f"Test accuracy: {accuracy:.2%}. Wrote {' and '.join(written)}.")
