"""Whole programs: how long a process waits for the first result after the imports, with nothing on disk."""

from __future__ import annotations

from ..case import started
from ..programs import PROGRAMS

_PROGRAM = """
import importlib, time
import LIBRARY as m
for part in ("numpy", "nn", "lax", "random", "ops", "scipy.linalg"):
    importlib.import_module("LIBRARY." + part)
from benchmarks.programs import EAGER, PROGRAMS
t = time.perf_counter()
function, arguments = PROGRAMS[{name!r}](m)
m.block_until_ready((function if {name!r} in EAGER else m.jit(function))(*arguments))
print(time.perf_counter() - t)
"""

# Values of `compile_effort`, and the ratio to jax that each has promised over all programs in the geometric mean.
for _effort, _budget in (("default", None), ("fast", None), ("tiered", 0.6)):
    for _name in PROGRAMS:
        started(
            f"first result/{_name}" + ("" if _effort == "default" else f", {_effort}"),
            _PROGRAM.format(name=_name),
            budget=_budget,
            quick=False,
            environment=(("PHLOX_COMPILE_EFFORT", _effort),),
        )
