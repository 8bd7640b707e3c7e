"""Training steps of networks beside flax, equinox and torch, and how long the first one makes people wait.

`networks.NETWORKS` are small ones that people write themselves; `architectures` are those of phlox_models.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from .. import architectures, networks
from ..case import BOTH, CASES, Case

Made = tuple[Callable[..., Any], tuple[Any, ...]]


def _run(program: Callable[[Any], Made]) -> Callable[[Any], Any]:
    """Steps one after the other; the memory of the old state is used again."""

    def make(m: Any) -> Any:
        f, (state, batch) = program(m)
        f, states = m.jit(f, donate_argnums=0), [state]

        def step() -> Any:
            states[0], figures = f(states[0], batch)
            return m.block_until_ready(figures)

        return step

    return make


def _first(program: Callable[[Any], Made]) -> Callable[[Any], Any]:
    """From the Python function to the compiled program."""

    def make(m: Any) -> Any:
        f, args = program(m)
        return lambda: m.jit(lambda *args: f(*args)), lambda jitted: jitted.lower(*args).compile()

    return make


for _name in networks.NETWORKS:
    _program = functools.partial(networks.step, name=_name)
    quick = _name in ("mlp", "cnn")
    for _kind, _make, _budget in (("step", _run(_program), 1.05), ("compile", _first(_program), 1.0)):
        _full = f"networks/{_name}: {_kind}"
        CASES[_full] = Case(_full, _make, budget=_budget, quick=quick, needs=("flax", "optax"))
for _count in (8, 80):
    _full = f"networks/Stack of {_count}: compile"
    CASES[_full] = Case(_full, _first(functools.partial(networks.stack, count=_count)), ("phlox",), quick=False)


def _of_architecture(name: str, other: str) -> Callable[[Any], Any]:
    """Steps of an architecture of phlox_models, of a library on jax, or of torch."""

    def make(m: Any) -> Any:
        if m.__name__ == "torch":
            return importlib.import_module("benchmarks.architectures.torch_networks").run(name)
        return _run(functools.partial(architectures.step, name=name, other=other))(m)

    return make


for _name in architectures.SIZES:
    for _other, _libraries in (("flax", (*BOTH, "torch")), ("equinox", BOTH)):
        _full, _make = f"networks/{_name}, {_other}: step", _of_architecture(_name, _other)
        CASES[_full] = Case(_full, _make, _libraries, budget=1.0, quick=False, needs=(_other,))
