"""Batches of PyTorch's DataLoader, with the real torch."""

import collections
import warnings

import ml_dtypes
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import data_readme
import phlox
import phlox_data as data
from data_threads import ours
from phlox.errors import ArgumentError, AxisSizeError, DtypeError

X = torch.arange(66, dtype=torch.float32).reshape(22, 3)
Y = torch.arange(22)
DATASET = TensorDataset(X, Y)


def same(a, b):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("last", ["keep", "drop", "pad"])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_contents_and_order_are_the_loaders(last, prefetch):
    made = data.from_torch(DataLoader(DATASET, 8), last=last, prefetch=prefetch)
    expected = list(DataLoader(DATASET, 8, drop_last=last == "drop"))
    got = list(made)
    assert len(made) == len(got) == len(expected)
    for batch, (x, y) in zip(got, expected, strict=True):
        if last == "pad":
            batch, mask = batch
            assert int(np.sum(mask)) == len(x)
            batch = [leaf[: len(x)] for leaf in batch]
        assert type(batch) is list
        same(batch[0], x)
        same(batch[1], y)
        assert batch[1].dtype == np.int32
    assert not ours()


def test_split_over_devices():
    devices = phlox.local_devices()[:4]
    for (x, _), mask in data.from_torch(DataLoader(DATASET, 8), last="pad", devices=devices):
        assert x.shape == (4, 2, 3)
        assert mask.shape == (4, 2)
        assert [shard.device for shard in x.addressable_shards] == devices
    with pytest.raises(AxisSizeError, match="a batch of 6 examples cannot be split evenly over 4"):
        list(data.from_torch(DataLoader(DATASET, 8), devices=devices))


def shuffled(epoch):
    return DataLoader(DATASET, 4, shuffle=True, generator=torch.Generator().manual_seed(epoch))


def test_a_function_of_the_epoch_can_be_resumed():
    made = data.from_torch(shuffled)
    numbers = lambda epoch, start=0: [batch[1].tolist() for batch in made.epoch(epoch, start=start)]
    assert numbers(3) == numbers(3) == [y.tolist() for _, y in shuffled(3)]
    assert numbers(3) != numbers(4)
    assert numbers(3, start=2) == numbers(3)[2:]
    assert numbers(3, start=6) == []
    with pytest.raises(TypeError, match="does not say how many"):
        len(made)


class Reversed(torch.utils.data.Sampler):
    """A sampler of the user's: whether it draws cannot be seen."""

    def __init__(self):
        pass

    def __iter__(self):
        return iter(range(21, -1, -1))

    def __len__(self):
        return 22


class Batches(Reversed):
    def __iter__(self):
        return iter([[i] for i in range(6)])

    def __len__(self):
        return 6


class Streamed(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(DATASET[i] for i in range(22))


class Wrapped:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        return iter(self.loader)


def test_an_order_that_is_drawn_anew_cannot_be_resumed():
    """In the middle of an epoch other examples would come, without a word."""
    weighted = torch.utils.data.WeightedRandomSampler(torch.ones(22), 22)
    subset = torch.utils.data.SubsetRandomSampler(range(22))
    batches = torch.utils.data.BatchSampler(subset, 4, drop_last=False)
    seeded = DataLoader(DATASET, 4, shuffle=True, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(0)
    for loader in (
        DataLoader(DATASET, 4, shuffle=True),
        DataLoader(DATASET, 4, sampler=weighted),
        DataLoader(DATASET, batch_sampler=batches),
        seeded,  # each epoch goes on with the generator's numbers
        lambda epoch: DataLoader(DATASET, 4, shuffle=True),
        lambda epoch: seeded,
        lambda epoch: DataLoader(DATASET, 4, shuffle=True, generator=generator),
        DataLoader(DATASET, None, sampler=torch.utils.data.BatchSampler(subset, 4, drop_last=False)),
        DataLoader(DATASET, 4, sampler=Reversed()),
        DataLoader(DATASET, batch_sampler=Batches()),
        DataLoader(Streamed(), 4),
        Wrapped(DataLoader(DATASET, 4, shuffle=True)),
    ):
        made = data.from_torch(loader)
        assert len(list(made.epoch(0))) == 6
        with pytest.raises(ArgumentError, match="start=2 asks for the rest of an epoch") as excinfo:
            made.epoch(0, start=2)
        streamed = isinstance(getattr(loader, "dataset", None), Streamed)  # of which shuffle=True would be an error
        instead = "lambda epoch: loader" if streamed else "generator=torch.Generator().manual_seed(epoch)"
        assert instead in excinfo.value.instead


def test_an_order_that_is_known_can_be_resumed():
    distributed = torch.utils.data.DistributedSampler(DATASET, 1, 0)
    for loader in (
        DataLoader(DATASET, 4),
        DataLoader(DATASET, 4, sampler=range(22)),
        DataLoader(DATASET, batch_sampler=[[1, 2], [3, 4], [5, 6]]),
        DataLoader(DATASET, 4, sampler=np.arange(22)[::-1].copy()),
        DataLoader(DATASET, 4, sampler=distributed),
        list(DataLoader(DATASET, 4)),
        # Of these the user says it.
        lambda epoch: DataLoader(DATASET, 4, sampler=Reversed()),
        lambda epoch: DataLoader(Streamed(), 4),
    ):
        made = data.from_torch(loader)
        numbers = lambda start: [y.tolist() for _, y in made.epoch(0, start=start)]
        assert numbers(2) == numbers(0)[2:]


@pytest.mark.parametrize("last", ["keep", "drop", "pad"])
@pytest.mark.parametrize("sampled", [False, True], ids=["size known", "size unknown"])
def test_resuming_at_the_short_batch(last, sampled):
    """What is full must not depend on where one begins."""
    rows = [[1, 2, 3], [4, 5, 6], [7]]
    loader = DataLoader(DATASET, batch_sampler=rows) if sampled else DataLoader(DATASET, 3, sampler=range(1, 8))
    made = data.from_torch(lambda epoch: loader, last=last)
    whole = phlox.device_get(list(made.epoch(0)))
    for start in range(len(whole) + 1):
        rest = phlox.device_get(list(made.epoch(0, start=start)))
        assert len(rest) == len(whole) - start
        for a, b in zip(whole[start:], rest, strict=True):
            phlox.tree.map(np.testing.assert_array_equal, a, b)


def test_short_batches_in_the_middle():
    """As workers make them, each at the end of its part; a start counts the batches that the loop sees."""
    made = data.from_torch(DataLoader(DATASET, batch_sampler=[[1, 2], [3], [4, 5], [6], [7, 8]]), last="drop")
    assert [y.tolist() for _, y in made] == [[1, 2], [4, 5], [7, 8]]
    assert [y.tolist() for _, y in made.epoch(0, start=1)] == [[4, 5], [7, 8]]


def test_lengths():
    class Endless(IterableDataset):
        def __iter__(self):
            yield from range(10)

    class Counted(Endless):
        def __len__(self):
            return 10

    def length(loader, last):
        try:
            known = len(data.from_torch(loader, last=last))
        except TypeError:
            return None
        assert known == len(list(data.from_torch(loader, last=last)))
        return known

    assert length(DataLoader(DATASET, 8), "keep") == 3
    assert length(DataLoader(DATASET, 8), "drop") == 2
    assert length(DataLoader(DATASET, 11), "drop") == 2
    assert length(DataLoader(DATASET, 8, drop_last=True), "drop") == 2
    assert length(DataLoader(DATASET, 8, sampler=range(9)), "drop") == 1
    assert length(DataLoader(DATASET, batch_sampler=[[1, 2], [3]]), "keep") == 2
    assert length(DataLoader(DATASET, batch_sampler=[[1, 2], [3]]), "drop") is None
    assert length(DataLoader(Endless(), 3), "keep") is None
    assert length(DataLoader(Counted(), 3), "keep") == 4


def test_which_batches_are_short():
    # The first batch is short itself: the loader says what full is.
    assert list(data.from_torch(DataLoader(DATASET, 100), last="drop")) == []
    assert next(iter(data.from_torch(DataLoader(DATASET, 100), last="pad"))).mask.shape == (100,)
    # This loader does not say; the user may.
    batches = DataLoader(DATASET, batch_sampler=[[1, 2, 3], [4]])
    assert [len(y) for _, y in data.from_torch(batches, last="drop")] == [3]
    assert [len(b.mask) for b in data.from_torch(batches, last="pad", batch_size=5)] == [5, 5]
    one_short = data.from_torch(lambda epoch: DataLoader(DATASET, 100), last="pad")
    assert next(iter(one_short)).mask.shape == (100,)
    growing = DataLoader(DATASET, batch_sampler=[[1], [2, 3]])
    with pytest.raises(AxisSizeError, match="a batch of 2 examples, where the full size is 1"):
        list(data.from_torch(growing))


def test_structures():
    Point = collections.namedtuple("Point", "x y")

    class Mixed(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return {"point": Point(i, torch.tensor([i, i + 0.5])), "more": [np.float64(i), True]}

    batch = next(iter(data.from_torch(DataLoader(Mixed(), 4))))
    assert type(batch["point"]).__name__ == "Point"
    same(batch["point"].x, np.arange(4))
    same(batch["point"].y, np.arange(4)[:, None] + [0, 0.5])
    same(batch["more"][0], np.arange(4.0))
    assert batch["more"][1].dtype == bool


DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.float16, torch.float32, torch.complex64,
    torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype):
    values = [0.0, 1.0, 0.0, 1.0]
    batch = next(iter(data.from_torch(DataLoader(TensorDataset(torch.tensor(values).to(dtype)), 4))))[0]
    assert str(batch.dtype) == str(dtype).removeprefix("torch.")
    same(np.asarray(batch).astype(np.complex64), values)


def test_bfloat16_keeps_its_bits():
    values = torch.tensor([1.0, -2.5, 3.140625, float("inf")], dtype=torch.bfloat16)
    strided = torch.stack([values, values]).T  # not contiguous
    (batch,) = next(iter(data.from_torch(DataLoader(TensorDataset(strided), 4))))
    same(np.asarray(batch).view(np.uint16), np.stack([values.view(torch.uint16).numpy()] * 2, axis=1))
    assert batch.dtype == ml_dtypes.bfloat16


def test_tensors_that_numpy_would_refuse():
    conjugate = torch.view_as_complex(torch.arange(8.0).reshape(4, 2)).conj()
    wanting = [torch.ones(4, requires_grad=True), conjugate, torch.zeros(3, 4).T, torch.ones(4).expand(4, 4)]
    batch = next(iter(data.batches(wanting, 4)))
    for got, tensor in zip(batch, wanting, strict=True):
        same(got, tensor.detach().resolve_conj())


def test_what_is_refused():
    class Texts(Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return {"text": "abc", "x": i}

    with pytest.raises(ArgumentError, match=r"the batch\['text'\]\[0\] is 'abc' of type str"):
        list(data.from_torch(DataLoader(Texts(), 2)))
    with pytest.raises(ArgumentError, match=r"layout torch\.sparse_coo") as caught:
        data.batches(torch.zeros(3, 3).to_sparse(), 3)
    assert caught.value.instead == "tensor.to_dense()"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        half_complex = torch.zeros(3, dtype=torch.complex32)
    with pytest.raises(DtypeError, match=r"source has dtype torch\.complex32"):
        data.batches(half_complex, 3)
    with pytest.raises(ArgumentError, match="can be read only once"):
        data.from_torch(iter([X]))
    with pytest.raises(ArgumentError, match="holds no batches"):
        data.from_torch(5)


def test_a_loader_may_write_over_its_batches():
    memory = torch.zeros(4096)  # torch's memory is aligned as XLA wants it

    class Overwriting(IterableDataset):
        def __iter__(self):
            for number in range(4):
                memory.fill_(number)
                yield memory

    for prefetch in (0, 3):
        batches = list(data.from_torch(DataLoader(Overwriting(), batch_size=None), prefetch=prefetch))
        assert [set(np.asarray(batch).tolist()) for batch in batches] == [{0.0}, {1.0}, {2.0}, {3.0}]


def test_exceptions_of_the_dataset():
    class Broken(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            if i == 6:
                raise KeyError("example 6")
            return i

    got = []
    with pytest.raises(KeyError, match="example 6"):
        for batch in data.from_torch(DataLoader(Broken(), 2)):
            got.append(batch.tolist())
    assert got == [[0, 1], [2, 3], [4, 5]]
    assert not ours()


class Numbers(Dataset):
    """At the top of the module, because workers that are not forked import it."""

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return np.full(3, i, np.float32), i


def test_numpy_batches_without_a_detour_over_tensors():
    for batch in DataLoader(Numbers(), 4, collate_fn=data.collate):
        assert [type(leaf) for leaf in batch] == [np.ndarray, np.ndarray]
    (_, y), (_, z) = data.from_torch(DataLoader(Numbers(), 4, collate_fn=data.collate))
    same([*y, *z], np.arange(8))


def test_workers_that_are_not_forked():
    loader = DataLoader(Numbers(), 2, num_workers=1, multiprocessing_context="forkserver")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = data.from_torch(loader)
        assert [y.tolist() for _, y in made] == [[0, 1], [2, 3], [4, 5], [6, 7]]
        for _, y in made:  # left early: the worker is told to stop
            assert y.tolist() == [0, 1]
            break
    assert not ours()


def test_forked_workers_get_a_warning():
    loader = DataLoader(Numbers(), 2, num_workers=1, multiprocessing_context="fork")
    with pytest.warns(RuntimeWarning, match=r"forks 1 worker.*multiprocessing_context='forkserver'") as caught:
        made = data.from_torch(loader).epoch(0)
    assert caught[0].filename == __file__
    assert [y.tolist() for _, y in made] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_the_readme_runs():
    names = data_readme.run("data.batches((images", "data.from_torch(")
    assert names["x"].shape == (104, 64)
