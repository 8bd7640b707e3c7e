"""gather, scatter and dynamic slices with dimension numbers that do not fit: what jax refuses, phlox refuses as well.

The words by which such errors are searched for are in both messages.
"""

import itertools
import re

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


def plain(m, *shape, dtype=np.float32):
    return m.numpy.zeros(shape, dtype)


WORDS = {
    "offset_dims in gather op must be sorted": lambda m: gathered(m, offset_dims=(3, 1)),
    "offset_dims in gather op must not repeat": lambda m: gathered(m, offset_dims=(1, 1)),
    "Offset dimension 1 in gather op is out of bounds": lambda m: gathered(m, offset_dims=(1, 4)),
    "elements in start_index_map and the bound of dimension index_vector_dim=2": lambda m: gathered(
        m, start_index_map=(0,)
    ),
    "Invalid start_index_map": lambda m: gathered(m, start_index_map=(0, 3)),
    "collapsed_slice_dims and operand_batching_dims in gather op must be disjoint": lambda m: gathered(
        m, operand_batching_dims=(1,), start_indices_batching_dims=(0,)
    ),
    "Slice size at index 0 in gather op is out of range": lambda m: gathered(m, (4, 1, 3)),
    "bound is 2 for index 1 at position 0": lambda m: gathered(m, (2, 2, 3)),
    "update_window_dims in scatter op must be sorted": lambda m: scattered(m, update_window_dims=(3, 1)),
    "Invalid update_window_dims set in scatter op": lambda m: scattered(m, update_window_dims=(1, 4)),
    "Invalid scatter_dims_to_operand_dims mapping": lambda m: scattered(m, scatter_dims_to_operand_dims=(0, 3)),
    "Scatter op has window of size 2; doesn't match operand of rank 3": lambda m: scattered(m, inserted_window_dims=()),
    "Bounds of the window dimensions": lambda m: scattered(m, (2, 2, 3, 6)),
    "Bounds of the scatter dimensions": lambda m: scattered(m, (3, 2, 3, 3)),
    "index arguments to dynamic_slice must be integers of the same type": lambda m: m.lax.dynamic_slice(
        plain(m, 3, 4), (np.int32(1), np.int16(2)), (2, 2)
    ),
    "cannot select an axis to squeeze out": lambda m: m.lax.squeeze(plain(m, 1, 2), (1,)),
    "dimensions are not unique": lambda m: m.lax.squeeze(plain(m, 1, 2), (0, 0)),
    "top_k returns int32 indices, which will overflow": lambda m: m.eval_shape(
        lambda x: m.lax.top_k(x, 3), m.ShapeDtypeStruct((2**31 + 1,), np.float32)
    ),
    "broadcast_dimensions must have length equal to operand ndim": lambda m: m.lax.broadcast_in_dim(
        plain(m, 2), (2, 2), (0, 1)
    ),
    "must be a subset of output dimensions": lambda m: m.lax.broadcast_in_dim(plain(m, 2), (2, 3), (2,)),
    "operand dimension sizes must either be 1": lambda m: m.lax.broadcast_in_dim(plain(m, 2), (3,), (0,)),
    "broadcast_dimensions must not contain duplicates": lambda m: m.lax.broadcast_in_dim(
        plain(m, 2, 2), (2, 2), (0, 0)
    ),
    "padding_value must be a scalar": lambda m: m.lax.pad(plain(m, 2), plain(m, 2), [(0, 0, 0)]),
    "interior padding in padding_config must be nonnegative": lambda m: m.lax.pad(plain(m, 2), 0.0, [(0, 1, -1)]),
    "Sizes passed to split must be nonnegative": lambda m: m.lax.split(plain(m, 5), [-1]),
    "Sum of sizes 6 must be equal": lambda m: m.lax.split(plain(m, 5), [6]),
    "require non-empty reduced dimension": lambda m: m.lax.argmin(plain(m, 0, 2), 0, np.int32),
    "duplicate value in 'axes'": lambda m: m.lax.reduce(plain(m, 3), np.float32(0), m.lax.add, (0, 0)),
    "requires arguments to have the same dtypes": lambda m: m.lax.add(0, 0.0),
    "rem does not accept dtype complex64": lambda m: m.lax.rem(plain(m, dtype=np.complex64), np.complex64(1)),
    "window and window_strides must have the same number of dimensions": lambda m: m.lax.conv(
        plain(m, 1, 1, 3, 3), plain(m, 1, 1, 1, 1), [1], "SAME"
    ),
}


@pytest.mark.parametrize("words", WORDS)
def test_words(words):
    for m in (jax, phlox):
        with pytest.raises((TypeError, ValueError), match=re.escape(words)):
            WORDS[words](m)
