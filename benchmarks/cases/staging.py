"""From a Python function to a compiled program: tracing, lowering, compiling."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import models
from ..case import CASES, Case

Made = tuple[Callable[..., Any], tuple[Any, ...]]


def vmap_of_grad(m: Any) -> Made:
    f = models.elementwise(m, 30)
    return m.vmap(m.grad(lambda x: f(x).sum())), (models.array(16, 8),)


def grad_of_grad(m: Any) -> Made:
    f = models.elementwise(m, 30)
    return m.grad(m.grad(lambda x: f(x))), (1.0,)


#: name -> (program, budgets of tracing and of lowering)
PROGRAMS: dict[str, tuple[Callable[[Any], Made], float, float]] = {
    "150 elementwise": (lambda m: (models.elementwise(m), (models.array(8),)), 0.25, 0.15),
    "mlp step": (models.mlp_step, 0.3, 0.15),
    "transformer step": (models.transformer_step, 0.3, 0.15),
    "vmap of grad": (vmap_of_grad, 0.3, 0.15),
    "grad of grad": (grad_of_grad, 0.3, 0.15),
    "scan": (lambda m: models.scan_of(m, 100), 0.25, 0.15),
}


def _fresh(f: Callable[..., Any]) -> Callable[..., Any]:
    """The same function as an object that no cache knows."""
    return lambda *args: f(*args)


def _traced(program: Callable[[Any], Made]) -> Callable[[Any], Any]:
    def make(m: Any) -> Any:
        f, args = program(m)
        return lambda: m.jit(_fresh(f)), lambda jitted: jitted.trace(*args)

    return make


def _lowered(program: Callable[[Any], Made]) -> Callable[[Any], Any]:
    def make(m: Any) -> Any:
        f, args = program(m)
        return lambda: m.jit(_fresh(f)).trace(*args), lambda traced: traced.lower()

    return make


def _compiled(program: Callable[[Any], Made]) -> Callable[[Any], Any]:
    def make(m: Any) -> Any:
        f, args = program(m)
        return lambda: m.jit(_fresh(f)).trace(*args).lower(), lambda lowered: lowered.compile()

    return make


for name, (program, tracing, _) in PROGRAMS.items():
    CASES[f"trace/{name}"] = Case(f"trace/{name}", _traced(program), budget=tracing)
for name, (program, _, lowering) in PROGRAMS.items():
    CASES[f"lower/{name}"] = Case(f"lower/{name}", _lowered(program), budget=lowering)
for name, (program, _, _) in PROGRAMS.items():
    CASES[f"compile/{name}"] = Case(f"compile/{name}", _compiled(program), quick=name in ("mlp step", "scan"))
for count in (3, 48):  # of a loop of one step XLA makes no loop
    name = f"compile/layers by scan: {count}"
    CASES[name] = Case(name, _compiled(functools.partial(models.layers_by_scan, count=count)), quick=False)
