"""Contents and order of batches, against NumPy alone."""

import itertools

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_data as data
from phlox.errors import ArgumentError, AxisSizeError, DtypeError, ShapeError


def order(length, seed, epoch):
    """The documented order, said once more: this must never change, or resumed programs see other batches."""
    if seed is None:
        return np.arange(length)
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence((seed, epoch)))).permutation(length)


def arrays(length):
    return {"x": np.arange(length * 6, dtype=np.float32).reshape(length, 2, 3), "y": np.arange(length, dtype=np.int32)}


CASES = list(itertools.product([1, 7, 8, 9], [1, 4, 8], ["keep", "drop", "pad"], [None, 0, 5], [0, 2]))


@pytest.mark.parametrize(("length", "size", "last", "seed", "prefetch"), CASES)
def test_contents_and_order(length, size, last, seed, prefetch):
    source = arrays(length)
    if length < size and last == "drop":
        with pytest.raises(AxisSizeError, match="do not fill one batch"):
            data.batches(source, size, last=last)
        return
    made = data.batches(source, size, seed=seed, last=last, prefetch=prefetch)
    for epoch in (0, 3):
        rows = order(length, seed, epoch)
        expected = [rows[i : i + size] for i in range(0, length, size)]
        if last == "drop" and length % size:
            expected.pop()
        got = list(made.epoch(epoch))
        assert len(got) == len(made) == len(expected)
        for batch, numbers in zip(got, expected, strict=True):
            if last == "pad":
                batch, mask = batch
                real = len(numbers)
                np.testing.assert_array_equal(mask, np.arange(size) < real)
                assert mask.dtype == bool
                numbers = np.concatenate([numbers, np.repeat(numbers[-1:], size - real)])
            assert set(batch) == {"x", "y"}
            for name in batch:
                assert isinstance(batch[name], phlox.Array)
                assert batch[name].dtype == source[name].dtype
                np.testing.assert_array_equal(batch[name], source[name][numbers])


def test_an_epoch_is_a_function_of_seed_and_number():
    read = lambda seed, epoch: np.concatenate(list(data.batches(np.arange(50), 8, seed=seed).epoch(epoch)))
    np.testing.assert_array_equal(read(0, 1), read(0, 1))
    for other in [(0, 2), (1, 1)]:
        assert (read(0, 1) != read(*other)).any()
        np.testing.assert_array_equal(np.sort(read(*other)), np.arange(50))


def test_the_order_is_fixed_for_good():
    assert [batch.tolist() for batch in data.batches(np.arange(8), 4, seed=7).epoch(2)] == [[6, 7, 1, 3], [4, 5, 0, 2]]


@pytest.mark.parametrize("last", ["keep", "drop", "pad"])
@pytest.mark.parametrize("start", range(5))
def test_resuming_gives_the_rest_of_the_epoch(start, last):
    made = data.batches(np.arange(18), 4, seed=3, last=last)
    whole = phlox.device_get(list(made.epoch(5)))
    rest = phlox.device_get(list(made.epoch(5, start=start)))
    assert len(rest) == len(whole) - start
    for a, b in zip(whole[start:], rest, strict=True):
        phlox.tree.map(np.testing.assert_array_equal, a, b)


def test_each_loop_is_the_next_epoch():
    made = data.batches(np.arange(10), 5, seed=1)
    for epoch in range(3):
        by_number = [batch.tolist() for batch in made.epoch(epoch)]
        assert [batch.tolist() for batch in made] == by_number


def test_structures_of_sources():
    x = np.arange(4.0)
    assert isinstance(next(iter(data.batches(x, 2))), phlox.Array)
    a, (b, none), c = next(iter(data.batches([x, (x, None), {"z": x}], 2)))
    assert none is None
    np.testing.assert_array_equal([a, b, c["z"]], [[0, 1]] * 3)


def test_sources_that_are_no_numpy_arrays(tmp_path):
    on_device = jnp.arange(5)
    mapped = np.memmap(tmp_path / "numbers", "float32", "w+", shape=(5,))
    mapped[:] = np.arange(5)
    reversed_columns = np.arange(10.0).reshape(5, 2)[:, ::-1]
    big_endian = np.arange(5, dtype=">f4")
    half = np.arange(5).astype(phlox.dtypes.bfloat16)
    for batch in data.batches((on_device, mapped, reversed_columns, big_endian, half), 3, seed=2):
        numbers = np.asarray(batch[0])
        np.testing.assert_array_equal(batch[1], numbers)
        np.testing.assert_array_equal(batch[2], reversed_columns[numbers])
        np.testing.assert_array_equal(batch[3], numbers)
        np.testing.assert_array_equal(batch[4].astype("float32"), numbers)
        assert [str(b.dtype) for b in batch] == ["int32", "float32", "float32", "float32", "bfloat16"]


def test_64_bit_types_become_32_bit_ones():
    source = (np.arange(3, dtype=np.int64), np.arange(3, dtype=np.float64), np.arange(3, dtype=np.uint64))
    batch = next(iter(data.batches(source, 3)))
    assert [b.dtype for b in batch] == [np.int32, np.float32, np.uint32]
    with phlox.enable_x64(True):  # which must hold in the thread as well
        batch = next(iter(data.batches(source, 3)))
    assert [b.dtype for b in batch] == [np.int64, np.float64, np.uint64]


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float64])
def test_batches_never_share_memory_with_the_source(prefetch, dtype):
    memory = np.zeros(4096 * 8 + 64, np.uint8)
    at = -memory.ctypes.data % 64  # aligned as XLA wants it: then it would take the memory as it is
    source = memory[at : at + 4096 * 8].view(dtype)[:4096]
    source[:] = np.arange(4096) % 100
    expected = source.reshape(2, 2048).copy()
    made = data.batches(source, 2048, prefetch=prefetch).epoch(0)
    first = next(made)
    second = next(made)
    source[:] = -1
    np.testing.assert_array_equal(first, expected[0])
    np.testing.assert_array_equal(second, expected[1])


def test_padding_repeats_a_real_example():
    source = np.array([3.0, 5.0, 7.0], np.float32)  # log of a row of zeros would be -inf
    batch, mask = list(data.batches(source, 2, last="pad"))[1]
    np.testing.assert_array_equal(batch, [7, 7])
    np.testing.assert_array_equal(mask, [True, False])
    assert float((jnp.log(batch) * mask).sum()) == pytest.approx(np.log(7.0), rel=1e-6)


def test_padded_batches_go_through_jit():
    @phlox.jit
    def total(padded):
        return (padded.batch["y"] * padded.mask).sum()

    assert sum(int(total(batch)) for batch in data.batches(arrays(7), 4, last="pad")) == 21


# --- what is refused --------------------------------------------------------------------------------------


def refused(kind, message, *args, **kwargs):
    with pytest.raises(kind, match=message) as caught:
        data.batches(*args, **kwargs)
    assert caught.value.instead
    assert caught.value.where.file == __file__
    return caught.value


def test_leaves_that_are_no_arrays_are_named_by_path():
    x = np.zeros(2)
    assert refused(ArgumentError, r"source\['t'\] is 'abc' of type str", {"t": "abc", "x": x}, 2).path == "source['t']"
    assert refused(DtypeError, r"source\[1\] has dtype <U1", (x, np.array(["a", "b"])), 2).path == "source[1]"
    refused(DtypeError, r"source has dtype object", np.array([{}, {}]), 2)
    refused(DtypeError, r"source has dtype datetime64", np.zeros(2, "datetime64[s]"), 2)
    refused(ShapeError, r"source\[0\] is a single number", [1, 2, 3], 2)
    refused(ArgumentError, r"source is <object", object(), 2)
    refused(ArgumentError, "source holds no arrays", {}, 2)


def test_first_axes_of_different_length():
    error = refused(AxisSizeError, r"source\['y'\] has shape \(3,\)", {"x": np.zeros((4, 2)), "y": np.zeros(3)}, 2)
    assert error.sizes == [("['x']", 0, (4, 2)), ("['y']", 0, (3,))]


def test_options_that_say_nothing():
    x = np.zeros(4)
    refused(ArgumentError, "last='pads'", x, 2, last="pads")
    refused(ArgumentError, "batch_size=0", x, 0)
    refused(ArgumentError, "batch_size=2.5", x, 2.5)
    refused(ArgumentError, "seed=-1", x, 2, seed=-1)
    refused(ArgumentError, "seed=", x, 2, seed=phlox.random.PRNGKey(0))
    refused(ArgumentError, "prefetch=-1", x, 2, prefetch=-1)
    refused(ArgumentError, "device='cpu'", x, 2, device="cpu")
    refused(ArgumentError, "devices=8 ", x, 2, devices=8)
    refused(ArgumentError, "both given", x, 2, device=phlox.devices()[0], devices=phlox.devices())
    refused(AxisSizeError, "there are no examples", np.zeros((0, 3)), 2)


def test_numbers_of_epochs_and_batches():
    made = data.batches(np.zeros(10), 4)
    with pytest.raises(ArgumentError, match="epoch=-1"):
        made.epoch(-1)
    with pytest.raises(ArgumentError, match="start=-1"):
        made.epoch(0, start=-1)
    with pytest.raises(ArgumentError, match="start=4 lies beyond the end of an epoch of 3"):
        made.epoch(0, start=4)
    assert list(made.epoch(np.int64(1), start=3)) == []


def test_a_function_that_returns_nothing():
    with pytest.raises(ArgumentError, match="the function returned None for epoch 3"):
        data.from_iterable(lambda epoch: None).epoch(3)
