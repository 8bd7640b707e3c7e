"""The networks in equinox, whose layers take one example, with channels first."""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from . import CLASSES, RATE, SIZES, Made


class MLP(eqx.Module):
    up: eqx.nn.Linear
    down: eqx.nn.Linear
    gelu: Any = eqx.field(static=True)

    def __init__(self, size: int, hidden: int, gelu: Any, key: Any):
        a, b = jax.random.split(key)
        self.up, self.down, self.gelu = eqx.nn.Linear(size, hidden, key=a), eqx.nn.Linear(hidden, size, key=b), gelu

    def __call__(self, x: Any) -> Any:
        return jax.vmap(self.down)(self.gelu(jax.vmap(self.up)(x)))


class Block(eqx.Module):
    """Attention and a perceptron, with a norm before each."""

    norm1: eqx.nn.LayerNorm
    norm2: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    mlp: MLP

    def __init__(self, s: dict[str, Any], key: Any):
        a, b = jax.random.split(key)
        biases = dict.fromkeys([f"use_{name}_bias" for name in ("query", "key", "value", "output")], True)
        self.norm1, self.norm2 = eqx.nn.LayerNorm(s["features"]), eqx.nn.LayerNorm(s["features"])
        self.attention = eqx.nn.MultiheadAttention(s["heads"], s["features"], **biases, key=a)
        self.mlp = MLP(s["features"], s["hidden"], jax.nn.gelu, b)

    def __call__(self, x: Any, mask: Any = None) -> Any:
        y = jax.vmap(self.norm1)(x)
        x = x + self.attention(y, y, y, mask)
        return x + self.mlp(jax.vmap(self.norm2)(x))


class ViT(eqx.Module):
    patches: eqx.nn.Conv2d
    first: Any
    positions: Any
    blocks: list[Block]
    norm: eqx.nn.LayerNorm
    head: eqx.nn.Linear

    def __init__(self, s: dict[str, Any], key: Any):
        n, count, keys = s["features"], (s["image"] // s["patch"]) ** 2, jax.random.split(key, s["layers"] + 3)
        self.patches = eqx.nn.Conv2d(3, n, s["patch"], s["patch"], key=keys[0])
        self.first, self.positions = jnp.zeros((1, n)), 0.02 * jax.random.normal(keys[1], (count + 1, n))
        self.blocks = [Block(s, k) for k in keys[3:]]
        self.norm, self.head = eqx.nn.LayerNorm(n), eqx.nn.Linear(n, CLASSES, key=keys[2])

    def __call__(self, image: Any, state: Any) -> Any:
        x = self.patches(image)
        x = jnp.concatenate([self.first, x.reshape(len(x), -1).T]) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[0])), state


class GPT2(eqx.Module):
    tokens: eqx.nn.Embedding
    positions: eqx.nn.Embedding
    blocks: list[Block]
    norm: eqx.nn.LayerNorm

    def __init__(self, s: dict[str, Any], key: Any):
        n, keys = s["features"], jax.random.split(key, s["layers"] + 2)
        self.tokens = eqx.nn.Embedding(s["tokens"], n, key=keys[0])
        self.positions = eqx.nn.Embedding(s["length"], n, key=keys[1])
        self.blocks, self.norm = [Block(s, k) for k in keys[2:]], eqx.nn.LayerNorm(n)

    def __call__(self, tokens: Any, state: Any) -> Any:
        x = jax.vmap(self.tokens)(tokens) + self.positions.weight[: len(tokens)]
        mask = jnp.tri(len(tokens), dtype=bool)
        for block in self.blocks:
            x = block(x, mask)
        return jax.vmap(self.norm)(x) @ self.tokens.weight.T, state


class MixerBlock(eqx.Module):
    norm1: eqx.nn.LayerNorm
    norm2: eqx.nn.LayerNorm
    patches: MLP
    channels: MLP

    def __init__(self, s: dict[str, Any], count: int, key: Any):
        gelu, (a, b) = functools.partial(jax.nn.gelu, approximate=False), jax.random.split(key)
        self.norm1, self.norm2 = eqx.nn.LayerNorm(s["features"]), eqx.nn.LayerNorm(s["features"])
        self.patches, self.channels = MLP(count, s["mixed"], gelu, a), MLP(s["features"], s["hidden"], gelu, b)

    def __call__(self, x: Any) -> Any:
        x = x + self.patches(jax.vmap(self.norm1)(x).T).T
        return x + self.channels(jax.vmap(self.norm2)(x))


class Mixer(eqx.Module):
    patches: eqx.nn.Conv2d
    blocks: list[MixerBlock]
    norm: eqx.nn.LayerNorm
    head: eqx.nn.Linear

    def __init__(self, s: dict[str, Any], key: Any):
        n, count, keys = s["features"], (s["image"] // s["patch"]) ** 2, jax.random.split(key, s["layers"] + 2)
        self.patches = eqx.nn.Conv2d(3, n, s["patch"], s["patch"], key=keys[0])
        self.blocks = [MixerBlock(s, count, k) for k in keys[2:]]
        self.norm, self.head = eqx.nn.LayerNorm(n), eqx.nn.Linear(n, CLASSES, key=keys[1])

    def __call__(self, image: Any, state: Any) -> Any:
        x = self.patches(image)
        x = x.reshape(len(x), -1).T
        for block in self.blocks:
            x = block(x)
        return self.head(jax.vmap(self.norm)(x).mean(0)), state


class Normed(eqx.Module):
    """A convolution and batch normalization."""

    conv: eqx.nn.Conv2d
    norm: eqx.nn.BatchNorm

    def __init__(self, ins: int, outs: int, kernel: int, strides: int, key: Any):
        self.conv = eqx.nn.Conv2d(ins, outs, kernel, strides, kernel // 2, use_bias=False, key=key)
        self.norm = eqx.nn.BatchNorm(outs, "batch", momentum=0.9, mode="batch")

    def __call__(self, x: Any, state: Any) -> Any:
        return self.norm(self.conv(x), state)


class ResidualBlock(eqx.Module):
    first: Normed
    second: Normed
    shortcut: Normed | None

    def __init__(self, ins: int, outs: int, strides: int, key: Any):
        keys = jax.random.split(key, 3)
        self.first, self.second = Normed(ins, outs, 3, strides, keys[0]), Normed(outs, outs, 3, 1, keys[1])
        self.shortcut = Normed(ins, outs, 1, strides, keys[2]) if strides > 1 or ins != outs else None

    def __call__(self, x: Any, state: Any) -> Any:
        y, state = self.first(x, state)
        y, state = self.second(jax.nn.relu(y), state)
        if self.shortcut is not None:
            x, state = self.shortcut(x, state)
        return jax.nn.relu(y + x), state


class ResNet(eqx.Module):
    stem: Normed
    pool: eqx.nn.MaxPool2d
    blocks: list[ResidualBlock]
    head: eqx.nn.Linear

    def __init__(self, s: dict[str, Any], key: Any):
        keys, ins = iter(jax.random.split(key, 2 + len(s["widths"]) * s["depth"])), s["widths"][0]
        self.stem, self.pool, self.blocks = Normed(3, ins, 7, 2, next(keys)), eqx.nn.MaxPool2d(3, 2, 1), []
        for number, outs in enumerate(s["widths"]):
            for b in range(s["depth"]):
                self.blocks.append(ResidualBlock(ins, outs, 2 if number and not b else 1, next(keys)))
                ins = outs
        self.head = eqx.nn.Linear(ins, CLASSES, key=next(keys))

    def __call__(self, x: Any, state: Any) -> Any:
        x, state = self.stem(x, state)
        x = self.pool(jax.nn.relu(x))
        for block in self.blocks:
            x, state = block(x, state)
        return self.head(x.mean((1, 2))), state


NETWORKS: dict[str, Any] = {"ResNet": ResNet, "ViT": ViT, "GPT-2": GPT2, "MLP-Mixer": Mixer}


def step(name: str, arrays: Any) -> Made:
    """A step of gradient descent, and its arguments."""
    model, variables = eqx.nn.make_with_state(NETWORKS[name])(SIZES[name], jax.random.key(0))
    params, static = eqx.partition(model, eqx.is_inexact_array)
    inputs, labels = arrays
    inputs = inputs if name == "GPT-2" else jnp.moveaxis(inputs, -1, 1)

    def loss(params: Any, variables: Any, batch: Any) -> Any:
        model = eqx.combine(params, static)
        run = jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
        logits, variables = run(batch[0], variables)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), batch[1][..., None], axis=-1).mean(), variables

    def function(state: Any, batch: Any) -> Any:
        params, variables = state
        (value, variables), gradients = jax.value_and_grad(loss, has_aux=True)(params, variables, batch)
        return (jax.tree.map(lambda p, g: p - RATE * g, params, gradients), variables), value

    return function, ((params, variables), (inputs, labels))
