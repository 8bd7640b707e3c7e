"""Unrolled loops and slow compilations name the lines of the user that recorded most equations."""

import pytest

import phlox
import phlox.numpy as jnp
from check_warnings import told
from phlox._api.checks import slow_compile
from phlox.errors import CheckError


def loop(x):
    for i in range(600):
        x = x * 2.0 + i  # the line
    return x


def loop_in_helper(x):
    def step(x):
        return jnp.sin(x) * 2.0 + 1.0  # the line

    for _ in range(500):
        x = step(x)
    return x


def loop_in_gradient(x):
    def loss(x):
        for _ in range(300):
            x = jnp.sin(x) * jnp.cos(x) + x  # the line
        return x

    return phlox.grad(loss)(x)


def loop_in_body(x):
    def body(i, x):
        for _ in range(600):
            x = x * 2.0 + i  # the line
        return x

    return phlox.lax.fori_loop(0, 2, body, x)


@pytest.mark.parametrize("function", [loop, loop_in_helper, loop_in_gradient, loop_in_body])
def test_unrolled_loops_are_reported_before_they_are_compiled(function):
    (text,) = told(lambda: phlox.jit(function).trace(1.0))
    for words in ["unrolled loops: ", "equations from one line", "fori_loop", "scan"]:
        assert words in text
    line = int(text.split("test_checks_programs.py:")[1].split(" ")[0])
    with open(__file__) as file:
        assert "# the line" in file.readlines()[line - 1]


def test_strict_raises():
    with pytest.raises(CheckError, match="equations from one line"):
        phlox.jit(loop, checks="strict").trace(1.0)


def short_loop(x):
    for i in range(50):
        x = x * 2.0 + i
    return x


def long_function(x):
    lines = "\n".join(f"    x = x * {i}.0 + 1.0" for i in range(700))
    scope = {}
    exec(f"def long(x):\n{lines}\n    return x", scope)
    return scope["long"](x)


def compiled_loop(x):
    return phlox.lax.fori_loop(0, 10_000, lambda i, x: x * 2.0 + i, x)


@pytest.mark.parametrize("function", [short_loop, long_function, compiled_loop])
def test_ordinary_programs_hear_nothing(function):
    assert told(lambda: phlox.jit(function).trace(1.0)) == []


def test_a_slow_compilation_is_described(monkeypatch):
    monkeypatch.setattr(slow_compile, "SECONDS", 0.05)

    def slow(x):
        for _ in range(250):
            x = jnp.sin(x) @ x  # the line
        return x

    with phlox.config.scope(enable_compilation_cache=False):
        (text,) = told(lambda: phlox.jit(slow)(jnp.ones((4, 4))))
    for words in [
        "slow compilation: ",
        "compiling slow",
        "500 equations: 500 from",
        "test_checks_programs.py:",
        "scan",
    ]:
        assert words in text


def test_quick_compilations_leave_no_thread():
    import threading

    before = threading.active_count()
    with phlox.config.scope(enable_compilation_cache=False):
        assert told(lambda: phlox.jit(lambda x: x + 41.5)(1.0)) == []
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(5)
    assert threading.active_count() <= before
