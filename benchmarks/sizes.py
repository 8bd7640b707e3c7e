"""The cost of functions with sizes, over lengths from 1 to 4096: the figures of docs/guides/sizes.md.

    python -m benchmarks.sizes run                run time, divided by that of programs of exact length
    python -m benchmarks.sizes first              time of the first 100 calls, divided by jax's
    python -m benchmarks.sizes run lstm graph     the same of some programs

The programs are those of packages/core/tests/sized_programs.py. `run` takes the least time of a call of each length:
CPU time would miss what XLA's threads, which wait in a loop for more work, have just done. `first` takes CPU time,
which other programs on the machine change little, in a process for each side, without the cache on disk.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .measure import ROOT, environment

sys.path.insert(0, str(ROOT / "packages" / "core" / "tests"))
SIZED: Any = importlib.import_module("sized_programs").SIZED

MAX_LENGTH = 4096
#: calls of one length, of which the fastest counts, and seconds that they should take
MIN_TURNS, MAX_TURNS, MAX_SECONDS = 3, 40, 0.3
#: calls that are made with new lengths, and how many of them jax makes: its time is extrapolated
FIRST, FIRST_OF_JAX = 100, 12


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "first", "worker"])
    parser.add_argument("programs", nargs="*", help="names of programs (default: all)")
    parser.add_argument("--lengths", type=int, default=40, help="run: number of lengths")
    options = parser.parse_args()
    if options.what == "worker":
        library, name, count = options.programs
        print(json.dumps(first_calls(library, name, int(count))))
        return
    for name in options.programs or SIZED:
        if options.what == "run":
            print(compare_run_time(name, options.lengths), flush=True)
        else:
            print(compare_first_calls(name), flush=True)


def compare_run_time(name: str, count: int) -> str:
    """The run time over lengths that are spread evenly, with sizes and of programs of exact length."""
    import phlox

    program, rng = SIZED[name], np.random.default_rng(0)
    # Two functions: programs of one function are counted together.
    functions = [functools.partial(program.function, phlox) for _ in range(2)]
    sized, exact = phlox.jit(functions[0], sizes=program.sizes), phlox.jit(functions[1])
    lengths = [max(1, math.ceil((i + rng.random()) * MAX_LENGTH / count)) for i in range(count)]
    calls = [program.arguments(n, rng) for n in lengths]
    for arguments in calls:
        phlox.block_until_ready([sized(*arguments), exact(*arguments)])
    best = np.full((2, count), np.inf)
    for i, arguments in enumerate(calls):
        end = time.perf_counter() + MAX_SECONDS
        for turn in range(MAX_TURNS):
            if turn < MIN_TURNS or time.perf_counter() < end:
                for side, f in enumerate((sized, exact)):
                    best[side, i] = min(best[side, i], _seconds(phlox, f, arguments, time.perf_counter))
    ratio, short = best[0].sum() / best[1].sum(), best[0, 0] / best[1, 0]
    return (
        f"{name:18} {ratio:5.2f} of {best[1].mean() * 1e3:8.2f} ms a call; {sized.stats().entries} programs; "
        f"{short:.2f} of {best[1, 0] * 1e3:.2f} ms for length {lengths[0]}"
    )


def _seconds(m: Any, f: Callable[..., Any], arguments: Sequence[Any], clock: Callable[[], float]) -> float:
    start = clock()
    m.block_until_ready(f(*arguments))
    return clock() - start


def first_calls(library: str, name: str, count: int) -> list[float]:
    """Seconds of the first calls with random lengths, which compile what they need."""
    m, program, rng = importlib.import_module(library), SIZED[name], np.random.default_rng(1)
    for module in ("numpy", "nn", "ops", "scipy.linalg", "random"):
        importlib.import_module(f"{library}.{module}")
    calls = [program.arguments(int(n), rng) for n in rng.integers(1, MAX_LENGTH + 1, count)]
    function = functools.partial(program.function, m)
    f = m.jit(function) if library == "jax" else m.jit(function, sizes=program.sizes)
    m.block_until_ready(m.jit(lambda x: x + 1)(1.0))
    return [_seconds(m, f, arguments, time.process_time) for arguments in calls]


def compare_first_calls(name: str) -> str:
    """The time of the first calls, with sizes and in jax."""
    seconds = {}
    for library, count in (("phlox", FIRST), ("jax", FIRST_OF_JAX)):
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.sizes", "worker", library, name, str(count)]
        result = subprocess.run(command, env=environment(XLA_FLAGS=""), capture_output=True, text=True, check=True)
        seconds[library] = sum(json.loads(result.stdout.splitlines()[-1])) * FIRST / count
    ratio = seconds["phlox"] / seconds["jax"]
    return f"{name:18} {ratio:5.3f}: {seconds['phlox']:.2f} s, jax {seconds['jax']:.1f} s"


if __name__ == "__main__":
    main()
