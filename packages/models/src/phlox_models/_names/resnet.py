"""The names of ResNet's weights in Hugging Face's files. Tensors with torchvision's names fit without a rule."""

from __future__ import annotations

from . import parts


def _stage(number: int) -> list[tuple[str, str]]:
    """The rules of a stage. Hugging Face counts stages and convolutions from 0, torchvision from 1."""
    theirs, ours = f"resnet.encoder.stages.{number}.layers.*", f"layer{number + 1}.*"
    rules = parts(f"{theirs}.shortcut", f"{ours}.downsample", {"convolution": "0", "normalization": "1"})
    for n in range(3):
        rules += parts(f"{theirs}.layer.{n}", ours, {"convolution": f"conv{n + 1}", "normalization": f"bn{n + 1}"})
    return rules


RULES = [
    ("classifier.1.*", "fc.*"),
    ("resnet.embedder.embedder.convolution.*", "conv1.*"),
    ("resnet.embedder.embedder.normalization.*", "bn1.*"),
    *(rule for number in range(8) for rule in _stage(number)),
]
