"""Errors in a notebook: they name the cell, and show the user's frames only."""

import os
import re
from pathlib import Path

import nbclient
import nbformat

REPOSITORY = Path(__file__).parents[2]
CELLS = [
    "import phlox, phlox.numpy as jnp\nx = jnp.ones(3)",
    "def f(x):\n    return x + jnp.ones(4)",
    "\n\n\nphlox.jit(f)(x)",
    "y = 1\nx + jnp.ones(4)",
    "phlox.jitt",
    "phlox.vmap(phlox.jit(lambda x: x * (1 / 0)))(x)",
    "import phlox_nn as nn\nnn.Linear(3, 4).apply(nn.Linear(3, 4).init(phlox.random.key(0)), jnp.ones(5))",
]


def outputs(cells):
    """The traceback that each cell shows, as text without colours; empty if it raises nothing."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    paths = [str(REPOSITORY / "packages" / name / "src") for name in ("core", "nn")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "JAX_PLATFORMS": "cpu"}
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True)
    client.execute(env=environment)
    for cell in notebook.cells:
        shown = ["\n".join(out.traceback) for out in cell.outputs if out.output_type == "error"]
        yield re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(shown))


def test_errors_name_the_cell_without_frames_of_phlox():
    first, second, jitted, eager, name, own, layer = outputs(CELLS)
    assert first == second == ""
    assert "at In [2], line 2 (f):  return x + jnp.ones(4)" in jitted
    assert "at In [4], line 2:  x + jnp.ones(4)" in eager
    assert "at In [5], line 1:  phlox.jitt" in name
    assert "Did you mean: 'jit'?" in name
    assert "ZeroDivisionError: division by zero" in own
    assert "at In [7], line 2" in layer
    for shown in (jitted, eager, name, own, layer):
        assert "Cell In[" in shown
        assert "packages/" not in shown, "a frame of phlox"
        assert "During handling" not in shown
