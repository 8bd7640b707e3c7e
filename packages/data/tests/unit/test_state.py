"""`state`, `restore` and `report` of batches, of the sources that need no other library."""

import json
import time

import numpy as np
import pytest

import phlox_data as data
from data_protocol import check, values
from data_threads import ours
from phlox.errors import ArgumentError

ROWS = np.arange(11)


@pytest.mark.parametrize("last", ["keep", "drop", "pad"])
@pytest.mark.parametrize("prefetch", [0, 3])
@pytest.mark.parametrize("seed", [None, 4])
def test_arrays(last, prefetch, seed):
    check(lambda: data.batches(ROWS, 4, seed=seed, last=last, prefetch=prefetch), None)


def test_memory_mapped_arrays(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    made = lambda: data.batches(np.load(tmp_path / "rows.npy", mmap_mode="r"), 4, seed=1)
    assert check(made, None) == values(data.batches(ROWS, 4, seed=1).epoch(0))


def test_sequences_of_examples():
    check(lambda: data.from_tfds([{"x": i} for i in range(11)], 4, seed=2), None)


@pytest.mark.parametrize("last", ["keep", "pad"])
def test_iterables(last):
    batches = [np.arange(4), np.arange(4, 8), np.arange(8, 11)]
    check(lambda: data.from_iterable(batches, last=last), None)
    check(lambda: data.from_iterable(lambda epoch: (b + epoch for b in batches), last=last), None, count="unknown")


def test_a_state_counts_what_was_taken():
    made = data.batches(ROWS, 2, seed=0, prefetch=4)
    assert made.state() == {"epoch": 0, "batch": 0}
    loop = iter(made)
    assert made.state() == {"epoch": 0, "batch": 0}
    for taken in range(1, 7):
        next(loop)
        assert made.state() == {"epoch": 0, "batch": taken}
    assert next(loop, None) is None
    assert json.loads(json.dumps(made.state())) == {"epoch": 1, "batch": 0}
    next(made.epoch(7, start=3))
    assert made.state() == {"epoch": 7, "batch": 4}


def test_a_loop_left_early_is_not_at_its_end():
    made = data.batches(ROWS, 2, prefetch=1)
    loop = made.epoch(2)
    next(loop)
    loop.close()
    assert next(loop, None) is None
    assert made.state() == {"epoch": 2, "batch": 1}


def test_a_loop_that_fails_is_not_at_its_end():
    def broken(epoch):
        yield np.arange(2)
        raise RuntimeError("no more")

    made = data.from_iterable(broken)
    loop = iter(made)
    next(loop)
    with pytest.raises(RuntimeError, match="no more"):
        next(loop)
    assert next(loop, None) is None
    assert made.state() == {"epoch": 0, "batch": 1}


def test_a_state_goes_on_from_a_restored_one():
    made = data.batches(ROWS, 2, seed=0)
    made.restore({"epoch": 3, "batch": 2})
    loop = iter(made)
    assert made.state() == {"epoch": 3, "batch": 2}
    next(loop)
    assert made.state() == {"epoch": 3, "batch": 3}
    made.restore(made.state())
    assert values(made) == values(data.batches(ROWS, 2, seed=0).epoch(3, start=3))


def test_a_source_that_cannot_go_on_says_so():
    class Unknown:
        def __iter__(self):
            return iter([np.arange(2)] * 3)

    made = data.from_iterable(Unknown())
    next(iter(made))
    with pytest.raises(
        ArgumentError, match=r"from_iterable: state\(\) asks for the rest .* order of a Unknown"
    ) as caught:
        made.state()
    assert "lambda epoch" in caught.value.instead
    with pytest.raises(ArgumentError, match="start=1 asks for the rest"):
        made.epoch(0, start=1)
    list(made)
    assert made.state() == {"epoch": 2, "batch": 0}  # nothing of epoch 2 was read

    once = iter([np.arange(2)] * 3)
    made = data.from_iterable(lambda epoch: once)
    next(iter(made))
    with pytest.raises(ArgumentError, match="returns one iterator each time"):
        made.state()
    with pytest.raises(ArgumentError, match="can be read only once"):
        data.from_iterable(once)


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"epoch": 1},
        {"epoch": 1, "batch": 2, "seed": 0},
        {"epoch": -1, "batch": 0},
        {"epoch": 0, "batch": "1"},
    ],
)
def test_what_is_no_state(state):
    with pytest.raises(ArgumentError):
        data.batches(ROWS, 2).restore(state)


def test_a_state_of_other_batches():
    with pytest.raises(ArgumentError, match="start=9 lies beyond"):
        data.batches(ROWS, 2).restore({"epoch": 0, "batch": 9})
    made = data.from_iterable([np.arange(2)] * 3)
    made.restore({"epoch": 0, "batch": 1, "reader": {"size": 2, "state": {}}})
    with pytest.raises(ArgumentError, match="a reader of another kind"):
        iter(made)
    assert not ours()


def test_a_report_tells_who_waits_for_whom():
    def slow(epoch):
        for _ in range(5):
            time.sleep(0.02)
            yield np.arange(3)

    starved = data.from_iterable(slow)
    for _ in starved:
        pass
    report = starved.report()
    assert (report.examples, report.batches) == (15, 5)
    assert report.seconds >= 4 * 0.02  # the source may begin its first batch before the clock does
    assert report.share_waited > 0.9
    assert report.examples_per_second == pytest.approx(15 / report.seconds)
    busy = data.batches(np.arange(15), 3)
    for _ in busy:
        time.sleep(0.02)
    assert busy.report().share_waited < 0.5
    assert "examples/s" in str(busy.report())


def test_a_report_counts_real_examples_and_begins_anew():
    made = data.batches(ROWS, 4, last="pad")
    assert made.report().examples == 0
    assert made.report().examples_per_second == made.report().share_waited == 0
    list(made)
    assert made.report().examples == 11
    next(iter(made))
    assert made.report().examples == 4
