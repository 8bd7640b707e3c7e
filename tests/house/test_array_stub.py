"""The stub of operators and methods of arrays says what the objects have; `python scripts/array-stub.py` writes it."""

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "array-stub.py"


def test_the_stub_is_up_to_date():
    loader = SourceFileLoader("array_stub", str(SCRIPT))
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader("array_stub", loader))
    loader.exec_module(script)
    lines = [[line for line in text.splitlines() if line.strip()] for text in (script.STUB.read_text(), script.text())]
    assert lines[0] == lines[1], "run python scripts/array-stub.py and scripts/lint ruff format"
