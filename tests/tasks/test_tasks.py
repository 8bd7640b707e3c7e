"""Ten tasks of training with phlox, flax nnx, equinox and Keras: all run, and docs/networks.md counts their lines."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DOCS = Path(__file__).resolve().parents[2] / "docs" / "networks.md"
LIBRARIES = ("phlox", "nnx", "equinox", "keras")
TASKS = {
    "own_layer": "own layer",
    "validation": "train with validation",
    "best_and_resume": "best checkpoint and resume",
    "mixed_precision": "mixed precision, with a scaled loss",
    "two_optimizers": "two optimizers by path",
    "lora": "LoRA",
    "fsdp": "FSDP over 8 devices",
    "ema": "EMA beside the model",
    "log_figures": "log to CSV and JSON lines",
    "surgery": "another head, the rest reused",
}
#: what a library does not have
ABSENT = {("keras", "two_optimizers")}
RUN = """
import importlib, json, sys, tempfile
module = importlib.import_module(sys.argv[1] + "_tasks")
results = {}
for name in sys.argv[2:]:
    with tempfile.TemporaryDirectory() as folder:
        results[name] = getattr(module, name)(folder)
print(json.dumps(results, default=list))
"""


def functions(library):
    """The lines of code of each function of a file, without blank ones and comments."""
    text = (HERE / f"{library}_tasks.py").read_text()
    counts = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            rows = text.splitlines()[node.lineno - 1 : node.end_lineno]
            counts[node.name] = sum(bool(row.strip()) and not row.strip().startswith("#") for row in rows)
    return counts


@pytest.mark.parametrize("library", LIBRARIES)
def test_all_tasks_run(library):
    names = [name for name in TASKS if (library, name) not in ABSENT]
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE), *(path for path in sys.path if path)])
    command = [sys.executable, "-c", RUN, library, *names]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
    results = json.loads(run.stdout.splitlines()[-1])
    assert results["own_layer"] == [261, 10] and results["surgery"] == [261, 3] and results["log_figures"] >= 6
    for name in ("validation", "best_and_resume"):
        assert results[name] > 0.8, (name, results)
    # Keras begins its average with the initial parameters, which 120 steps of a decay of 0.999 do not forget.
    assert results["ema"] < 0.5 if library == "keras" else results["ema"] > 0.8
    assert results["mixed_precision"] < 1 and results.get("two_optimizers", 0) < 1.5
    assert results["lora"][0] < 1 and results["lora"][1] == [64, 128]
    assert results["fsdp"][0] < 1 and results["fsdp"][1] == [8, 128]


def test_the_page_counts_these_lines():
    rows = re.findall(r"^\| (.+) \| (\d+) \| (\d+) \| (\d+) \| (\d+|–) \| – \|$", DOCS.read_text(), re.MULTILINE)
    counts = {library: functions(library) for library in LIBRARIES}
    expected = [
        (title, *("–" if (library, name) in ABSENT else str(counts[library][name]) for library in LIBRARIES))
        for name, title in TASKS.items()
    ]
    assert rows == expected, "\n".join("| " + " | ".join(row) + " | – |" for row in expected)
