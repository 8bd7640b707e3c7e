"""Running a program in a fresh Python process, with the sources of phlox on its path."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"

BLOCK_JAX = """
import sys
class _NoJax:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "jax":
            raise ImportError("jax is blocked: " + name)
sys.meta_path.insert(0, _NoJax())
"""


def environment(**changes):
    """The environment of this process with some variables set, or removed (None)."""
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}
    env.update({name: value for name, value in changes.items() if value is not None})
    return {name: value for name, value in env.items() if changes.get(name, "") is not None}


def run(program, *, check=True, options=(), **changes):
    """Runs `program`; returns the finished process, its output as text."""
    done = subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(program)],
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=300,
    )
    if check and done.returncode:
        raise AssertionError(f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def start(program, **changes):
    """Starts `program` and returns the running process."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=environment(**changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
