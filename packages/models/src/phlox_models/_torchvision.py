"""The sizes of torchvision's models, as configurations of Hugging Face's form."""

from __future__ import annotations

from typing import Any

from phlox.errors import ArgumentError

from ._config import Config

#: (depths, layer type, groups, width per group) by the name in torchvision
_SIZES = {
    "resnet18": ([2, 2, 2, 2], "basic", 1, 64),
    "resnet34": ([3, 4, 6, 3], "basic", 1, 64),
    "resnet50": ([3, 4, 6, 3], "bottleneck", 1, 64),
    "resnet101": ([3, 4, 23, 3], "bottleneck", 1, 64),
    "resnet152": ([3, 8, 36, 3], "bottleneck", 1, 64),
    "resnext50_32x4d": ([3, 4, 6, 3], "bottleneck", 32, 4),
    "resnext101_32x8d": ([3, 4, 23, 3], "bottleneck", 32, 8),
    "wide_resnet50_2": ([3, 4, 6, 3], "bottleneck", 1, 128),
    "wide_resnet101_2": ([3, 4, 23, 3], "bottleneck", 1, 128),
}


def resnet_config(name: str, labels: int) -> Config:
    """The configuration of the ResNet of this name. Raises `ArgumentError` if there is none."""
    if name not in _SIZES:
        raise ArgumentError(f"there is no ResNet {name!r}", instead=f"one of {', '.join(_SIZES)}", name=name)
    depths, kind, groups, width = _SIZES[name]
    widths = [n * (4 if kind == "bottleneck" else 1) for n in (64, 128, 256, 512)]
    entries: dict[str, Any] = {"model_type": "resnet", "depths": depths, "hidden_sizes": widths, "layer_type": kind}
    entries |= {"groups": groups, "width_per_group": width, "num_labels": labels}
    return Config(entries)
