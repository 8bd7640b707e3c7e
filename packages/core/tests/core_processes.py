"""Running a program in a fresh Python process, with the sources of phlox on its path."""

import os
import socket
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


def start(program, arguments=(), **changes):
    """Starts `program` and returns the running process."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        env=environment(**changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


#: What processes that work together begin with: each has two devices, and knows its number and how many there are.
#: Threads of Gloo print their connections on file descriptor 1, in pieces: they go to the error stream.
TOGETHER = """
import os, sys
sys.stdout = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
import numpy as np
import phlox, phlox.numpy as jnp
from phlox import P, lax
me, count = {me}, {count}
phlox.config.update("num_cpu_devices", 2)
phlox.distributed.initialize("127.0.0.1:{port}", num_processes=count, process_id=me, initialization_timeout=60)
"""


def free_port():
    """A port that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def together(program, count=2, arguments=(), **changes):
    """Runs `program` in `count` processes that work together (see `TOGETHER`); returns what each printed.

    All must end well, within two minutes.
    """
    port = free_port()
    changes = {"XLA_FLAGS": None, "JAX_COORDINATOR_ADDRESS": None, **changes}
    heads = [TOGETHER.format(me=me, count=count, port=port) for me in range(count)]
    processes = [start(head + textwrap.dedent(program), arguments, **changes) for head in heads]
    try:
        ends = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (out, err) in zip(processes, ends, strict=True):
        assert process.returncode == 0, f"exit status {process.returncode}\n{out[-3000:]}\n{err[-3000:]}"
    return [out.rstrip("\n") for out, _ in ends]
