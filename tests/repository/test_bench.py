"""./bench measures both libraries, in turns, and says when something has grown beyond measure."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))  # the folder of the benchmarks is no package of the repository

from benchmarks.case import PROGRAMS, Case, load
from benchmarks.measure import Measurement
from benchmarks.report import GROSS, LONGER, gross
from benchmarks.worker import total


def test_a_case_is_measured_and_written_down(tmp_path):
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "--rounds",
        "2",
        "--out",
        str(tmp_path),
        "dispatch/one",
        "run/SELU 1e6",
    ]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, env=dict(os.environ))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    found = json.loads((tmp_path / "bench.json").read_text())
    case = found["cases"]["dispatch/one array"]
    assert case["errors"] == {}
    assert case["ratio"] == case["best"]["phlox"] / case["best"]["jax"] > 0
    assert set(found["programs"]["SELU 1e6"]) == {"jax", "phlox"}
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")
    assert "one array" in done.stdout


def test_every_case_has_a_name_of_its_own_and_says_what_it_is():
    cases = load()
    assert len(cases) > 60
    assert all(name == case.name and "/" in name for name, case in cases.items())
    assert all(f"run/{name}" in cases for name in PROGRAMS)
    budgets = {case.group for case in cases.values() if case.budget is not None}
    assert {"start", "trace", "lower", "dispatch", "eager", "run", "devices"} <= budgets


def test_growth_beyond_measure_is_found():
    same = {"f": {"jax": dict.fromkeys(GROSS, 100.0), "phlox": dict.fromkeys(GROSS, 50.0)}}
    assert gross(same) == []
    same["f"]["phlox"]["equations"] = 200.0
    (told,) = gross(same)
    assert told.startswith("f: 200 equations, jax has 100")


def test_forms_that_are_longer_on_cpus_have_a_bound_of_their_own():
    (name, bounds), *_ = LONGER.items()
    ((what, most),) = bounds.items()
    by = {"jax": dict.fromkeys(GROSS, 100.0), "phlox": dict.fromkeys(GROSS, 50.0)}
    by["phlox"][what] = 100 * most - 1
    assert gross({name: by}) == [] != gross({"another": by})
    by["phlox"][what] = 100 * most + 1
    assert len(gross({name: by})) == 1
    load()
    assert set(LONGER) <= set(PROGRAMS)


def test_results_are_compared_and_turns_are_paired():
    m = Measurement(Case("programs/f", None, same=("phlox", "numpy")))
    for mine, theirs in (([1.0, 9.0, 2.0], [1.0]), ([6.0], [2.0]), ([4.0], [1.0])):
        m.add("phlox", mine, total({"a": [np.ones(3), -1], "b": (2.0,)}))
        m.add("jax", theirs, 6.0)
        m.add("numpy", [1.0], 5.9)
    m.compare()
    assert list(m.errors) == ["numpy"]
    assert m.paired() == 3.0 and m.ratio() == 1.0


def test_the_model_of_scaling():
    """The constants are found again in times that follow the model, and all-reduces in the text of a program."""
    from benchmarks import scaling

    samples = [
        (n, size, {"step": 1.0 + scaling.cost(n, size, 1e-4, 2e-9), "compute": 1.0})
        for n in (2, 4)
        for size in (1 << 18, 1 << 20, 1 << 22)
    ]
    latency, byte = scaling.fit(samples)
    assert latency == pytest.approx(1e-4) and byte == pytest.approx(2e-9)
    text = """
  %all-reduce.7 = (f32[512,512]{1,0}, f32[512]{0}) all-reduce(%a, %b), channel_id=1
  ROOT %all-reduce.8 = f32[] all-reduce(%c), channel_id=2
"""
    assert scaling.wire(text) == [4 * (512 * 512 + 512), 4]
