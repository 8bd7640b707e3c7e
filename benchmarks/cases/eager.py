"""Operations one at a time, as at a prompt."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from .. import models
from ..case import case

ALL = ("jax", "phlox", "torch")


def _vector(m: Any, *shape: int) -> Any:
    if m.__name__ == "torch":
        return m.ones(*(shape or (8,)))
    return m.numpy.ones(shape or (8,))


@case("eager/add", libraries=ALL, budget=0.9)
def add(m: Any) -> Any:
    x, y = _vector(m), _vector(m)
    return lambda: x + y


@case("eager/add scalar", libraries=ALL, budget=0.9)
def add_scalar(m: Any) -> Any:
    x = _vector(m)
    return lambda: x + 1.0


@case("eager/sin", libraries=ALL, budget=0.9)
def sin(m: Any) -> Any:
    x = _vector(m)
    f = m.sin if m.__name__ == "torch" else m.numpy.sin
    return lambda: f(x)


@case("eager/matmul 8x8", libraries=ALL, budget=0.9)
def matmul(m: Any) -> Any:
    x = _vector(m, 8, 8)
    return lambda: x @ x


@case("eager/x[1]", libraries=ALL, budget=0.3)
def index(m: Any) -> Any:
    x = _vector(m)
    return lambda: x[1]


@case("eager/x[1:3]", libraries=ALL, budget=0.3)
def cut(m: Any) -> Any:
    x = _vector(m)
    return lambda: x[1:3]


@case("eager/where", libraries=ALL, budget=0.9)
def where(m: Any) -> Any:
    x = _vector(m)
    f, mask = (m if m.__name__ == "torch" else m.numpy).where, x > 0
    return lambda: f(mask, x, x)


@case("eager/reshape", libraries=ALL, budget=0.9)
def reshape(m: Any) -> Any:
    x = _vector(m, 4, 2)
    return lambda: x.reshape(2, 4)


@case("eager/sum", libraries=ALL, budget=0.9)
def total(m: Any) -> Any:
    x = _vector(m)
    return lambda: x.sum()


def _of_several(name: str) -> Any:
    """Functions of several operations, which are one program each."""

    def make(m: Any) -> Any:
        f, x = getattr(m.numpy, name), _vector(m)
        return lambda: f(x)

    return make


for _name in ("median", "nanmean", "cov", "diff", "cumsum"):
    case(f"eager/{_name}", budget=0.9)(_of_several(_name))


@case("eager/asarray", libraries=ALL, budget=0.5)
def asarray(m: Any) -> Any:
    x = np.ones(8, np.float32)
    f = m.as_tensor if m.__name__ == "torch" else m.numpy.asarray
    return lambda: f(x)


@case("eager/np.asarray", libraries=ALL, budget=0.9)
def to_numpy(m: Any) -> Any:
    x = _vector(m)
    return lambda: np.asarray(x)


@case("eager/floor: np.asarray of a bare buffer", libraries=("phlox",))
def as_numpy_floor(m: Any) -> Any:
    """What jax's arrays are: NumPy asks C code for their memory. An object of Python's is asked by a method besides."""
    buf = m.numpy.ones(8)._buf
    return lambda: np.asarray(buf)


@case("eager/SELU op by op", libraries=ALL, budget=0.9)
def selu(m: Any) -> Any:
    x = _vector(m)
    if m.__name__ == "torch":
        return lambda: 1.05 * m.where(x > 0, x, 1.67 * (m.exp(x) - 1))
    f = models.selu(m)
    return lambda: f(x)


@case("eager/grad(tanh)(1.0)", budget=0.3)
def grad(m: Any) -> Any:
    g = m.grad(m.numpy.tanh)
    return lambda: g(1.0)


@case("eager/vmap", budget=0.9)
def vmap(m: Any) -> Any:
    f, x = m.vmap(lambda x: m.numpy.sin(x) + 1), _vector(m, 8, 4)
    return lambda: f(x)


@case("eager/random.split", budget=0.5)
def split(m: Any) -> Any:
    key = m.random.key(0)
    return lambda: m.random.split(key)


@case("eager/random.normal(4)", budget=0.9)
def normal(m: Any) -> Any:
    key = m.random.key(0)
    return lambda: m.random.normal(key, (4,))


@case("eager/first sin of a shape", budget=1.0)
def first_sin(m: Any) -> Any:
    """With compiling, which eager code waits for wherever a shape is new."""
    lengths = itertools.count(1000)

    def fresh() -> Any:
        return m.device_put(np.zeros(next(lengths), np.float32))

    return fresh, m.numpy.sin


@case("eager/first zeros of a shape", budget=1.0)
def first_zeros(m: Any) -> Any:
    lengths = itertools.count(1000)
    return lambda: next(lengths), m.numpy.zeros
