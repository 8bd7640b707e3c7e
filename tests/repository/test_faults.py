"""Programs in which one call of jaxlib or of the file system fails, see packages/core/tests/faults.py.

After each fault the error says what happened, nothing is lost, and the program runs to its end in the same process.
Every n-th call of a program fails in a test, another n-th each day: PHLOX_TEST_CASES=10 lets each of its first 200 calls
fail, which takes five minutes.
"""

import datetime
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PROGRAM = REPOSITORY / "packages" / "core" / "tests" / "fault_programs.py"
# At most 20, as one call of the shortest program must fail, too.
STRIDE = min(20, max(1, round(10 / float(os.environ.get("PHLOX_TEST_CASES", "1")))))


def run(program, first, stride):
    paths = [str(REPOSITORY / "packages" / name / "src") for name in ("core", "compat", "nn", "optim")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, str(PROGRAM.parent)]), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(PROGRAM), program, str(first), str(stride)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.parametrize("program", ["train", "checkpoint", "load", "cache", "export"])
def test_a_call_fails(program):
    first = 1 + datetime.date.today().toordinal() % STRIDE
    done = run(program, first, STRIDE)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "0 promises broken" in done.stdout
    assert f"{program}: 0 faults" not in done.stdout


def test_broken_promises_are_reported():
    done = run("careless", 1, 1)
    assert done.returncode == 1
    assert "batched_device_put" in done.stdout
    assert "a wrong result" in done.stdout
    assert "a transfer has failed" in done.stdout
