"""Programs run in a process of their own, if asked with libraries out of sight."""

import json
import os
import socket
import subprocess
import sys
import textwrap

# Not None in sys.modules: TFDS looks there to see whether TensorFlow has been imported, and then uses it.
_OUT_OF_SIGHT = """
import importlib.machinery, sys
_find = importlib.machinery.PathFinder.find_spec
class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] in {names!r} else _find(name, path, target)
sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = _Finder
"""


def start(program, *arguments, without=()):
    """Starts a program, as text, that finds what this process finds."""
    text = _OUT_OF_SIGHT.format(names=set(without)) if without else ""
    return subprocess.Popen(
        [sys.executable, "-c", text + textwrap.dedent(program), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    """(exit status, output, errors) of a program, which is killed after two minutes."""
    try:
        out, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, out, err


def output(program, *arguments, without=()):
    """What a program prints. It must end well, and say nothing on the side."""
    status, out, err = finish(start(program, *arguments, without=without))
    assert (status, err) == (0, ""), f"exit status {status}\n{out}\n{err}"
    return out.strip()


def together(program, count):
    """What each of `count` processes that work together wrote, as JSON. Their arguments: port, number, `count`."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    running = [start(program, port, me, count) for me in range(count)]
    try:
        ends = [finish(process) for process in running]
    finally:
        for process in running:
            process.kill()
    for status, out, err in ends:
        assert status == 0, f"exit status {status}\n{out}\n{err}"
    return [json.loads(out) for _, out, _ in ends]
