"""The programs that several cases share, written once for jax and phlox, with parameters from NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np


def array(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Normal numbers in 32 bits."""
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


def elementwise(m: Any, count: int = 150) -> Callable[[Any], Any]:
    """A chain of `count` elementwise operations."""
    np_ = m.numpy
    functions = (np_.sin, np_.cos, np_.tanh, lambda x: x * 0.5, lambda x: x + 1.5)

    def run(x: Any) -> Any:
        for i in range(count):
            x = functions[i % len(functions)](x)
        return x

    return run


def selu(m: Any) -> Callable[[Any], Any]:
    """SELU, as everybody writes it."""
    where, exp = m.numpy.where, m.numpy.exp
    return lambda x: 1.0507009873554805 * where(x > 0, x, 1.6732632423543772 * (exp(x) - 1))


def mlp_parameters(m: Any, sizes: tuple[int, ...] = (64, 128, 128, 10)) -> list[Any]:
    """Weights and biases."""
    return [
        (m.numpy.asarray(array(n, k, seed=i, scale=n**-0.5)), m.numpy.zeros(k))
        for i, (n, k) in enumerate(itertools.pairwise(sizes))
    ]


def mlp_step(
    m: Any, batch: int = 128, sizes: tuple[int, ...] = (64, 128, 128, 10)
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """One step of SGD on a SELU network with cross-entropy, and its arguments."""
    np_ = m.numpy

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        for w, b in parameters[:-1]:
            x = m.nn.selu(x @ w + b)
        w, b = parameters[-1]
        return -(m.nn.log_softmax(x @ w + b) * y).sum(1).mean()

    def step(parameters: Any, x: Any, y: Any) -> Any:
        value, gradients = m.value_and_grad(loss)(parameters, x, y)
        return m.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients), value

    labels = np.eye(sizes[-1], dtype=np.float32)[np.arange(batch) % sizes[-1]]
    return step, (mlp_parameters(m, sizes), np_.asarray(array(batch, sizes[0])), np_.asarray(labels))


def transformer_step(
    m: Any, layers: int = 8, width: int = 64, heads: int = 4, length: int = 32, batch: int = 4
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """One step of SGD on a transformer of `layers` blocks, and its arguments."""
    np_, nn = m.numpy, m.nn

    def normed(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np_.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)

    def block(p: Any, x: Any) -> Any:
        b, n, d = x.shape
        q, k, v = (np_.reshape(normed(x) @ p[name], (b, n, heads, d // heads)) for name in ("q", "k", "v"))
        scores = np_.einsum("bqhd,bkhd->bhqk", q, k) / np_.sqrt(1.0 * d / heads)
        x = x + np_.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), v).reshape(b, n, d) @ p["o"]
        return x + nn.gelu(normed(x) @ p["up"]) @ p["down"]

    def loss(parameters: Any, x: Any) -> Any:
        for p in parameters:
            x = block(p, x)
        return (x**2).mean()

    def step(parameters: Any, x: Any) -> Any:
        value, gradients = m.value_and_grad(loss)(parameters, x)
        return m.tree.map(lambda p, g: p - 0.01 * g, parameters, gradients), value

    shapes = dict.fromkeys("qkvo", (width, width)) | {"up": (width, 4 * width), "down": (4 * width, width)}
    parameters = [
        {name: np_.asarray(array(*shape, seed=i, scale=shape[0] ** -0.5)) for name, shape in shapes.items()}
        for i in range(layers)
    ]
    return step, (parameters, np_.asarray(array(batch, length, width)))


def scan_of(m: Any, length: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A recurrence over `length` steps."""

    def step(c: Any, x: Any) -> Any:
        c = m.numpy.tanh(c * 0.9 + x)
        return c, c

    return lambda c, xs: m.lax.scan(step, c, xs), (m.numpy.zeros(8), m.numpy.asarray(array(length, 8)))


def layers_by_scan(m: Any, count: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The gradient of a network of `count` alike layers that is written as a scan over their weights."""

    def loss(weights: Any, x: Any) -> Any:
        x, _ = m.lax.scan(lambda x, w: (m.numpy.tanh(x @ w), None), x, weights)
        return (x**2).mean()

    return m.grad(loss), (m.numpy.asarray(array(count, 64, 64, scale=0.1)), m.numpy.asarray(array(32, 64)))
