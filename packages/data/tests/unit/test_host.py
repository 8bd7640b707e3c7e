"""The option `host`, and types that NumPy lacks."""

import collections

import ml_dtypes
import numpy as np
import pytest

import phlox
import phlox_data as data
from phlox.errors import ArgumentError, DtypeError

Pair = collections.namedtuple("Pair", "x text")
X, TEXT = np.arange(5), np.array(["a", "bb", "c", "d", "e"])


def is_host(value, expected):
    assert type(value) is np.ndarray
    assert value.tolist() == expected


@pytest.mark.parametrize("prefetch", [0, 2])
def test_entries_of_all_containers(prefetch):
    source = {"x": X, "text": TEXT, "inner": (X, {"text": TEXT}), "pair": Pair(X, TEXT), "list": [X, X]}
    for i, batch in enumerate(data.batches(source, 2, host=["text"], prefetch=prefetch)):
        rows = slice(2 * i, 2 * i + 2)
        assert isinstance(batch["x"], phlox.Array)
        for text in (batch["text"], batch["inner"][1]["text"], batch["pair"].text):
            is_host(text, TEXT[rows].tolist())
        assert type(batch["pair"]) is Pair
        assert isinstance(batch["list"][1], phlox.Array)


def test_positions_and_numbers():
    x, kept = next(iter(data.batches((X, X), 2, host=[1])))
    assert isinstance(x, phlox.Array)
    is_host(kept, [0, 1])
    kept[:] = 9  # a copy of the source
    assert X.tolist() == [0, 1, 2, 3, 4]


def test_padding_and_devices():
    made = data.batches({"x": X, "text": TEXT}, 4, last="pad", host=["text"], devices=phlox.local_devices()[:2])
    batch, mask = list(made)[1]
    is_host(batch["text"], [["e", "e"], ["e", "e"]])
    assert np.asarray(mask).tolist() == [[True, False], [False, False]]


def test_examples_of_a_sequence():
    records = [{"x": i, "text": text} for i, text in enumerate(TEXT.tolist())]
    batch = next(iter(data.from_tfds(records, 5, host=["text"], seed=0)))
    is_host(batch["text"], TEXT[np.asarray(batch["x"])].tolist())
    made = data.from_iterable(data.pipeline(records).batch(2), host=["text"])
    is_host(next(iter(made))["text"], ["a", "bb"])


def test_lists_of_strings_and_of_different_length():
    batch = next(
        iter(data.from_iterable([{"x": X[:2], "text": ["a", "b"], "ids": [[1, 2], [3]]}], host=["text", "ids"]))
    )
    is_host(batch["text"], ["a", "b"])
    is_host(batch["ids"], [[1, 2], [3]])


def test_without_it_the_error_names_it():
    with pytest.raises(DtypeError, match=r"source\['text'\] has dtype <U2") as caught:
        data.batches({"x": X, "text": TEXT}, 2)
    assert "host=" in caught.value.instead
    with pytest.raises(ArgumentError, match=r"the batch\['text'\]\[0\] is 'a' of type str") as caught:
        list(data.from_iterable([{"text": ["a"]}]))
    assert "host=" in caught.value.instead


@pytest.mark.parametrize("host", ["text", 3, [None]])
def test_what_are_no_names(host):
    with pytest.raises(ArgumentError, match="is no list of names"):
        data.batches(X, 2, host=host)


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"])
def test_types_that_numpy_lacks(kind):
    source = np.arange(6).astype(getattr(ml_dtypes, kind))
    records = [{"x": value} for value in source]
    for made in (
        data.batches({"x": source}, 4, last="pad"),
        data.from_tfds(records, 4, last="pad"),
        data.from_iterable([{"x": source[:4]}, {"x": source[4:]}], last="pad"),
        data.from_iterable(data.pipeline(records).batch(4), last="pad"),
        data.from_iterable(data.pipeline({"x": source}).batch(4), last="pad"),
    ):
        first, second = [batch["x"] for batch, _ in made]
        assert first.dtype == second.dtype == source.dtype
        np.testing.assert_array_equal(np.concatenate([first, second]).astype(float), [0, 1, 2, 3, 4, 5, 5, 5])
