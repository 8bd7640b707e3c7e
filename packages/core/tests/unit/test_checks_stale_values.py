"""Stale values: what a trace read from outside, and what is another now."""

import functools
import gc
import types
import weakref

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from check_warnings import told
from phlox.errors import CheckError

counter = 0.0
table = np.arange(4)
params = {"w": jnp.ones(3), "rate": 0.5}
settings = types.SimpleNamespace(scale=2)
unused = 1.0
traces = 0


def impure_example(x):
    return x + counter


def change_of_global():
    global counter
    f = phlox.jit(impure_example)
    f(4.0)
    counter += 10.0
    f(5.0)


def global_read_by_helper():
    global counter
    f = phlox.jit(lambda x: impure_example(x) * 2)
    f(4.0)
    counter += 10.0
    f(5.0)


def global_read_by_jitted_helper():
    global counter
    inner = phlox.jit(impure_example)
    f = phlox.jit(lambda x: inner(x) * 2)
    f(4.0)
    counter += 10.0
    f(5.0)


def scan_body(carry, x):
    return carry + x * counter, None


def body_of_eager_scan():
    global counter
    xs = jnp.ones(3)
    phlox.lax.scan(scan_body, 0.0, xs)
    counter += 10.0
    phlox.lax.scan(scan_body, 0.0, xs)


def fori_body(i, total):
    return total + i * counter


def body_of_eager_fori_loop():
    global counter
    phlox.lax.fori_loop(0, 3, fori_body, 0.0)
    counter += 1
    phlox.lax.fori_loop(0, 3, fori_body, 0.0)


def body_of_scan():
    global counter
    f = phlox.jit(lambda xs: phlox.lax.scan(scan_body, 0.0, xs)[0])
    f(jnp.ones(4))
    counter += 10.0
    f(jnp.ones(4))


def closure_cell():
    scale = 2.0
    f = phlox.jit(lambda x: x * scale)
    f(1.0)
    scale = 3.0
    f(1.0)


def closed_over_array():
    weights = jnp.ones(3)
    f = phlox.jit(lambda x: x * weights)
    f(1.0)
    weights = jnp.zeros(3)
    f(1.0)


class Model:
    def __init__(self):
        self.rate = 0.1
        self.step = phlox.jit(self._step)

    def _step(self, x):
        return x - self.rate

    @functools.partial(phlox.jit, static_argnums=0)
    def scaled(self, x):
        return self._step(x) * 2


def attribute_of_self():
    model = Model()
    model.step(1.0)
    model.rate = 0.2
    model.step(1.0)


def attribute_of_static_self():
    model = Model()
    model.scaled(1.0)
    model.rate = 0.2
    model.scaled(1.0)


def read_by_property():
    class Schedule:
        base = 1.0

        @property
        def rate(self):
            return self.base * 2  # the line

    schedule = Schedule()
    f = phlox.jit(lambda x: x * schedule.rate)
    f(1.0)
    schedule.base = 2.0
    f(1.0)


def attribute_of_namespace():
    f = phlox.jit(lambda x: x * settings.scale)
    f(1.0)
    settings.scale += 1
    f(1.0)


def item_of_dict():
    f = phlox.jit(lambda x: x * params["rate"])
    f(1.0)
    params["rate"] += 1.0
    f(1.0)


def last_of_list():
    rates = [1.0, 2.0]
    f = phlox.jit(lambda x: x * rates[-1])
    f(1.0)
    rates[-1] += 1.0
    f(1.0)


def parameters_as_global():
    global params
    f = phlox.jit(lambda x: phlox.tree.map(lambda w: w * x, params))
    f(1.0)
    params = phlox.tree.map(lambda w: w * 2, params)
    f(1.0)


def array_changed_in_place():
    f = phlox.jit(lambda i: jnp.asarray(table)[i])
    f(1)
    table[1] += 5
    f(1)


def operand_changed_in_place():
    offsets = np.ones(3)
    f = phlox.jit(lambda x: x + offsets)
    f(1.0)
    offsets[0] = 7
    f(1.0)


def list_of_numbers():
    weights = [1.0, 2.0]
    f = phlox.jit(lambda x: x * sum(weights))
    f(1.0)
    weights.append(3.0)
    f(1.0)


def activation(x):
    return x * 2


def helper_defined_anew():
    global activation
    f = phlox.jit(lambda x: activation(x))
    f(1.0)

    def activation(x):
        return x * 3

    f(1.0)


def jitted_helper_replaced():
    inner = phlox.jit(lambda x: x * 2)
    f = phlox.jit(lambda x: inner(x))
    f(1.0)
    inner = phlox.jit(lambda x: x * 3)
    f(1.0)


def function_as_attribute():
    layer = types.SimpleNamespace(activation=jnp.sin)
    f = phlox.jit(lambda x: layer.activation(x))
    f(1.0)
    layer.activation = jnp.cos
    f(1.0)


def method_replaced():
    model = Model()
    f = phlox.jit(lambda x: model._step(x))
    f(1.0)
    model._step = lambda x: x
    f(1.0)


def method_replaced_in_its_class():
    class Layer:
        def step(self, x):
            return x * 2

    layer = Layer()
    f = phlox.jit(lambda x: layer.step(x))
    f(1.0)
    Layer.step = lambda self, x: x
    f(1.0)


def default_changed_in_place():
    def scaled(x, options={"scale": 1.0}):  # noqa: B006
        return x * options["scale"]

    f = phlox.jit(lambda x: scaled(x))
    f(1.0)
    scaled.__defaults__[0]["scale"] = 2.0
    f(1.0)


def default_of_keyword():
    def scaled(x, *, scales=[1.0]):  # noqa: B006
        return x * scales[0]

    f = phlox.jit(lambda x: scaled(x))
    f(1.0)
    scaled.__kwdefaults__["scales"][0] = 2.0
    f(1.0)


def read_by_cached_helper():
    global counter

    @functools.cache
    def start():
        return np.float32(counter)

    f = phlox.jit(lambda x: x + start())
    f(1.0)
    counter += 10.0
    start.cache_clear()
    f(1.0)


TRAPS = {
    helper_defined_anew: "activation is another function now (activation of line ",
    jitted_helper_replaced: "inner is another function now",
    function_as_attribute: "layer.activation is another function now (cos)",
    method_replaced: "model._step is another function now",
    method_replaced_in_its_class: "layer.step is another function now",
    default_changed_in_place: "options['scale'] was 1.0 and is 2.0 now",
    default_of_keyword: "scales[0] was 1.0 and is 2.0 now",
    read_by_cached_helper: "counter was",
    change_of_global: "counter was",
    global_read_by_helper: "counter was",
    global_read_by_jitted_helper: "counter was",
    body_of_eager_scan: "counter was",
    body_of_eager_fori_loop: "counter was",
    body_of_scan: "counter was",
    closure_cell: "scale was 2.0 and is 3.0 now",
    closed_over_array: "weights is another array now (f32[3])",
    attribute_of_self: "self.rate was 0.1 and is 0.2 now",
    attribute_of_static_self: "self.rate was 0.1 and is 0.2 now",
    read_by_property: "self.base was 1.0 and is 2.0 now",
    attribute_of_namespace: "settings.scale was",
    item_of_dict: "params['rate'] was",
    last_of_list: "rates[-1] was 2.0 and is 3.0 now",
    parameters_as_global: "params['w'] is another array now",
    array_changed_in_place: "table was changed in place",
    operand_changed_in_place: "offsets was changed in place",
    list_of_numbers: "weights had 2 items and has 3 now",
}


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
def test_stale_values_are_reported(trap):
    (text,) = told(trap)
    for words in ["stale values: ", TRAPS[trap], "goes on with", "argument", "test_checks_stale_values.py:"]:
        assert words in text


@pytest.mark.parametrize("trap", [change_of_global, attribute_of_self, array_changed_in_place])
def test_strict_raises(trap):
    with phlox.config.scope(checks="strict"), pytest.raises(CheckError, match="goes on with") as raised:
        trap()
    assert raised.value.check == "stale values"


def test_a_change_is_reported_at_a_later_call():
    scale = 1.0
    f = phlox.jit(lambda x: x * scale)
    for _ in range(5):
        f(1.0)
    scale = 2.0
    assert told(lambda: [f(1.0) for _ in range(2)]) == []
    assert len(told(lambda: f(1.0))) == 1, "call 8"


@pytest.mark.parametrize(
    ("before", "after", "instead"),
    [
        (1.0, 2.0, "pass value as an argument"),
        (2, 3, "pass value as an argument, a static one if a shape or a condition depends on it"),
        ("sum", "max", "pass value as a static argument"),
        (True, False, "pass value as a static argument"),
        (jnp.sum, jnp.max, "pass value as a static argument, or call phlox.clear_caches() after it is replaced"),
    ],
)
def test_what_to_write_instead(before, after, instead):
    def program(value, x):
        if isinstance(value, str):
            return getattr(x, value)()
        if callable(value):
            return value(x)
        return x.sum() if value is True else x * value

    value, x = before, jnp.ones(3)
    f = phlox.jit(lambda x: program(value, x))
    f(x)
    value = after
    (text,) = told(lambda: f(x))
    assert text.endswith(f"instead: {instead}")
    # What the report says to do gives the new value.
    as_argument = phlox.jit(program, static_argnums=0 if "static" in instead else ())
    np.testing.assert_array_equal(as_argument(value, x), program(value, x))
    if "clear_caches" in instead:
        phlox.clear_caches()
        np.testing.assert_array_equal(f(x), program(value, x))


def test_cleared_caches_forget_bodies_of_loops_and_branches():
    def double(x):
        return x * scale

    scale, xs = 2.0, jnp.ones(2)
    programs = [
        lambda: phlox.lax.scan(carried, 1.0, None, length=1)[0],
        lambda: phlox.lax.fori_loop(0, 1, turn, 1.0),
        lambda: phlox.lax.cond(True, double, double, 1.0),
        lambda: phlox.checkpoint(double)(1.0),
        lambda: phlox.lax.map(double, xs)[0],
    ]

    def carried(carry, _):
        return double(carry), None

    def turn(i, x):
        return double(x)

    assert [float(program()) for program in programs] == [2.0] * len(programs)
    scale = 3.0
    phlox.clear_caches()
    assert told(lambda: [float(program()) for program in programs]) == []
    assert [float(program()) for program in programs] == [3.0] * len(programs)


def counter_of_object():
    class Model:
        def __init__(self):
            self.calls, self.counts = 0, {"calls": 0}

        def __call__(self, x):
            self.calls += 1
            self.counts["calls"] += len(x.shape) + 1
            return x * 2

    model = Model()
    f = phlox.jit(model)
    for shape in ((), (2,), (), (2,)):
        f(jnp.ones(shape))
    assert model.calls == 2


def own_counter():
    global traces
    lengths = []

    @phlox.jit
    def f(x):
        global traces
        traces += 1
        lengths.append(x.shape)
        return x

    for shape in ((), (2,), (), (2,)):
        f(jnp.ones(shape))
    assert len(lengths) == 2


def value_without_part_in_the_program():
    global unused
    f = phlox.jit(lambda x: x if x.ndim == 0 else x * unused)
    f(1.0)
    unused += 1.0
    f(1.0)


def value_that_is_only_printed():
    class Trainer:
        epoch, traces = 0, 0

        def step(self, x):
            self.traces += 1
            str(self.epoch)
            return x * 2

    trainer = Trainer()
    step = phlox.jit(trainer.step)
    for trainer.epoch in range(100):
        step(1.0)
    assert trainer.traces == 3, "traced anew twice, then no more"


def equal_array():
    weights = jnp.ones(3)
    f = phlox.jit(lambda x: x * weights)
    f(1.0)
    weights = jnp.ones(3)
    f(1.0)


def equal_helper():
    scale = lambda x: x * 2
    f = phlox.jit(lambda x: scale(x))
    f(1.0)
    scale = lambda x: x * 2
    f(1.0)


def unused_default():
    def scaled(x, scales=[1.0]):  # noqa: B006
        return x * scales[0]

    f = phlox.jit(lambda x: scaled(x, [3.0]))
    f(1.0)
    scaled.__defaults__[0][0] = 2.0
    f(1.0)


def values_as_arguments():
    f = phlox.jit(lambda x, scale: x * scale)
    for scale in (1.0, 2.0, 3.0):
        f(1.0, scale)


def unchanged_values():
    model = Model()
    for _ in range(9):
        model.step(1.0), model.scaled(1.0)


@pytest.mark.parametrize(
    "program",
    [
        own_counter,
        counter_of_object,
        value_without_part_in_the_program,
        value_that_is_only_printed,
        equal_array,
        equal_helper,
        unused_default,
        values_as_arguments,
        unchanged_values,
    ],
)
def test_ordinary_programs_hear_nothing(program):
    assert told(program) == []


def test_functions_and_what_they_read_can_die():
    model = Model()
    model.step(1.0), model.scaled(1.0)
    alive = weakref.ref(model)
    Model.scaled.clear_cache()  # static arguments live as long as the program
    del model
    gc.collect()
    assert alive() is None
