"""ConvNeXt: convolutions in the form of a transformer. Sources: Liu et al., 2022; version 2: Woo et al., 2023."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import phlox_nn as nn

from ._architecture import register
from ._config import Config
from ._names.convnext import rules
from ._response_norm import ResponseNorm as ResponseNorm


class ConvNeXtBlock(nn.Layer):
    """A depthwise 7x7 convolution, a norm, and a perceptron on each position, added to the input.

    Keeps the shape (n, height, width, features).

    Args:
      features: the number of channels.
      layer_scale: the initial value of the factors of the result, one for each channel; None for no factors.
      response_norm: whether the perceptron has a `ResponseNorm`, as in version 2.
      drop_path: the probability in training that the result of an example is dropped.
      activation: the function of the perceptron.
    """

    features: int
    layer_scale: float | None = 1e-6
    response_norm: bool = False
    drop_path: float = 0.0
    activation: Callable[[Any], Any] = nn.gelu

    def parameters(self) -> Mapping[str, Any]:
        if self.layer_scale is None:
            return {}
        return {"scale": (nn.initializers.constant(self.layer_scale), (self.features,))}

    def parts(self) -> Mapping[str, Any]:
        n = self.features
        parts = {
            "depthwise": nn.Conv(n, n, (7, 7), padding=3, groups=n),
            "norm": nn.LayerNorm(n, 1e-6),
            "up": nn.Linear(n, 4 * n),
            "down": nn.Linear(4 * n, n),
            "dropping": nn.Dropout(self.drop_path, broadcast=(-3, -2, -1)),
        }
        return parts | ({"response": ResponseNorm(4 * n)} if self.response_norm else {})

    def __call__(self, x: Any) -> Any:
        y = self.activation(self.up(self.norm(self.depthwise(x))))
        y = self.down(self.response(y) if self.response_norm else y)
        return x + self.dropping(y if self.layer_scale is None else self.scale * y)


class Stage(nn.Layer):
    """Blocks on feature maps of one size. Halves height and width first, unless it is the first stage.

    Args:
      blocks: the blocks.
      in_features: the number of channels of the inputs; None for the first stage.
    """

    blocks: tuple[ConvNeXtBlock, ...]
    in_features: int | None = None

    def parts(self) -> Mapping[str, Any]:
        if self.in_features is None:
            return {}
        halving = nn.Conv(self.in_features, self.blocks[0].features, (2, 2), 2, "VALID")
        return {"halving": nn.Sequential(nn.LayerNorm(self.in_features, 1e-6), halving)}

    def __call__(self, x: Any) -> Any:
        x = x if self.in_features is None else self.halving(x)
        for block in self.blocks:
            x = block(x)
        return x


class ConvNeXt(nn.Layer):
    """Maps images (n, height, width, channels) to logits (n, labels); an encoder to its last feature map.

    Args:
      config: of the model type "convnext" or "convnextv2".

    >>> import phlox
    >>> import phlox_models
    >>> config = {"model_type": "convnext", "depths": [1, 1], "hidden_sizes": [8, 16], "num_labels": 10}
    >>> model = phlox_models.build(config)
    >>> model.apply(model.init(phlox.random.key(0)), phlox.numpy.ones((5, 32, 32, 3))).shape
    (5, 10)
    """

    config: Config

    def parts(self) -> Mapping[str, Any]:
        c, function = self.config, self.config.activation("hidden_act", "gelu")
        depths, widths = c.integers("depths"), c.integers("hidden_sizes")
        second = c.model_type == "convnextv2"
        scale = c.number("layer_scale_init_value", 1e-6)
        options = (None if second or scale <= 0 else scale, second)
        # The probability that a block is dropped grows from 0 for the first to the configured one for the last.
        last = max(sum(depths) - 1, 1)
        rates = iter([c.number("drop_path_rate", 0.0) * n / last for n in range(sum(depths))])
        stages = []
        for ins, n, depth in zip((None, *widths), widths, depths, strict=False):
            blocks = tuple(ConvNeXtBlock(n, *options, next(rates), function) for _ in range(depth))
            stages.append(Stage(blocks, ins))
        patch = (c.integer("patch_size", 4),) * 2
        patches = nn.Conv(c.integer("num_channels", 3), widths[0], patch, patch, "VALID")
        parts = {"patches": patches, "first_norm": nn.LayerNorm(widths[0], 1e-6), "stages": stages}
        parts["norm"] = nn.LayerNorm(widths[-1], c.number("layer_norm_eps", 1e-12))
        is_classifier = c.head("ForImageClassification", "Model") != "Model"
        return parts | ({"classifier": nn.Linear(widths[-1], c.labels)} if is_classifier else {})

    def __call__(self, images: Any) -> Any:
        x = self.hidden_states(images)[-1]
        return self.classifier(self.norm(nn.global_avg_pool(x))) if hasattr(self, "classifier") else x

    def pooled(self, images: Any) -> Any:
        """The mean of the last feature map over height and width, normalized, (n, channels)."""
        return self.norm(nn.global_avg_pool(self.hidden_states(images)[-1]))

    def hidden_states(self, images: Any) -> tuple[Any, ...]:
        """The feature maps (n, height, width, channels) after the stem and after each stage."""
        states = [self.first_norm(self.patches(images))]
        for stage in self.stages:
            states.append(stage(states[-1]))
        return tuple(states)


for _model_type in ("convnext", "convnextv2"):
    register(_model_type, ConvNeXt, rules(_model_type), prefix=f"{_model_type}.")
