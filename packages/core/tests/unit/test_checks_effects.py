"""Effects under a trace: what holds a traced value when the trace ends is named, with the line that stored it."""

import collections
import functools
import time

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from check_warnings import told
from phlox.errors import CheckError

history = []
last = None
X = jnp.ones(3)


def appended_to_global():
    @phlox.jit
    def step(x):
        history.append(x * 2)  # the line
        return x

    step(X)


def stored_in_global():
    @phlox.jit
    def step(x):
        global last
        last = x.sum()  # the line
        return x

    step(X)


def stored_in_cell():
    best = None

    @phlox.jit
    def step(x):
        nonlocal best
        best = x  # the line
        return x

    step(X)
    assert best is not None


def stored_in_dict():
    metrics = {}

    def step(x):
        metrics["loss"] = x.sum()  # the line
        return x.sum()

    phlox.jit(phlox.grad(step))(X)


def added_by_helper():
    seen = collections.deque()

    def note(x):
        seen.append([x])  # the line

    @phlox.jit
    def step(x):
        note(x)
        return x

    step(X)


class Model:
    def __init__(self):
        self.loss = 0.0
        self.log = {"loss": []}

    def step(self, x):
        self.loss = x.sum()  # the line
        return x

    @functools.partial(phlox.jit, static_argnums=0)
    def logged(self, x):
        self.log["loss"].append(x)  # the line
        return x


def stored_in_self():
    phlox.jit(Model().step)(X)


def stored_in_static_self():
    Model().logged(X)


def stored_in_default():
    def step(x, seen=[]):  # noqa: B006
        seen.append(x)  # the line
        return x

    phlox.jit(step)(X)


def stored_in_default_of_helper():
    def note(x, *, seen={}):  # noqa: B006
        seen["x"] = x  # the line
        return x

    phlox.grad(lambda x: note(x))(1.0)


def stored_in_cache():
    @functools.lru_cache
    def table(n):
        return jnp.ones(n)

    phlox.jit(lambda x: x + table(3))(X)  # the line


def stored_in_cache_of_method():
    class Basis:
        @functools.cache  # noqa: B019
        def vectors(self, n):
            return (jnp.eye(n), n)

    basis = Basis()
    phlox.jit(lambda x: basis.vectors(3)[0] @ x)(X)  # the line


def eager_gradient():
    values = []

    def loss(x):
        values.append(x * 2)  # the line
        return x * x

    phlox.grad(loss)(1.0)


def under_vmap():
    values = []
    phlox.vmap(lambda x: values.append(x))(X)  # the line


def body_of_scan():
    states = []

    def body(carry, x):
        states.append(carry)  # the line
        return carry + x, None

    phlox.lax.scan(body, 0.0, X)


def body_of_loop_inside():
    @phlox.jit
    def run(x):
        states = []

        def body(i, carry):
            states.append(carry)  # the line
            return carry + i

        return phlox.lax.fori_loop(0, 3, body, x)

    for i in range(20):  # other bodies are counted by themselves
        phlox.lax.fori_loop(0, 2, lambda _, x, i=i: x + i, 0)
    run(1.0)


TRAPS = {
    appended_to_global: "history[",
    stored_in_global: "last holds",
    stored_in_cell: "best holds",
    stored_in_dict: "metrics['loss']",
    added_by_helper: "seen[0][0]",
    stored_in_self: "self.loss",
    stored_in_static_self: "self.log['loss'][0]",
    stored_in_default: "seen[0]",
    stored_in_default_of_helper: "seen['x']",
    stored_in_cache: "table (its cache)",
    stored_in_cache_of_method: "basis.vectors (its cache)",
    eager_gradient: "values[0]",
    under_vmap: "values[0]",
    body_of_scan: "states[0]",
    body_of_loop_inside: "states[0]",
}


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
def test_effects_are_reported(trap):
    history.clear()
    (text,) = told(trap)
    for words in ["effects under a trace: ", TRAPS[trap], "a traced value f32", "return"]:
        assert words in text
    line = int(text.split("test_checks_effects.py:")[1].split(" ")[0])
    with open(__file__) as file:
        assert "# the line" in file.readlines()[line - 1]


def test_strict_raises():
    with phlox.config.scope(checks="strict"), pytest.raises(CheckError, match=r"self\.loss") as raised:
        stored_in_self()
    assert raised.value.check == "effects under a trace"


def local_containers():
    @phlox.jit
    def step(x):
        parts = []
        for i in range(3):
            parts.append(x * i)
        cache = {"sum": sum(parts)}
        return cache["sum"]

    step(X)


def emptied_container():
    stack = []

    @phlox.jit
    def step(x):
        stack.append(x)
        return stack.pop() * 2

    step(X)


def cache_of_host_values():
    @functools.cache
    def table(n):
        return np.ones(n)

    table(2)
    phlox.jit(lambda x: x + table(3))(X)


def auxiliary_values():
    def loss(x):
        y = x * 2
        return y, {"y": y}

    phlox.jit(phlox.value_and_grad(loss, has_aux=True))(1.0)


def numbers_and_shapes():
    shapes = []

    @phlox.jit
    def step(x):
        shapes.append(x.shape)
        return x

    step(X)


def tracers_of_a_running_trace():
    def outer(x):
        def body(i, carry):
            return carry + parts[0] * i

        parts = [x, x * 2]
        return phlox.lax.fori_loop(0, 2, body, 0.0)

    phlox.grad(outer)(1.0)


def containers_of_a_class_of_the_user():
    class Lazy(list):
        def __iter__(self):
            raise RuntimeError("read as a whole")

    values, counts = Lazy([2.0]), collections.defaultdict(list)

    @phlox.jit
    def step(x):
        if x.ndim > 1:
            counts["matrices"].append(x.shape)
        return x * values[0]

    step(1.0), step(1.0)
    assert not counts, "the checks add no item"


def large_container():
    words = {str(i): float(i) for i in range(1_000_000)}
    seconds = {"off": [], "default": []}
    for checks in [*seconds] * 2:
        f = phlox.jit(lambda x: x + words["3"], checks=checks)
        start = time.perf_counter()
        f(1.0)
        seconds[checks].append(time.perf_counter() - start)
    assert min(seconds["default"]) < min(seconds["off"]) + 0.1


@pytest.mark.parametrize(
    "program",
    [
        containers_of_a_class_of_the_user,
        large_container,
        local_containers,
        emptied_container,
        cache_of_host_values,
        auxiliary_values,
        numbers_and_shapes,
        tracers_of_a_running_trace,
    ],
)
def test_ordinary_programs_hear_nothing(program):
    assert told(program) == []
