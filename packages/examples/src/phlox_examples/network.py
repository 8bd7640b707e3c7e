"""The network of both programs, and one step of its training.

Uses phlox, its layers and its optimizers; independent of files, options and terminal output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
import phlox_optim as optim
from phlox import lax, random

from .errors import ProgramError
from .options import Settings

PIXELS, DIGITS = 64, 10
NOISE = 0.3  # standard deviation of the noise added to training images, whose own is 1


class State(NamedTuple):
    """The state of training: with it and the same batches, a training can be continued exactly."""

    params: Any
    optimizer: Any
    key: Any


class Training(NamedTuple):
    """The functions that train and evaluate the network; pure, for `jit` and `pmap`.

    Fields:
      init: ``init(key) -> state``.
      step: ``step(state, batch, axis=None) -> (state, loss)``. Inside a `pmap`, `axis` is the name of its axis: each
        device has its part of the batch, and the result is that of a step with the whole batch.
      evaluate: ``evaluate(params, batch) -> (loss, accuracy)``, without noise.
    """

    init: Callable[..., Any]
    step: Callable[..., Any]
    evaluate: Callable[..., Any]


def training(settings: Settings, steps: int) -> Training:
    """The training of a network with hidden layers of `settings.widths`, by Adam, in `steps` steps."""
    # With the initial weights of `Linear`, SELU keeps mean and deviation of activations near 0 and 1 in every layer.
    model = nn.Sequential(nn.MLP((PIXELS, *settings.widths, DIGITS), activation=nn.selu), nn.log_softmax)
    adam = optim.adam(optim.cosine_decay_schedule(settings.learning_rate, steps))

    def init(key: Any) -> State:
        key, params_key = random.split(key)
        params = model.init(params_key)
        return State(params, adam.init(params), key)

    # The loss of one image, with noise against overfitting. `vmap` makes it a loss of a batch.
    def noisy_loss(params: Any, key: Any, image: Any, label: Any) -> Any:
        noise = NOISE * random.normal(key, image.shape)
        return -model.apply(params, image + noise)[label]

    def mean_loss(params: Any, keys: Any, batch: Any) -> Any:
        return jnp.mean(phlox.vmap(noisy_loss, in_axes=(None, 0, 0, 0))(params, keys, batch["image"], batch["label"]))

    def step(state: State, batch: Any, axis: str | None = None) -> tuple[State, Any]:
        key, noise_key = random.split(state.key)
        count = len(batch["label"])
        # The noise of an image depends on its position in the whole batch, not on its device.
        first = 0 if axis is None else lax.axis_index(axis) * count
        keys = phlox.vmap(random.fold_in, in_axes=(None, 0))(noise_key, first + jnp.arange(count))

        loss, gradients = phlox.value_and_grad(mean_loss)(state.params, keys, batch)
        if axis is not None:
            loss, gradients = lax.pmean((loss, gradients), axis)
        updates, moments = adam.update(gradients, state.optimizer, state.params)
        return State(optim.apply_updates(state.params, updates), moments, key), loss

    def evaluate(params: Any, batch: Any) -> tuple[Any, Any]:
        scores = model.apply(params, batch["image"])
        chosen = jnp.take_along_axis(scores, batch["label"][:, None], axis=1)
        return -jnp.mean(chosen), jnp.mean(jnp.argmax(scores, axis=1) == batch["label"])

    return Training(init, step, evaluate)


def train_epoch(step: Callable[..., Any], state: State, batches: Iterable[Any]) -> tuple[State, np.ndarray]:
    """Runs a step with each batch. Returns the last state, and the loss of each step.

    Raises `ProgramError` if losses are not finite.
    """
    losses = []
    for batch in batches:
        state, loss = step(state, batch)
        losses.append(loss)  # not converted to a number, which would wait for the step
    result = np.array(losses)
    if not np.isfinite(result).all():
        raise ProgramError("the loss has become infinite: choose a smaller --learning-rate", status=1)
    return state, result
