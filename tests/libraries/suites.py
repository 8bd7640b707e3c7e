"""Libraries' own test suites, on the real jax and on phlox; part of `run`.

A suite is taken from the installed distribution if that carries it, otherwise from the sdist of the same version, which
pip downloads into the folder `CACHE`, outside of the repository. Each file of tests is a process of its own. What the
real jax answers is kept in `CACHE` too, because it does not change.
"""

import fnmatch
import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

CACHE = Path(os.environ.get("PHLOX_LIBRARY_SUITES", Path.home() / ".cache" / "phlox-library-suites"))
REPOSITORY = Path(__file__).parents[2]


class Suite(NamedTuple):
    """Files of a distribution, and those left out, with the reason.

    `environment` is set for the tests; only files whose text `contains` matches, and tests with the mark `mark`, are run.
    `conftest` is the source of a module that the tests import, where the distribution leaves it out.
    """

    distribution: str
    files: tuple[str, ...]
    left_out: Mapping[str, str] = MappingProxyType({})
    environment: Mapping[str, str] = MappingProxyType({})
    contains: str = ""
    mark: str = ""
    conftest: str = ""


_KERAS_CONFTEST = """\
import os
import pytest

def skip_if_backend(backend, reason):
    return pytest.mark.skipif(backend == os.environ["KERAS_BACKEND"], reason=reason)
"""

SUITES = {
    "blackjax": Suite("blackjax", ("tests/*test_*.py",)),
    "brax": Suite("brax", ("brax/*_test.py",)),
    "chex": Suite("chex", ("chex/*_test.py",)),
    "clu": Suite("clu", ("clu/*_test.py",)),
    "distrax": Suite("distrax", ("distrax/*_test.py",)),
    "dm-pix": Suite("dm_pix", ("dm_pix/*_test.py",)),
    "dynamax": Suite("dynamax", ("dynamax/*_test.py",)),
    "e3nn": Suite("e3nn-jax", ("tests/*_test.py",)),
    "einops": Suite("einops", ("einops/tests/test_*.py",)),
    "flashbax": Suite("flashbax", ("flashbax/*_test.py",)),
    "flax-core": Suite("flax", ("tests/core/*_test.py", "tests/*_test.py")),
    "flax-linen": Suite("flax", ("tests/linen/*_test.py",)),
    "flax-nnx": Suite("flax", ("tests/nnx/*_test.py", "tests/nnx/test_*.py")),
    "flowjax": Suite("flowjax", ("tests/*test_*.py",)),
    "haiku": Suite("dm-haiku", ("haiku/*_test.py",)),
    "keras": Suite(
        "keras",
        (
            "keras/src/backend/common/*_test.py",
            "keras/src/backend/jax/*_test.py",
            "keras/src/layers/*_test.py",
            "keras/src/losses/*_test.py",
            "keras/src/metrics/*_test.py",
            "keras/src/models/*_test.py",
            "keras/src/ops/*_test.py",
            "keras/src/optimizers/*_test.py",
            "keras/src/random/*_test.py",
            "keras/src/trainers/*_test.py",
        ),
        environment={"KERAS_BACKEND": "jax"},
        conftest=_KERAS_CONFTEST,
    ),
    "interpax": Suite("interpax", ("tests/test_*.py",)),
    "jax-cfd": Suite("jax-cfd", ("jax_cfd/*_test.py",)),
    "jax-dataclasses": Suite("jax_dataclasses", ("tests/test_*.py",)),
    "jmp": Suite("jmp", ("jmp/*_test.py",)),
    "jraph": Suite("jraph", ("jraph/_src/*_test.py", "jraph/experimental/*_test.py")),
    "mctx": Suite("mctx", ("mctx/*_test.py",)),
    "mjx": Suite("mujoco-mjx", ("mujoco/mjx/*_test.py",)),
    "numpyro": Suite("numpyro", ("test/test_*.py",)),
    "optax": Suite("optax", ("optax/*_test.py",)),
    "penzai": Suite("penzai", ("tests/*_test.py",)),
    "quax": Suite("quax", ("tests/*test_*.py",)),
    "rax": Suite("rax", ("rax/*_test.py",)),
    "rlax": Suite("rlax", ("rlax/*_test.py",)),
    "tinygp": Suite("tinygp", ("tests/*test_*.py",)),
    "tree-math": Suite("tree-math", ("tree_math/*_test.py",)),
    # The tests that take an array module, with jax.numpy; SciPy jits the functions.
    "scipy": Suite(
        "scipy",
        ("scipy/*/tests/test_*.py",),
        environment={"SCIPY_ARRAY_API": '["jax.numpy"]'},
        contains="make_xp_|lazy_xp|uses_xp_capabilities",
        mark="array_api_backends",
    ),
}


def matches(path, suite):
    """Whether a path in a distribution is a file of the suite, of a folder that no other suite has."""
    others = [p for s in SUITES.values() if s.distribution == suite.distribution and s is not suite for p in s.files]
    wanted = [pattern for pattern in suite.files if fnmatch.fnmatch(path, pattern)]
    longer = [pattern for pattern in others if fnmatch.fnmatch(path, pattern)]
    return bool(wanted) and len(max(wanted, key=len)) >= len(max(longer, key=len, default=""))


def files_of(suite):
    """The folder that holds the suite, and the paths of its files in it."""
    installed = importlib.metadata.distribution(suite.distribution)
    paths = [str(path) for path in installed.files or () if matches(str(path), suite)]
    root = Path(installed.locate_file(""))
    if not paths:
        root = _sdist(suite.distribution, installed.version)
        paths = [str(path.relative_to(root)) for path in root.rglob("*.py")]
        paths = [path for path in paths if matches(path, suite)]
    paths = [path for path in paths if re.search(suite.contains, (root / path).read_text())]
    left = [path for path in paths if any(fnmatch.fnmatch(path, pattern) for pattern in suite.left_out)]
    return root, sorted(set(paths) - set(left)), left


def _sdist(distribution, version):
    """The unpacked sdist."""
    folder = CACHE / f"{distribution}-{version}"
    if not folder.exists():
        with tempfile.TemporaryDirectory() as download:
            pip = [sys.executable, "-m", "pip", "download", "--no-binary", ":all:", "--no-deps", "--dest", download]
            subprocess.run([*pip, f"{distribution}=={version}"], check=True, stdout=subprocess.DEVNULL)
            unpacked = Path(tempfile.mkdtemp(dir=_made(CACHE)))
            with tarfile.open(next(Path(download).glob("*.tar.gz"))) as archive:
                archive.extractall(unpacked, filter="data")
        next(unpacked.iterdir()).rename(folder)
        unpacked.rmdir()
    return folder


def _made(folder):
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def outcomes(suite, root, path, on_phlox, options, tests=None):
    """The outcome of each test of a file, or of those in `tests`: ``{test: (outcome, message)}``."""
    command = [sys.executable, *(["-m", "phlox.as_jax"] if on_phlox else []), "-m", "pytest", str(root / path), "-q"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        if suite.conftest:
            (Path(folder) / "conftest.py").write_text(suite.conftest)
        plugins = [str(Path(__file__).parent)] if options.sample or tests else []
        paths = [folder, *plugins, *map(str, REPOSITORY.glob("packages/*/src")), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        environment.update(suite.environment)
        switches = [f"--junitxml={report}", "-p", "no:cacheprovider", f"--rootdir={root}", "-W", "ignore"]
        switches += ["-m", suite.mark] if suite.mark else []
        if plugins:
            switches += ["-p", "sampling"]
            environment["LIBRARY_TESTS"] = str(options.sample or -1)
            environment["LIBRARY_TEST_SECONDS"] = str(options.seconds)
        if tests:
            environment["LIBRARY_TEST_NAMES"] = json.dumps(tests)
        try:
            done = subprocess.run(
                [*command, *switches],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=2 * options.seconds if plugins else options.seconds,
            )
            said = (done.stdout + done.stderr)[-400:]
        except subprocess.TimeoutExpired:
            said = f"more than {options.seconds} s"
        if not report.exists():
            return {path: ("error", said)}
        cases = ElementTree.parse(report).getroot().iter("testcase")
        return dict(_outcome(case) for case in cases) or {path: ("error", said)}


def _outcome(case):
    name = f"{case.get('classname')}.{case.get('name')}"
    for kind in ("failure", "error", "skipped"):
        if (found := case.find(kind)) is not None:
            return name, (kind, (found.get("message") or "").strip())
    return name, ("passed", "")


def _on_jax(suite, root, path, options):
    """The outcomes on the real jax, from the cache if they are known."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in (suite.distribution, "jax", "jaxlib", "numpy")]
    which = [suite.mark, f"sample of {options.sample}" if options.sample else ""]
    key = hashlib.sha256("\n".join(filter(None, [path, *versions, *which])).encode()).hexdigest()[:16]
    known = _made(CACHE / "on jax") / f"{Path(path).stem}-{key}.json"
    if known.exists():
        return json.loads(known.read_text())
    found = outcomes(suite, root, path, False, options)
    if any(outcome == "passed" for outcome, _ in found.values()):  # not if it took too long, or could not be imported
        known.write_text(json.dumps(found))
    return found


def _expected_from_phlox(suite, root, path, options, actual):
    """The outcomes on phlox, but for tests that did not pass: these are run on the real jax."""
    failures = [test for test, (outcome, _) in actual.items() if outcome in ("failure", "error")]
    if not failures:
        return actual
    if path in actual:  # phlox ran no test of the file
        return outcomes(suite, root, path, False, options)
    on_jax = outcomes(suite, root, path, False, options, failures)
    return actual | {test: on_jax.get(test, ("missing", "")) for test in failures}


def compare_all(options):
    """Runs all suites, or those that are named; the tests that differ by suite."""
    if options.markdown:
        print(
            "| suite | version | files | passed on jax | of these on phlox | which differ |\n|---|---|---|---|---|---|"
        )
    return {name: compare(name, options) for name in options.names or SUITES}


def compare(name, options):
    """Runs a suite on both; prints its row, and returns the tests that differ, with reasons."""
    suite = SUITES[name]
    root, paths, left_out = files_of(suite)
    paths = [path for path in paths if not options.files or any(part in path for part in options.files)]
    passed, differences = 0, {}
    for path in paths:
        expected = {} if options.phlox_first else _on_jax(suite, root, path, options)
        actual = outcomes(suite, root, path, True, options)
        if options.phlox_first:
            expected = _expected_from_phlox(suite, root, path, options, actual)
        tests = sorted(test for test, (outcome, _) in expected.items() if outcome == "passed")
        failures = {test: _reason(test, actual) for test in tests if actual.get(test, ("missing",))[0] != "passed"}
        passed += len(tests)
        differences |= failures
        print(f"  {path}: {len(tests) - len(failures)} of {len(tests)}", file=sys.stderr, flush=True)
        for test, reason in failures.items():
            print(f"    {test}: {reason}", file=sys.stderr, flush=True)
    version = importlib.metadata.version(suite.distribution)
    which = f"{len(paths)} files" + (f", without {', '.join(Path(path).name for path in left_out)}" if left_out else "")
    short = [re.sub(r"^[^\[]*\.", "", test) for test in differences]
    same = passed - len(differences)
    if options.markdown:
        print(f"| {name} | {version} | {which} | {passed} | {same} | {', '.join(short)} |", flush=True)
    else:
        text = f"{passed:5d} on jax {same:5d} of them on phlox  {' '.join(short[:8])}"
        print(f"{name:12s} {version:10s} {which:10s} {text}", flush=True)
    return [f"{test}: {reason}" for test, reason in differences.items()]


def _reason(test, actual):
    """The outcome of a test on phlox, with its message; of its file if the test did not run."""
    outcome, message = actual.get(test, ("missing", next(iter(actual.values()), ("", ""))[1]))
    return f"{outcome}: {' | '.join(line for line in message.splitlines() if line.strip())[:300]}"
