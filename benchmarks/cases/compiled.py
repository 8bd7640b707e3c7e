"""Compiled programs: the same compiler, so the same time, unless what it was given is worse."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .. import models
from ..case import BOTH, CASES, PROGRAMS, Case, case

Made = tuple[Callable[..., Any], tuple[Any, ...]]


def program(
    name: str,
    budget: float | None = 1.02,
    quick: bool = True,
    torch: Callable[[Any], Made] | None = None,
    on: str | None = None,
) -> Callable[[Any], Any]:
    """States a case that runs a program, and that its compiled form be compared. `torch` is the same for PyTorch."""

    def state(make: Callable[[Any], Made]) -> Any:
        def run(m: Any) -> Any:
            if torch is not None and m.__name__.startswith("torch"):
                f, args = torch(m.torch)
                f = m.compile(f)
                return lambda: f(*args)
            f, args = make(m)
            f = m.jit(f)
            return lambda: m.block_until_ready(f(*args))

        PROGRAMS[name] = make
        libraries = BOTH if torch is None else (*BOTH, "torch", "torch.compile")
        CASES[f"run/{name}"] = Case(f"run/{name}", run, libraries=libraries, budget=budget, quick=quick, on=on)
        return make

    return state


def _torch_selu(count: int) -> Callable[[Any], Made]:
    return lambda torch: (torch.nn.functional.selu, (torch.as_tensor(models.array(count)),))


def _torch_polynomial(torch: Any) -> Made:
    return lambda x: x * x + 2 * x, (torch.as_tensor(models.array(5000, 5000)),)


def _torch_matmul(torch: Any) -> Made:
    x = torch.as_tensor(models.array(512, 512))
    return lambda x: x @ x, (x,)


@program("SELU 1e6", torch=_torch_selu(1_000_000))
def selu_1e6(m: Any) -> Made:
    return models.selu(m), (m.numpy.asarray(models.array(1_000_000)),)


@program("SELU 1e7", quick=False, torch=_torch_selu(10_000_000))
def selu_1e7(m: Any) -> Made:
    return models.selu(m), (m.numpy.asarray(models.array(10_000_000)),)


@program("x*x + 2x, 5000x5000", quick=False, torch=_torch_polynomial)
def polynomial(m: Any) -> Made:
    return lambda x: x * x + 2 * x, (m.numpy.asarray(models.array(5000, 5000)),)


@program("matmul 512", torch=_torch_matmul)
def matmul(m: Any) -> Made:
    x = m.numpy.asarray(models.array(512, 512))
    return lambda x: x @ x, (x,)


def _torch_conv(torch: Any) -> Made:
    x, w = torch.as_tensor(models.array(16, 16, 32, 32)), torch.as_tensor(models.array(32, 16, 3, 3))
    return lambda x, w: torch.nn.functional.conv2d(x, w, padding="same"), (x, w)


@program("conv 3x3", quick=False, torch=_torch_conv)
def conv(m: Any) -> Made:
    x, w = models.array(16, 16, 32, 32), models.array(32, 16, 3, 3)
    return lambda x, w: m.lax.conv(x, w, (1, 1), "SAME"), (m.numpy.asarray(x), m.numpy.asarray(w))


@program("normal 1e6")
def normal(m: Any) -> Made:
    return lambda key: m.random.normal(key, (1_000_000,)), (m.random.key(0),)


@program("MLP step")
def mlp(m: Any) -> Made:
    return models.mlp_step(m)


@program("transformer step")
def transformer(m: Any) -> Made:
    return models.transformer_step(m)


@program("blocks of GPT-2 small", quick=False, on="cuda")
def gpt2_small(m: Any) -> Made:
    return models.transformer_step(m, layers=12, width=768, heads=12, length=512, batch=8)


@program("scan of 1,000")
def scan_1000(m: Any) -> Made:
    return models.scan_of(m, 1000)


@program("scan of 100,000", quick=False)
def scan_100000(m: Any) -> Made:
    return models.scan_of(m, 100_000)


@program("reverse scan of 1,000")
def reverse_scan(m: Any) -> Made:
    f, args = models.scan_of(m, 1000)
    return m.grad(lambda c, xs: f(c, xs)[1].sum(), argnums=1), args


def _gradient_of(f: Callable[..., Any], *shapes: tuple[int, ...]) -> Callable[[Any], Made]:
    """The gradient of the sum of squares of what `f`, a function of the library and of arrays, returns."""

    def make(m: Any) -> Made:
        gradient = m.grad(lambda *args: sum((x**2).sum() for x in m.tree.leaves(f(m, *args))))
        return gradient, tuple(m.numpy.asarray(models.array(*shape, seed=i)) for i, shape in enumerate(shapes))

    return make


def _conv_net(m: Any, x: Any, first: Any, second: Any) -> Any:
    x = m.nn.relu(m.lax.conv(x, first, (1, 1), "SAME"))
    x = m.lax.reduce_window(x, -np.inf, m.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return m.lax.conv(x, second, (2, 2), "VALID")


def _positive(m: Any, x: Any) -> Any:
    return x @ x.T + 64 * m.numpy.eye(64)


# One of each kind of operation whose gradient has a rule of its own.
for _name, _make in {
    "conv net": _gradient_of(_conv_net, (8, 8, 32, 32), (16, 8, 3, 3), (32, 16, 3, 3)),
    "attention": _gradient_of(lambda m, q: m.nn.dot_product_attention(q, q, q), (4, 128, 4, 32)),
    "rows of a table": _gradient_of(lambda m, x: x[m.numpy.arange(100_000) * 7 % 1000], (1000, 64)),
    "sort": _gradient_of(lambda m, x: m.numpy.sort(x, axis=1), (100, 1000)),
    "cumsum": _gradient_of(lambda m, x: m.numpy.cumsum(x, axis=1), (1000, 1000)),
    "prod": _gradient_of(lambda m, x: m.numpy.prod(x, axis=1), (1000, 1000)),
    "split": _gradient_of(lambda m, x: m.numpy.split(x, 4, axis=1), (1000, 1000)),
    "pad": _gradient_of(lambda m, x: m.numpy.pad(x, 8, mode="reflect"), (1000, 1000)),
    "convolve": _gradient_of(lambda m, x, y: m.numpy.convolve(x, y), (100_000,), (64,)),
    "trapezoid": _gradient_of(lambda m, x: m.numpy.trapezoid(x), (1000, 1000)),
    "determinant": _gradient_of(lambda m, x: m.numpy.linalg.slogdet(_positive(m, x))[1], (64, 64)),
    "solve": _gradient_of(lambda m, x, b: m.numpy.linalg.solve(_positive(m, x), b), (64, 64), (64, 8)),
    "eigenvalues": _gradient_of(lambda m, x: m.numpy.linalg.eigvalsh(_positive(m, x)), (64, 64)),
    "fft": _gradient_of(lambda m, x: abs(m.numpy.fft.rfft(x)), (100, 1024)),
}.items():
    program(f"gradient of {_name}", quick=False)(_make)


def _donated(make: Callable[[Any], Made]) -> Callable[[Any], Any]:
    def run(m: Any) -> Any:
        f, (x,) = make(m)
        f = m.jit(f, donate_argnums=0)
        state = [m.numpy.copy(x)]

        def step() -> Any:
            state[0] = f(state[0]).block_until_ready()
            return state[0]

        return step

    return run


CASES["run/SELU 1e7, donated"] = Case("run/SELU 1e7, donated", _donated(selu_1e7), budget=1.02, quick=False)


@case("run/x*x + 2x, 5000x5000, donated", budget=1.02, quick=False)
def polynomial_donated(m: Any) -> Any:
    # Bounded, so that it can be applied to its own result for ever.
    return _donated(lambda m: (lambda x: x * x * 0.25 + x * 0.5, (m.numpy.asarray(models.array(5000, 5000)),)))(m)


@case("run/bound: copy of 1e7 numbers", libraries=("numpy",), quick=False)
def copy(_: Any) -> Any:
    """The bandwidth of the machine: as many threads as it has processors, each copying its part."""
    source, target = np.ones(10_000_000, np.float32), np.empty(10_000_000, np.float32)
    parts = os.cpu_count() or 1
    pool = ThreadPoolExecutor(parts)
    pieces = list(zip(np.array_split(target, parts), np.array_split(source, parts), strict=True))
    return lambda: list(pool.map(lambda piece: np.copyto(*piece), pieces))
