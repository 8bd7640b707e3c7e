"""One training step of networks that stand in packages/examples/tests: of phlox_nn, and of flax.nnx on jax.

Both are pure functions ``step(state, batch) -> (state, loss)``: what `phlox_optim.make_step` jits, and flax's
functional form, which is faster than `nnx.jit`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from . import models

Made = tuple[Callable[..., Any], tuple[Any, ...]]


def _digits() -> tuple[Any, ...]:
    labels = np.random.default_rng(1).integers(0, 10, 64).astype(np.int32)
    return np.abs(models.array(64, 8, 8, 1)), labels


def _characters() -> tuple[Any, ...]:
    return (np.random.default_rng(1).integers(0, 26, (16, 33)).astype(np.int32),)


def _sentences() -> tuple[Any, ...]:
    rng = np.random.default_rng(1)
    lengths = rng.integers(4, 13, 32).astype(np.int32)
    return rng.integers(0, 20, (32, 12)).astype(np.int32), rng.integers(0, 3, (32, 12)).astype(np.int32), lengths


#: name -> (class of the flax twin, its optimizer, its batch)
NETWORKS: dict[str, tuple[str, Callable[[Any], Any], Callable[[], tuple[Any, ...]]]] = {
    "mlp": ("MLP", lambda optax: optax.adam(1e-3), _digits),
    "cnn": ("CNN", lambda optax: optax.adamw(1e-3), _digits),
    "resnet": ("ResNet", lambda optax: optax.sgd(0.1, momentum=0.9), _digits),
    "vit": ("ViT", lambda optax: optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3)), _digits),
    "mixer": ("Network", lambda optax: optax.adamw(1e-3), _digits),
    "gpt": ("GPT", lambda optax: optax.adamw(3e-3), _characters),
    "tagger": ("Tagger", lambda optax: optax.adam(1e-2), _sentences),
}


def step(m: Any, name: str) -> Made:
    """The step of a network, and its arguments."""
    kind, optimizer, batch = NETWORKS[name]
    arrays = tuple(m.numpy.asarray(x) for x in batch())
    if m.__name__ == "jax":
        return _flax(name, kind, optimizer, arrays)
    return _phlox(name, optimizer, arrays if len(arrays) > 1 else arrays[0])


def _phlox(name: str, optimizer: Callable[[Any], Any], batch: Any) -> Made:
    import phlox
    import phlox_optim

    program: Any = importlib.import_module(f"network_programs.{name}")
    made = phlox_optim.make_step(program.loss, optimizer(phlox_optim))
    state = program.model.init_state() or None
    train = made.init(program.model.init(phlox.random.key(0)), state=state, key=phlox.random.key(1))
    return lambda train, batch: made.function(train, batch), (train, batch)


def _flax(name: str, kind: str, optimizer: Callable[[Any], Any], batch: Any) -> Made:
    import optax
    from flax import nnx

    program: Any = importlib.import_module(f"network_programs.{name}_flax")
    model = getattr(program, kind)(nnx.Rngs(0))
    graph, start = nnx.split((model, nnx.Optimizer(model, optimizer(optax), wrt=nnx.Param)))

    def function(state: Any, batch: Any) -> Any:
        model, updates = nnx.merge(graph, state)
        value, gradients = nnx.value_and_grad(program.loss, has_aux=name == "tagger")(model, *batch)
        updates.update(model, gradients)
        return nnx.state((model, updates)), value

    return function, (start, batch)


def stack(m: Any, count: int) -> Made:
    """The gradient of a `phlox_nn.Stack` of so many blocks."""
    import phlox_nn as nn

    block = nn.Sequential(
        nn.Residual(nn.Sequential(nn.LayerNorm(64), nn.MultiHeadAttention(64, 4))),
        nn.Residual(nn.Sequential(nn.LayerNorm(64), nn.MLP((64, 256, 64)))),
    )
    model = nn.Stack(block, count)
    params = model.init(m.random.key(0))
    return m.grad(lambda params, x: (model.apply(params, x) ** 2).mean()), (params, m.numpy.ones((2, 16, 64)))
