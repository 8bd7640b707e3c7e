"""Where batches lie: one device, several for pmap, a sharding of the user's."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_data as data
from phlox import NamedSharding, P
from phlox.errors import AxisSizeError
from phlox.sharding import Mesh

X = np.arange(96, dtype=np.float32).reshape(32, 3)
Y = np.arange(32, dtype=np.int64)


@pytest.fixture
def eight():
    devices = phlox.local_devices()
    assert len(devices) >= 8, "conftest.py at the top asks for eight virtual devices"
    return devices[:8]


def test_without_a_device_batches_go_where_new_arrays_go(eight):
    batch = next(iter(data.batches(X, 4)))
    assert batch.devices() == {eight[0]}
    assert not batch.committed
    with phlox.default_device(eight[3]):  # which must hold in the thread as well
        batch = next(iter(data.batches(X, 4)))
    assert batch.devices() == {eight[3]}


def test_on_a_device_of_choice(eight):
    padded = next(iter(data.batches((X, Y), 5, device=eight[2], last="pad")))
    for leaf in phlox.tree.leaves(padded):
        assert leaf.devices() == {eight[2]}
        assert leaf.committed
    np.testing.assert_array_equal(padded.batch[0], X[:5])


def test_over_a_sharding(eight):
    sharding = NamedSharding(Mesh(np.array(eight).reshape(4, 2), ("data", "model")), P("data"))
    x, y = next(iter(data.batches((X, Y), 8, device=sharding)))
    assert x.shape == (8, 3)
    assert x.sharding == y.sharding == sharding
    np.testing.assert_array_equal(x, X[:8])


@pytest.mark.parametrize("last", ["keep", "drop", "pad"])
def test_split_over_devices(eight, last):
    made = data.batches((X, Y), 16, seed=4, last=last, devices=eight)
    plain = data.batches((X, Y), 16, seed=4, last=last)
    for split, whole in zip(made, plain, strict=True):
        x, y = split.batch if last == "pad" else split
        assert x.shape == (8, 2, 3)
        assert y.shape == (8, 2)
        assert y.dtype == np.int32
        if last == "pad":
            assert split.mask.shape == (8, 2)
            np.testing.assert_array_equal(np.reshape(split.mask, 16), whole.mask)
            whole = whole.batch
        np.testing.assert_array_equal(np.reshape(x, (16, 3)), whole[0])
        for number, shard in enumerate(x.addressable_shards):
            assert shard.device == eight[number]
            np.testing.assert_array_equal(shard.data, np.reshape(whole[0], (8, 2, 3))[number : number + 1])


@pytest.mark.parametrize("axis_name", [None, "batch"])
def test_pmap_finds_the_batches_in_place(eight, axis_name, monkeypatch):
    @phlox.pmap
    def ready(x):
        return x

    assert ready(np.zeros(8)).sharding == next(iter(data.batches(X, 16, devices=eight))).sharding

    from phlox._xla import moves

    def moved(*_args, **_kwargs):
        raise AssertionError("pmap moved a batch")

    monkeypatch.setattr(moves, "move", moved)
    step = phlox.pmap(lambda batch: batch[0].sum() + batch[1].sum(), axis_name=axis_name)
    total = sum(float(jnp.sum(step(batch))) for batch in data.batches((X, Y), 16, devices=eight))
    assert total == X.sum() + Y.sum()


def test_a_short_last_batch_that_divides_is_kept(eight):
    made = data.batches(X, 24, devices=eight)
    assert [batch.shape for batch in made] == [(8, 3, 3), (8, 1, 3)]


def test_batches_that_do_not_divide(eight):
    with pytest.raises(AxisSizeError, match="a batch of 12 examples cannot be split evenly over 8 devices") as caught:
        data.batches(X, 12, devices=eight)
    assert "multiple of 8" in caught.value.instead
    assert caught.value.devices == 8
    with pytest.raises(AxisSizeError, match="the last batch of 4 examples cannot be split") as caught:
        data.batches(X[:20], 16, devices=eight)
    assert "last='drop' or 'pad'" in caught.value.instead
    assert [b.shape for b in data.batches(X[:20], 16, devices=eight, last="drop")] == [(8, 2, 3)]
    padded = list(data.batches(X[:20], 16, devices=eight, last="pad"))[1]
    np.testing.assert_array_equal(np.reshape(padded.mask, 16), np.arange(16) < 4)
