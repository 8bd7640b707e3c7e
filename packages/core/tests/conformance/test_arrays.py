"""Arrays as Python and NumPy see them: operators, attributes, conversions, printing, copying."""

import copy
import functools
import operator
import pickle
import sys
import warnings

import jax
import ml_dtypes
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import agree, outcome, rotate, row, same_kind

NEAR = row("arrays")
BINARY = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
]
OTHERS = [
    2,
    2.5,
    True,
    1j,
    np.float32(1.5),
    np.int8(3),
    np.array([1, 2, 3]),
    np.array([0.5, 1.0, 2.0], np.float16),
    [1, 2, 3],
    (1, 2),
    "a",
    None,
    object,
]


def both(case, *args, jit=False, what=""):
    theirs = outcome(case, jax, args)
    agree(outcome(case, phlox, args), theirs, NEAR, what)
    if jit:
        agree(
            outcome(lambda m, *xs: m.jit(functools.partial(case, m))(*xs), phlox, args),
            theirs,
            NEAR,
            what + " under jit",
        )


def data(shape, dtype="float32", low=-3.0):
    return judge.array(judge.rng("arrays", shape, dtype), shape, dtype, low)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool", "complex64", "bfloat16"])
@pytest.mark.parametrize("name", BINARY)
def test_operators(name, dtype):
    """Array with array, and with what else may stand beside it, on either side."""
    apply = getattr(operator, name)
    low = 0.0 if "shift" in name else -3.0
    both(
        lambda m, x, y: apply(m.numpy.asarray(x), m.numpy.asarray(y)),
        data((3, 3), dtype, low),
        data((3,), dtype, low),
        jit=True,
    )
    for other in rotate(OTHERS, 4 * judge.CASES, name, dtype):
        both(
            lambda m, x, o=other: apply(m.numpy.asarray(x), o),
            data((3,), dtype, low),
            what=f"{name} with {other!r} on the right",
        )
        both(
            lambda m, x, o=other: apply(o, m.numpy.asarray(x)),
            data((3,), dtype, low),
            what=f"{name} with {other!r} on the left",
        )


@pytest.mark.parametrize("dtype", judge.ALL)
def test_unary_operators(dtype):
    for name in ("neg", "pos", "abs", "invert"):
        both(lambda m, x, n=name: getattr(operator, n)(m.numpy.asarray(x)), data((3,), dtype), jit=True, what=name)
    both(lambda m, x: divmod(m.numpy.asarray(x), 2), data((3,), dtype), what="divmod")
    both(lambda m, x: divmod(7, m.numpy.asarray(x) + 1), data((3,), dtype, 1), what="divmod on the left")
    both(lambda m, x: round(m.numpy.asarray(x)), data((3,), dtype), what="round")
    both(lambda m, x: round(m.numpy.asarray(x), 1), data((3,), dtype), what="round to 1")


def test_assignment_operators_make_new_arrays():
    for m in (phlox, jax):
        x = y = m.numpy.arange(3)
        x += 1
        np.testing.assert_array_equal(x, [1, 2, 3])
        np.testing.assert_array_equal(y, [0, 1, 2])


@pytest.mark.parametrize("dtype", judge.ALL)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2), (2, 3, 4)], ids=str)
def test_attributes(shape, dtype):
    x = data(shape, dtype)
    for name in (
        "shape",
        "ndim",
        "size",
        "dtype",
        "itemsize",
        "nbytes",
        "weak_type",
        "is_fully_addressable",
        "is_fully_replicated",
    ):
        mine, theirs = (getattr(m.numpy.asarray(x), name) for m in (phlox, jax))
        assert mine == theirs, name
    for name in ("T", "mT", "real", "imag"):
        both(lambda m, x, n=name: getattr(m.numpy.asarray(x), n), x, jit=True, what=name)
    for m in (phlox, jax):
        array = m.numpy.asarray(x)
        assert str(m.typeof(array)) == str(jax.typeof(jax.numpy.asarray(x)))
        assert isinstance(array, m.Array)
        assert len(array.devices()) == 1
        assert array.device in array.devices() or len(array.sharding.device_set) == 1
        assert not array.is_deleted()
        assert array.block_until_ready() is array
        assert m.numpy.shape(array) == shape
        assert len(array.addressable_shards) == 1
        np.testing.assert_array_equal(np.asarray(array.addressable_shards[0].data), x)
        np.testing.assert_array_equal(np.asarray(array.addressable_data(0)), x)


VALUES = [0, 3, -2, 2.5, True, False, 1j, np.nan, np.inf]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_conversions_to_python(value):
    for convert in (
        bool,
        int,
        float,
        complex,
        operator.index,
        str,
        repr,
        hash,
        len,
        list,
        lambda x: x.item(),
        lambda x: x.tolist(),
        lambda x: [0, 1, 2, 3][x],
        lambda x: f"{x}",
        lambda x: f"{x:.3f}",
        lambda x: f"{x!r}",
    ):
        for shape in ((), (1,), (2,)):
            results = []
            for m in (phlox, jax):
                try:
                    results.append((convert(m.numpy.full(shape, value)), None))
                except Exception as error:
                    results.append((None, error))
            (mine, my_error), (theirs, their_error) = results
            if my_error or their_error:
                same_kind(my_error, their_error, f"{convert} of {value} {shape}")
            else:
                assert repr(mine) == repr(theirs) and type(mine).__module__.split(".")[0] in ("builtins", "phlox"), (
                    convert,
                    value,
                    shape,
                )


PRINTED = [
    lambda n: n.arange(3),
    lambda n: n.ones((2, 3)),
    lambda n: n.asarray(2.5),
    lambda n: n.asarray(3),
    lambda n: n.zeros((0, 2)),
    lambda n: n.zeros(0),
    lambda n: n.arange(2000),
    lambda n: n.ones((40, 50)),
    lambda n: n.asarray([True, False]),
    lambda n: n.asarray([1 + 2j]),
    lambda n: n.asarray([1.5, np.nan, -np.inf]),
    lambda n: n.asarray([1e-10, 1e10]),
    lambda n: n.ones(2, "bfloat16"),
    lambda n: n.ones(2, "float16"),
    lambda n: n.ones((), "int8"),
    lambda n: n.full((2,), 7),
    lambda n: n.ones((2, 2, 2)),
    lambda n: n.ones(2, "float8_e5m2"),
    lambda n: n.ones(2, "int4"),
    lambda n: n.sqrt(n.arange(8.0)).reshape(2, 4),
    lambda n: n.sqrt(n.arange(30.0)),
]


@pytest.mark.parametrize("position", range(len(PRINTED)))
def test_printing(position):
    mine, theirs = PRINTED[position](phlox.numpy), PRINTED[position](jax.numpy)
    assert repr(mine) == repr(theirs)
    assert str(mine) == str(theirs)
    assert format(mine) == format(theirs)


DISCARDED = {
    "asarray": lambda m, z: m.numpy.asarray(z, "float32"),
    "array of NumPy's": lambda m, z: m.numpy.array(np.asarray(z), "int32"),
    "list": lambda m, z: m.numpy.array([z[0], 1.0], "float32"),
    "convert_element_type": lambda m, z: m.lax.convert_element_type(z, "float32"),
    "class": lambda m, z: m.numpy.float32(z),
    "sum": lambda m, z: m.numpy.sum(z, dtype="float32"),
    "cumsum": lambda m, z: m.numpy.cumsum(z, dtype="float32"),
    "full": lambda m, z: m.numpy.full((2,), z, dtype="float32"),
    "insert": lambda m, z: m.numpy.insert(z.real, 0, z[0]),
    "piecewise": lambda m, z: m.numpy.piecewise(z.real, [z.real > 0], [z[1], 2]),
    "complex to complex": lambda m, z: m.numpy.asarray(z, dtype="complex64"),
    "astype": lambda m, z: z.astype("float32"),
    "at": lambda m, z: z.real.at[0].set(z[0]),
    "a part": lambda m, z: z.real,
    "derivative": lambda m, z: m.grad(lambda x: m.numpy.abs(x * z).sum())(1.0),
    "cotangent": lambda m, z: m.vjp(lambda x: m.lax.convert_element_type(x, "complex64"), z.real)[1](z),
    "jit": lambda m, z: m.jit(lambda z: m.lax.convert_element_type(z, "float32"))(z),
}


@pytest.mark.parametrize("name", DISCARDED)
def test_discarded_imaginary_parts_are_told(name):
    counts = []
    for m in (phlox, jax):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            DISCARDED[name](m, m.numpy.array([1 + 2j, 3 - 1j]))
        counts.append(sum(w.category is np.exceptions.ComplexWarning for w in caught) > 0)
    assert counts[0] == counts[1]


@pytest.mark.parametrize("width", [40, 75, 100])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16", "bool", "complex64", "float8_e4m3fn"])
def test_where_the_dtype_is_printed(dtype, width):
    with np.printoptions(linewidth=width):
        for length in range(1, 40):
            for shape in ((length,), (2, 2, length)):
                mine, theirs = (m.numpy.arange(np.prod(shape)).reshape(shape).astype(dtype) for m in (phlox, jax))
                assert repr(mine) == repr(theirs)
            mine, theirs = (repr(m.lax.full((length,), 2.5)) for m in (phlox, jax))
            assert mine == theirs, "with a weak type"


@pytest.mark.parametrize("size", [(1 << 18) - 1, 1 << 18])
def test_large_arrays_are_printed_without_elements(size):
    mine, theirs = phlox.numpy.ones(size), jax.numpy.ones(size)
    assert repr(mine) == repr(theirs) and str(mine) == str(theirs) and f"{mine}" == f"{theirs}"


@pytest.mark.parametrize("dtype", [*judge.ALL, "float8_e4m3fn", "int4"])
def test_to_numpy_and_back(dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype)) if dtype in ("float8_e4m3fn", "int4", "bfloat16") else np.dtype(dtype)
    x = np.arange(6).reshape(2, 3).astype(kind)
    for m in (phlox, jax):
        array = m.numpy.asarray(x)
        back = np.asarray(array)
        assert back.dtype == kind and back.flags.c_contiguous
        np.testing.assert_array_equal(back.astype(float), x.astype(float))
        assert not back.flags.writeable
        assert np.array(array).flags.writeable
        np.testing.assert_array_equal(np.asarray(array, dtype=np.float64), x.astype(float))
        assert np.array_equal(np.add(array, 1).astype(float), np.add(x, 1).astype(float)) or dtype == "bool"
        copied = pickle.loads(pickle.dumps(array))
        assert type(copied) is type(array) and copied.dtype == kind
        np.testing.assert_array_equal(np.asarray(copied).astype(float), x.astype(float))
        for other in (copy.copy(array), copy.deepcopy(array), array.copy()):
            assert type(other) is type(array)
            np.testing.assert_array_equal(np.asarray(other).astype(float), x.astype(float))
        assert m.device_get(array).dtype == kind and isinstance(m.device_get(array), np.ndarray)


def test_numpy_functions_take_arrays():
    for f in (
        np.sum,
        np.sin,
        np.mean,
        np.concatenate,
        lambda x: np.stack([x, x]),
        np.argmax,
        np.ravel,
        lambda x: x @ np.ones((3, 2)),
        lambda x: np.ones((2, 2)) @ x,
    ):
        mine, theirs = (f(m.numpy.asarray(data((2, 3)))) for m in (phlox, jax))
        assert isinstance(mine, phlox.Array) == isinstance(theirs, jax.Array), f
        np.testing.assert_allclose(np.asarray(mine), np.asarray(theirs), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "uint16", "bfloat16", "float16"])
def test_dlpack(dtype):
    x = phlox.numpy.asarray(data((2, 3), dtype))
    if dtype != "bfloat16":  # NumPy's DLPack knows none
        np.testing.assert_array_equal(np.from_dlpack(x), np.asarray(x))
        np.testing.assert_array_equal(np.asarray(phlox.numpy.from_dlpack(np.asarray(x))), np.asarray(x))
    np.testing.assert_array_equal(np.asarray(phlox.dlpack.from_dlpack(x)), np.asarray(x))
    theirs = jax.dlpack.from_dlpack(x)
    assert theirs.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(theirs), np.asarray(x))
    mine = phlox.dlpack.from_dlpack(jax.numpy.asarray(np.asarray(x)))
    assert isinstance(mine, phlox.Array) and mine.dtype == x.dtype
    copied = phlox.numpy.from_dlpack(jax.numpy.asarray(np.asarray(x)), copy=True)
    np.testing.assert_array_equal(np.asarray(copied), np.asarray(x))
    assert x.__dlpack_device__() == jax.numpy.asarray(np.asarray(x)).__dlpack_device__()


def test_dlpack_is_refused():
    """The elements of keys are not the user's, and an array is on no other device than its own."""
    with pytest.raises(BufferError):
        np.from_dlpack(phlox.random.key(0))
    for m in (phlox, jax):
        with pytest.raises((BufferError, RuntimeError)):
            m.numpy.ones(2).__dlpack__(dl_device=(2, 0))
        with pytest.raises(BufferError):
            m.numpy.ones(2).__dlpack__(max_version=(0, 4))


def test_dlpack_version():
    for version in (None, (0, 8), (1, 0)):
        mine, theirs = (repr(m.numpy.ones(2).__dlpack__(max_version=version)).split(" at ")[0] for m in (phlox, jax))
        assert mine == theirs


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python asks classes for buffers since 3.12")
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "float16", "uint16", "bfloat16", "int4"])
def test_buffers(dtype):
    def of(m):
        x = m.numpy.ones((2, 3), dtype)
        try:
            view = memoryview(x)
        except BufferError:
            return "refused"
        return bytes(x), view.format, view.shape, view.readonly

    assert of(phlox) == of(jax)
    keys = phlox.random.split(phlox.random.key(0))
    with pytest.raises(BufferError):
        memoryview(keys)


def test_deleted_arrays_say_so():
    for m in (phlox, jax):
        x = m.numpy.arange(3)
        x.delete()
        assert x.shape == (3,) and len(x) == 3 and x.sharding.num_devices == 1
        for use in (
            lambda x: x.addressable_shards,
            lambda x: x.global_shards,
            lambda x: x.addressable_data(0),
            lambda x: x.devices(),
            lambda x: x.on_device_size_in_bytes(),
            lambda x: x.unsafe_buffer_pointer(),
            repr,
            np.asarray,
        ):
            with pytest.raises(RuntimeError, match="deleted"):
                use(x)


def test_arrays_have_no_hash_and_no_truth():
    for m in (phlox, jax):
        x = m.numpy.arange(3)
        for wrong in (hash, bool, float, operator.index, lambda x: {x: 1}, lambda x: x if x else None):
            with pytest.raises((TypeError, ValueError)):
                wrong(x)
        assert x.any() and not x.all()
        assert (m.numpy.arange(0).size == 0) and repr(
            m.numpy.asarray(1) == 1
        ) == "Array(True, dtype=bool, weak_type=True)"


class Wrapper:
    """Something that says how it becomes an array."""

    def __init__(self, m, x):
        self.m, self.x = m, x

    def __jax_array__(self):
        return self.m.numpy.asarray(self.x)


class Foreign:
    """A class that wants to handle operators itself."""

    __array_priority__ = 200

    def __add__(self, other):
        return "mine"

    __radd__ = __rmul__ = __mul__ = __eq__ = __add__


def test_classes_of_others():
    x = data((3,))
    np.testing.assert_array_equal(phlox.numpy.sin(Wrapper(phlox, x)), phlox.numpy.sin(x))  # jax takes it no more
    both(lambda m, x: m.numpy.ones(3) + Wrapper(m, x), x)
    both(lambda m, x: Wrapper(m, x).__jax_array__() * m.numpy.asarray(x), x)
    for m in (phlox, jax):
        y = m.numpy.ones(3)
        assert y + Foreign() == "mine" and Foreign() * y == "mine" and y * Foreign() == "mine"


def test_device_put_and_get():
    x = data((2, 3))
    for m in (phlox, jax):
        for device in (m.devices()[0], m.devices()[5], None):
            y = m.device_put({"a": x, "b": (1, 2.5)}, device)
            assert all(isinstance(leaf, m.Array) for leaf in m.tree.leaves(y))
            assert device is None or y["a"].devices() == {device} == y["b"][0].devices()
        back = m.device_get(y)
        assert isinstance(back["a"], np.ndarray) and back["b"][1] == 2.5
        assert m.block_until_ready(y) is not None
        assert m.device_count() == len(m.devices()) == 8 == m.local_device_count() == len(m.local_devices())
        assert m.process_count() == 1 and m.process_index() == 0 and m.default_backend() == "cpu"
        with m.default_device(m.devices()[3]):
            assert m.numpy.ones(2).devices() == {m.devices()[3]}
        assert m.numpy.ones(2).devices() == {m.devices()[0]}
        zeros = np.zeros(2, m.dtypes.float0)  # tangents of integers
        assert isinstance(m.device_put({"a": zeros}, m.devices()[1])["a"], np.ndarray)


def test_equivalent_shardings_share_memory():
    x = data((4, 2))
    for m in (phlox, jax):
        devices = np.array(m.devices()[:2])
        mesh, wider = m.sharding.Mesh(devices, ("x",)), m.sharding.Mesh(devices.reshape(1, 2), ("r", "x"))
        alone = m.sharding.Mesh(devices[:1], ("x",))
        starts = m.NamedSharding(mesh, m.P("x")), m.sharding.SingleDeviceSharding(devices[0])
        for start, targets in zip(
            starts,
            (
                [m.NamedSharding(wider, m.P("x")), m.NamedSharding(mesh, m.P("x", None))],
                [m.NamedSharding(alone, m.P())],
            ),
            strict=True,
        ):
            y = m.device_put(x, start)
            for target in targets:
                with m.transfer_guard("disallow_explicit"):
                    z = m.device_put(y, target)
                assert z.sharding == target
                for a, b in zip(y.addressable_shards, z.addressable_shards, strict=True):
                    assert a.data.unsafe_buffer_pointer() == b.data.unsafe_buffer_pointer()
                np.testing.assert_array_equal(z, x)
        # Another order of the devices is a move.
        moved = m.device_put(y, m.NamedSharding(m.sharding.Mesh(devices[::-1], ("x",)), m.P("x")))
        for shard in moved.addressable_shards:
            np.testing.assert_array_equal(shard.data, x[shard.index])


def test_device_put_of_numbers_that_are_transformed():
    for m in (phlox, jax):
        device = m.devices()[3]
        put = lambda x: m.device_put(2 * x if isinstance(x, m.Array) else x, device)
        for x in (np.ones(3, np.float32), np.float32(1), 1.0, m.numpy.ones(3)):
            results = [*m.jvp(put, (x,), (x,)), m.vjp(put, x)[0], *m.vjp(put, x)[1](m.vjp(put, x)[0])]
            assert [y.devices() for y in results[:3]] == [{device}] * 3
            assert results[3].devices() == {m.devices()[0]}
        assert m.vmap(put)(np.ones(3, np.float32)).devices() == {device}
    both(lambda m, x: m.device_put({"a": x, "b": (1, 2.5)}), x)
    assert [str(d) for d in phlox.devices()] == [str(d) for d in jax.devices()]
    assert [(d.id, d.platform, d.process_index, d.device_kind) for d in phlox.devices()] == [
        (d.id, d.platform, d.process_index, d.device_kind) for d in jax.devices()
    ]
    both(lambda m, x: m.devices("tpu"), x)
    for m in (phlox, jax):
        for ask in (m.devices, m.device_count, m.local_device_count):
            with pytest.raises(RuntimeError, match="Unknown backend") as caught:
                ask("tpu")
            assert not isinstance(caught.value, ValueError)
    both(lambda m, x: m.device_put("a"), x)
    both(lambda m, x: m.device_put(x, "cpu:0"), x)
