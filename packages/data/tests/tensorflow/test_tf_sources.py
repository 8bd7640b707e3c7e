"""State and restore of TensorFlow's datasets, and datasets of TFDS by name, in both of its formats."""

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

import phlox_data as data
from data_protocol import check, values
from phlox.errors import ArgumentError, DtypeError


class Rows(tfds.core.GeneratorBasedBuilder):
    """Eleven examples."""

    code_path = None  # TFDS looks for files next to that of a dataset, with a library that it does not require
    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        features = {"x": np.int64, "text": tfds.features.Text()}
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

    def _split_generators(self, manager):
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        for i in range(11):
            yield i, {"x": i, "text": f"row {i}"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    tfds.disable_progress_bar()
    made = {}
    for kind in ("array_record", "tfrecord"):
        made[kind] = tmp_path_factory.mktemp(kind)
        tfds.builder("rows", data_dir=made[kind], file_format=kind).download_and_prepare()
    return made


def shuffled(epoch):
    return tf.data.Dataset.range(11).shuffle(11, seed=epoch).batch(4)


@pytest.mark.parametrize("last", ["keep", "pad"])
def test_datasets(last):
    check(lambda: data.from_tf(tf.data.Dataset.range(11).batch(4), last=last), None)
    check(lambda: data.from_tf(shuffled, last=last, batch_size=4), None, count="unknown")


def test_an_order_that_goes_on_is_refused_when_it_matters():
    made = data.from_tf(tf.data.Dataset.range(11).shuffle(11, seed=0).batch(4))
    loop = iter(made)
    next(loop)
    with pytest.raises(ArgumentError, match=r"state\(\) asks for the rest of an epoch, but a ShuffleDataset"):
        made.state()


@pytest.mark.parametrize("kind", ["array_record", "tfrecord"])
@pytest.mark.parametrize("seed", [None, 1])
def test_by_name(folders, kind, seed):
    make = lambda: data.from_tfds(
        "rows", 4, split="train", data_dir=folders[kind], seed=seed, host=["text"], last="pad"
    )
    first = check(make, None, count="known" if kind == "array_record" else "unknown")
    assert (first == values(make().epoch(1))) == (seed is None)
    pairs = {
        (x, text if isinstance(text, str) else text.decode())
        for batch, mask in first
        for x, text, real in zip(batch["x"], batch["text"], mask, strict=True)
        if real
    }
    assert pairs == {(i, f"row {i}") for i in range(11)}


def test_both_formats_have_one_order(folders):
    read = lambda kind: values(data.from_tfds("rows", 4, split="train[:6]", data_dir=folders[kind], host=["text"]))
    assert [b["x"] for b in read("array_record")] == [b["x"] for b in read("tfrecord")]


def test_a_dataset_that_is_not_there_is_prepared(tmp_path):
    made = data.from_tfds("rows", 11, split="train", data_dir=tmp_path, host=["text"])
    assert sorted(values(made)[0]["x"]) == list(range(11))
    assert any("array_record" in path.name for path in tmp_path.rglob("*"))


def test_names_and_their_options(folders):
    with pytest.raises(ArgumentError, match="which part of 'rows'") as caught:
        data.from_tfds("rows", 4)
    assert caught.value.instead == "split='train'"
    with pytest.raises(ArgumentError, match="belong to a name"):
        data.from_tfds([1, 2], 2, split="train")
    with pytest.raises(DtypeError, match=r"the batch\['text'\] has dtype") as caught:
        list(data.from_tfds("rows", 4, split="train", data_dir=folders["tfrecord"]))
    assert "host=" in caught.value.instead


def test_types_that_numpy_lacks_and_strings():
    rows = {"x": tf.cast(tf.range(6), tf.bfloat16), "text": tf.constant([f"row {i}" for i in range(6)])}
    first, _ = data.from_tf(tf.data.Dataset.from_tensor_slices(rows).batch(4), host=["text"])
    assert first["x"].dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(np.asarray(first["x"]).astype(float), [0, 1, 2, 3])
    assert first["text"].tolist() == [b"row 0", b"row 1", b"row 2", b"row 3"]
