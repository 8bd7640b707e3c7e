"""docs/new-primitive.md can be followed: in a copy of core its blocks are added, and the tests that it names pass."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "new-primitive.md"
USE = """
import phlox
from phlox import lax
assert float(lax.cube(2.0)) == 8
assert phlox.vmap(phlox.grad(lax.cube))(phlox.numpy.array([1.0, 2.0])).tolist() == [3, 12]
assert abs(float(lax.log_cosh(1000.0)) - 999.3069) < 1e-3
assert phlox.grad(lax.squared_difference, (0, 1))(3.0, 1.0) == (4, -4)
assert float(phlox.grad(phlox.grad(lax.log_cosh))(0.0)) == 1
"""


def test_the_page_can_be_followed(tmp_path):
    core = Path("packages/core")
    shutil.copytree(REPOSITORY / core, tmp_path / core, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "pytest.ini"):
        shutil.copy(REPOSITORY / name, tmp_path)
    text = PAGE.read_text()
    for block in re.findall(r"^```add\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        path, start, added = block.split("\n", 2)
        lines = (tmp_path / path).read_text().splitlines(keepends=True)
        places = [i for i, line in enumerate(lines) if line.startswith(start)]
        assert len(places) == 1, f"{path} has {len(places)} lines that begin with {start!r}"
        lines.insert(places[0] + 1, added)
        (tmp_path / path).write_text("".join(lines))
    (command,) = re.findall(r"^PHLOX_TEST_CASES=all python (-m pytest .*)$", text, re.MULTILINE)
    # Every case, as the page says, and not the third that is run elsewhere.
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / core / "src"), "PHLOX_TEST_CASES": "all"}
    for arguments in (shlex.split(command), ["-c", USE]):
        run = [sys.executable, *arguments]
        done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        assert "no tests ran" not in done.stdout
