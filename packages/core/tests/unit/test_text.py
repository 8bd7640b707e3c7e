"""The StableHLO text: constants of every type read back exactly, names are legal, and what prints is what runs."""

import ml_dtypes
import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox._ir import dtypes
from phlox._ir.avals import shaped
from phlox._xla.text import dense, number

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("kind", FLOATS)
def test_float_constants_are_exact(kind):
    dtype = np.dtype(kind)
    info = dtypes.finfo(dtype)
    values = [0.0, -0.0, 1.0, 1 / 3, float(info.max), float(info.tiny), float(info.eps), -1e-3]
    values += [np.nan] + ([np.inf, -np.inf] if dtype != np.dtype(ml_dtypes.float8_e4m3fn) else [])
    with phlox.enable_x64(True):
        for value in values:
            literal = np.asarray(value, dtype)
            got = np.asarray(phlox.jit(lambda v=literal: phlox.lax.broadcast(v[()], (2,)))())
            unsigned = np.dtype(f"uint{dtype.itemsize * 8}")
            if np.isnan(value):
                assert np.isnan(got.astype(np.float32)).all()
            else:
                np.testing.assert_array_equal(got.view(unsigned), np.broadcast_to(literal.view(unsigned), (2,)))


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
def test_integer_constants_are_exact(kind):
    info = np.iinfo(kind)
    with phlox.enable_x64(True):
        for value in (info.min, info.max, 0, 1):
            literal = np.asarray(value, kind)
            assert np.asarray(phlox.jit(lambda v=literal: phlox.lax.broadcast(v[()], (2,)))()).tolist() == [value] * 2


def test_other_constants():
    f32 = np.dtype(np.float32)
    assert dense(2, shaped((3,), f32)) == "dense<2.0>"
    assert dense(np.array([True, False]), shaped((2,), np.dtype(bool))) == "dense<[true, false]>"
    assert dense(np.zeros((0, 2)), shaped((0, 2), f32)) == "dense<>"
    assert dense(np.array([1.0, 2.0]), shaped((2,), f32)) == 'dense<"0x0000803F00000040">'
    assert number(1e-5, f32) == "1.0e-05"
    assert number(1 + 2j, np.dtype(np.complex64)) == "(1.0, 2.0)"
    np.testing.assert_array_equal(phlox.jit(lambda: jnp.stack([1 + 2j, 3 - 1j]))(), [1 + 2j, 3 - 1j])


def test_names_of_functions_are_made_legal_and_unique():
    def strange(x):
        return jnp.sin(x) * 2

    for name in ("<lambda>", "ünïcode", "two words", 'qu"ote', "1st", "main", ""):
        strange.__name__ = name
        inner = phlox.jit(strange)
        assert float(phlox.jit(lambda x, inner=inner: inner(x) + phlox.jit(lambda y: y * 2)(x))(0.0)) == 0.0
        phlox.jit(strange).clear_cache()


def test_empty_arrays_and_many_results():
    assert phlox.jit(lambda x: x + 1)(np.zeros((0, 3), np.float32)).shape == (0, 3)
    outs = phlox.jit(lambda x: [x + i for i in range(100)])(1.0)
    assert [float(x) for x in outs] == [1.0 + i for i in range(100)]
    assert phlox.jit(lambda *xs: sum(xs))(*range(100)) == sum(range(100))
