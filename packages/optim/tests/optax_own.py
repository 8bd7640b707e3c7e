"""Optax's own test files, which its wheel ships, on phlox: they are loaded like the rest of the private copy.

    python packages/optim/tests/optax_own.py [--jax] [FILE ...]

runs all of them (20 minutes on two cores), or those named, such as ``losses/_ranking_test``; a process for each file, as
the environment of the tests has what they need. It prints what fails and a table in Markdown; ``--jax`` runs them on
real jax as well, and counts what passes there and not here.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import unittest
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve()
COPY = {"phlox": "phlox.adopted.optax", "jax": "optax"}


def all_files():
    """The test files of the installed optax: their paths in it, without ``.py``."""
    folder = Path(importlib.util.find_spec("optax").submodule_search_locations[0])
    return sorted(str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*_test.py"))


class Outcomes(unittest.TestResult):
    """What became of each test: passed, failed or skipped, and the first failures as text."""

    def __init__(self):
        super().__init__()
        self.of = {}
        self.texts = {}

    def startTest(self, test):
        super().startTest(test)
        self.of[_name(test)] = "passed"

    def _failed(self, test, error):
        self.of[_name(test)] = "failed"
        self.texts.setdefault(_name(test), self._exc_info_to_string(error, test))

    def addError(self, test, err):
        self._failed(test, err)

    def addFailure(self, test, err):
        self._failed(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._failed(test, err)

    def addSkip(self, test, reason):
        self.of[_name(test)] = "skipped"


def _name(test):
    """Class and method of a test, without module and addresses, so that both libraries have the same names."""
    return ".".join(re.sub(r" at 0x[0-9a-f]+", "", test.id()).split(".")[-2:])


def run(file, on="phlox"):
    """Runs the tests of one file in this process: ``(outcome by test, text by failed test)``."""
    from absl import flags

    if not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()
    module = importlib.import_module(".".join([COPY[on], *file.split("/")]))
    result = Outcomes()
    unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    return result.of, result.texts


def run_apart(file, on):
    """The same in a process of its own. A file that cannot be imported has the outcome of one failed test."""
    code = f"import json, optax_own; print(json.dumps(optax_own.run({file!r}, {on!r})))"
    paths = [str(HERE.parent), *(str(HERE.parents[2] / package / "src") for package in ("core", "optim")), *sys.path]
    flags = "--xla_backend_optimization_level=0 --xla_force_host_platform_device_count=8"
    environment = {"XLA_FLAGS": flags, **os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    if done.returncode:
        return {"import": "failed"}, {"import": done.stderr[-2000:]}
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description="Optax's own test files on phlox.")
    parser.add_argument("files", nargs="*", default=all_files())
    parser.add_argument("--jax", action="store_true", help="on real jax too, and compare")
    options = parser.parse_args()
    libraries = ["phlox", "jax"] if options.jax else ["phlox"]
    with ThreadPoolExecutor(2) as pool:
        found = {on: list(pool.map(lambda file, on=on: run_apart(file, on), options.files)) for on in libraries}
    for file, (_, texts) in zip(options.files, found["phlox"], strict=True):
        for name, text in texts.items():
            print(f"{file} {name}\n{text}")
    print("| file | " + " | ".join(f"on {on}: passed, failed, skipped" for on in libraries) + " |")
    print("|---" * (1 + len(libraries)) + "|")
    lost = []
    for index, file in enumerate(options.files):
        cells = []
        for on in libraries:
            counts = Counter(found[on][index][0].values())
            cells.append(", ".join(str(counts[kind]) for kind in ("passed", "failed", "skipped")))
        print(f"| {file} | " + " | ".join(cells) + " |")
        if options.jax:
            here, there = (found[on][index][0] for on in libraries)
            lost += [f"{file} {name}" for name in there if there[name] == "passed" and here.get(name) != "passed"]
    if options.jax:
        print(f"\nPass on jax and not on phlox: {len(lost)}", *lost, sep="\n")
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
