"""Local datasets of TensorFlow Datasets: written once and read back, with the real library and without TensorFlow."""

import os

import array_record  # noqa: F401  (tensorflow_datasets imports it only when it reads a file)
import numpy as np
import pytest
import tensorflow_datasets as tfds

import data_readme
import phlox
import phlox_data as data
from data_processes import finish, output, start
from phlox.errors import ArgumentError, AxisSizeError, DtypeError, PhloxError, ShapeError

X = np.random.default_rng(0).normal(size=(45, 8, 8)).astype(np.float32)
Y = np.arange(45, dtype=np.int32)
SPLITS = {"train": {"image": X[:30], "label": Y[:30]}, "test": {"image": X[30:], "label": Y[30:]}}


def test_written_once_and_read_back_in_order(tmp_path):
    first = data.local_tfds(tmp_path, "digits", SPLITS)
    folder = tmp_path / "digits" / "1.0.0"
    times = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    again = data.local_tfds(tmp_path, "digits", SPLITS)
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == times
    assert os.listdir(tmp_path / "digits") == ["1.0.0"]
    for sources in (first, again):
        assert list(sources) == ["train", "test"]
        for split, arrays in SPLITS.items():
            assert len(sources[split]) == len(arrays["label"])
            for number in (0, 3, -1 % len(arrays["label"])):
                np.testing.assert_array_equal(sources[split][number]["image"], arrays["image"][number])
                assert sources[split][number]["label"] == arrays["label"][number]


@pytest.mark.parametrize("last", ["keep", "drop", "pad"])
@pytest.mark.parametrize("seed", [None, 3])
def test_the_same_batches_as_from_arrays(tmp_path, last, seed):
    source = data.local_tfds(tmp_path, "digits", SPLITS)["train"]
    stored = data.from_tfds(source, 8, seed=seed, last=last)
    arrays = data.batches(SPLITS["train"], 8, seed=seed, last=last)
    assert len(stored) == len(arrays)
    for start_at in (0, 2):
        for a, b in zip(stored.epoch(1, start=start_at), arrays.epoch(1, start=start_at), strict=True):
            assert phlox.tree.structure(a) == phlox.tree.structure(b)
            phlox.tree.map(np.testing.assert_array_equal, a, b)


def test_dtypes_and_shapes_are_kept(tmp_path):
    arrays = {
        "u8": np.arange(12, dtype=np.uint8).reshape(4, 3),
        "i16": np.arange(4, dtype=np.int16),
        "i32": np.array([-(2**31), 0, 1, 2**31 - 1], np.int32),
        "i64": np.array([-(2**63), 0, 1, 2**63 - 1]),
        "f16": np.array([0.5, 1, 2, np.inf], np.float16),
        "f32": np.array([1e-40, np.nan, -0.0, 3], np.float32),
        "u32": np.array([2**32 - 1, 0, 1, 2], np.uint32),
        "yes": np.array([[True], [False], [True], [False]]),
        "inner": {"none": np.zeros((4, 0, 2), np.float32), "deep": {"x": np.zeros((4, 1, 1, 2), np.int8)}},
    }
    source = data.local_tfds(tmp_path, "kinds", {"all_of_them": arrays})["all_of_them"]
    with phlox.enable_x64(True):
        (batch,) = data.from_tfds(source, 4)
    for (path, got), expected in zip(
        phlox.tree.leaves_with_path(batch), phlox.tree.leaves(phlox.tree.map(lambda x: x, arrays)), strict=True
    ):
        assert got.dtype == expected.dtype, path
        np.testing.assert_array_equal(got, expected, err_msg=str(path))


def test_more_examples_than_fit_in_a_file(tmp_path, monkeypatch):
    from phlox_data import _local_tfds

    monkeypatch.setattr(_local_tfds, "_EXAMPLES_IN_A_FILE", 7)
    source = data.local_tfds(tmp_path, "digits", SPLITS)["train"]
    assert len(list((tmp_path / "digits" / "1.0.0").glob("*train*"))) == 5
    numbers = [n for batch in data.from_tfds(source, 4, seed=0) for n in batch["label"].tolist()]
    assert sorted(numbers) == list(range(30))
    assert numbers == [n for batch in data.batches(Y[:30], 4, seed=0) for n in batch.tolist()]


def test_other_programs_can_open_it(tmp_path):
    data.local_tfds(tmp_path, "digits", SPLITS)
    source = tfds.data_source("digits", split="test", data_dir=tmp_path)
    assert [example["label"] for example in source] == list(range(30, 45))


def test_other_data_under_the_same_name(tmp_path):
    data.local_tfds(tmp_path, "digits", SPLITS)
    other = {"train": {**SPLITS["train"], "label": Y[:30] + 1}, "test": SPLITS["test"]}
    with pytest.raises(PhloxError, match="holds other data than these arrays") as caught:
        data.local_tfds(tmp_path, "digits", other)
    assert caught.value.path == str(tmp_path / "digits" / "1.0.0")
    assert data.local_tfds(tmp_path, "other", other)["train"][0]["label"] == 1


def test_what_is_refused(tmp_path):
    def refused(kind, message, name, splits):
        with pytest.raises(kind, match=message) as caught:
            data.local_tfds(tmp_path, name, splits)
        assert caught.value.instead
        assert os.listdir(tmp_path) == []

    x = np.zeros(3, np.float32)
    refused(ArgumentError, "name='../up'", "../up", SPLITS)
    refused(ArgumentError, "no splits", "digits", {})
    refused(ArgumentError, "split 'train' is a ndarray", "digits", {"train": x})
    refused(ArgumentError, r"split 'train'\['x'\] is a list", "digits", {"train": {"x": [x, x]}})
    for lossy in ("complex64", "float64", "uint64", "bfloat16"):
        splits = {"train": {"inner": {"x": x.astype(lossy)}}}
        refused(DtypeError, rf"split 'train'\['inner'\]\['x'\] has dtype {lossy}", "digits", splits)
    refused(AxisSizeError, "must have one length", "digits", {"train": {"x": x, "y": np.zeros(4)}})
    refused(AxisSizeError, "split 'test' has no examples", "digits", {"train": {"x": x}, "test": {"x": x[:0]}})
    refused(ShapeError, "'train' and split 'test'", "digits", {"train": {"x": x}, "test": {"x": x[:, None]}})
    refused(ShapeError, "'train' and split 'test'", "digits", {"train": {"x": x}, "test": {"y": x}})


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError, match="file"):
        data.local_tfds(tmp_path / "file", "digits", SPLITS)


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    from phlox_data import _local_tfds

    def broken(_rows):
        yield {"image": X[0], "label": Y[0]}
        raise OSError("disk full")

    monkeypatch.setattr(_local_tfds, "_one_by_one", broken)
    with pytest.raises(OSError, match="disk full"):
        data.local_tfds(tmp_path, "digits", SPLITS)
    assert os.listdir(tmp_path / "digits") == []
    monkeypatch.undo()
    assert len(data.local_tfds(tmp_path, "digits", SPLITS)["train"]) == 30


def test_another_process_is_first(tmp_path, monkeypatch):
    from phlox_data import _local_tfds

    one_by_one = _local_tfds._one_by_one

    def overtaken(rows):
        monkeypatch.undo()
        data.local_tfds(tmp_path, "digits", SPLITS)  # begins later, and is ready before us
        return one_by_one(rows)

    monkeypatch.setattr(_local_tfds, "_one_by_one", overtaken)
    assert len(data.local_tfds(tmp_path, "digits", SPLITS)["train"]) == 30
    assert os.listdir(tmp_path / "digits") == ["1.0.0"]


PROGRAM = """
    import sys, numpy as np, phlox_data as data
    x = np.arange(600, dtype=np.float32).reshape(200, 3)
    sources = data.local_tfds(sys.argv[1], "shared", {"train": {"x": x, "y": np.arange(200)}})
    total = 0
    for batch in data.from_tfds(sources["train"], 32, seed=0):
        total += int(batch["y"].sum())
    print(total, "tensorflow" in sys.modules, "jax" in sys.modules)
    """


def test_without_tensorflow(tmp_path):
    assert output(PROGRAM, tmp_path, without=["tensorflow", "jax"]) == "19900 False False"


def test_several_processes_at_once(tmp_path):
    """TensorFlow is there, and still nobody imports it."""
    processes = [start(PROGRAM, tmp_path) for _ in range(3)]
    for process in processes:
        assert finish(process) == (0, "19900 False False\n", "")
    assert os.listdir(tmp_path / "shared") == ["1.0.0"]


def test_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = data_readme.run("data.batches((images", "data.local_tfds(")
    assert names["batch"]["image"].shape == (500 - 3 * 128, 64)
    assert (tmp_path / "out/tfds/my_digits/1.0.0").is_dir()
