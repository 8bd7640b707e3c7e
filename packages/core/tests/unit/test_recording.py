"""`phlox.record`: stepping, values, names, and the questions of recordings."""

import functools
import re

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import P
from phlox._ir.primitive import primitive
from phlox.errors import OptionError, RefusedError, UnsupportedError
from phlox.sharding import AxisType


def model(params, x):
    h = jnp.tanh(x @ params["w"] + params["b"])
    y = h.sum(axis=1)
    return y


PARAMS = {"w": np.full((3, 2), 0.5, np.float32), "b": np.zeros(2, np.float32)}
X = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_the_result_is_that_of_the_compiled_call():
    recording = phlox.record(model)(PARAMS, X)
    np.testing.assert_array_equal(recording.result, phlox.jit(model)(PARAMS, X))
    assert recording.steps[-1].results[0] is recording.section.outputs[0]


def test_steps_go_forward_and_backward():
    recording = phlox.record(model)(PARAMS, X)
    assert recording.index == -1 and set(recording.values()) == {"params['b']", "params['w']", "x"}
    recording.forward(100)
    assert recording.index == len(recording.steps) - 1
    values = recording.values()
    np.testing.assert_allclose(values["h"], np.tanh(X @ PARAMS["w"]), rtol=1e-5)
    np.testing.assert_allclose(values["y"], np.tanh(X @ PARAMS["w"]).sum(1), rtol=1e-5)
    recording.backward()
    assert "y" not in recording.values()
    assert recording.backward(100).index == -1


def test_a_variable_under_grad_is_the_value_and_not_the_factor_of_its_derivative():
    def loss(x):
        root = jnp.sqrt(x)
        double = root * 2.0
        return double.sum()

    values = phlox.record(phlox.grad(loss))(jnp.array([4.0, 9.0])).forward(100).values()
    np.testing.assert_array_equal(values["root"], [2.0, 3.0])
    np.testing.assert_array_equal(values["double"], [4.0, 6.0])


def test_targets_of_a_tuple_get_the_results_of_a_loop():
    def f(xs):
        total, sums = phlox.lax.scan(lambda c, x: (c + x, c), 0.0, xs)
        return total + sums[0]

    values = phlox.record(f)(jnp.arange(3.0)).forward(100).values()
    assert values["total"] == 3.0 and values["sums"].shape == (3,)


def test_lines_of_cached_functions_are_those_of_the_call():
    """`jnp.where` is traced once for its types, with the line of the first call."""
    x = jnp.ones(3)
    phlox.jit(lambda x: jnp.where(x > 0, x, 0.5))(x)

    def f(x):
        y = x * 2.0
        return jnp.where(y > 1, y, 0.5)

    lines = [step.where.text() for step in phlox.record(f)(x).steps]
    assert lines[1:] == ["return jnp.where(y > 1, y, 0.5)"] * (len(lines) - 1)


def test_turns_of_a_loop_are_opened():
    def f(x):
        return phlox.lax.fori_loop(0, 3, lambda i, c: c * 2.0, x)

    recording = phlox.record(f)(1.0)
    loop = next(step.index for step in recording.steps if step.is_loop)
    section = recording.open(2, loop)
    assert [step.path for step in section.steps] == [("turn 2 of scan",)] * len(section.steps)
    assert max(float(out.array) for out in section.outputs) == 8.0
    with pytest.raises(OptionError, match="no turn 3"):
        recording.open(3, loop)


def test_static_donated_and_closed_over_arguments():
    scale = jnp.full(3, 2.0)

    @functools.partial(phlox.jit, static_argnums=1, donate_argnums=0)
    def f(x, power):
        return scale * x**power

    x = jnp.ones(3)
    recording = phlox.record(f)(x, 2)
    np.testing.assert_array_equal(recording.result, [2.0, 2.0, 2.0])
    assert not x.is_deleted()
    assert {"x", "scale"} <= set(recording.values())


def test_recording_inside_of_a_trace_is_refused():
    with pytest.raises(RefusedError, match="inside of a transformed function"):
        phlox.jit(lambda x: phlox.record(jnp.sin)(x).result)(1.0)


def test_prints_run_once(capfd):
    def f(x):
        phlox.debug.print("x is {}", x)
        return jnp.log(x)

    assert phlox.record(f)(-1.0).why_nan().line
    phlox.effects_barrier()
    assert capfd.readouterr().out.count("x is") == 1


# -- why_nan


def test_nan_of_an_argument_names_the_argument():
    answer = phlox.record(model)({**PARAMS, "b": np.array([np.nan, 0], np.float32)}, X).why_nan()
    assert answer.data["argument"] == "params['b']"
    assert "h = jnp.tanh" in str(answer)


def test_nan_names_row_and_turn():
    def f(xs):
        def step(c, x):
            root = jnp.sqrt(x)
            return c + root, root

        return phlox.lax.scan(step, 0.0, xs)

    rows = jnp.ones((3, 5)).at[1, 4].set(-1.0)
    text = str(phlox.record(phlox.vmap(f))(rows).why_nan())
    assert "turn 4 of scan" in text and "at [1]" in text and "root = jnp.sqrt(x)" in text


def test_no_nan_says_so():
    answer = phlox.record(jnp.sin)(1.0).why_nan()
    assert answer.line is None and answer.equation is None and "no value" in str(answer)


def test_a_nan_that_is_not_selected_is_not_the_origin():
    def f(x, scale):
        filled = jnp.where(jnp.isnan(x), 0.0, x)
        scaled = filled / scale
        return scaled.sum()

    answer = phlox.record(f)(jnp.array([1.0, jnp.nan, 0.0]), jnp.zeros(3)).why_nan()
    assert answer.where.text() == "scaled = filled / scale"


def test_an_infinite_result_is_explained():
    answer = phlox.record(phlox.grad(lambda x: jnp.sqrt(x)))(0.0).why_nan()
    assert str(answer).startswith("an infinity comes from") and "div of 0.5 and 0 is inf" in str(answer)


def test_the_answer_selects_a_leaf():
    recording = phlox.record(lambda x: {"a": jnp.log(x), "b": jnp.sqrt(x)})(-1.0)
    assert "sqrt" in recording.why_nan("b").equation and "log" in recording.why_nan(0).equation
    with pytest.raises(OptionError, match=r"\['a'\], \['b'\]"):
        recording.why_nan("c")
    assert "sqrt" in recording.why_nan(-1).equation
    for number in (2, -3):
        with pytest.raises(OptionError, match=f"has the number {number}"):
            recording.why_nan(number)


# -- why_zero


def test_an_unused_parameter():
    def loss(params):
        return params["used"] ** 2

    text = str(phlox.record(phlox.grad(loss))({"used": 1.0, "unused": 2.0}).why_zero("unused"))
    assert "no operation on the way to the result reads params['unused']" in text


def test_zero_inside_of_a_scan():
    def loss(w, xs):
        def step(h, x):
            h = phlox.nn.relu(h * w + x)
            return h, None

        return phlox.lax.scan(step, 0.0, xs)[0]

    answer = phlox.record(phlox.grad(loss))(1.0, jnp.full(4, -1.0)).why_zero()
    assert "phlox.nn.relu" in answer.where.text()


def test_a_zero_argument_is_named():
    answer = phlox.record(phlox.grad(lambda w, mask: jnp.sum(w * mask)))(jnp.ones(3), jnp.zeros(3)).why_zero()
    assert "the argument mask" in str(answer)


# -- watch


def test_tags_pass_transformations():
    def loss(w, xs):
        def step(h, x):
            h = phlox.tag(jnp.tanh(h * w + x), "state")
            return h, None

        return phlox.lax.scan(step, jnp.zeros(()), xs)[0]

    step = phlox.vmap(phlox.grad(loss), in_axes=(0, None))
    occurrences = phlox.record(step)(jnp.ones(2), jnp.arange(3.0)).watch("state")
    assert [one.kind for one in occurrences] == ["value"] * 3 + ["cotangent"] * 3
    assert all(one.value.shape == (2,) for one in occurrences)
    assert [one.path for one in occurrences[:2]] == [("turn 0 of scan",), ("turn 1 of scan",)]


def test_tags_are_identities():
    f = lambda x: phlox.tag(x, "x") ** 2
    assert f(3.0) == 9.0 and phlox.grad(f)(3.0) == 6.0
    assert phlox.grad(phlox.grad(f))(3.0) == 2.0
    assert phlox.jvp(f, (3.0,), (1.0,))[1] == 6.0
    np.testing.assert_array_equal(phlox.vmap(f)(jnp.arange(3.0)), [0, 1, 4])


def test_variables_are_watched():
    def f(x):
        for _ in range(3):
            x = x * 2.0
        return x

    assert [float(one.value) for one in phlox.record(f)(1.0).watch("x")] == [2.0, 4.0, 8.0]


# -- compare


def test_a_planted_miscompile_is_found(monkeypatch):
    sine = primitive("sin")
    recording = phlox.record(lambda x: jnp.cos(x) + jnp.sin(x) * 2.0)(jnp.arange(4.0))
    assert recording.compare().line is None
    monkeypatch.setattr(sine, "lower", primitive("cos").lower)
    monkeypatch.setattr(sine, "cache", {})
    answer = phlox.record(lambda x: jnp.cos(x) + jnp.sin(x) * 2.0)(jnp.arange(4.0)).compare()
    assert "sin" in answer.equation and "NumPy" in str(answer)


def test_a_miscompile_of_the_whole_program_is_found(monkeypatch):
    """The rule is right for an operation alone, and wrong in a program of several."""
    sine = primitive("sin")
    right = sine.lower

    def lower(f, x, **params):
        return right(f, x, **params) if len(f.lines) == 0 else primitive("cos").lower(f, x)

    def f(x):
        y = x * 0.5
        z = jnp.sin(y)
        return z + y

    monkeypatch.setattr(sine, "lower", lower)
    monkeypatch.setattr(sine, "cache", {})
    answer = phlox.record(f)(jnp.arange(1.0, 5.0)).compare()
    assert answer.where.text() == "z = jnp.sin(y)" and "compiled as a whole" in str(answer)


def test_other_arguments_and_other_functions():
    def f(x, y):
        a = x + 1.0
        b = y * 2.0
        return a + b

    recording = phlox.record(f)(1.0, 2.0)
    assert recording.compare(1.0, 2.0).line is None
    assert "b = y * 2.0" in str(recording.compare(1.0, 3.0))
    assert recording.compare(function=lambda x, y: (x + 1.0) + y * 2.0).line is None
    by_name = phlox.record(f)(x=1.0, y=2.0)
    assert by_name.compare(function=f).line is None
    assert "a = x + 1.0" in str(by_name.compare(function=lambda x, y: (x - 1.0) + y * 2.0))


def test_answers_print_themselves_in_notebooks():
    answer = phlox.record(jnp.log)(-1.0).why_nan()
    assert answer._repr_html_().startswith("<b>nan comes from") and re.match("nan comes from", str(answer))
    assert "<table>" in phlox.record(model)(PARAMS, X)._repr_html_()


@pytest.mark.parametrize("check_vma", [True, False])
def test_shard_map_is_opened(check_vma):
    mesh = phlox.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))

    def local(x):
        logs = jnp.log(x)
        return logs / phlox.lax.psum(logs, "d")

    f = phlox.shard_map(local, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=check_vma)
    recording = phlox.record(f)(jnp.arange(8.0) - 2)
    answer = recording.why_nan()
    assert answer.where.text() == "logs = jnp.log(x)" and "in each device" in str(answer)
    assert recording.values().keys() == {"x"} and recording.forward(9).values()["logs"].shape == (8, 1)


def test_backward_inside_of_shard_map():
    mesh = phlox.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))

    def local(w, x):
        h = phlox.nn.relu(x * w - 100.0)
        return phlox.lax.psum(h.sum(), "d")

    f = phlox.shard_map(local, mesh=mesh, in_specs=(P(), P("d")), out_specs=P())
    recording = phlox.record(phlox.grad(f))(1.0, jnp.arange(8.0))
    assert "phlox.nn.relu" in recording.why_zero().where.text()
    assert recording.compare().line is None


@pytest.mark.parametrize("reverse", [False, True])
def test_a_late_turn_of_a_long_scan(reverse):
    def f(x, xs):
        def step(c, a):
            c = jnp.sqrt(c + a)
            return c, c

        return phlox.lax.scan(step, x, xs, reverse=reverse)

    xs = jnp.zeros(5000).at[4000].set(-9.0)
    answer = phlox.record(f)(1.0, xs).why_nan()
    assert f"turn {999 if reverse else 4000} of scan" in str(answer) and "sqrt of -8" in str(answer)


def test_references_from_outside_are_refused():
    ref = phlox.new_ref(jnp.ones(3))
    with pytest.raises(UnsupportedError, match="references"):
        phlox.record(lambda x: x + ref[...])(jnp.ones(3))
    with pytest.raises(UnsupportedError, match="references"):
        phlox.record(lambda r: r[...])(ref)


@pytest.mark.parametrize("steps", [3, 40])
def test_the_gradient_of_a_while_loop_is_opened(steps):
    def f(x, n):
        def body(i, c):
            root = jnp.sqrt(c)
            return root * 0.0 + c

        return phlox.lax.fori_loop(0, n, body, x)

    answer = phlox.record(phlox.grad(f))(0.0, steps).why_nan()
    assert answer.where.text() == "root = jnp.sqrt(c)", answer
    assert "of while" in str(answer)
