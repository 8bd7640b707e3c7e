"""Sources of numbered examples, and how single examples become batches."""

import numpy as np
import pytest

import phlox
import phlox_data as data
from phlox.errors import ArgumentError, AxisSizeError, DtypeError, ShapeError, TreeError

X = np.random.default_rng(0).normal(size=(21, 4)).astype(np.float32)
Y = np.arange(21)


class OneByOne:
    def __len__(self):
        return len(X)

    def __getitem__(self, number):
        return {"x": X[number], "y": int(Y[number])}


class Many(OneByOne):
    def __getitem__(self, number):
        raise AssertionError("read one by one")

    def __getitems__(self, numbers):
        assert all(type(number) is int for number in numbers)
        return [OneByOne()[number] for number in numbers]


@pytest.mark.parametrize("source", [OneByOne(), Many()], ids=["one by one", "many"])
@pytest.mark.parametrize("last", ["keep", "drop", "pad"])
@pytest.mark.parametrize("seed", [None, 11])
def test_the_same_batches_as_from_arrays(source, last, seed):
    records = data.from_tfds(source, 4, seed=seed, last=last)
    whole = data.batches({"x": X, "y": Y}, 4, seed=seed, last=last)
    assert len(records) == len(whole)
    for start in (0, 2):
        for a, b in zip(records.epoch(3, start=start), whole.epoch(3, start=start), strict=True):
            assert phlox.tree.structure(a) == phlox.tree.structure(b)
            phlox.tree.map(np.testing.assert_array_equal, a, b)


def test_sources_that_are_none():
    for wrong in [iter([1, 2]), {"x": X}, 5, None]:
        with pytest.raises(ArgumentError, match="no source of numbered examples"):
            data.from_tfds(wrong, 2)
    with pytest.raises(AxisSizeError, match="there are no examples"):
        data.from_tfds([], 2)
    with pytest.raises(AxisSizeError, match="3 examples do not fill one batch of 4"):
        data.from_tfds([1, 2, 3], 4, last="drop")


def test_collate():
    x, (y, z) = data.collate([(np.float32(1), ([1, 2], True)), (np.float32(2), ([3, 4], False))])
    np.testing.assert_array_equal(x, np.array([1, 2], np.float32))
    assert x.dtype == np.float32
    np.testing.assert_array_equal(y[0], [1, 3])
    np.testing.assert_array_equal(y[1], [2, 4])
    assert z.dtype == bool
    assert data.collate([{"t": "b"}, {"t": "cd"}])["t"].tolist() == ["b", "cd"]
    assert data.collate([b"b", b"cd"]).tolist() == [b"b", b"cd"]
    assert data.collate([{"t": [1, 2]}, {"t": [3]}], host=["t"])["t"].tolist() == [[1, 2], [3]]
    nothing = data.collate([np.zeros((0, 2))] * 3)
    assert nothing.shape == (3, 0, 2)


def test_collate_refuses():
    with pytest.raises(ArgumentError, match=r"an example\['t'\] is 'b' of type str"):
        data.collate([{"t": "b"}, {"t": 1}])
    with pytest.raises(ArgumentError, match=r"an example\['t'\] is <object"):
        data.collate([{"t": object()}])
    with pytest.raises(DtypeError, match=r"an example\[0\] has dtype object"):
        data.collate([(np.array([None]),)])
    with pytest.raises(ShapeError, match=r"different shapes: \(2,\), \(3,\)") as caught:
        data.collate([np.zeros(2), np.zeros(3), np.zeros(2)])
    assert caught.value.shapes == [(2,), (3,)]
    with pytest.raises(TreeError):
        data.collate([{"x": 1}, {"y": 1}])
    with pytest.raises(ArgumentError, match="no examples"):
        data.collate([])
