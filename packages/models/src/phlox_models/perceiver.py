"""Perceiver IO: latents attend to inputs of any kind, and queries to the latents. Source: Jaegle et al., 2021."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import phlox.numpy as jnp
import phlox_nn as nn

from ._architecture import register
from ._config import Config
from ._encoder import check_patches
from ._names.perceiver import RULES
from ._perceiver_layers import PerceiverLayer, QueryDecoder, fourier_features
from ._statistics import WithStatistics

_IMAGES = tuple(f"ForImageClassification{kind}" for kind in ("Learned", "Fourier", "ConvProcessing"))
_HEADS = ("Model", "ForMaskedLM", "ForSequenceClassification", *_IMAGES)


class Perceiver(WithStatistics):
    """Maps tokens, images or vectors to logits; without a head, vectors (n, length, d_model) to latents.

    Classifiers give (n, labels), masked language models (n, length, vocabulary). Images are (n, height, width, 3).

    Args:
      config: of the model type "perceiver". Its `architectures` decide on the inputs and the head.

    >>> import phlox
    >>> import phlox_models
    >>> config = {"num_latents": 4, "d_latents": 16, "d_model": 8, "num_blocks": 2, "num_self_attends_per_block": 1}
    >>> config |= {"num_self_attention_heads": 2, "num_cross_attention_heads": 2}
    >>> model = phlox_models.build({"model_type": "perceiver", **config})
    >>> model.apply(model.init(phlox.random.key(0)), phlox.numpy.ones((5, 100, 8))).shape
    (5, 4, 16)
    """

    config: Config

    @property
    def _head(self) -> str:
        return self.config.head(*_HEADS)

    def parameters(self) -> Mapping[str, Any]:
        c, normal = self.config, nn.initializers.normal(0.02)
        shapes = {"latents": (c.integer("num_latents", 256), c.integer("d_latents", 1280))}
        if self._head == "ForImageClassificationLearned":
            shapes["positions"] = (c.integer("image_size", 56) ** 2, 256)
        bias = {"bias": (nn.initializers.zeros, (c.integer("vocab_size", 262),))} if self._head == "ForMaskedLM" else {}
        return {name: (normal, shape) for name, shape in shapes.items()} | bias

    def parts(self) -> Mapping[str, Any]:
        inputs, features = self._input_parts()
        return {**inputs, **self._latent_parts(features), **self._output_parts()}

    def _input_parts(self) -> tuple[dict[str, Any], int]:
        """The layers that map inputs to vectors, and the length of the vectors."""
        c, head, features = self.config, self._head, self.config.integer("d_model", 768)
        if head in ("ForMaskedLM", "ForSequenceClassification"):
            count = c.integer("max_position_embeddings", 2048)
            tokens = nn.Embedding(c.integer("vocab_size", 262), features)
            return {"tokens": tokens, "token_positions": nn.Embedding(count, features)}, features
        if head == "ForImageClassificationLearned":
            return {"pixels": nn.Conv(3, 256, (1, 1)), "projection": nn.Linear(256, 256)}, 512
        if head == "ForImageClassificationConvProcessing":
            conv = nn.Conv(3, 64, (7, 7), 2, 3, use_bias=False)
            return {"conv": conv, "norm": nn.BatchNorm(64, unbiased=True), "pool": nn.max_pool((3, 3), 2)}, 64 + 258
        return {}, 3 + 258 if head == "ForImageClassificationFourier" else features

    def _latent_parts(self, features: int) -> dict[str, Any]:
        """Attention of the latents to vectors of this length, and then to themselves."""
        c, size = self.config, self.config.integer("d_latents", 1280)
        shaped_by = c.text("cross_attention_shape_for_attention", "kv")
        function = c.activation("hidden_act", "gelu")
        qk = c.integer("qk_channels", features if shaped_by == "kv" else size)
        v = c.integer("v_channels", qk)
        heads, widening = c.integer("num_cross_attention_heads", 8), c.integer("cross_attention_widening_factor", 1)
        residual = c.flag("use_query_residual", True)
        reading = PerceiverLayer(size, heads, qk, v, widening * size, features, residual, function)
        qk = c.integer("qk_channels", size)
        v = c.integer("v_channels", qk)
        heads, widening = c.integer("num_self_attention_heads", 8), c.integer("self_attention_widening_factor", 1)
        block = PerceiverLayer(size, heads, qk, v, widening * size, activation=function)
        return {"reading": reading, "blocks": [block] * c.integer("num_self_attends_per_block", 26)}

    def _output_parts(self) -> dict[str, Any]:
        """The decoder of tokens or of classes."""
        c, size, function = (
            self.config,
            self.config.integer("d_latents", 1280),
            self.config.activation("hidden_act", "gelu"),
        )
        if self._head == "Model":
            return {}
        if self._head == "ForMaskedLM":
            n = c.integer("d_model", 768)
            attention = PerceiverLayer(n, 8, 256, n, n, size, False, function)
            return {"text_decoder": QueryDecoder(attention, c.integer("max_position_embeddings", 2048))}
        attention = PerceiverLayer(size, 1, size, size, size, size, True, function)
        return {"classifier": QueryDecoder(attention, 1, c.labels)}

    def __call__(self, inputs: Any, mask: Any = None) -> Any:
        """Logits or latents.

        Args:
          inputs: tokens (n, length), images (n, height, width, 3) or vectors (n, length, d_model).
          mask: bools (n, length), false for inputs that are padding.
        """
        latents = self.encode(inputs, mask)
        if self._head == "Model":
            return latents
        if self._head == "ForMaskedLM":
            return self.tokens.attend(self.text_decoder(latents)) + self.bias
        return self.classifier(latents)[:, 0]

    def encode(self, inputs: Any, mask: Any = None) -> Any:
        """The latents (n, num_latents, d_latents) after all blocks."""
        x = self._vectors(inputs)
        latents = jnp.broadcast_to(self.latents, (len(x), *self.latents.shape))
        latents = self.reading(latents, x, None if mask is None else jnp.asarray(mask, bool))
        # Blocks share their weights: deeper models apply the same layers again.
        for _ in range(self.config.integer("num_blocks", 1)):
            for layer in self.blocks:
                latents = layer(latents)
        return latents

    def _vectors(self, inputs: Any) -> Any:
        """The inputs as vectors (n, length, features)."""
        head = self._head
        if head in ("ForMaskedLM", "ForSequenceClassification"):
            return self.tokens(inputs) + self.token_positions(jnp.arange(inputs.shape[-1]))
        if head == "Model":
            return inputs
        if head == "ForImageClassificationConvProcessing":
            inputs = self.pool(nn.relu(self.norm(self.conv(inputs))))
        x = self.pixels(inputs) if head == "ForImageClassificationLearned" else inputs
        height, width = x.shape[-3:-1]
        x = x.reshape((math.prod(x.shape[:-3]), height * width, x.shape[-1]))
        if head == "ForImageClassificationLearned":
            check_patches(self, len(self.positions), height * width)
            positions = self.projection(self.positions)
        else:
            size = 224 if head == "ForImageClassificationFourier" else 56
            positions = jnp.asarray(fourier_features((height, width), (size, size)), x.dtype)
        return jnp.concatenate([x, jnp.broadcast_to(positions, (len(x), *positions.shape))], axis=-1)


register("perceiver", Perceiver, RULES, prefix="perceiver.")
