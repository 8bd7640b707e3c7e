"""Pipelines: what each step gives, in which order, and what remains of it when a loop is left."""

import itertools
import threading
import traceback

import numpy as np
import pytest

import phlox_data as data
from data_protocol import check, values
from phlox.errors import ArgumentError, AxisSizeError, PhloxError


def odd(x):
    return x % 2 == 1


def double(x):
    return 2 * x


def fails_at_seven(x):
    if x == 7:
        raise ValueError("seven is too much")
    return x


def numbers(n=20):
    return data.pipeline(range(n))


def stream(n=20):
    """The same without random access."""
    return data.pipeline(lambda epoch: iter(range(n)))


PIPELINES = {
    "rows": lambda: numbers(),
    "stream": lambda: stream(),
    "map": lambda: numbers().map(double),
    "threads": lambda: numbers().map(double, workers=3),
    "filter": lambda: numbers().filter(odd),
    "shuffle": lambda: numbers().shuffle(3),
    "map, shuffle": lambda: numbers().map(double).shuffle(3),
    "take, shuffle": lambda: numbers().take(7).shuffle(3),
    "shuffle, threads": lambda: numbers().shuffle(3).map(double, workers=2),
    "buffer": lambda: stream().shuffle(3, buffer=5),
    "repeat": lambda: numbers(5).shuffle(3).repeat(3),
    "repeat a stream": lambda: stream(5).repeat(3),
    "take of repeat": lambda: numbers(5).shuffle(3).repeat().take(13),
    "mix": lambda: data.mix([numbers(5).shuffle(1).repeat(), stream().map(double)], [1, 2], seed=4).take(12),
    "all": lambda: numbers(30).shuffle(1).map(double, workers=2).filter(lambda x: x % 3).repeat(2).shuffle(2, buffer=4),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_epochs_can_be_repeated_and_begun_anywhere(name):
    made = PIPELINES[name]()
    for epoch in (0, 2):
        whole = list(made.epoch(epoch))
        assert list(PIPELINES[name]().epoch(epoch)) == whole
        for start in (0, 1, 6, len(whole) - 1, len(whole), len(whole) + 3):
            assert list(made.epoch(epoch, start)) == whole[start:]


@pytest.mark.parametrize("name", PIPELINES)
def test_batches_of_each(name):
    make = lambda: data.from_iterable(PIPELINES[name]().batch(4), last="pad")
    known = PIPELINES[name]()._step.length is not None
    check(make, None, count="known" if known else "unknown")


def test_what_steps_give():
    assert list(numbers(6).map(double)) == list(numbers(6).map(double, workers=2)) == [0, 2, 4, 6, 8, 10]
    assert list(numbers(6).filter(odd)) == [1, 3, 5]
    assert list(numbers(6).take(2)) == [0, 1]
    assert list(numbers(2).repeat(3)) == [0, 1] * 3
    assert list(itertools.islice(numbers(2).repeat(), 7)) == [0, 1, 0, 1, 0, 1, 0]
    assert list(numbers(0).repeat()) == list(stream(0).repeat()) == []
    assert [b.tolist() for b in numbers(5).batch(2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in numbers(5).batch(2, last="drop")] == [[0, 1], [2, 3]]
    assert [b.tolist() for b in numbers(6).batch(2).map(double)] == [[0, 2], [4, 6], [8, 10]]
    assert len(numbers(5).map(double).batch(2)) == 3
    assert len(numbers(5).batch(2, last="drop").repeat(2)) == 4
    for unknown in (stream(), numbers().filter(odd), numbers().repeat()):
        with pytest.raises(TypeError, match="does not say how many"):
            len(unknown)


@pytest.mark.parametrize("make", [lambda: numbers(50).shuffle(7), lambda: stream(50).shuffle(7, buffer=8)])
def test_shuffles_lose_nothing_and_change_with_the_epoch(make):
    epochs = [list(make().epoch(epoch)) for epoch in range(3)]
    assert all(sorted(order) == list(range(50)) for order in epochs)
    assert len({tuple(order) for order in epochs}) == 3


def test_a_whole_shuffle_has_the_order_of_batches():
    expected = np.concatenate(list(data.batches(np.arange(50), 8, seed=7).epoch(2)))
    assert list(numbers(50).shuffle(7).epoch(2)) == expected.tolist()


def test_a_repeated_shuffle_is_another_each_time():
    epoch = list(numbers(10).shuffle(0).repeat(2).epoch(1))
    assert epoch == [*numbers(10).shuffle(0).epoch(2), *numbers(10).shuffle(0).epoch(3)]


def test_a_mix_holds_its_shares_to_the_end():
    ones, twos = data.pipeline([1] * 3000), data.pipeline([2] * 3000)
    mixed = list(data.mix([ones, twos], [1, 3], seed=0))
    assert mixed.count(2) == 3000
    assert 1000 - 120 < mixed.count(1) < 1000 + 120  # four standard deviations
    assert list(data.mix([ones, twos], [1, 3], seed=0)) == mixed
    assert list(data.mix([ones, twos], [1, 3], seed=1)) != mixed


def test_sources():
    x, text = np.arange(6).reshape(3, 2), np.array(["a", "b", "c"])
    assert [(a.tolist(), str(t)) for a, t in data.pipeline((x, text))] == [([0, 1], "a"), ([2, 3], "b"), ([4, 5], "c")]
    assert [row["x"].tolist() for row in data.pipeline({"x": x})] == x.tolist()
    assert list(data.pipeline(["p", "q"])) == ["p", "q"]
    assert list(data.pipeline(lambda epoch: [epoch] * 2).epoch(3)) == [3, 3]
    with pytest.raises(ArgumentError, match="can be read only once"):
        data.pipeline(iter([1]))
    with pytest.raises(ArgumentError, match="holds no examples"):
        data.pipeline(3)
    with pytest.raises(AxisSizeError):
        data.pipeline((x, x[:2]))


def test_skipped_examples_are_not_computed():
    seen = []
    made = numbers().shuffle(0).map(lambda x: seen.append(x) or x).batch(4)
    list(data.from_iterable(made, prefetch=0).epoch(0, start=4))
    assert len(seen) == 4


def test_the_order_of_a_source_that_is_not_known():
    made = data.from_iterable(data.pipeline({3, 4, 5}).batch(1))
    next(iter(made))
    with pytest.raises(ArgumentError, match="order of a set"):
        made.state()


@pytest.mark.parametrize("workers", [0, 3])
def test_an_error_names_step_and_example(workers):
    made = numbers().shuffle(0).map(double).map(lambda x: fails_at_seven(x // 2), workers=workers)
    before = list(numbers().shuffle(0)).index(7)
    got = []
    with pytest.raises(ValueError, match="seven is too much") as caught:
        for value in made:
            got.append(value)
    assert len(got) == before
    (note,) = caught.value.__notes__
    assert note.startswith("in step 3 of the pipeline, map(")
    assert note.endswith("for example 7")
    assert "fails_at_seven" in "".join(traceback.format_exception(caught.value))


def test_errors_of_other_steps():
    with pytest.raises(ValueError, match="seven") as caught:
        list(numbers().filter(fails_at_seven))
    assert caught.value.__notes__ == ["in step 1 of the pipeline, filter(fails_at_seven), for example 7"]
    with pytest.raises(PhloxError, match="different shapes") as caught:
        list(data.pipeline([np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(2)]).batch(2))
    assert caught.value.__notes__ == ["in step 1 of the pipeline, batch, for examples 2, 3"]


class Failing:
    """A source of ten numbered examples."""

    def __len__(self):
        return 10

    def __getitem__(self, number):
        return fails_at_seven(number)


def test_errors_of_the_source():
    for source in (Failing(), lambda epoch: map(fails_at_seven, range(10))):
        with pytest.raises(ValueError, match="seven") as caught:
            list(data.from_iterable(data.pipeline(source).map(double, workers=2).batch(2)))
        assert caught.value.__notes__ == ["in the source, for example 7"]
    with pytest.raises(ValueError, match="seven") as caught:
        list(data.from_tfds(Failing(), 2, seed=0))
    assert caught.value.__notes__ == ["in the source, for example 7"]


def test_threads_compute_ahead_and_end_with_the_loop():
    together = threading.Barrier(3)
    loop = iter(numbers().map(lambda x: together.wait(10) and x, workers=3))
    next(loop)  # three at a time, or the barrier breaks
    together.abort()
    loop.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("phlox-data")]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: numbers().map(double, processes=True),
        lambda: numbers().map(lambda x: x, workers=1, processes=True),
        lambda: numbers().map(double, workers=-1),
        lambda: stream().shuffle(0),
        lambda: numbers().filter(odd).shuffle(0),
        lambda: numbers().shuffle(0, buffer=0),
        lambda: numbers().shuffle(None),
        lambda: numbers().batch(0),
        lambda: numbers().batch(2, last="pad"),
        lambda: numbers().repeat(0),
        lambda: numbers().take(-1),
        lambda: data.mix([], [], 0),
        lambda: data.mix([numbers()], [0], 0),
        lambda: data.mix([numbers()], [1, 2], 0),
    ],
)
def test_what_is_refused(wrong):
    with pytest.raises(ArgumentError) as caught:
        wrong()
    assert caught.value.instead


def test_values_on_devices():
    made = data.from_iterable(numbers(5).map(lambda x: {"x": np.float32(x)}).batch(2), last="drop")
    assert values(made) == [{"x": [0, 1]}, {"x": [2, 3]}]
