"""Programs run in a Python process of their own, if asked with packages that cannot be imported there."""

import os
import subprocess
import sys
import textwrap

_BLOCK = """
import sys
class _Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError("blocked: " + name, name=name)
sys.meta_path.insert(0, _Block())
"""


def run(program, *arguments, block=(), status=0, **environment):
    """Runs a program, as text, that finds what this process finds. Returns what it prints.

    It must end with this exit status; variables of the environment that are None are removed.
    """
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **environment}
    done = subprocess.run(
        [sys.executable, "-c", _BLOCK.format(names=set(block)) + textwrap.dedent(program), *map(str, arguments)],
        env={name: value for name, value in env.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()
