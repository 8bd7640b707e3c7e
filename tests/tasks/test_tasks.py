"""Twelve tasks with phlox, flax nnx, equinox, Keras and Lightning: all run, and docs/networks.md counts their lines.

With PHLOX_TEST_CASES below 1 they run in phlox and in one of the others, another one each day.
"""

import ast
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tasks.run_tasks import GPT2_TASKS

HERE = Path(__file__).parent
DOCS = Path(__file__).resolve().parents[2] / "docs" / "networks.md"
LIBRARIES = ("phlox", "nnx", "equinox", "keras", "lightning")
OTHERS = LIBRARIES[1:]
if float(os.environ.get("PHLOX_TEST_CASES", "1")) < 1:
    OTHERS = (OTHERS[datetime.date.today().toordinal() % len(OTHERS)],)
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
    "load_weights": "load Hugging Face weights",
    "generate": "generate",
}


def line_counts(library):
    """The lines of code of each task of a file, without blank lines and comments."""
    text = (HERE / f"{library}_tasks.py").read_text()
    nodes = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}

    def uses(name):
        """The name of a definition, and the names of the definitions that it uses, at any depth."""
        names = {node.id for node in ast.walk(nodes[name]) if isinstance(node, ast.Name)} & nodes.keys()
        return {name}.union(*(uses(other) for other in names - {name}))

    def count(name):
        rows = text.splitlines()[nodes[name].lineno - 1 : nodes[name].end_lineno]
        return sum(bool(row.strip()) and not row.strip().startswith("#") for row in rows)

    # Of tasks with a model of their own, the definitions that they use are counted too.
    return {name: sum(map(count, uses(name) if name in GPT2_TASKS else [name])) for name in TASKS}


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    """The folder of a small GPT-2, with `expected.npz`. Made by a process, as torch and jax need not share one."""
    folder = tmp_path_factory.mktemp("gpt2")
    command = [sys.executable, str(HERE / "task_gpt2.py"), str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr[-4000:]
    return folder


def run(library, folder, gpt2, names):
    """The results of tasks, in a process of its own."""
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, str(HERE / "run_tasks.py"), library, str(gpt2), str(folder / "results.json"), *names]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads((folder / "results.json").read_text())


@pytest.mark.parametrize("library", [LIBRARIES[0], *OTHERS])
def test_all_tasks_run(library, tmp_path, gpt2):
    # Lightning starts the program again for each further device.
    alone = ["fsdp"] if library == "lightning" else []
    results = run(library, tmp_path, gpt2, [name for name in TASKS if name not in alone])
    results |= run(library, tmp_path, gpt2, alone) if alone else {}
    assert results["own_layer"] == [261, 10] and results["surgery"] == [261, 3] and results["log_figures"] >= 6
    for name in ("validation", "best_and_resume"):
        assert results[name] > 0.8, (name, results)
    # Their averages begin with the first parameters, which 120 steps of a decay of 0.999 do not forget.
    assert results["ema"] < 0.5 if library in ("keras", "lightning") else results["ema"] > 0.8
    assert results["mixed_precision"] < 1 and results["two_optimizers"] < 1.5
    assert results["lora"][0] < 1 and results["lora"][1] == [64, 128]
    # PyTorch splits the first axis of (outputs, inputs).
    assert results["fsdp"][0] < 1 and results["fsdp"][1] == ([64, 16] if library == "lightning" else [8, 128])
    expected = np.load(gpt2 / "expected.npz")
    np.testing.assert_allclose(results["load_weights"], expected["logits"], rtol=0, atol=1e-4)
    np.testing.assert_array_equal(results["generate"], expected["texts"])


def test_the_page_counts_these_lines():
    rows = re.findall(r"^\| (.+) " + r"\| (\d+) " * len(LIBRARIES) + r"\|$", DOCS.read_text(), re.MULTILINE)
    counts = {library: line_counts(library) for library in LIBRARIES}
    expected = [(title, *(str(counts[library][name]) for library in LIBRARIES)) for name, title in TASKS.items()]
    assert rows == expected, "\n".join("| " + " | ".join(row) + " |" for row in expected)
    fewest = {name: min(counts[library][name] for library in LIBRARIES[1:]) for name in TASKS}
    assert sum(counts["phlox"][name] <= fewest[name] for name in TASKS) >= 9
    assert sum(counts["phlox"][name] < fewest[name] for name in TASKS) >= 7
