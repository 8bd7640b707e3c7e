"""gather, scatter and dynamic slices with dimension numbers that do not fit: what jax refuses, phlox refuses as well."""

import itertools

import jax
import numpy as np
import pytest

import phlox

X = np.zeros((3, 4, 5), np.float32)
INDICES = np.zeros((2, 3, 2), np.int32)
GOOD_GATHER = {"offset_dims": (1, 3), "collapsed_slice_dims": (1,), "start_index_map": (0, 2)}
GOOD_SCATTER = {
    "update_window_dims": (1, 3),
    "inserted_window_dims": (1,),
    "scatter_dims_to_operand_dims": (0, 2),
}
OTHERS = [(), (0,), (3,), (7,), (-1,), (0, 0), (2, 1), (1, 2), (0, 1, 2)]


def outcome(call):
    try:
        return call().shape
    except (TypeError, ValueError, NotImplementedError) as error:
        assert not isinstance(error, phlox.errors.CompilationError)
        return "refused"


def compared(call):
    mine, theirs = (outcome(lambda m=m: call(m)) for m in (phlox, jax))
    assert mine == theirs
    return mine


def gathered(m, sizes=(2, 1, 3), indices=INDICES, **numbers):
    dims = m.lax.GatherDimensionNumbers(**{**GOOD_GATHER, **numbers})
    return m.lax.gather(m.numpy.asarray(X), m.numpy.asarray(indices), dims, sizes)


def scattered(m, updates=(2, 2, 3, 3), indices=INDICES, **numbers):
    dims = m.lax.ScatterDimensionNumbers(**{**GOOD_SCATTER, **numbers})
    return m.lax.scatter_add(m.numpy.asarray(X), m.numpy.asarray(indices), m.numpy.zeros(updates, np.float32), dims)


@pytest.mark.parametrize("name", [*GOOD_GATHER, "operand_batching_dims", "start_indices_batching_dims"])
def test_dimension_numbers_of_gather(name):
    assert compared(gathered) == (2, 2, 3, 3)
    for axes in OTHERS:
        compared(lambda m, axes=axes: gathered(m, **{name: axes}))


@pytest.mark.parametrize("name", [*GOOD_SCATTER, "operand_batching_dims", "scatter_indices_batching_dims"])
def test_dimension_numbers_of_scatter(name):
    assert compared(scattered) == X.shape
    for axes in OTHERS:
        compared(lambda m, axes=axes: scattered(m, **{name: axes}))


def test_batching_dimensions():
    batched = np.zeros((3, 2, 2), np.int32)
    good = {"offset_dims": (1, 3), "collapsed_slice_dims": (), "start_index_map": (1, 2), "operand_batching_dims": (0,)}
    found = [
        compared(
            lambda m, at=at, first=first: gathered(m, (first, 2, 3), batched, start_indices_batching_dims=at, **good)
        )
        for at, first in itertools.product([(0,), (1,), (2,), (3,), (0, 1)], (0, 1, 2))
    ]
    assert any(shape != "refused" for shape in found)


def test_sizes_and_types():
    for sizes in [(2, 1), (2, 2, 3), (4, 1, 3), (2, 1, -1), (2, 1, 3, 1), (3, 1, 5), (0, 1, 0)]:
        compared(lambda m, sizes=sizes: gathered(m, sizes))
    for updates in [(2, 2, 3), (2, 2, 3, 6), (3, 2, 3, 3), (2, 4, 3, 3), (2, 2, 3, 3, 1), (2, 3, 3, 5)]:
        compared(lambda m, updates=updates: scattered(m, updates))
    for indices in [INDICES.astype(np.float32), INDICES[..., :1], INDICES.astype(np.uint8), INDICES[0, 0, 0]]:
        compared(lambda m, indices=indices: gathered(m, indices=indices))
        compared(lambda m, indices=indices: scattered(m, indices=indices))


def test_starts_of_dynamic_slices():
    zero = np.int32(0)
    for starts in [(zero,) * 3, (zero,) * 2, (zero, 0.5, zero), (zero, np.zeros(2, np.int32), zero), (zero,) * 4]:
        for sizes in [(1, 2, 3), (4, 2, 3), (1, 2), (1, 2, -1)]:
            compared(lambda m, starts=starts, sizes=sizes: m.lax.dynamic_slice(m.numpy.asarray(X), starts, sizes))
            compared(
                lambda m, starts=starts, sizes=sizes: m.lax.dynamic_update_slice(
                    m.numpy.asarray(X), m.numpy.zeros(tuple(abs(n) for n in sizes), np.float32), starts
                )
            )
    for axes in [(0,), (1, 1), (5,), (-1,), (0, -1), (2, 2)]:
        compared(lambda m, axes=axes: m.lax.squeeze(m.numpy.zeros((1, 2, 1)), axes))
    for k, axis in itertools.product([0, 2, 5, -1], [-1, 0, 3, -4]):
        compared(lambda m, k=k, axis=axis: m.lax.top_k(m.numpy.asarray(X), k, axis=axis)[0])
