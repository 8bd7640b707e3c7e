"""Which modules may import which. The rules stand in pyproject.toml, under [tool.importlinter]."""

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def test_imports_follow_the_rules():
    # In a process of its own: the linter prints to the stream that was there when it was imported.
    run = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(sys.argv[1], no_cache=True))"
    done = subprocess.run(
        [sys.executable, "-c", run, str(REPOSITORY / "pyproject.toml")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"an import against the rules\n{done.stdout}{done.stderr}"
