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


def start(program, *arguments, block=(), **environment):
    """Starts a program, as text, that finds what this process finds; variables that are None are removed."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **environment}
    return subprocess.Popen(
        [sys.executable, "-c", _BLOCK.format(names=set(block)) + textwrap.dedent(program), *map(str, arguments)],
        env={name: value for name, value in env.items() if value is not None},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(program, *arguments, block=(), status=0, **environment):
    """Runs such a program, which must end with this exit status. Returns what it prints."""
    process = start(program, *arguments, block=block, **environment)
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == status, f"exit status {process.returncode}\n{out}\n{err}"
    return out.strip()
