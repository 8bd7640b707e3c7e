"""Programs of one operation take the quick way through the compiler, and give the same bits as the slow one."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax
from phlox._ops import all_primitives
from phlox._xla import compile as compiling, program
from phlox._xla.cpu_emitter import ELEMENTAL_EMITTER, emitter_options

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, 1e-30, 1e30, 1e-40, 88, -88, np.pi], np.float32)
RANDOM = np.random.default_rng(0)
FLOATS = np.concatenate([SPECIAL, 10 * RANDOM.standard_normal(242)]).astype(np.float32).reshape(16, 16)
OTHERS = RANDOM.permutation(FLOATS.ravel()).reshape(16, 16)
INTS = RANDOM.integers(1, 30, (16, 16)).astype(np.int32)

UNARY = "abs ceil cos erf exp expm1 floor is_finite log log1p logistic neg round sign sin sqrt square"
BINARY = "add atan2 div eq ge gt le lt max min mul ne nextafter rem sub"
WHOLE = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
SHIFTS = ("shift_left", "shift_right_arithmetic", "shift_right_logical")
PROGRAMS = {
    **{name: (getattr(lax, name), FLOATS) for name in UNARY.split()},
    **{name: (getattr(lax, name), FLOATS, OTHERS) for name in BINARY.split()},
    **{name: (getattr(lax, function), INTS, INTS[::-1]) for name, function in WHOLE.items()},
    **{name: (getattr(lax, name), INTS, INTS[::-1]) for name in SHIFTS},
    "not": (lax.bitwise_not, INTS),
    "clamp": (lambda x: lax.clamp(np.float32(-1), x, np.float32(1)), FLOATS),
    "integer_pow": (lambda x: lax.integer_pow(x, 3), FLOATS),
    "reduce_max": (lambda x: lax.reduce_max(x, (1,)), FLOATS),
    "reduce_min": (lambda x: lax.reduce_min(x, (0,)), FLOATS),
    "reduce_sum": (lambda x: lax.reduce_sum(x, (0, 1)), OTHERS[:, :9]),
    "rev": (lambda x: lax.rev(x, (0,)), FLOATS),
    "select_n": (lambda x, y: lax.select_n(y, x, x), FLOATS, OTHERS > 0),
    "slice": (lambda x: x[2:7], FLOATS),
    "transpose": (lambda x: x.T, FLOATS),
}


def compiled(function, arguments):
    """What a function returns, in bytes, if it is compiled without the default options; and these options."""
    lowering = phlox.jit(function).lower(*arguments)._lowering
    run = lowering._replace(default_options=()).compile()
    arrays = [jnp.asarray(x) for x in arguments]
    return np.asarray(run.run(arrays)[0]).tobytes(), lowering.default_options


def test_each_operation_that_states_it_is_tried():
    assert set(PROGRAMS) == {name for name, p in all_primitives().items() if p.unfused == "operation"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_bits(name):
    function, *arguments = PROGRAMS[name]
    slow, options = compiled(function, arguments)
    assert options == ELEMENTAL_EMITTER
    quick = np.asarray(phlox.jit(function)(*arguments)).tobytes()
    if ELEMENTAL_EMITTER[0][0] in compiling._refused:
        pytest.skip("this jaxlib has one way alone")
    assert quick == slow


@pytest.mark.parametrize("function", [lambda x: jnp.sin(x) * jnp.cos(x), jnp.tan, jnp.argmax, jnp.cumsum])
def test_others_take_the_slow_way(function):
    assert emitter_options(phlox.make_jaxpr(function)(FLOATS).jaxpr) == ()
    assert emitter_options(phlox.make_jaxpr(jnp.log1p)(FLOATS.astype(np.float16)).jaxpr) == ()


@pytest.mark.parametrize("effort", ["default", "tiered"])
def test_bounds_of_bools_compile_in_both_ways(effort):
    """XLA has a clamp of bools in the newer way alone."""
    clamp = phlox.jit(lambda low, x, high: lax.clamp(low, ~x, high), compile_effort=effort)
    x = np.array([False, True, False, True])
    assert clamp(np.array([False, False, True, True]), x, np.ones(4, bool)).tolist() == [True, False, True, True]
    assert clamp(False, x, False).tolist() == [False] * 4


def test_options_that_the_compiler_does_not_know_are_left_out(monkeypatch):
    monkeypatch.setattr(compiling, "_refused", set())
    monkeypatch.setattr(program, "emitter_options", lambda jaxpr: (("xla_cpu_an_option_of_tomorrow", True),))
    assert float(phlox.jit(lambda x: x + 41.0)(1.0)) == 42.0
    assert compiling._refused == {"xla_cpu_an_option_of_tomorrow"}
    wrong = {"xla_cpu_another_option": True}
    with pytest.raises(phlox.errors.CompilerOptionError, match="another_option"):
        phlox.jit(lambda x: x + 43.0, compiler_options=wrong)(1.0)
