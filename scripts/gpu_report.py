"""Runs the parts of scripts/gpu, each in processes of its own, and prints what they found as a table.

Parts that only compare values run at the same time. Parts that measure time run alone, after them.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

#: `Finding.ok` is None for a figure, which nothing decides about.
Finding = dict[str, Any]
Reader = Callable[[str, Path], list[Finding]]

#: Conformance tests that need several devices, or state what holds on a CPU.
_LEFT_OUT = (
    "*sharding*",
    "*test_meshes.py",
    "*test_shard*",
    "*test_lax_collectives.py",
    "*test_lax_compiler.py",
    "*test_ownership.py",
    "*test_clusters.py",
    "*test_coverage.py",
    "*test_drawn_coverage.py",
    "*test_configuration.py",
)
#: Single tests: views of host memory; elements that nobody has set; the Schur form, which only LAPACK has; a reduction
#: whose function is not associative; several devices; foreign functions and buffers of the CPU; text of its compiler;
#: products of which jax computes one half on GPUs.
_WORDS = (
    "not dlpack and not device_put_and_get and not lax.empty and not empty and not a_function_of_a_matrix "
    "and not computations_may_close_over_arrays and not out_sharding and not foreign_functions_compute_the_same "
    "and not buffer_callback and not layouts_inside_of_programs and not symmetric_product"
)
#: processes that share the examples of primitives
_SHARES = 5
#: seconds that a process has to end by itself after its time is over
_GRACE = 8
#: at most this many differing tests are named for each part
_NAMED = 60


class Part(NamedTuple):
    """One part: its commands, how many seconds they may take together, and what their output says.

    Attributes:
      variables: of the environment, beside those of `_environment`.
      alone: whether it measures time, so that nothing else may run.
    """

    commands: Sequence[Sequence[str]]
    seconds: int
    read: Reader
    variables: Mapping[str, str] = MappingProxyType({})
    alone: bool = False


def _checks(output: str, folder: Path) -> list[Finding]:
    """The findings that a process of gpu_checks.py printed, a JSON object a line."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def _doctor(output: str, folder: Path) -> list[Finding]:
    start = output.find("{")
    if start < 0:
        return [{"name": "doctor", "ok": False, "detail": output[-400:]}]
    report = json.loads(output[start:])
    findings: list[Finding] = [
        {"name": f"{row['name']} on {row['device']}", "ok": row["ok"], "detail": row["error"] or row["difference"]}
        for row in report["checks"]
    ]
    findings += [{"name": device["name"], "ok": None, "detail": device["kind"]} for device in report["devices"]]
    return findings


def _tests(output: str, folder: Path) -> list[Finding]:
    """One finding for all tests that passed, and one for each that did not."""
    counts = dict.fromkeys(("PASSED", "SKIPPED", "XFAIL"), 0)
    failed = []
    for word, name in re.findall(r"\b(PASSED|SKIPPED|XFAIL|FAILED|ERROR) (\S+::.*)", output):
        if word in counts:
            counts[word] += 1
        elif name not in failed:
            failed.append(name)
    detail = ", ".join(f"{count} {word.lower()}" for word, count in counts.items())
    reasons = dict(re.findall(r"^(?:FAILED|ERROR) (\S+::.*?) - (.*)$", output, re.MULTILINE))
    rows = [{"name": name.split("tests/")[-1], "ok": False, "detail": reasons.get(name, "")} for name in failed]
    whole = None if counts["PASSED"] else False
    return [{"name": f"{counts['PASSED'] + len(failed)} tests", "ok": whole, "detail": detail}, *rows]


def _bench(name: str, output: str, folder: Path) -> list[Finding]:
    path = folder / name / "bench.json"
    if not path.exists():  # the time was over before the last case
        return [{"name": "bench", "ok": False, "detail": output[-400:]}]
    findings = []
    for name, row in json.loads(path.read_text())["cases"].items():
        detail: Any = row["errors"]
        if not detail:
            detail = {f"{library} ms": round(1e3 * seconds, 4) for library, seconds in row["best"].items()}
            detail["ratio"] = round(row["ratio"], 3)
        findings.append({"name": name, "ok": False if row["errors"] else None, "detail": detail})
    return findings


def _train(output: str, folder: Path) -> list[Finding]:
    last = [line for line in output.splitlines() if line.strip()][-3:]
    return [{"name": "last lines", "ok": None, "detail": " | ".join(last)}]


def parts(folder: Path) -> dict[str, Part]:
    """All parts, by name."""
    python = sys.executable
    check = [python, "scripts/gpu_checks.py"]
    shares = [[*check, "primitives", f"{share}/{_SHARES}"] for share in range(_SHARES)]
    tests = [python, "-m", "pytest", "packages/core/tests/conformance", "packages/core/tests/unit/test_registry.py"]
    tests += ["-v", "--tb=line", "-p", "no:cacheprovider", "-n", "13", "--timeout=60", "-W", "ignore", "-k", _WORDS]
    tests += [f"--ignore-glob={pattern}" for pattern in _LEFT_OUT]
    measure = [python, "-m", "benchmarks", "--platform", "cuda", "--rounds", "4", "--out"]
    tables = [*measure, str(folder / "bench"), *_TABLES, *(f"kernels/{name}" for name in _KERNELS)]
    gpt2 = [*measure, str(folder / "gpt-2"), "run/blocks of GPT-2 small"]
    train = [python, "-m", "phlox_examples"]
    # A GPU rounds the factors of products of float32 to 10 bits unless it is told not to.
    precise = {f"{library}_DEFAULT_MATMUL_PRECISION": "highest" for library in ("JAX", "PHLOX")}
    # Without the search for the fastest kernels, which takes minutes for each library.
    untuned = {"XLA_FLAGS": "--xla_gpu_autotune_level=0"}
    several = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8 --xla_gpu_autotune_level=0"}
    a_tenth = {"PHLOX_TEST_CASES": "0.3", "JAX_PLATFORMS": "cuda,cpu"}
    return {
        "doctor": Part([[python, "-m", "phlox", "doctor", "--json"]], 60, _doctor),
        "agreement": Part([[*check, "agreement"]], 150, _checks),
        "primitives": Part(shares, 150, _checks, several),
        "tests": Part([tests], 200, _tests, {**several, **a_tenth, **precise}),
        **{
            f"train {name}": Part([[*train, name, "--quick", "--out", str(folder / name)]], 75, _train)
            for name in ("selu-mlp", "cnn", "gpt")
        },
        "devices": Part([[*check, "devices"]], 60, _checks, alone=True),
        "bench": Part([tables], 70, functools.partial(_bench, "bench"), alone=True),
        "gpt-2": Part([gpt2], 120, functools.partial(_bench, "gpt-2"), untuned, alone=True),
    }


#: the tables of the book, and a training step of a small network
_TABLES = (
    "run/SELU 1e6",
    "eager/SELU op by op",
    "run/x*x + 2x, 5000x5000",
    "devices/pmap x + 1",
    "eager/add",
    "networks/gpt: step",
)
_KERNELS = (
    "sort 1e6",
    "argsort 1e6",
    "top_k of rows",
    "argmax rows",
    "cumsum 1e6",
    "cumsum rows",
    "sum rows",
    "var rows",
    "softmax rows",
    "segment_sum",
    "sin 1e6",
    "tanh 1e6",
    "gelu 1e6",
    "gather 1e6",
    "transpose",
    "fft 16 x 65536",
    "conv 3x3, NCHW",
    "cholesky 200",
    "qr 200",
    "eigh 200",
    "uniform 1e6",
    "searchsorted",
)


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    fixed = {
        "PHLOX_PLATFORMS": "cuda,cpu",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # several processes share the GPU
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "MPLBACKEND": "agg",
    }
    return {**os.environ, **fixed, **more}


class Run:
    """The processes of a part that has started."""

    def __init__(self, name: str, part: Part, folder: Path):
        self.name, self.part, self.folder = name, part, folder
        self.start = time.monotonic()
        stem = name.replace(" ", "-")
        self.logs = [folder / f"{stem}-{number}.log" for number in range(len(part.commands))]
        environment = _environment(part.variables)
        self.processes = [self._started(*pair, environment) for pair in zip(part.commands, self.logs, strict=True)]

    def _started(self, command: Sequence[str], log: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        with log.open("w") as file:
            # In a session of its own, so that the processes that it starts can be ended with it.
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    def finish(self) -> dict[str, Any]:
        """Waits for the processes up to the limit of the part, and reads what they printed."""
        findings: list[Finding] = []
        for process, log in zip(self.processes, self.logs, strict=True):
            left = self.start + self.part.seconds - time.monotonic()
            try:
                status: Any = process.wait(max(left, 0.1))
            except subprocess.TimeoutExpired:
                _end(process)
                status = f"ended after {self.part.seconds} s"
            output = log.read_text(errors="replace")
            findings += self.part.read(output, self.folder)
            if status != 0 and not any(row["ok"] is False for row in findings):
                findings.append({"name": "status", "ok": False, "detail": f"{status}: {output[-300:]}"})
        seconds = round(time.monotonic() - self.start, 1)
        return {"part": self.name, "seconds": seconds, "findings": findings}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and those that it has started; pytest first gets the time to print what it found."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.send_signal(signal.SIGINT)
        process.wait(_GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _lines(result: dict[str, Any]) -> list[str]:
    failed = [row for row in result["findings"] if row["ok"] is False]
    passed = sum(row["ok"] is True for row in result["findings"])
    lines = [f"{result['part']:16} {result['seconds']:6.1f} s  {passed} ok, {len(failed)} failed"]
    lines += [f"    {row['name']}: {row['detail']}" for row in result["findings"] if row["ok"] is None]
    lines += [f"    FAILED {row['name']}: {str(row['detail'])[:240]}" for row in failed[:_NAMED]]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/gpu", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the results")
    parser.add_argument("--list", action="store_true", help="name the parts and stop")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    known = parts(options.out.resolve())
    if options.list:
        print(*known, sep="\n")
        return 0
    if unknown := set(options.parts) - set(known):
        parser.error(f"no part is called {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    chosen = {name: part for name, part in known.items() if not options.parts or name in options.parts}
    results = []
    together = [name for name, part in chosen.items() if not part.alone]
    groups = [together, *([name] for name, part in chosen.items() if part.alone)]
    for group in groups:
        for run in [Run(name, chosen[name], options.out) for name in group]:
            result = run.finish()
            results.append(result)
            print(*_lines(result), sep="\n", flush=True)
            (options.out / "gpu.json").write_text(json.dumps(results, indent=1))
    return int(any(row["ok"] is False for result in results for row in result["findings"]))


if __name__ == "__main__":
    sys.exit(main())
