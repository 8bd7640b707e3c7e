"""``python -m phlox debug``: the prompt opens at the first nan, in a script and under pytest."""

import os
import subprocess
import sys

PROGRAM = """
import phlox
import phlox.numpy as jnp


def cell(carry, x):
    carry = carry - x
    root = jnp.sqrt(carry)
    return carry, root


@phlox.jit
def run(xs):
    last, roots = phlox.lax.scan(cell, 1.5, xs)
    return roots.sum()
"""


def debug(folder, commands, *arguments):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in sys.path if p)}
    return subprocess.run(
        [sys.executable, "-m", "phlox", "debug", *arguments],
        cwd=folder, env=env, input="\n".join(commands), capture_output=True, text=True,
    )  # fmt: skip


def test_a_script(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM + "import sys\nprint(sys.argv)\nrun(jnp.ones(4))\n")
    done = debug(
        tmp_path, ["backward", "carry", "plot carry", "up", "list", "down 0", "f 3", "it + 1", "q"], "train.py", "-x"
    )
    out = done.stdout
    assert done.returncode == 1 and "['train.py', '-x']" in out, done.stderr
    assert "nan comes from train.py:8 (cell): root = jnp.sqrt(carry)" in out and "turn 1 of scan" in out
    assert "Array(-0.5, dtype=float32)" in out  # carry in turn 1
    assert "->     last, roots" in out  # the loop, after up
    assert "Array(1.70710" in out  # root + 1 in turn 0


def test_wrong_lines_do_not_end_the_session(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM + "run(jnp.ones(4))\n")
    lines = [
        "forward abc",
        "down x",
        "plot 'a'",
        "plot jnp.zeros(0)",
        "plot jnp.array([3 + 4j])",
        "x = 3",
        "40 + 2",
        "[carry.shape + (i,) for i in range(3)]",
        "q",
    ]
    out = debug(tmp_path, lines, "train.py").stdout
    assert "ValueError: invalid literal" in out and "ArgumentError" in out and "SyntaxError" in out
    assert "(phlox) [(0,), (1,), (2,)]" in out
    assert "no elements" in out and "5.5" in out and "(phlox) 42" in out  # a bin around the absolute value 5


def test_under_pytest(tmp_path):
    (tmp_path / "model.py").write_text(PROGRAM)
    (tmp_path / "test_model.py").write_text("import model\n\ndef test_run():\n    model.run(model.jnp.ones(4))\n")
    done = debug(tmp_path, ["print carry", "continue"], "-m", "pytest", "-p", "no:cacheprovider", "test_model.py")
    assert "Array(-0.5, dtype=float32)" in done.stdout and "1 failed" in done.stdout, done.stderr


def test_an_error_opens_pythons_debugger(tmp_path):
    (tmp_path / "wrong.py").write_text("import phlox.numpy as jnp\nshape = 3\njnp.ones(shape) @ jnp.ones(4)\n")
    done = debug(tmp_path, ["p shape", "q"], "wrong.py")
    assert done.returncode == 1 and "ShapeError" in done.stderr and "(Pdb) " in done.stdout


def test_a_program_without_nan_ends_as_ever(tmp_path):
    (tmp_path / "right.py").write_text("import phlox.numpy as jnp\nprint(float(jnp.sqrt(4.0)))\nraise SystemExit(3)\n")
    done = debug(tmp_path, [], "right.py")
    assert done.returncode == 3 and done.stdout == "2.0\n"


def test_the_program_ends_as_in_python(tmp_path):
    (tmp_path / "stop.py").write_text("import sys\nsys.exit('no data')\n")
    done = debug(tmp_path, [], "stop.py")
    assert done.returncode == 1 and done.stderr == "no data\n"
