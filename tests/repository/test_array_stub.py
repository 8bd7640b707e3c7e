"""The stub of operators and methods of arrays says what the objects have; `python scripts/array-stub.py` writes it."""

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
CORE = REPOSITORY / "packages" / "core" / "src"


def test_the_stub_is_up_to_date():
    # In a process of its own: some methods are replaced by their first call.
    environment = {**os.environ, "PYTHONPATH": str(CORE)}
    command = [sys.executable, str(REPOSITORY / "scripts" / "array-stub.py"), "--print"]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    stub = (CORE / "phlox" / "_trace" / "operators.pyi").read_text()
    lines = [[line for line in text.splitlines() if line.strip()] for text in (stub, made.stdout)]
    assert lines[0] == lines[1], "run python scripts/array-stub.py and scripts/lint ruff format"
