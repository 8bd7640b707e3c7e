"""What goes on in the middle of an epoch of PyTorch's loaders, torchdata's and WebDataset's."""

import io
import tarfile

import numpy as np
import pytest
import torch
import webdataset
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader

import data_readme
import phlox_data as data
from data_protocol import check, left_early, values
from phlox.errors import ArgumentError

DATASET = TensorDataset(torch.arange(11), torch.arange(22.0).reshape(11, 2))

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")


class Streamed(IterableDataset):
    """Examples that workers share out among themselves."""

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter([{"x": torch.tensor(i), "text": f"row {i}"} for i in range(first, 11, step)])


def shuffled(epoch):
    return DataLoader(DATASET, 4, shuffle=True, generator=torch.Generator().manual_seed(epoch))


@pytest.mark.parametrize("last", ["keep", "pad"])
def test_loaders(last):
    check(lambda: data.from_torch(DataLoader(DATASET, 4), last=last), None)
    check(lambda: data.from_torch(shuffled, last=last), None, count="unknown")


def test_an_order_without_a_seed_is_refused_when_it_matters():
    made = data.from_torch(DataLoader(DATASET, 4, shuffle=True))
    loop = iter(made)
    assert made.state() == {"epoch": 0, "batch": 0}
    next(loop)
    with pytest.raises(
        ArgumentError, match=r"state\(\) asks for the rest of an epoch, but its sampler draws"
    ) as caught:
        made.state()
    assert "manual_seed(epoch)" in caught.value.instead
    list(loop)
    assert made.state() == {"epoch": 1, "batch": 0}


@pytest.mark.parametrize("workers", [0, 2])
def test_iterable_datasets(workers):
    context = "forkserver" if workers else None
    loader = DataLoader(Streamed(), 4, num_workers=workers, multiprocessing_context=context)
    made = data.from_torch(lambda epoch: loader, host=["text"])
    batches = list(made)
    seen = {int(x): text for batch in batches for x, text in zip(batch["x"], batch["text"], strict=True)}
    assert seen == {i: f"row {i}" for i in range(11)}
    next(loop := iter(made))
    state = made.state()
    rest = values(loop)
    made.restore(state)
    assert values(made) == rest
    left_early(made)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("prefetch", [0, 3])
def test_stateful_loaders_go_on_by_themselves(shuffle, prefetch):
    for taken in (0, 1, 2, 3):
        make = lambda: data.from_torch(StatefulDataLoader(DATASET, 4, shuffle=shuffle), last="pad", prefetch=prefetch)
        stopped = make()
        list(stopped)
        loop = iter(stopped)
        head = values(next(loop) for _ in range(taken))
        state = stopped.state()
        rest = values(loop)
        assert ("reader" in state) == (taken > 0)
        resumed = make()
        resumed.restore(state)
        if taken or not shuffle:
            assert values(resumed) == rest
        else:  # no batch was taken, so whatever order comes has all examples
            head, rest = [], values(resumed)
        real = [x for batch, mask in head + rest for x, m in zip(batch[0], mask, strict=True) if m]
        assert sorted(real) == list(range(11))
        whole = values(resumed)
        assert len(whole) == 3
        assert resumed.state() == {"epoch": 3, "batch": 0}


def test_stateful_loaders_with_workers():
    make = lambda: data.from_torch(
        StatefulDataLoader(Streamed(), 2, num_workers=1, multiprocessing_context="forkserver"), host=["text"]
    )
    stopped = make()
    loop = iter(stopped)
    next(loop), next(loop)
    state = stopped.state()
    rest = values(loop)
    resumed = make()
    resumed.restore(state)
    assert values(resumed) == rest
    left_early(resumed)


@pytest.fixture
def shards(tmp_path):
    for shard in range(3):
        with tarfile.open(tmp_path / f"rows-{shard}.tar", "w") as tar:
            for i in range(4 * shard, 4 * shard + 4):
                for suffix, text in (("txt", f"row {i}"), ("cls", str(i))):
                    member = tarfile.TarInfo(f"{i:03}.{suffix}")
                    member.size = len(text)
                    tar.addfile(member, io.BytesIO(text.encode()))
    return str(tmp_path / "rows-{0..2}.tar")


def test_webdataset(shards):
    def pipeline(epoch):
        rows = webdataset.WebDataset(shards, shardshuffle=False, seed=epoch)
        return rows.shuffle(5, seed=epoch).decode().to_tuple("cls", "txt").batched(5)

    first = check(lambda: data.from_iterable(pipeline, host=[1], last="pad"), None, count="unknown")
    pairs = {(x, t) for (xs, ts), mask in first for x, t, m in zip(xs, ts, mask, strict=True) if m}
    assert pairs == {(i, f"row {i}") for i in range(12)}


def test_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    for shard in range(4):
        with webdataset.TarWriter(str(tmp_path / f"out/shards-{shard}.tar")) as tar:
            tar.write({"__key__": f"{shard}", "cls": shard})
    (numbers,) = data_readme.run("data.batches((images, labels), batch_size=128, seed=0)", "webdataset")["batch"]
    assert sorted(numbers.tolist()) == [0, 1, 2, 3]


def test_types_that_numpy_lacks():
    for kind in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        rows = torch.arange(6.0).to(kind)
        batches = list(data.from_torch([rows[:4], rows[4:]]))
        assert [str(b.dtype) for b in batches] == [str(kind).removeprefix("torch.")] * 2
        assert values(batches) == [[0, 1, 2, 3], [4, 5]]
    examples = data.from_iterable(data.pipeline(TensorDataset(torch.arange(6.0).to(torch.bfloat16))).batch(3))
    (first,), _ = examples
    assert str(first.dtype) == "bfloat16"
    np.testing.assert_array_equal(first.astype("float32"), [0, 1, 2])
