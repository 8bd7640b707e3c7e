"""ResNet: convolutions whose results are added to their inputs. Source: He et al., 2015.

Parameters have the names of torchvision (``layer1.0.conv1.weight``), so `phlox_nn.load_torch` reads its weights without
rules. Blocks with a bottleneck have the stride in the 3x3 convolution, as torchvision's do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import phlox_nn as nn

from ._architecture import register
from ._config import Config
from ._names.resnet import RULES
from ._statistics import WithStatistics
from ._torchvision import resnet_config


def _conv(ins: int, outs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv:
    init = nn.initializers.variance_scaling(2.0, "fan_out", "normal")
    padding = kernel // 2
    return nn.Conv(ins, outs, (kernel, kernel), stride, padding, groups=groups, use_bias=False, weight_init=init)


def _norm(features: int) -> nn.BatchNorm:
    return nn.BatchNorm(features, unbiased=True)


class ResidualBlock(nn.Layer):
    """Two convolutions, or with a bottleneck three, whose result is added to the input.

    Maps (n, height, width, in_features) to (n, height / stride, width / stride, out_features).

    Args:
      in_features, out_features: the number of channels before and after.
      stride: of the first 3x3 convolution.
      bottleneck: the number of channels of the 3x3 convolution between two 1x1 convolutions; None for two 3x3 ones.
      groups: of the 3x3 convolution of a bottleneck, as in ResNeXt (Xie et al., 2016).
      stride_first: whether the first 1x1 convolution of a bottleneck has the stride, as in the paper of 2015.
      activation: the function after each norm.
    """

    in_features: int
    out_features: int
    stride: int = 1
    bottleneck: int | None = None
    groups: int = 1
    stride_first: bool = False
    activation: Callable[[Any], Any] = nn.relu

    def parts(self) -> Mapping[str, Any]:
        ins, mid, outs, stride = self.in_features, self.bottleneck, self.out_features, self.stride
        if mid is None:
            convolutions = [_conv(ins, outs, 3, stride), _conv(outs, outs, 3)]
        else:
            first, second = (stride, 1) if self.stride_first else (1, stride)
            convolutions = [_conv(ins, mid, 1, first), _conv(mid, mid, 3, second, self.groups), _conv(mid, outs, 1)]
        parts: dict[str, Any] = {f"conv{n}": conv for n, conv in enumerate(convolutions, 1)}
        parts |= {f"bn{n}": _norm(conv.out_features) for n, conv in enumerate(convolutions, 1)}
        if ins != outs or stride != 1:
            parts["downsample"] = nn.Sequential(_conv(ins, outs, 1, stride), _norm(outs))
        return parts

    def __call__(self, x: Any) -> Any:
        y = self.bn1(self.conv1(x))
        y = self.bn2(self.conv2(self.activation(y)))
        if self.bottleneck is not None:
            y = self.bn3(self.conv3(self.activation(y)))
        return self.activation(y + (self.downsample(x) if hasattr(self, "downsample") else x))


class ResNet(WithStatistics):
    """Maps images (n, height, width, channels) to logits (n, labels); an encoder to its last feature map.

    Batch statistics may be part of the parameters in evaluation, as `phlox_models.load` returns them.

    Args:
      config: of the model type "resnet". Besides Hugging Face's entries it may have `groups` and `width_per_group` of
        the bottlenecks, as in torchvision: 32 and 4 for ResNeXt-50, 1 and 128 for Wide ResNet-50.

    >>> import phlox
    >>> model = resnet("resnet18", 10)
    >>> params, state = model.init(phlox.random.key(0)), model.init_state()
    >>> logits, state = model.apply(params, phlox.numpy.ones((2, 32, 32, 3)), state=state, train=True)
    >>> logits.shape
    (2, 10)
    """

    config: Config

    def parts(self) -> Mapping[str, Any]:
        c, ins = self.config, self.config.integer("embedding_size", 64)
        parts: dict[str, Any] = {
            "conv1": _conv(c.integer("num_channels", 3), ins, 7, 2),
            "bn1": _norm(ins),
            "pool": nn.max_pool((3, 3), 2, 1),
        }
        groups, width = c.integer("groups", 1), c.integer("width_per_group", 64)
        has_bottleneck = c.text("layer_type", "bottleneck") == "bottleneck"
        for stage, (depth, outs) in enumerate(zip(c.integers("depths"), c.integers("hidden_sizes"), strict=True)):
            mid = outs // 4 * width // 64 * groups if has_bottleneck else None
            stride = 2 if stage or c.flag("downsample_in_first_stage", False) else 1
            options = (mid, groups, c.flag("downsample_in_bottleneck", False), c.activation("hidden_act", "relu"))
            rest = [ResidualBlock(outs, outs, 1, *options)] * (depth - 1)
            parts[f"layer{stage + 1}"] = [ResidualBlock(ins, outs, stride, *options), *rest]
            ins = outs
        is_classifier = c.head("ForImageClassification", "Model") != "Model"
        return parts | ({"fc": nn.Linear(ins, c.labels)} if is_classifier else {})

    def __call__(self, images: Any) -> Any:
        x = self.hidden_states(images)[-1]
        return self.fc(nn.global_avg_pool(x)) if hasattr(self, "fc") else x

    def hidden_states(self, images: Any) -> tuple[Any, ...]:
        """The feature maps (n, height, width, channels) after the stem and after each stage."""
        activation = self.config.activation("hidden_act", "relu")
        states = [self.pool(activation(self.bn1(self.conv1(images))))]
        for stage in range(len(self.config.integers("depths"))):
            x = states[-1]
            for block in getattr(self, f"layer{stage + 1}"):
                x = block(x)
            states.append(x)
        return tuple(states)


def resnet(name: str, labels: int = 1000) -> ResNet:
    """The model of this name in torchvision: ``phlox_nn.load_torch(resnet("resnet50"), state_dict)`` reads its weights.

    Args:
      name: resnet18, 34, 50, 101 or 152, resnext50_32x4d, resnext101_32x8d, wide_resnet50_2 or wide_resnet101_2.
      labels: the number of classes.

    Raises:
      ArgumentError: there is no such name.

    >>> import phlox
    >>> sum(x.size for x in phlox.tree.leaves(phlox.eval_shape(resnet("resnet50").init, phlox.random.key(0))))
    25557032
    """
    return ResNet(resnet_config(name, labels))


register("resnet", ResNet, RULES, prefix="resnet.")
