"""Processes that take turns: for each case some samples of one library, then of the next, and again."""

from __future__ import annotations

import functools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .case import BOTH, Case

ROOT = Path(__file__).parents[1]
#: What a library runs under: eight virtual devices, no cache on disk, and one thread of OpenBLAS (that of SciPy, which
#: solves equations for jax and phlox): its threads wait by spinning, and take turns with all others for milliseconds.
_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "PHLOX_PLATFORMS": "cpu",
    "PHLOX_ENABLE_COMPILATION_CACHE": "0",
    "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
#: Folders with packages that phlox uses where they are installed.
OPTIONAL: list[str] = []
#: phlox with the packages of `OPTIONAL`, where it is measured beside phlox without them.
NATIVE = "phlox with kernels"


def set_platform(platform: str) -> None:
    """Measures jax and phlox on this platform from now on, such as "cuda", with the XLA_FLAGS of this process."""
    _ENVIRONMENT.update(JAX_PLATFORMS=platform, PHLOX_PLATFORMS=platform, XLA_PYTHON_CLIENT_PREALLOCATE="false")
    _ENVIRONMENT["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "")


def environment(optional: bool = True, **more: str) -> dict[str, str]:
    packages = ROOT / "packages"
    sources = [str(packages / name / "src") for name in ("core", "compat", "nn", "models", "optim", "data")]
    paths = [str(ROOT), *sources, str(packages / "examples" / "tests"), *(OPTIONAL if optional else ())]
    found = {**os.environ, **_ENVIRONMENT, "PYTHONPATH": os.pathsep.join(paths), **more}
    # Installed libraries come with their bytecode; phlox's sources write theirs when they first run.
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found


def module_of(library: str) -> str:
    """The name by which the worker imports a library."""
    return "phlox" if library == NATIVE else library


class Worker:
    """One process of one library; `optional` tells whether it finds the packages of `OPTIONAL`."""

    def __init__(self, python: str, library: str, optional: bool = True):
        self.library = library
        self.process = subprocess.Popen(
            [python, "-W", "ignore", "-m", "benchmarks.worker", module_of(library)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(optional),
        )

    def ask(self, order: str, name: str) -> dict[str, Any]:
        """Its answer; `{"error": …}` when the process is gone."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            print(order, name, file=self.process.stdin, flush=True)
            return json.loads(self.process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            return {"error": f"the process of {self.library} ended with status {self.process.wait()}"}

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()


@functools.cache
def has(python: str, library: str) -> bool:
    """Whether this Python can import the library."""
    found = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({library!r}) is None)"
    return subprocess.run([python, "-c", found], env=environment()).returncode == 0


class Measurement:
    """Samples of one case, by library, and the errors of those that failed."""

    def __init__(self, case: Case):
        self.case = case
        self.samples: dict[str, list[float]] = {}
        self.turns: dict[str, list[float]] = {}
        self.figures: dict[str, float] = {}
        self.errors: dict[str, str] = {}

    def best(self, library: str) -> float | None:
        return min(self.samples[library]) if self.samples.get(library) else None

    def median(self, library: str) -> float | None:
        found = sorted(self.samples.get(library, ()))
        return found[len(found) // 2] if found else None

    def add(self, library: str, samples: list[float], figure: float | None = None) -> None:
        """The samples of a turn, and the figure of the first result where it is compared."""
        self.samples.setdefault(library, []).extend(samples)
        self.turns.setdefault(library, []).append(statistics.median(samples))
        if figure is not None:
            self.figures[library] = figure

    def compare(self) -> None:
        """An error for each library whose result is not jax's."""
        for library in self.case.same:
            mine, theirs = self.figures.get(library), self.figures.get("jax")
            if mine is not None and theirs is not None and not math.isclose(mine, theirs, rel_tol=1e-3):
                self.errors[library] = (
                    f"computes something else: numbers that sum up to {mine:.7g}, in jax {theirs:.7g}"
                )

    def paired(self, of: str = "phlox", to: str = "jax") -> float | None:
        """The median of the ratios of turns that followed each other."""
        pairs = zip(self.turns.get(of, ()), self.turns.get(to, ()), strict=False)
        ratios = [mine / theirs for mine, theirs in pairs]
        return statistics.median(ratios) if ratios else None

    def ratio(self, of: str = "phlox", to: str = "jax") -> float | None:
        """The least time of the one divided by the least time of the other; or the ratio that was printed."""
        if self.case.unit == "of 1":
            return self.median(of)
        mine, theirs = self.best(of), self.best(to)
        return None if mine is None or theirs is None else mine / theirs

    @property
    def over(self) -> bool:
        """Whether the budget is exceeded."""
        ratio = self.ratio()
        return self.case.budget is not None and ratio is not None and ratio > self.case.budget


def _run_process(python: str, case: Case, library: str, folder: str) -> float:
    env = {name: value.replace("FOLDER", f"{folder}/{library}") for name, value in case.environment}
    program = case.make.replace("LIBRARY", library)
    done = subprocess.run(
        [python, "-W", "ignore", "-c", program],
        env=environment(True, **env),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"status {done.returncode}")
    return float(done.stdout.split()[-1])


def measure(cases: list[Case], python: str = sys.executable, rounds: int = 15) -> Iterator[Measurement]:
    """Measures the cases one after the other; each is yielded when it is done."""
    platform = _ENVIRONMENT["PHLOX_PLATFORMS"]
    both_phlox = any(NATIVE in case.libraries for case in cases)
    # The cases of other libraries hold their arrays on the CPU.
    known = ("jax", "phlox", NATIVE, "torch", "torch.compile", "numpy", "numba") if platform == "cpu" else BOTH
    libraries = [x for x in known if has(python, module_of(x).partition(".")[0])]
    workers: dict[str, Worker] = {}
    try:
        for case in cases:
            if case.on not in (None, platform) or not all(has(python, module) for module in case.needs):
                continue
            result = Measurement(case)
            wanted = [x for x in case.libraries if x in libraries]
            with tempfile.TemporaryDirectory() as folder:
                # A fresh process takes seconds, and its first run fills the caches of the machine. Its memory is always
                # about the same.
                most = {"of 1": 4, "B": 2}.get(case.unit, 9) if case.process else rounds
                for turn in range(min(rounds, most)):
                    for library in wanted if turn % 2 else reversed(wanted):
                        if library in result.errors:
                            continue
                        figure = None
                        try:
                            if case.process:
                                samples = [_run_process(python, case, library, folder)]
                            else:
                                worker = workers.get(library)
                                if worker is None:
                                    optional = library == NATIVE or not both_phlox
                                    worker = workers[library] = Worker(python, library, optional)
                                reply = worker.ask("turn", case.name)
                                if "error" in reply:
                                    raise RuntimeError(reply["error"])
                                samples, figure = reply["samples"], reply["figure"]
                        except RuntimeError as error:
                            result.errors[library] = str(error)
                            continue
                        if turn or not case.process:
                            result.add(library, samples, figure)
            result.compare()
            for worker in workers.values():
                worker.ask("forget", case.name)
            yield result
    finally:
        for worker in workers.values():
            worker.close()


def told(order: str, names: list[str], python: str = sys.executable) -> dict[str, dict[str, dict[str, float]]]:
    """What jax and phlox say of each program, when asked for its "program" or its "structure"."""
    workers = {library: Worker(python, library) for library in ("jax", "phlox")}
    try:
        found: dict[str, dict[str, dict[str, float]]] = {}
        for name in names:
            replies = {library: worker.ask(order, name) for library, worker in workers.items()}
            if all(order in reply for reply in replies.values()):
                found[name] = {library: reply[order] for library, reply in replies.items()}
        return found
    finally:
        for worker in workers.values():
            worker.close()


#: what is counted in a fresh process: name of the row -> (what, program that prints it)
_COUNTED = {
    "import": ("modules", "import sys, LIBRARY, LIBRARY.numpy; print(len(sys.modules))"),
    "an eager session": (
        "programs",
        """
import LIBRARY as m, LIBRARY.numpy, LIBRARY.random
compiled = []
m.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: compiled.append(event) if event.endswith("backend_compile_duration") else None
)
x = m.random.normal(m.random.key(0), (8, 8)) + m.numpy.arange(8.0)
loss = lambda w: (m.numpy.where(x @ w > 0, x @ w, m.numpy.exp(x @ w) - 1) ** 2).mean()
w = m.numpy.zeros((8, 3)) + m.numpy.ones(3)
for _ in range(3):
    w = w - 0.1 * m.grad(loss)(w)
m.vmap(lambda row: (row[1:3] * row[0]).sum())(w).max().block_until_ready()
np_, v = m.numpy, x[0]
for f in (np_.std, np_.median, np_.ptp, np_.nanmean, np_.nanstd, np_.cov, np_.trace, np_.diagonal, np_.diff):
    f(x)
for f in np_.gradient, np_.cumsum, np_.ravel, np_.count_nonzero, np_.trapezoid, np_.linalg.norm, np_.linalg.det:
    f(x)
for f in np_.outer, np_.vdot, np_.kron, np_.append, np_.allclose, np_.polyadd, np_.convolve, np_.digitize:
    f(v, v)
np_.interp(v, v, v), np_.quantile(v, 0.3), np_.cross(x[:, :3], x[:, 3:6]), np_.tile(v, 2), np_.take(x, v.argsort())
assert compiled  # else nobody listens
print(len(compiled))
""",
    ),
}


def counts(python: str = sys.executable) -> dict[str, dict[str, dict[str, float]]]:
    """How many modules a process has after importing each library; how many programs eager code makes."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, (what, program) in _COUNTED.items():
        case = Case(f"counts/{name}", program, process=True)
        found[name] = {library: {what: _run_process(python, case, library, "")} for library in ("jax", "phlox")}
    return found
