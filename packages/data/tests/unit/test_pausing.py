"""The thread that reads ahead is paused where it costs more than it hides, and used again; order and errors stay."""

import contextvars
import threading
import time

import numpy as np
import pytest

import phlox_data as data
from data_threads import ours
from phlox_data import _ahead
from phlox_data._ahead import Ahead


@pytest.fixture
def always_pausing(monkeypatch):
    monkeypatch.setattr(_ahead, "_LITTLE", float("inf"))
    monkeypatch.setattr(_ahead, "_MUCH", float("inf"))


def threads(count, error=None):
    """The name of the thread that makes each item, with the number of the item."""
    for number in range(count):
        yield number, threading.current_thread().name
    if error is not None:
        raise error


def test_quick_items_are_made_by_the_consumer(always_pausing):
    made = list(Ahead(threads(50), 2))
    assert [number for number, _ in made] == list(range(50))
    names = [name for _, name in made]
    assert names[0] == "phlox-data"
    assert names[-1] == threading.current_thread().name
    # The first item is not measured. Once the thread is paused, it makes what it still has permits for: one item.
    assert names == sorted(names, key=lambda name: name != "phlox-data")
    assert names.count("phlox-data") == _ahead._PAUSE_AFTER + 2
    assert not ours()


def test_slow_ones_are_made_ahead():
    def slow():
        for number in range(12):
            time.sleep(0.002)
            yield number, threading.current_thread().name

    names = []
    for _, name in Ahead(slow(), 2):
        names.append(name)
        time.sleep(0.002)
    assert set(names) == {"phlox-data"}


def test_the_thread_goes_on_when_it_is_worth_it(monkeypatch, always_pausing):
    made = Ahead(threads(60), 2)
    paused = [next(made) for _ in range(20)]
    assert paused[-1][1] == threading.current_thread().name
    monkeypatch.setattr(_ahead, "_LITTLE", -1.0)
    monkeypatch.setattr(_ahead, "_MUCH", -1.0)
    rest = list(made)
    assert [number for number, _ in paused + rest] == list(range(60))
    assert [name for _, name in rest[_ahead._RESUME_AFTER :]] == ["phlox-data"] * (40 - _ahead._RESUME_AFTER)
    assert not ours()


def test_the_next_epoch_begins_as_the_last_one_ended(monkeypatch, always_pausing):
    pace = _ahead.Pace()
    assert {name for _, name in Ahead(threads(30), 2, pace)} == {"phlox-data", threading.current_thread().name}
    made = Ahead(threads(30), 2, pace)
    assert not ours()
    start = [next(made) for _ in range(10)]
    monkeypatch.setattr(_ahead, "_LITTLE", -1.0)
    monkeypatch.setattr(_ahead, "_MUCH", -1.0)
    rest = list(made)
    assert [number for number, _ in start + rest] == list(range(30))
    assert [name for _, name in (start[0], rest[-1])] == [threading.current_thread().name, "phlox-data"]
    assert [name for _, name in Ahead(threads(5), 2, pace)] == ["phlox-data"] * 5
    assert not ours()


def test_errors_come_from_either_thread(always_pausing):
    for count in (2, 40):
        made = Ahead(threads(count, KeyError("the source's")), 2)
        for _ in range(count):
            next(made)
        with pytest.raises(KeyError, match="the source's"):
            next(made)
        assert list(made) == []
        assert not ours()


def test_closing_while_the_thread_is_paused(always_pausing):
    closed = threading.Event()

    def items():
        try:
            yield from range(100)
        finally:
            closed.set()

    made = Ahead(items(), 2)
    for _ in range(30):
        next(made)
    made.close()
    assert closed.is_set()
    assert list(made) == []
    assert not ours()


def test_the_context_is_that_of_the_beginning(always_pausing):
    setting = contextvars.ContextVar("setting", default="before")

    def items():
        for _ in range(30):
            yield setting.get()

    made = Ahead(items(), 2)
    token = setting.set("changed")
    try:
        assert set(made) == {"before"}
    finally:
        setting.reset(token)


def test_several_threads_may_share_an_epoch(always_pausing):
    made = data.batches(np.arange(400), 2).epoch(0)
    found = [[], []]

    def take(mine):
        while (batch := next(made, None)) is not None:
            mine.extend(batch.tolist())

    consumers = [threading.Thread(target=take, args=(mine,)) for mine in found]
    for consumer in consumers:
        consumer.start()
    for consumer in consumers:
        consumer.join()
    assert sorted(found[0] + found[1]) == list(range(400))
