"""BYOL: an encoder learns images without labels, by predicting what a slower copy of itself sees. Source: Grill et al.,
2020.

Two views of each image pass through the online network (encoder, projector, predictor) and through the target (encoder,
projector), whose parameters follow those of the online network as a moving average::

    model = BYOL(encoder, encoder_features=512)
    params, state = model.init(key), model.init_state()
    target, target_state = params, state
    loss, (state, target_state) = byol_loss(model, params, state, target, target_state, first, second)
    target = moving_average(target, params, decay(step, steps))
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox import lax

from ._unit import unit as unit


class Head(nn.Layer):
    """The projector or the predictor: a linear layer, batch normalization, ReLU, and a linear layer.

    Maps (n, in_features) to (n, out_features).

    Args:
      in_features, out_features: lengths of the last axis before and after.
      hidden_features: the length between.

    >>> model = Head(8, 4, hidden_features=16)
    >>> params, state = model.init(phlox.random.key(0)), model.init_state()
    >>> out, state = model.apply(params, jnp.ones((5, 8)), state=state, train=True)
    >>> out.shape
    (5, 4)
    """

    in_features: int
    out_features: int = 256
    hidden_features: int = 4096

    def parts(self) -> Mapping[str, Any]:
        return {
            "hidden": nn.Linear(self.in_features, self.hidden_features),
            "norm": nn.BatchNorm(self.hidden_features),
            "out": nn.Linear(self.hidden_features, self.out_features),
        }

    def __call__(self, x: Any) -> Any:
        return self.out(nn.relu(self.norm(self.hidden(x))))


class BYOL(nn.Layer):
    """An encoder with projector and predictor. Maps images to projections and predictions, each (n, features).

    Args:
      encoder: maps images to vectors (n, encoder_features).
      encoder_features: their length.
      features: the length of projections and predictions.
      hidden_features: the length between the layers of both heads.

    >>> model = BYOL(nn.Sequential(nn.flatten, nn.Linear(48, 8)), 8, 4, 16)
    >>> params, state = model.init(phlox.random.key(0)), model.init_state()
    >>> (projections, predictions), state = model.apply(params, jnp.ones((5, 4, 4, 3)), state=state, train=True)
    >>> projections.shape, predictions.shape
    ((5, 4), (5, 4))
    """

    encoder: Any
    encoder_features: int
    features: int = 256
    hidden_features: int = 4096

    def parts(self) -> Mapping[str, Any]:
        return {
            "projector": Head(self.encoder_features, self.features, self.hidden_features),
            "predictor": Head(self.features, self.features, self.hidden_features),
        }

    def __call__(self, images: Any) -> tuple[Any, Any]:
        projections = self.projector(self.encoder(images))
        return projections, self.predictor(projections)


def regression_loss(predictions: Any, projections: Any) -> Any:
    """The squared distance of predictions and projections as vectors of length 1, ``2 - 2 cos``, for each example.

    Args:
      predictions, projections: (n, features). The second are constants: no gradient flows into them.

    Returns:
      Floats (n,) from 0 to 4.

    >>> regression_loss(jnp.array([[1.0, 0.0], [2.0, 0.0]]), jnp.array([[3.0, 0.0], [0.0, 1.0]]))
    Array([0., 2.], dtype=float32)
    """
    return 2 - 2 * jnp.sum(unit(predictions) * lax.stop_gradient(unit(projections)), axis=-1)


def byol_loss(
    model: BYOL, params: Any, state: Any, target: Any, target_state: Any, first: Any, second: Any, *, key: Any = None
) -> tuple[Any, tuple[Any, Any]]:
    """The loss of BYOL for two views of the same images: each view predicts the target's projection of the other.

    Args:
      model: the network.
      params, state: of the online network; the loss is differentiated with respect to `params`.
      target, target_state: of the target network.
      first, second: the views, of one shape.
      key: a PRNG key, for encoders that draw random numbers.

    Returns:
      ``(loss, (state, target_state))``, the mean loss of an example and the new states, for
      ``phlox.value_and_grad(..., has_aux=True)``.
    """
    predictions, projections = [], []
    for view in (first, second):
        (_, prediction), state = model.apply(params, view, state=state, key=key, train=True)
        (projection, _), target_state = model.apply(target, view, state=target_state, key=key, train=True)
        predictions.append(prediction)
        projections.append(projection)
    losses = regression_loss(predictions[0], projections[1]) + regression_loss(predictions[1], projections[0])
    return jnp.mean(losses), (state, lax.stop_gradient(target_state))


def moving_average(target: Any, params: Any, decay: Any) -> Any:
    """The target's parameters after a step: ``decay * target + (1 - decay) * params``, leaf by leaf.

    >>> moving_average({"weight": jnp.zeros(2)}, {"weight": jnp.ones(2)}, 0.75)
    {'weight': Array([0.25, 0.25], dtype=float32)}
    """
    return phlox.tree.map(lambda old, new: jnp.asarray(decay * old + (1 - decay) * new, old.dtype), target, params)


def decay(step: Any, steps: int, initial: float = 0.996) -> Any:
    """The decay of the moving average at a step: from `initial` to 1 along a cosine.

    >>> decay(0, 100), decay(100, 100)
    (Array(0.996, dtype=float32), Array(1., dtype=float32))
    """
    return jnp.float32(1) - (1 - initial) * (jnp.cos(math.pi * jnp.asarray(step, jnp.float32) / steps) + 1) / 2
