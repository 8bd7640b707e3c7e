"""Indices drawn at random: reading, writing and their derivatives as NumPy does it, and as jax does it outside of the array.

PHLOX_TEST_CASES asks for more of them.
"""

import functools
import itertools

import jax
import numpy as np
import pytest

import judge
import phlox
import phlox.numpy as jnp
from conformance.harness import agree, outcome, row
from conformance.test_indexing import split, text

COUNT = 200 * judge.CASES
SHAPES = [(), (5,), (3, 4), (4, 1, 3), (3, 4, 2), (2, 3, 2, 3), (3, 0, 2)]
NEAR = row("random indices")


# --- drawing an index that NumPy takes ----------------------------------------------------------------------------------


def some_slice(random, n):
    bound = lambda: None if random.random() < 0.4 else int(random.integers(-n - 2, n + 3))
    return slice(bound(), bound(), random.choice([None, None, 1, 2, 3, -1, -2]))


def some_mask(random, shape, wanted):
    """A mask with `wanted` true elements, or with one where there are not so many."""
    size = int(np.prod(shape))
    mask = np.zeros(size, bool)
    mask[random.permutation(size)[: wanted if size >= wanted else min(1, size)]] = True
    return mask.reshape(shape)


def some_integers(random, n, common):
    """Integers for an axis of length n, whose shape broadcasts with `common`."""
    shape = [d if random.random() < 0.7 else 1 for d in common][int(random.integers(0, len(common) + 1)) :]
    return random.integers(-n, n, shape).astype(random.choice(["int32", "int64", "int8"]))


def some_index(random, shape):
    """Some of: integers, slices, None, Ellipsis, arrays of integers, masks of one axis and of two."""
    left, parts, common = list(shape), [], tuple(random.choice([2, 3], size=int(random.integers(1, 3))))
    fancy, dots = random.random() < 0.6, False
    while len(parts) < 7:
        kind = random.choice(["integer", "slice", "array", "mask", "masks", "none", "dots", "scalar", "end"])
        n = left[0] if left else 0
        if kind == "end" or (not left and kind not in ("none", "dots")):
            break
        if kind == "none":
            parts.append(None)
        elif kind == "dots" and not dots:
            dots = True
            parts.append(...)
            left = left[int(random.integers(0, len(left) + 1)) :]
        elif kind == "slice":
            parts.append(some_slice(random, n))
            left.pop(0)
        elif kind == "integer" and n:
            parts.append(int(random.integers(-n, n)))
            left.pop(0)
        elif kind == "scalar" and n:
            parts.append(np.int32(random.integers(-n, n)))
            left.pop(0)
        elif kind == "array" and fancy and n:
            parts.append(some_integers(random, n, common))
            left.pop(0)
        elif kind == "mask" and fancy:
            parts.append(some_mask(random, (n,), common[-1]))
            left.pop(0)
        elif kind == "masks" and fancy and len(left) > 1:
            parts.append(some_mask(random, left[:2], common[-1]))
            del left[:2]
    return parts[0] if len(parts) == 1 and random.random() < 0.5 else tuple(parts)


def drawn(count):
    """Different indices, with the shape of what they are used on. The dots may skip other axes than was thought."""
    found, random = {}, judge.rng("random indices")
    for shape in itertools.cycle(SHAPES):
        if len(found) == count:
            return list(found.values())
        index = some_index(random, shape)
        try:
            np.zeros(shape)[index]
        except IndexError:
            continue
        name = f"{list(shape)}[{text(index)}]".replace(" ", "")
        found.setdefault(name, pytest.param(shape, index, id=name))


# --- against NumPy ------------------------------------------------------------------------------------------------------

WRITERS = {
    "add": np.add,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "subtract": np.subtract,
    "divide": np.divide,
}


def written(ufunc, x, index, y):
    x = x.copy()
    ufunc.at(x, index, y)
    return x


def repeated(shape, index):
    """Whether an element is named more than once; then which of several values is set is nobody's promise."""
    places = np.arange(np.prod(shape, dtype=int)).reshape(shape)[index]
    return len(np.unique(places)) < places.size


def program(name, fill, distinct):
    """Reading and writing with an index, and derivatives of both."""

    def run(x, y, w, parts):
        index = fill(parts)
        read = lambda x: x[index]
        write = lambda x, y: x.at[index].set(y if distinct else 2.0)
        return {
            "read": read(x),
            "grad of read": phlox.grad(lambda x: (read(x) * y).sum())(x),
            "set": write(x, y),
            "grad of set": phlox.grad(lambda x, y: (write(x, y) * w).sum(), (0, 1))(x, y),
            name: getattr(x.at[index], name)(y),
            "apply": x.at[index].apply(jnp.square) if distinct else x,
        }

    return run


def by_numpy(name, x, y, w, index, distinct):
    places = np.ones_like(x)
    places[index] = 0
    set_, squared = x.copy(), x.copy()
    set_[index] = y if distinct else 2.0
    squared[index] = np.square(x[index])
    return {
        "read": x[index],
        "grad of read": written(np.add, np.zeros_like(x), index, y),
        "set": set_,
        "grad of set": (w * places, w[index] if distinct else np.zeros_like(y)),
        name: written(WRITERS[name], x, index, y),
        "apply": squared if distinct else x,
    }


@pytest.mark.parametrize(("shape", "index"), drawn(COUNT))
def test_like_numpy(shape, index):
    x = judge.array(judge.rng("x", shape), shape, "float32")
    y = judge.array(judge.rng("y", text(index)), np.shape(x[index]), "float32", 0.5, 2.0)
    w = judge.weights(shape).astype(np.float32)
    name = list(WRITERS)[len(text(index)) % len(WRITERS)]
    distinct = not repeated(shape, index)
    arrays, fill = split(index)
    mine = phlox.jit(program(name, fill, distinct))(x, y, w, arrays)
    wanted = by_numpy(name, x, y, w, index, distinct)
    for what in wanted:
        for a, b in zip(phlox.tree.leaves(mine[what]), phlox.tree.leaves(wanted[what]), strict=True):
            assert (a.shape, a.dtype) == (np.shape(b), "float32"), what
            judge.same_values(np.asarray(a), np.asarray(b), what=f"{what} (for jax read: NumPy)")
    judge.same_values(
        np.asarray(jnp.asarray(x)[index]), x[index], exact=True, what="read eagerly (for jax read: NumPy)"
    )


@pytest.mark.parametrize(("shape", "index"), drawn(COUNT)[::5])
def test_like_jax(shape, index):
    """Types of results too; of every dtype, with values of another one."""
    random = judge.rng("like jax", text(index))
    dtypes = random.permutation([d for d in judge.ALL if d != "bool"])
    x = judge.array(random, shape, dtypes[0])
    y = judge.array(random, np.shape(x[index]), dtypes[1])

    def case(m, x, y):
        x = m.numpy.asarray(x)
        return x[index], x.at[index].get(), x.at[index].add(y)

    agree(outcome(case, phlox, (x, y)), outcome(case, jax, (x, y)), NEAR, "eager")


# --- outside of the array, and promises -------------------------------------------------------------------------------------


def outside(count):
    """Indices of integers, some of them outside, with modes and promises that hold."""
    random, found = judge.rng("outside"), []
    for i in range(count):
        n = int(random.integers(1, 6))
        mode = random.choice(["fill", "clip", "drop", "wrap", "promise_in_bounds", None])
        reach = n if mode == "promise_in_bounds" else 2 * n + 2
        values = random.integers(-reach, reach, (int(random.integers(1, 4)),)).astype(
            random.choice(["int32", "int8", "int64"])
        )
        options = {} if mode is None else {"mode": str(mode)}
        if random.random() < 0.4 and (values >= 0).all():
            values = np.unique(values)
            options |= {"indices_are_sorted": True, "unique_indices": True}
        fill = random.choice([None, 7, 0]) if mode in ("fill", None) else None
        where = int(random.integers(0, 4))
        found.append(
            pytest.param(n, values, where, options, fill, id=f"{i}-{n}-{text(values)}-{where}-{options}-{fill}")
        )
    return found


@pytest.mark.parametrize(("n", "values", "where", "options", "fill"), outside(40 * judge.CASES))
def test_outside(n, values, where, options, fill):
    place = [lambda i: i, lambda i: (slice(None), i), lambda i: (i, None, i), lambda i: (0, i)][where]
    x = judge.array(judge.rng("outside", n), (n, n), "float32")
    shape = np.shape(np.zeros((n, n))[place(values % n)])
    y = judge.array(judge.rng("outside y", n), shape, "float32", 0.5, 2.0)
    distinct = len(np.unique(values % n)) == len(values) and "clip" not in str(options)

    def case(m, x, y, values):
        reads = {**options, **({} if fill is None else {"fill_value": fill})}
        get = lambda x: m.numpy.asarray(x).at[place(values)].get(**reads)
        write = lambda x, y: x.at[place(values)].set(y if distinct else 3.0, **options)
        put = lambda x, y: x.at[place(values)].add(y, **options)
        w = judge.weights((n, n)).astype(np.float32)
        return (
            get(x),
            m.grad(lambda x: (get(x) * y).sum())(x),
            write(x, y),
            m.grad(lambda x, y: (write(x, y) * w).sum(), (0, 1))(x, y),
            put(x, y),
            m.grad(lambda y: (put(x, y) ** 2).sum())(y),
            x.at[place(values)].max(y, **options),
        )

    run = lambda m, *xs: m.jit(functools.partial(case, m))(*xs)
    agree(outcome(run, phlox, (x, y, values)), outcome(run, jax, (x, y, values)), NEAR, "under jit")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)], ids=str)
def test_nothing_can_be_read_of_an_empty_axis(shape):
    x, places = np.zeros(shape, np.float32), (np.array([0, 2]),)
    index = places if not shape[0] else (slice(None), *places)
    for case in (
        lambda m, x: x[0, 0],
        lambda m, x: x[index],
        lambda m, x: x.at[index].get(mode="fill"),
        lambda m, x: x.at[0, 0].set(1.0),
        lambda m, x: x.at[index].set(1.0),
        lambda m, x: m.numpy.take(x, places[0], x.shape.index(0)),
    ):
        whole = lambda m, x, case=case: m.jit(lambda x: case(m, x))(x)
        agree(outcome(whole, phlox, [x]), outcome(whole, jax, [x]), NEAR, "under jit")


# --- masks under tracing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [lambda m: m, lambda m: m[:, 0]], ids=["of elements", "of rows"])
def test_a_traced_mask_is_set(part):
    """jax wants masks that are known."""
    x = judge.array(judge.rng("masked"), (3, 4), "float32")
    mask = judge.array(judge.rng("mask"), (3, 4), "bool")
    wanted, held = x.copy(), np.zeros(x.shape, bool)
    wanted[part(mask)], held[part(mask)] = 5.0, True
    mine = phlox.jit(lambda x, m: x.at[part(m)].set(5.0))(x, mask)
    judge.same_values(np.asarray(mine), wanted, exact=True, what="set (for jax read: NumPy)")
    slopes = phlox.jit(phlox.grad(lambda x, v, m: (x.at[part(m)].set(v) * wanted).sum(), (0, 1)))(x, 5.0, mask)
    judge.same_values(np.asarray(slopes[0]), np.where(held, 0, wanted), what="its gradient (for jax read: NumPy)")
    np.testing.assert_allclose(slopes[1], wanted[held].sum(), rtol=1e-5)


TRACED = {
    "x[mask]": lambda m, x: x[x > 1],
    "x.at[mask].get": lambda m, x: x.at[x > 1].get(),
    "nonzero": lambda m, x: m.numpy.nonzero(x > 1),
    "where": lambda m, x: m.numpy.where(x > 1),
    "unique": lambda m, x: m.numpy.unique(x),
    "argwhere": lambda m, x: m.numpy.argwhere(x),
    "flatnonzero": lambda m, x: m.numpy.flatnonzero(x),
    "extract": lambda m, x: m.numpy.extract(x > 1, x),
    "union1d": lambda m, x: m.numpy.union1d(x, x),
    "repeat": lambda m, x: m.numpy.repeat(x, m.numpy.int32(x)),
    "bincount": lambda m, x: m.numpy.bincount(m.numpy.int32(x)),
}


@pytest.mark.parametrize("name", TRACED)
def test_lengths_that_depend_on_elements_are_refused(name):
    error = judge.raises_alike(lambda m, x: m.jit(functools.partial(TRACED[name], m))(x), np.arange(4.0))
    assert any(way in str(error) for way in ("where(", "size=", "length=", "total_repeat_length="))
