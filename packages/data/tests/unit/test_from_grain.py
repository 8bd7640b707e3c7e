"""Batches of Grain, with the real library."""

import json
import threading

import grain
import ml_dtypes
import numpy as np
import pytest

import phlox_data as data
from data_protocol import check, values
from phlox.errors import ArgumentError

ROWS = np.arange(11)


def dataset():
    return grain.MapDataset.source(ROWS).seed(3).shuffle().map(lambda x: {"x": x}).batch(4)


def loader(workers=0):
    sampler = grain.samplers.IndexSampler(11, shuffle=True, seed=1, num_epochs=1)
    return grain.DataLoader(
        data_source=ROWS, sampler=sampler, operations=[grain.transforms.Batch(4)], worker_count=workers
    )


def lists(batches):
    return [{"x": batch["x"].tolist()} for batch in batches]


@pytest.mark.parametrize("last", ["keep", "pad"])
def test_map_datasets_have_epochs(last):
    two = lists(dataset().repeat(2))
    assert two[:3] != two[3:]
    check(lambda: data.from_grain(dataset(), last=last), [two[:3], two[3:]] if last == "keep" else None)


def test_iter_datasets():
    make = lambda: dataset().to_iter_dataset()
    check(lambda: data.from_grain(make(), last="pad"), None, count="unknown")
    expected = lists(make())
    check(lambda: data.from_grain(make()), [expected, expected], count="unknown")


def test_loaders():
    make = lambda: data.from_grain(loader())
    next(iter(made := make()))
    assert json.loads(json.dumps(made.state())) == made.state()
    first = check(make, None, count="unknown")
    assert sorted(x for batch in first for x in batch) == ROWS.tolist()


def test_a_function_of_the_epoch():
    make = lambda epoch: grain.MapDataset.source(ROWS).seed(epoch).shuffle().batch(4).to_iter_dataset()
    check(
        lambda: data.from_grain(make), [[b.tolist() for b in make(0)], [b.tolist() for b in make(1)]], count="unknown"
    )


def test_examples_that_a_filter_left_out():
    make = lambda: (
        grain.MapDataset.source(ROWS).seed(0).shuffle().to_iter_dataset().filter(lambda x: x % 3 > 0).batch(2)
    )
    check(lambda: data.from_grain(make()), None, count="unknown")


def test_a_restored_epoch_reads_nothing_twice():
    read = []

    def noted(x):
        read.append(int(x))
        return x

    make = lambda: data.from_grain(
        grain.MapDataset.source(np.arange(64))
        .map(noted)
        .batch(4)
        .to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=1)),
        prefetch=0,
    )
    stopped = make()
    loop = iter(stopped)
    for _ in range(12):
        next(loop)
    state = stopped.state()
    loop.close()
    read.clear()
    resumed = make()
    resumed.restore(state)
    assert next(iter(resumed)).tolist() == [48, 49, 50, 51]
    assert min(read) == 48


def test_threads_end_with_the_loop():
    before = {thread for thread in threading.enumerate() if thread.name.startswith("grain")}
    loop = iter(data.from_grain(dataset(), prefetch=1))
    next(loop)
    del loop
    left = {thread for thread in threading.enumerate() if thread.name.startswith("grain")} - before
    for thread in left:
        thread.join(5)  # Grain does not wait for them
    assert not any(thread.is_alive() for thread in left)


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e4m3fn", "int4"])
def test_types_that_numpy_lacks(kind):
    source = np.arange(6).astype(getattr(ml_dtypes, kind))
    (batch,) = data.from_grain(grain.MapDataset.source(source).batch(6))
    assert batch.dtype == source.dtype
    assert values([batch]) == [[0, 1, 2, 3, 4, 5]]


def test_strings_stay_on_the_host():
    records = [{"x": i, "text": f"row {i}"} for i in range(3)]
    (batch,) = data.from_grain(grain.MapDataset.source(records).batch(3), host=["text"])
    assert type(batch["text"]) is np.ndarray
    assert batch["text"].tolist() == ["row 0", "row 1", "row 2"]


def test_what_is_no_dataset_of_grain():
    with pytest.raises(ArgumentError, match="is no dataset of Grain"):
        iter(data.from_grain([np.arange(3)]))
