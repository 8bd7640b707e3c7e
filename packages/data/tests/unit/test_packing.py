"""Texts are packed into rows: none is lost, none crosses rows or others, and little is padding."""

import numpy as np
import pytest

import phlox_data as data
from phlox.errors import ArgumentError, DtypeError, ShapeError

RNG = np.random.default_rng(0)
TEXTS = [RNG.integers(1, 100, n) for n in RNG.integers(1, 40, 200)]


def unpacked(rows):
    for tokens, segments, positions in zip(rows["tokens"], rows["segments"], rows["positions"], strict=True):
        for segment in range(1, segments.max() + 1):
            (places,) = np.nonzero(segments == segment)
            assert (np.diff(places) == 1).all()
            assert (positions[places] == np.arange(len(places))).all()
            yield tuple(tokens[places])


def test_all_texts_are_in_the_rows():
    rows = data.pack(TEXTS, 64, pad=-1)
    assert sorted(unpacked(rows)) == sorted(tuple(text) for text in TEXTS)
    assert (rows["tokens"][rows["segments"] == 0] == -1).all()
    assert (rows["segments"] == 0).mean() < 0.1


def test_long_texts_are_cut_or_refused():
    text = np.arange(1, 24)
    assert sorted(unpacked(data.pack([text], 10))) == [tuple(text[:10]), tuple(text[10:20]), tuple(text[20:])]
    with pytest.raises(ArgumentError, match="text 0 has 23 tokens, a row has 10"):
        data.pack([text], 10, split=False)


def test_texts_may_come_from_a_generator_and_be_empty():
    rows = data.pack((list(text) for text in ([], [1, 2], [])), 4)
    assert rows["tokens"].tolist() == [[1, 2, 0, 0]]
    assert data.pack([], 4)["tokens"].shape == (0, 4)


def test_rows_are_a_source_of_batches():
    rows = data.pack(TEXTS, 64)
    sizes = [batch["tokens"].shape for batch in data.batches(rows, batch_size=8, last="drop").epoch(0)]
    assert sizes == [(8, 64)] * (len(rows["tokens"]) // 8)


def test_the_mask_separates_texts():
    mask = data.segment_mask(np.array([[1, 1, 2, 0, 0]]))
    expected = np.eye(5, dtype=bool)
    expected[0, 1] = expected[1, 0] = True
    np.testing.assert_array_equal(mask[0] & expected, expected)
    assert not mask[0, :3, 3:].any()
    assert not mask[0, 2, :2].any()
    assert mask.any(axis=-1).all()  # softmax needs one for each token


@pytest.mark.parametrize(
    ("texts", "length", "error"),
    [([[1.5]], 4, DtypeError), ([[[1]]], 4, ShapeError), (["text"], 4, ShapeError), ([[1]], 0, ArgumentError)],
)
def test_others_are_refused(texts, length, error):
    with pytest.raises(error):
        data.pack(texts, length)
