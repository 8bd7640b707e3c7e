"""DINO: a student learns without labels to agree with a teacher, its own moving average. Source: Caron et al., 2021.

The head maps an encoder's vectors to scores of many prototypes. The teacher sees two large crops of an image, the
student also small ones. `phlox_models.byol.moving_average` is the teacher's step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import phlox.numpy as jnp
import phlox_nn as nn
from phlox import lax

from ._unit import unit


class Head(nn.Layer):
    """A perceptron to a bottleneck of unit vectors, and their scalar products with unit prototypes.

    Maps (n, in_features) to scores (n, prototypes).

    Args:
      in_features: the length of the encoder's vectors.
      prototypes: the number of scores.
      hidden_features: the length of the perceptron's two hidden layers.
      bottleneck: the length of the unit vectors.

    >>> import phlox
    >>> model = Head(8, prototypes=20, hidden_features=16, bottleneck=4)
    >>> model.apply(model.init(phlox.random.key(0)), jnp.ones((5, 8))).shape
    (5, 20)
    """

    in_features: int
    prototypes: int = 65536
    hidden_features: int = 2048
    bottleneck: int = 256

    def parameters(self) -> Mapping[str, Any]:
        return {"prototype_vectors": (nn.initializers.normal(1.0), (self.bottleneck, self.prototypes))}

    def parts(self) -> Mapping[str, Any]:
        sizes = (self.in_features, self.hidden_features, self.hidden_features, self.bottleneck)
        return {"mlp": nn.MLP(sizes, _gelu)}

    def __call__(self, x: Any) -> Any:
        return unit(self.mlp(x)) @ unit(self.prototype_vectors.T).T


def _gelu(x: Any) -> Any:
    return nn.gelu(x, approximate=False)


def dino_loss(
    student: Sequence[Any],
    teacher: Sequence[Any],
    center: Any,
    *,
    student_temperature: float = 0.1,
    teacher_temperature: Any = 0.04,
) -> Any:
    """The cross-entropy of the student's scores with the teacher's, for all pairs of different crops.

    The teacher's scores are centered, so that no prototype gets all images, and sharpened by a lower temperature, so
    that not all get the same. No gradient flows into them.

    Args:
      student: scores (n, prototypes) of each crop; those of the large crops first.
      teacher: scores (n, prototypes) of each large crop.
      center: the moving mean of the teacher's scores, (prototypes,), see `moving_center`.
      student_temperature, teacher_temperature: divide the scores. The teacher's may grow during the first steps.

    Returns:
      The mean loss of a pair.

    >>> scores = jnp.array([[0.0, 0.0]])
    >>> dino_loss([scores, scores], [scores, scores], jnp.zeros(2))
    Array(0.6931472, dtype=float32)
    """
    targets = [lax.stop_gradient(nn.softmax((scores - center) / teacher_temperature)) for scores in teacher]
    logarithms = [nn.log_softmax(scores / student_temperature) for scores in student]
    losses = [
        -jnp.mean(jnp.sum(target * logarithm, axis=-1))
        for t, target in enumerate(targets)
        for s, logarithm in enumerate(logarithms)
        if s != t
    ]
    return sum(losses[1:], losses[0]) / len(losses)


def moving_center(center: Any, teacher: Sequence[Any], decay: float = 0.9) -> Any:
    """The center after a step: ``decay * center + (1 - decay) * mean`` of the teacher's scores.

    >>> moving_center(jnp.zeros(2), [jnp.array([[1.0, 3.0]])], decay=0.5)
    Array([0.5, 1.5], dtype=float32)
    """
    return decay * center + (1 - decay) * jnp.mean(jnp.concatenate(list(teacher)), axis=0)
