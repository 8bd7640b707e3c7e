"""The book's programs in the form in which they are printed, with ``import jax``, under ``python -m phlox.as_jax``."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import phlox
import phlox_compat

FOLDER = Path(__file__).parent
#: files whose programs do not compare phlox with jax, so that they can be rewritten to jax alone
PROGRAMS = sorted(
    file.name
    for file in FOLDER.glob("test_*.py")
    if file.name != Path(__file__).name
    and not re.search(r"^import jax|from phlox\.\w*err|_xla", file.read_text(), re.M)
)


def test_there_are_programs():
    assert len(PROGRAMS) > 5


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_book(name, tmp_path):
    text = re.sub(r"\bphlox\b(?!_)", "jax", (FOLDER / name).read_text())
    (tmp_path / name).write_text(text)
    paths = [str(Path(package.__file__).parents[1]) for package in (phlox, phlox_compat)]
    done = subprocess.run(
        [sys.executable, "-m", "phlox.as_jax", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / name)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*paths, *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
