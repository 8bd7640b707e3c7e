"""Integers that overflow in strict mode, named 64-bit types, and loop bodies without ``return``."""

import warnings

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import config, errors, lax, random

BIG = np.full((2, 2), 2**30, np.int32)

OVERFLOWS = {
    "sum": lambda x: jnp.sum(x),
    "sum of an axis": lambda x: x.sum(axis=1),
    "cumsum": lambda x: jnp.cumsum(x),
    "prod": lambda x: jnp.prod(x, axis=0),
    "cumprod": lambda x: jnp.cumprod(x, axis=1),
    "matmul": lambda x: x @ x,
    "dot": lambda x: jnp.dot(x[0], x[1]),
    "einsum": lambda x: jnp.einsum("ij,kj->ik", x, x),
    "vmap": lambda x: phlox.vmap(jnp.sum)(x),
    "scan": lambda x: lax.scan(lambda c, row: (c, row.sum()), 0, x),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", OVERFLOWS)
def test_integers_that_wrap_around_raise_in_strict_mode(name, compiled):
    def run(x):
        return phlox.block_until_ready((phlox.jit(OVERFLOWS[name]) if compiled else OVERFLOWS[name])(jnp.asarray(x)))

    run(BIG)  # by default the result wraps around
    with config.scope(checks="strict"):
        run(BIG // 2**20)
        run(-(BIG // 2**20))
        with pytest.raises(errors.CheckError, match=r"which int32 cannot hold .*: the result wraps around") as caught:
            run(BIG)
    assert "test_traps_types" in caught.value.where.file


def test_the_error_names_the_line_of_each_eager_call():
    lines = []
    with config.scope(checks="strict"):
        for _ in range(2):
            with pytest.raises(errors.CheckError) as first:
                jnp.sum(jnp.asarray(BIG))
            with pytest.raises(errors.CheckError) as second:
                jnp.sum(jnp.asarray(BIG))
            lines.append((first.value.where.line, second.value.where.line))
    assert lines[0] == lines[1] and lines[0][0] + 2 == lines[0][1]


#: functions that name a 64-bit type, and the type of their results where it is allowed
NAMED = {
    "asarray": (lambda: jnp.asarray([1.0], "float64"), "float64"),
    "zeros": (lambda: jnp.zeros(2, np.int64), "int64"),
    "arange": (lambda: jnp.arange(3, dtype="float64"), "float64"),
    "astype": (lambda: jnp.ones(2).astype("complex128"), "complex128"),
    "scalar type": (lambda: jnp.float64(1.0), "float64"),
    "sum": (lambda: jnp.arange(3).sum(dtype="int64"), "int64"),
    "mean": (lambda: jnp.mean(jnp.ones(2, "float64")), "float64"),
    "variance": (lambda: jnp.var(jnp.ones(2, "float64")), "float64"),
    "mean of float32": (lambda: jnp.mean(jnp.ones(2), dtype="float64"), "float64"),
    "fft": (lambda: jnp.fft.fft(jnp.ones(4, "float64")), "complex128"),
    "uniform": (lambda: random.uniform(random.key(0), (2,), "float64"), "float64"),
    "normal": (lambda: random.normal(random.key(0), (2,), "float64"), "float64"),
    "randint": (lambda: random.randint(random.key(0), (2,), 0, 9, "int64"), "int64"),
    "bits": (lambda: random.bits(random.key(0), (2,), "uint64"), "uint64"),
    "jit": (lambda: phlox.jit(lambda: jnp.zeros(2, "float64") + 1)(), "float64"),
    "grad": (lambda: phlox.grad(lambda x: (x**2).sum())(jnp.ones(2, "float64")), "float64"),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_64_bit_types(name):
    make, dtype = NAMED[name]
    with config.scope(explicit_x64_dtypes="allow"):
        assert make().dtype == dtype
        assert jnp.ones(2).dtype == jnp.asarray(np.ones(2)).dtype == "float32"
    with config.scope(explicit_x64_dtypes="error"), pytest.raises(errors.DtypeError, match="is not available"):
        make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert make().dtype.itemsize * 2 == np.dtype(dtype).itemsize
    assert any("explicit_x64_dtypes" in str(w.message) for w in caught)


WIDE = phlox.ShapeDtypeStruct((2,), "float64")
#: functions of 64-bit types that make no array, and the 64-bit type
DESCRIBED = {
    "eval_shape": (lambda: phlox.eval_shape(lambda x: x, WIDE).dtype, "float64"),
    "eval_shape, jitted": (lambda: phlox.eval_shape(phlox.jit(lambda x: x + 1), WIDE).dtype, "float64"),
    "lower": (lambda: phlox.jit(lambda x: x + 1).lower(WIDE).out_info.dtype, "float64"),
    "make_jaxpr": (lambda: phlox.make_jaxpr(lambda x: x + 1)(WIDE).out_avals[0].dtype, "float64"),
    "result_type": (lambda: jnp.result_type("float64"), "float64"),
    "result_type of several": (lambda: jnp.result_type(np.int64, jnp.ones(2, "int32")), "int64"),
    "result_type of a dtype": (lambda: jnp.result_type(np.dtype("complex128"), 1.0), "complex128"),
    "dtypes.result_type": (lambda: phlox.dtypes.result_type("uint64"), "uint64"),
}


@pytest.mark.parametrize("name", DESCRIBED)
def test_64_bit_types_of_descriptions(name):
    make, dtype = DESCRIBED[name]
    with config.scope(explicit_x64_dtypes="allow"):
        assert make() == dtype
    with config.scope(explicit_x64_dtypes="error"), pytest.raises(errors.DtypeError, match="is not available"):
        make()
    with pytest.warns(UserWarning, match="explicit_x64_dtypes"):
        assert make().itemsize * 2 == np.dtype(dtype).itemsize


@pytest.mark.parametrize("mode", ["warn", "error"])
def test_64_bit_types_of_values_become_32_bits_silently(mode):
    values = [np.ones(2), np.float64(1.0), WIDE, float, None]
    with config.scope(explicit_x64_dtypes=mode), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [jnp.result_type(x) for x in values] == ["float32"] * len(values)
        assert jnp.zeros_like(WIDE).dtype == lax.full_like(WIDE, 0).dtype == jnp.asarray(np.ones(2)).dtype == "float32"


def test_random_numbers_of_64_bits_are_those_of_64_bit_mode():
    def draw():
        key = random.key(3)
        return [
            random.uniform(key, (3,), "float64"),
            random.normal(random.clone(key), (3,), "float64"),
            random.bits(random.clone(key), (3,), "uint64"),
        ]

    with phlox.enable_x64(True):
        expected = [np.asarray(x) for x in draw()]
    with config.scope(explicit_x64_dtypes="allow"):
        for x, y in zip(draw(), expected, strict=True):
            np.testing.assert_array_equal(np.asarray(x), y)


def nothing(*_):
    """A body whose ``return`` was forgotten."""


X = jnp.arange(3.0)

#: programs with a function that returns None or another type, and parts of the message
WRONG = {
    "scan": (lambda: lax.scan(nothing, 0.0, X), ["None", "nothing", "return"]),
    "fori_loop": (lambda: lax.fori_loop(0, 3, nothing, 0.0), ["f32[] and None", "at the end of body_fun (nothing)"]),
    "while_loop": (lambda: lax.while_loop(lambda c: c < 3, nothing, (0.0, X)), ["(f32[], f32[3]) and None", "return"]),
    "while_loop, condition": (lambda: lax.while_loop(nothing, lambda c: c, 0.0), ["boolean", "returned: None"]),
    "while_loop, number": (lambda: lax.while_loop(lambda c: c, lambda c: c, 1.0), ["boolean scalar", "f32[]"]),
    "cond": (
        lambda: lax.cond(True, lambda x: x, nothing, 1.0),
        ["return f32[] and None", "end of false_fun (nothing)"],
    ),
    "cond, other structure": (lambda: lax.cond(True, lambda x: (x, 1), lambda x: x, X), ["f32[3] and (f32[3], i32[])"]),
    "cond, other dtype": (lambda: lax.cond(True, lambda x: x, lambda x: 1, 1.0), ["f32[] and i32[]"]),
    "switch": (lambda: lax.switch(1, [lambda x: x, nothing], 1.0), ["None and f32[]", "branch 1 (nothing)"]),
    "associative_scan": (lambda: lax.associative_scan(nothing, X), ["None for f32[1]", "end of fn (nothing)"]),
    "carry, structure": (lambda: lax.scan(lambda c, _: ((c, c), 0), 0.0, X), ["f32[] and (f32[], f32[])"]),
    "carry, shape": (lambda: lax.fori_loop(0, 3, lambda i, c: c[:2], X), ["float32[3]", "float32[2]"]),
    "carry, dict": (
        lambda: lax.fori_loop(0, 3, lambda i, c: {"a": c["a"]}, {"a": 1.0, "b": X}),
        ["{'a': f32[], 'b': f32[3]} and {'a': f32[]}"],
    ),
    "grad": (lambda: phlox.grad(nothing)(1.0), ["nothing, given to grad, returned None"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_functions_that_return_something_else(name):
    program, parts = WRONG[name]
    with pytest.raises(errors.PhloxError) as caught:
        program()
    for part in parts:
        assert part in str(caught.value)
