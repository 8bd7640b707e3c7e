"""Batches of tf.data, with the real TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

import data_readme
import phlox
import phlox_data as data
from data_processes import output
from data_threads import ours
from phlox.errors import ArgumentError, AxisSizeError, DtypeError, ShapeError

X = np.arange(66, dtype=np.float32).reshape(22, 3)
Y = np.arange(22, dtype=np.int64)
EXAMPLES = tf.data.Dataset.from_tensor_slices({"x": X, "y": Y})


def numbers(batches):
    return [batch["y"].tolist() for batch in batches]


@pytest.mark.parametrize("last", ["keep", "drop", "pad"])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_contents_and_order_are_the_datasets(last, prefetch):
    made = data.from_tf(EXAMPLES.batch(8), last=last, prefetch=prefetch)
    got = list(made)
    rows = [range(8), range(8, 16), range(16, 22)]
    if last == "drop":
        rows.pop()
    assert len(got) == len(rows)
    for batch, expected in zip(got, rows, strict=True):
        if last == "pad":
            batch, mask = batch
            assert int(np.sum(mask)) == len(expected)
            batch = {name: leaf[: len(expected)] for name, leaf in batch.items()}
        np.testing.assert_array_equal(batch["x"], X[list(expected)])
        np.testing.assert_array_equal(batch["y"], Y[list(expected)])
        assert batch["y"].dtype == np.int32
    assert not ours()


def test_split_over_devices():
    devices = phlox.local_devices()[:4]
    for batch in data.from_tf(EXAMPLES.batch(8, drop_remainder=True), devices=devices):
        assert batch["x"].shape == (4, 2, 3)
        assert [shard.device for shard in batch["y"].addressable_shards] == devices
    with pytest.raises(AxisSizeError, match="a batch of 6 examples cannot be split evenly over 4"):
        list(data.from_tf(EXAMPLES.batch(8), devices=devices))
    with pytest.raises(AxisSizeError, match="a batch of 6 examples"):  # known before anything is read
        data.from_tf(EXAMPLES.batch(6, drop_remainder=True), devices=devices)


def test_a_function_of_the_epoch_can_be_resumed():
    made = data.from_tf(lambda epoch: EXAMPLES.shuffle(22, seed=epoch).batch(4))
    assert numbers(made.epoch(3)) == numbers(made.epoch(3))
    assert numbers(made.epoch(3)) != numbers(made.epoch(4))
    assert numbers(made.epoch(3, start=2)) == numbers(made.epoch(3))[2:]
    with pytest.raises(TypeError, match="does not say how many"):
        len(made)


def test_an_order_that_is_drawn_anew_cannot_be_resumed():
    """In the middle of an epoch other examples would come, without a word."""
    once = EXAMPLES.shuffle(22, seed=3)
    whole = once.batch(4)
    loose = tf.data.Options()
    loose.deterministic = False
    for dataset in (
        EXAMPLES.shuffle(22).batch(4),
        EXAMPLES.shuffle(22, seed=3).map(lambda x: x).batch(4).prefetch(2),
        lambda epoch: EXAMPLES.shuffle(22).batch(4),
        lambda epoch: once.batch(4),
        lambda epoch: whole,
        EXAMPLES.map(lambda x: x, num_parallel_calls=2, deterministic=False).batch(4),
        lambda epoch: EXAMPLES.with_options(loose).batch(4),
        lambda epoch: tf.data.Dataset.range(2).interleave(lambda i: EXAMPLES.take(11).shuffle(4)).batch(4),
        lambda epoch: tf.data.Dataset.sample_from_datasets([EXAMPLES.take(11)] * 2).batch(4),
    ):
        made = data.from_tf(dataset)
        assert len(list(made.epoch(0))) == 6
        with pytest.raises(ArgumentError, match="start=2 asks for the rest of an epoch") as excinfo:
            made.epoch(0, start=2)
        assert "shuffle(10_000, seed=epoch)" in str(excinfo.value)
    fixed = EXAMPLES.shuffle(22, seed=3, reshuffle_each_iteration=False).batch(4)
    made = data.from_tf(fixed)
    assert numbers(made.epoch(0, start=2)) == numbers(made.epoch(0))[2:]
    inner = lambda epoch: lambda i: EXAMPLES.skip(11 * i).take(11).shuffle(4, seed=epoch)
    made = data.from_tf(lambda epoch: tf.data.Dataset.range(2).interleave(inner(epoch)).batch(4))
    assert numbers(made.epoch(1, start=2)) == numbers(made.epoch(1))[2:]
    assert numbers(made.epoch(1)) != numbers(made.epoch(2))


def test_seeds_that_tensorflow_counts_cannot_be_resumed():
    """Under a seed for all, those of single steps depend on how many were made before."""
    tf.random.set_seed(1)
    try:
        made = data.from_tf(lambda epoch: EXAMPLES.shuffle(22).batch(4))
        with pytest.raises(ArgumentError, match="its seeds are others each time it is made"):
            made.epoch(0, start=2)
        made = data.from_tf(lambda epoch: EXAMPLES.shuffle(22, seed=epoch).batch(4))
        assert numbers(made.epoch(0, start=2)) == numbers(made.epoch(0))[2:]
    finally:
        tf.random.set_seed(None)


def test_resuming_at_the_short_batch():
    made = data.from_tf(lambda epoch: EXAMPLES.batch(8), last="pad")
    whole = list(made.epoch(0))
    (rest,) = made.epoch(0, start=2)
    assert rest.mask.shape == (8,)
    phlox.tree.map(np.testing.assert_array_equal, whole[2], rest)


def test_lengths():
    assert len(data.from_tf(EXAMPLES.batch(8))) == 3
    assert len(data.from_tf(EXAMPLES.batch(8), last="pad")) == 3
    assert len(data.from_tf(EXAMPLES.batch(8, drop_remainder=True), last="drop")) == 2
    for unknown, last in [
        (EXAMPLES.batch(8), "drop"),  # its types do not say whether the third one is short
        (EXAMPLES.repeat().batch(8), "keep"),
        (EXAMPLES.filter(lambda example: example["y"] > 3).batch(8), "keep"),
    ]:
        with pytest.raises(TypeError, match="does not say how many"):
            len(data.from_tf(unknown, last=last))


def test_an_endless_dataset_can_be_left():
    seen = []
    for batch in data.from_tf(EXAMPLES.repeat().batch(10)):
        seen.append(batch["y"].tolist())
        if len(seen) == 4:
            break
    assert seen[2] == [20, 21, *range(8)]
    assert not ours()


def test_which_batches_are_short():
    short = EXAMPLES.take(5).batch(8)
    assert list(data.from_tf(short, last="drop", batch_size=8)) == []
    assert next(iter(data.from_tf(short, last="pad", batch_size=8))).mask.shape == (8,)


def test_structures_and_dtypes():
    halves = tf.cast(tf.range(4), tf.bfloat16)
    dataset = tf.data.Dataset.from_tensor_slices((X[:4], (halves, {"yes": Y[:4] > 1}))).batch(4)
    x, (half, named) = next(iter(data.from_tf(dataset)))
    np.testing.assert_array_equal(x, X[:4])
    assert str(half.dtype) == "bfloat16"
    np.testing.assert_array_equal(half.astype("float32"), np.arange(4))
    np.testing.assert_array_equal(named["yes"], [False, False, True, True])


def test_what_is_refused():
    with pytest.raises(DtypeError, match=r"the batch\['t'\] has dtype object"):
        list(data.from_tf(tf.data.Dataset.from_tensor_slices({"t": ["a", "b"]}).batch(2)))
    with pytest.raises(ShapeError, match=r"the batch\['y'\] is a single number") as caught:
        list(data.from_tf(EXAMPLES))
    assert "dataset.batch(n)" in caught.value.instead
    with pytest.raises(ArgumentError, match="can be read only once"):
        data.from_tf(EXAMPLES.batch(2).as_numpy_iterator())
    for wrong in ([X, Y], 5):
        with pytest.raises(ArgumentError, match=r"is no tf|holds no batches"):
            data.from_tf(wrong)
    with pytest.raises(ArgumentError, match="is no tf"):
        data.from_tf(lambda epoch: [X, Y]).epoch(0)
    with pytest.raises(DtypeError, match="the batch has dtype object"):
        ragged = tf.ragged.constant([[1], [2, 3]])
        list(data.from_tf(tf.data.Dataset.from_tensor_slices(ragged).batch(2)))


def test_exceptions_of_the_dataset():
    def broken(i):
        tf.debugging.assert_less(i, tf.constant(4, tf.int64), "number four")
        return i

    got = []
    with pytest.raises(tf.errors.InvalidArgumentError, match="number four"):
        for batch in data.from_tf(tf.data.Dataset.range(8).map(broken).batch(2), prefetch=1):
            got.append(batch.tolist())
    assert got == [[0, 1], [2, 3]]
    assert not ours()


@pytest.mark.parametrize("imported_before", [False, True])
@pytest.mark.parametrize("used", [False, True])
def test_gpus_are_hidden_from_tensorflow_if_it_is_not_too_late(tmp_path, imported_before, used):
    """With a TensorFlow that writes down what it is asked: there may be no GPU here to hide."""
    (tmp_path / "tensorflow.py").write_text(
        f"""
visible = ["a GPU"]
class config:
    get_visible_devices = lambda kind: visible
    def set_visible_devices(devices, kind):
        if {used}:
            raise RuntimeError("Visible devices cannot be modified after being initialized")
        visible[:] = devices
"""
    )
    program = f"""
        import sys, warnings
        sys.path.insert(0, {str(tmp_path)!r})
        if {imported_before}:
            import tensorflow
        import phlox_data as data
        with warnings.catch_warnings(record=True) as caught:
            data.from_tf(lambda epoch: None)
            data.require("tensorflow")
        import tensorflow
        print(tensorflow.visible, "GPUs in use" in str([w.message for w in caught]))
        """
    assert output(program) == ("['a GPU'] True" if used else "[] False")


def test_the_real_tensorflow_takes_that_call():
    assert callable(tf.config.set_visible_devices)
    tf.config.set_visible_devices([], "GPU")
    assert tf.config.get_visible_devices("GPU") == []


def test_the_readme_runs():
    names = data_readme.run("data.batches((images", "data.from_tf(")
    assert names["batch"]["image"].shape == (104, 64)
