"""Arguments that few programs give to functions of phlox.numpy, and whose answers jax decides: bits, dtypes, words."""

import itertools
import re
import warnings

import jax
import numpy as np
import pytest

import phlox


def both(call):
    """What a call gives with each library: a value, or the kind of error and its words."""
    found = []
    for library in (jax, phlox):
        try:
            found.append(call(library.numpy, library))
        except (TypeError, ValueError, OverflowError) as error:
            found.append(error)
    return found


def assert_same(mine, theirs):
    assert not isinstance(mine, Exception), mine
    for x, y in zip(*(jax.tree.leaves(v, is_leaf=lambda x: x is None) for v in (mine, theirs)), strict=True):
        if hasattr(y, "dtype"):
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
        else:
            assert x == y


def strictly(library, call):
    with library.numpy_dtype_promotion("strict"):
        return call()


VALUES = {
    "shape of None": lambda n, m: (n.shape(None), n.ndim(None), n.size(None)),
    "range as axes": lambda n, m: (n.sum(n.ones((2, 3)), axis=range(2)), n.flip(n.arange(4).reshape(2, 2), range(1, 2))),
    "array by name": lambda n, m: n.array([1], None, copy=False, order="K", ndmin=2),
    "dtypes of types": lambda n, m: [m.lax.dtype(x) for x in (np.float32, float, int, "int8", np.dtype("uint8"), 1.0)],
    "the name of bool": lambda n, m: (n.bool_.__name__, n.bool_ is n.bool),
    "vectorize with None": lambda n, m: n.vectorize(lambda a, b, c: a + c if b is None else 0)(n.arange(3), None, n.ones(3)),
    "vectorize without signature": lambda n, m: n.vectorize(lambda x: n.ones(2) * x)(n.arange(3)),
    "frequencies in complex": lambda n, m: (n.fft.fftfreq(5, dtype=n.complex64), n.fft.rfftfreq(5, dtype=n.complex64)),
    "diagonals that are traced": lambda n, m: m.jit(lambda k: (n.eye(3, k=k), n.tri(3, 4, k=k), n.eye(2, 3, k, int)))(1),
    "heaviside of nan": lambda n, m: n.heaviside(n.array([n.nan, 0, 1, -1, 0]), n.array([1, n.nan, 2, 3.0, 7])),
    "precisions that are algorithms": lambda n, m: m.jit(lambda x: x @ x)(n.ones((2, 2)))
    if m.config.update("jax_default_matmul_precision", "F32_F32_F32") is None
    else None,
    "matrices of vectors": lambda n, m: (n.r_["r", [1, 2], [3]], n.r_["c", [1, 2], 3], n.c_["r", [1, 2]], n.c_["c", 1:3]),
    "matrices of matrices": lambda n, m: (n.r_["r", n.ones((2, 2))], n.c_["c", n.ones((2, 2)), n.ones((2, 1))]),
    "grids without a stop": lambda n, m: (n.mgrid[:], n.ogrid[2:], n.mgrid[::2], n.r_[3:], n.mgrid[()], n.ogrid[:0, 1:1]),
    "grids of counts and steps": lambda n, m: strictly(m, lambda: n.mgrid[1:6:3j, 2:4]),
    "lengths that are traced": lambda n, m: m.jit(n.unravel_index)(n.array([5, -1, 7, -9]), (2, 3)),
    "lengths of other dtypes": lambda n, m: (
        n.unravel_index(np.array([5, 1], np.uint8), np.array([2, 3])),
        n.unravel_index(np.array([5, 1], np.int8), (2, np.int8(3))),
        n.unravel_index(np.array([5, -1], np.int8), 6),
    ),
    "flat places": lambda n, m: [
        n.ravel_multi_index((np.array([1, 3], np.int8), np.array([2, -4], np.int8)), (2, 3), mode, dtype=dtype)
        for mode in ("clip", "wrap", "ignore")
        for dtype in (None, "int32", "uint8")
    ],
    "flat places of numbers": lambda n, m: n.ravel_multi_index((1, 2), (20, 300)),
    "objects with complex numbers": lambda n, m: [n.iscomplexobj(x) for x in ([1, 1j], (), [[2.0]], n.ones(1, complex))],
    "a list of traced complex numbers": lambda n, m: m.jit(lambda x: n.iscomplexobj([1, x]) + x)(1j),
    "random keys that are close": lambda n, m: [
        f(m.random.split(m.random.key(0)), m.random.split(m.random.key(0))) for f in (n.isclose, n.allclose, n.array_equal)
    ],
    "sums in another dtype": lambda n, m: [
        f(np.array([1, 2, 1, 0, 3], have), np.array([1, 1, 2], have), preferred_element_type=want)
        for f in (n.convolve, n.correlate)
        for have, want in [("uint16", "uint16"), ("int8", "int8"), ("int8", "float16"), ("int8", "int32"), ("bool", "int8")]
    ],
    "edges are of the dtype of the data": lambda n, m: n.histogram_bin_edges(np.ones(3, np.float16), np.array([1.0, 2.0])),
    "the elements of a masked array": lambda n, m: n.array(np.ma.array([1, 2], mask=[True, False])),
    "the elements of a subclass": lambda n, m: n.array(np.ones(2).view(type("Own", (np.ndarray,), {}))),
    "counting under jit": lambda n, m: m.jit(
        lambda: (n.arange(1, 7), n.arange(0, 9, 4), n.arange(1.3, 4.2, 0.3), n.arange(-3, 8.5, 0.7, dtype=n.bfloat16))
    )(),
    "spacing of small numbers": lambda n, m: [
        n.spacing(np.array([0, -0.0, 1e-45, -3e-45, 1e-39, 1, -1, 3e38, np.inf, np.nan], np.float32)),
        n.spacing(np.array([0, 6e-8, -6e-8, 1, -1, 65504, np.inf], np.float16)),
        n.spacing(np.array([0, 9.2e-41, -9.2e-41, 1], n.bfloat16)),
    ],
    "axes of a tensor equation": lambda n, m: n.linalg.tensorsolve(
        np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3], np.float32).reshape(2, 2, 2, 2), n.eye(2), axes=(0, 2)
    ).round(4),
    "places of another dtype": lambda n, m: strictly(
        m, lambda: [n.percentile(n.arange(5.0, dtype="float16"), n.float32(25)), n.quantile(n.arange(5.0), n.float16(0.5))]
    ),
    "parts as a float": lambda n, m: n.split(n.arange(4), 2.0) + n.array_split(n.arange(5), 2.5),
    "masks of no elements": lambda n, m: n.frompyfunc(lambda x, y: x + y, 2, 1, identity=0).reduce(
        n.ones((0, 3)), where=n.ones((0, 3), bool)
    ),
    "complex numbers as truth": lambda n, m: n.array([1j, 0, 2]).astype(bool),
    "diagonals next to infinities": lambda n, m: (
        n.einsum("ii->i", n.array([[1, n.inf], [n.inf, 3]], n.bfloat16)),
        n.einsum("iij->j", n.array([[[1, 2], [n.inf, 3]], [[n.nan, 4], [5, 6]]])),
        n.einsum("jij->ij", n.arange(12).reshape(2, 3, 2)),
    ),
    "edges of both axes": lambda n, m: n.histogram2d(n.array([0.5, 2]), n.array([1.0, 2.5]), bins=[0.0, 1.0, 2.0, 3.0]),
    "arrays like references": lambda n, m: n.full_like(m.new_ref(n.arange(3)), n.array([1.0, 2, 3])),
    "arrays like weak types": lambda n, m: [n.full_like(n.asarray(1.0), x).weak_type for x in (2, n.ones(()), n.ones(1)[:1].sum())],
    "norms of half spectra": lambda n, m: [
        f(n.array([1.0, 2, 3]), length, norm=norm).round(5)
        for f in (n.fft.hfft, n.fft.ihfft)
        for length in (None, 5)
        for norm in (None, "backward", "ortho", "forward")
    ],
    "grids of floats": lambda n, m: (n.mgrid[1.3:4.2:0.3], n.ogrid[0.1:1:0.3, 0:3:1.7]),
}  # fmt: skip


@pytest.fixture(autouse=True)
def precision():
    before = jax.config.jax_default_matmul_precision
    yield
    jax.config.update("jax_default_matmul_precision", before)


@pytest.mark.filterwarnings("ignore:.*NoneType.*:DeprecationWarning")
@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    theirs, mine = both(VALUES[name])
    assert not isinstance(theirs, Exception), theirs
    assert_same(mine, theirs)


#: calls that both refuse, and what both messages say
REFUSED = {
    "inconsistent size for core dimension 'n': 2 vs 3": lambda n, m: n.vectorize(
        lambda x: (x, x[:2]), signature="(n)->(n),(n)"
    )(n.arange(3)),
    "inconsistent size for core dimension 'n': 3 vs 2": lambda n, m: n.vectorize(lambda x: x, signature="(n,n)->(n)")(
        n.ones((2, 3))
    ),
    "output shape (1, 3) does not match core dimensions ('n',)": lambda n, m: n.vectorize(
        lambda x: x[None], signature="(n)->(n)"
    )(n.arange(3)),
    "output must be a tuple": lambda n, m: n.vectorize(lambda x: x, signature="(n)->(n),(n)")(n.arange(3)),
    "wrong number of positional arguments: expected 1, got 2": lambda n, m: n.vectorize(
        lambda x: x, signature="(n)->(n)"
    )(n.arange(3), n.arange(3)),
    "wrong number of output arguments: expected 1, got 2": lambda n, m: n.vectorize(
        lambda x: (x, x), signature="(n)->(n)"
    )(n.arange(3)),
    "does not have enough dimensions": lambda n, m: n.vectorize(lambda x: x, signature="(n)->(n)")(1.0),
    "not a valid gufunc signature": lambda n, m: n.vectorize(lambda x: x, signature="n->n")(n.arange(3)),
    "Cannot pass None at locations {1} with signature='(n),(n)->(n)'": lambda n, m: n.vectorize(
        lambda a, b: a, signature="(n),(n)->(n)"
    )(n.ones(3), None),
    "matrix_transpose": lambda n, m: n.matrix_transpose([0]),
    "x must be at least two-dimensional": lambda n, m: n.matrix_transpose(n.ones(3)),
    "must have the same number of dimensions": lambda n, m: n.take_along_axis(n.arange(3.0), n.ones((1, 1), int), 0),
    "could not understand directive": lambda n, m: n.r_["up", 1],
    "string directive must be placed at the beginning": lambda n, m: n.r_[1, "r"],
    "slice start of jnp.mgrid": lambda n, m: m.jit(lambda a: n.mgrid[a:3])(0),
    "slice stop of jnp.ogrid": lambda n, m: m.jit(lambda a: n.ogrid[:a])(3),
    "slice step of jnp.c_": lambda n, m: m.jit(lambda a: n.c_[0:9:a])(3),
    "invalid entry in coordinates array": lambda n, m: n.ravel_multi_index((3, 0), (2, 2)),
    "not large enough to hold flattened index for dims=(20, 30)": lambda n, m: n.ravel_multi_index(
        (np.array([3], np.int8), 2), (20, 30), dtype="int8"
    ),
    "is not an integer type": lambda n, m: n.ravel_multi_index((1, 2), (2, 3), dtype="float32"),
    "with mode='raise'. Use mode='wrap' or mode='clip' instead.": lambda n, m: m.jit(
        lambda i: n.ravel_multi_index((i, i), (2, 3))
    )(1),
    "numpy masked arrays are not supported": lambda n, m: m.jit(n.sin)(np.ma.array([1.0, 2.0], mask=[True, False])),
    "query value must be a scalar": lambda n, m: n.arange(2) in n.arange(2),
    "Array.__contains__: unsupported operand type": lambda n, m: None in n.arange(2),
    "tensordot requires axes lists to have equal length": lambda n, m: n.tensordot(n.ones(2), n.ones(2), ([0], [0, 1])),
    "tensordot requires both axes lists to be either ints": lambda n, m: n.tensordot(n.ones(2), n.ones(2), ("a", "b")),
    "tensordot axes argument must be an int": lambda n, m: n.tensordot(n.ones(2), n.ones(2), "axes"),
    "Only non-negative indices are allowed": lambda n, m: m.lax.broadcast_shapes((-1,)),
    "ddof and correction can't be provided simultaneously": lambda n, m: n.std(n.ones(3), ddof=1, correction=0),
    "Can't compute input and output sizes of a 1-dimensional": lambda n, m: m.nn.initializers.he_normal()(
        m.random.key(0), (5,)
    ),
    "arguments must be scalars; got": lambda n, m: n.arange(n.arange(3)),
    "Incompatible shapes for broadcasting": lambda n, m: n.broadcast_shapes((2,), (3,)),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused(words):
    theirs, mine = both(REFUSED[words])
    for error in (theirs, mine):
        assert isinstance(error, Exception) and re.search(re.escape(words), str(error)), repr(error)


#: what jax says that programs should no longer do
DISCOURAGED = {
    "Casting from complex to real dtypes will soon raise a ValueError": lambda n, m: n.array([1 + 2j]).astype(
        "float32"
    ),
    "shape requires ndarray or scalar arguments": lambda n, m: n.shape([1, 2]),
    "size requires ndarray or scalar arguments": lambda n, m: n.size([1, 2]),
    "one_hot input should be integer-typed": lambda n, m: m.nn.one_hot(n.array([1.0]), 3),
}


@pytest.mark.parametrize("words", DISCOURAGED)
def test_discouraged(words):
    for library in (jax, phlox):
        with pytest.warns(DeprecationWarning, match=words) as caught:
            DISCOURAGED[words](library.numpy, library)
    assert [w.filename for w in caught] == [__file__]


#: values of which a part is lost, which the array does not keep
LOSSY = {
    "number": lambda n, m: n.arange(3).at[0].set(1.5),
    "number, added": lambda n, m: n.arange(3).at[0].add(1.5),
    "weak array": lambda n, m: n.arange(3).at[0].set(n.asarray(1.5)),
    "array of floats": lambda n, m: n.arange(3).at[:2].set(n.ones(2)),
    "integer into bools": lambda n, m: n.zeros(3, bool).at[n.array([1])].set(2),
    "small integers": lambda n, m: n.zeros(3, "int8").at[0].max(n.int32(300)),
    "complex": lambda n, m: n.zeros(3).at[0].set(1j),
    "numbers that fit": lambda n, m: (n.zeros(3, "int8").at[0].set(3), n.zeros(3, "float16").at[0].set(1.5)),
    "ints into floats": lambda n, m: n.zeros(3, "float16").at[0].add(n.arange(3)[2]),
    "conversion": lambda n, m: m.lax.convert_element_type(n.array([1j]), "float32"),
    "conversion by asarray": lambda n, m: n.asarray(n.array([1j]), dtype="int32"),
    "64 bits": lambda n, m: (n.zeros(3, "float64"), n.arange(3).astype("int64")),
}


@pytest.mark.parametrize("what", LOSSY)
def test_lost_parts_are_announced_at_each_call(what):
    """Programs filter these warnings by class and first words, and test suites turn them into errors."""
    said = []
    for library in (jax, phlox):
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                LOSSY[what](library.numpy, library)
            said.append({(w.category, str(w.message)[:60]) for w in caught})
    assert said[1:] == said[:-1]


#: calls that are refused, and the words that name the function and the argument
NAMED = {
    "ravel_multi_index": lambda n: n.ravel_multi_index(None, -1),
    "matrix_transpose": lambda n: n.matrix_transpose(None),
    "cholesky: takes square matrices": lambda n: n.linalg.cholesky(n.ones((1, 3))),
    "eigh: takes square matrices": lambda n: n.linalg.eigh(n.ones((1, 3))),
    "hermitian=True: takes square matrices": lambda n: n.linalg.svd(n.ones((1, 3)), hermitian=True),
    "cond with p=1: takes square matrices": lambda n: n.linalg.cond(n.ones((1, 3)), 1),
    "einsum: axis 'i' has the lengths 1 and 3": lambda n: n.einsum("ii->i", n.ones((1, 3))),
    "round: decimals must be an integer": lambda n: n.round(n.ones(1), 1.5),
    "matrix_power: n must be an integer": lambda n: n.linalg.matrix_power(n.eye(2), 1.5),
    "rot90: k must be an integer": lambda n: n.rot90(n.eye(2), k=1.5),
    "tril_indices: k must be an integer": lambda n: n.tril_indices(3, 1.5),
    "triu_indices: n must be an integer": lambda n: n.triu_indices(3.5),
    "diagonal: offset must be an integer": lambda n: n.diagonal(n.eye(2), 1.5),
    "compress: size must be an integer": lambda n: n.extract(n.ones(2), n.ones(2), size=1.5),
    "linspace: num must be an integer": lambda n: n.linspace(0, 1, (3,)),
    "diff: n must be an integer": lambda n: n.diff(n.arange(3), 1.5),
    "repeat: repeats must be integers": lambda n: n.repeat(n.arange(3), 1.0),
    "roll: shift must be an integer": lambda n: n.roll(n.arange(3), 1.5),
    "unpackbits: count must be an integer": lambda n: n.unpackbits(n.zeros(2, "uint8"), count=1.5),
    "bincount: minlength must be an integer": lambda n: n.bincount(n.arange(3), minlength=2.5),
    "top_k: k must be an integer": lambda n: n.top_k(n.ones(2), 1.5),
    "ds: size must be an integer": lambda n: phlox.ds(1, 2.9),
    "fft: axis 1.5": lambda n: n.fft.fft(n.eye(2), axis=1.5),
    "ifft: n must be an integer": lambda n: n.fft.ifft(n.eye(2), 1.5),
    "irfftn: s must be an integer": lambda n: n.fft.irfftn(n.eye(2), (1.5, 2)),
    "ihfft: norm='x'": lambda n: n.fft.ihfft(n.ones(2), norm="x"),
    "polyint: m must be an integer": lambda n: n.polyint(n.arange(3), 1.5),
    "nanvar: where must be None or a boolean array": lambda n: n.nanvar(n.ones(2), where=n.ones(2)),
    "nanstd: c64[2] cannot be computed": lambda n: n.nanstd(n.ones(2) * 1j, dtype="float32"),
    "std: axis 4": lambda n: n.std(n.arange(3), axis=4),
    "ptp of an empty array": lambda n: n.ptp(n.zeros(0)),
    "pad: constant_values=(1, 2, 3)": lambda n: n.pad(n.ones(2), 1, constant_values=(1, 2, 3)),
    "pad: end_values=(1, 2, 3)": lambda n: n.pad(n.ones(2), 1, "linear_ramp", end_values=(1, 2, 3)),
    "hanning's argument `M`": lambda n: phlox.jit(n.hanning)(3),
    "choose: there are no choices": lambda n: n.choose(n.array([0]), [], mode="clip"),
    "cross: takes vectors of 3 elements": lambda n: n.linalg.cross(n.ones(2), n.ones(2)),
    "iteration over an array without axes": lambda n: n.lexsort(n.array(3)),
    "Too many indices": lambda n: n.arange(5)[phlox.ds(0, 2), phlox.ds(0, 2)],
    "only one ellipsis": lambda n: n.arange(5)[phlox.ds(0, 2), ..., ...],
}


@pytest.mark.parametrize("words", NAMED)
def test_the_function_is_named(words):
    with pytest.raises(phlox.errors.PhloxError, match=re.escape(words)):
        NAMED[words](phlox.numpy)


DTYPES = [None, "float32", "float16", "bfloat16", "int8", "uint8", "int32"]


@pytest.mark.parametrize("seed", range(10))
def test_arange_has_the_bits_of_jax(seed):
    rng = np.random.default_rng(seed)
    for dtype, whole in itertools.product(DTYPES, (True, False)):
        start, step = (int(v) for v in rng.integers(-9, 9, 2)) if whole else rng.normal(size=2)
        step = step or 2
        stop = start + step * int(rng.integers(0, 30))
        for args in ((start, stop, step), (start, stop), (abs(stop),)):
            theirs, mine = both(lambda n, m, args=args, dtype=dtype: n.arange(*args, dtype=dtype))
            if whole and not np.array_equal(np.asarray(theirs, np.float64), np.arange(*args)):
                assert isinstance(mine, OverflowError)  # jax's numbers wrap around
            elif whole or not isinstance(mine, OverflowError):
                assert_same(mine, theirs)


# Narrow arrays beside the wide numbers that are the default with 64-bit types.
WIDE = {
    "histogram": lambda n, m: n.histogram(n.arange(5, dtype="int32"), np.array([-2.0, 0.0, 1.0])),
    "histogram of float16": lambda n, m: n.histogram(n.arange(5, dtype="float16"), np.array([-2.0, 0.0, 1.0])),
    "histogram2d": lambda n, m: n.histogram2d(*[n.arange(5, dtype="int32")] * 2, np.array([-2.0, 0.0, 1.0])),
    "histogramdd": lambda n, m: n.histogramdd(n.ones((5, 2), "int32"), [np.array([-2.0, 0.0, 1.0]), 4], density=True),
    "ravel_pytree": lambda n, m: m.flatten_util.ravel_pytree({"a": np.ones(2, np.float32), "b": 3.0})[0],
    "ravel_pytree of nothing": lambda n, m: m.flatten_util.ravel_pytree({})[0],
    "set beyond": lambda n, m: n.ones(3, "uint32").at[0].set(2**40 + 3),
    "full_like beyond": lambda n, m: m.lax.full_like(n.ones(3, "uint32"), 2**40 + 3),
    "full beyond": lambda n, m: m.lax.full((2,), 2**32 - 1, np.dtype("uint8")),
    "strict quantile": lambda n, m: m.numpy_dtype_promotion("strict")(n.quantile)(n.arange(6, dtype="float32"), 0.3),
    "strict percentile": lambda n, m: m.numpy_dtype_promotion("strict")(n.percentile)(
        n.ones(6, "float32"), n.array(0.3)
    ),
}


@pytest.mark.whole
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", WIDE)
def test_numbers_wider_than_arrays(name, x64):
    import jax.flatten_util

    import phlox.flatten_util

    with jax.enable_x64(x64), phlox.enable_x64(x64):
        theirs, mine = both(WIDE[name])
    if name.endswith("beyond") and not isinstance(theirs, Exception):
        assert isinstance(mine, OverflowError)  # as in NumPy; jax wraps around
    elif isinstance(theirs, Exception):
        assert isinstance(mine, (type(theirs), TypeError, ValueError, OverflowError))
    else:
        assert_same(mine, theirs)


SQUARE, VECTOR = np.arange(9.0, dtype=np.float32).reshape(3, 3), np.arange(4, dtype=np.int32)
#: functions of a static integer
STATIC = {
    "diag": lambda n, m, i: (n.diag(SQUARE, i), n.diag(VECTOR, k=i), n.diagflat(VECTOR, i), n.diag_indices(i + 1, i + 2)),
    "trace": lambda n, m, i: (n.trace(SQUARE, offset=i), n.linalg.trace(SQUARE, offset=i), n.diagonal(SQUARE, i)),
    "axes": lambda n, m, i: (n.argmax(SQUARE, i), n.nanargmax(SQUARE, axis=i), n.take(SQUARE, 0, i), n.vecdot(SQUARE, SQUARE, axis=i)),
    "counts": lambda n, m, i: (n.logspace(0, 1, i), n.geomspace(1, 2, i), n.extract(VECTOR > 1, VECTOR, size=i)),
    "lax": lambda n, m, i: (m.lax.slice_in_dim(SQUARE, 0, i), m.lax.index_in_dim(SQUARE, i), m.lax.sort((VECTOR,), num_keys=i)),
}  # fmt: skip


@pytest.mark.parametrize("name", STATIC)
@pytest.mark.parametrize("kind", [np.asarray, np.int64, "numpy.asarray"])
def test_static_integers_are_arrays(name, kind):
    def call(numpy, library):
        one = numpy.asarray(1) if kind == "numpy.asarray" else kind(1)
        return STATIC[name](numpy, library, one)

    # jax refuses arrays in some of them.
    theirs, mine = both(lambda numpy, library: STATIC[name](numpy, library, 1))[0], both(call)[1]
    assert_same(mine, theirs)


def test_arrays_are_no_static_arguments_of_users():
    with pytest.raises(phlox.errors.StaticArgumentError, match="not hashable"):
        phlox.jit(lambda x, k: x + k, static_argnums=1)(1.0, np.asarray(1))
    with pytest.raises(phlox.errors.StaticArgumentError, match="not hashable"):
        phlox.numpy.diag(SQUARE, np.asarray([1]))
