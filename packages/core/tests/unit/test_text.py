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


def named(name, function):
    function.__name__ = name
    return phlox.jit(function)


@pytest.mark.parametrize(
    "names",
    [("f", "f", "f_1"), ("f_1", "f", "f"), ("f", "f_1", "f"), ("main_1", "main", "main"), ("mesh", "mesh_1", "é")],
)
def test_functions_with_the_names_of_others(names):
    """A second function f is called f_1, as another one of the user may be. Meshes have symbols too."""
    first, second, third = (named(name, lambda x, k=k: jnp.sin(x) * k) for k, name in enumerate(names, 2))
    mesh = phlox.make_mesh((2,), ("x",))
    split = phlox.NamedSharding(mesh, phlox.P("x"))
    run = phlox.jit(lambda x: third(second(first(x))), out_shardings=split)
    x = np.linspace(0, 1, 4, dtype=np.float32)
    np.testing.assert_allclose(run(x), np.sin(np.sin(np.sin(x) * 2) * 3) * 4, rtol=1e-5)


@pytest.mark.parametrize("name", ["a\nb", 'a"b', "a\\b", "é", "日本", "1", "", ".", "a, b", "\t\0\x7f"])
def test_names_with_any_characters(name):
    """Of functions, name scopes and mesh axes, in text with locations and without. Some ended the process."""

    def scoped(x):
        with phlox.named_scope(name):
            return jnp.cos(named(name, lambda y: jnp.sin(y))(x))

    function = named(name, scoped)
    assert function(0.0) == 1 and function.lower(0.0).compile()(0.0) == 1
    assert "sine" in function.lower(0.0).as_text(debug_info=True)
    exported = phlox.export.export(function)(0.0)
    assert phlox.jit(exported.call)(0.0) == 1
    mesh = phlox.make_mesh((2,), (name,))
    total = phlox.shard_map(lambda x: phlox.lax.psum(x, name), mesh=mesh, in_specs=phlox.P(name), out_specs=phlox.P())
    assert phlox.jit(total)(np.ones(2, np.float32)) == 2


def test_signs_of_zero_in_complex_constants():
    """1 + 0i and 1 - 0i are equal, and two constants of one program."""
    numbers = [complex(a, b) for a, b in [(1, 0.0), (1, -0.0), (0.0, 1), (-0.0, 1), (0.0, -0.0), (-0.0, 0.0)]]
    for x, z in zip(phlox.jit(lambda: [jnp.full(2, w) for w in numbers])(), numbers, strict=True):
        assert str(np.asarray(x)[1]) == str(np.complex64(z))


def test_empty_arrays_and_many_results():
    assert phlox.jit(lambda x: x + 1)(np.zeros((0, 3), np.float32)).shape == (0, 3)
    outs = phlox.jit(lambda x: [x + i for i in range(100)])(1.0)
    assert [float(x) for x in outs] == [1.0 + i for i in range(100)]
    assert phlox.jit(lambda *xs: sum(xs))(*range(100)) == sum(range(100))
