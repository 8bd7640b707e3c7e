"""The thread that prepares batches: that it works ahead, no further than asked, and that nothing of it is left."""

import gc
import threading
import traceback
import weakref

import numpy as np
import pytest

import phlox_data as data
from data_threads import ours
from phlox.errors import DtypeError
from phlox_data import _ahead
from phlox_data._ahead import Ahead

LONG = 30  # seconds until a test that waits in vain gives up


@pytest.fixture(autouse=True)
def no_thread_is_left():
    assert not ours()
    yield
    gc.collect()
    assert not ours()


class Reads:
    """Ten examples, and an event for each that tells that it was read."""

    def __init__(self):
        self.events = [threading.Event() for _ in range(10)]

    def __len__(self):
        return 10

    def __getitem__(self, number):
        self.events[number].set()
        return np.float32(number)


def test_the_next_batches_are_read_while_the_consumer_is_busy():
    source = Reads()
    made = data.from_tfds(source, batch_size=2, prefetch=1).epoch(0)
    assert next(made).tolist() == [0, 1]
    # "Busy": nobody asks for the second batch, and yet it is read.
    assert source.events[3].wait(LONG)
    assert next(made).tolist() == [2, 3]
    assert source.events[5].wait(LONG)


def test_without_prefetch_nothing_is_read_ahead():
    source = Reads()
    made = data.from_tfds(source, batch_size=2, prefetch=0).epoch(0)
    assert not ours()
    assert not source.events[0].is_set()
    assert next(made).tolist() == [0, 1]
    assert not source.events[2].is_set()


@pytest.mark.parametrize("size", [1, 3])
def test_no_more_is_prepared_than_asked(size):
    asked = 0
    furthest = threading.Event()
    too_far = []

    def items():
        for number in range(20):
            if number >= asked + size:
                too_far.append((number, asked))
            if number == size + 1:
                furthest.set()
            yield number

    made = Ahead(items(), size)
    for expected in range(2):  # fewer than after which a thread that hides nothing is paused
        asked += 1
        assert next(made) == expected
    assert furthest.wait(LONG)  # so many are there
    assert not too_far


def test_all_items_come_in_order_and_then_no_more():
    made = Ahead((i for i in range(100)), 3)
    assert list(made) == list(range(100))
    assert list(made) == []
    assert next(made, "nothing") == "nothing"
    assert not ours()


def test_an_exception_comes_after_the_items_before_it_with_its_own_traceback():
    def the_users_function():
        raise KeyError("from the thread")

    def items():
        yield 1
        yield 2
        the_users_function()

    made = Ahead(items(), 5)
    assert next(made) == 1
    assert next(made) == 2
    with pytest.raises(KeyError, match="from the thread") as caught:
        next(made)
    assert "the_users_function" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert not ours()
    assert list(made) == []


def test_even_an_exit_is_carried_over():
    def items():
        yield 1
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        list(Ahead(items(), 2))


def test_errors_name_the_users_loop():
    with pytest.raises(DtypeError, match=r"the batch\['t'\] has dtype <U3") as caught:
        for _ in data.from_tfds([{"t": "abc"}], 1):  # this line
            pass
    assert caught.value.where.file == __file__
    assert caught.value.where.text().endswith("# this line")


def test_leaving_the_loop_stops_the_thread_and_closes_the_source():
    closed = threading.Event()

    def items():
        try:
            yield from range(100)
        finally:
            closed.set()

    for item in Ahead(items(), 2):
        if item == 3:
            break
    del item
    assert not ours()
    assert closed.is_set()


def test_an_exception_in_the_loop_stops_the_thread():
    with pytest.raises(ZeroDivisionError):
        for _ in data.batches(np.arange(100), 1):
            raise ZeroDivisionError
    assert not ours()


def test_dropping_the_iterator_stops_the_thread():
    made = data.batches(np.arange(100), 1).epoch(0)
    next(made)
    assert ours()
    del made
    assert not ours()


def test_an_iterator_in_a_reference_cycle_is_collected():
    made = data.batches(np.arange(100), 1).epoch(0)
    cycle = [made]
    cycle.append(cycle)
    del made, cycle
    gc.collect()
    assert not ours()


def test_an_iterator_that_was_never_used_is_collected():
    data.batches(np.arange(100), 1).epoch(0)
    assert not ours()


def test_close_ends_the_iterator():
    made = data.batches(np.arange(100), 1).epoch(0)
    next(made)
    made.close()
    assert not ours()
    assert list(made) == []
    made.close()


def test_a_source_that_is_stuck_does_not_hold_the_consumer(monkeypatch):
    monkeypatch.setattr(_ahead, "_PATIENCE", 0.01)
    reading, go_on = threading.Event(), threading.Event()

    def items():
        yield 1
        reading.set()
        go_on.wait(LONG)
        yield 2

    made = Ahead(items(), 2)
    assert next(made) == 1
    assert reading.wait(LONG)
    made.close()  # returns, although the thread cannot
    (stuck,) = ours()
    go_on.set()
    stuck.join(LONG)


def test_two_epochs_at_once():
    made = data.batches(np.arange(20), 2, seed=0)
    a, b = made.epoch(0), made.epoch(1)
    pairs = [(next(a).tolist(), next(b).tolist()) for _ in range(10)]
    assert [x for x, _ in pairs] == [batch.tolist() for batch in made.epoch(0)]
    assert [y for _, y in pairs] == [batch.tolist() for batch in made.epoch(1)]
    a.close(), b.close()


def test_items_are_freed_when_the_consumer_drops_them():
    class Item:
        pass

    made = []

    def items():
        for _ in range(50):
            item = Item()
            made.append(weakref.ref(item))
            yield item
            del item

    most = 0
    for _item in Ahead(items(), 2):
        most = max(most, sum(ref() is not None for ref in made))
    # In the loop's variable, on its way there, and two ahead.
    assert most <= 4
