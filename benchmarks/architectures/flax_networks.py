"""The networks in flax.nnx, in its functional form, which is faster than `nnx.jit`."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from . import CLASSES, RATE, SIZES, Made


class MLP(nnx.Module):
    def __init__(self, size: int, hidden: int, gelu: Any, rngs: Any):
        self.up, self.down, self.gelu = nnx.Linear(size, hidden, rngs=rngs), nnx.Linear(hidden, size, rngs=rngs), gelu

    def __call__(self, x: Any) -> Any:
        return self.down(self.gelu(self.up(x)))


class Block(nnx.Module):
    """Attention and a perceptron, with a norm before each."""

    def __init__(self, s: dict[str, Any], rngs: Any):
        n = s["features"]
        self.norm1, self.norm2 = nnx.LayerNorm(n, rngs=rngs), nnx.LayerNorm(n, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(s["heads"], n, decode=False, rngs=rngs)
        self.mlp = MLP(n, s["hidden"], nnx.gelu, rngs)

    def __call__(self, x: Any, mask: Any = None) -> Any:
        x = x + self.attention(self.norm1(x), mask=mask)
        return x + self.mlp(self.norm2(x))


class ViT(nnx.Module):
    def __init__(self, s: dict[str, Any], rngs: Any):
        n, p, count = s["features"], s["patch"], (s["image"] // s["patch"]) ** 2
        self.patches = nnx.Conv(3, n, (p, p), strides=p, padding="VALID", rngs=rngs)
        self.first = nnx.Param(jnp.zeros((1, 1, n)))
        self.positions = nnx.Param(0.02 * jax.random.normal(rngs.params(), (1, count + 1, n)))
        self.blocks = nnx.List([Block(s, rngs) for _ in range(s["layers"])])
        self.norm, self.head = nnx.LayerNorm(n, rngs=rngs), nnx.Linear(n, CLASSES, rngs=rngs)

    def __call__(self, images: Any) -> Any:
        x = self.patches(images)
        x = x.reshape(len(x), -1, x.shape[-1])
        x = jnp.concatenate([jnp.broadcast_to(self.first[...], (len(x), 1, x.shape[-1])), x], 1) + self.positions[...]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class GPT2(nnx.Module):
    def __init__(self, s: dict[str, Any], rngs: Any):
        n = s["features"]
        self.tokens = nnx.Embed(s["tokens"], n, rngs=rngs)
        self.positions = nnx.Embed(s["length"], n, rngs=rngs)
        self.blocks = nnx.List([Block(s, rngs) for _ in range(s["layers"])])
        self.norm = nnx.LayerNorm(n, rngs=rngs)

    def __call__(self, tokens: Any) -> Any:
        x = self.tokens(tokens) + self.positions(jnp.arange(tokens.shape[1]))
        mask = nnx.make_causal_mask(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return self.tokens.attend(self.norm(x))


class MixerBlock(nnx.Module):
    def __init__(self, s: dict[str, Any], count: int, rngs: Any):
        n, gelu = s["features"], functools.partial(nnx.gelu, approximate=False)
        self.norm1, self.norm2 = nnx.LayerNorm(n, rngs=rngs), nnx.LayerNorm(n, rngs=rngs)
        self.patches, self.channels = MLP(count, s["mixed"], gelu, rngs), MLP(n, s["hidden"], gelu, rngs)

    def __call__(self, x: Any) -> Any:
        x = x + self.patches(self.norm1(x).mT).mT
        return x + self.channels(self.norm2(x))


class Mixer(nnx.Module):
    def __init__(self, s: dict[str, Any], rngs: Any):
        n, p, count = s["features"], s["patch"], (s["image"] // s["patch"]) ** 2
        self.patches = nnx.Conv(3, n, (p, p), strides=p, padding="VALID", rngs=rngs)
        self.blocks = nnx.List([MixerBlock(s, count, rngs) for _ in range(s["layers"])])
        self.norm, self.head = nnx.LayerNorm(n, rngs=rngs), nnx.Linear(n, CLASSES, rngs=rngs)

    def __call__(self, images: Any) -> Any:
        x = self.patches(images)
        x = x.reshape(len(x), -1, x.shape[-1])
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


class Normed(nnx.Module):
    """A convolution and batch normalization."""

    def __init__(self, ins: int, outs: int, kernel: int, strides: int, rngs: Any):
        pad = [(kernel // 2, kernel // 2)] * 2
        self.conv = nnx.Conv(ins, outs, (kernel, kernel), strides, padding=pad, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(outs, momentum=0.9, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.norm(self.conv(x))


class ResidualBlock(nnx.Module):
    def __init__(self, ins: int, outs: int, strides: int, rngs: Any):
        self.first, self.second = Normed(ins, outs, 3, strides, rngs), Normed(outs, outs, 3, 1, rngs)
        self.shortcut = Normed(ins, outs, 1, strides, rngs) if strides > 1 or ins != outs else None

    def __call__(self, x: Any) -> Any:
        y = self.second(nnx.relu(self.first(x)))
        return nnx.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nnx.Module):
    def __init__(self, s: dict[str, Any], rngs: Any):
        ins = s["widths"][0]
        self.stem, blocks = Normed(3, ins, 7, 2, rngs), []
        for number, outs in enumerate(s["widths"]):
            for b in range(s["depth"]):
                blocks.append(ResidualBlock(ins, outs, 2 if number and not b else 1, rngs))
                ins = outs
        self.blocks, self.head = nnx.List(blocks), nnx.Linear(ins, CLASSES, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = nnx.max_pool(nnx.relu(self.stem(x)), (3, 3), (2, 2), ((1, 1), (1, 1)))
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((1, 2)))


NETWORKS: dict[str, Any] = {"ResNet": ResNet, "ViT": ViT, "GPT-2": GPT2, "MLP-Mixer": Mixer}


def step(name: str, arrays: Any) -> Made:
    """A step of gradient descent, and its arguments."""
    graph, start = nnx.split(NETWORKS[name](SIZES[name], nnx.Rngs(0)))

    def loss(model: Any, inputs: Any, labels: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(model(inputs)), labels[..., None], axis=-1).mean()

    def function(state: Any, batch: Any) -> Any:
        model = nnx.merge(graph, state)
        value, gradients = nnx.value_and_grad(loss)(model, *batch)
        params = nnx.state(model, nnx.Param)
        nnx.update(model, jax.tree.map(lambda p, g: p - RATE * g, params, gradients))
        return nnx.state(model), value

    return function, (start, arrays)
