"""Reverse mode of loops whose number of turns is known only when they run, in times of other runs of the same loop."""

from __future__ import annotations

from ..case import started

_LOOP = """
import time

import LIBRARY
import LIBRARY.numpy as jnp
from LIBRARY import lax


def least(f, *args):
    LIBRARY.block_until_ready(f(*args))
    times = []
    for _ in range(30):
        start = time.perf_counter()
        LIBRARY.block_until_ready(f(*args))
        times.append(time.perf_counter() - start)
    return min(times)


def turn(x, a):
    return jnp.sin(x) * a + 0.1


def loop(x, a, turns, **how):
    return lax.while_loop(lambda c: c[0] < turns, lambda c: (c[0] + 1, turn(c[1], a)), (0, x), **how)[1]


x, a = jnp.float32(0.5), jnp.float32(0.9)
"""
_LONG = """
both = LIBRARY.jit(LIBRARY.value_and_grad(lambda x, a, n: loop(x, a, n, checkpoints=ROWS), (0, 1)))
print(least(both, x, a, jnp.int32(100_000)) / least(LIBRARY.jit(loop), x, a, jnp.int32(100_000)))
"""
_SHORT = """
scan = lambda x, a: lax.fori_loop(0, 100, lambda i, x: turn(x, a), x)
both = [LIBRARY.jit(LIBRARY.value_and_grad(f, (0, 1))) for f in (loop, scan)]
print(least(both[0], x, a, jnp.int32(100)) / least(both[1], x, a))
"""

for _name, _program, _budget in (
    ("gradient of 100,000 turns with 64 states, to the loop", _LONG.replace("ROWS", "64"), 4.0),
    ("gradient of 100,000 turns, to the loop", _LONG.replace("ROWS", "None"), 4.0),
    ("gradient of 100 turns, to that of a scan", _SHORT, 1.3),
):
    started(f"loops/{_name}", _LOOP + _program, libraries=("phlox",), budget=_budget, unit="of 1", quick=False)
