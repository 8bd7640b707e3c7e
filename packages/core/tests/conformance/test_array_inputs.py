"""What may stand where an array is wanted: numbers, lists, NumPy's arrays and scalars, objects that know how to become one.

Each kind of function is called with each kind of object. What jax refuses is refused with an error of its kind that names
the function or what was given.
"""

import array
import collections
import decimal
import fractions

import jax
import ml_dtypes
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import agree, outcome, row

NEAR = row("inputs")
VALUES = [0.5, 1.0, 2.0]


class AsJax:
    """Says how it becomes an array of the library."""

    def __init__(self, m):
        self.m = m

    def __jax_array__(self):
        return self.m.numpy.asarray(VALUES)


class AsNumpy:
    def __array__(self, dtype=None, copy=None):
        return np.array(VALUES, dtype or np.float32)


class AsInterface:
    """As images of Pillow: NumPy's older protocol, which names memory."""

    values = np.array(VALUES, np.float32)

    @property
    def __array_interface__(self):
        return self.values.__array_interface__


class AsBuffer:
    """An object with DLPack's protocol and nothing else."""

    def __dlpack__(self, **options):
        return np.array(VALUES, np.float32).__dlpack__(**options)

    def __dlpack_device__(self):
        return np.zeros(1).__dlpack_device__()


class Number:
    """Converts to Python's numbers, and is none."""

    def __float__(self):
        return 0.5

    def __int__(self):
        return 1

    def __index__(self):
        return 1


OBJECTS = {
    "bool": lambda m: True,
    "int": lambda m: 2,
    "float": lambda m: 0.5,
    "complex": lambda m: 1j,
    "huge int": lambda m: 2**70,
    "numpy bool": lambda m: np.True_,
    "numpy int8": lambda m: np.int8(2),
    "numpy int64": lambda m: np.int64(2),
    "numpy float32": lambda m: np.float32(0.5),
    "numpy float64": lambda m: np.float64(0.5),
    "bfloat16 scalar": lambda m: ml_dtypes.bfloat16(0.5),
    "array of the library": lambda m: m.numpy.asarray(VALUES),
    "numpy array": lambda m: np.array(VALUES, np.float32),
    "numpy array, 64 bits": lambda m: np.array(VALUES),
    "numpy array, reversed": lambda m: np.array(VALUES, np.float32)[::-1],
    "numpy array, read-only": lambda m: np.broadcast_to(np.float32(0.5), (3,)),
    "numpy array, big-endian": lambda m: np.array(VALUES, ">f4"),
    "numpy matrix": lambda m: np.asmatrix(np.array(VALUES, np.float32)),
    "0-d numpy array": lambda m: np.array(0.5),
    "numpy structured": lambda m: np.zeros(3, [("a", "f4")]),
    "numpy strings": lambda m: np.array(["a", "b", "c"]),
    "numpy objects": lambda m: np.array(VALUES, object),
    "numpy dates": lambda m: np.array(["2020-01-01"], "datetime64[D]"),
    "list": lambda m: list(VALUES),
    "nested list": lambda m: [[1.0, 2.0, 3.0]],
    "ragged list": lambda m: [[1.0], [2.0, 3.0]],
    "list of arrays": lambda m: [np.float32(v) for v in VALUES],
    "empty list": lambda m: [],
    "tuple": lambda m: tuple(VALUES),
    "range": lambda m: range(3),
    "set": lambda m: {1.0},
    "dict": lambda m: {"a": 1.0},
    "generator": lambda m: (v for v in VALUES),
    "__jax_array__": AsJax,
    "__array__": lambda m: AsNumpy(),
    "__array_interface__": lambda m: AsInterface(),
    "list of __array__": lambda m: [AsNumpy(), AsNumpy()],
    "list of memoryviews": lambda m: [memoryview(np.array(VALUES, np.float32)), array.array("f", VALUES)],
    "dlpack": lambda m: AsBuffer(),
    "__float__": lambda m: Number(),
    "array.array": lambda m: array.array("f", VALUES),
    "memoryview": lambda m: memoryview(np.array(VALUES, np.float32)),
    "bytes": lambda m: b"abc",
    "str": lambda m: "abc",
    "None": lambda m: None,
    "Ellipsis": lambda m: ...,
    "class": lambda m: float,
    "function": lambda m: max,
    "Decimal": lambda m: decimal.Decimal("0.5"),
    "Fraction": lambda m: fractions.Fraction(1, 2),
    "dtype": lambda m: np.dtype("float32"),
}
X = np.array([1.0, 2.0, 3.0], np.float32)
FUNCTIONS = {
    "asarray": lambda m, x: m.numpy.asarray(x),
    "array": lambda m, x: m.numpy.array(x),
    "unary": lambda m, x: m.numpy.sin(x),
    "binary": lambda m, x: m.numpy.add(X, x),
    "comparison": lambda m, x: m.numpy.less(x, X),
    "reduction": lambda m, x: m.numpy.sum(x),
    "scan": lambda m, x: m.numpy.cumsum(x),
    "order": lambda m, x: m.numpy.argsort(x),
    "shape": lambda m, x: m.numpy.flip(x),
    "sequence": lambda m, x: m.numpy.concatenate([X, x]),
    "choice": lambda m, x: m.numpy.where(X > 1, x, 0.0),
    "condition": lambda m, x: m.numpy.where(x, X, 0.0),
    "index": lambda m, x: m.numpy.take(X, x),
    "product": lambda m, x: m.numpy.dot(X, x),
    "like": lambda m, x: m.numpy.zeros_like(x),
    "full": lambda m, x: m.numpy.full((3,), x),
    "linalg": lambda m, x: m.numpy.linalg.norm(x),
    "fft": lambda m, x: m.numpy.fft.fft(x),
    "lax unary": lambda m, x: m.lax.exp(x),
    "lax binary": lambda m, x: m.lax.mul(X, x),
    "lax reduction": lambda m, x: m.lax.reduce_max(x, (0,)),
    "lax shape": lambda m, x: m.lax.squeeze(x, ()),
    "lax.cond": lambda m, x: m.lax.cond(True, lambda y: y, lambda y: y, x),
    "segments": lambda m, x: m.ops.segment_sum(x, np.array([0, 1, 0]), 2),
    "jit": lambda m, x: m.jit(lambda y: m.tree.map(lambda z: m.numpy.sin(z), y))(x),
    "grad": lambda m, x: m.grad(lambda y: sum(m.numpy.sum(z) for z in m.tree.leaves(y)))(x),
    "vmap": lambda m, x: m.vmap(lambda y: m.tree.map(m.numpy.sin, y))(x),
    "operator": lambda m, x: m.numpy.asarray(X) * x,
    "at": lambda m, x: m.numpy.asarray(X).at[:].set(x),
    "x[i]": lambda m, x: m.numpy.asarray(X)[x],
    "device_put": lambda m, x: m.device_put(x),
}
#: Where phlox does otherwise: jax reads the bytes of a big-endian array as they lie, or refuses it by a wrong reason;
#: it no longer takes `__jax_array__` in functions that it jits; of two mistakes at once it reports the other one.
LENIENT = {
    "numpy array, big-endian": set(FUNCTIONS),
    "__jax_array__": set(FUNCTIONS),
    "dlpack": {"asarray", "array", "at"},
    "__array__": {"device_put"},
    "list of __array__": {"device_put"},
    "__float__": {"x[i]"},
    "numpy bool": {"x[i]"},
    "huge int": {"order", "sequence", "fft", "grad", "vmap", "at"},  # "at": jax 0.12
    "memoryview": {"full", "segments"},
}


@pytest.mark.filterwarnings("ignore")  # of deprecated inputs
@pytest.mark.parametrize("function", FUNCTIONS)
def test_accepted(function):
    wrong = []
    for name, make in OBJECTS.items():
        if function in LENIENT.get(name, ()):
            continue
        mine, theirs = (outcome(lambda m, f=make: FUNCTIONS[function](m, f(m)), m, ()) for m in (phlox, jax))
        try:
            agree(mine, theirs, NEAR, name)
        except Exception as error:
            wrong.append(f"{name}: {str(error) or repr(error)}")
        ours = isinstance(mine[1], phlox.errors.PhloxError | OverflowError | None) or function == "operator"
        if not ours:  # Python words what an operator refuses
            wrong.append(f"{name}: {mine[1]!r} does not tell what to do")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("function", ["asarray", "reduction", "lax unary", "sequence", "operator", "at"])
def test_what_jax_takes_no_more(function):
    """The same as for an ordinary array."""
    plain = FUNCTIONS[function](phlox, np.array(VALUES, np.float32))
    for name in ("numpy array, big-endian", "__jax_array__"):
        np.testing.assert_array_equal(FUNCTIONS[function](phlox, OBJECTS[name](phlox)), plain)
    np.testing.assert_array_equal(phlox.numpy.asarray(AsBuffer()), np.array(VALUES, np.float32))


TAKE_OBJECTS = {
    "diag": lambda m, x: m.numpy.diag(x),
    "isposinf": lambda m, x: m.numpy.isposinf(x),
    "nanargmax": lambda m, x: m.numpy.nanargmax(x),
    "ptp": lambda m, x: m.numpy.ptp(x),
    "array_equal": lambda m, x: m.numpy.array_equal(x, X),
    "array_equiv": lambda m, x: m.numpy.array_equiv(X, x),
    "vecdot": lambda m, x: m.numpy.vecdot(x, X),
    "meshgrid": lambda m, x: m.numpy.meshgrid(x, x),
    "select": lambda m, x: m.numpy.select([X > 1, X > 2], [x, X], x),
    "einsum": lambda m, x: m.numpy.einsum("i,i", x, x),
    "array": lambda m, x: m.numpy.array([x, x]),
    "array with a dtype": lambda m, x: m.numpy.array([[x], [X]], dtype="int32"),
}


@pytest.mark.parametrize("function", TAKE_OBJECTS)
def test_objects_with_jax_array_are_arrays(function):
    """Also of functions that are jitted, and under `jit` and `vmap` of a function that closes over the object."""
    call = TAKE_OBJECTS[function]
    mine, theirs = (call(m, AsJax(m)) for m in (phlox, jax))
    for transform in (lambda f: f(), lambda f: phlox.jit(f)(), lambda f: phlox.vmap(lambda _: f())(X)):
        result = transform(lambda: call(phlox, AsJax(phlox)))
        for x, y in zip(jax.tree.leaves(theirs), phlox.tree.leaves(result), strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(np.broadcast_to(x, y.shape), y)
    assert phlox.tree.structure(mine) == phlox.tree.structure(result)


def test_an_object_with_a_shape_and_a_dtype_is_not_computed():
    class Described:
        shape, dtype = (2, 3), np.dtype("float16")

        def __jax_array__(self):
            raise AssertionError("computed")

    for m in (phlox, jax):
        for make in (m.numpy.zeros_like, m.numpy.ones_like, m.numpy.empty_like, lambda x, m=m: m.numpy.full_like(x, 2)):
            assert (make(Described()).shape, make(Described()).dtype) == ((2, 3), "float16")


def test_a_shift_is_an_object():
    class One:
        def __init__(self, m):
            self.m = m

        def __jax_array__(self):
            return self.m.numpy.asarray(1)

    for m in (phlox, jax):
        assert m.numpy.roll(X, One(m)).tolist() == [3, 1, 2]


class Tracked(list):
    """A list with a class of its own, as Keras keeps the parts of a model."""


def test_sequences_of_other_classes_are_lists():
    pair = collections.namedtuple("pair", "a b")
    one = lambda m: m.numpy.float32(3)
    for value in (Tracked([0.5, 1]), [Tracked([0.5]), Tracked([1])], [pair(1, 2), (3, 4)], collections.deque([1, 2])):
        agree(
            outcome(lambda m, v=value: m.numpy.array(v), phlox, ()),
            outcome(lambda m, v=value: m.numpy.array(v), jax, ()),
            NEAR,
            value,
        )
    with_array = lambda m: m.numpy.asarray([Tracked([one(m), 1]), [2, 3]], dtype="float32")
    agree(outcome(with_array, phlox, ()), outcome(with_array, jax, ()), NEAR, "with an array")


WRONG = {
    "numpy.sin": lambda m: m.numpy.sin([1.0]),
    "numpy.add": lambda m: m.numpy.add(X, [1.0]),
    "numpy.sum": lambda m: m.numpy.sum([1.0]),
    "numpy.where": lambda m: m.numpy.where(X > 0, "a", X),
    "numpy.take": lambda m: m.numpy.take(X, [0]),
    "lax.mul": lambda m: m.lax.mul(X, [1.0]),
    "lax.dot": lambda m: m.lax.dot(X, None),
    "linalg.norm": lambda m: m.numpy.linalg.norm([1.0]),
    "fft": lambda m: m.numpy.fft.fft("a"),
    "segment_sum": lambda m: m.ops.segment_sum(X, "a", 2),
    "image.resize": lambda m: m.image.resize("a", (2,), "linear"),
    "jit": lambda m: m.jit(lambda first: first)("a"),
    "grad": lambda m: m.grad(lambda first: first)("a"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_argument_is_named(name):
    error = judge.raises_alike(lambda m: WRONG[name](m))
    assert isinstance(error, TypeError)
    assert any(word in str(error) for word in ("argument", "operand", "first")) and (
        "list" in str(error) or "str" in str(error) or "None" in str(error)
    ), error
