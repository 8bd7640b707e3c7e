"""A program of a user, which type checkers must accept as it stands (scripts/check-types)."""

from functools import partial
from typing import NamedTuple

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
import phlox_optim as optim
from phlox import Array, lax, random


class Params(NamedTuple):
    weight: Array
    bias: Array


def init(key: Array, inputs: int, outputs: int) -> Params:
    first, _ = random.split(key)
    return Params(random.normal(first, (inputs, outputs)) / inputs**0.5, jnp.zeros(outputs))


def predict(params: Params, x: Array) -> Array:
    return jnp.tanh(x @ params.weight + params.bias)


def loss(params: Params, x: Array, y: Array) -> Array:
    return ((predict(params, x) - y) ** 2).mean()


@phlox.jit
def step(params: Params, x: Array, y: Array) -> tuple[Params, Array]:
    value, gradients = phlox.value_and_grad(loss)(params, x, y)
    return phlox.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


@partial(phlox.jit, static_argnames=("size",))
def windows(x: Array, size: int = 3) -> Array:
    return jnp.stack([x[i : x.shape[0] - size + 1 + i] for i in range(size)], axis=1)


@phlox.checkpoint
def layer(x: Array) -> Array:
    return jnp.sin(x) * 2


def count(xs: Array) -> Array:
    total: Array
    total, _ = lax.scan(lambda carry, row: (carry + row.sum(), row), jnp.zeros(()), xs)
    return total


def main() -> float:
    params = init(random.key(0), 4, 2)
    x, y, value = jnp.ones((8, 4)), jnp.zeros((8, 2)), jnp.zeros(())
    for _ in range(3):
        params, value = step(params, x, y)
    marked = x.at[0].set(1.0).at[:, 1].add(2)
    rows = [row.sum() for row in marked]
    each = phlox.vmap(predict, in_axes=(None, 0))(params, x)
    slope: Array = phlox.grad(lambda a: layer(a).sum())(x)
    chosen = jnp.where(marked > 1, marked, -marked)[None, ..., 0]
    print(step.lower(params, x, y).as_text()[:10], windows(rows[0][None], size=1).shape, each.dtype, count(x), slope.T)
    return float(chosen.max() + value)


if __name__ == "__main__":
    main()


def train_network(x: Array, y: Array) -> float:
    model = nn.Sequential(nn.Linear(2, 8), nn.relu, nn.Dropout(0.1), nn.Linear(8, 1))

    def squares(params: dict[str, Array], batch: tuple[Array, Array], key: Array) -> Array:
        scores: Array = model.apply(params, batch[0], key=key, train=True)
        return ((scores[:, 0] - batch[1]) ** 2).mean()

    schedule = optim.warmup_cosine_decay_schedule(0.0, 1e-2, 10, 100)
    tx = optim.chain(optim.clip_by_global_norm(1.0), optim.by_path({"0": None, "*": optim.adamw(schedule, b2=0.99)}))
    step = optim.make_step(squares, tx, ema=0.99)
    train = step.init(model.init(random.key(0)), key=random.key(1))
    done = optim.fit(train, step, [(x, y)] * 3, epochs=2, best=optim.Best("loss"))
    return float(done.history[-1]["loss"])
