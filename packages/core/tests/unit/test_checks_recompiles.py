"""Recompilation: what differs is named at the third time, and ordinary programs hear nothing."""

import dataclasses
import enum
import functools
import threading

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from check_warnings import told
from phlox.errors import CheckError, CheckWarning, OptionError


def lengths():
    f = phlox.jit(lambda batch: batch["x"] + 1)
    for n in (1, 2, 3, 4):
        f({"x": jnp.ones(n)})


def lengths_by_name():
    @phlox.jit
    def step(state, *, rows):
        return state + rows.sum()

    for n in range(1, 4):
        step(0.0, rows=np.ones((n, 2), np.float32))


def kinds_of_numbers():
    f = phlox.jit(lambda rate: rate * 2)
    for rate in (1, 1.0, jnp.float32(1.0)):
        f(rate)


def static_numbers():
    f = phlox.jit(lambda x, step: x * step, static_argnames="step")
    for step in range(4):
        f(1.0, step=step)


def static_lambda():
    f = phlox.jit(lambda x, activation: activation(x), static_argnums=1)
    for _ in range(3):
        f(1.0, lambda x: x)


def static_object():
    class Settings:
        rate = 1.0

    @functools.partial(phlox.jit, static_argnames=["settings"])
    def step(x, settings):
        return x * settings.rate

    for _ in range(3):
        step(1.0, settings=Settings())


def static_partial():
    f = phlox.jit(lambda x, activation: activation(x), static_argnums=1)
    for _ in range(3):
        f(1.0, functools.partial(jnp.power, 2.0))


def static_lambdas_in_turn():
    f = phlox.jit(lambda x, activation: activation(x), static_argnums=1)
    for _ in range(2):
        for activation in (lambda x: x, lambda x: x + 1):
            f(1.0, activation)


def short_batches():
    f = phlox.jit(lambda x: x.sum())
    for n in (*[32] * 20, 7, 5, 3):
        f(jnp.ones(n))


def structures():
    f = phlox.jit(lambda xs: sum(xs))
    xs = []
    for _ in range(3):
        xs.append(1.0)
        f(xs)


def flags():
    f = phlox.jit(lambda x: x @ x)
    for precision in ("default", "high", "highest"):
        with phlox.default_matmul_precision(precision):
            f(jnp.ones((2, 2)))


TRAPS = {
    lengths: ["batch['x'] is f32[3] and was f32[1], then f32[2] (another shape)", "pad_axes", "sizes="],
    lengths_by_name: ["rows is f32[3,2]", "pad_axes"],
    kinds_of_numbers: ["rate is f32[] and was i32[] (a Python int), then f32[] (a Python float)", "weak"],
    static_numbers: ["the static argument step is 2 and was 0, then 1", "as an array"],
    static_lambda: ["the static argument activation", "made anew", "outside of the loop"],
    static_object: ["the static argument settings", "made anew", "dataclass(frozen=True)"],
    static_partial: ["the static argument activation", "made anew"],
    static_lambdas_in_turn: ["the static argument activation", "made anew", "outside of the loop"],
    short_batches: ["x is f32[3] and was f32[7], then f32[5]"],
    structures: ["the structure of the arguments", "the same lengths of lists"],
    flags: ["the flag default_matmul_precision is 'highest' and was 'default', then 'high'", "set the flag once"],
}


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
def test_the_third_kind_is_reported(trap):
    texts = told(trap)
    assert len(texts) == 1, "once a line"
    for words in ["recompiles: ", " time: ", " ms (trace ", "test_checks_recompiles.py:", *TRAPS[trap]]:
        assert words in texts[0]


def lambda_in_loop():
    for i in range(4):
        phlox.jit(lambda x: x + i)(1.0)


def inner_function_of_call():
    def predict(x):
        @phlox.jit
        def model(x):
            return x * 2

        return model(x)

    for _ in range(3):
        predict(1.0)


def gradient_in_loop():
    for _ in range(3):
        phlox.jit(phlox.grad(lambda x: x * x))(1.0)


def method_in_loop():
    class Model:
        def apply(self, x):
            return x

    for _ in range(3):
        phlox.jit(Model().apply)(1.0)


@pytest.mark.parametrize("trap", [lambda_in_loop, inner_function_of_call, gradient_in_loop, method_in_loop])
def test_functions_made_anew_are_reported(trap):
    (text,) = told(trap)
    for words in ["recompiles: ", "3rd time", "made in a loop", "outside of the loop", "ms (trace"]:
        assert words in text


@dataclasses.dataclass(frozen=True)
class Rates:
    rate: float


def train_and_evaluate():
    @functools.partial(phlox.jit, static_argnames="training")
    def step(x, training):
        return x * 2 if training else x

    for training in (True, False):
        for rows in (8, 8, 3):
            step(jnp.ones(rows), training=training)


def choices():
    step = phlox.jit(lambda x, name, function: function(x), static_argnums=(1, 2))
    for name, function in (("a", jnp.sin), ("b", jnp.cos), ("c", jnp.tan), ("d", jnp.exp)):
        step(1.0, name, function)


def equal_objects():
    step = phlox.jit(lambda x, rates: x * rates.rate, static_argnums=1)
    for _ in range(4):
        step(1.0, Rates(2.0))


def sweep():
    for rate in (1.0, 2.0, 3.0):
        step = phlox.jit(lambda x: x - rate)
        x = 1.0
        for _ in range(10):
            x = step(x)


def same_function_again():
    def model(x):
        return x * 3

    for _ in range(5):
        phlox.jit(model)(1.0)


def library_functions():
    for n in range(1, 5):
        jnp.linalg.norm(jnp.where(jnp.ones(n) > 0, 1.0, 2.0))


def under_other_transformations():
    f = phlox.jit(lambda x: x * x)
    f(1.0), phlox.grad(f)(1.0), phlox.vmap(f)(jnp.ones(3)), phlox.jit(phlox.hessian(f))(1.0)


def layers_of_several_sizes():
    layer = phlox.jit(lambda w, x: w @ x)
    phlox.jit(lambda x: sum(layer(jnp.ones((n, 2)), x).sum() for n in range(1, 6)))(jnp.ones(2))


def members_of_an_enumeration():
    class Mode(enum.Enum):
        A, B, C, D = range(4)

    step = phlox.jit(lambda x, mode: x + mode.value, static_argnums=1)
    assert [step(1.0, mode) for mode in Mode] == [1.0, 2.0, 3.0, 4.0]


def helper_in_several_lines():
    normalized = phlox.jit(lambda x: x / x.sum())
    normalized(jnp.ones(3))
    normalized(jnp.ones((3, 5)))
    normalized(jnp.ones((3, 5, 2)))
    normalized(jnp.ones(7))


def padded_to_powers_of_two():
    total = phlox.jit(jnp.sum)
    for n in (5, 9, 30, 100):
        total(jnp.zeros(1 << (n - 1).bit_length()).at[:n].set(1.0))


def lengths_that_are_called_often():
    total = phlox.jit(lambda x: x.sum())
    for n in (3, 5, 7, 11):
        for _ in range(10):
            total(jnp.ones(n))


def trainers_one_after_another():
    class Trainer:
        def __init__(self, rate):
            self.rate = rate

        @functools.partial(phlox.jit, static_argnums=0)
        def step(self, x):
            return x - self.rate * x

        def fit(self):
            x = 1.0
            for _ in range(10):
                x = self.step(x)

    for rate in (0.1, 0.2, 0.3, 0.4):
        Trainer(rate).fit()


def functions_in_a_cache():
    @functools.cache
    def power(n):
        return phlox.jit(lambda x: x**n)

    for n in (1, 2, 3, 4, 1, 2, 3, 4):
        power(n)(2.0)


def layers_with_functions_of_their_own():
    class Layer:
        def __init__(self, weight):
            self.apply = phlox.jit(lambda x: jnp.tanh(x * weight))

    x = 1.0
    for layer in [Layer(n) for n in range(5)]:
        x = layer.apply(x)


def threads_that_call_one_function():
    step = phlox.jit(lambda x: jnp.sin(jnp.cos(x)))
    start = threading.Barrier(6)

    def work():
        start.wait()
        step(1.0)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def cleared_caches():
    f = phlox.jit(lambda x: x * 2)
    for _ in range(4):
        f(1.0)
        f.clear_cache()


def functions_that_raise():
    for n in range(4):
        with pytest.raises(TypeError):
            phlox.jit(lambda x: x @ n)(1.0)


@pytest.mark.parametrize(
    "program",
    [
        functions_that_raise,
        members_of_an_enumeration,
        helper_in_several_lines,
        padded_to_powers_of_two,
        lengths_that_are_called_often,
        trainers_one_after_another,
        functions_in_a_cache,
        layers_with_functions_of_their_own,
        threads_that_call_one_function,
        cleared_caches,
        train_and_evaluate,
        choices,
        equal_objects,
        sweep,
        same_function_again,
        library_functions,
        under_other_transformations,
        layers_of_several_sizes,
    ],
)
def test_ordinary_programs_hear_nothing(program):
    assert told(program) == []


def test_strict_raises_and_off_is_silent():
    f = phlox.jit(lambda x: x, checks="strict")
    with pytest.raises(CheckError, match="3rd time") as raised:
        for n in range(1, 4):
            f(jnp.ones(n))
    assert raised.value.check == "recompiles"
    with phlox.config.scope(checks="strict"), pytest.raises(CheckError, match="another shape"):
        lengths()
    with phlox.config.scope(checks="off"):
        assert told(lengths) == []
    with pytest.raises(OptionError, match="checks='loud'"):
        phlox.jit(lambda x: x, checks="loud")


def test_max_traces():
    f = phlox.jit(lambda x: x + 1, max_traces=1)
    f(1.0), f(2.0)
    with pytest.raises(CheckError, match=r"traced for the 2nd time.*max_traces=1.*x is f32\[2\] and was f32\[\]"):
        f(jnp.ones(2))
    assert f(3.0) == 4.0
    with pytest.raises(OptionError, match="max_traces=0"):
        phlox.jit(lambda x: x, max_traces=0)


def test_explain():
    f = phlox.jit(lambda x, n: x * n, static_argnames="n")
    f(jnp.ones(2), n=3), f(jnp.ones(2), n=3), f(jnp.ones(4), n=3)
    table = f.explain()
    assert [(row.types, row.calls) for row in table.rows] == [("x: f32[2], n=3", 2), ("x: f32[4], n=3", 1)]
    assert table.rows[0].trace > 0 and table.rows[0].lower > 0 and table.rows[0].compile > 0
    assert "x is f32[4] and was f32[2] (another shape)" in table.rows[1].reason
    for words in ["compiled 2 times", "3 calls", "trace", "lower", "x: f32[4], n=3"]:
        assert words in str(table)
    assert "<td>x: f32[4], n=3</td>" in table._repr_html_()
    f.clear_cache()
    assert f.explain().rows == []


def test_arguments_that_are_references_have_no_type_to_report():
    def add(ref, x):
        ref[...] = ref[...] + x.sum()
        return ref[...] * 2

    f = phlox.jit(add)
    with pytest.warns(CheckWarning, match=r"x is f32\[3\] and was f32\[1\], then f32\[2\]"):
        for n in (1, 2, 3):
            f(phlox.new_ref(jnp.zeros(2)), jnp.ones(n))
    assert "ref: a reference, x: f32[3]" in str(f.explain())
