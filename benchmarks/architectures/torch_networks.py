"""The networks in torch, run eagerly, as people write them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from . import CLASSES, RATE, SIZES, batch


class Attention(nn.Module):
    def __init__(self, s: dict[str, Any], causal: bool):
        super().__init__()
        self.heads, self.causal = s["heads"], causal
        self.maps, self.out = nn.Linear(s["features"], 3 * s["features"]), nn.Linear(s["features"], s["features"])

    def forward(self, x: Any) -> Any:
        q, k, v = (a.unflatten(-1, (self.heads, -1)).transpose(1, 2) for a in self.maps(x).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).flatten(2))


def mlp(size: int, hidden: int, approximate: str) -> nn.Module:
    return nn.Sequential(nn.Linear(size, hidden), nn.GELU(approximate=approximate), nn.Linear(hidden, size))


class Block(nn.Module):
    """Attention, or a perceptron along the patches, and a perceptron, with a norm before each."""

    def __init__(self, s: dict[str, Any], first: nn.Module, is_mixer: bool):
        super().__init__()
        self.norm1, self.first, self.norm2 = nn.LayerNorm(s["features"]), first, nn.LayerNorm(s["features"])
        self.mlp, self.is_mixer = mlp(s["features"], s["hidden"], "none" if is_mixer else "tanh"), is_mixer

    def forward(self, x: Any) -> Any:
        y = self.norm1(x)
        x = x + (self.first(y.mT).mT if self.is_mixer else self.first(y))
        return x + self.mlp(self.norm2(x))


class Patches(nn.Module):
    """A ViT or an MLP-Mixer."""

    def __init__(self, s: dict[str, Any]):
        super().__init__()
        n, count, self.is_mixer = s["features"], (s["image"] // s["patch"]) ** 2, "mixed" in s
        self.patches, self.first = nn.Conv2d(3, n, s["patch"], s["patch"]), nn.Parameter(torch.zeros(1, 1, n))
        self.positions = nn.Parameter(0.02 * torch.randn(1, count + 1, n))
        firsts = [mlp(count, s["mixed"], "none") if self.is_mixer else Attention(s, False) for _ in range(s["layers"])]
        self.blocks = nn.Sequential(*(Block(s, first, self.is_mixer) for first in firsts))
        self.norm, self.head = nn.LayerNorm(n), nn.Linear(n, CLASSES)

    def forward(self, images: Any) -> Any:
        x = self.patches(images).flatten(2).mT
        if not self.is_mixer:
            x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.positions
        x = self.norm(self.blocks(x))
        return self.head(x.mean(1) if self.is_mixer else x[:, 0])


class GPT2(nn.Module):
    def __init__(self, s: dict[str, Any]):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(s["tokens"], s["features"]), nn.Embedding(s["length"], s["features"])
        self.blocks = nn.Sequential(*(Block(s, Attention(s, True), False) for _ in range(s["layers"])))
        self.norm = nn.LayerNorm(s["features"])

    def forward(self, tokens: Any) -> Any:
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        return functional.linear(self.norm(self.blocks(x)), self.tokens.weight)


def normed(ins: int, outs: int, kernel: int, strides: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(ins, outs, kernel, strides, kernel // 2, bias=False), nn.BatchNorm2d(outs))


class ResidualBlock(nn.Module):
    def __init__(self, ins: int, outs: int, strides: int):
        super().__init__()
        self.first, self.second = normed(ins, outs, 3, strides), normed(outs, outs, 3, 1)
        self.shortcut = normed(ins, outs, 1, strides) if strides > 1 or ins != outs else nn.Identity()

    def forward(self, x: Any) -> Any:
        return torch.relu(self.second(torch.relu(self.first(x))) + self.shortcut(x))


def resnet(s: dict[str, Any]) -> nn.Module:
    ins = s["widths"][0]
    layers = [normed(3, ins, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    for (number, outs), b in itertools.product(enumerate(s["widths"]), range(s["depth"])):
        layers.append(ResidualBlock(ins, outs, 2 if number and not b else 1))
        ins = outs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(ins, CLASSES))


NETWORKS: dict[str, Callable[[dict[str, Any]], nn.Module]] = {
    "ResNet": resnet,
    "ViT": Patches,
    "GPT-2": GPT2,
    "MLP-Mixer": Patches,
}


def run(name: str) -> Callable[[], Any]:
    """A function that makes a step of gradient descent."""
    model, (x, y) = NETWORKS[name](SIZES[name]), batch(name)
    inputs = torch.as_tensor(x if name == "GPT-2" else np.moveaxis(x, -1, 1).copy())
    labels, optimizer = torch.as_tensor(y).long().flatten(), torch.optim.SGD(model.parameters(), lr=RATE)

    def step() -> float:
        loss = functional.cross_entropy(model(inputs).reshape(len(labels), -1), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step
