"""Long programs: tracing and lowering must grow as the program does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import models
from ..case import CASES, Case

LENGTHS = (100, 300, 1000, 3000, 10_000)


def _of(count: int) -> Callable[[Any], Any]:
    def make(m: Any) -> Any:
        f = models.elementwise(m, count)
        return lambda: m.jit(lambda x: f(x)), lambda jitted: jitted.trace(1.0).lower()

    return make


for length in LENGTHS:
    name = f"growth/{length} equations"
    CASES[name] = Case(name, _of(length), quick=length in (100, 1000))
