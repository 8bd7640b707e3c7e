"""ViT: an image is a sequence of patches, and a transformer reads it. Source: Dosovitskiy et al., 2020."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import phlox.numpy as jnp
import phlox_nn as nn
from phlox import lax

from ._architecture import register
from ._config import Config
from ._encoder import Attention, Block, check_patches, num_patches, pair
from ._names.vit import rules


class ViT(nn.Layer):
    """Maps images (n, height, width, channels) to logits (n, labels); an encoder to states (n, length, features).

    The sequence starts with a learned class token, whose last hidden state is classified. DeiT (Touvron et al., 2020)
    has a second one. A classifier with a teacher has classifiers of both, and its logits are their mean.

    Args:
      config: of the model type "vit" or "deit". For an encoder without a pooler, such as those of DINO, its entry
        `add_pooling_layer` is false.

    >>> import phlox
    >>> import phlox_models
    >>> config = {"image_size": 8, "patch_size": 4, "num_channels": 3, "hidden_size": 16, "num_hidden_layers": 2}
    >>> config |= {"num_attention_heads": 2, "intermediate_size": 32, "num_labels": 10}
    >>> model = phlox_models.build({"model_type": "vit", **config})
    >>> model.apply(model.init(phlox.random.key(0)), phlox.numpy.ones((5, 8, 8, 3))).shape
    (5, 10)
    """

    config: Config

    @property
    def _head(self) -> str:
        known = ("ForImageClassification", "Model", "ForImageClassificationWithTeacher")
        return self.config.head(*known if self._tokens == 2 else known[:2])

    @property
    def _tokens(self) -> int:
        """The number of tokens before those of the patches."""
        return 2 if self.config.model_type == "deit" else 1

    def parameters(self) -> Mapping[str, Any]:
        c, normal = self.config, nn.initializers.truncated_normal(0.02)
        features, count = c.integer("hidden_size"), num_patches(c)
        tokens = ("cls_token", "distillation_token")[: self._tokens]
        positions = {"positions": (normal, (1, self._tokens + count, features))}
        return dict.fromkeys(tokens, (normal, (1, 1, features))) | positions

    def parts(self) -> Mapping[str, Any]:
        c, features = self.config, self.config.integer("hidden_size")
        patch, epsilon = pair(c, "patch_size"), c.number("layer_norm_eps", 1e-12)
        biased = ("query", "key", "value", "out") if c.flag("qkv_bias", True) else ("out",)
        dropout, rate = c.number("hidden_dropout_prob", 0.0), c.number("attention_probs_dropout_prob", 0.0)
        attention = Attention(features, c.integer("num_attention_heads"), dropout=rate, biased=biased)
        hidden, function = c.integer("intermediate_size"), c.activation("hidden_act", "gelu")
        block = Block(features, attention, hidden, function, epsilon, dropout)
        pooler = {"pooler": nn.Linear(features, features)} if c.flag("add_pooling_layer", True) else {}
        heads: dict[str, dict[str, Any]] = {
            "Model": pooler,
            "ForImageClassification": {"classifier": nn.Linear(features, c.labels)},
            "ForImageClassificationWithTeacher": {
                name: nn.Linear(features, c.labels) for name in ("cls_classifier", "distillation_classifier")
            },
        }
        return {
            "patches": nn.Conv(c.integer("num_channels", 3), features, patch, strides=patch, padding="VALID"),
            "dropping": nn.Dropout(dropout),
            "blocks": [block] * c.integer("num_hidden_layers"),
            "norm": nn.LayerNorm(features, epsilon),
            **heads[self._head],
        }

    def __call__(self, images: Any) -> Any:
        x = self.features(images)
        if self._head == "Model":
            return x
        if self._head == "ForImageClassification":
            return self.classifier(x[:, 0])
        return (self.cls_classifier(x[:, 0]) + self.distillation_classifier(x[:, 1])) / 2

    def features(self, images: Any) -> Any:
        """The last hidden state (n, length, features), after the last norm."""
        return self.norm(self.hidden_states(images)[-1])

    def pooled(self, images: Any) -> Any:
        """The last hidden state of an encoder's class token, by a linear map and tanh, (n, features)."""
        return jnp.tanh(self.pooler(self.features(images)[:, 0]))

    def hidden_states(self, images: Any) -> tuple[Any, ...]:
        """The inputs of the first block and the results of all blocks, each (n, length, features)."""
        x = lax.collapse(self.patches(images), 1, 3)
        check_patches(self, num_patches(self.config), x.shape[1])
        tokens = [self.cls_token, self.distillation_token] if self._tokens == 2 else [self.cls_token]
        x = jnp.concatenate([*(jnp.broadcast_to(t, (len(x), 1, x.shape[-1])) for t in tokens), x], axis=1)
        states = [self.dropping(x + self.positions)]
        for block in self.blocks:
            states.append(block(states[-1]))
        return tuple(states)


for _model_type in ("vit", "deit"):
    register(_model_type, ViT, rules(_model_type), prefix=f"{_model_type}.")
