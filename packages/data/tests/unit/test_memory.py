"""The memory of batches is used again, and never while anyone reads it."""

import gc

import ml_dtypes
import numpy as np
import pytest

import phlox
import phlox_data as data
from phlox_data._memory import _MOST, Memory

X = np.arange(64 * 3000, dtype=np.float32).reshape(64, 3000)


def address(array):
    return array.__array_interface__["data"][0]


def test_memory_comes_back_when_nobody_refers_to_it():
    memory = Memory()
    first = memory.empty((3, 5), np.dtype("float32"))
    at = address(first)
    assert at % 64 == 0 and first.shape == (3, 5) and first.dtype == np.float32 and first.flags.c_contiguous
    row = first[1:].T[2]
    del first
    second = memory.empty((3, 5), np.dtype("float32"))
    assert address(second) != at  # a view of a view is left
    del row
    assert address(memory.empty((5, 3), np.dtype("int32"))) == at
    for shape, dtype in (((0, 4), "float32"), ((2,), ml_dtypes.bfloat16), ((), "bool"), ((1,), "complex64")):
        made = memory.empty(shape, np.dtype(dtype))
        assert (made.shape, made.dtype) == (shape, np.dtype(dtype))


def test_memory_of_batches_that_are_kept_is_not_kept_for_others():
    memory = Memory()
    kept = [memory.empty((4,), np.dtype("int32")) for _ in range(3 * _MOST)]
    assert len({address(array) for array in kept}) == len(kept)
    (pieces,) = memory._pieces.values()
    assert len(pieces) == _MOST


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("seed", [None, 3])
def test_batches_keep_their_values(prefetch, seed):
    """However long they are kept, and by whom: as arrays, as views of NumPy, as operands of a running computation."""
    made = data.batches((X, np.arange(64)), 4, seed=seed, prefetch=prefetch)
    work = phlox.jit(lambda x: phlox.lax.fori_loop(0, 50, lambda i, y: phlox.numpy.sin(y) + x, x).sum())
    donated = phlox.jit(lambda x: x + 1, donate_argnums=0)
    arrays, views, sums, later = [], [], [], []
    for x, number in made.epoch(1):
        arrays.append((x, number))
        views.append(np.asarray(x)[1])
    for x, number in made.epoch(1):
        sums.append(work(x))
        later.append((donated(x), number))
        del x
    gc.collect()
    for (x, number), view, total, (more, again) in zip(arrays, views, sums, later, strict=True):
        rows = np.asarray(number)
        np.testing.assert_array_equal(x, X[rows])
        np.testing.assert_array_equal(view, X[rows[1]])
        np.testing.assert_array_equal(more, X[np.asarray(again)] + 1)
        np.testing.assert_allclose(total, work(X[rows]))


def test_donating_a_batch_changes_no_other():
    step = phlox.jit(lambda x: 0 * x, donate_argnums=0)
    for x in data.batches(X, 8, seed=0):
        step(x)
        assert x.is_deleted()
    for x, row in zip(data.batches(X, 8), range(0, 64, 8), strict=True):
        step(x).block_until_ready()
        np.testing.assert_array_equal(X[row : row + 8], np.arange(row * 3000, (row + 8) * 3000).reshape(8, 3000))


def test_the_source_may_change_once_a_batch_is_there():
    source = X.copy()
    for seed in (None, 0):
        loop = data.batches(source, 32, seed=seed, prefetch=0).epoch(0)
        batch = next(loop)
        before = np.array(batch)
        source[:] = -1
        np.testing.assert_array_equal(batch, before)
        source[:] = X
    written = np.zeros(4096, np.float32)

    def overwriting(epoch):
        for i in range(4):
            written.fill(i)
            yield written

    assert [set(batch.tolist()) for batch in list(data.from_iterable(overwriting))] == [{0.0}, {1.0}, {2.0}, {3.0}]


def test_rows_of_arrays_of_any_layout_and_type():
    rng = np.random.default_rng(0)
    sources = {
        "strided": X[::2, ::-3],
        "fortran": np.asfortranarray(X[:32]),
        "bool": X[:32] > 5000,
        "wide": np.arange(32, dtype=np.int64),
        "bfloat16": X[:32, :5].astype(ml_dtypes.bfloat16),
        "float8": (X[:32, :5] % 8).astype(ml_dtypes.float8_e4m3fn),
        "big": np.arange(32, dtype=">i4"),
        "complex": (X[:32, :2] * 1j).astype(np.complex64),
        "empty": np.zeros((32, 0, 3), np.float32),
        "half": rng.normal(size=(32, 2, 2)).astype(np.float16),
    }
    for seed in (None, 1):
        made = data.batches({**sources, "row": np.arange(32)}, 5, seed=seed, last="pad")
        for batch, mask in made:
            rows = np.asarray(batch["row"])
            for name, source in sources.items():
                want = phlox.device_put(source[rows])
                assert batch[name].dtype == want.dtype, name
                np.testing.assert_array_equal(batch[name], want)
            assert mask.shape == (5,)
