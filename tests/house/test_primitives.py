"""docs/primitives.md is what scripts/primitives.py writes, and no primitive is on both of its lists."""

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def run(code):
    """Runs a program beside the script, with what is importable here."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in sys.path if p)}
    folder = REPOSITORY / "scripts"
    return subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True)


def test_the_page_is_up_to_date():
    """In a process of its own: other tests state primitives of theirs."""
    code = "import primitives, sys; sys.exit(primitives.PAGE.read_text() != primitives.page())"
    done = run(code)
    assert done.returncode == 0, f"run python scripts/primitives.py\n{done.stderr}"


def test_absent_ones_are_absent():
    code = (
        "import primitives; from phlox.extend.core import primitives as named;"
        "assert not [name for name in primitives.ABSENT if hasattr(named, name)]"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr
