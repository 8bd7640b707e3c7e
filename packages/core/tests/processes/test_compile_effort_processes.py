"""``compile_effort="tiered"`` where processes end, fork, and share the disk cache."""

import time

import pytest

from core_processes import run

MANY = """
import os, sys
import phlox, phlox.numpy as jnp
from phlox._xla import background

def work(x, count):
    for i in range(count):
        x = jnp.tanh(x @ x) + jnp.where(x > i, jnp.sin(x), x.sum(0))
    return x

x = jnp.ones((8, 8))
f = phlox.jit(work, static_argnums=1, checks="off")
for count in (40, 41, 42):
    f(x, count).block_until_ready()
"""
TIERED = {
    "PHLOX_COMPILE_EFFORT": "tiered",
    "PHLOX_ENABLE_COMPILATION_CACHE": "0",
    "PHLOX_CHECKS": "off",  # on a busy machine a program compiles for the ten seconds after which they report it
    "XLA_FLAGS": None,
}


@pytest.mark.parametrize("pause", ["", "import time; time.sleep(0.2)", "raise SystemExit(3)", "1 / 0"])
def test_the_process_ends_while_programs_are_compiled(pause):
    start = time.monotonic()
    ended = run(
        f"{MANY}\nassert background._queue.thread is not None\nprint('end', flush=True)\n{pause}", check=False, **TIERED
    )
    assert ended.returncode == {"raise SystemExit(3)": 3, "1 / 0": 1}.get(pause, 0), ended.stderr
    assert ended.stdout == "end\n"
    assert pause == "1 / 0" or ended.stderr == ""
    assert time.monotonic() - start < 120


def test_what_is_called_at_the_end_is_compiled_without_a_thread():
    program = """
    import atexit, phlox
    def last():
        print(float(phlox.jit(lambda x: x + 2)(1.0)))
    atexit.register(last)
    float(phlox.jit(lambda x: x + 1)(1.0))
    """
    assert run(program, **TIERED).stdout == "3.0\n"


def test_a_forked_process_has_no_thread():
    program = f"""{MANY}
child = os.fork()
if child == 0:
    assert background._queue.thread is None and not background._queue.jobs
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
background.wait()
print(background._queue.thread)
"""
    assert run(program, options=("-W", "ignore"), **TIERED).stdout == "7\nNone\n"


def test_the_full_program_reaches_the_disk(tmp_path):
    program = MANY + "\nprint(len(background._queue.jobs) > 0)\nbackground.wait()"
    settings = {**TIERED, "PHLOX_ENABLE_COMPILATION_CACHE": None, "PHLOX_COMPILATION_CACHE_DIR": str(tmp_path)}
    assert run(program, **settings).stdout == "True\n"
    stored = len(list(tmp_path.glob("*.xla")))
    assert run(program, **settings).stdout == "False\n"
    assert run(program, **{**settings, "PHLOX_COMPILE_EFFORT": None}).stdout == "False\n"
    assert len(list(tmp_path.glob("*.xla"))) == stored
