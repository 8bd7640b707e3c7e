"""Batches of Hugging Face's datasets, with the real library and no network."""

import datasets
import numpy as np
import PIL.Image
import pytest

import phlox
import phlox_data as data
from data_protocol import check, values
from phlox.errors import ArgumentError, DtypeError, ShapeError

X = np.arange(22, dtype=np.float32).reshape(11, 2)
FEATURES = datasets.Features(
    {
        "x": datasets.List(datasets.Value("float32"), length=2),
        "y": datasets.Value("int8"),
        "text": datasets.Value("string"),
    }
)


def stored():
    return datasets.Dataset.from_dict(
        {"x": X.tolist(), "y": list(range(11)), "text": [f"row {i}" for i in range(11)]}, features=FEATURES
    )


def numbers():
    return stored().select_columns(["x", "y"])


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("last", ["keep", "pad", "drop"])
def test_epochs(seed, last):
    expected = data.batches({"x": X, "y": np.arange(11, dtype=np.int8)}, 4, seed=seed, last=last)
    check(
        lambda: data.from_huggingface(numbers(), 4, seed=seed, last=last),
        [values(expected.epoch(0)), values(expected.epoch(1))],
    )


def test_types_are_those_of_the_columns():
    for made in (numbers(), numbers().to_iterable_dataset()):
        batch = next(iter(data.from_huggingface(made, 4)))
        assert (batch["x"].dtype, batch["y"].dtype) == (np.float32, np.int8)
    kinds = ["bool", "int16", "uint8", "float16", "float64", "int64"]
    rows = datasets.Dataset.from_dict(
        {kind: [0, 1] for kind in kinds}, features=datasets.Features({kind: datasets.Value(kind) for kind in kinds})
    )
    with phlox.enable_x64(True):
        for made in (rows, rows.to_iterable_dataset()):
            batch = next(iter(data.from_huggingface(made, 2)))
            assert {kind: str(batch[kind].dtype) for kind in kinds} == {kind: kind for kind in kinds}


def test_from_disk(tmp_path):
    numbers().save_to_disk(tmp_path / "rows")
    check(lambda: data.from_huggingface(datasets.load_from_disk(str(tmp_path / "rows")), 4, seed=1), None)


def test_its_own_shuffle_holds_too():
    order = [int(y) for y in numbers().shuffle(seed=5)["y"]]
    made = data.from_huggingface(numbers().shuffle(seed=5), 4)
    assert np.concatenate([batch["y"] for batch in made]).tolist() == order


@pytest.mark.parametrize("last", ["keep", "pad"])
@pytest.mark.parametrize("buffer", [None, 5])
def test_streams(last, buffer):
    def make():
        rows = numbers().to_iterable_dataset(num_shards=2)
        return data.from_huggingface(rows if buffer is None else rows.shuffle(seed=2, buffer_size=buffer), 4, last=last)

    first = check(make, None, count="unknown")
    assert (values(make().epoch(1)) == first) == (buffer is None)


def test_two_epochs_of_a_stream_at_once():
    made = data.from_huggingface(numbers().to_iterable_dataset().shuffle(seed=2, buffer_size=5), 4)
    both = list(zip(made.epoch(0), made.epoch(1), strict=True))
    assert values(a for a, _ in both) == values(made.epoch(0))
    assert values(b for _, b in both) == values(made.epoch(1))


@pytest.mark.parametrize("make", [stored, lambda: stored().to_iterable_dataset()])
def test_strings(make):
    batch = next(iter(data.from_huggingface(make(), 2, host=["text"])))
    assert type(batch["text"]) is np.ndarray
    assert batch["text"].tolist() == ["row 0", "row 1"]
    with pytest.raises((ArgumentError, DtypeError), match=r"the batch\['text'\]") as caught:
        list(data.from_huggingface(make(), 2))
    assert "host=" in caught.value.instead


def test_images_are_decoded():
    pixels = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)
    features = datasets.Features({"image": datasets.Image()})
    rows = datasets.Dataset.from_dict({"image": [PIL.Image.fromarray(p) for p in pixels]}, features=features)
    (batch,) = data.from_huggingface(rows, 2)
    np.testing.assert_array_equal(batch["image"], pixels)
    assert batch["image"].dtype == np.uint8
    images = [PIL.Image.fromarray(pixels[0]), PIL.Image.fromarray(pixels[1][:2])]
    rows = datasets.Dataset.from_dict({"image": images}, features=features)
    with pytest.raises((DtypeError, ShapeError), match=r"the batch\['image'\]"):
        list(data.from_huggingface(rows, 2))


def test_formats_and_transforms_are_the_users():
    made = data.from_huggingface(numbers().with_transform(lambda rows: {"z": np.asarray(rows["y"]) * 10}), 4)
    assert next(iter(made))["z"].tolist() == [0, 10, 20, 30]


def test_what_is_refused():
    with pytest.raises(ArgumentError, match="cannot be read in any order") as caught:
        data.from_huggingface(numbers().to_iterable_dataset(), 4, seed=3)
    assert "shuffle(seed=3" in caught.value.instead
    with pytest.raises(ArgumentError, match="DatasetDict is no dataset") as caught:
        data.from_huggingface(datasets.DatasetDict(train=numbers()), 4)
    assert "['train']" in caught.value.instead
    with pytest.raises(ArgumentError, match="batch_size=0"):
        data.from_huggingface(numbers(), 0)
