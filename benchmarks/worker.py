"""A process of one library: reads names of cases, line by line, and answers each with samples, as JSON.

    python -m benchmarks.worker phlox

A sample is the mean of as many calls as take a millisecond: less would measure the clock, more the other users of
the machine. A turn is as many samples as take some milliseconds; the turns of both libraries alternate, so that the
noise of the machine meets both.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

import numpy as np

from .case import PROGRAMS, load

#: seconds that one sample should take, the most calls in it, and seconds that a turn should take
_SAMPLE, _MOST, _TURN = 0.001, 100_000, 0.01


class Prepared:
    """A case that is ready to be timed, with the number of calls in a sample."""

    def __init__(self, made: Any, summed: bool):
        self.prepare, self.run = made if isinstance(made, tuple) else (None, made)
        self.figure = total(self.run()) if summed else None
        self.sample(1)  # compiles and fills caches
        self.calls = 1
        if self.prepare is None:
            took = min(self.sample(1) for _ in range(3))
            self.calls = max(1, min(_MOST, int(_SAMPLE / max(took, 1e-8))))

    def turn(self) -> list[float]:
        """Seconds for one call, several times: at least once."""
        end = time.perf_counter() + _TURN
        samples = [self.sample()]
        while time.perf_counter() < end:
            samples.append(self.sample())
        return samples

    def sample(self, calls: int | None = None) -> float:
        """Seconds for one call."""
        run, count = self.run, calls or self.calls
        if self.prepare is not None:
            prepared = self.prepare()
            start = time.perf_counter()
            run(prepared)
            return time.perf_counter() - start
        start = time.perf_counter()
        for _ in range(count - 1):
            run()
        _finished(run())
        return (time.perf_counter() - start) / count


class Torch:
    """PyTorch as a library that cases take: eager under the name "torch", or with its compiler, "torch.compile"."""

    def __init__(self, name: str):
        self.__name__ = name
        self.torch = importlib.import_module("torch")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.torch, name)

    def compile(self, f: Any) -> Any:
        """`f` as this library runs it."""
        if self.__name__ != "torch.compile":
            return f
        # The functions of cases have one code, which torch compiles eight times at most; later ones would run eagerly.
        self.torch.compiler.reset()
        return self.torch.compile(f)


def total(result: Any) -> float:
    """The sum of the sizes of all numbers in a result: one figure by which libraries are compared."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        return sum(map(total, result))
    return float(np.abs(np.asarray(result, np.float64)).sum())


def _finished(x: Any) -> None:
    """Waits for a result that is still being computed, so that it does not run on into the next sample."""
    wait = getattr(x, "block_until_ready", None)
    if wait is not None:
        wait()


def described(library: Any, name: str) -> dict[str, float]:
    """What the compiler made of a program: its estimates, and how many operations of some kinds."""
    f, args = PROGRAMS[name](library)
    lowered = library.jit(f).lower(*args)
    compiled = lowered.compile()
    cost = compiled.cost_analysis()
    text = compiled.as_text()
    kinds = {kind: text.count(f" {kind}(") for kind in ("fusion", "copy", "transpose")}
    return {"flops": cost.get("flops", 0.0), "bytes": cost.get("bytes accessed", 0.0), **kinds}


def structure(library: Any, name: str) -> dict[str, float]:
    """Sizes of a program that do not depend on how busy the machine is."""
    f, args = PROGRAMS[name](library)
    traced = library.jit(f).trace(*args)
    lowered = traced.lower()
    return {
        "equations": float(_equations(traced.jaxpr.jaxpr)),
        "bytes of StableHLO": float(len(lowered.as_text())),
        "bytes of HLO": float(len(lowered.compile().as_text())),
    }


def _equations(jaxpr: Any) -> int:
    """The equations of a program and of those inside of it."""
    inner = [
        getattr(item, "jaxpr", item)
        for eqn in jaxpr.eqns
        for value in eqn.params.values()
        for item in (value if isinstance(value, tuple) else (value,))
        if hasattr(getattr(item, "jaxpr", item), "eqns")
    ]
    return len(jaxpr.eqns) + sum(map(_equations, inner))


def main(library: str) -> None:
    cases = load()
    module: Any = Torch(library) if library.startswith("torch") else importlib.import_module(library)
    if library in ("jax", "phlox"):
        for part in ("numpy", "nn", "lax", "random", "sharding"):
            importlib.import_module(f"{library}.{part}")
    ready: dict[str, Prepared] = {}
    answer = sys.stdout
    sys.stdout = sys.stderr  # what a library prints is no answer
    for line in sys.stdin:
        order, _, name = line.strip().partition(" ")
        reply: dict[str, Any]
        try:
            if order == "program":
                reply = {"program": described(module, name)}
            elif order == "structure":
                reply = {"structure": structure(module, name)}
            elif order == "forget":
                ready.pop(name, None)
                reply = {}
            else:
                if name not in ready:
                    ready[name] = Prepared(cases[name].make(module), bool(cases[name].same))
                reply = {"samples": ready[name].turn(), "figure": ready[name].figure}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=answer, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
