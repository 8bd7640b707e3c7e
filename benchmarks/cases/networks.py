"""Training steps of networks beside flax: a step that is compiled, and how long the first one makes people wait."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import networks
from ..case import CASES, Case

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
