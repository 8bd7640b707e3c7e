"""docs/primitives.md is what scripts/primitives.py writes, and each of JAX's primitives is on one of its lists."""

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


def test_each_of_jax_is_there_or_absent():
    code = """
import jax.extend.core.primitives, jax.lax.linalg, phlox, primitives
from phlox.extend.core import primitives as named
wanted = {n for m in (jax.lax, jax.lax.linalg, jax.extend.core.primitives) for n in dir(m) if n.endswith("_p")}
missing = {n for n in wanted if not hasattr(named, n)}
assert missing <= set(primitives.ABSENT), missing - set(primitives.ABSENT)  # jax 0.10 lacks some of these names
assert not [n for n in primitives.ABSENT if hasattr(named, n)]
assert {n for n in dir(jax.lax) if n.endswith("_p") and not hasattr(phlox.lax, n)} <= missing
"""
    done = run(code)
    assert done.returncode == 0, done.stderr
