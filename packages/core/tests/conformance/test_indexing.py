"""x[index] and x.at[index]: every kind of NumPy index, for reading and for writing, is read as jax reads it."""

import functools
import warnings

import jax
import numpy as np
import pytest

import judge
import phlox
import phlox.numpy as jnp
from conformance.harness import agree, outcome, rotate, row

s_ = np.s_
INTS = np.array([0, -1, 2])
GRID = np.array([[0, 1], [1, -2]])
MASK3 = np.array([True, False, True])
MASK4 = np.array([True, False, True, True])
MASK34 = np.arange(12).reshape(3, 4) % 3 == 0

BASIC = [
    s_[0], s_[-1], s_[2], s_[:], s_[...], s_[None], s_[()], s_[1, 2], s_[-1, -2, -1], s_[1:], s_[:-1], s_[::2], s_[::-1], s_[2:0:-1],
    s_[-2:], s_[5:], s_[2:1], s_[:100], s_[-100:], s_[1, :, 0], s_[:, 1], s_[..., 0], s_[0, ...], s_[1, ..., 1], s_[None, 1], s_[1, None],
    s_[..., None], s_[None, ..., None, 0], s_[:, None, 1:3], s_[::-1, ::2, ::-1], s_[1:3, ::-2], s_[:, :, 0:1], s_[3:0:-2, 1], s_[0:0],
    s_[np.int32(1)], s_[np.int64(-1), np.uint8(2)], s_[np.array(1)], s_[np.array(-1), :, np.array(0)], s_[slice(None, None, None), 3],
    s_[np.int8(1):], s_[:, -1:], s_[None, None], s_[..., :, :], s_[7], s_[-9], s_[1, 9],
]  # fmt: skip
ADVANCED = [
    s_[INTS], s_[GRID], s_[INTS, 1], s_[1, INTS], s_[:, INTS], s_[..., INTS % 2], s_[INTS, :, INTS % 2], s_[INTS, INTS], s_[INTS, None], s_[None, INTS],
    s_[INTS[:, None], INTS], s_[GRID, GRID], s_[GRID, :, GRID % 2], s_[0, :, INTS % 2], s_[INTS, ..., 0], s_[1:, INTS], s_[::-1, INTS, 1:], s_[INTS, 1:3],
    s_[:, None, INTS], s_[INTS, None, INTS], s_[np.array([], int)], s_[:, np.array([], int)], s_[INTS.astype(np.uint8) % 3], s_[INTS.astype(np.int8)],
    s_[np.array([0, 99, -99])], s_[:, np.array([[7], [-7]])], s_[np.array([1]), np.array([0, 1, 2])], s_[np.array(2), INTS], s_[INTS, np.array(1), :],
    s_[MASK3], s_[:, MASK4], s_[MASK34], s_[MASK3, 0], s_[MASK3, :, 0], s_[MASK34, None], s_[MASK3, np.array([0, 1])], s_[..., np.array([True, False])],
    s_[True], s_[False], s_[np.array(True)], s_[None, MASK3], s_[np.array([False] * 3)], s_[MASK3, 1:], s_[True, 1], s_[1, MASK4],
    s_[(0, 1, 0), (2, 1, 3)], s_[:, (0, 1)], s_[(0, 2), :, [0, 1]], s_[((0, 1), (2, 1)),],
    s_[(), ...], s_[:, [], None], s_[np.zeros(0, bool)], s_[np.zeros((3, 0), bool)],
]  # fmt: skip
WRONG = [
    s_[1.0], s_[np.array([1.0])], s_["a"], s_[[0, 1]], s_[0, 0, 0, 0], s_[..., ...], s_[MASK4], s_[:, MASK3], s_[np.array([True])], s_[(0, [1])],
    s_[INTS, np.array([0, 1])], s_[1.5:], s_[::0], s_[1j], s_[int], s_[np.array([[True]])], s_[None, 0, 0, 0, 0], s_["a":],
    s_[range(2)], s_[[0, slice(None)]], s_[(0, 0.5),], s_[(0, "a"),], s_[np.zeros((3, 1), bool)], s_[:, object()],
]  # fmt: skip

SHAPE = (3, 4, 2)
EXACT = row("indexing", exact=True)
NEAR = row("indexing")


def text(index):
    """An index as it would be typed, for the name of a test."""
    if isinstance(index, tuple):
        return ",".join(map(text, index)) or "()"
    if isinstance(index, slice):
        parts = ["" if v is None else str(v) for v in (index.start, index.stop, index.step)]
        return ":".join(parts[:2] if not parts[2] else parts)
    return (
        str(np.asarray(index).tolist()).replace(" ", "")
        if isinstance(index, np.ndarray)
        else "..."
        if index is ...
        else repr(index)
    )


def split(index):
    """The arrays in an index, and a function that puts others in their place: under jit and vmap they are arguments."""
    parts = index if isinstance(index, tuple) else (index,)
    places = [i for i, p in enumerate(parts) if isinstance(p, np.ndarray) and p.dtype != bool]

    def fill(arrays):
        filled = list(parts)
        for i, x in zip(places, arrays, strict=True):
            filled[i] = x
        return tuple(filled) if isinstance(index, tuple) else filled[0]

    return [parts[i] for i in places], fill


def data(*seed, shape=SHAPE, dtype="float32"):
    return judge.array(judge.rng("indexing", *seed), shape, dtype)


def both(case, *args, row=EXACT, jit=True, what=""):
    """Compares outcomes eagerly and under jit."""
    theirs = outcome(case, jax, args)
    agree(outcome(case, phlox, args), theirs, row, what)
    if jit:
        agree(
            outcome(lambda m, *xs: m.jit(functools.partial(case, m))(*xs), phlox, args),
            theirs,
            row,
            what + " under jit",
        )


def named(*lists):
    return pytest.mark.parametrize("index", [pytest.param(i, id=text(i)) for found in lists for i in found])


@named(BASIC, ADVANCED)
def test_read(index):
    x = data(dtype=judge.ALL[len(text(index)) % len(judge.ALL)])
    both(lambda m, x: m.numpy.asarray(x)[index], x)
    arrays, fill = split(index)
    if arrays:
        both(
            lambda m, x, *parts: m.numpy.asarray(x)[fill([m.numpy.asarray(p) for p in parts])],
            x,
            *arrays,
            what="with index arrays as arguments",
        )


@named(BASIC, ADVANCED)
def test_gradient_of_read(index):
    arrays, fill = split(index)

    def case(m, x, *parts):
        def total(x):
            y = m.numpy.asarray(x)[fill(parts)]
            return (y * judge.weights(y.shape).astype(np.float32)).sum()

        return m.jit(m.grad(total))(x)

    both(case, data(), *arrays, row=NEAR, jit=False)


@named(BASIC, ADVANCED)
def test_vmap_of_read(index):
    arrays, fill = split(index)
    x = data(shape=(2, *SHAPE))
    both(lambda m, x: m.vmap(lambda x: x[index])(x), x, what="over x")
    both(lambda m, x: m.vmap(lambda x: x[index], -1, -1)(x), np.moveaxis(x, 0, -1), what="over the last axis of x")
    if arrays:
        moved = [np.stack([p, p // 2]) for p in arrays]
        both(lambda m, x, *ps: m.vmap(lambda x, *ps: x[fill(ps)])(x, *ps), x, *moved, what="over x and the index")
        both(
            lambda m, x, *ps: m.vmap(lambda *ps: m.numpy.asarray(x)[fill(ps)])(*ps), x[0], *moved, what="over the index"
        )


METHODS = ["set", "add", "multiply", "min", "max", "subtract", "divide", "power", "mul"]


@named(BASIC, ADVANCED)
def test_write(index):
    """`set` and one more method, with a number and with an array of values."""
    x, arrays, fill = data(), *split(index)
    with np.errstate(all="ignore"):
        shape = np.shape(np.asarray(outcome(lambda m, x: m.numpy.asarray(x)[index], jax, [x])[0]))
    values = data("values", shape=shape)
    more = METHODS[1:][len(text(index)) % len(METHODS[1:])]
    unique = not any(a.size > 1 for a in arrays)  # of equal indices any may win, and rounding depends on the order
    for method in ["set", more] if unique else ["add", "max", more]:
        write = lambda m, x, y, *ps, name=method: getattr(m.numpy.asarray(x).at[fill(ps)], name)(y)
        both(write, abs(x), values, *arrays, row=NEAR, what=method)
        both(write, x, 2.0, *arrays, row=NEAR, what=f"{method} a number", jit=False)


@named(BASIC[::3], ADVANCED[::2])
def test_gradient_of_write(index):
    arrays, fill = split(index)
    x = data()
    shape = np.shape(np.asarray(jax.numpy.asarray(x)[index]))
    values = data("values", shape=shape)
    unique = not any(a.size > 1 for a in arrays)
    for method in ["set", "add", "multiply"] if unique else ["add", "multiply"]:

        def case(m, x, y, *parts, name=method):
            def total(x, y):
                z = getattr(x.at[fill(parts)], name)(y)
                return (z * judge.weights(z.shape).astype(np.float32)).sum()

            return m.jit(m.grad(total, (0, 1)))(x, y)

        refused = judge.outcome(case, jax, (x, values, *arrays))[1]
        if not isinstance(refused, NotImplementedError):  # of products that may repeat an index; here they are not
            both(case, x, values, *arrays, row=NEAR, jit=False, what=method)


@named(BASIC[::3], ADVANCED[::2])
def test_vmap_of_write(index):
    arrays, fill = split(index)
    x = data(shape=(2, *SHAPE))
    shape = np.shape(np.asarray(jax.numpy.asarray(x[0])[index]))
    y = data("values", shape=(2, *shape))
    both(lambda m, x, y: m.vmap(lambda x, y: x.at[index].add(y))(x, y), x, y, row=NEAR, jit=False, what="over both")
    both(lambda m, x, y: m.vmap(lambda x: x.at[index].set(y))(x), x, y[0] * 0 + 1, row=NEAR, jit=False, what="over x")
    both(
        lambda m, x, y: m.vmap(lambda y: m.numpy.asarray(x).at[index].add(y))(y),
        x[0],
        y,
        row=NEAR,
        jit=False,
        what="over y",
    )
    if arrays:
        moved = [np.stack([p, p // 2]) for p in arrays]
        both(
            lambda m, x, y, *ps: m.vmap(lambda y, *ps: m.numpy.asarray(x).at[fill(ps)].add(y))(y, *ps),
            x[0],
            y,
            *moved,
            row=NEAR,
            jit=False,
        )


@pytest.mark.parametrize("index", WRONG, ids=text)
def test_wrong_index(index):
    both(lambda m, x: m.numpy.asarray(x)[index], data(), jit=False)
    both(lambda m, x: m.numpy.asarray(x).at[index].set(1.0), data(), jit=False, what="at.set")


OUTSIDE = [np.array([0, 9, -9, 2, -1]), np.array(17), np.array(-17), np.array([[3, -4]]), np.array([4, 250], np.uint8)]


@pytest.mark.parametrize("index", OUTSIDE, ids=text)
@pytest.mark.parametrize("mode", [None, "clip", "fill", "drop", "promise_in_bounds", "wrap", "nonsense"])
def test_modes(index, mode):
    """What happens outside of the array, for reading and writing."""
    if mode == "promise_in_bounds":
        index = index % 3
    for dtype in rotate(["float32", "int32", "uint8", "bool", "complex64"], 2, mode, text(index)):
        x = data(dtype=dtype)
        both(lambda m, x, i: m.numpy.asarray(x).at[i].get(mode=mode), x, index, what="get")
        both(lambda m, x, i: m.numpy.asarray(x).at[:, i].get(mode=mode, fill_value=1), x, index, what="get, fill_value")
        both(lambda m, x, i: m.numpy.asarray(x).at[i].set(1, mode=mode), x, index, row=NEAR, what="set")
        if dtype != "bool":
            both(lambda m, x, i: m.numpy.asarray(x).at[0, i].add(2, mode=mode), x, index, row=NEAR, what="add")


NEGATIVE = [-1, 1, -9, np.array([-1, 5, 0, -9]), (np.array([-1, 1]), -1), (slice(None), np.array([-1, 1], np.int8)), (..., -1),
            (-2, slice(1, 3)), np.array([1, 0], np.uint8), (slice(None, None, 2), -1)]  # fmt: skip


@pytest.mark.parametrize("index", NEGATIVE, ids=text)
@pytest.mark.parametrize("mode", [None, "clip", "fill"])
def test_negative_positions_that_do_not_wrap(index, mode):
    x, how = data(), {"mode": mode, "wrap_negative_indices": False}
    both(lambda m, x: m.numpy.asarray(x).at[index].get(**how), x, what="get")
    both(lambda m, x: m.numpy.asarray(x).at[index].set(1.0, **how), x, row=NEAR, what="set")
    both(lambda m, x: m.numpy.asarray(x).at[index].divide(2.0, **how), x, row=NEAR, what="divide")
    both(lambda m, x: m.numpy.asarray(x).at[index].apply(lambda y: y * 2, **how), x, row=NEAR, what="apply")


@pytest.mark.parametrize("dtype", judge.ALL)
@pytest.mark.parametrize("method", METHODS)
def test_dtypes_of_written_values(method, dtype):
    """Values take the dtype of the array, whatever theirs is."""
    x = data(dtype=dtype, shape=(4,))
    write = lambda m, x, y: getattr(m.numpy.asarray(x).at[1:3], method)(y)
    other = rotate(judge.ALL, 1, method, dtype)[0]
    both(write, x, data("values", dtype=dtype, shape=(2,)), row=NEAR, jit=False)
    both(write, x, data("values", dtype=other, shape=()), row=NEAR, jit=False, what=other)
    both(write, x, 2, row=NEAR, jit=False, what="int")
    both(write, x, 2.5, row=NEAR, jit=False, what="float")


def test_apply():
    both(lambda m, x: m.numpy.asarray(x).at[np.array([0, 2])].apply(m.numpy.square), data(), row=NEAR)
    both(lambda m, x: m.numpy.asarray(x).at[1:, 0].apply(lambda v: v * 2), data(), row=NEAR)
    both(lambda m, x: m.numpy.asarray(x).at[np.array([0, 0, 9])].apply(lambda v: v * 2), data(), row=NEAR)


def test_promises_are_accepted():
    i = np.array([0, 2])
    both(lambda m, x: m.numpy.asarray(x).at[i].get(indices_are_sorted=True, unique_indices=True), data())
    both(lambda m, x: m.numpy.asarray(x).at[i].set(1.0, indices_are_sorted=True, unique_indices=True), data())
    both(lambda m, x: m.numpy.asarray(x).at[i].add(1.0, unique_indices=True, mode="drop"), data())


def test_repeated_indices_add_up():
    i = np.array([0, 1, 0, 0])
    for name in ("add", "multiply", "min", "max", "subtract"):
        both(
            lambda m, x, name=name: getattr(m.numpy.asarray(x).at[i], name)(data("y", shape=(4, 4, 2))),
            data(),
            row=NEAR,
            what=name,
        )


def test_a_sequence_of_bools_inside_of_an_index_is_a_mask():
    """As in NumPy; jax fails with an AssertionError."""
    x, index = np.arange(12.0, dtype=np.float32).reshape(3, 4), s_[(True, False, True),]
    np.testing.assert_array_equal(phlox.numpy.asarray(x)[index], x[index])
    np.testing.assert_array_equal(phlox.jit(lambda x: x[index])(x), x[index])


def test_a_traced_index_and_slice():
    both(lambda m, x, i: m.numpy.asarray(x)[i, :, i], data(), 1)
    both(lambda m, x, i: m.jit(lambda x, i: x[i])(x, i), data(), -2)
    both(lambda m, x, i: m.jit(lambda x, i: x[i:])(x, i), data(), 1, jit=False)
    both(lambda m, x, i: m.jit(lambda x, i: x[x > i])(x, i), data(), 1.0, jit=False)
    both(lambda m, x, i: m.jit(lambda x, i: x.at[x > i].add(1.0))(x, i), data(), 1.0, jit=False)


def test_a_traced_mask_is_set():
    """jax takes a mask only where its values are known; what it does then, phlox does in general."""
    x = data()
    staged = phlox.jit(lambda x, limit: x.at[x > limit].set(0.0))(x, 1.0)
    judge.compare(staged, jax.numpy.asarray(x).at[x > 1.0].set(0.0), exact=True)
    with pytest.raises(phlox.errors.NonConcreteBooleanIndexError, match=r"concrete; got bool.*, which is traced"):
        phlox.jit(lambda x: x.at[x > 1.0].set(x))(x)


def test_iteration_and_unpacking():
    both(lambda m, x: list(m.numpy.asarray(x)), data())
    both(lambda m, x: [len(m.numpy.asarray(x)), *m.numpy.asarray(x)[0]], data(), jit=False)
    both(lambda m, x: list(m.numpy.asarray(x)), data(shape=()), jit=False)
    both(lambda m, x: len(m.numpy.asarray(x)), data(shape=()), jit=False)
    both(lambda m, x: list(reversed(m.numpy.asarray(x))), data(shape=(3,)), jit=False)
    both(lambda m, x: bool(2.0 in m.numpy.asarray(x)), np.arange(3.0), jit=False)


def test_assignment_is_refused_with_a_way_out():
    def assign(m, x):
        m.numpy.asarray(x)[0] = 1.0

    error = judge.raises_alike(assign, data())
    assert ".at[" in str(error)


@pytest.mark.parametrize(
    ("arr", "indices", "axis"),
    [((0, 3), (0, 2), 1), ((3, 0), (3, 0), 1), ((0, 3), (1, 2), 1), ((3, 4), (3, 0), 1), ((1, 0), (4, 0), 0)],
    ids=str,
)
def test_take_along_axis_without_elements(arr, indices, axis):
    def shapes(m):
        take = lambda x: m.numpy.take_along_axis(x, np.zeros(indices, np.int32), axis)
        x = np.zeros(arr, np.float32)
        return take(x).shape, m.grad(lambda x: take(x).sum())(x).shape

    assert shapes(phlox) == shapes(jax)


# --- numbers that default integers cannot hold ---------------------------------------------------------------

LARGE = {
    "set": lambda lib, x, n: x.at[0].set(n),
    "add": lambda lib, x, n: x.at[np.array([1, 1])].add(n),
    "max": lambda lib, x, n: x.at[:].max(n),
    "full": lambda lib, x, n: lib.numpy.full((2,), n, x.dtype),
    "full_like": lambda lib, x, n: lib.numpy.full_like(x, n),
    "lax.full": lambda lib, x, n: lib.lax.full((2,), n, x.dtype),
    "lax.full_like": lambda lib, x, n: lib.lax.full_like(x, n),
    "convert_element_type": lambda lib, x, n: lib.lax.convert_element_type(n, x.dtype),
    "array": lambda lib, x, n: lib.numpy.array(n, x.dtype),
    "plus": lambda lib, x, n: x + n,
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("dtype", ["uint32", "uint8", "int32", "float32", "bool"])
def test_large_numbers(name, dtype):
    for n in (2**32 - 1, 2**31, 2**40 + 3, -(2**31) - 1, -(2**40), 2**63, 2**70):
        if name in ("set", "add", "max") and dtype != "uint32":
            continue  # jax refuses them; there is nothing against converting them
        limits = np.iinfo(dtype) if "int" in dtype else None
        if limits and not limits.min <= n <= limits.max and name != "convert_element_type":
            with pytest.raises(OverflowError):  # as in NumPy 2; jax wraps some
                LARGE[name](phlox, phlox.numpy.ones(3, dtype), n)
            continue
        ran = [outcome(LARGE[name], lib, (lib.numpy.ones(3, dtype), n)) for lib in (phlox, jax)]
        agree(*ran, EXACT, f"{name} of {n} and {dtype}")


@pytest.mark.parametrize("index", [2**40, -(2**40), (2**40, 1)])
def test_indices_beyond_32_bits_are_refused(index):
    """jax refuses them where it reads, and writes nothing."""
    x = phlox.numpy.zeros(SHAPE)
    with pytest.raises(OverflowError, match="1099511627776"):
        x[index]
    with pytest.raises(OverflowError, match="1099511627776"):
        x.at[index].set(1.0)


def test_static_indices_outside_are_refused_on_demand():
    for lib in (phlox, jax):
        x = lib.numpy.zeros(SHAPE)
        lib.config.update("jax_check_static_indices", True)
        try:
            for index in (3, -4, s_[:, 4], s_[..., 2], s_[INTS, 5]):
                for read in (x.__getitem__, lib.jit(x.__getitem__, static_argnums=0) if index == 3 else x.__getitem__):
                    with pytest.raises((IndexError, TypeError), match=r"out of bounds|non-tuple"):
                        read(index)
                with pytest.raises((IndexError, TypeError)):
                    x.at[index].get()
                if not isinstance(index, list):
                    assert x.at[index].get(mode="clip") is not None
                    assert x.at[index].set(1) is not None
            assert x[2, -4, 1] == 0
        finally:
            lib.config.update("jax_check_static_indices", False)


@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="strategies are new in jax 0.12")
@pytest.mark.parametrize("strategy", ["auto", "gather", "static_slice", "dynamic_slice", "other"])
def test_strategies_of_reading_take_the_indices_that_they_take_in_jax(strategy):
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    indices = {"int": 1, "slice": slice(1, 3), "steps": slice(0, 3, 2), "reversed": slice(None, None, -1)}
    indices |= {"column": (slice(None), 2), "axis": (None, 1), "all": Ellipsis, "scalar": np.array(1), "true": True}
    indices |= {"array": np.array([0, 1]), "mask": np.array([True, False, True])}
    for name, index in indices.items():
        try:
            expected = jax.numpy.asarray(x).at[index].get(strategy=strategy)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error), match="strategy"):
                jnp.asarray(x).at[index].get(strategy=strategy)
        else:
            np.testing.assert_array_equal(jnp.asarray(x).at[index].get(strategy=strategy), expected, err_msg=name)


def test_one_hot_reads_zeros_outside_and_drops_writes():
    x = jnp.arange(1.0, 6.0)
    outside, inside = jnp.array([0, 7, -9]), jnp.array([3, -1])
    one_hot = phlox.lax.GatherScatterMode.ONE_HOT
    for mode in ("one_hot", one_hot):
        assert x.at[outside].get(mode=mode).tolist() == [1, 0, 0]
        assert x.at[outside].get(mode=mode, fill_value=9).tolist() == [1, 0, 0]
        assert x.at[inside].get(mode=mode).tolist() == [4, 5]
    assert float(x.at[7].get(mode="one_hot")) == 0
    slopes = phlox.jit(phlox.grad(lambda x: x.at[outside].get(mode="one_hot").sum()))(x)
    assert slopes.tolist() == [1, 0, 0, 0, 0]
    rows = phlox.vmap(lambda i: x.at[i].get(mode="one_hot"))(outside[:, None])
    assert rows.tolist() == [[1], [0], [0]]
    for i in (outside, inside):  # what jax has of this mode
        theirs = jax.numpy.arange(1.0, 6.0)
        j = jax.numpy.asarray(np.asarray(i))
        np.testing.assert_array_equal(x.at[i].set(9, mode="one_hot"), theirs.at[j].set(9, mode="one_hot"))
        np.testing.assert_array_equal(x.at[i].add(9, mode="one_hot"), theirs.at[j].add(9, mode="one_hot"))
        got = jnp.take_along_axis(x, i, mode="one_hot")
        np.testing.assert_array_equal(got, jax.numpy.take_along_axis(theirs, j, mode="one_hot"))


@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="earlier jax counts from the end in fewer modes")
def test_take_along_axis_counts_from_the_end_as_in_jax():
    x, i = np.array([10, 20, 30]), np.array([-1, -4, 1, 5])
    for mode in (None, "fill", "clip", "promise_in_bounds"):
        for wrap in ({}, {"wrap_negative_indices": True}, {"wrap_negative_indices": False}):
            got = jnp.take_along_axis(x, i, mode=mode, **wrap)
            expected = jax.numpy.take_along_axis(x, i, mode=mode, **wrap)
            np.testing.assert_array_equal(got, expected, err_msg=f"{mode} {wrap}")


@pytest.mark.parametrize(
    "read",
    [
        lambda m, x, i: m.lax.dynamic_slice(x, (i,), (3,)),
        lambda m, x, i: m.numpy.asarray(x).at[i[None]].get(unique_indices=True, indices_are_sorted=True),
    ],
)
def test_examples_that_read_one_array_repeat_indices(read):
    def slopes(m):
        return m.grad(lambda x: m.vmap(lambda i: read(m, x, i))(m.numpy.array([1, 1, 2])).sum())

    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(slopes(phlox)(x), slopes(jax)(x))
    scatters = [e for e in phlox.make_jaxpr(slopes(phlox))(x).eqns if e.primitive.name == "scatter-add"]
    assert [e.params["unique_indices"] for e in scatters] == [False]


def warned(case, m):
    """Whether a program warns of numbers that an array cannot store."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        case(m)
    return FutureWarning in {w.category for w in caught}


@pytest.mark.parametrize(
    "stored", ["1", "1.5", "2 + 1j", "True", "np.float32(1.5)", "m.numpy.asarray(3)", "m.numpy.ones((), 'complex64')"]
)
@pytest.mark.parametrize("dtype", ["int32", "int8", "float32", "bfloat16", "bool", "complex64"])
def test_a_loss_of_stored_values_is_told(dtype, stored):
    for kind in ("set", "max"):
        for index in (0, np.array([True, False, True])):

            def store(m):
                value = eval(stored, {"np": np, "m": m})
                getattr(m.numpy.zeros(3, dtype).at[index], kind)(value)

            assert warned(store, phlox) == warned(store, jax) == warned(store, phlox), "also the second time"


@pytest.mark.parametrize("name", ["put", "place", "put_along_axis", "fill_diagonal"])
def test_a_loss_of_put_values_is_told(name):
    where = {"put": 0, "place": [[True, False], [False, True]], "put_along_axis": [[0, 1]]}
    for dtype, value in (("int32", [1.5]), ("float32", [1j]), ("float32", [2]), ("float32", [2.5])):

        def put(m):
            arguments = [m.numpy.asarray(where[name])] if name in where else []
            axis = {"axis": 0} if name == "put_along_axis" else {}
            getattr(m.numpy, name)(
                m.numpy.zeros((2, 2), dtype), *arguments, m.numpy.asarray(value), **axis, inplace=False
            )

        assert warned(put, phlox) == warned(put, jax)
