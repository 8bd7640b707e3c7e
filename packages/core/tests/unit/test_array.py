"""Arrays as Python and NumPy see them: conversion, printing, iteration, life of the buffer, exchange, pickling."""

import copy
import inspect
import math
import pickle
import warnings

import ml_dtypes
import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import P, jit

DTYPES = ["bool", "int8", "int32", "uint8", "uint32", "float16", "bfloat16", "float32", "complex64"]
NARROW = ["int4", "uint4", "float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("dtype", DTYPES + NARROW)
def test_numpy_and_back(dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype)) if hasattr(ml_dtypes, dtype) else np.dtype(dtype)
    for shape in ((), (0,), (3,), (2, 3)):
        x = np.arange(math.prod(shape)).reshape(shape).astype(kind)
        y = jnp.asarray(x)
        assert isinstance(y, phlox.Array)
        assert (y.shape, y.dtype, y.ndim, y.size) == (x.shape, kind, x.ndim, x.size)
        back = np.asarray(y)
        assert back.dtype == kind
        np.testing.assert_array_equal(back, x)
        assert not np.shares_memory(back, x)


def test_arrays_do_not_alias_what_they_are_made_of():
    x = np.arange(4096.0, dtype=np.float32)
    y, z = jnp.asarray(x), phlox.device_put(x)
    x[:] = -1
    assert float(y[1]) == float(z[1]) == 1.0
    host = np.asarray(y)
    assert not host.flags.writeable
    assert np.array(y).flags.writeable


def test_numbers():
    x = jnp.array(2.5)
    assert (float(x), int(x), bool(x), complex(x), x.item(), x.tolist()) == (2.5, 2, True, 2.5 + 0j, 2.5, 2.5)
    assert (bool(x[None, None]), x[None, None].item(), x[None, None].tolist()) == (True, 2.5, [[2.5]])
    with pytest.raises(phlox.errors.ShapeError, match=r"x\.item"):
        float(x[None])
    assert [10, 20, 30][jnp.array(1)] == 20
    assert f"{jnp.array(2.5):.2f}" == "2.50"
    assert f"{jnp.array([1, 2])}" == "[1 2]"
    assert abs(round(jnp.array(2.567), 1) - 2.6) < 1e-6
    assert abs(jnp.array(-2)) == 2
    with pytest.raises(ValueError):
        bool(jnp.ones(2))
    with pytest.raises(TypeError):
        hash(jnp.ones(2))


def test_printing():
    assert repr(jnp.arange(3)) == "Array([0, 1, 2], dtype=int32)"
    assert repr(jnp.asarray(2.0)) == "Array(2., dtype=float32, weak_type=True)"
    assert repr(jnp.zeros((0, 2))) == "Array([], shape=(0, 2), dtype=float32)"
    assert repr(jnp.ones((2, 2), "bfloat16")) == "Array([[1, 1],\n       [1, 1]], dtype=bfloat16)"
    assert str(jnp.arange(3)) == "[0 1 2]"
    key = phlox.random.key(1)
    assert repr(key) == str(key) == f"{key}" == "Array((), dtype=key<fry>) overlaying:\n[0 1]"
    with pytest.raises(TypeError, match="format"):
        f"{key:>80}"
    # As in JAX, a dtype that does not fit into the last line stays there.
    rows = "[[0.1234567, 0.1234567, 0.1234567, 0.1234567, 0.1234567, 0.1234567]"
    assert repr(jnp.full((1, 6), 0.1234567, "float32")) == f"Array({rows}],      dtype=float32)"
    large = jnp.zeros((512, 512))
    assert repr(large) == str(large) == "Array(shape=(512, 512), dtype=float32)"
    assert str(large[1:])[:6] == f"{large}"[:6] == "[[0. 0"


def test_iteration_and_length():
    x = jnp.arange(6).reshape(3, 2)
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    _a, b, _c = x
    assert b.shape == (2,)
    assert len(x) == 3
    assert 4 in x.ravel()
    long = jnp.arange(2500)  # a program with an output for each row would take a minute to compile
    assert [int(number) for number in long] == list(range(2500))
    assert max(long) == 2499 and max(jnp.arange(17)) == 16 and next(iter(long[:0]), None) is None
    staged = phlox.make_jaxpr(lambda x: (np.iterable(x), next(iter(x)))[1])(jnp.ones((100_000, 2)))
    assert str(staged).count(" = ") < 6  # no row is computed that is not read
    for use in (len, iter, list):
        with pytest.raises(TypeError):
            use(jnp.array(1))


def test_operators_give_way_to_other_classes():
    class Other:
        __array_priority__ = 1000

        def __add__(self, x):
            return "left"

        def __radd__(self, x):
            return "right"

    assert jnp.ones(2) + Other() == "right"
    assert Other() + jnp.ones(2) == "left"
    assert (jnp.ones(2) == "text") is False
    with pytest.raises(TypeError):
        jnp.ones(2) + "text"
    with pytest.raises(TypeError):
        jnp.ones(2) + [1, 2]
    out = np.ones(2, np.float32) + jnp.ones(2)
    assert isinstance(out, phlox.Array)
    assert isinstance(np.float32(1) * jnp.ones(2), phlox.Array)


def test_objects_that_convert_themselves():
    class Wrapper:
        def __jax_array__(self):
            return jnp.arange(2.0)

    assert (jnp.ones(2) + Wrapper()).tolist() == [1.0, 2.0]
    assert (Wrapper() * jnp.ones(2)).tolist() == [0.0, 1.0]
    assert jnp.asarray(Wrapper()).tolist() == [0.0, 1.0]

    class HasArray:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3)

    assert jnp.asarray(HasArray()).tolist() == [0, 1, 2]


def test_dlpack():
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(np.from_dlpack(x), np.asarray(x))
    assert x.__dlpack_device__() == (1, 0)
    host = np.arange(64.0, dtype=np.float32)
    y = jnp.from_dlpack(host)
    np.testing.assert_array_equal(y, host)
    z = phlox.dlpack.from_dlpack(host, copy=True)
    host[:] = 7
    assert float(z[1]) == 1.0
    assert jnp.from_dlpack(np.arange(3.0)).dtype == np.float32, "64 bits are narrowed outside of x64 mode"


@pytest.mark.parametrize("offset", [0, 8])
def test_memory_is_shared_or_the_call_is_refused(offset):
    memory = np.zeros(1024, np.int8)
    start = -memory.ctypes.data % 64 + offset
    host = memory[start : start + 24].view(np.float32)
    if offset:
        with pytest.raises(ValueError, match="requires a copy"):
            jnp.from_dlpack(host, copy=False)
    else:
        shared = jnp.from_dlpack(host, copy=False)
        assert shared.unsafe_buffer_pointer() == host.ctypes.data
    assert jnp.from_dlpack(host, copy=True).unsafe_buffer_pointer() != host.ctypes.data
    assert jnp.from_dlpack(host[:0], copy=False).shape == (0,)


def test_pickle_and_copy():
    key = phlox.random.key(3)
    for x in (jnp.arange(3), jnp.asarray(1.0), jnp.ones(2, "bfloat16"), key):
        y = pickle.loads(pickle.dumps(x))
        assert y.aval is x.aval
        assert str(y) == str(x)
    x = jnp.arange(3)
    assert copy.copy(x) is x
    deep = copy.deepcopy(x)
    x.delete()
    assert deep.tolist() == [0, 1, 2]
    aval = phlox.typeof(jnp.ones((2, 3)))
    assert pickle.loads(pickle.dumps(aval)) is aval


def test_types_are_interned():
    assert phlox.typeof(jnp.ones((2, 3))) is phlox.typeof(np.zeros((2, 3)))
    assert str(phlox.typeof(1.0)) == "~float32[]"
    assert phlox.typeof(jnp.ones(5)).short == "f32[5]"


def test_waiting():
    x = phlox.jit(lambda x: x @ x)(jnp.ones((300, 300)))
    assert x.block_until_ready() is x
    assert x.is_ready()
    tree = phlox.block_until_ready({"a": x, "b": 1})
    assert tree["b"] == 1
    assert phlox.device_get({"a": jnp.arange(2), "k": "text"})["a"].tolist() == [0, 1]


def test_the_class_makes_no_arrays_and_knows_tracers():
    with pytest.raises(TypeError):
        phlox.Array()
    seen = []
    phlox.jit(lambda x: seen.append(isinstance(x, phlox.Array)) or x)(1.0)
    phlox.vmap(lambda x: seen.append(isinstance(x, jnp.ndarray)) or x)(jnp.ones(2))
    assert seen == [True, True]
    assert not isinstance(np.ones(2), phlox.Array)
    assert type(jnp.ones(2)).__name__ == "ArrayImpl"  # as in JAX


def test_sixty_four_bit_mode():
    assert jnp.asarray(np.arange(3)).dtype == np.int32
    with phlox.enable_x64(True):
        assert jnp.asarray(np.arange(3)).dtype == np.int64
        assert jnp.ones(3).dtype == np.float64
        assert (jnp.ones(3) * 1e-300).min() == 1e-300
        assert jnp.array(2**40).item() == 2**40
    with pytest.raises(OverflowError):
        jnp.array(2**40)
    assert jnp.ones(3).dtype == np.float32


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_arrays_of_64_bits_outside_of_64_bit_mode(dtype):
    """They keep their dtype in functions whose numbers are not the user's, and without a warning about a dtype."""
    with phlox.enable_x64(True):
        x = jnp.arange(3).astype(dtype)
    values = np.arange(3).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = {
            "mean": (jnp.mean(x), 1),
            "average": (jnp.average(x), 1),
            "var": (jnp.var(x), 2 / 3),
            "std of some": (jnp.std(x, where=values != 1), 1),
            "linspace": (jnp.linspace(x[0], x[1], 3), [0, 0.5, 1]),
            "unique": (jnp.unique(x), values),
            "round": (jnp.round(x), values),
            "convolve": (jnp.convolve(x, x), np.convolve(values, values)),
            "logaddexp": (jnp.logaddexp(x, x), values + np.log(2)),
            "sinc": (jnp.sinc(x), np.sinc(np.arange(3))),
        }
    for name, (result, expected) in results.items():
        assert result.dtype == (np.float64 if name in ("var", "std of some") else dtype), name
        np.testing.assert_allclose(result, expected, rtol=1e-14, atol=1e-15, err_msg=name)


def test_integers_of_64_bits_outside_of_64_bit_mode():
    with phlox.enable_x64(True):
        x = jnp.asarray([2**40, -7, 9])
        y = jnp.asarray([3, 2, -2])
    assert (x // y).tolist() == [2**40 // 3, -4, -5] and (x // y).dtype == np.int64
    assert jnp.unique(x).tolist() == [-7, 9, 2**40]


def test_bytes():
    """Before Python 3.12 a class has no buffer, and `bytes` of an array of integers would take each for a byte."""
    for x in (np.arange(3), np.int32(5), np.ones((2, 0), np.float32), np.array([True, False])):
        assert bytes(jnp.asarray(x)) == np.asarray(jnp.asarray(x)).tobytes()
    with pytest.raises(BufferError):
        bytes(phlox.random.key(0))
    deleted = jnp.arange(3)
    deleted.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        bytes(deleted)


@pytest.mark.parametrize(
    ("number", "dtype"),
    [
        (3e9, "int32"),
        (-1.0, "uint8"),
        (256.0, "uint8"),
        (float("nan"), "int32"),
        (float("inf"), "int8"),
        (300, "uint8"),
    ],
)
def test_python_numbers_that_an_integer_dtype_cannot_hold(number, dtype):
    for data in (number, [number], [[0, number]]):
        with pytest.raises(phlox.errors.NumberRangeError, match=f"too large to convert to {dtype}"):
            jnp.array(data, dtype)
    for data in ([1.0, [2.0]], [[float("nan")], [1.0, 2.0]]):
        with pytest.raises(ValueError, match="array: "):
            jnp.array(data, "float32")
    assert jnp.array([255.9, -0.9, True], "uint8").tolist() == [255, 0, 1]


def test_shards():
    mesh = phlox.sharding.Mesh(np.array(phlox.devices()[:4]).reshape(2, 2), ("a", "b"))
    x = np.arange(16.0, dtype=np.float32).reshape(4, 4)
    for spec in (phlox.P("a"), phlox.P("b", "a"), phlox.P(None, "b"), phlox.P(("a", "b")), phlox.P()):
        sharding = phlox.NamedSharding(mesh, spec)
        y = phlox.device_put(x, sharding)
        np.testing.assert_array_equal(np.asarray(y), x)
        assert y.sharding == sharding
        for shard in y.addressable_shards:
            np.testing.assert_array_equal(np.asarray(shard.data), x[shard.index])
            assert shard.data.device == shard.device
        np.testing.assert_array_equal(np.asarray(y * 2 + 1), x * 2 + 1)
        np.testing.assert_array_equal(np.asarray(y.T), x.T)
        assert float(y.sum()) == x.sum()
        np.testing.assert_array_equal(np.asarray(y[1]), x[1])
        np.testing.assert_array_equal(np.asarray(phlox.device_put(y, phlox.devices()[5])), x)
    assert phlox.device_put(x, phlox.NamedSharding(mesh, phlox.P())).is_fully_replicated
    with pytest.raises(phlox.errors.ShapeError):
        phlox.device_put(np.ones((3, 4)), phlox.NamedSharding(mesh, phlox.P("a")))
    with pytest.raises(phlox.errors.ShapeError):
        phlox.NamedSharding(mesh, phlox.P("c"))


class Remote:
    """What other libraries put into trees: it can wait, be copied and be read."""

    def __init__(self):
        self.asked = []

    def block_until_ready(self):
        self.asked.append("wait")

    def copy_to_host_async(self):
        self.asked.append("copy")

    def __array__(self, dtype=None, copy=None):
        return np.arange(2)


def test_other_leaves_are_asked_too():
    leaf = Remote()
    tree = [leaf, object(), 1.0, jnp.ones(1)]
    assert phlox.copy_to_host_async(tree) is tree
    assert phlox.block_until_ready(tree) is tree
    assert leaf.asked == ["copy", "wait"]
    got = phlox.device_get(tree)
    assert got[0].tolist() == [0, 1]
    assert got[1:3] == tree[1:3]
    assert type(phlox.device_get(np.float32(1))) is np.ndarray

    class Broken:
        def copy_to_host_async(self):
            raise AttributeError("inside")

    with pytest.raises(AttributeError, match="inside"):
        phlox.copy_to_host_async(Broken())


def test_an_array_that_lies_there_already_is_put_nowhere():
    sharding = phlox.NamedSharding(phlox.make_mesh((2,), ("x",), devices=phlox.devices()[:2]), phlox.P("x"))
    there = phlox.device_put(jnp.arange(2), sharding)
    assert phlox.device_put(there, sharding) is there
    assert phlox.device_put(there) is there
    assert phlox.device_put(there, sharding, may_alias=False) is not there


def aligned(x, by=64):
    """`x` in memory that begins `by` bytes after a multiple of 4096."""
    memory = np.empty(x.nbytes + 8192, np.uint8)
    first = -memory.ctypes.data % 4096 + by
    made = memory[first : first + x.nbytes].view(x.dtype).reshape(x.shape)
    made[...] = x
    return made


@pytest.mark.parametrize("dtype", DTYPES + NARROW)
def test_memory_of_numpy_is_shared_only_if_it_may_be(dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype)) if hasattr(ml_dtypes, dtype) else np.dtype(dtype)
    x = np.arange(64).reshape(4, 16).astype(kind) if dtype not in NARROW else np.ones((4, 16), kind)
    for may_alias in (True, None, False):
        for by in (64, 4):
            held = aligned(x, by)
            y = phlox.device_put(held, may_alias=may_alias)
            assert (y.dtype, y.committed) == (kind, False)
            np.testing.assert_array_equal(y, x)
            if kind.isbuiltin == 1:
                assert np.shares_memory(np.asarray(y), held) == (may_alias is True and by == 64)
            np.testing.assert_array_equal(jit(lambda x: x[::-1], donate_argnums=0)(y), x[::-1])
            np.testing.assert_array_equal(held, x)  # donated memory of others is not written to
    for strange in (aligned(x)[::-1], aligned(x).T, aligned(x)[:, ::3], aligned(x)[0, 0]):
        np.testing.assert_array_equal(phlox.device_put(strange, phlox.devices()[1], may_alias=True), strange)


def test_what_may_be_shared_is_said_for_each_array():
    x, y = aligned(np.ones((8, 4), np.float32)), aligned(np.arange(8))
    both = phlox.device_put({"x": x, "y": y}, may_alias={"x": True, "y": False})
    assert np.shares_memory(np.asarray(both["x"]), x) and not np.shares_memory(np.asarray(both["y"]), y)
    sharding = phlox.NamedSharding(phlox.make_mesh((2,), ("x",), devices=phlox.devices()[:2]), phlox.P())
    for part in phlox.device_put(
        x, sharding, may_alias=True
    ).addressable_shards:  # of several devices, each has its own
        assert not np.shares_memory(np.asarray(part.data), x)


def test_deleted_arrays_say_so_whatever_is_asked():
    x = jnp.ones(2)
    x.delete()
    for use in (repr, str, np.asarray, lambda x: x + 1, lambda x: x.tolist(), lambda x: f"{x}"):
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[2\]"):
            use(x)


def test_copies_are_arrays_of_their_own_under_transformations():
    x = jnp.ones(3)

    def copied(x):
        return jnp.array(x)

    y, y_dot = phlox.jvp(copied, (x,), (x,))
    z, back = phlox.vjp(copied, x)
    for other in (y, y_dot, z, *back(x), phlox.vmap(copied)(x)):
        assert other is not x
        assert other.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


def test_live_arrays_are_the_arrays_of_the_program():
    x = jnp.full((3, 11), 2.5)
    (found,) = [a for a in phlox.live_arrays() if a.shape == (3, 11)]
    np.testing.assert_array_equal(found, x)
    found.delete()
    assert x.is_deleted()
    mesh = phlox.make_mesh((4,), ("i",))
    y = phlox.device_put(np.ones((4, 13), np.float32), phlox.NamedSharding(mesh, P("i")))
    (found,) = [a for a in phlox.live_arrays() if a.shape == (4, 13)]
    assert found.sharding == y.sharding


def test_an_index_before_the_array():
    x = jnp.arange(3.0)
    assert x[-4] == x[-9] == 0
    np.testing.assert_array_equal(x.at[-4].set(9.0), x)
    np.testing.assert_array_equal(jit(lambda x, i: x.at[i].add(9.0))(x, -5), x)


def test_operators_and_methods_are_those_of_the_class():
    assert phlox.Array.sum is type(jnp.ones(2)).sum
    assert list(inspect.signature(phlox.Array.sum).parameters)[:3] == ["self", "axis", "dtype"]
    assert "See `numpy.sum`" in phlox.Array.sum.__doc__
    for name, member in inspect.getmembers(phlox.Array):
        function = member.fget if isinstance(member, property) else member
        if inspect.isfunction(function) and not name.startswith("_"):
            assert function.__doc__, name
            assert function.__name__ == name


def test_axes_of_transpose_are_numbers_or_one_sequence():
    x, v = jnp.ones((2, 3)), jnp.arange(3)
    for axes in ((1, 0), ((1, 0),), (None,), (), (np.array([1, 0]),), (np.int64(1), np.int64(0))):
        assert x.transpose(*axes).shape == (3, 2)
    for axes in ((0,), (-1,), (np.int64(0),)):
        np.testing.assert_array_equal(v.transpose(*axes), v)
